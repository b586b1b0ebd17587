r"""SPARQL 1.1 and 1.2 Query Results JSON (https://www.w3.org/TR/sparql12-results-json/), as endpoints really send it.

The document is cut at the solutions of `results.bindings`; each piece is decoded by msgspec into one struct per
solution, with a field for each variable asked for. A cut in the wrong place (in a string, or in an array deeper down)
leaves a piece that is no JSON; a scanner of strings and brackets then finds the right one. What stands around the
solutions is kept and must, in the end, be one JSON object by itself: so nothing can be missing, and nothing can follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from construct_messages.errors import IncompleteResult, TermError
from construct_messages.results import excerpt
from construct_messages.solutions import Solutions
from construct_messages.terms import NEEDS_ESCAPE, UNBOUND, USUAL_IRI, Term, blank, iri, literal, triple

_AROUND_LIMIT: Final = 1 << 20  # bytes before the solutions, and behind them


class _Iri(msgspec.Struct, tag_field="type", tag="uri", gc=False):
    value: str


class _Blank(msgspec.Struct, tag_field="type", tag="bnode", gc=False):
    value: str


class _Literal(msgspec.Struct, tag_field="type", tag="literal", gc=False):
    value: str
    datatype: str | None = None
    language: str | None = msgspec.field(default=None, name="xml:lang")
    direction: str | None = msgspec.field(default=None, name="its:dir")


class _TypedLiteral(_Literal, tag_field="type", tag="typed-literal", gc=False):
    """What drafts of the first edition called a literal with a datatype, and Virtuoso still does."""


class _Parts(msgspec.Struct, gc=False):
    subject: _Value
    predicate: _Value
    object: _Value


class _Triple(msgspec.Struct, tag_field="type", tag="triple", gc=False):
    value: _Parts


_Value: TypeAlias = _Iri | _Blank | _Literal | _TypedLiteral | _Triple

_value = attrgetter("value")
_literal_kind = attrgetter("datatype", "language", "direction")
_IRIS: Final = re.compile(rf"(?:{USUAL_IRI}(?:\n|\Z))*+")

# --- where the solutions are ----------------------------------------------------------------------------------------

_SPACE: Final = b" \t\r\n"
_BINDINGS: Final = re.compile(rb'"bindings"\s*:\s*\[')
_BOUNDARY: Final = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\Z")
# beyond so much white space, or so many braces of the solution that is not whole yet, the scanner looks
_BOUNDARY_SPAN: Final = 64
_BOUNDARY_BRACES: Final = 100
_LONG: Final = 1 << 20  # bytes of a solution that is not whole
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|"', re.DOTALL)
_MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _last_boundary(data: bytes) -> int:
    """Where a solution seems to end that another follows; 0 if nowhere near the end."""
    brace = len(data)
    for _ in range(_BOUNDARY_BRACES):
        brace = data.rfind(b"{", 0, brace)
        if brace <= 0:
            break
        if match := _BOUNDARY.search(data, max(0, brace - _BOUNDARY_SPAN), brace):
            return match.start() + 1
    return 0


def _last_end(data: bytes) -> int:
    """Where the last whole solution ends for sure; 0 if there is none."""
    depth = end = 0
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth < 0:
                break  # the array's own end
            if depth == 0:
                end = match.end()
        elif token == b'"':
            break  # a string that is not whole yet
    return end


def _is_frame(data: bytes) -> bool:
    """Whether this, a document without its solutions, is a whole results document."""
    try:
        document = msgspec.json.decode(data)
    except _MALFORMED:
        return False
    results = document.get("results") if isinstance(document, dict) else None
    return isinstance(results, dict) and results.get("bindings") == []


class JsonDecoder:
    """See `Decoder`. Columns come as terms; IRIs are percent-encoded where the endpoint left that out.

    >>> decoder = JsonDecoder(("x", "n"))
    >>> [list(b) for b in decoder.feed(b'{"results":{"bindings":[{"x":{"type":"uri","value":"urn:a"}}')]
    [[('<urn:a>', '')]]
    >>> decoder.feed(b',{"x":'), decoder.close()
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the JSON result ends before its end, after 1 whole solutions
    """

    def __init__(self, variables: tuple[str, ...], *, response: int = 0, scope: str = "d") -> None:
        self._response = response
        self._scope = scope
        fields = [f"v{index}" for index in range(len(variables))]
        solution = msgspec.defstruct(
            "Solution",
            [(field, _Value | None, None) for field in fields],
            rename=dict(zip(fields, variables, strict=True)),
            gc=False,
        )
        self._solutions = msgspec.json.Decoder(list[solution])  # type: ignore[valid-type] # made above
        self._columns = [attrgetter(field) for field in fields]
        self._suffixes = _Suffixes()
        self._before: bytes | None = None  # the document up to the solutions, once they began
        self._after: bytes | None = None  # the document behind them, once they ended
        self._rest = b""
        self._comma = False  # whether a comma came behind the last solution
        self._count = 0

    def feed(self, data: bytes) -> list[Solutions]:
        """See `Decoder.feed`."""
        if self._after is not None:
            self._after += data
            _check_size(self._after)
            return []
        inside = len(self._rest) > _LONG
        self._rest += data
        if inside and b"}" not in data:
            return []  # of a long string: to look for its end again and again would cost quadratic time
        if self._before is None and not self._find_solutions():
            return []
        return [self._batch(solutions) for solutions in self._take()]

    def close(self) -> None:
        """See `Decoder.close`."""
        if self._before is None:
            raise _no_solutions(self._rest)
        if self._after is None:
            raise IncompleteResult(f"the JSON result ends before its end, after {self._count} whole solutions")
        if not _is_frame(self._before + self._after):
            raise IncompleteResult(
                f"the JSON result is damaged behind its {self._count} solutions: {excerpt(self._after)}"
            )

    # --- cutting ---

    def _find_solutions(self) -> bool:
        self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
        if self._rest.lstrip(_SPACE)[:1] not in (b"{", b"", b"\xef"):
            raise IncompleteResult(f"expected a JSON object in UTF-8, got {excerpt(self._rest)}")
        for match in _BINDINGS.finditer(self._rest):
            if _is_frame(self._rest[: match.end()] + b"]}}"):
                self._before = self._rest[: match.end()]
                self._rest = self._rest[match.end() :]
                return True
        _check_size(self._rest)
        return False

    def _take(self) -> Iterator[list[Any]]:
        """The solutions that are whole by now, as msgspec's structs."""
        while self._at_solution():
            end = _last_boundary(self._rest)
            solutions = self._decode(end)
            if not solutions:
                end = _last_end(self._rest)
                if not end:
                    break
                solutions = self._decode(end, sure=True)
            self._rest = self._rest[end:]
            self._comma = False
            self._count += len(solutions)
            yield solutions

    def _at_solution(self) -> bool:
        """Passes what stands between two solutions; whether another begins."""
        self._rest = self._rest.lstrip(_SPACE)
        if self._count and not self._comma and self._rest.startswith(b","):
            self._comma = True
            self._rest = self._rest[1:].lstrip(_SPACE)
        if self._rest.startswith(b"{") and (self._comma or not self._count):
            return True
        if self._rest.startswith(b"]") and not self._comma:
            self._after, self._rest = self._rest, b""
            _check_size(self._after)
        elif self._rest:
            raise self._malformed(f"unexpected {excerpt(self._rest)}")
        return False

    def _decode(self, end: int, *, sure: bool = False) -> list[Any]:
        try:
            return self._solutions.decode(b"[" + self._rest[:end] + b"]")
        except _MALFORMED as error:
            if sure:
                raise self._malformed(str(error)) from error
            return []  # the cut was wrong, or the JSON is: `_last_end` tells

    def _malformed(self, reason: str) -> IncompleteResult:
        return IncompleteResult(f"the JSON result is damaged behind solution {self._count}: {reason}")

    # --- terms ---

    def _batch(self, solutions: list[Any]) -> Solutions:
        columns = []
        for column in self._columns:
            values = list(map(column, solutions))
            terms: list[Term] = []
            try:
                terms.extend(self._alike(values) or map(self._term, values))
            except TermError as error:
                number = self._count - len(solutions) + len(terms) + 1
                raise IncompleteResult(f"solution {number} of the JSON result: {error.message}") from error
            columns.append(terms)
        return Solutions(columns, response=self._response)

    def _alike(self, values: list[Any]) -> list[Term] | None:
        """The terms of a column of one kind and without anything to mend; None for any other column."""
        kinds = set(map(type, values))
        if kinds == {_Iri}:
            texts = list(map(_value, values))
            text = "\n".join(texts)
            if text.count("\n") == len(texts) - 1 and _IRIS.fullmatch(text):
                return [Term(f"<{text}>") for text in texts]
        elif kinds <= {_Literal, _TypedLiteral}:
            texts = list(map(_value, values))
            if not NEEDS_ESCAPE.search("".join(texts)):
                try:
                    suffixes = list(map(self._suffixes.__getitem__, map(_literal_kind, values)))
                except TermError:
                    return None  # term by term, the error gets its number
                return [Term(f'"{text}"{suffix}') for text, suffix in zip(texts, suffixes, strict=True)]
        return None

    def _term(self, value: _Value | None) -> Term:
        match value:
            case None:
                return UNBOUND
            case _Iri():
                return iri(value.value, encode=True)
            case _Blank():
                return blank(value.value, self._scope)
            case _Literal():
                return literal(value.value, datatype=value.datatype, language=value.language, direction=value.direction)
            case _Triple():
                parts = value.value
                return triple(self._term(parts.subject), self._term(parts.predicate), self._term(parts.object))


class _Suffixes(dict[tuple[str | None, str | None, str | None], str]):
    """What stands behind a literal's closing quote, by its datatype, language and direction."""

    def __missing__(self, kind: tuple[str | None, str | None, str | None]) -> str:
        datatype, language, direction = kind
        suffix = literal("", datatype=datatype, language=language, direction=direction)[2:]
        self[kind] = suffix
        return suffix


def _no_solutions(document: bytes) -> IncompleteResult:
    try:
        whole = msgspec.json.decode(document)
    except _MALFORMED:
        return IncompleteResult(f"the JSON result ends before its first solution: {excerpt(document)}")
    if isinstance(whole, dict) and "boolean" in whole:
        return IncompleteResult("expected the solutions of a SELECT, got the result of an ASK")
    return IncompleteResult(f"the JSON result has no results.bindings: {excerpt(document)}")


def _check_size(around: bytes) -> None:
    if len(around) > _AROUND_LIMIT:
        raise IncompleteResult(f"the JSON result has more than {_AROUND_LIMIT} bytes around its solutions")

r"""SPARQL 1.1 and 1.2 Query Results JSON (https://www.w3.org/TR/sparql12-results-json/), as endpoints really send it.

The document is cut at the solutions of `results.bindings`; each piece is decoded by msgspec into one struct per
solution, with a field for each variable. A cut in the wrong place (in a string, or in a nested array) makes a piece
that is not JSON; a scanner of strings and brackets then finds the right place. `json_frame.py` reads the rest of the
document.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from construct_messages.errors import IncompleteResult, TermError, shown
from construct_messages.regex import regex
from construct_messages.results import DEEPEST, excerpt
from construct_messages.results.json_frame import MALFORMED, SPACE, Frame, Scanner
from construct_messages.solutions import Solutions
from construct_messages.terms import (
    NEEDS_ESCAPE,
    UNBOUND,
    USUAL_IRI,
    Lenience,
    Term,
    blank,
    iri,
    literal,
    triple,
)


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
    """The type of literals with a datatype in drafts of the first edition; Virtuoso still uses it."""


class _Parts(msgspec.Struct, gc=False):
    subject: _Value
    predicate: _Value
    object: _Value


class _Triple(msgspec.Struct, tag_field="type", tag="triple", gc=False):
    value: _Parts


_Value: TypeAlias = _Iri | _Blank | _Literal | _TypedLiteral | _Triple

_CLOSE: Final = " )>>"
_value = attrgetter("value")
_literal_kind = attrgetter("datatype", "language", "direction")
_IRIS: Final = regex(rf"{USUAL_IRI}(?:\n{USUAL_IRI})*+")

# --- detecting solutions --------------------------------------------------------------------------------------------

_SPACES: Final = regex(rb"[%b]*+" % SPACE)
_BOUNDARY: Final = regex(rb"\}[%b]*+,[%b]*+\Z" % (SPACE, SPACE))
# the end of every solution contains one of these, as few other places do: without them, the scanner is not needed yet
_MAY_END: Final = regex(rb"[{}\]][%b]*+\}|\]" % SPACE)
# beyond this much white space, or this many braces of an incomplete solution, the scanner is used
_BOUNDARY_SPAN: Final = 64
_BOUNDARY_BRACES: Final = 100


def _last_boundary(data: bytearray, start: int) -> int:
    """Returns the end of the last solution after `start` that seems to precede another one; 0: none, -1: unknown."""
    brace = len(data)
    for _ in range(_BOUNDARY_BRACES):
        brace = data.rfind(b"{", start, brace)
        if brace <= 0:
            return 0
        if match := _BOUNDARY.search(data, max(0, brace - _BOUNDARY_SPAN), brace):
            return match.start() + 1
    return -1


class JsonDecoder:
    """See `Decoder`. Columns have terms; IRIs are percent-encoded if the endpoint omitted that.

    >>> decoder = JsonDecoder(("x", "n"))
    >>> [list(b) for b in decoder.feed(b'{"results":{"bindings":[{"x":{"type":"uri","value":"urn:a"}}')]
    [[('<urn:a>', '')]]
    >>> decoder.feed(b',{"x":'), decoder.close()
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the JSON result ends before its end, after 1 whole solutions
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        *,
        response: int = 0,
        scope: str = "d",
        lenience: Lenience | None = None,
    ) -> None:
        self._response = response
        self._scope, self._lenience = scope, lenience
        self._variables = variables
        self._columns = [attrgetter(f"v{index}") for index in range(len(variables))]
        self._suffixes = _Suffixes(lenience)
        self._frame = Frame(variables)
        self._solutions: msgspec.json.Decoder[list[Any]] | None = None  # after they began
        self._is_behind = False  # whether they ended
        self._rest = bytearray()  # from the first undecoded solution on
        self._begin_solution()
        self._comma = False  # whether a comma came after the last solution
        self._count = 0

    def feed(self, data: bytes) -> list[Solutions]:
        """See `Decoder.feed`."""
        if self._solutions is None:
            start = self._frame.feed(data)
            if start is None:
                return []
            self._solutions = _decoder(self._variables, self._frame.declared())
            data = data[start:]
        elif self._is_behind:
            self._frame.feed(data)
            return []
        self._rest += data
        return [self._batch(solutions) for solutions in self._take()]

    def close(self) -> list[Solutions]:
        """See `Decoder.close`; `feed` has returned all solutions."""
        if self._solutions is None:
            raise self._frame.no_solutions()
        if not self._is_behind:
            raise IncompleteResult(
                f"the JSON result ends before its end, after {self._count} whole solutions"
            )
        self._frame.close(self._count)
        return []

    # --- cutting ---

    def _begin_solution(self) -> None:
        self._is_inside = False  # whether the rest begins with a solution
        self._guessed = 0  # the length of the rest in which no more cuts are guessed
        self._is_guessing = True
        self._scanned = 0  # the length of the rest in which no solution ends
        self._scanner = Scanner()

    def _take(self) -> Iterator[list[Any]]:
        """The solutions that are complete, as structs of msgspec."""
        while self._is_inside or self._at_solution():
            end = _last_boundary(self._rest, self._guessed) if self._is_guessing else 0
            solutions = self._decode(end) if end > 0 else []
            if not solutions:
                # once for each solution: repeated attempts within a long one would cost quadratic time
                self._is_guessing = self._is_guessing and not end
                may_end = _MAY_END.search(self._rest, max(0, self._guessed - _BOUNDARY_SPAN))
                end = self._last_end() if may_end or not self._is_guessing else 0
                self._guessed = len(self._rest)
                if not end:
                    break
                solutions = self._decode(end, sure=True)
            del self._rest[:end]
            self._begin_solution()
            self._comma = False
            self._count += len(solutions)
            yield solutions

    def _at_solution(self) -> bool:
        """Skips the text between two solutions; returns whether another begins."""
        self._pass_spaces()
        if self._count and not self._comma and self._rest.startswith(b","):
            self._comma = True
            del self._rest[0]
            self._pass_spaces()
        if self._rest.startswith(b"{") and (self._comma or not self._count):
            self._is_inside = True
            return True
        if self._rest.startswith(b"]") and not self._comma:
            self._is_behind = True
            self._frame.feed(bytes(self._rest))
            self._rest.clear()
        elif self._rest:
            raise self._malformed(f"unexpected {excerpt(bytes(self._rest))}")
        return False

    def _pass_spaces(self) -> None:
        match = _SPACES.match(self._rest)
        assert match is not None
        del self._rest[: match.end()]

    def _last_end(self) -> int:
        """Returns the end of the last complete solution; 0 if there is none."""
        end, start = 0, self._scanned
        for place, token in self._scanner.tokens(bytes(self._rest[start:])):
            if self._scanner.depth == 0 and token in b"}]":
                end = start + place + 1
            elif self._scanner.depth < 0:
                break  # the array's own end
        self._scanned = len(self._rest)
        return end

    def _decode(self, end: int, *, sure: bool = False) -> list[Any]:
        assert self._solutions is not None
        try:
            return self._solutions.decode(b"[" + self._rest[:end] + b"]")
        except MALFORMED as error:
            if sure:
                raise self._malformed(str(error)) from error
            return []  # either the cut or the JSON is wrong: `_last_end` decides

    def _malformed(self, reason: str) -> IncompleteResult:
        return IncompleteResult(
            f"the JSON result is damaged after solution {self._count}: {shown(reason)}"
        )

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
                raise IncompleteResult(
                    f"solution {number} of the JSON result: {shown(error.message)}", hint=error.hint
                ) from error
            columns.append(terms)
        return Solutions(columns, response=self._response)

    def _alike(self, values: list[Any]) -> list[Term] | None:
        """The terms of a column of one kind without corrections; None for any other column."""
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
                    return None  # term by term, to find the number of the error's solution
                return [
                    Term(f'"{text}"{suffix}') for text, suffix in zip(texts, suffixes, strict=True)
                ]
        return None

    def _term(self, value: _Value | None) -> Term:
        match value:
            case None:
                return UNBOUND
            case _Iri():
                return iri(value.value, encode=True, lenience=self._lenience)
            case _Blank():
                return blank(value.value, self._scope)
            case _Literal():
                return literal(
                    value.value,
                    datatype=value.datatype,
                    language=value.language,
                    direction=value.direction,
                    lenience=self._lenience,
                )
            case _Triple():
                return self._triple(value)

    def _triple(self, value: _Value) -> Term:
        """A triple term, without recursion and without copying it for each enclosing term.

        Only its object can be a triple term, too (RDF 1.2 Concepts, section 3.1).
        """
        opened: list[str] = []
        while isinstance(value, _Triple):
            if len(opened) == DEEPEST:
                raise TermError(f"more than {DEEPEST} triple terms are nested")
            subject, predicate = (
                Term("<<(") if isinstance(part, _Triple) else self._term(part)
                for part in (value.value.subject, value.value.predicate)
            )
            opened.append(triple(subject, predicate, UNBOUND).removesuffix(_CLOSE))
            value = value.value.object
        return Term("".join((*opened, self._term(value), _CLOSE * len(opened))))


def _decoder(
    variables: tuple[str, ...], declared: tuple[str, ...]
) -> msgspec.json.Decoder[list[Any]]:
    """Returns a decoder of solutions; a value for an unknown variable is an error.

    Its field for the first variable is `v0`, and so on.
    """
    others = [name for name in declared if name not in variables]
    names = {f"v{index}": name for index, name in enumerate((*variables, *others))}
    kinds = [*[_Value | None] * len(variables), *[msgspec.Raw] * len(others)]
    fields = [(field, kind, None) for field, kind in zip(names, kinds, strict=True)]
    solution = msgspec.defstruct(
        "Solution", fields, rename=names, gc=False, forbid_unknown_fields=True
    )
    return msgspec.json.Decoder(list[solution])  # type: ignore[valid-type] # made above


class _Suffixes(dict[tuple[str | None, str | None, str | None], str]):
    """The text after a literal's closing quote, by its datatype, language and direction."""

    def __init__(self, lenience: Lenience | None) -> None:
        super().__init__()
        self._lenience = lenience

    def __missing__(self, kind: tuple[str | None, str | None, str | None]) -> str:
        datatype, language, direction = kind
        passed = self._lenience and self._lenience.passed
        term = literal(
            "", datatype=datatype, language=language, direction=direction, lenience=self._lenience
        )
        if self._lenience is None or self._lenience.passed == passed:  # each accepted term counts
            self[kind] = term[2:]
        return term[2:]

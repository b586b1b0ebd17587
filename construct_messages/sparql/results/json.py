r"""SPARQL 1.1 and 1.2 Query Results JSON (https://www.w3.org/TR/sparql12-results-json/), as endpoints really send it.

The document is cut at the solutions of `results.bindings`, and each piece is decoded as a whole. A cut in the wrong
place (in a string, or in a nested array) makes a piece that is not JSON; a scanner of strings and brackets then finds
the right place. msgspec decodes the solutions: one struct for each, with a field for each variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeAlias

import msgspec

from construct_messages.errors import IncompleteResult, TermError, shown
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import (
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
from construct_messages.sparql.results import (
    DEEPEST,
    OPAQUE,
    accepted,
    check_head,
    check_members,
    checked_iri,
    excerpt,
)

# --- json envelope -----------------------------------------------------------------------------------
# The rest of a JSON results document around its solutions: found by strings and brackets, then parsed as a whole.
#
# Each byte is scanned once, however the document is split. The text before and after the solutions must be one JSON
# object, so missing or additional text is detected.

AROUND_LIMIT: Final = 1 << 20  # bytes before and after the solutions
SPACE: Final = b" \t\r\n"
_MALFORMED: Final = (ValueError, RecursionError)  # the errors of `load`

_BOM: Final = b"\xef\xbb\xbf"
_BINDINGS: Final = ["results", "bindings"]
_STRING: Final = rb'(?:[^"\\]++|\\.)*+("?)'  # after the opening quote; without the closing quote while it is incomplete
_REST: Final = re.compile(_STRING, re.DOTALL)
_TOKEN: Final = re.compile(rb'[{}\[\]:]|"' + _STRING, re.DOTALL)


def load(text: bytes) -> Any:
    """Decodes JSON in UTF-8 by the standard library, without the numbers that only Python accepts; see `_MALFORMED`.

    >>> load(b'{"a": [1]}')
    {'a': [1]}
    """
    return json.loads(text.decode(), parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Scanner:
    """Tracks the strings and brackets of JSON text in pieces; `depth` is the number of open objects and arrays."""

    def __init__(self) -> None:
        self.depth = 0
        self._in_string = False
        self._escapes = False  # the last byte of that string so far was a backslash

    def tokens(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        r"""The offsets of the brackets, colons and strings that begin in the next bytes, each with its first byte.

        >>> scanner = Scanner()
        >>> list(scanner.tokens(b'{"a\\')), list(scanner.tokens(b'"}b": []')), scanner.depth
        ([(0, b'{'), (1, b'"')], [(4, b':'), (6, b'['), (7, b']')], 1)
        """
        start = 0
        if self._in_string and data:
            match = _REST.match(data, int(self._escapes))
            assert match is not None
            self._in_string, self._escapes = not match[1], not match[1] and match.end() < len(data)
            start = match.end()
            if self._in_string:
                return
        for match in _TOKEN.finditer(data, start):
            token = data[match.start() : match.start() + 1]
            if token in b"{[":
                self.depth += 1
            elif token in b"}]":
                self.depth -= 1
            elif token == b'"' and not match[1]:
                self._in_string, self._escapes = True, match.end() < len(data)
                yield match.start(), token
                return
            yield match.start(), token


class Envelope:
    """The part of a document outside of its solutions, `results.bindings`."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self._variables = variables
        self._text = bytearray()
        self._scanner = Scanner()
        self._string: int | None = None  # the start of the last string
        self._follows_colon = False  # the expected next token
        self._path: list[str] = []  # the names of the open members, down to the second level
        self._names: set[tuple[str, ...]] = set()
        self._before = 0  # the length of the text before the solutions
        self._has_begun = False

    def feed(self, data: bytes) -> int | None:
        """Reads the next bytes up to the solutions, and returns the offset in the bytes where the solutions begin."""
        base = len(self._text)
        self._text += data
        if not self._has_begun:
            self._check_beginning(base, data)
        for place, token in self._scanner.tokens(data):
            if token == b'"':
                self._string = base + place
            elif token == b":":
                self._name(base + place)
            elif (
                token == b"["
                and self._scanner.depth == 3
                and self._path == _BINDINGS
                and self._follows_colon
            ):
                del self._text[base + place + 1 :]
                self._before = len(self._text)
                self._check_size()
                return place + 1
            self._follows_colon = token == b":"
        self._check_size()
        return None

    def declared(self) -> tuple[str, ...]:
        """The variables that the document has declared so far."""
        return self._read(
            bytes(self._text) + b"]}}", f"before its solutions: {excerpt(bytes(self._text))}"
        )

    def close(self, count: int) -> None:
        """Ends the document, which had this number of solutions; see `declared`."""
        self._read(
            bytes(self._text),
            f"after its {count} solutions: {excerpt(bytes(self._text[self._before :]))}",
        )

    def no_solutions(self) -> IncompleteResult:
        """The error for a document with this end."""
        text = bytes(self._text)
        try:
            whole = load(text.removeprefix(_BOM))
        except _MALFORMED:
            return IncompleteResult(
                f"the JSON result ends before its first solution: {excerpt(text)}"
            )
        if isinstance(whole, dict) and "boolean" in whole:
            return IncompleteResult("expected the solutions of a SELECT, got the result of an ASK")
        return IncompleteResult(f"the JSON result has no results.bindings: {excerpt(text)}")

    def _check_beginning(self, base: int, data: bytes) -> None:
        beginning = data if base >= len(_BOM) else bytes(self._text).removeprefix(_BOM)
        beginning = beginning.lstrip(SPACE)
        if beginning and not _BOM.startswith(self._text):
            self._has_begun = True
            if not beginning.startswith(b"{"):
                raise IncompleteResult(
                    f"expected a JSON object in UTF-8, got {excerpt(bytes(self._text))}"
                )

    def _check_size(self) -> None:
        if len(self._text) > AROUND_LIMIT:
            raise IncompleteResult(
                f"the JSON result has more than {AROUND_LIMIT} bytes around its solutions"
            )

    def _name(self, colon: int) -> None:
        """Reads the last string as the name of a member."""
        depth = self._scanner.depth
        if self._string is None or not 1 <= depth <= 2 or len(self._path) < depth - 1:
            return
        try:
            name = load(bytes(self._text[self._string : colon]))
        except _MALFORMED as error:
            raise IncompleteResult(f"the JSON result is damaged: {shown(str(error))}") from error
        self._string = None
        self._path[depth - 1 :] = [name]
        if depth == 1 or self._path[0] in ("head", "results"):
            if tuple(self._path) in self._names:
                raise IncompleteResult(
                    f"the JSON result is damaged: its member {shown(name)!r} is repeated"
                )
            self._names.add(tuple(self._path))

    def _read(self, text: bytes, place: str) -> tuple[str, ...]:
        try:
            document = load(text.removeprefix(_BOM))
        except _MALFORMED as error:
            raise IncompleteResult(f"the JSON result is damaged {place}") from error
        results, head = document.get("results"), document.get("head") or {}
        if (
            not isinstance(results, dict)
            or results.get("bindings") != []
            or not isinstance(head, dict)
        ):
            raise IncompleteResult(f"the JSON result is damaged {place}")
        check_members("JSON", document)
        names = head.get("vars")
        if names is None:
            return ()
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise IncompleteResult("the JSON result is damaged: head.vars are not names")
        declared = dict.fromkeys(names)
        check_head("JSON", declared, self._variables)
        return tuple(declared)


# --- json structs ---------------------------------------------------------------------------------
# Decodes the solutions of a JSON result by msgspec: one struct per solution, with a field for each variable.


class _Strict(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A member with another name, such as `lang`, is an error: without it, this would be another term."""


class _Iri(_Strict, tag_field="type", tag="uri", gc=False):
    value: str


class _Blank(_Strict, tag_field="type", tag="bnode", gc=False):
    value: str


class _Literal(_Strict, tag_field="type", tag="literal", gc=False):
    value: str
    datatype: str | None = None
    language: str | None = msgspec.field(default=None, name="xml:lang")
    direction: str | None = msgspec.field(default=None, name="its:dir")


class _TypedLiteral(_Literal, tag_field="type", tag="typed-literal", gc=False):
    """The type of literals with a datatype in drafts of the first edition; Virtuoso still uses it."""


class _Parts(_Strict, gc=False):
    """The terms of a triple term by the names of RDF 1.2, or by those of RDF4J, GraphDB and Stardog."""

    subject: _Value | None = None
    predicate: _Value | None = None
    object: _Value | None = None
    s: _Value | None = None
    p: _Value | None = None
    o: _Value | None = None

    def terms(self) -> tuple[_Value, _Value, _Value]:
        names = _LONG if self.s is self.p is self.o is None else _SHORT
        first, second, third = (getattr(self, name) for name in names)
        given = [name for name in (*_LONG, *_SHORT) if getattr(self, name) is not None]
        if first is None or second is None or third is None or len(given) > len(names):
            raise TermError(f"a triple term of {', '.join(given) or 'nothing'}")
        return first, second, third


class _Triple(_Strict, tag_field="type", tag="triple", gc=False):
    value: _Parts


class _Statement(_Parts, tag_field="type", tag="statement", gc=False):
    """A triple term of Stardog, with the graph that has the triple, which is no part of the term."""

    value: _Parts | None = None
    g: msgspec.Raw = msgspec.Raw()


_Value: TypeAlias = _Iri | _Blank | _Literal | _TypedLiteral | _Triple | _Statement

_LONG: Final = ("subject", "predicate", "object")
_SHORT: Final = ("s", "p", "o")

_CLOSE: Final = " )>>"
_value = attrgetter("value")
_literal_kind = attrgetter("datatype", "language", "direction")
_IRIS: Final = re.compile(rf"{USUAL_IRI}(?:\n{USUAL_IRI})*+")


class StructReader:
    """Decodes solutions."""

    def __init__(
        self,
        variables: Sequence[str],
        declared: Sequence[str],
        scope: str,
        lenience: Lenience | None,
    ) -> None:
        self._scope, self._lenience = scope, lenience
        self._columns = [attrgetter(f"v{index}") for index in range(len(variables))]
        self._suffixes = _Suffixes()
        self._decoder = _decoder(variables, declared)

    def read(self, text: bytes) -> list[Any]:
        """Decodes a JSON array of solutions; raises `ValueError` for anything else."""
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    def terms(self, solutions: list[Any], column: int) -> Iterable[Term]:
        """Returns the terms of a column of decoded solutions; they are created when they are iterated over.

        Iteration raises `TermError` in the place of a value that is no term.
        """
        values = list(map(self._columns[column], solutions))
        return self._alike(values) or map(partial(accepted, self._lenience, self._term), values)

    def _alike(self, values: list[Any]) -> list[Term] | None:
        """The terms of a column of one kind without corrections; None for any other column."""
        kinds = set(map(type, values))
        if kinds == {_Iri}:
            texts = list(map(_value, values))
            text = "\n".join(texts)
            is_usual = text.count("\n") == len(texts) - 1 and OPAQUE[1:] not in text
            if is_usual and _IRIS.fullmatch(text):
                return [Term(f"<{text}>") for text in texts]
        elif kinds <= {_Literal, _TypedLiteral}:
            texts = list(map(_value, values))
            if not NEEDS_ESCAPE.search("".join(texts)):
                try:
                    suffixes = list(map(self._suffixes.__getitem__, map(_literal_kind, values)))
                except TermError:
                    return None  # term by term, to count it, or to find the number of its solution
                return [
                    Term(f'"{text}"{suffix}') for text, suffix in zip(texts, suffixes, strict=True)
                ]
        return None

    def _term(self, value: _Value | None) -> Term:
        match value:
            case None:
                return UNBOUND
            case _Iri():
                return checked_iri(iri(value.value, encode=True, lenience=self._lenience))
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
            case _Triple() | _Statement():
                return self._triple(value)

    def _triple(self, value: _Value) -> Term:
        """Returns a triple term, without recursion and without copying it for each enclosing term.

        Only its object can be a triple term, too (RDF 1.2 Concepts, section 3.1).
        """
        opened: list[str] = []
        while isinstance(value, _Triple | _Statement):
            if len(opened) == DEEPEST:
                raise TermError(f"more than {DEEPEST} triple terms are nested")
            parts = (value.value or value) if isinstance(value, _Statement) else value.value
            *others, value = parts.terms()
            subject, predicate = (
                Term("<<(") if isinstance(part, _Triple | _Statement) else self._term(part)
                for part in others
            )
            opened.append(triple(subject, predicate, UNBOUND).removesuffix(_CLOSE))
        return Term("".join((*opened, self._term(value), _CLOSE * len(opened))))


def _decoder(variables: Sequence[str], declared: Sequence[str]) -> msgspec.json.Decoder[list[Any]]:
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

    def __missing__(self, kind: tuple[str | None, str | None, str | None]) -> str:
        datatype, language, direction = kind
        suffix = self[kind] = literal(
            "", datatype=datatype, language=language, direction=direction
        )[2:]
        return suffix


# --- detecting solutions --------------------------------------------------------------------------------------------

_SPACES: Final = re.compile(rb"[%b]*+" % SPACE)
_BOUNDARY: Final = re.compile(rb"\}[%b]*+,[%b]*+\Z" % (SPACE, SPACE))
# the end of every solution contains one of these, as few other places do: without them, the scanner is not needed yet
_MAY_END: Final = re.compile(rb"[{}\]][%b]*+\}|\]" % SPACE)
# the error of msgspec for JSON that is no solution
_IN_SOLUTION: Final = re.compile(r"(.*) - at `\$\[([0-9]+)\]\.?(.*)`", re.DOTALL)
_OTHER_FORMAT: Final = 'the endpoint writes what no results document has: ask for another format, such as results="xml"'
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
    """See `NewDecoder`. Columns have terms; IRIs are percent-encoded if the endpoint omitted that.

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
        self._envelope = Envelope(variables)
        self._reader: StructReader | None = None  # after the solutions began
        self._declared: Sequence[str] = ()
        self._is_behind = False  # whether they ended
        self._rest = bytearray()  # from the first undecoded solution on
        self._begin_solution()
        self._comma = False  # whether a comma came after the last solution
        self._count = 0

    def feed(self, data: bytes) -> list[Solutions]:
        if self._reader is None:
            start = self._envelope.feed(data)
            if start is None:
                return []
            self._declared = self._envelope.declared()
            self._reader = StructReader(
                self._variables, self._declared, self._scope, self._lenience
            )
            data = data[start:]
        elif self._is_behind:
            self._envelope.feed(data)
            return []
        self._rest += data
        return [self._batch(solutions) for solutions in self._take()]

    def close(self) -> list[Solutions]:
        """See `Decoder.close`; `feed` has returned all solutions."""
        if self._reader is None:
            raise self._envelope.no_solutions()
        if not self._is_behind:
            raise IncompleteResult(
                f"the JSON result ends before its end, after {self._count} whole solutions"
            )
        self._envelope.close(self._count)
        return []

    # --- cutting ---

    def _begin_solution(self) -> None:
        self._is_inside = False  # whether the rest begins with a solution
        self._guessed = 0  # the length of the rest in which no more cuts are guessed
        self._is_guessing = True
        self._scanned = 0  # the length of the rest in which no solution ends
        self._scanner = Scanner()

    def _take(self) -> Iterator[list[Any]]:
        """Yields the complete solutions, as `_reader` decodes them."""
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
            self._envelope.feed(bytes(self._rest))
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
        assert self._reader is not None
        text = b"[" + self._rest[:end] + b"]"
        try:
            return self._reader.read(text)
        except ValueError as error:
            if sure:
                raise self._malformed(str(error)) from error
            return []  # either the cut or the JSON is wrong: `_last_end` decides

    def _malformed(self, reason: str) -> IncompleteResult:
        if match := _IN_SOLUTION.fullmatch(reason):
            number = self._count + int(match[2]) + 1
            member = f", in {shown(match[3])!r}" if match[3] else ""
            return IncompleteResult(
                f"solution {number} of the JSON result: {shown(match[1])}{member}",
                hint=_OTHER_FORMAT if match[3] and "unknown field" in reason else None,
            )
        return IncompleteResult(
            f"the JSON result is damaged after solution {self._count}: {shown(reason)}"
        )

    def _batch(self, solutions: list[Any]) -> Solutions:
        assert self._reader is not None
        columns = []
        for column in range(len(self._variables)):
            terms: list[Term] = []
            try:
                terms.extend(self._reader.terms(solutions, column))
            except TermError as error:
                number = self._count - len(solutions) + len(terms) + 1
                raise IncompleteResult(
                    f"solution {number} of the JSON result: {shown(error.message)}", hint=error.hint
                ) from error
            columns.append(terms)
        return Solutions(columns, response=self._response)

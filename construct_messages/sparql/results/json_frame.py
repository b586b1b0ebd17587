"""The rest of a JSON results document around its solutions: found by strings and brackets, then parsed as a whole.

Each byte is scanned once, however the document is split. The text before and after the solutions must be one JSON
object, so missing or additional text is detected. `json.py` cuts and decodes the solutions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from construct_messages.rdf.errors import IncompleteResult, shown
from construct_messages.rdf.regex import regex
from construct_messages.sparql.results import check_head, excerpt
from construct_messages.sparql.results.completeness import check_members

AROUND_LIMIT: Final = 1 << 20  # bytes before and after the solutions
SPACE: Final = b" \t\r\n"
_MALFORMED: Final = (ValueError, RecursionError)
"""The errors of `load`."""

_BOM: Final = b"\xef\xbb\xbf"
_BINDINGS: Final = ["results", "bindings"]
_STRING: Final = rb'(?:[^"\\]++|\\.)*+("?)'  # after the opening quote; without the closing quote while it is incomplete
_REST: Final = regex(_STRING, re.DOTALL)
_TOKEN: Final = regex(rb'[{}\[\]:]|"' + _STRING, re.DOTALL)


def load(text: bytes) -> Any:
    """Decodes JSON in UTF-8 by the standard library, without the numbers that only Python accepts.

    Args:
        text: the JSON text.

    Raises:
        ValueError, RecursionError: the text is not JSON, or is nested too deeply.

    >>> load(b'{"a": [1]}')
    {'a': [1]}
    """
    return json.loads(text.decode(), parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Scanner:
    """Tracks the strings and brackets of JSON text in pieces.

    Attributes:
        depth: the number of open objects and arrays.
    """

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


class Frame:
    """The document without its solutions.

    Args:
        variables: the requested variables.
    """

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
        """Reads the next bytes up to the solutions, and returns the offset in the bytes where the solutions begin.

        Raises:
            IncompleteResult: this is not a JSON object, is too long, or repeats a member.
        """
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
        """The variables that the document has declared so far.

        Raises:
            IncompleteResult: this is not a results document, it has other variables, or it reports a failure.
        """
        return self._read(
            bytes(self._text) + b"]}}", f"before its solutions: {excerpt(bytes(self._text))}"
        )

    def close(self, count: int) -> None:
        """Ends the document.

        Args:
            count: the number of solutions.

        Raises:
            IncompleteResult: see `declared`.
        """
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

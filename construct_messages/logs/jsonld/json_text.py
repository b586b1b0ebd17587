"""Reads the JSON of a log: one value with unique keys in each object, and numbers and characters that RDF can express.

RFC 8259 does not define duplicate keys, lone surrogates and numbers without limit; JSON-LD 1.1 (section 9, and section
8.6 of its API) forbids them, so they are errors here. No keywords of JSON-LD here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from math import isinf
from typing import Any, Final

from construct_messages.logs.jsonld.deserialization import FIRST_DOUBLE
from construct_messages.rdf.errors import LogError, Position

DEPTH: Final = 128
"""The maximal nesting of objects and arrays: later steps use recursion, and Python's stack is short."""

_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|([\[{])|([\]}])', re.DOTALL)
_MAYBE_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


def integer(digits: str, base: int = 10) -> int | float:
    """Parses an integer exactly, or as a double if JSON-LD treats it as one.

    >>> integer("-12"), integer("1" + 20 * "0"), integer("1" + 21 * "0")
    (-12, 100000000000000000000, 1e+21)
    """
    if base == 10 and len(digits) > 310:
        raise OverflowError
    value = int(digits, base)
    return float(value) if abs(value) >= FIRST_DOUBLE else value


def double(text: str) -> float:
    """Parses a number with a fraction or an exponent."""
    value = float(text)
    if isinf(value):
        raise OverflowError
    return value


def mask_halves(text: str, *, pairs: bool = False) -> tuple[str, str]:
    r"""Masks escapes of half a surrogate pair, at the same positions. `pairs`: whether to write escapes of whole pairs
    as their character, which YAML does not read. Returns the text, and the character of private use in place of
    such escapes, which the text did not have; empty: none.

    >>> mask_halves(r'["\uD83D\uDE00", "\uD83D"]')
    ('["\\uD83D\\uDE00", "\\ue000"]', '\ue000')
    """
    if not _MAYBE_SURROGATE.search(text):
        return text, ""
    digits = text.lower()
    unused = (code for code in range(0xE000, 0xF900) if f"{code:04x}" not in digits)
    mask = next((char for char in map(chr, unused) if char not in text), "")

    def masked(escape: re.Match[str]) -> str:
        if escape[1] and mask:
            return f"\\u{ord(mask):04x}"
        is_pair = pairs and len(escape.group()) > 6
        return str(json.loads(f'"{escape.group()}"')) if is_pair else escape.group()

    return _ESCAPE.sub(masked, text), mask


class JsonReader:
    """Reads the JSON values of one log.

    >>> JsonReader().read('{"a": [1, 2.50]}', number=1, line=1)
    {'a': [1, 2.5]}
    >>> JsonReader().read('{"a": 1, "a": 2}', number=3, line=7)
    Traceback (most recent call last):
    ...
    construct_messages.rdf.errors.LogError: line 7, column 1: message 3: the key "a" occurs twice in one object
      hint: write the values of one key as an array
    """

    def __init__(self) -> None:
        self._text, self._number, self._line = "", 1, 1
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_int=self._int,
            parse_constant=self._constant,
        )

    def read(self, text: str, number: int, line: int) -> Any:
        """Parses a text."""
        self._text, self._number, self._line = text, number, line
        self._check_depth(text)
        if _MAYBE_SURROGATE.search(text):
            self._check_surrogates(text)
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            raise self._error(f"no JSON: {error.msg}", error.pos) from error

    def _error(self, message: str, offset: int = 0, hint: str | None = None) -> LogError:
        line = self._line + self._text.count("\n", 0, offset)
        column = offset - self._text.rfind("\n", 0, offset)
        return LogError(message, number=self._number, position=Position(line, column), hint=hint)

    def _check_depth(self, text: str) -> None:
        if text.count("[") + text.count("{") <= DEPTH:
            return
        depth = 0
        for match in _BRACKETS.finditer(text):
            if match[1]:
                depth += 1
                if depth > DEPTH:
                    raise self._error(
                        f"nested more than {DEPTH} levels deep",
                        match.start(),
                        "give nodes an @id and write them apart",
                    )
            elif match[2]:
                depth -= 1

    def _check_surrogates(self, text: str) -> None:
        for match in _ESCAPE.finditer(text):
            if match[1]:
                raise self._error(
                    f"{match[1]} is half a character",
                    match.start(),
                    "write both halves, or neither, or read leniently",
                )

    def _object(self, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        pairs = list(pairs)
        read = dict(pairs)
        if len(read) < len(pairs):
            times = Counter(key for key, _ in pairs)
            twice = next(key for key, count in times.items() if count > 1)
            raise self._error(
                f'the key "{twice}" occurs twice in one object',
                hint="write the values of one key as an array",
            )
        return read

    def _float(self, text: str) -> float:
        try:
            return double(text)
        except OverflowError as error:
            raise self._too_large(text) from error

    def _int(self, text: str) -> int | float:
        try:
            return integer(text)
        except OverflowError as error:
            raise self._too_large(text) from error

    def _too_large(self, text: str) -> LogError:
        return self._error(
            f"the number {text[:40]} is past the range of xsd:double", hint="write it as a string"
        )

    def _constant(self, text: str) -> Any:
        raise self._error(
            f"{text} is no JSON number", hint='write it as {"@value": …, "@type": "xsd:double"}'
        )

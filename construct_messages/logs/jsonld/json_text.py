"""Reads the JSON of a log: one value with unique keys in each object, and numbers and characters that RDF can express.

RFC 8259 does not define duplicate keys, lone surrogates and numbers without limit; JSON-LD 1.1 (section 9, and section
8.6 of its API) forbids them, so they are errors here. No keywords of JSON-LD here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from math import isinf
from typing import Any, Final

from construct_messages.errors import LogError, Position, UsageError
from construct_messages.rdf.terms import XSD

# --- deserialization ------------------------------------------------------------------------------
# Prepares a JSON-LD document for pyoxigraph, if pyoxigraph deviates from JSON-LD 1.1 API.
#
# Section 8.6 (data round tripping) for numbers, section 5.1 (expansion) for names that become null. This module also
# rejects names that are not defined in a context of this package. pyoxigraph interprets the rest of a document.

_DOUBLE: Final = f"{XSD}double"
_INTEGER: Final = f"{XSD}integer"
FIRST_DOUBLE: Final = 10**21
"""Numbers from this one on are doubles, even without a fraction."""

# an absolute IRI to PyLD, which therefore keeps nodes with it; an invalid one to pyoxigraph, which drops their
# statements
NO_IRI: Final = "no,iri:<>"
NO_BASE: Final = "no,base:<>/"
"""The base where there is none, instead of PyLD's: it considers this one absolute, too, so that relative IRIs stay
invalid.
"""
_UNKNOWN: Final = "urn:construct-messages:unknown-name:"


def literal_of(number: int | float, datatype: str | None = None) -> tuple[str, str]:
    """Returns the lexical form and the datatype of a JSON number in RDF. `number`: a finite number; integers of any
    size are exact. `datatype`: the IRI of its datatype in the document; None: it has none.

    >>> [literal_of(number)[0] for number in (1e20, 1e21, 5.0, 0.1 + 0.2)]
    ['100000000000000000000', '1.0E21', '5', '3.0E-1']
    >>> literal_of(5, "http://www.w3.org/2001/XMLSchema#double")[0]
    '5.0E0'
    """
    if datatype != _DOUBLE and abs(number) < FIRST_DOUBLE and number % 1 == 0:
        return str(int(number)), datatype or _INTEGER
    mantissa, _, exponent = f"{number:.15E}".partition("E")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}", datatype or _DOUBLE


def prepare(part: Any) -> Any:
    """Returns a document, or a part of one, with numbers as typed values, and without names that are null. `part`: a
    document in expanded form, or nodes with names that are IRIs or compact IRIs, and numbers without types.

    >>> prepare({"urn:p": [1e20, {"@id": None}]})
    {'urn:p': [{'@value': '100000000000000000000', '@type': 'http://www.w3.org/2001/XMLSchema#integer'}, \
{'@id': 'no,iri:<>'}]}
    """
    if isinstance(part, list):
        return [prepare(each) for each in part]
    if _is_number(part):
        text, typed = literal_of(part)
        return {"@value": text, "@type": typed}
    if not isinstance(part, dict):
        return part
    if "@value" in part:
        datatype = part.get("@type")
        if isinstance(datatype, str):
            _check_name(datatype)
        if datatype == "@json" or not _is_number(part["@value"]):
            return part
        text, typed = literal_of(part["@value"], datatype)
        return {**part, "@value": text, "@type": typed}
    prepared: dict[str, Any] = {}
    for key, value in part.items():
        if key == "@id":
            value = NO_IRI if value is None else _check_name(value)
        elif key == "@type":
            names = value if isinstance(value, list) else [value]
            value = [_check_name(name) for name in names if name is not None]
        elif key not in ("@index", "@context"):
            _check_name(key)
            value = prepare(value)
        prepared[key] = value
    return prepared


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def refusing(context: Mapping[str, Any], iri: str) -> dict[str, Any]:
    """Returns a context that makes `prepare` reject names without a definition."""
    return {**context, "@vocab": f"{_UNKNOWN}{iri}|"}


def names_nothing_known(iri: str) -> bool:
    """Returns whether an IRI is of a name that `prepare` rejects."""
    return iri.startswith(_UNKNOWN)


def _check_name(name: str) -> str:
    if names_nothing_known(name):
        iri, _, term = name.removeprefix(_UNKNOWN).partition("|")
        raise UsageError(
            f'"{term}" is no name of the vocabulary whose context is <{iri}>',
            hint="write its IRI, or define it in the @context of the document",
        )
    return name


# --- json text ------------------------------------------------------------------------------------

DEPTH: Final = 128
"""The maximal nesting of objects and arrays: later steps use recursion, and Python's stack is short."""

_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|([\[{])|([\]}])', re.DOTALL)
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
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


def _is_shallow(text: str) -> bool:
    """Returns whether a text is surely not nested too deeply: each turn removes one or two levels everywhere."""
    brackets = _STRING.sub("", text).encode("utf-8", "surrogatepass").translate(None, _NO_BRACKETS)
    for _ in range(DEPTH // 2):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return not brackets


class JsonReader:
    """Reads the JSON values of one log.

    >>> JsonReader().read('{"a": [1, 2.50]}', number=1, line=1)
    {'a': [1, 2.5]}
    >>> JsonReader().read('{"a": 1, "a": 2}', number=3, line=7)
    Traceback (most recent call last):
    ...
    construct_messages.errors.LogError: line 7, column 1: message 3: the key "a" occurs twice in one object
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
        if text.count("[") + text.count("{") <= DEPTH or _is_shallow(text):
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

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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

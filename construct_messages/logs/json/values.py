"""Converts literals to JSON: numbers and booleans, and value objects of JSON-LD for the others.

JSON-LD 1.1 API, section 8.5 (RDF to object conversion), with `useNativeTypes` for all numbers of XML Schema. A decimal
keeps its digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.terms import RDF, XSD, Term, literal_parts
from construct_messages.rdf.terms.natives import native

_NATIVE: Final = frozenset(
    XSD + name
    for name in (
        *("boolean", "decimal", "double", "float"),
        *("integer", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "long", "int", "short", "byte"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_JSON: Final = f"{RDF}JSON"
_MOST_DIGITS: Final = 300
"""The maximal length of numbers: readers of JSON take longer ones for infinity, or reject them."""


def json_of(text: str, datatype: str | None) -> str | None:
    """Returns a literal as a JSON number, boolean or JSON text; None: it is none of these. `datatype`: the IRI of the
    datatype; None: a string.

    >>> json_of("+007", f"{XSD}integer"), json_of("1.50", f"{XSD}decimal"), json_of("1e3", f"{XSD}double")
    ('7', '1.50', '1000.0')
    >>> json_of("INF", f"{XSD}double"), json_of("7", None), json_of("1", f"{XSD}boolean")
    (None, None, 'true')
    """
    if datatype == _JSON:
        try:
            return msgspec.json.encode(msgspec.json.decode(text)).decode()
        except msgspec.DecodeError as error:
            raise UnsupportedByFormat(f"the literal {text[:100]!r} is no JSON: {error}") from None
    if datatype not in _NATIVE or len(text) > _MOST_DIGITS:
        return None
    try:
        value = native(text, datatype)
    except (ValueError, ArithmeticError):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if isfinite(value) else None
    return str(value) if isinstance(value, int) else format(value, "f")


def is_native(datatype: str | None) -> bool:
    """Returns whether literals of a datatype may be numbers or booleans."""
    return datatype in _NATIVE or datatype == _JSON


def suffix_of(term: Term) -> str:
    """Returns the text after a literal's lexical form, with the closing quote; empty for other terms.

    >>> from construct_messages.rdf.terms import literal
    >>> suffix_of(literal("a", language="en"))
    '"@en'
    """
    return term[term.rindex('"') :] if term[:1] == '"' else ""


def string(term: Term) -> str:
    """Returns the text of a literal as a JSON string: canonical N-Triples has the escapes of JSON."""
    return term[: term.rindex('"') + 1]


def value_object(term: Term) -> dict[str, Any]:
    """Returns a literal as a value object, with `@value` as a string.

    >>> from construct_messages.rdf.terms import literal, number
    >>> value_object(literal("a", language="en")), value_object(number("7"))["@value"]
    ({'@value': 'a', '@language': 'en'}, '7')
    """
    text, datatype, language, direction = literal_parts(term)
    value: dict[str, Any] = {"@value": text}
    if language is not None:
        value["@language"] = language
        if direction is not None:
            value["@direction"] = direction
    elif datatype == _JSON:
        value["@type"] = "@json"
    elif datatype is not None:
        value["@type"] = datatype
    return value


def expanded_value(
    term: Term, *, natively: bool, is_expected: Callable[[str], bool]
) -> dict[str, Any]:
    """Returns a literal as a value object, with a number or boolean for `@value` if it is one. `is_expected`: whether
    the context has a term for its property and this datatype. Then a number keeps its datatype, so that the term is
    found.

    >>> from construct_messages.rdf.terms import number
    >>> expanded_value(number("7"), natively=True, is_expected=lambda datatype: False)
    {'@value': 7}
    """
    value = value_object(term)
    _, datatype, _, _ = literal_parts(term)
    if datatype is None or not natively:
        return value
    text = value["@value"]
    # a mark represents all literals of a kind, so its text is unknown: malformed numbers have no layout
    json = "0" if text.startswith("\0") and is_native(datatype) else json_of(text, datatype)
    if json is not None:
        value["@value"] = msgspec.json.decode(json)
        if value["@type"] != "@json" and not is_expected(datatype):
            del value["@type"]
    return value


def matches_value(
    pattern: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]], value: Mapping[str, Any]
) -> bool:
    """Returns whether a value object matches the `@value`, `@type` and `@language` of a frame (Framing, section
    4.3.2).
    """
    keywords = ("@value", "@type", "@language")
    return all(
        _matches(listed, value.get(keyword))
        for listed, keyword in zip(pattern, keywords, strict=True)
    )


def _matches(pattern: tuple[Any, ...], found: Any) -> bool:
    if found is None:
        return not pattern
    return found in pattern or (bool(pattern) and pattern[0] == {})

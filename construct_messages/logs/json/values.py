"""Literals as JSON: native numbers and booleans, and what a value object of JSON-LD says of the rest.

JSON-LD 1.1 API, section 8.5 (RDF to object conversion), with `useNativeTypes` for every number of XSD. A number is written
with the digits of its literal.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final

import msgspec

from construct_messages.errors import UnsupportedByFormat
from construct_messages.terms import RDF, XSD, Term, literal_parts

_INTEGERS: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("long", "int", "short", "byte"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_FLOATS: Final = frozenset((f"{XSD}double", f"{XSD}float"))
_BOOLEANS: Final = {"true": "true", "1": "true", "false": "false", "0": "false"}
_NUMBER: Final = re.compile(r"\s*([+-]?)0*(\d*)(?:\.(\d*))?\s*")
_JSON: Final = f"{RDF}JSON"
_MOST_DIGITS: Final = 300
"""Readers of JSON take longer numbers for infinity, or not at all."""


def native(text: str, datatype: str | None) -> str | None:
    """The JSON number, boolean or JSON text that a literal is; None: it is none.

    Args:
        text: the lexical form.
        datatype: its IRI; None: a string.

    >>> native("+007", f"{XSD}integer"), native("1.50", f"{XSD}decimal"), native("1e3", f"{XSD}double")
    ('7', '1.50', '1000.0')
    >>> native("INF", f"{XSD}double"), native("7", None), native("1", f"{XSD}boolean")
    (None, None, 'true')
    """
    if datatype is None or len(text) > _MOST_DIGITS and datatype != _JSON:
        return None
    if datatype in _INTEGERS or datatype == f"{XSD}decimal":
        match = _NUMBER.fullmatch(text)
        if match is None or not (match[2] or match[3] or "0" in text):
            return None
        sign, whole, fraction = match.groups()
        if fraction is not None and datatype in _INTEGERS:
            return None
        whole = whole or "0"
        return ("-" if sign == "-" else "") + whole + (f".{fraction or '0'}" if fraction is not None else "")
    if datatype in _FLOATS:
        try:
            number = float(text)
        except ValueError:
            return None
        return repr(number) if isfinite(number) and "_" not in text else None
    if datatype == f"{XSD}boolean":
        return _BOOLEANS.get(text)
    if datatype == _JSON:
        try:
            return msgspec.json.encode(msgspec.json.decode(text)).decode()
        except msgspec.DecodeError as error:
            raise UnsupportedByFormat(f"the JSON literal {text[:100]!r} is no JSON: {error}") from None
    return None


def is_native(datatype: str | None) -> bool:
    """Whether literals of a datatype may be numbers or booleans."""
    return datatype is not None and (
        datatype in _INTEGERS
        or datatype in _FLOATS
        or datatype in (f"{XSD}decimal", f"{XSD}boolean", _JSON)
    )


def suffix_of(term: Term) -> str:
    """What follows the text of a literal, with the quote that ends it; empty for other terms.

    >>> from construct_messages.terms import literal
    >>> suffix_of(literal("a", language="en"))
    '"@en'
    """
    return term[term.rindex('"') :] if term[:1] == '"' else ""


def string(term: Term) -> str:
    """The text of a literal as a JSON string: canonical N-Triples has the escapes of JSON."""
    end = term.rindex('"')
    return term[: end + 1]


def value_object(term: Term) -> dict[str, Any]:
    """A literal as a value object, with `@value` as a string.

    >>> from construct_messages.terms import literal, number
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


def matches_value(
    pattern: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]], term: Term
) -> bool:
    """Whether a literal matches the `@value`, `@type` and `@language` of a frame (Framing, section 4.3.2)."""
    found = value_object(term)
    values, types, languages = pattern
    text, datatype = found["@value"], found.get("@type")
    # the text of a mark for all literals like it is not known yet: numbers that are none have no layout
    number = "0" if text.startswith("\0") and is_native(datatype) else native(text, datatype)
    if number is not None:
        text = msgspec.json.decode(number)
        datatype = datatype if types else None
    return (
        _matches(values, text)
        and _matches(types, datatype)
        and _matches(languages, found.get("@language"))
    )


def _matches(pattern: tuple[Any, ...], found: Any) -> bool:
    if found is None:
        return not pattern
    return found in pattern or (bool(pattern) and pattern[0] == {})

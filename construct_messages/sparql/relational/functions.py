"""SPARQL's functions and casts on exact values: SPARQL 1.1 Query, sections 17.4 and 17.5.

A function gets the values of its arguments (see `values`), none of which is an error, and returns None for an error.
`expressions` evaluates operators, and functions that may have an argument that is an error.
"""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_DOWN, Context, Decimal, Inexact, localcontext
from functools import lru_cache
from math import ceil, copysign, floor, isfinite
from operator import add, mul, sub
from typing import Any, Final
from urllib.parse import quote

from construct_messages.errors import (
    ConstructMessagesError,
    UnsupportedQuery,
    ValueOutOfRange,
    shown,
)
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal, literal_parts
from construct_messages.rdf.terms.canonical import resolve
from construct_messages.rdf.terms.natives import BOOLEANS
from construct_messages.rdf.terms.wellformed import is_language
from construct_messages.sparql.relational.regex import (
    IllegalPattern,
    XPathPattern,
    translate_pattern,
    translate_replacement,
)
from construct_messages.sparql.relational.values import (
    DATATYPES,
    NAMES,
    NodeValue,
    PlainString,
    Single,
    Tagged,
    TimePoint,
    moment,
    number_text,
    order_key,
    part_of,
    shortest,
    single,
    term_of,
    typed_value,
    value_of,
)

DIGITS: Final = Decimal("1e-18")
"""Products and quotients of decimals are cut at this place, as by the embedded engine."""

EXACT: Final = Context(prec=5000, traps=[Inexact])
"""Numbers with more digits are refused."""
_DIVISION: Final = Context(prec=5000)
_CUTTING: Final = Context(prec=6000)


def is_number(value: Any) -> bool:
    return type(value) in NAMES


# --- strings --------------------------------------------------------------------------------------


def text_of(value: Any) -> str | None:
    """The characters of a string, plain or with a language."""
    if type(value) is PlainString:
        return str(value)
    return value.text if type(value) is Tagged else None


def _same_kind(value: Any, text: str) -> Any:
    return Tagged(text, value.suffix) if type(value) is Tagged else PlainString(text)


def _compatible(first: Any, second: Any) -> tuple[str, str] | None:
    """The characters of two strings whose languages agree (section 17.4.3.1.2)."""
    one, other = text_of(first), text_of(second)
    if one is None or other is None:
        return None
    agree = type(second) is PlainString or (type(first) is Tagged and first.suffix == second.suffix)
    return (one, other) if agree else None


def _tested(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool | None]:
    def tested(first: Any, second: Any) -> bool | None:
        pair = _compatible(first, second)
        return None if pair is None else test(*pair)

    return tested


def _around(part: Callable[[str, str], str]) -> Callable[[Any, Any], Any]:
    def around(first: Any, second: Any) -> Any:
        pair = _compatible(first, second)
        if pair is None:
            return None
        return _same_kind(first, part(*pair)) if pair[1] in pair[0] else PlainString("")

    return around


def _mapped(change: Callable[[str], str]) -> Callable[[Any], Any]:
    def mapped(value: Any) -> Any:
        text = text_of(value)
        return None if text is None else _same_kind(value, change(text))

    return mapped


def _strlen(value: Any) -> int | None:
    text = text_of(value)
    return None if text is None else len(text)


def _substr(value: Any, start: Any, count: Any = None) -> Any:
    """Positions before the first count, but have no character (XPath's fn:substring)."""
    text = text_of(value)
    if text is None or type(start) is not int or type(count) not in (int, type(None)):
        return None
    end = len(text) if count is None else start - 1 + count
    return _same_kind(value, text[max(start - 1, 0) : max(end, 0)])


def _concat(*values: Any) -> Any:
    texts = [text_of(value) for value in values]
    if None in texts:
        return None
    text = "".join(str(part) for part in texts)
    suffixes = {value.suffix if type(value) is Tagged else "" for value in values}
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    return Tagged(text, suffix) if suffix else PlainString(text)


def _encode_for_uri(value: Any) -> Any:
    text = text_of(value)
    return None if text is None else PlainString(quote(text, safe="-._~"))


def _langmatches(tag: Any, range: Any) -> bool | None:
    """Basic filtering (RFC 4647, section 3.3.1)."""
    if type(tag) is not PlainString or type(range) is not PlainString:
        return None
    if range == "*":
        return tag != ""
    return f"{tag.lower()}-".startswith(f"{range.lower()}-")


# --- regular expressions --------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _pattern(pattern: str, flags: str) -> tuple[Any, XPathPattern] | None:
    """Compiles a pattern of XPath; None if it is illegal."""
    try:
        translated = translate_pattern(pattern, flags)
    except IllegalPattern:
        return None
    return translated.compiled(), translated


_NO_FLAGS: Final = PlainString("")


def _regex(value: Any, pattern: Any, flags: Any = _NO_FLAGS) -> bool | None:
    text = text_of(value)
    if text is None or type(pattern) is not PlainString or type(flags) is not PlainString:
        return None
    compiled = _pattern(str(pattern), str(flags))
    return None if compiled is None else compiled[0].search(text) is not None


def _replace(value: Any, pattern: Any, replacement: Any, flags: Any = _NO_FLAGS) -> Any:
    """REPLACE; a pattern that matches the empty string is an error (err:FORX0003)."""
    text = text_of(value)
    if text is None or any(type(one) is not PlainString for one in (pattern, replacement, flags)):
        return None
    compiled = _pattern(str(pattern), str(flags))
    if compiled is None or compiled[0].search("") is not None:
        return None
    new = _replacement(str(replacement), compiled[1])
    return None if new is None else _same_kind(value, compiled[0].sub(new, text))


@lru_cache(maxsize=256)
def _replacement(replacement: str, pattern: XPathPattern) -> Callable[[Any], str] | None:
    """Returns the function from a match to its replacement; None: this is illegal."""
    try:
        return translate_replacement(replacement, pattern)
    except IllegalPattern:
        return None


# --- terms ----------------------------------------------------------------------------------------


def _str(term: str) -> Any:
    if term.startswith('"'):
        return PlainString(literal_parts(Term(term))[0])
    return PlainString(term[1:-1]) if term.startswith("<") and not term.startswith("<<(") else None


def _lang(term: str) -> Any:
    if not term.startswith('"'):
        return None
    return PlainString(literal_parts(Term(term))[2] or "")


def _datatype(term: str) -> str | None:
    if not term.startswith('"'):
        return None
    _, datatype, language, direction = literal_parts(Term(term))
    if language is not None:
        return f"<{RDF}dirLangString>" if direction else DATATYPES[Tagged]
    return f"<{datatype}>" if datatype else DATATYPES[PlainString]


def _strdt(text: Any, datatype: Any) -> Any:
    if type(text) is not PlainString or type(datatype) is not NodeValue or datatype.term[0] != "<":
        return None
    name = datatype.term[1:-1]
    if name in (f"{RDF}langString", f"{RDF}dirLangString") or name.startswith("<("):
        return None
    return literal(str(text), datatype=name)


def _strlang(text: Any, tag: Any) -> Any:
    if type(text) is not PlainString or type(tag) is not PlainString or not is_language(tag):
        return None
    return Tagged(str(text), f"@{tag.lower()}")


def _iri(value: Any, base: Any = None) -> str | None:
    if type(value) is NodeValue:
        return value.term if value.term.startswith("<") and value.term[1] != "<" else None
    if type(value) is not PlainString:
        return None
    try:
        return str(iri(value) if base is None else resolve(str(value), str(base)))
    except ConstructMessagesError:
        return None


def _fresh(site: Any, number: Any) -> str:
    return f"_:sf{site}x{number.term}"


def _bnode(label: Any, number: Any) -> str | None:
    if type(label) is not PlainString:
        return None
    return f"_:sl{number.term}x{label.encode().hex()}"


# --- numbers --------------------------------------------------------------------------------------


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """`+`, `-`, `*` or `/`, by the types of XPath (section 17.3); None unless both are numbers."""
    kinds = {type(left), type(right)}
    if not kinds <= NAMES.keys():
        return None
    if float in kinds or Single in kinds:
        to = float if float in kinds else single
        return to(_floating(operator, float(to(as_double(left))), float(to(as_double(right)))))
    if kinds == {int} and operator != "/":
        return _OPERATORS[operator](left, right)
    with localcontext(EXACT):
        try:
            return _exact(operator, left, right)
        except Inexact:
            calculation = f"{shown(str(left))} {operator} {shown(str(right))}"
            raise ValueOutOfRange(f"{calculation} has too many digits") from None


def as_double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # of integers
        return float("inf") if value > 0 else float("-inf")


_OPERATORS: Final = {"+": add, "-": sub, "*": mul}


def _exact(operator: str, left: Any, right: Any) -> Any:
    if operator == "/":
        return None if right == 0 else _cut(_DIVISION.divide(Decimal(left), Decimal(right)))
    found = _OPERATORS[operator](Decimal(left), Decimal(right))
    return _cut(found) if operator == "*" else found


def _cut(value: Decimal) -> Decimal:
    if int(value.as_tuple().exponent) >= -18 or value == value.to_integral_value():
        return value
    return value.quantize(DIGITS, ROUND_DOWN, _CUTTING)


def _floating(operator: str, x: float, y: float) -> float:
    if operator != "/":
        return float(_OPERATORS[operator](x, y))
    if y:
        return x / y
    if not x or x != x:
        return float("nan")
    return copysign(float("inf"), copysign(1, x) * copysign(1, y))


def _numeric(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that keeps the type of a number."""

    def changed(value: Any) -> Any:
        kind = type(value)
        if kind not in NAMES:
            return None
        with localcontext(EXACT):
            found = change(value)
        return kind(found) if kind in (Single, float) else found

    return changed


def _whole(
    of_decimal: Callable[[Decimal], Any], of_double: Callable[[float], float]
) -> Callable[[Any], Any]:
    def whole(value: Any) -> Any:
        if type(value) is int:
            return value
        if type(value) is Decimal:
            return Decimal(of_decimal(value))
        number = float(value)
        return copysign(of_double(number), number) if isfinite(number) else number

    return _numeric(whole)


def _round(number: float) -> float:
    below = floor(number)
    return float(below + 1 if number - below >= 0.5 else below)  # halves go up


def _round_decimal(number: Decimal) -> int:
    return floor(number + Decimal("0.5"))


# --- dates and times ------------------------------------------------------------------------------


def _part(name: str) -> Callable[[Any], Any]:
    return lambda value: part_of(value, name) if type(value) is TimePoint else None


def _zone(value: TimePoint) -> str:
    """The zone as it is written."""
    if value.zone is None:
        return ""
    return "Z" if value.text.endswith("Z") else value.text[-6:]


def _timezone(value: Any) -> str | None:
    """An xsd:dayTimeDuration; without a time zone it is an error."""
    if type(value) is not TimePoint or value.zone is None:
        return None
    hours, minutes = divmod(abs(value.zone), 60)
    text = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    sign = "-" if value.zone < 0 else ""
    return literal(f"{sign}PT{text or '0S'}", datatype=f"{XSD}dayTimeDuration")


def _tz(value: Any) -> Any:
    return PlainString(_zone(value)) if type(value) is TimePoint else None


# --- hashes, and new values -----------------------------------------------------------------------


def _hash(name: str) -> Callable[[Any], Any]:
    def hashed(value: Any) -> Any:
        if type(value) is not PlainString:
            return None
        return PlainString(hashlib.new(name, value.encode(), usedforsecurity=False).hexdigest())

    return hashed


# --- casts ----------------------------------------------------------------------------------------


def _to_string(value: Any) -> Any:
    kind = type(value)
    if kind is NodeValue:
        return _str(value.term)
    if kind is bool:
        return PlainString("true" if value else "false")
    if kind in (Single, float) and isfinite(value) and not 1e-6 <= abs(value) < 1e6 and value:
        return PlainString(_scientific(value))
    if kind in NAMES:
        return PlainString(number_text(value))
    return _str(term_of(value))


def _scientific(value: float) -> str:
    digits = Decimal(shortest(value)).normalize()
    sign, numbers, exponent = digits.as_tuple()
    text = "".join(map(str, numbers))
    power = int(exponent) + len(text) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def _to_boolean(value: Any) -> bool | None:
    if type(value) is PlainString:
        return BOOLEANS.get(str(value))
    if type(value) is bool:
        return value
    return bool(value) and value == value if is_number(value) else None


def _to_number(name: str, of_number: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def cast(value: Any) -> Any:
        if type(value) is PlainString:
            return typed_value(str(value), name)
        if type(value) is bool:
            return of_number(int(value))
        if not is_number(value):
            return None
        if name in ("integer", "decimal") and not (
            type(value) in (int, Decimal) or isfinite(value)
        ):
            return None
        return of_number(value)

    return cast


def _decimal_of(value: Any) -> Decimal:
    return _cut(Decimal(float.__repr__(float(value)) if type(value) in (Single, float) else value))


def _to_date_time(value: Any) -> Any:
    if type(value) is PlainString:
        return moment("dateTime", str(value))
    if type(value) is TimePoint and value.kind == "dateTime":
        return value
    if type(value) is TimePoint and value.kind == "date":
        zone = _zone(value)
        return moment("dateTime", f"{value.text.removesuffix(zone)}T00:00:00{zone}")
    return None


def _to_date(value: Any) -> Any:
    if type(value) is PlainString:
        return moment("date", str(value))
    if type(value) is not TimePoint or value.kind not in ("dateTime", "date"):
        return None
    year, month, day = (part_of(value, name) for name in ("year", "month", "day"))
    number = f"{'-' if year < 0 else ''}{abs(year):04}"
    return moment("date", f"{number}-{month:02}-{day:02}{_zone(value)}")


CASTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _to_string,
    "boolean": _to_boolean,
    "integer": _to_number("integer", int),
    "decimal": _to_number("decimal", _decimal_of),
    "double": _to_number("double", as_double),
    "float": _to_number("float", lambda value: single(as_double(value))),
    "dateTime": _to_date_time,
    "date": _to_date,
}

OF_TERMS: Final[Mapping[str, Callable[..., Any]]] = {
    "STR": _str,
    "LANG": _lang,
    "DATATYPE": _datatype,
    "SAMETERM": lambda first, second: first == second,
    "ISIRI": lambda term: term.startswith("<") and not term.startswith("<<("),
    "ISBLANK": lambda term: term.startswith("_:"),
    "ISLITERAL": lambda term: term.startswith('"'),
    "ORDERKEY": order_key,
}
"""Functions of terms."""

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "ISNUMERIC": is_number,
    "IRI": _iri,
    "BNODE": _bnode,
    "FRESH": _fresh,
    "STRDT": _strdt,
    "STRLANG": _strlang,
    "UUID": lambda: f"<urn:uuid:{uuid.uuid4()}>",
    "STRUUID": lambda: PlainString(uuid.uuid4()),
    "CONCAT": _concat,
    "REGEX": _regex,
    "REPLACE": _replace,
    "STRLEN": _strlen,
    "SUBSTR": _substr,
    "UCASE": _mapped(str.upper),
    "LCASE": _mapped(str.lower),
    "STRSTARTS": _tested(str.startswith),
    "STRENDS": _tested(str.endswith),
    "CONTAINS": _tested(str.__contains__),
    "STRBEFORE": _around(lambda text, part: text.partition(part)[0] if part else ""),
    "STRAFTER": _around(lambda text, part: text.partition(part)[2] if part else text),
    "ENCODE_FOR_URI": _encode_for_uri,
    "LANGMATCHES": _langmatches,
    "ABS": _numeric(abs),
    "ROUND": _whole(_round_decimal, _round),
    "CEIL": _whole(ceil, lambda number: float(ceil(number))),
    "FLOOR": _whole(floor, lambda number: float(floor(number))),
    "RAND": random.random,
    **{
        name.upper(): _part(name)
        for name in ("year", "month", "day", "hours", "minutes", "seconds")
    },
    "TIMEZONE": _timezone,
    "TZ": _tz,
    "MD5": _hash("md5"),
    "SHA1": _hash("sha1"),
    "SHA256": _hash("sha256"),
    "SHA384": _hash("sha384"),
    "SHA512": _hash("sha512"),
}
"""Functions of values, by their names in `Call.name`."""


_DURATIONS: Final = tuple(
    f"^^<{XSD}{name}>" for name in ("duration", "dayTimeDuration", "yearMonthDuration")
)
_DATES: Final = tuple(f"^^<{XSD}{name}>" for name in ("date", "time", "dateTime", "dateTimeStamp"))
_DATES_HINT: Final = "compare dates with each other, or their YEAR(), MONTH() and DAY()"


def check_constants(name: str, arguments: Sequence[str | None]) -> None:
    """Refuses patterns that cannot be translated, and arithmetic of dates, an error here, but not in many engines."""
    _check_patterns(name, arguments)
    constants = [term for term in arguments if term is not None]
    durations = any(term.endswith(_DURATIONS) for term in constants)
    if name in ("<", "<=", ">", ">=") and durations:
        raise UnsupportedQuery("durations have no order here", fragment=name, hint=_DATES_HINT)
    dates = durations or any(term.endswith(_DATES) for term in constants)
    if name in ("+", "-", "*", "/", "u+", "u-") and dates:
        raise UnsupportedQuery(
            "dates and durations have no arithmetic here", fragment=name, hint=_DATES_HINT
        )


def _check_patterns(name: str, arguments: Sequence[str | None]) -> None:
    """Refuses a constant pattern that cannot be translated, before anything is evaluated."""
    if name in ("REGEX", "REPLACE") and len(arguments) > 1 and arguments[1] is not None:
        flags = arguments[3 if name == "REPLACE" else 2 :][:1]
        known = value_of(flags[0]) if flags and flags[0] is not None else PlainString("")
        pattern = value_of(arguments[1])
        if type(pattern) is PlainString and type(known) is PlainString:
            _pattern(str(pattern), str(known))

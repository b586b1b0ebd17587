"""The values of RDF terms, exactly: SPARQL 1.1 Query, section 17.1; XML Schema 1.1 Part 2.

A term is a number, boolean, date or time only if its lexical form is one of its datatype. Integers and decimals have
any number of digits. Nothing here knows expressions.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

from construct_messages.rdf.terms import RDF, XSD, Term, boolean, literal, literal_parts
from construct_messages.rdf.terms.natives import BOOLEANS, FORMS, INTEGERS
from construct_messages.rdf.terms.values import date_of_days, days_of_date, days_of_month


class Single(float):
    """An xsd:float."""


class PlainString(str):
    """The characters of a plain string."""


class Tagged(NamedTuple):
    """A string with a language."""

    text: str
    suffix: str  # `@en`, or `@en--ltr`


class TimePoint(NamedTuple):
    """A point of the time line: a value of one of the types of dates and times."""

    kind: str
    seconds: int  # since 1970 in UTC
    fraction: Fraction
    zone: int | None  # minutes from UTC
    text: str


class Opaque(NamedTuple):
    """A literal whose value is not known, also one whose lexical form is not of its datatype."""

    term: str
    datatype: str


class NodeValue(NamedTuple):
    """An IRI, a blank node or a triple term."""

    term: str


NUMERIC: Final = frozenset({*INTEGERS, "decimal", "float", "double"})

_YEAR: Final = r"(?P<year>-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_MONTH: Final = r"(?P<month>0[1-9]|1[0-2])"
_DAY: Final = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME: Final = (
    r"(?P<hours>[01][0-9]|2[0-3]):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9])"
    r"(?:[.](?P<fraction>[0-9]+))?"
)
_CLOCK: Final = rf"(?:{_TIME}|(?P<midnight>24:00:00(?:[.]0+)?))"
_ZONE: Final = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))"
_FORMS: Final = {
    name: re.compile(form)
    for name, form in {
        "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_ZONE}?",
        "dateTimeStamp": f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_ZONE}",
        "date": f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}?",
        "time": f"{_CLOCK}{_ZONE}?",
        "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}?",
        "gYear": f"{_YEAR}{_ZONE}?",
        "gMonthDay": f"--{_MONTH}-{_DAY}{_ZONE}?",
        "gDay": f"---{_DAY}{_ZONE}?",
        "gMonth": f"--{_MONTH}{_ZONE}?",
    }.items()
}
_INTEGER, _DECIMAL, _DOUBLE = (re.compile(FORMS[name]) for name in ("integer", "decimal", "double"))
_NO_FRACTION: Final = Fraction(0)
TEMPORAL: Final = frozenset(_FORMS)
_DATE: Final = ("year", "month", "day")
_STAND_IN: Final = {"time": (1972, 12, 31), "gMonthDay": (1972, 1, 1), "gDay": (1972, 12, 1)}


@lru_cache(maxsize=1 << 16)
def value_of(term: str) -> Any:
    """Returns the value of a term.

    >>> value_of('"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'), value_of('"a"'), value_of("<urn:a>")
    (Decimal('1.50'), 'a', NodeValue(term='<urn:a>'))
    """
    if not term.startswith('"'):
        return NodeValue(term)
    text, datatype, language, direction = literal_parts(Term(term))
    if language is not None:
        return Tagged(text, f"@{language}" + (f"--{direction}" if direction else ""))
    if datatype is None:
        return PlainString(text)
    found = typed_value(text, datatype.removeprefix(XSD)) if datatype.startswith(XSD) else None
    return Opaque(term, datatype) if found is None else found


def typed_value(text: str, name: str) -> Any:
    """Returns the value of a lexical form of an XSD type; None if it has none or the type is not known here."""
    if name in INTEGERS:
        if _INTEGER.fullmatch(text):
            value = _integer(text)
            least, most = INTEGERS[name]
            if (least is None or value >= least) and (most is None or value <= most):
                return value
    elif name == "decimal":
        return Decimal(text) if _DECIMAL.fullmatch(text) else None
    elif name in ("double", "float"):
        if _DOUBLE.fullmatch(text):
            return float(text) if name == "double" else single(float(text))
    elif name == "boolean":
        return BOOLEANS.get(text)
    elif name in _FORMS:
        return moment(name, text)
    return None


def _integer(text: str) -> int:
    # Python limits the digits of `int`, as its time is quadratic, but not of Decimal
    return int(text) if len(text) < 4000 else int(Decimal(text))


def single(value: float) -> Single:
    """Rounds to an xsd:float."""
    try:
        return Single(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return Single(float("inf") if value > 0 else float("-inf"))


# --- dates and times ------------------------------------------------------------------------------


def moment(kind: str, text: str) -> TimePoint | None:
    """Returns the point of a lexical form; None if it is not one of the type."""
    found = _FORMS[kind].fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    year, month, day = _STAND_IN.get(kind, (1972, 1, 1))
    year = int(parts.get("year") or year)
    month, day = int(parts.get("month") or month), int(parts.get("day") or day)
    if day > days_of_month(year, month):
        return None
    clock, fraction = 0, _NO_FRACTION
    if parts.get("midnight"):
        clock = 24 * 3600 if kind != "time" else 0
    elif hours := parts.get("hours"):
        clock = int(hours) * 3600 + int(parts["minutes"]) * 60 + int(parts["seconds"])
        if digits := parts["fraction"]:
            fraction = Fraction(int(digits), 10 ** len(digits))
    zone = minutes_of(parts["zone"]) if parts.get("zone") else None
    seconds = days_of_date(year, month, day) * 86400 + clock - (zone or 0) * 60
    return TimePoint("dateTime" if kind == "dateTimeStamp" else kind, seconds, fraction, zone, text)


def minutes_of(zone: str) -> int:
    """Returns the difference of a zone from UTC.

    >>> minutes_of("Z"), minutes_of("-01:30")
    (0, -90)
    """
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes


def part_of(point: TimePoint, name: str) -> Any:
    """The `year`, `month`, `day`, `hours`, `minutes` or `seconds` of a form; None if its type has none.

    >>> [part_of(moment("dateTime", "1999-12-31T24:00:00"), name) for name in ("year", "day", "seconds")]
    [2000, 1, Decimal('0')]
    """
    form = _FORMS[point.kind]
    if name not in form.groupindex:
        return None
    found = form.fullmatch(point.text)
    assert found is not None
    if "midnight" in form.groupindex and found["midnight"]:
        if name in _DATE:
            next_day = date_of_days(days_of_date(*(int(found[one]) for one in _DATE)) + 1)
            return next_day[_DATE.index(name)]
        return Decimal(0) if name == "seconds" else 0
    if name == "seconds":
        return Decimal(f"{found[name]}.{found['fraction'] or 0}")
    return int(found[name])


# --- terms of values ------------------------------------------------------------------------------


def term_of(value: Any) -> str:
    """Returns the term of a value; numbers are written as by the embedded engine, without exponents.

    >>> term_of(Decimal("1.50")), term_of(1e6)
    ('"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"1000000"^^<http://www.w3.org/2001/XMLSchema#double>')
    """
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is PlainString:
        return literal(str(value))
    if kind is Tagged:
        return tagged(value.text, value.suffix)
    if kind is bool:
        return boolean("true" if value else "false")
    if kind in (NodeValue, Opaque):
        return str(value.term)
    if kind is TimePoint:
        return literal(value.text, datatype=XSD + value.kind)
    return f'"{number_text(value)}"^^<{XSD}{NAMES[kind]}>'


NAMES: Final = {int: "integer", Decimal: "decimal", Single: "float", float: "double"}


def tagged(text: str, suffix: str) -> Term:
    """Returns a string with a language, and perhaps a direction."""
    language, _, direction = suffix[1:].partition("--")
    return (
        literal(text, language=language, direction=direction)
        if direction
        else literal(text, language=language)
    )


def number_text(value: Any) -> str:
    if type(value) is int:
        # Python limits the digits of an integer's text
        return str(value) if value.bit_length() < 13_000 else f"{Decimal(value):f}"
    if type(value) is Decimal:
        text = f"{value:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text in ("-0", "") else text.removeprefix("+")
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    text = f"{Decimal(shortest(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortest(value: float) -> str:
    """The shortest decimal digits that are read as the same number."""
    if type(value) is Single:
        for digits in range(1, 10):
            text = f"{float(value):.{digits}g}"
            if single(float(text)) == value:
                return text
    return float.__repr__(value)


DATATYPES: Final = {PlainString: f"<{XSD}string>", Tagged: f"<{RDF}langString>"}


# --- order ----------------------------------------------------------------------------------------
# ORDER BY, MIN and MAX (SPARQL 1.1 Query, section 15.1, and our own order of the rest) are an order of strings: each
# term has a key, and terms that are equal in the order have the same. `native` makes the same keys in SQL.

KEY_END: Final = "\x01\x01"
"""The end of a string in a key, which is less than any continuation."""
KEY_DIGITS: Final = 7
"""The digits of the number of digits of a number in a key."""
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")
_LOW_CHARS: Final = str.maketrans({"\x00": "\x01\x02", "\x01": "\x01\x03"})


def order_key(term: str) -> str:
    """Returns the key of a term.

    Blank nodes by their labels, IRIs, and literals: numbers by value, strings by code point and then by language,
    booleans, dates and times by their points in time (read as UTC if they have no zone), other literals by their terms;
    then triple terms.

    >>> order_key('"-1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    '2N99999988.4~'
    """
    one = value_of(term)
    match one:
        case NodeValue():
            if term.startswith("_:"):
                return f"0{term}"
            return f"7{term}" if term.startswith("<<(") else f"1{term[1:-1]}"
        case PlainString():
            return f"3{one.translate(_LOW_CHARS)}{KEY_END}"
        case Tagged():
            return f"3{one.text.translate(_LOW_CHARS)}{KEY_END}{one.suffix}"
        case bool():
            return f"4{boolean('true' if one else 'false')}"
        case TimePoint():
            return f"5{_time_key(one)}"
        case Opaque():
            return f"6{term}"
    return f"2{_number_key(one)}"


def _number_key(number: Any) -> str:
    """The number of digits before the point, and the digits; of negative numbers their complements.

    Values are exact, as an order must be transitive; NaN is after all others.
    """
    if number != number:
        return "R"
    if number in (float("inf"), float("-inf")):
        return "Q" if number > 0 else "M"
    exact = Decimal(number)
    whole, _, rest = f"{exact.copy_abs():f}".partition(".")
    whole, rest = whole.lstrip("0"), rest.rstrip("0")
    key = f"{len(whole):0{KEY_DIGITS}}{whole}{rest and f'.{rest}'}"
    return f"N{key.translate(_COMPLEMENT)}~" if exact < 0 else f"P{key}"


def _time_key(point: TimePoint) -> str:
    """The form of a dateTime in UTC; years of another length than four digits are after these or, negative, before."""
    days, seconds = divmod(point.seconds, 86400)
    minutes, seconds = divmod(seconds, 60)
    year, month, day = date_of_days(days)
    digits = f"{abs(year):04}"
    if year < 0:
        digits = f"-{f'{len(digits):02}{digits}'.translate(_COMPLEMENT)}"
    elif year > 9999:
        digits = f":{len(digits):02}{digits}"
    rest = re.search(r"[.]([0-9]+)", point.text) if point.fraction else None
    fraction = f".{rest[1].rstrip('0')}" if rest else ""
    clock = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{fraction}"
    return f"{digits}-{month:02}-{day:02}T{clock}"

"""SQL over dates and times: which terms they are, and how they compare.

SPARQL 1.1 Query, section 17.3; XML Schema 1.1 Part 2, sections 3.3.7 to 3.3.14 and appendix D. The types of dates all
are points of one time line, compared by whole seconds and the digits behind them: nothing is cut to microseconds. A
value without a time zone compares with one that has a zone only if they are more than 14 hours apart; nearer it is an
error, never as if the session's time zone, or UTC, were meant. Durations and arithmetic are not here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from construct_messages.errors import ValueOutOfRange
from construct_messages.spark.values import any_of, case, digits, fail, let, literal, xsd_type
from construct_messages.terms import XSD, Term

_YEAR: Final = "-?([1-9][0-9]{3,}|0[0-9]{3})"
_MONTH: Final = "(0[1-9]|1[0-2])"
_DAY: Final = "(0[1-9]|[12][0-9]|3[01])"
_TIME: Final = "(([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]+)?|24:00:00([.]0+)?)"
_ZONE: Final = "(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"

_LEXICAL: Final = literal(f"^{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}?$")

# for each type, SQL of a dateTime for SQL of a lexical form without its zone: what a type has not is the same in all of
# its values; a form that is none of the type's gives none of dateTime's
_TYPES: Final = {
    "dateTime": "{}",
    "dateTimeStamp": "{}",
    "date": "concat({}, 'T00:00:00')",
    "time": "concat('1972-12-31T', regexp_replace({}, '^24(:00:00([.]0*)?)$', '00$1'))",
    "gYearMonth": "concat({}, '-01T00:00:00')",
    "gYear": "concat({}, '-01-01T00:00:00')",
    "gMonthDay": "if(startswith({0}, '--'), concat('1972', substring({0}, 2), 'T00:00:00'), NULL)",
    "gDay": "if(startswith({0}, '---'), concat('1972-12', substring({0}, 3), 'T00:00:00'), NULL)",
    "gMonth": "if(startswith({0}, '--'), concat('1972', substring({0}, 2), '-01T00:00:00'), NULL)",
}
_USUAL: Final = re.compile(
    r'"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:[.](\d+))?)?(Z|[+-](?:0\d|1[0-3]):[0-5]\d)?"'
    rf"\^\^<{re.escape(XSD)}(date|dateTime)>",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
POINT: Final = "STRUCT<type: STRING, zoned: BOOLEAN, at: STRUCT<seconds: BIGINT, fraction: STRING>>"
"""The SQL type of a `point`."""


def zone(digits: str) -> str:
    """SQL: the time zone that a lexical form ends with, or nothing.

    >>> print(zone("d"))
    regexp_extract(d, '(Z|[+-][0-9]{2}:[0-9]{2})$', 1)
    """
    return f"regexp_extract({digits}, '(Z|[+-][0-9]{{2}}:[0-9]{{2}})$', 1)"


def point(term: str) -> str:
    """SQL: where a term is on the time line, as a `POINT`; NULL unless it is a date or time.

    Its `at` is in UTC, as which a value without a zone is read here.

    Raises (in the job):
        ValueOutOfRange: a year of more than six digits.
    """

    def of_body(t: str, body: str, z: str) -> str:
        templates = " ".join(f"WHEN '{name}>' THEN {template.format(body)}" for name, template in _TYPES.items())
        form = f"CASE {xsd_type(t)} {templates} END"
        zoned = f"({z} <> '' OR NOT endswith({t}, 'Stamp>'))"
        type = f"replace({xsd_type(t)}, 'Stamp>', '>')"
        return let(form, lambda f: case((f"concat({f}, {z}) RLIKE {_LEXICAL} AND {zoned}", _point(type, f, z))))

    def of_zone(t: str, z: str) -> str:
        return let(f"substring({digits(t)}, 1, length({digits(t)}) - length({z}))", lambda body: of_body(t, body, z))

    def of_term(t: str) -> str:
        value = let(zone(digits(t)), lambda z: of_zone(t, z))
        return case((any_of(xsd_type(t), (f"{name}>" for name in _TYPES)), value))

    return let(term, of_term)


def _point(type: str, form: str, zone: str) -> str:
    date, time = f"substring_index({form}, 'T', 1)", f"substring_index({form}, 'T', -1)"

    def number(text: str, start: int) -> str:
        return f"CAST(substring({text}, {start}, 2) AS BIGINT)"

    minutes = f"if({zone} IN ('', 'Z'), 0, {number(zone, 2)} * 60 + {number(zone, 5)})"
    offset = f"if(startswith({zone}, '-'), -60, 60) * {minutes}"
    fraction = f"trim(TRAILING '0' FROM substring({time}, 10))"

    def of_days(days: str) -> str:
        clock = f"{number(time, 1)} * 3600 + {number(time, 4)} * 60 + {number(time, 7)}"
        at = f"named_struct('seconds', {days} * 86400 + {clock} - {offset}, 'fraction', {fraction})"
        return case(
            (f"{days} IS NOT NULL", f"named_struct('type', {type}, 'zoned', {zone} <> '', 'at', {at})"),
            (f"{form} RLIKE '^-?[0-9]{{7}}'", fail(ValueOutOfRange, f"concat({form}, ' is beyond year 999999')")),
        )

    # to a DATE, Spark takes what is a day of the calendar, under any setting
    return let(f"CAST(unix_date(try_cast({date} AS DATE)) AS BIGINT)", of_days)


def constant_point(term: Term) -> str | None:
    """SQL of the `point` of a constant, a struct of literals; None unless it is a date or dateTime of a usual year.

    >>> from construct_messages.terms import literal
    >>> constant_point(literal("1970-01-02Z", datatype=XSD + "date"))
    "named_struct('type', 'date>', 'zoned', true, 'at', named_struct('seconds', 86400L, 'fraction', ''))"
    """
    match = _USUAL.fullmatch(term)
    if match is None:
        return None
    day, time, fraction, zone, name = match.groups()
    if (time is None) != (name == "date"):
        return None
    try:
        # what isoformat has not (24:00:00, a zone past 23:59) is left to the job
        at = datetime.fromisoformat(f"{day}T{time or '00:00:00'}{zone or 'Z'}")
    except ValueError:
        return None
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    digits = (fraction or "").rstrip("0")
    return (
        f"named_struct('type', '{name}>', 'zoned', {'false' if zone is None else 'true'}, "
        f"'at', named_struct('seconds', {seconds}L, 'fraction', '{digits}'))"
    )


def compare(operator: str, left: str, right: str) -> str:
    """SQL: whether `=`, `<` or `<=` holds between two points of one type; NULL where that is undecided."""
    before, after = f"{_later(left)} < {right}.at", f"{_later(right)} < {left}.at"
    return case(
        (f"{left}.zoned = {right}.zoned", f"{left}.at {operator} {right}.at"),
        *([(f"{before} OR {after}", "false")] if operator == "=" else [(before, "true"), (after, "false")]),
    )


def _later(point: str) -> str:
    """By 14 hours, the farthest that a time zone is from UTC."""
    return f"named_struct('seconds', {point}.at.seconds + 50400, 'fraction', {point}.at.fraction)"

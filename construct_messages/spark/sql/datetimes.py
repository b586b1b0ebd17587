"""SQL over dates and times: which terms are dates and times, their place on the time line, and the functions on them.

SPARQL 1.1 Query, section 17.3; XML Schema 1.1 Part 2, sections 3.3.7 to 3.3.14 and appendix D. The values of all date
types are points of one time line, compared by whole seconds and the digits after them, which are not cut to
microseconds. A value without a time zone compares with one that has a zone only if they are more than 14 hours apart;
otherwise the comparison is an error, and never assumes the session's time zone or UTC. Values are compared in
`comparisons`; durations and arithmetic are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from construct_messages.errors import ValueOutOfRange
from construct_messages.rdf.terms import XSD, Term
from construct_messages.spark.sql.values import (
    ERROR,
    Scalar,
    Type,
    any_of,
    case,
    digits,
    fail,
    has_form,
    let,
    typed,
    xsd_type,
)

_YEAR: Final = "-?([1-9][0-9]{3,}|0[0-9]{3})"
_LEAP_YEAR: Final = (
    f"(?={_YEAR}-)-?[0-9]*([0-9]{{2}}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
)
_DAY: Final = "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
_MONTH: Final = "(0[1-9]|1[0-2])"
_DATE: Final = f"({_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"
_TIME: Final = "(([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]+)?|24:00:00([.]0+)?)"
_ZONE: Final = "(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"
# the same, for forms that are known to be valid
_ANY_ZONE: Final = "(Z|[+-][0-9]{2}:[0-9]{2})"
# the lexical space of each type
_TYPES: Final = {
    "dateTime": f"{_DATE}T{_TIME}{_ZONE}?",
    "dateTimeStamp": f"{_DATE}T{_TIME}{_ZONE}",
    "date": f"{_DATE}{_ZONE}?",
    "time": f"{_TIME}{_ZONE}?",
    "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}?",
    "gYear": f"{_YEAR}{_ZONE}?",
    "gMonthDay": f"--({_DAY}|02-29){_ZONE}?",
    "gDay": f"---(0[1-9]|[12][0-9]|3[01]){_ZONE}?",
    "gMonth": f"--{_MONTH}{_ZONE}?",
}
# a value for the parts that a type lacks, equal for all its values
_BEFORE: Final = {
    "time": "1972-12-31T",
    "gMonthDay": "1972-",
    "gMonth": "1972-",
    "gDay": "1972-12-",
}
_BEHIND: Final = {
    **dict.fromkeys(("date", "gMonthDay", "gDay"), "T00:00:00"),
    **dict.fromkeys(("gYearMonth", "gMonth"), "-01T00:00:00"),
    "gYear": "-01-01T00:00:00",
}
_USUAL: Final = re.compile(
    r'"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:[.](\d+))?)?(Z|[+-](?:0\d|1[0-3]):[0-5]\d)?"'
    rf"\^\^<{re.escape(XSD)}(date|dateTime)>",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_date(term: str, *types: str) -> str:
    """Tests whether a term is a date or time of one of some types, named locally; of any if none is named."""
    return has_form(term, {type: _TYPES[type] for type in types or _TYPES})


def has_type(term: str) -> str:
    """Tests whether a literal has one of the types, in any form; faster than `is_date`."""
    return f"({term} RLIKE '#({'|'.join(_TYPES)})>$')"


def zone(digits: str) -> str:
    """The time zone at the end of a lexical form; empty if there is none."""
    return f"regexp_extract({digits}, '{_ANY_ZONE}$', 1)"


@dataclass(frozen=True)
class Point:
    """SQL of a position on the time line, in UTC; a value without a zone is read as UTC."""

    type: str  # a dateTimeStamp is a dateTime
    zoned: str  # whether it has a time zone
    seconds: str  # since 1970, whole, as DOUBLE
    fraction: str  # the digits after the seconds, without trailing zeros


def point(term: str, *, beyond: str | None = None) -> Point:
    """The position on the time line of a term that `is_date`; undefined for other terms.

    The seconds of a year that Spark's timestamps do not have are `beyond`, or end the job.
    """
    if beyond is None:
        beyond = fail(
            ValueOutOfRange, f"concat({digits(term)}, ' is beyond the years of timestamps')"
        )
    type = f"regexp_extract({term}, '#([A-Za-z]+?)(Stamp)?>$', 1)"
    zoned = f"({term} RLIKE '{_ANY_ZONE}\"')"
    return Point(
        type,
        zoned,
        f"CAST({_seconds(term, type, zoned, beyond)} AS DOUBLE)",
        f"trim(TRAILING '0' FROM regexp_extract({term}, '[.]([0-9]+)', 1))",
    )


def _seconds(term: str, type: str, zoned: str, beyond: str) -> str:
    def of_type(texts: Mapping[str, str]) -> str:
        cases = " ".join(f"WHEN '{name}' THEN '{text}'" for name, text in texts.items())
        return f"CASE {type} {cases} ELSE '' END"

    pattern = f'^"(?:---?)?(-?[0-9:T-]+?)([.][0-9]+)?{_ANY_ZONE}?"'
    form = f"replace(regexp_extract({term}, '{pattern}', 1), '24:00:00', '00:00:00')"
    zone = f"if({zoned}, regexp_extract({term}, '{pattern}', 3), 'Z')"
    stamp = f"concat({of_type(_BEFORE)}, {form}, {of_type(_BEHIND)}, {zone})"
    # Spark's timestamps use the same calendar, and with a zone are the same under any setting
    seconds = f"unix_seconds(try_cast({stamp} AS TIMESTAMP))"
    next_day = f"if(contains({term}, 'T24:'), 86400, 0)"
    return f"(coalesce({seconds}, {beyond}) + {next_day})"


def constant_point(term: Term) -> Point | None:
    """The `Point` of a constant; None unless it is a date or dateTime of a usual year."""
    match = _USUAL.fullmatch(term)
    if match is None:
        return None
    day, time, fraction, zone, name = match.groups()
    if (time is None) != (name == "date"):
        return None
    try:
        # forms that isoformat lacks (24:00:00, a zone past 23:59) are read in the job
        at = datetime.fromisoformat(f"{day}T{time or '00:00:00'}{zone or 'Z'}")
    except ValueError:
        return None
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    digits = (fraction or "").rstrip("0")
    return Point(f"'{name}'", "false" if zone is None else "true", f"{seconds}D", f"'{digits}'")


# --- date parts: SPARQL 1.1 Query, section 17.4.5 ---------------------------------------------------
# SPARQL has these functions for xsd:dateTime; as in the embedded store, they accept any type of dates and times that
# has the part. The parts are those of the lexical form, in its own time zone, except for 24:00:00, which is midnight of
# the next day.

_CALENDAR: Final = ("dateTime", "dateTimeStamp", "date")
_CLOCK: Final = ("dateTime", "dateTimeStamp", "time")
_ALL: Final = (*_CALENDAR, "time", "gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")

_Body = Callable[[str, str, str], str]
"""SQL for SQL of a term, its lexical form without time zone, and its time zone."""


def _part(
    body: _Body, types: tuple[str, ...], type: Type = Type.INTEGER
) -> Callable[[Scalar], Scalar]:
    """A function on dates and times of some types; NULL for all other values."""

    def of_zone(t: str, d: str, z: str) -> str:
        return let(f"substring({d}, 1, length({d}) - length({z}))", lambda form: body(t, form, z))

    def of_term(t: str) -> str:
        parts = let(digits(t), lambda d: let(zone(d), lambda z: of_zone(t, d, z)))
        return case((is_date(t, *types), parts))

    def of(value: Scalar) -> Scalar:
        sql = let(value.sql, of_term) if value.type is Type.TERM else ERROR.sql
        return Scalar(f"CAST({sql} AS {type.value})" if type is Type.INTEGER else sql, type)

    return of


def _from_day(part: str, otherwise: str) -> _Body:
    """A part of the day, or, for types without a day, `otherwise`: SQL with a place `{}` for the form."""

    def of(term: str, form: str, _: str) -> str:
        day = f"date_add(try_cast(substring_index({form}, 'T', 1) AS DATE), if(contains({form}, 'T24'), 1, 0))"
        calendar = any_of(xsd_type(term), (f"{name}>" for name in _CALENDAR))
        return case((calendar, f"CAST({part}({day}) AS STRING)"), otherwise=otherwise.format(form))

    return of


def _of_time(body: Callable[[str], str]) -> _Body:
    return lambda _, form, __: body(f"substring_index({form}, 'T', -1)")


def _seconds_of(time: str) -> str:
    """A decimal of any length."""
    number = f"substring({time}, 7)"
    whole = f"CAST(CAST(substring({number}, 1, 2) AS INT) AS STRING)"
    plain = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM concat({whole}, '.', substring({number}, 4))))"
    return typed(plain, "decimal")


def _duration(_: str, __: str, zone: str) -> str:
    """An xsd:dayTimeDuration; without a time zone it is an error."""

    def unit(start: int, name: str) -> str:
        number = f"CAST(substring({zone}, {start}, 2) AS INT)"
        return f"if({number} > 0, concat({number}, '{name}'), '')"

    duration = f"concat(if(startswith({zone}, '-'), '-', ''), 'PT', {unit(2, 'H')}, {unit(5, 'M')})"
    lexical = case(
        (f"{zone} = ''", "NULL"),
        (f"{zone} = 'Z' OR endswith({zone}, '00:00')", "'PT0S'"),
        otherwise=duration,
    )
    return typed(lexical, "dayTimeDuration")


# --12 and --12-31, or 2026-12
_OTHER_MONTHS: Final = "if(startswith({0}, '--'), substring({0}, 3, 2), substring({0}, -2))"
PARTS: Final = {
    "YEAR": _part(
        _from_day("year", "regexp_extract({}, '^-?[0-9]+', 0)"), (*_CALENDAR, "gYear", "gYearMonth")
    ),
    "MONTH": _part(
        _from_day("month", _OTHER_MONTHS), (*_CALENDAR, "gYearMonth", "gMonth", "gMonthDay")
    ),
    "DAY": _part(_from_day("day", "substring({}, -2)"), (*_CALENDAR, "gMonthDay", "gDay")),
    "HOURS": _part(_of_time(lambda time: f"replace(substring({time}, 1, 2), '24', '0')"), _CLOCK),
    "MINUTES": _part(_of_time(lambda time: f"substring({time}, 4, 2)"), _CLOCK),
    "SECONDS": _part(_of_time(_seconds_of), _CLOCK, Type.TERM),
    "TIMEZONE": _part(_duration, _ALL, Type.TERM),
    "TZ": _part(
        lambda _, __, zone: zone, _ALL, Type.STRING
    ),  # as it is written, empty if there is none
}
"""The functions on parts of dates and times, by their names in `Call.name`."""

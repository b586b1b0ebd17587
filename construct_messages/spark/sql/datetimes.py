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

from construct_messages.rdf.errors import ValueOutOfRange
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


# --- date parts -----------------------------------------------------------------------------------
# The functions on parts of dates and times as SQL: SPARQL 1.1 Query, section 17.4.5.
#
# SPARQL has them for xsd:dateTime; as in the embedded store, a function accepts any type of dates and times that has
# the part. The parts are those of the lexical form, in its own time zone, except for 24:00:00, which is midnight of
# the next day. `datetimes` decides which terms are dates and times.

_CALENDAR: Final = ("dateTime", "dateTimeStamp", "date")
_CLOCK: Final = ("dateTime", "dateTimeStamp", "time")
_ALL: Final = (*_CALENDAR, "time", "gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")


def _with_form(value: Scalar, types: tuple[str, ...], body: Callable[[str, str, str], str]) -> str:
    """SQL over a date or time of some types: of the term, its form without zone, and its zone; else NULL."""
    if value.type is not Type.TERM:
        return ERROR.sql

    def of_term(t: str) -> str:
        def of_zone(d: str, z: str) -> str:
            return let(
                f"substring({d}, 1, length({d}) - length({z}))", lambda form: body(t, form, z)
            )

        parts = let(digits(t), lambda d: let(zone(d), lambda z: of_zone(d, z)))
        return case((is_date(t, *types), parts))

    return let(value.sql, of_term)


def _number(value: Scalar, types: tuple[str, ...], body: Callable[[str, str, str], str]) -> Scalar:
    return Scalar(f"CAST({_with_form(value, types, body)} AS DECIMAL(38,0))", Type.INTEGER)


def _from_day(part: str, otherwise: str) -> Callable[[str, str, str], str]:
    """Returns a part of the day, or, for types without a day, `otherwise`: SQL with a place `{}` for the form."""

    def of(term: str, form: str, _: str) -> str:
        day = f"date_add(try_cast(substring_index({form}, 'T', 1) AS DATE), if(contains({form}, 'T24'), 1, 0))"
        calendar = any_of(xsd_type(term), (f"{name}>" for name in _CALENDAR))
        return case((calendar, f"CAST({part}({day}) AS STRING)"), otherwise=otherwise.format(form))

    return of


def year(value: Scalar) -> Scalar:
    return _number(
        value,
        (*_CALENDAR, "gYear", "gYearMonth"),
        _from_day("year", "regexp_extract({}, '^-?[0-9]+', 0)"),
    )


def month(value: Scalar) -> Scalar:
    # --12 and --12-31, or 2026-12
    of_others = "if(startswith({0}, '--'), substring({0}, 3, 2), substring({0}, -2))"
    return _number(
        value, (*_CALENDAR, "gYearMonth", "gMonth", "gMonthDay"), _from_day("month", of_others)
    )


def day(value: Scalar) -> Scalar:
    return _number(value, (*_CALENDAR, "gMonthDay", "gDay"), _from_day("day", "substring({}, -2)"))


def hours(value: Scalar) -> Scalar:
    return _number(
        value, _CLOCK, lambda _, form, __: f"replace(substring({_time(form)}, 1, 2), '24', '0')"
    )


def minutes(value: Scalar) -> Scalar:
    return _number(value, _CLOCK, lambda _, form, __: f"substring({_time(form)}, 4, 2)")


def seconds(value: Scalar) -> Scalar:
    """A decimal of any length."""

    def of(_: str, form: str, __: str) -> str:
        number = f"substring({_time(form)}, 7)"
        whole = f"CAST(CAST(substring({number}, 1, 2) AS INT) AS STRING)"
        plain = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM concat({whole}, '.', substring({number}, 4))))"
        return typed(plain, "decimal")

    return Scalar(_with_form(value, _CLOCK, of))


def _time(form: str) -> str:
    return f"substring_index({form}, 'T', -1)"


def timezone(value: Scalar) -> Scalar:
    """An xsd:dayTimeDuration; without a time zone it is an error."""

    def of(_: str, __: str, zone: str) -> str:
        def unit(start: int, name: str) -> str:
            number = f"CAST(substring({zone}, {start}, 2) AS INT)"
            return f"if({number} > 0, concat({number}, '{name}'), '')"

        duration = (
            f"concat(if(startswith({zone}, '-'), '-', ''), 'PT', {unit(2, 'H')}, {unit(5, 'M')})"
        )
        lexical = case(
            (f"{zone} = ''", "NULL"),
            (f"{zone} = 'Z' OR endswith({zone}, '00:00')", "'PT0S'"),
            otherwise=duration,
        )
        return typed(lexical, "dayTimeDuration")

    return Scalar(_with_form(value, _ALL, of))


def tz(value: Scalar) -> Scalar:
    """The time zone as it is written, empty if there is none."""
    return Scalar(_with_form(value, _ALL, lambda _, __, zone: zone), Type.STRING)

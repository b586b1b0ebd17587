"""The functions on parts of dates and times as SQL: SPARQL 1.1 Query, section 17.4.5.

SPARQL has them for xsd:dateTime; as in the embedded store, a function accepts any type of dates and times that has the
part. The parts are those of the lexical form, in its own time zone, except for 24:00:00, which is midnight of the next
day. `datetimes` decides which terms are dates and times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from construct_messages.spark.sql import datetimes
from construct_messages.spark.sql.term_parts import digits, typed, xsd_type
from construct_messages.spark.sql.values import ERROR, Scalar, Type, any_of, case, let

_CALENDAR: Final = ("dateTime", "dateTimeStamp", "date")
_CLOCK: Final = ("dateTime", "dateTimeStamp", "time")
_ALL: Final = (*_CALENDAR, "time", "gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")


def _with_form(value: Scalar, types: tuple[str, ...], body: Callable[[str, str, str], str]) -> str:
    """Returns SQL over the parts of a date or time of one of some types; NULL for all other values.

    Args:
        value: of any type.
        types: their local names.
        body: returns SQL for SQL of the term, of its lexical form without time zone and of the zone.
    """
    if value.type is not Type.TERM:
        return ERROR.sql

    def of_term(t: str) -> str:
        def of_zone(d: str, z: str) -> str:
            return let(
                f"substring({d}, 1, length({d}) - length({z}))", lambda form: body(t, form, z)
            )

        parts = let(digits(t), lambda d: let(datetimes.zone(d), lambda z: of_zone(d, z)))
        return case((datetimes.is_date(t, *types), parts))

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
    """Returns YEAR."""
    return _number(
        value,
        (*_CALENDAR, "gYear", "gYearMonth"),
        _from_day("year", "regexp_extract({}, '^-?[0-9]+', 0)"),
    )


def month(value: Scalar) -> Scalar:
    """Returns MONTH."""
    # --12 and --12-31, or 2026-12
    of_others = "if(startswith({0}, '--'), substring({0}, 3, 2), substring({0}, -2))"
    return _number(
        value, (*_CALENDAR, "gYearMonth", "gMonth", "gMonthDay"), _from_day("month", of_others)
    )


def day(value: Scalar) -> Scalar:
    """Returns DAY."""
    return _number(value, (*_CALENDAR, "gMonthDay", "gDay"), _from_day("day", "substring({}, -2)"))


def hours(value: Scalar) -> Scalar:
    """Returns HOURS."""
    return _number(
        value, _CLOCK, lambda _, form, __: f"replace(substring({_time(form)}, 1, 2), '24', '0')"
    )


def minutes(value: Scalar) -> Scalar:
    """Returns MINUTES."""
    return _number(value, _CLOCK, lambda _, form, __: f"substring({_time(form)}, 4, 2)")


def seconds(value: Scalar) -> Scalar:
    """Returns SECONDS, as a decimal of any length."""

    def of(_: str, form: str, __: str) -> str:
        number = f"substring({_time(form)}, 7)"
        whole = f"CAST(CAST(substring({number}, 1, 2) AS INT) AS STRING)"
        plain = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM concat({whole}, '.', substring({number}, 4))))"
        return typed(plain, "decimal")

    return Scalar(_with_form(value, _CLOCK, of))


def _time(form: str) -> str:
    return f"substring_index({form}, 'T', -1)"


def timezone(value: Scalar) -> Scalar:
    """Returns TIMEZONE, as an xsd:dayTimeDuration; without a time zone it is an error."""

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
    """Returns TZ: the time zone as it is written, empty if there is none."""
    return Scalar(_with_form(value, _ALL, lambda _, __, zone: zone), Type.STRING)

"""Converts between lexical forms of `xsd:dateTime` and whole microseconds since 1970 in UTC.

XML Schema 1.1 Part 2, section 3.3.7 (lexical space) and appendix E.3 (the time line): the calendar is Gregorian in all
years, and there is a year 0000. Times without a zone are not on the time line, and are not supported here.
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.rdf.terms.grammar import XSD

TYPES: Final = frozenset({f"{XSD}dateTime", f"{XSD}dateTimeStamp"})
"""The datatypes of times with a date, without brackets."""

_FORM: Final = re.compile(
    r"(-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T(?:([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:[.]([0-9]+))?|24:00:00(?:[.]0+)?)"
    r"(?:Z|([+-])(?:(0[0-9]|1[0-3]):([0-5][0-9])|(14):00))"
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097  # of 400 years
_TO_1970: Final = 719_468  # days from the 1st of March of the year 0


def microseconds_of_date_time(text: str) -> int | None:
    """The microseconds since 1970 in UTC of the lexical form of an xsd:dateTime, rounded down.

    Args:
        text: the lexical form.

    Returns:
        None if it is not an xsd:dateTime, has no time zone, or has a year of more than nine digits.

    >>> microseconds_of_date_time("1970-01-01T24:00:00Z"), microseconds_of_date_time("1970-01-01T01:00:00.5+01:00")
    (86400000000, 500000)
    >>> microseconds_of_date_time("1970-01-01T00:00:00"), microseconds_of_date_time("19700101T000000Z")
    (None, None)
    """
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if day > _DAYS[month - 1] and not (month == 2 and day == 29 and _is_leap(year)):
        return None
    hours, minutes, seconds = (
        (24, 0, 0) if match[4] is None else (int(match[4]), int(match[5]), int(match[6]))
    )
    if match[8]:
        ahead = int(match[9] or match[11]) * 60 + int(match[10] or 0)
        minutes += ahead if match[8] == "-" else -ahead
    fraction = int((match[7] or "")[:6].ljust(6, "0"))
    return (
        _days(year, month, day) * _DAY
        + ((hours * 60 + minutes) * 60 + seconds) * _SECOND
        + fraction
    )


def date_time_of(microseconds: int) -> str:
    """The canonical form of the xsd:dateTime in UTC at a number of microseconds since the beginning of 1970.

    >>> date_time_of(1_500_000), date_time_of(-62_167_219_200_000_001), date_time_of(253_402_300_800_000_000)
    ('1970-01-01T00:00:01.5Z', '-0001-12-31T23:59:59.999999Z', '10000-01-01T00:00:00Z')
    """
    days, rest = divmod(microseconds, _DAY)
    year, month, day = _date(days)
    seconds, fraction = divmod(rest, _SECOND)
    digits = f".{fraction:06}".rstrip("0").rstrip(".")
    sign = "-" if year < 0 else ""
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{clock}{digits}Z"


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % _CYCLE_YEARS == 0)


def _days(year: int, month: int, day: int) -> int:
    """The days since the 1st of January 1970. Years begin with March, so that the day of leap years is the last."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    cycle, year = divmod(year, _CYCLE_YEARS)
    return (
        cycle * _CYCLE_DAYS
        + year * 365
        + year // 4
        - year // 100
        + (153 * month + 2) // 5
        + day
        - 1
        - _TO_1970
    )


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day; the inverse of `_days`."""
    cycle, rest = divmod(days + _TO_1970, _CYCLE_DAYS)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return cycle * _CYCLE_YEARS + year + (month >= 10), month + 3 if month < 10 else month - 9, day

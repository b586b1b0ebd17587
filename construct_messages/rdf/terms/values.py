"""Converts values of Python, pyoxigraph and rdflib to terms, and terms to values of Python."""

from __future__ import annotations

import re
from typing import Any, Final

import pyoxigraph as ox

from construct_messages.errors import TermError, UsageError, shown
from construct_messages.rdf.terms.canonical import Term, literal
from construct_messages.rdf.terms.grammar import XSD
from construct_messages.rdf.terms.libraries import from_pyoxigraph, from_rdflib
from construct_messages.rdf.terms.natives import form_of, native
from construct_messages.rdf.terms.parsing import (
    is_literal,
    is_triple,
    literal_parts,
    parse_term,
    triple_parts,
)

# --- date times -----------------------------------------------------------------------------------
# Converts between lexical forms of `xsd:dateTime` and whole microseconds since 1970 in UTC.
#
# XML Schema 1.1 Part 2, section 3.3.7 (lexical space) and appendix E.3 (the time line): the calendar is Gregorian in
# all years, and there is a year 0000. Times without a zone are not on the time line, and are not supported here.

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
    """The microseconds since 1970 in UTC of the lexical form of an xsd:dateTime, rounded down. None if it is not an
    xsd:dateTime, has no time zone, or has a year of more than nine digits.

    >>> microseconds_of_date_time("1970-01-01T24:00:00Z"), microseconds_of_date_time("1970-01-01T01:00:00.5+01:00")
    (86400000000, 500000)
    >>> microseconds_of_date_time("1970-01-01T00:00:00"), microseconds_of_date_time("19700101T000000Z")
    (None, None)
    """
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if day > days_of_month(year, month):
        return None
    hours, minutes, seconds = (
        (24, 0, 0) if match[4] is None else (int(match[4]), int(match[5]), int(match[6]))
    )
    if match[8]:
        ahead = int(match[9] or match[11]) * 60 + int(match[10] or 0)
        minutes += ahead if match[8] == "-" else -ahead
    fraction = int((match[7] or "")[:6].ljust(6, "0"))
    return (
        days_of_date(year, month, day) * _DAY
        + ((hours * 60 + minutes) * 60 + seconds) * _SECOND
        + fraction
    )


def date_time_of(microseconds: int) -> str:
    """The canonical form of the xsd:dateTime in UTC at a number of microseconds since the beginning of 1970.

    >>> date_time_of(1_500_000), date_time_of(-62_167_219_200_000_001), date_time_of(253_402_300_800_000_000)
    ('1970-01-01T00:00:01.5Z', '-0001-12-31T23:59:59.999999Z', '10000-01-01T00:00:00Z')
    """
    days, rest = divmod(microseconds, _DAY)
    year, month, day = date_of_days(days)
    seconds, fraction = divmod(rest, _SECOND)
    digits = f".{fraction:06}".rstrip("0").rstrip(".")
    sign = "-" if year < 0 else ""
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{clock}{digits}Z"


def days_of_month(year: int, month: int) -> int:
    """The number of days of a month.

    >>> days_of_month(1900, 2), days_of_month(2000, 2)
    (28, 29)
    """
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % _CYCLE_YEARS == 0)
    return _DAYS[month - 1] + leap


def days_of_date(year: int, month: int, day: int) -> int:
    """The days since the 1st of January 1970, in the Gregorian calendar, which has a year 0."""
    # years begin with March, so that the day of leap years is the last
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


def date_of_days(days: int) -> tuple[int, int, int]:
    """Year, month and day; the inverse of `days_of_date`."""
    cycle, rest = divmod(days + _TO_1970, _CYCLE_DAYS)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return cycle * _CYCLE_YEARS + year + (month >= 10), month + 3 if month < 10 else month - 9, day


# --- values ---------------------------------------------------------------------------------------


def as_term(value: object) -> Term:
    """Converts a value of a caller to a term. `value`: N-Triples text, a term of pyoxigraph or rdflib, or a plain value
    of Python. A `str` is always N-Triples: `"42"` is an integer, `'"42"'` a string. A number, boolean, date, time or
    duration becomes a literal of its datatype.

    >>> as_term("42") == as_term(ox.Literal(42)) == as_term(42)
    True
    >>> as_term(0.5)
    '"0.5"^^<http://www.w3.org/2001/XMLSchema#double>'
    """
    if isinstance(value, (ox.NamedNode, ox.BlankNode, ox.Literal, ox.Triple)):
        return parse_term(from_pyoxigraph(value))  # it may have been parsed leniently
    if isinstance(value, str) and not _is_rdflib(value):
        return parse_term(value)
    if _is_rdflib(value):
        return from_rdflib(value)
    if form_of(value) is not None:
        return literal(value)
    raise UsageError(
        f"{value!r} is no term",
        hint='write it as in N-Triples: "<http://…>", \'"text"@en\' or "42"',
    )


def to_python(term: Term) -> Any:
    """Returns the value of a term.

    Args:
        term: an IRI, a literal, a blank node or a triple term.

    Returns:
        The characters of an IRI; the result of `natives.native` for a literal; the label of a blank node, with `_:`; a
            tuple of three values for a triple term. `literal_parts` has language and datatype.

    Raises:
        TermError: the literal has no value of its datatype, or one that Python's type cannot represent.

    >>> to_python(literal(5)), to_python(Term("<urn:x>")), to_python(literal("chat", language="fr"))
    (5, 'urn:x', 'chat')
    """
    if is_triple(term):
        return tuple(map(to_python, triple_parts(term)))
    if not is_literal(term):
        return term[1:-1] if term.startswith("<") else str(term)
    lexical, datatype, _, _ = literal_parts(term)
    try:
        return native(lexical, datatype)
    except (ValueError, OverflowError) as error:
        raise TermError(
            f"{shown(term)} has no value in Python: {error}",
            hint="use the characters: literal_parts(term)[0]",
        ) from error


def _is_rdflib(value: object) -> bool:
    # without importing rdflib, which is slow to import
    return any(kind.__module__ == "rdflib.term" for kind in type(value).__mro__)

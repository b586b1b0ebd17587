"""Durations: `PT15S` (XML Schema), `15s`, `2 minutes`, and plain numbers of milliseconds.

RSP-QL writes `xsd:dayTimeDuration`, C-SPARQL and CQELS a number and a unit; rsp-js and Janus milliseconds.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from construct_messages.query.syntax.reader import Reader, read
from construct_messages.query.tokens import Token, error, tokenize

_UNITS: Final = {
    unit: microseconds
    for microseconds, units in {
        Decimal("0.001"): ("NS", "NANOSECOND", "NANOSECONDS"),
        Decimal(1): ("US", "MICROSECOND", "MICROSECONDS"),
        Decimal(1_000): ("MS", "MSEC", "MILLISECOND", "MILLISECONDS"),
        Decimal(1_000_000): ("S", "SEC", "SECS", "SECOND", "SECONDS"),
        Decimal(60_000_000): ("M", "MIN", "MINS", "MINUTE", "MINUTES"),
        Decimal(3_600_000_000): ("H", "HOUR", "HOURS"),
        Decimal(86_400_000_000): ("D", "DAY", "DAYS"),
    }.items()
    for unit in units
}
_MILLISECOND: Final = Decimal(1_000)
_LEXICAL: Final = re.compile(
    r"P(?=.)(?:(?P<D>\d+)D)?(?:T(?=.)(?:(?P<H>\d+)H)?(?:(?P<M>\d+)M)?(?:(?P<S>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_DIGITS: Final = 20
_HINT: Final = "write it as in PT15S, 15s, 5m, 1h or 100ms"
_LONGEST: Final = Decimal(1 << 62)


def read_duration(cursor: Reader, *, zero: bool = False) -> int:
    """Takes a duration, in microseconds; a number without a unit counts milliseconds.

    Args:
        zero: whether it may be 0.

    Raises:
        Refused: there is none.
        QueryError: one of no fixed length (months and years), of less than a microsecond, or
            of more than 2^62 of them.
    """
    token = cursor.token
    if token.kind == "number" or token.text.isdigit():
        cursor.next()
        return _checked(cursor, token, _decimal(cursor, token) * _unit(cursor), zero=zero)
    if token.kind == "string":
        cursor.next()
        if cursor.take_mark("^^"):
            cursor.iri("a datatype")
        return _checked(
            cursor, token, _lexical(cursor, token, token.text.strip(token.text[0])), zero=zero
        )
    if token.keyword.startswith("P"):
        end = cursor.next().end
        # PT0.5S is read as several tokens
        while cursor.token.start == end and (
            cursor.token.is_mark(".") or cursor.token.kind in ("word", "number")
        ):
            end = cursor.next().end
        return _checked(
            cursor, token, _lexical(cursor, token, cursor.text[token.start : end]), zero=zero
        )
    raise cursor.expected("a duration", _HINT)


def duration(text: str, *, zero: bool = False) -> int:
    """Returns a whole text that is a duration with a unit, in microseconds.

    Args:
        text: the duration.
        zero: whether it may be 0.

    Raises:
        QueryError: it is none.

    >>> duration("60s"), duration("PT1M"), duration("1.5 hours")
    (60000000, 60000000, 5400000000)
    """
    cursor = Reader(text, tokenize(text))
    microseconds = read(lambda: read_duration(cursor, zero=zero), text)
    if cursor.token.text or text.strip()[-1].isdigit():
        expected = cursor.expected("a duration with its unit", _HINT)
        raise error(text, expected.offset, expected.message, _HINT)
    return microseconds


def _unit(cursor: Reader) -> Decimal:
    unit = _UNITS.get(cursor.token.keyword)
    if unit is None:
        return _MILLISECOND
    cursor.next()
    return unit


def _decimal(cursor: Reader, token: Token) -> Decimal:
    if "e" in token.text.lower() or len(token.text) > _DIGITS:
        raise error(cursor.text, token.start, f"{token.text[:80]} is no duration", _HINT)
    return Decimal(token.text)


def _lexical(cursor: Reader, token: Token, written: str) -> Decimal:
    match = _LEXICAL.fullmatch(written)
    if not match or any(len(part or "") > _DIGITS for part in match.groups()):
        hint = (
            "months and years have no fixed length: write days"
            if re.match(r"P\d+[YM]", written, re.I)
            else _HINT
        )
        raise error(
            cursor.text,
            token.start,
            f"{written[:80]} is no duration of days, hours, minutes and seconds",
            hint,
        )
    return sum(
        (Decimal(count) * _UNITS[unit] for unit, count in match.groupdict().items() if count),
        Decimal(0),
    )


def _checked(cursor: Reader, token: Token, microseconds: Decimal, *, zero: bool) -> int:
    if not (0 if zero else 1) <= microseconds <= _LONGEST:
        written = cursor.text[token.start : cursor.tokens[cursor.index - 1].end]
        what = "is too long" if microseconds > 1 else "is less than a microsecond"
        raise error(cursor.text, token.start, f"{written[:80]} {what}", _HINT)
    return int(microseconds)

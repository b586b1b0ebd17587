"""Compares the values by which members of event streams are ordered. No I/O.

XML Schema Definition Language 1.1, part 2: sections 3.3.7 (dateTime), 3.3.6 (duration), 3.3.3 (decimal).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, TypeAlias

from construct_messages.rdf.terms import XSD, Term, is_literal, literal_parts

Value: TypeAlias = tuple[int, Decimal | str]
"""The sort key of a literal or IRI: times, then numbers, then others (`OTHER`)."""

OTHER: Final = 2

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(\.\d{1,40})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_NUMBER: Final = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?", re.ASCII)
_TIMES: Final = {f"{XSD}dateTime", f"{XSD}dateTimeStamp", f"{XSD}date"}
_DURATION: Final = re.compile(
    r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?", re.ASCII
)


def value_of(term: Term) -> Value:
    """Returns the sort key of a literal or IRI among others of its kind. A time without a zone is interpreted as UTC.

    A string in the form of a time is one: many pages have bounds without a datatype.

    >>> from construct_messages.rdf.terms import literal
    >>> earlier = literal("2026-11-22T13:00:00.0001+02:00", datatype=f"{XSD}dateTime")
    >>> later = literal("2026-11-22T11:00:00.00010000001Z", datatype=f"{XSD}dateTime")
    >>> value_of(earlier) < value_of(later) < value_of(literal("7", datatype=f"{XSD}integer"))
    True
    """
    if not is_literal(term):
        return OTHER, term
    text, datatype, _, _ = literal_parts(term)
    if (datatype in _TIMES or (datatype is None and "T" in text)) and (
        match := _DATE_TIME.fullmatch(text.strip())
    ):
        date, time, fraction, zone = match.groups()
        try:
            read = datetime.fromisoformat(f"{date}T{time or '00:00:00'}{zone or 'Z'}")
            whole = (read - _EPOCH).total_seconds()
        except (ValueError, OverflowError):  # such as the 30th of February
            return OTHER, text
        return 0, Decimal(int(whole)) + Decimal(fraction or 0)
    if datatype is not None and _NUMBER.fullmatch(text.strip()):
        return 1, Decimal(text.strip())
    return OTHER, text


def seconds_of(term: Term) -> float | None:
    """Returns a duration in seconds, from a duration or a number of seconds; None: neither.

    >>> from construct_messages.rdf.terms import literal
    >>> seconds_of(literal("PT1M30S", datatype=f"{XSD}duration")), seconds_of(literal("soon"))
    (90.0, None)
    """
    text = literal_parts(term)[0].strip() if is_literal(term) else ""
    if _NUMBER.fullmatch(text):
        return float(text)
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds

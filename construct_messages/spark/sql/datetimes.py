"""SQL over dates and times: which terms are dates and times, and their place on the time line.

SPARQL 1.1 Query, section 17.3; XML Schema 1.1 Part 2, sections 3.3.7 to 3.3.14 and appendix D. The values of all date
types are points of one time line, compared by whole seconds and the digits after them, which are not cut to
microseconds. A value without a time zone compares with one that has a zone only if they are more than 14 hours apart;
otherwise the comparison is an error, and never assumes the session's time zone or UTC. Values are compared in
`comparisons`; durations and arithmetic are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from construct_messages.rdf.errors import ValueOutOfRange
from construct_messages.rdf.terms import XSD, Term
from construct_messages.spark.sql.term_parts import digits, has_form
from construct_messages.spark.sql.values import fail

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
    """Returns SQL that tests whether a term is a date or time of one of some types, named locally; of any if none is
    named.
    """
    return has_form(term, {type: _TYPES[type] for type in types or _TYPES})


def has_type(term: str) -> str:
    """Returns SQL that tests whether a literal has one of the types, in any form; faster than `is_date`."""
    return f"({term} RLIKE '#({'|'.join(_TYPES)})>$')"


def zone(digits: str) -> str:
    """Returns SQL of the time zone at the end of a lexical form; empty if there is none.

    >>> print(zone("d"))
    regexp_extract(d, '(Z|[+-][0-9]{2}:[0-9]{2})$', 1)
    """
    return f"regexp_extract({digits}, '{_ANY_ZONE}$', 1)"


@dataclass(frozen=True)
class Point:
    """SQL of a position on the time line, in UTC; a value without a zone is read as UTC.

    Args:
        type: its type; a dateTimeStamp is a dateTime.
        zoned: whether it has a time zone.
        seconds: since 1970, whole, as DOUBLE.
        fraction: the digits after the seconds, without trailing zeros.
    """

    type: str
    zoned: str
    seconds: str
    fraction: str


def point(term: str, *, beyond: str | None = None) -> Point:
    """Returns SQL of the position on the time line of a term that `is_date`; undefined for other terms.

    Args:
        beyond: SQL of the seconds of a year beyond those of Spark's timestamps, instead of the error.

    Raises (in the job):
        ValueOutOfRange: a year beyond those of Spark's timestamps.
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
    """Returns the `Point` of a constant; None unless it is a date or dateTime of a usual year.

    >>> from construct_messages.rdf.terms import literal
    >>> constant_point(literal("1970-01-02Z", datatype=XSD + "date"))
    Point(type="'date'", zoned='true', seconds='86400D', fraction="''")
    """
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

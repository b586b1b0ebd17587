"""SQL over dates and times: which terms they are, and how they compare.

SPARQL 1.1 Query, section 17.3; XML Schema 1.1 Part 2, sections 3.3.7 to 3.3.14 and appendix D. The types of dates all
are points of one time line, compared by whole seconds and the digits behind them: nothing is cut to microseconds. A
value without a time zone compares with one that has a zone only if they are more than 14 hours apart; nearer it is an
error, never as if the session's time zone, or UTC, were meant. Durations and arithmetic are not here.
"""

from __future__ import annotations

from typing import Final

from construct_messages.errors import ValueOutOfRange
from construct_messages.spark.values import any_of, case, digits, fail, let, literal, xsd_type

_YEAR: Final = "-?([1-9][0-9]{3,}|0[0-9]{3})"
_MONTH: Final = "(0[1-9]|1[0-2])"
_DAY: Final = "(0[1-9]|[12][0-9]|3[01])"
_TIME: Final = "(([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]+)?|24:00:00([.]0+)?)"
_ZONE: Final = "(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"

# for each type: its lexical space but for the zone, and SQL of a dateTime for SQL of such a form without a zone; parts
# that a type has not are the same in all of its values
_TYPES: Final = {
    "dateTime": (f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}", "{}"),
    "dateTimeStamp": (f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}", "{}"),
    "date": (f"{_YEAR}-{_MONTH}-{_DAY}", "concat({}, 'T00:00:00')"),
    "time": (_TIME, "concat('1972-12-31T', {})"),
    "gYearMonth": (f"{_YEAR}-{_MONTH}", "concat({}, '-01T00:00:00')"),
    "gYear": (_YEAR, "concat({}, '-01-01T00:00:00')"),
    "gMonthDay": (f"--{_MONTH}-{_DAY}", "concat('1972', substring({}, 2), 'T00:00:00')"),
    "gDay": (f"---{_DAY}", "concat('1972-12', substring({}, 3), 'T00:00:00')"),
    "gMonth": (f"--{_MONTH}", "concat('1972', substring({}, 2), '-01T00:00:00')"),
}


def zone(digits: str) -> str:
    """SQL: the time zone that a lexical form ends with, or nothing.

    >>> print(zone("d"))
    regexp_extract(d, '(Z|[+-][0-9]{2}:[0-9]{2})$', 1)
    """
    return f"regexp_extract({digits}, '(Z|[+-][0-9]{{2}}:[0-9]{{2}})$', 1)"


def point(term: str) -> str:
    """SQL: where a term is on the time line: STRUCT<type, zoned, at: STRUCT<seconds, fraction>>.

    NULL unless it is a date or time; `at` is in UTC, as a value without zone is if it is read so.

    Raises (in the job):
        ValueOutOfRange: a year of more than six digits.
    """

    def of_form(t: str, d: str, z: str) -> str:
        forms = []
        for name, (form, template) in _TYPES.items():
            pattern = literal(f"^{form}{_ZONE}{'' if name == 'dateTimeStamp' else '?'}$")
            form = template.format(f"substring({d}, 1, length({d}) - length({z}))")
            forms.append((f"{xsd_type(t)} = '{name}>' AND {d} RLIKE {pattern}", form))
        type = f"replace({xsd_type(t)}, 'Stamp', '')"
        return let(case(*forms), lambda form: _point(type, form, z))

    def of_term(t: str) -> str:
        value = let(digits(t), lambda d: let(zone(d), lambda z: of_form(t, d, z)))
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


def compare(operator: str, left: str, right: str) -> str:
    """SQL: whether `=`, `<` or `<=` holds; NULL where it is undecided, and unless both terms are of one type."""

    def compared(p: str, q: str) -> str:
        before, after = f"{_later(p)} < {q}.at", f"{_later(q)} < {p}.at"
        return case(
            (f"coalesce({p}.type <> {q}.type, true)", "CAST(NULL AS BOOLEAN)"),
            (f"{p}.zoned = {q}.zoned", f"{p}.at {operator} {q}.at"),
            *([(f"{before} OR {after}", "false")] if operator == "=" else [(before, "true"), (after, "false")]),
        )

    return let(point(left), lambda p: let(point(right), lambda q: compared(p, q)))


def _later(point: str) -> str:
    """By 14 hours, the farthest that a time zone is from UTC."""
    return f"named_struct('seconds', {point}.at.seconds + 50400, 'fraction', {point}.at.fraction)"

"""The values of continuous queries: windows over streams, and the selection of answers.

The names are those of RSP-QL (https://streamreasoning.org/RSP-QL/). Times are whole microseconds. No text is read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, Flag
from functools import lru_cache
from typing import Final, TypeAlias

from construct_messages.query.syntax.triples import Reader, read
from construct_messages.query.tokens import Token, error, tokenize

# --- durations ------------------------------------------------------------------------------------
# Durations: `PT15S` (XML Schema), `15s`, `2 minutes`, and plain numbers of milliseconds.
#
# RSP-QL writes `xsd:dayTimeDuration`, C-SPARQL and CQELS a number and a unit; rsp-js and Janus milliseconds.

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

    Months and years have no fixed length, and are refused.
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


# --- values ---------------------------------------------------------------------------------------

CM: Final = "https://w3id.org/construct-messages#"

WINDOWS_GRAPH: Final = "urn:construct-messages:windows"
"""The name, without brackets, of the graph that lists the graphs of each window."""

MEMBER: Final = f"{CM}member"
"""The predicate, without brackets, between a window and the graphs that `GRAPH` sees in it."""

STATIC: Final = "urn:construct-messages:static"
"""The subject, without brackets, of `MEMBER` for the named graphs that `GRAPH` sees outside of windows."""

TIMESTAMP: Final = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"
"""C-SPARQL's function for the time of a triple, without brackets."""

WINDOW_NAMES: Final = "urn:construct-messages:window:"
"""The beginning of the IRI of a window without an absolute IRI in the text."""

STREAM_NAMES: Final = "urn:construct-messages:stream:"
"""The beginning of the IRI of a stream that needs an absolute IRI, and has none in the text."""


def is_relative(name: str) -> bool:
    """Whether a name has no scheme.

    >>> is_relative("stream/1?at=10:00"), is_relative("urn:a")
    (True, False)
    """
    scheme, colon, _ = name.partition(":")
    return not (
        colon
        and scheme[:1].isalpha()
        and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()
    )


@lru_cache(maxsize=256)  # of streams, for each of their elements
def absolute(name: str, below: str) -> str:
    """A name as an IRI, without brackets. `below` begins the IRI of a name without one.

    >>> absolute("urn:a", STREAM_NAMES), absolute("a", STREAM_NAMES)
    ('urn:a', 'urn:construct-messages:stream:a')
    """
    return below + name if is_relative(name) else name


def written(window: str) -> str:
    """The name of a window, as a query writes it.

    >>> written("urn:w"), written(f"{WINDOW_NAMES}w"), written(f"{WINDOW_NAMES}:w")
    ('<urn:w>', '<w>', ':w')
    """
    name = window.removeprefix(WINDOW_NAMES)
    return name if name.startswith(":") else f"<{name}>"


class Operator(Enum):
    """The solutions of an evaluation to return, compared with those of the previous one (R2S)."""

    ISTREAM = "ISTREAM"
    """The new solutions."""
    DSTREAM = "DSTREAM"
    """The removed solutions."""
    RSTREAM = "RSTREAM"
    """All solutions."""


class Report(Enum):
    """The report policy of a window (SECRET), if the text names one."""

    WINDOW_CLOSE = "ON_WINDOW_CLOSE"
    CONTENT_CHANGE = "ON_CONTENT_CHANGE"
    NON_EMPTY_CONTENT = "NON_EMPTY_CONTENT"
    PERIODIC = "PERIODIC"


class Needs(Flag):
    """The graphs of a window that a query can read; the others need not be built."""

    NOTHING = 0
    UNION = 1
    """The graph with the name of the window: all its triples."""
    MEMBERS = 2
    """The graphs of single messages, and the triples of `WINDOWS_GRAPH` about them."""
    CONTEXT = 4
    """The message context triples: time, sequence, stream and named graphs of each message."""
    GRAPHS = 8
    """The named graphs of messages under their own names, for GRAPH outside of windows."""


@dataclass(frozen=True)
class TimeWindow:
    """A window by time."""

    name: str  # its IRI, without brackets
    # the IRI of the stream, without brackets; the name in the text if there is no IRI; or the variable, with its `?`,
    # for a stream that is passed with the query
    stream: str
    # its width in microseconds; 0 is `[NOW]`, the messages of one instant; None is `[ALL]`, everything since the query
    # began
    range: int | None
    # microseconds from one window to the next; 0 if the text has none: the window ends at each message
    step: int


@dataclass(frozen=True)
class CountWindow:
    """A window of the last messages."""

    name: str  # its IRI, without brackets
    stream: str  # see `TimeWindow`
    count: int  # how many messages it holds, at least 1
    step: int  # the number of messages between two evaluations, at least 1


Window: TypeAlias = TimeWindow | CountWindow


@dataclass(frozen=True)
class ContinuousQuery:
    """A continuous query, taken apart."""

    output: str | None  # the IRI of the output in REGISTER, without brackets; None if there is none
    # selects the solutions to return. Where the text names none: ISTREAM without windows and in CQELS, else RSTREAM
    operator: Operator
    # in the order of their declaration; empty for a query over sources, or over one message at a time
    windows: tuple[Window, ...]
    # SPARQL, without the clauses of streams. `WINDOW <w> { … }` is `GRAPH <w> { … }`; GRAPH within it matches the
    # members of the window, by `WINDOWS_GRAPH`; all other text is the user's
    query: str
    # the graphs that the query can read of each window, by the window's name
    needs: Mapping[str, Needs] = field(default_factory=dict)
    # names of windows whose triples are in the default graph, too, as in C-SPARQL
    default: tuple[str, ...] = ()
    # the IRIs after FROM, which name static data; empty: all static data
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()  # the IRIs after FROM NAMED
    every: int | None = None  # COMPUTED EVERY, in microseconds; None without such a clause
    report: Report | None = None  # the report policy; None if the text has none

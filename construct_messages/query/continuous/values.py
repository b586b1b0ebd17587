"""The values of continuous queries: windows over streams, and the selection of answers.

The names are those of RSP-QL (https://streamreasoning.org/RSP-QL/). Times are whole microseconds. No text is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag
from functools import lru_cache
from typing import Final, TypeAlias

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
    """A name as an IRI, without brackets.

    Args:
        name: an absolute IRI, or the name in the text if there is none.
        below: the beginning of the IRI in the latter case.

    >>> absolute("urn:a", STREAM_NAMES), absolute("a", STREAM_NAMES)
    ('urn:a', 'urn:construct-messages:stream:a')
    """
    return below + name if is_relative(name) else name


def written(window: str) -> str:
    """The name of a window, as a query writes it.

    Args:
        window: its IRI, without brackets.

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
    """A window by time.

    Args:
        name: its IRI, without brackets.
        stream: the IRI of the stream, without brackets; the name in the text if there is no IRI; or the variable, with
            its `?`, for a stream that is passed with the query.
        range: its width in microseconds; 0 is `[NOW]`, the messages of one instant; None is `[ALL]`, everything since
            the query began.
        step: microseconds from one window to the next; 0 if the text has none: the window ends at each message.
    """

    name: str
    stream: str
    range: int | None
    step: int


@dataclass(frozen=True)
class CountWindow:
    """A window of the last messages.

    Args:
        name: its IRI, without brackets.
        stream: see `TimeWindow`.
        count: how many messages it holds, at least 1.
        step: the number of messages between two evaluations, at least 1.
    """

    name: str
    stream: str
    count: int
    step: int


Window: TypeAlias = TimeWindow | CountWindow


@dataclass(frozen=True)
class ContinuousQuery:
    """A continuous query, taken apart.

    Args:
        output: the IRI of the output in REGISTER, without brackets; None if there is none.
        operator: selects the solutions to return. Where the text names none: ISTREAM without windows and in CQELS, else
            RSTREAM.
        windows: in the order of their declaration; empty for a query over sources, or over one message at a time.
        query: SPARQL, without the clauses of streams. `WINDOW <w> { … }` is `GRAPH <w> { … }`; GRAPH within it matches
            the members of the window, by `WINDOWS_GRAPH`; all other text is the user's.
        needs: the graphs that the query can read of each window, by the window's name.
        default: names of windows whose triples are in the default graph, too, as in C-SPARQL.
        default_graphs: the IRIs after FROM, which name static data; empty: all static data.
        named_graphs: the IRIs after FROM NAMED.
        every: COMPUTED EVERY, in microseconds; None without such a clause.
        report: the report policy; None if the text has none.
    """

    output: str | None
    operator: Operator
    windows: tuple[Window, ...]
    query: str
    needs: Mapping[str, Needs] = field(default_factory=dict)
    default: tuple[str, ...] = ()
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    every: int | None = None
    report: Report | None = None

"""Windows over streams: their bounds, their contents, and the times of their evaluation. Arithmetic only.

RSP-QL (Dell'Aglio et al. 2014) for windows by time, SECRET (Botan et al. 2010) for report policies. Time is the time of
elements, in whole microseconds; no clock, no store and no SPARQL here.

An *instant* is between two microseconds: at instant b, everything earlier than b has happened. At b, a window by time
holds the elements that are not older than `first(b)`. Windows of both bounds are half open in these terms: (o, c] is
[o+1, c+1).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import QueryError, UsageError
from construct_messages.query.continuous.values import ContinuousQuery, CountWindow, Report, Window
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.arguments import checked_fields
from construct_messages.rdf.options import UNION
from construct_messages.rdf.terms.values import TYPES, microseconds_of_date_time
from construct_messages.sparql.engine import StoreQuery
from construct_messages.streams.element import Element, generated_at

# --- event time -----------------------------------------------------------------------------------
# The time of an element: when it was committed, or a time in its message.
#
# A time is an xsd:dateTime with a zone; several forms of one instant are one time. No windows here.

_IRI: Final = re.compile(r"<[^<>\"{}|^`\\\x00-\x20]*>")
_TYPES: Final = b"|".join(re.escape(f"<{name}>".encode()) for name in sorted(TYPES))
_TIME: Final = rb'^\S+ %%s "([^"\\\r\n]*)"\^\^(?:%s)(?: \S+)? \.\r?$' % _TYPES

ARRIVAL = "arrival"
GENERATED = "generated"

TimeOf: TypeAlias = Callable[[Element], int | None]
"""A function for the time of an element, in microseconds since 1970 in UTC; None if it has none, or several."""


def time_of(time: str, query: str) -> TimeOf:
    """Returns a function for the time of elements, see `WindowOptions.time`; prefixes of `query` apply to its path.


    >>> quad = b'<urn:o> <urn:at> "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    >>> element = Element("s", 1, 7, quad)
    >>> time_of("arrival", "")(element), time_of("<urn:at>", "")(element), time_of("<urn:seen>/<urn:at>", "")(element)
    (7, 1000000, None)
    """
    if time == ARRIVAL:
        return _arrival
    if time == GENERATED:
        return _generated
    return _Path(time, query)


def _arrival(element: Element) -> int:
    return element.microseconds


def _generated(element: Element) -> int | None:
    text = element.generated or generated_at(element.message)
    return None if text is None else microseconds_of_date_time(text)


class _Path:
    """Finds the only time at the end of a property path from any node of a message, in any of its graphs.

    If the path is an IRI, most messages need no store, which would take twenty times as long.
    """

    def __init__(self, path: str, query: str) -> None:
        self._name, self._times = path.encode(), None
        if _IRI.fullmatch(path):
            self._times = re.compile(_TIME % re.escape(path).encode(), re.MULTILINE).findall
        self._query = StoreQuery(
            f"{_prologue(query)} SELECT DISTINCT ?time {{ ?node ({path}) ?time }}"
        )
        try:
            self._query.begin(ox.Store())
        except SyntaxError as error:
            raise UsageError(
                f"time={path!r} is not a property path: {error}",
                hint='use "arrival", "generated" or a path, such as <http://www.w3.org/ns/sosa/resultTime>',
            ) from error

    def __call__(self, element: Element) -> int | None:
        if self._times is not None:
            texts = self._times(element.nquads)
            if len(texts) == element.nquads.count(self._name):
                times = {microseconds_of_date_time(text.decode()) for text in texts}
                return times.pop() if len(times) == 1 else None
        return self._asked(element)

    def _asked(self, element: Element) -> int | None:
        """Finds the time by a query."""
        store = ox.Store()
        store.load(element.nquads, format=ox.RdfFormat.N_QUADS, lenient=True)
        instants: set[int | None] = set()
        for row in self._query.begin(store, (UNION,)):  # type: ignore[union-attr] # a SELECT
            time = row["time"]
            is_time = isinstance(time, ox.Literal) and time.datatype.value in TYPES
            instants.add(microseconds_of_date_time(time.value) if is_time else None)
            if len(instants) > 1:
                return None
        return instants.pop() if instants else None


def _prologue(query: str) -> str:
    """The declarations of a query, without comments."""
    declared: list[str] = []
    try:
        tokens = QueryText.of(query).tokens
    except QueryError:
        return ""
    for index, token in enumerate(tokens):
        if token.keyword in ("CONSTRUCT", "SELECT"):
            break
        declared.append(tokens[index].text)
    return " ".join(declared)


# --- windows --------------------------------------------------------------------------------------

EVERYTHING: Final = -(1 << 80)
"""A key before all others."""


class Bounds(Enum):
    """The end of a window by time that belongs to it.

    >>> Bounds("(o,c]") is Bounds.OPEN_CLOSED
    True
    """

    OPEN_CLOSED = "(o,c]"
    """The end, as in RSP-QL."""
    CLOSED_OPEN = "[o,c)"
    """The beginning, as in most engines."""


class Compared(Enum):
    """The parts of solutions that ISTREAM and DSTREAM compare.

    >>> Compared("template") is Compared.TEMPLATE
    True
    """

    SOLUTIONS = "solutions"
    """The values of all variables, as in RSP-QL."""
    TEMPLATE = "template"
    """The values of the variables of the template."""


@checked_fields
@dataclass(frozen=True)
class WindowOptions:
    """The options for windows that are not in the query.

    Args:
        time: the time of an element: `"arrival"`, the time of its commit; `"generated"`, the publisher's time; or a
            property path of SPARQL, with the prefixes of the query, from any node of the message to an xsd:dateTime
            with a time zone.
        lateness: the maximal number of microseconds by which an element may be earlier than the newest of its stream.
            Results are delayed by this time.
        bounds: the bounds of windows by time.
        origin: a time, in microseconds since 1970 in UTC, at which a window by time ends; others end a whole number of
            steps before and after it.
        report: the report policy; None: the policy of the query, or else when a window closes.
        every: the period in microseconds, for `Report.PERIODIC`; None: the period of the query.
        empty: also return firings without messages.
        max_ahead: the maximal number of microseconds by which the time of an element may be later than its arrival;
            None: no limit. An element that is dated further ahead enters no window, so that one wrong clock does not
            make all other elements late.
        compare: the parts of solutions that ISTREAM and DSTREAM compare.

    Raises:
        UsageError: a negative lateness or max_ahead, or a period below 1.

    >>> WindowOptions(time="generated", lateness=5_000_000).bounds.value
    '(o,c]'
    """

    time: str = "arrival"
    lateness: int = 0
    bounds: Bounds = Bounds.OPEN_CLOSED
    origin: int = 0
    report: Report | None = None
    every: int | None = None
    empty: bool = False
    compare: Compared = Compared.SOLUTIONS
    # not in `repr`, whose digest is in saved states: these contain the dropped elements
    max_ahead: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("lateness", self.lateness), ("max_ahead", self.max_ahead)):
            if value is not None and value < 0:
                raise UsageError(f"{name}={value} is negative", hint="use microseconds, 0 or more")
        if self.every is not None and self.every < 1:
            raise UsageError(
                f"every={self.every} is not a period", hint="use microseconds, 1 or more"
            )

    def policy_of(self, query: ContinuousQuery) -> tuple[Report, int | None]:
        """Returns the report policy of a query, and its period if it is periodic.

        Raises:
            UsageError: periodic without a period.
        """
        every = self.every or query.every
        report = self.report or query.report or (Report.PERIODIC if every else Report.WINDOW_CLOSE)
        if report is Report.PERIODIC and every is None:
            raise UsageError(
                "the report policy is periodic, and there is no period",
                hint="give every=microseconds",
            )
        return report, every


@dataclass(frozen=True)
class Grid:
    """Instants at equal distances; `origin` is one of them.


    >>> grid = Grid(1, 10)
    >>> grid.after(0), grid.after(1), grid.not_before(1), grid.not_after(10)
    (1, 11, 1, 1)
    """

    origin: int
    step: int

    def after(self, instant: int) -> int:
        """Returns the first one after an instant."""
        return instant + self.step - (instant - self.origin) % self.step

    def not_before(self, instant: int) -> int:
        """Returns the first one at or after an instant."""
        return instant + (self.origin - instant) % self.step

    def not_after(self, instant: int) -> int:
        """Returns the last one at or before an instant."""
        return instant - (instant - self.origin) % self.step


@dataclass(frozen=True)
class Extent:
    """The contents of a window. Elements have keys: times, or their numbers in the stream, from 0.

    A *place* in the stream is an instant, or the number of elements so far.

    Args:
        width: the number of keys that it holds; None: all.
        grid: the places where it closes; None: it ends at each element.
        by_count: whether keys are numbers.

    >>> tumbling = Extent(10, Grid(0, 10), by_count=False)
    >>> tumbling.first(20), tumbling.first(21), tumbling.loss(15), tumbling.close_after(15)
    (10, 20, 21, 20)
    """

    width: int | None
    grid: Grid | None
    by_count: bool

    @classmethod
    def of(cls, window: Window, options: WindowOptions) -> Extent:
        """Creates the extent of a window."""
        if isinstance(window, CountWindow):
            if window.count < 1 or window.step < 1:
                raise UsageError(
                    f"the window {window.name} has {window.count} messages and the step {window.step}"
                )
            return cls(window.count, Grid(0, window.step), by_count=True)
        if window.step < 0 or (window.range is not None and window.range < 0):
            raise UsageError(
                f"the window {window.name} has the range {window.range} and the step {window.step}"
            )
        grid = (
            Grid(first_instant(options.origin, options.bounds), window.step)
            if window.step
            else None
        )
        # [NOW] holds the elements with the latest time
        return cls(1 if window.range == 0 else window.range, grid, by_count=False)

    def first(self, place: int) -> int:
        """Returns the lowest key that it holds at a place."""
        if self.width is None:
            return EVERYTHING
        return (self.grid.not_before(place) if self.grid else place) - self.width

    @property
    def empties(self) -> bool:
        """Whether elements leave it as time passes."""
        return self.width is not None and not self.by_count

    @property
    def has_gaps(self) -> bool:
        """Whether there are elements between two windows."""
        return self.grid is not None and self.width is not None and self.width < self.grid.step

    def loss(self, key: int) -> int | None:
        """Returns the instant at which it no longer holds a key; None: keys do not leave by time alone."""
        if self.width is None or self.by_count:
            return None
        end = key + self.width
        return (self.grid.not_after(end) if self.grid else end) + 1

    def close_after(self, instant: int) -> int | None:
        """Returns the instant at which it closes next; None: it does not close by time alone."""
        return None if self.grid is None or self.by_count else self.grid.after(instant)

    def closes_with(self, count: int) -> bool:
        """Whether the element with a number closes it."""
        return self.grid is None or (self.by_count and self.grid.not_after(count) == count)


def first_instant(time: int, bounds: Bounds) -> int:
    """Returns the instant at which a window with this end closes."""
    return time + (bounds is Bounds.OPEN_CLOSED)

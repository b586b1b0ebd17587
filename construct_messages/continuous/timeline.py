"""The order of events: elements enter and leave windows, and queries are evaluated, as time passes.

Time passes with elements (and with `advance`), never by itself. Elements may arrive out of order; they are held until
the watermark guarantees that no earlier ones can arrive. Nothing is evaluated here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from construct_messages.continuous.windows import (
    EVERYTHING,
    Bounds,
    Extent,
    Grid,
    WindowOptions,
    first_instant,
)
from construct_messages.query.continuous.values import Report

T = TypeVar("T")

_LAST: Final = 1 << 80
"""A time after all others: the time of streams that have ended."""


class Fired(NamedTuple):
    """The query is to be evaluated; `changed`: a window has changed since the previous evaluation."""

    time: int
    changed: bool


Change: TypeAlias = Callable[[int, T], None]
"""Called with the number of a window, and with the element that enters or leaves it."""


_Pending: TypeAlias = tuple[int, int, int, T]
"""The time of an element, the number of its stream, its sequence, and the form that enters windows."""

_Held: TypeAlias = tuple[int, int, T]
"""The key of an element in a window, its sequence, and the form that enters windows."""


class _Stream:
    """The state of a stream."""

    def __init__(self) -> None:
        self.newest = EVERYTHING
        self.floor = EVERYTHING
        self.count = 0  # of the released elements
        self.ended = False
        self.idle = False  # does not hold back the others


class _Window:
    """The elements of a window, oldest first: those of the last evaluation, then those that have entered since."""

    def __init__(self, stream: int, extent: Extent, *, closes: bool) -> None:
        self.stream, self.extent = stream, extent
        self.by_count, self.has_gaps = extent.by_count, extent.has_gaps
        self.closes_by_element = closes and (extent.by_count or extent.grid is None)
        self.held = deque[_Held[Any]]()
        self.first = EVERYTHING  # the lowest key in it at the last evaluation
        self.entered = 0  # since the last evaluation

    @property
    def numbers(self) -> dict[str, int] | None:
        """The numbers of its elements, by sequence, if they do not follow from the held elements."""
        if self.extent.by_count and self.extent.has_gaps:
            return {str(sequence): key for key, sequence, _ in self.held}
        return None


class Timeline(Generic[T]):
    """Generates the events of some windows, in order.

    Elements enter and leave windows by calls; `next_evaluation` returns when the query is to be evaluated.

    Args:
        windows: the number of its stream, and the extent, of each window.
        streams: the number of streams.
        report: when windows are evaluated.
        every: the period of periodic reports.
        options: see `WindowOptions`.
        enter: called with each element that enters a window.
        leave: called with each element that leaves a window.

    Attributes:
        quiet: set by the caller after each evaluation: whether another evaluation of the same contents would return
            nothing, so that it may be skipped.
    """

    def __init__(
        self,
        windows: Sequence[tuple[int, Extent]],
        streams: int,
        report: Report,
        every: int | None,
        options: WindowOptions,
        enter: Change[T],
        leave: Change[T],
    ) -> None:
        self._enter, self._leave = enter, leave
        self._report = report
        self._fires_at_closes = report in (Report.WINDOW_CLOSE, Report.NON_EMPTY_CONTENT)
        self._fires_at_changes = report is Report.CONTENT_CHANGE
        self._windows = [_Window(*window, closes=self._fires_at_closes) for window in windows]
        self._streams = [_Stream() for _ in range(streams)]
        self._of_stream = [
            [
                (number, window)
                for number, window in enumerate(self._windows)
                if window.stream == stream
            ]
            for stream in range(streams)
        ]
        self._instants = self._grids(every, options)
        # the first instant after a position at which a window closes, or a period ends; `_LAST` if there is none. Most
        # queries have one grid; to take the minimum of one would cost an element a tenth of its time
        self._close_after: Callable[[int], int] = (
            self._instants[0].after if len(self._instants) == 1 else self._first_close_after
        )
        self._lateness = options.lateness
        # an element leaves within a microsecond, a window closes at its end or beginning
        within = self._fires_at_changes or options.bounds is Bounds.OPEN_CLOSED
        self._end_of_close = 1 if within else 0
        self._pending: list[_Pending[T]] = []
        self._position: int | None = None  # the instants up to it are processed
        self._floor = EVERYTHING
        self._watermark: int | None = None  # of all streams, if it is known
        self._changed = True  # since the last evaluation
        self._evaluated = False
        self.quiet = False

    def watermark_of(self, stream: int | None = None) -> int:
        """The time before which no element of one stream, or of any, will arrive."""
        if stream is None and self._watermark is not None:
            return self._watermark
        streams = self._streams if stream is None else self._streams[stream : stream + 1]
        reached = [max(each.newest - self._lateness, each.floor) for each in streams]
        live = [
            time
            for time, each in zip(reached, streams, strict=True)
            if not each.ended and (stream is not None or not each.idle)
        ]
        # where all are idle, time has passed in one of them, and none waits for another
        end = _LAST if all(each.ended for each in streams) else max(reached)
        found = max(self._floor, min(live, default=end))
        if stream is None:
            self._watermark = found
        return found

    def offer(self, stream: int, time: int, sequence: int, element: T) -> None:
        """Takes an element of a stream, not before the watermark; `next_evaluation` lets it enter windows."""
        state = self._streams[stream]
        if state.idle:
            self._set_idle(state, idle=False)
        if time > state.newest:
            state.newest, self._watermark = time, None
            if len(self._streams) == 1:  # what `watermark_of` computes
                self._watermark = max(time - self._lateness, state.floor, self._floor)
        heappush(self._pending, (time, stream, sequence, element))

    def advance(self, time: int, stream: int | None = None) -> None:
        """Declares that no element earlier than a time will arrive, of one stream or of all."""
        self._watermark = None
        if stream is None:
            self._floor = max(self._floor, time)
        else:
            state = self._streams[stream]
            if state.idle and time > self.watermark_of():
                self._set_idle(state, idle=False)
            state.floor = max(state.floor, time)

    def begin(self, instant: int) -> None:
        """Begins at an instant: nothing is evaluated at it or before."""
        self._position = instant

    def idle(self, stream: int) -> None:
        """Declares that a stream is silent: the others do not wait for it until its next element, or time."""
        self._set_idle(self._streams[stream], idle=True)

    def _set_idle(self, state: _Stream, *, idle: bool) -> None:
        self._floor = max(self._floor, self.watermark_of())  # time does not go back
        state.idle, self._watermark = idle, None

    def end(self, stream: int) -> None:
        """Declares that a stream has ended."""
        self._streams[stream].ended, self._watermark = True, None

    def next_evaluation(self) -> Fired | None:
        """Lets elements enter and leave windows up to the next evaluation, and returns it; None: there is none before
        the watermark, or after the end of all streams, none in which the windows hold new elements.

        Windows by count that are not full then close, too, before time passes.
        """
        pending, limit = self._pending, self.watermark_of()
        while True:
            # Time goes from the position to the next released element, or to the watermark if there is none. Instants
            # on this way at which windows close come first, even that of the element itself: it belongs to the next
            # windows. (With the bounds (o,c], these instants are a microsecond after the end of a window.)
            released = pending[0] if pending and pending[0][0] <= limit else None
            if limit == _LAST and released is None and self._is_partial():
                # all streams have ended, and no further element will fill this window
                assert self._position is not None  # an element has entered
                end = max(self._position, *(stream.newest + 1 for stream in self._streams))
                self._position = end
                return self._fire(end, end - 1)
            if self._position is not None:
                if released is not None:
                    until = released[0]
                elif limit < _LAST:
                    until = limit
                else:
                    until = self._last_instant()  # or windows would close for ever
                if until > self._position:
                    instant = self._next_instant(until)
                    if instant is not None:
                        self._position = instant
                        return self._fire(instant, instant - self._end_of_close)
                    self._position = until
            if released is None:
                return None
            # the elements of one time enter one by one; `CONTENT_CHANGE` evaluates after each of them
            heappop(pending)
            time = released[0]
            if self._position is None:
                self._position = time
            if self._release(released):
                return self._fire(time + 1, time)

    def _is_partial(self) -> bool:
        """Whether a window by count that was not full has elements that were in no evaluation."""
        return self._fires_at_closes and any(
            window.by_count and window.entered for window in self._windows
        )

    def _release(self, released: _Pending[T]) -> bool:
        """Lets an element enter the windows on its stream; returns whether the query is to be evaluated after it."""
        time, number_of_stream, sequence, element = released
        stream = self._streams[number_of_stream]
        stream.count += 1
        fires = False
        for number, window in self._of_stream[number_of_stream]:
            key = stream.count - 1 if window.by_count else time
            if not window.has_gaps or key >= self._first(window, time + 1):
                window.held.append((key, sequence, element))
                window.entered += 1
                self._changed = True
                fires |= self._fires_at_changes
                self._enter(number, element)
            elif window.by_count and window.held and window.held[0][0] < self._first(window, time):
                # it is counted, but is between two windows
                self._changed = True
                fires |= self._fires_at_changes
            if window.closes_by_element and window.extent.closes_with(stream.count):
                fires = True
        return fires

    def _first(self, window: _Window, instant: int) -> int:
        """Returns the lowest key of a window at an instant."""
        return window.extent.first(
            self._streams[window.stream].count if window.by_count else instant
        )

    def _next_instant(self, until: int) -> int | None:
        """Returns the first instant to evaluate after the position, up to a limit."""
        position = self._position
        assert position is not None
        if self._fires_at_changes:
            instant = self._next_departure()
        else:
            # If the last evaluation gave nothing new and nothing has changed, all instants before the next departure
            # would give nothing either. So a pause of a year costs no evaluations.
            if self.quiet and not self._changed:
                loss = self._next_departure()
                if loss is None or loss > until:
                    return None
                position = max(position, loss - 1)
            instant = self._close_after(position)
        if instant is None or instant > until:
            return None
        if self._report is Report.NON_EMPTY_CONTENT and self._is_empty(instant):
            return None  # this does not change until an element arrives
        return instant

    def _first_close_after(self, position: int) -> int:
        return min((grid.after(position) for grid in self._instants), default=_LAST)

    def _grids(self, every: int | None, options: WindowOptions) -> list[Grid]:
        """Returns the instants at which windows close, or periods end."""
        if self._report is Report.PERIODIC:
            return [Grid(first_instant(options.origin, options.bounds), every or 1)]
        grids = (window.extent.grid for window in self._windows if not window.by_count)
        return list(dict.fromkeys(grid for grid in grids if grid is not None))

    def _next_departure(self) -> int | None:
        """The instant at which the next element leaves a window."""
        found: int | None = None
        for window in self._windows:
            if window.held:
                loss = window.extent.loss(window.held[0][0])
                if loss is not None and (found is None or loss < found):
                    found = loss
        return found

    def _last_instant(self) -> int:
        """Returns the last instant to evaluate after the end of all streams: windows that still hold an element close.

        Windows that do not become empty by time are evaluated once after the last element of their stream.
        """
        assert self._position is not None
        last = self._position
        for window in self._windows:
            stream = self._streams[window.stream]
            if not window.extent.empties:
                if stream.count and self._report is Report.PERIODIC:
                    last = max(last, self._instants[0].after(stream.newest))
                elif stream.count and not self._fires_at_changes:
                    last = max(last, window.extent.close_after(stream.newest) or last)
            elif window.held:
                loss = window.extent.loss(window.held[-1][0])
                assert loss is not None
                last = max(last, loss - 1)
        return last

    def _is_empty(self, instant: int) -> bool:
        return not any(
            window.held and window.held[-1][0] >= self._first(window, instant)
            for window in self._windows
        )

    def _fire(self, instant: int, time: int) -> Fired:
        # Elements leave when the query is evaluated, not at the instant at which they could: no evaluation sees the
        # difference. They are in the order of their keys, so those to leave are the first.
        for number, window in enumerate(self._windows):
            first, held = self._first(window, instant), window.held
            while held and held[0][0] < first:
                self._changed = True
                self._leave(number, held.popleft()[2])
            window.entered = 0
            if first > window.first:
                window.first = first
        fired = Fired(time, self._changed)
        self._changed, self._evaluated = False, True
        return fired

    # --- state ---

    def sequences(self, stream: int) -> Iterator[int]:
        """Returns the sequences of the held and pending elements of a stream."""
        for _, number, sequence, _ in self._pending:
            if number == stream:
                yield sequence
        for _, window in self._of_stream[stream]:
            for _, sequence, _ in window.held:
                yield sequence

    def _due(self) -> list[list[int]]:
        """Returns the sequences of the elements of each stream before the watermark that were not released."""
        limit = self.watermark_of()
        due: list[list[int]] = [[] for _ in self._streams]
        for time, stream, sequence, _ in self._pending:
            if time <= limit:
                due[stream].append(sequence)
        return list(map(sorted, due))

    def save(self) -> dict[str, Any]:
        """Returns the state for `restore`, in a form that JSON can represent."""
        return {
            "position": self._position,
            "floor": self._floor,
            "evaluated": self._evaluated,
            "changed": self._changed,
            "quiet": self.quiet,
            "due": self._due(),
            "idle": [number for number, stream in enumerate(self._streams) if stream.idle],
            "streams": [
                [stream.newest, stream.floor, stream.count, stream.ended]
                for stream in self._streams
            ],
            "windows": [[window.first, window.numbers, window.entered] for window in self._windows],
        }

    def restore(
        self,
        state: Mapping[str, Any],
        elements: Sequence[Sequence[tuple[int, int, T]]],
        evaluate: Callable[[], object],
    ) -> None:
        """Restores a saved timeline into this new one.

        The elements in windows at the last evaluation enter again, then this evaluation is repeated, then the elements
        enter that have entered since. `elements` has the held and pending elements of each stream, and possibly others,
        with their time and sequence.
        """
        self._position, self._floor, self._watermark = state["position"], state["floor"], None
        self._evaluated, self._changed, self.quiet = (
            state["evaluated"],
            state["changed"],
            state["quiet"],
        )
        for stream, (newest, floor, count, ended) in zip(
            self._streams, state["streams"], strict=True
        ):
            stream.newest, stream.floor, stream.count, stream.ended = newest, floor, count, ended
        for number in state.get("idle", ()):
            self._streams[number].idle = True
        due = [set(sequences) for sequences in state.get("due") or [()] * len(self._streams)]
        limit = self.watermark_of()
        released, pending = [list[tuple[int, int, T]]() for _ in elements], self._pending
        for number, of_stream in enumerate(elements):
            for time, sequence, element in of_stream:
                if time > limit or sequence in due[number]:
                    pending.append((time, number, sequence, element))
                else:
                    released[number].append((time, sequence, element))
        heapify(pending)
        since: list[tuple[int, T]] = []
        for number, (window, (first, numbers, entered)) in enumerate(
            zip(self._windows, state["windows"], strict=True)
        ):
            window.first, window.entered = first, entered
            window.held.extend(self._held_again(window, numbers, released[window.stream]))
            before = len(window.held) - entered
            for place, (_, _, element) in enumerate(window.held):
                if place < before:
                    self._enter(number, element)
                else:
                    since.append((number, element))
        if self._evaluated:
            evaluate()
        for number, element in since:
            self._enter(number, element)

    def _held_again(
        self,
        window: _Window,
        numbers: Mapping[str, int] | None,
        elements: Sequence[tuple[int, int, T]],
    ) -> Iterator[_Held[T]]:
        """Returns the released elements of a stream that a window held, oldest first."""
        released = sorted(element[:2] for element in elements)
        by_sequence = {sequence: element for _, sequence, element in elements}
        before = self._streams[window.stream].count - len(released)
        for place, (time, sequence) in enumerate(released):
            if numbers is None:
                key = before + place if window.extent.by_count else time
            elif (number := numbers.get(str(sequence))) is not None:
                key = number
            else:
                continue
            if key >= window.first and key >= window.extent.first(key + 1):
                yield key, sequence, by_sequence[sequence]

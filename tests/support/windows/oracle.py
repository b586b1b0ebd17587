"""A brute-force oracle of continuous queries: every evaluation from the whole log, and nothing kept between them.

None of the package's windows are used here. Times are few, and all of them are looked at, one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyoxigraph as ox

from construct_messages.continuous import Bounds, Compared, Firing
from construct_messages.query.continuous.values import (
    CM,
    MEMBER,
    STATIC,
    WINDOWS_GRAPH,
    ContinuousQuery,
    CountWindow,
    Operator,
    Report,
    Window,
)
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri, literal, number
from construct_messages.streams.element import GENERATED_AT, Element

Solutions = Counter[tuple[str, ...]]

NEVER = 1 << 70


class Event(NamedTuple):
    """What happens to a query: an element comes, a time passes, or a stream ends (its number alone)."""

    stream: int | None
    element: Element | None = None
    time: int | None = None


@dataclass(frozen=True)
class Case:
    """A query and how its windows are read; streams are numbered in the order of the windows."""

    query: ContinuousQuery
    report: Report = Report.WINDOW_CLOSE
    every: int = 1
    bounds: Bounds = Bounds.OPEN_CLOSED
    origin: int = 0
    lateness: int = 0
    compare: Compared = Compared.SOLUTIONS
    static: Sequence[Quad] = field(default=())

    @property
    def streams(self) -> list[str]:
        return list(dict.fromkeys(window.stream for window in self.query.windows))


class Evaluated(NamedTuple):
    """What one evaluation gives out."""

    time: int
    solutions: Solutions


def evaluations(case: Case, events: Sequence[Event]) -> list[Evaluated]:
    """All evaluations that some events cause, those without solutions left out."""
    before: Solutions = Counter()
    given = []
    for time, contents in _moments(case, events):
        now = _solutions(case, contents)
        if case.query.operator is Operator.ISTREAM:
            out = now - before
        elif case.query.operator is Operator.DSTREAM:
            out = before - now
        else:
            out = now
        before = now
        if out:
            given.append(Evaluated(time, out))
    return given


def as_evaluated(firing: Firing) -> Evaluated:
    """A firing of the engine, as the oracle gives it."""
    return Evaluated(
        firing.time, Counter(tuple(map(_relabelled, solution)) for solution in firing.solutions)
    )


def messages_of(case: Case, solutions: Sequence[tuple[Term, ...]]) -> list[Message]:
    """What a template without blank nodes makes of solutions."""
    template = ConstructQuery.parse(case.query.query).template
    # values of other variables come after those of the template's
    width = len(template.variables)
    return [Message(template.instantiate(solution[:width], 0)) for solution in solutions]


def _relabelled(term: str) -> str:
    """`_:` prefix `_p` stream `_` label, without the prefix."""
    if not term.startswith("_:"):
        return term
    return "_:s" + term.partition("_p")[2].replace("_", "")


# --- which elements, in which order ---------------------------------------------------------------------------------


def _watermark(case: Case, events: Sequence[Event]) -> int:
    floor = max((event.time for event in events if event.time is not None), default=-NEVER)
    newest = [-NEVER] * len(case.streams)
    for event in events:
        if event.stream is not None and event.element is not None:
            newest[event.stream] = max(
                newest[event.stream], event.element.microseconds - case.lateness
            )
    ended = {event.stream for event in events if event.element is None and event.time is None}
    return max(
        floor,
        min((time for stream, time in enumerate(newest) if stream not in ended), default=NEVER),
    )


def _released(case: Case, events: Sequence[Event]) -> list[tuple[int, Element]]:
    """The elements that are not late, with the numbers of their streams, as the watermark lets them go."""
    pending: list[tuple[int, int, int, Element]] = []
    released: list[tuple[int, Element]] = []
    for place, event in enumerate(events):
        element = event.element
        if element is not None and event.stream is not None:
            if element.microseconds < _watermark(case, events[:place]):
                continue
            pending.append((element.microseconds, event.stream, element.sequence, element))
        limit = _watermark(case, events[: place + 1])
        released += [(entry[1], entry[3]) for entry in sorted(pending) if entry[0] <= limit]
        pending = [entry for entry in pending if entry[0] > limit]
    return released


# --- when, and over what --------------------------------------------------------------------------------------------

Contents = list[list[tuple[int, Element]]]
"""The elements in each window, with the numbers of their streams."""


def _moments(case: Case, events: Sequence[Event]) -> Iterator[tuple[int, Contents]]:
    released = _released(case, events)
    if not released:
        return
    watermark = _watermark(case, events)
    start = released[0][1].microseconds
    report, closed_open = case.report, case.bounds is Bounds.CLOSED_OPEN
    at_closes = report in (Report.WINDOW_CLOSE, Report.NON_EMPTY_CONTENT)
    last: Contents = [[] for _ in case.query.windows]
    found: list[
        tuple[int, bool, Contents]
    ] = []  # time, whether it is one of time passing, contents
    horizon = (
        watermark
        if watermark < NEVER
        else max(element.microseconds for _, element in released) + 100
    )
    for time in range(start, horizon + 1):
        before = [entry for entry in released if entry[1].microseconds < time]
        at = [entry for entry in released if entry[1].microseconds == time]

        def passing(
            time: int, known: list[tuple[int, Element]]
        ) -> Iterator[tuple[int, bool, Contents]]:
            grids = [
                window.step
                for window in case.query.windows
                if not isinstance(window, CountWindow) and window.step
            ]
            if report is Report.PERIODIC:
                due = (time - case.origin) % case.every == 0
            else:
                due = at_closes and any((time - case.origin) % step == 0 for step in grids)
            if due:
                yield time, True, _contents(case, known, time, before_time=closed_open)

        if closed_open and time > start:
            found += passing(time, before)
        for place, (stream, element) in enumerate(at, 1):
            known = before + at[:place]
            contents = _contents(case, known, time, before_time=False)
            count = sum(1 for other, _ in known if other == stream)
            of_stream = [
                (window, held, old)
                for window, held, old in zip(case.query.windows, contents, last, strict=True)
                if case.streams[stream] == window.stream
            ]
            if report is Report.CONTENT_CHANGE:
                due = any(
                    (stream, element) in held or (isinstance(window, CountWindow) and held != old)
                    for window, held, old in of_stream
                )
            else:
                due = at_closes and any(_ends_with(window, count) for window, _, _ in of_stream)
            if due:
                found.append((time, False, contents))
                last = contents
        if time < watermark:
            if report is Report.CONTENT_CHANGE:
                contents = _contents(case, before + at, time, before_time=False)
                if contents != last:
                    found.append((time, True, contents))
                    last = contents
            elif not closed_open:
                found += passing(time, before + at)
    if watermark == NEVER:  # all streams have ended: until windows hold what none held before
        passed = max(
            mark
            for mark in (_watermark(case, events[:n]) for n in range(len(events)))
            if mark < NEVER
        )
        if at_closes:
            newest = max(element.microseconds for _, element in released)
            found = _with_partial(case, found, released, max(passed - 1, newest))
        found = _until_empty(case, found, released, passed)
    for time, _, contents in found:
        if report is not Report.NON_EMPTY_CONTENT or any(contents):
            yield time, contents


def _with_partial(
    case: Case,
    found: list[tuple[int, bool, Contents]],
    released: list[tuple[int, Element]],
    time: int,
) -> list[tuple[int, bool, Contents]]:
    """With one at the end of all streams, before time passes further, where a window by count holds what none has."""
    before = [moment for moment in found if moment[0] <= time]
    contents = _contents(case, released, time, before_time=False)
    for place, window in enumerate(case.query.windows):
        known = [entry for moment in before for entry in moment[2][place]]
        if isinstance(window, CountWindow) and any(entry not in known for entry in contents[place]):
            return [*before, (time, False, contents), *found[len(before) :]]
    return found


def _until_empty(
    case: Case,
    found: list[tuple[int, bool, Contents]],
    released: list[tuple[int, Element]],
    passed: int,
) -> list[tuple[int, bool, Contents]]:
    """Without what passing time alone causes behind the last time that a window by time holds an element."""
    newest = max(element.microseconds for _, element in released)
    end = max(newest, passed) - 1
    for time in range(newest, newest + 100):
        held = _contents(case, released, time, before_time=False)
        for window, elements in zip(case.query.windows, held, strict=True):
            if not isinstance(window, CountWindow) and window.range is not None and elements:
                end = max(end, time)
    closed_open = case.bounds is Bounds.CLOSED_OPEN
    for window in case.query.windows:
        of_stream = [e.microseconds for s, e in released if case.streams[s] == window.stream]
        if not of_stream or (not isinstance(window, CountWindow) and window.range is not None):
            continue
        step = 0 if isinstance(window, CountWindow) else window.step
        step = case.every if case.report is Report.PERIODIC else step
        if (
            step and case.report is not Report.CONTENT_CHANGE
        ):  # evaluated once behind the last element
            first = max(of_stream) + closed_open
            end = max(
                end,
                next(t for t in range(first, first + step) if (t - case.origin) % step == 0)
                - closed_open,
            )
    allowance = 1 if closed_open and case.report is not Report.CONTENT_CHANGE else 0
    return [moment for moment in found if not moment[1] or moment[0] <= end + allowance]


def _ends_with(window: Window, count: int) -> bool:
    return count % window.step == 0 if isinstance(window, CountWindow) else window.step == 0


def _contents(
    case: Case, known: list[tuple[int, Element]], time: int, *, before_time: bool
) -> Contents:
    """What the windows hold at a time, or right before it."""
    return [_held(case, window, known, time, before_time) for window in case.query.windows]


def _held(
    case: Case, window: Window, known: list[tuple[int, Element]], time: int, before_time: bool
) -> list[tuple[int, Element]]:
    of_stream = [entry for entry in known if case.streams[entry[0]] == window.stream]
    if isinstance(window, CountWindow):
        close = -(-len(of_stream) // window.step) * window.step
        return [
            entry
            for number, entry in enumerate(of_stream, 1)
            if close - window.count < number <= close
        ]
    if window.range is None:
        return of_stream
    if not window.step:
        width = window.range or 1
        return [entry for entry in of_stream if entry[1].microseconds > time - before_time - width]
    # the window that closes next, or now
    may_close_now = case.bounds is Bounds.OPEN_CLOSED or before_time
    close = next(
        t
        for t in range(time, time + window.step + 1)
        if (t - case.origin) % window.step == 0 and (t > time or may_close_now)
    )
    opens = close - (window.range or 1)
    if case.bounds is Bounds.OPEN_CLOSED:
        return [entry for entry in of_stream if opens < entry[1].microseconds <= close]
    return [entry for entry in of_stream if opens <= entry[1].microseconds < close]


# --- one evaluation -------------------------------------------------------------------------------------------------


def _solutions(case: Case, contents: Contents) -> Solutions:
    quads: list[Quad] = list(case.static)
    windows, member = iri(WINDOWS_GRAPH), iri(MEMBER)
    quads += [Quad(iri(STATIC), member, quad.graph, windows) for quad in case.static if quad.graph]
    for window, held in zip(case.query.windows, contents, strict=True):
        name = iri(window.name)
        for stream, element in held:
            node = iri(f"{window.stream}/{element.sequence}")
            message = element.message.map_blanks(
                lambda label, stream=stream: Term(f"_:s{stream}{label[2:]}")
            )  # type: ignore[misc]
            context = [
                Quad(
                    node,
                    iri(GENERATED_AT),
                    literal(f"{element.time:%Y-%m-%dT%H:%M:%S.%fZ}", datatype=_DATE_TIME),
                ),
                Quad(node, iri(f"{CM}sequence"), number(str(element.sequence))),
                Quad(node, iri(f"{CM}stream"), iri(window.stream)),
                *(Quad(node, iri(f"{CM}graph"), quad.graph) for quad in message if quad.graph),
            ]
            for quad in (*message, *context):
                quads += [quad._replace(graph=name), quad._replace(graph=node)]
                if window.name in case.query.default:
                    quads.append(quad._replace(graph=None))
            quads.append(Quad(name, member, node, windows))
            for quad in message:
                if quad.graph:
                    quads += [quad, Quad(iri(STATIC), member, quad.graph, windows)]
    store = ox.Store()
    store.extend(Message(quads).to_pyoxigraph())
    parsed = ConstructQuery.parse(case.query.query)
    variables = parsed.template.variables
    select = parsed.select
    whole = case.query.operator is not Operator.RSTREAM and case.compare is Compared.SOLUTIONS
    if whole:
        select = re.sub(r"(?<=SELECT )(\?\w+ )+(?=WHERE)", "* ", " ".join(select.split()))
    result = store.query(select)
    assert isinstance(result, ox.QuerySolutions)
    if whole:
        others = {variable.value for variable in result.variables}.difference(variables)
        variables += tuple(sorted(others))
    return Counter(
        tuple(str(row[name]) if row[name] else "" for name in variables) for row in result
    )


_DATE_TIME = "http://www.w3.org/2001/XMLSchema#dateTime"

"""`WindowedQuery`: the engine of continuous queries with windows, from elements of streams to firings, without I/O.

`timeline.py` decides which elements enter and leave windows and when the query is evaluated, `dataset/` maintains the
dataset, `solutions.py` evaluates, compares and instantiates. No clock, no HTTP and no store of streams here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Self, TypeAlias

from construct_messages.continuous.dataset import (
    Contents,
    ElementIri,
    HeldQuads,
    QuadReader,
    StoredContents,
)
from construct_messages.continuous.expressions import NotMaintained, Row
from construct_messages.continuous.maintenance import MaintainedSolutions, MaintenancePlan, plan_of
from construct_messages.continuous.solutions import SelectedMessages, Solution, select_solutions
from construct_messages.continuous.timeline import Fired, Timeline
from construct_messages.continuous.windows import Compared, Extent, WindowOptions, time_of
from construct_messages.errors import UsageError
from construct_messages.query.continuous.values import (
    STREAM_NAMES,
    ContinuousQuery,
    Operator,
    absolute,
)
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.streams.element import Element

# --- evaluation -----------------------------------------------------------------------------------
# The solutions of firings: by evaluating the whole query each time, or by maintaining its solutions.
#
# Both have the same methods (`hold` an element, let it `enter` and `leave` windows, `fire`), and return the same
# solutions. `maintenance.py` decides which queries are maintained. RSP-QL: RSTREAM, ISTREAM and DSTREAM. No times, and
# no messages.


class WholeEvaluation:
    """Evaluates the whole query each time, for a `reason`."""

    def __init__(
        self,
        selected: SelectedMessages,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        reason: str,
    ) -> None:
        self._selected, self._operator, self._reason = selected, query.operator, reason
        self.contents = StoredContents(query, static, labels, QuadReader(selected.predicates))
        self.hold, self.enter = self.contents.hold, self.contents.enter
        self.leave = self.contents.leave
        self._solutions: list[Solution] = []

    @property
    def plan(self) -> str:
        """Describes how the solutions are computed."""
        return f"evaluated as a whole each time: {self._reason}"

    def fire(self, *, changed: bool = True) -> list[Solution]:
        """Evaluates, and returns the solutions that the operator selects.

        `changed`: an element has entered or left since the last evaluation.
        """
        before = self._solutions
        if changed:
            self._solutions = self._selected.solutions(self.contents.update())
        return select_solutions(self._operator, self._solutions, before, self._selected.key)


class IncrementalEvaluation:
    """Maintains the solutions; evaluates the whole query while values are in windows for which that is impossible.

    `whole` creates the evaluation of the whole query, with a reason.
    """

    def __init__(
        self,
        plan: MaintenancePlan,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        whole: Callable[[str], WholeEvaluation],
    ) -> None:
        # Elements enter and leave either `_maintained` or `_whole`; the other one does not exist meanwhile. To change
        # over, the new one is built from the elements that windows held at the last evaluation, which it repeats:
        # ISTREAM and DSTREAM compare with its solutions. Then it gets the changes since.
        self._plan, self._operator, self._new_whole = plan, query.operator, whole
        self._new_maintained = partial(MaintainedSolutions, plan, query, static, labels)
        self._maintained: MaintainedSolutions | None = self._new_maintained()
        self._whole: WholeEvaluation | None = None
        self._has_fired = False
        self._counts: dict[Solution, int] = {}  # for RSTREAM, in the order of appearance
        # for a plan that may fall back: the elements at the last evaluation, and the changes since then
        self._held: dict[tuple[int, HeldQuads], None] = {}
        self._changed: list[tuple[int, HeldQuads, bool]] = []
        # while the query is evaluated as a whole: the elements to leave before solutions are maintained again, and the
        # further turns of the windows to wait for, now and next time
        self._leaving: set[tuple[int, HeldQuads]] = set()
        self._turns, self._patience = 0, 1
        contents = self._maintained.contents
        if plan.may_end:
            self.hold, self.enter, self.leave = self._hold, self._entered, self._left
        else:
            self.hold, self.enter, self.leave = contents.hold, contents.enter, contents.leave

    @property
    def plan(self) -> str:
        """Describes how the solutions are computed."""
        return f"maintained: {self._plan.description}" if self._whole is None else self._whole.plan

    def _hold(
        self, stream: int, stream_iri: str, element_iri: ElementIri, time: int, element: Element
    ) -> HeldQuads:
        if self._maintained is None:
            return HeldQuads(None, (stream, stream_iri, element_iri, time, element))
        return self._maintained.contents.hold(stream, stream_iri, element_iri, time, element)

    def _entered(self, window: int, held: HeldQuads) -> None:
        self._change(window, held, entered=True)

    def _left(self, window: int, held: HeldQuads) -> None:
        self._change(window, held, entered=False)

    def fire(self, *, changed: bool = True) -> list[Solution]:
        """Evaluates; see `WholeEvaluation.fire`."""
        if self._whole is not None and not self._leaving and changed:
            self._maintain_again()
        maintained = self._maintained
        if maintained is not None:
            if not changed or (maintained.are_current and not self._changed):
                return self._unchanged()
            try:
                return self._select(maintained)
            except NotMaintained as reason:
                self._whole = self._begin_whole(str(reason))
        assert self._whole is not None  # either
        solutions = self._whole.fire(changed=changed)
        self._settle()
        if maintained is not None:
            self._wait_to_maintain()
        return solutions

    def _change(self, window: int, held: HeldQuads, *, entered: bool) -> None:
        maintained = self._maintained
        if maintained is None:
            assert self._whole is not None
            change = self._whole.enter if entered else self._whole.leave
            change(window, _held_whole(self._whole, held))
        else:
            _let_change(maintained.contents, window, held, entered=entered)
        self._changed.append((window, held, entered))

    def _select(self, maintained: MaintainedSolutions) -> list[Solution]:
        appeared, vanished = maintained.difference()
        self._settle()
        self._patience = 1
        if self._operator is Operator.ISTREAM:
            return [_solution(row) for row in appeared]
        if self._operator is Operator.DSTREAM:
            return [_solution(row) for row in vanished]
        self._count(appeared, vanished)
        return self._unchanged()

    def _settle(self) -> None:
        """Records an evaluation of the present contents of the windows."""
        for window, held, entered in self._changed:
            if entered:
                self._held[window, held] = None
            else:
                del self._held[window, held]
                self._leaving.discard((window, held))
        self._changed.clear()
        self._has_fired = True

    def _count(self, appeared: Iterable[Row], vanished: Iterable[Row]) -> None:
        counts = self._counts
        for solution in map(_solution, vanished):
            if counts[solution] > 1:
                counts[solution] -= 1
            else:
                del counts[solution]
        for solution in map(_solution, appeared):
            counts[solution] = counts.get(solution, 0) + 1

    def _unchanged(self) -> list[Solution]:
        if not self._counts:
            return []
        if len(self._counts) == sum(self._counts.values()):
            return list(self._counts)
        return [row for row, count in self._counts.items() for _ in range(count)]

    def _begin_whole(self, reason: str) -> WholeEvaluation:
        """Falls back: evaluates the whole query for the last evaluation and then for this one."""
        whole = self._new_whole(reason)
        for window, held in self._held:
            whole.enter(window, _held_whole(whole, held))
        if self._has_fired:
            whole.fire()
        for window, held, entered in self._changed:
            (whole.enter if entered else whole.leave)(window, _held_whole(whole, held))
        self._maintained = None
        self._counts.clear()
        return whole

    def _maintain_again(self) -> None:
        """Maintains the solutions again, if that is possible for the last evaluation.

        All that windows held when it was impossible has left them. Where such values keep coming, this is in vain: each
        time in a row, twice as many turns of the windows pass before the next.
        """
        if self._turns:
            self._turns -= 1
            self._leaving = set(self._held)
            return
        maintained = self._new_maintained()
        try:
            for window, held in self._held:
                _let_change(maintained.contents, window, held, entered=True)
            solutions, _ = maintained.difference()
        except NotMaintained:
            self._wait_to_maintain()
            return
        for window, held, entered in self._changed:
            _let_change(maintained.contents, window, held, entered=entered)
        if self._operator is Operator.RSTREAM:
            self._count(solutions, ())
        self._maintained, self._whole = maintained, None

    def _wait_to_maintain(self) -> None:
        self._leaving = set(self._held)
        self._turns, self._patience = self._patience - 1, 2 * self._patience


def _solution(row: tuple[str, ...]) -> Solution:
    return row  # type: ignore[return-value] # each text is a term


def _let_change(contents: Contents, window: int, held: HeldQuads, *, entered: bool) -> None:
    if held.quads is None:  # the query was evaluated as a whole when the element came
        assert held.origin is not None  # it is kept if a plan may fall back
        held.quads = contents.hold(*held.origin).quads
    (contents.enter if entered else contents.leave)(window, held)


def _held_whole(whole: WholeEvaluation, held: HeldQuads) -> HeldQuads:
    if held.whole is None:
        assert held.origin is not None  # see `_let_change`
        held.whole = whole.hold(*held.origin)
    return held.whole


def evaluation_of(
    selected: SelectedMessages,
    query: ContinuousQuery,
    static: Iterable[Quad],
    labels: Labels,
    *,
    maintain: bool,
) -> WholeEvaluation | IncrementalEvaluation:
    """Returns the evaluation of a query; `maintain`: maintain solutions if possible."""
    quads = list(static)

    def whole(reason: str) -> WholeEvaluation:
        return WholeEvaluation(selected, query, quads, labels, reason)

    if not maintain:
        return whole("as requested")
    plan = plan_of(selected.tree, [window.name for window in query.windows])
    if isinstance(plan, str):
        return whole(plan)
    # the engine chooses the order of the variables of SELECT *
    plan = replace(plan, variables=selected.variables)
    return IncrementalEvaluation(plan, query, quads, labels, whole)


# --- windowed -------------------------------------------------------------------------------------

OnDrop: TypeAlias = Callable[[str, Element, str], None]
"""Called with each element that enters no window: the IRI of its stream, the element, and the reason.

The reason is `"late"`, `"untimed"` (no time, or several), `"ahead"` (see `WindowOptions.max_ahead`) or `"skipped"` (see
`WindowedQuery.skip`).
"""

ReadAgain: TypeAlias = Callable[[str, int, int], Iterable[Element]]
"""Reads elements again: takes the IRI of a stream, and the first and last sequence."""

_VERSION: Final = 2
_READ: Final = (1, 2)  # 1 has no due evaluations
_MANY: Final = 1024


@dataclass(frozen=True)
class Firing:
    """The result of an evaluation.

    Args:
        time: the time of the evaluation, in microseconds since 1970 in UTC: the close of a window, or the time of an
            element.
        operator: the operator that selected the solutions.
        variables: the names of their values.
        solutions: the solutions, as terms; the empty string is unbound.
        messages: one message for each solution.

    >>> firing = Firing(10_000_000, Operator.RSTREAM, ("s",), [("<urn:a>",)], [Message()])
    >>> dict(zip(firing.variables, firing.solutions[0]))
    {'s': '<urn:a>'}
    """

    time: int
    operator: Operator
    variables: tuple[str, ...]
    solutions: list[Solution]
    messages: list[Message]


class WindowedQuery:
    """A continuous query over windows, as a value that is updated by elements.

    Time is the time of elements. Results are returned as soon as no earlier element can arrive. After a long pause, one
    element may cause very many evaluations: `most` limits the evaluations of a call, and `proceed` makes the others.

    Args:
        query: the query, with windows.
        options: settings that the query does not contain.
        static: quads of static data.
        element_iri: names elements, as the query sees them; None: `{stream}/{sequence}`.
        on_drop: called with each element that enters no window.
        label_prefix: the prefix of labels of blank nodes, see `construct_messages`.
        maintain: whether to maintain solutions by difference if possible (see `plan`); else the whole query is
            evaluated each time. The results are the same.

    Attributes:
        dropped: the number of elements that entered no window, by stream and reason.
        due: whether evaluations may be due after a call made `most` evaluations.
        evaluations: the number of evaluations.

    Raises:
        QueryError: the query is not legal.
        UsageError: it has no windows, or options do not apply to it.

    >>> from construct_messages.query.continuous.parse import parse_continuous
    >>> query = parse_continuous('''CONSTRUCT { ?s <urn:seen> ?o }
    ... FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT10S STEP PT10S] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }''')
    >>> engine = WindowedQuery(query)
    >>> engine.take("urn:in", Element("in", 1, 5_000_000, b'<urn:s> <urn:p> "o" .'))
    []
    >>> engine.take("urn:in", Element("in", 2, 12_000_000, b""))[0].messages
    [<Message of 1 quad: <urn:s> <urn:seen> "o" .>]
    """

    def __init__(
        self,
        query: ContinuousQuery,
        options: WindowOptions | None = None,
        *,
        static: Iterable[Quad] = (),
        element_iri: ElementIri | None = None,
        on_drop: OnDrop | None = None,
        label_prefix: str | None = None,
        maintain: bool = True,
    ) -> None:
        if not query.windows:
            raise UsageError(
                "the query has no windows",
                hint="declare one: FROM NAMED WINDOW <w> ON <stream> [RANGE …]",
            )
        self.query, self.options = query, options or WindowOptions()
        self._digest = _digest(_compact(query), self.options)
        report, every = self.options.policy_of(query)
        self._labels = Labels(label_prefix)
        self.streams = tuple(dict.fromkeys(window.stream for window in query.windows))
        self._number = {stream: number for number, stream in enumerate(self.streams)}
        windows = [
            (self._number[window.stream], Extent.of(window, self.options))
            for window in query.windows
        ]
        self._selected = SelectedMessages(
            query,
            self._labels,
            self._labels.of_response(len(self.streams)),
            whole=query.operator is not Operator.RSTREAM
            and self.options.compare is Compared.SOLUTIONS,
        )
        self._evaluation = evaluation_of(
            self._selected, query, static, self._labels, maintain=maintain
        )
        enter, leave = self._evaluation.enter, self._evaluation.leave
        self._timeline = Timeline[HeldQuads](
            windows, len(self.streams), report, every, self.options, enter, leave
        )
        self._time_of = time_of(self.options.time, query.query)
        self._element_iri = element_iri or _below_stream
        self._on_drop = on_drop
        self._positions = [0] * len(self.streams)
        self._again: list[Message] | None = (
            None  # the results of an evaluation of the same contents
        )
        self._given = 0  # the number of messages
        self._skipped: list[list[int]] = [[] for _ in self.streams]  # sequences of dropped elements
        self.dropped: dict[str, Counter[str]] = {stream: Counter() for stream in self.streams}
        self.due, self.evaluations = False, 0

    @property
    def digest(self) -> str:
        """Distinguishes the query and its options from others."""
        return self._digest

    def begin(self, instant: int, first: int) -> None:
        """Begins in the middle of streams, before the first element is taken.

        Args:
            instant: nothing is evaluated at this instant or before it, see `windows`. The elements to take begin with
                the first one of the windows that close next.
            first: the number of the first message, by which the blank nodes of its template are labelled.
        """
        self._timeline.begin(instant)
        self._given = first

    def take(self, stream: str, element: Element, most: int | None = None) -> list[Firing]:
        """Takes an element, and returns the resulting firings.

        Args:
            stream: the IRI of its stream, without brackets.
            element: after the previous ones of the stream.
            most: the maximal number of evaluations, at least 1; None: all due ones.

        Raises:
            UsageError: the stream is not in the query, or the element is not after the previous ones.
            SourceError: the evaluation failed.
        """
        number = self._moved_to(stream, element)
        time = self._time_of(element)
        if time is None:
            self._drop(number, element, "untimed")
        elif time < self._timeline.watermark_of():
            self._drop(number, element, "late")
        elif (
            self.options.max_ahead is not None
            and time - element.microseconds > self.options.max_ahead
        ):
            self._drop(number, element, "ahead")
        else:
            held = self._evaluation.hold(number, stream, self._element_iri, time, element)
            self._timeline.offer(number, time, element.sequence, held)
            return self.proceed(most)
        return self.proceed(most) if self.due else []

    def skip(self, stream: str, element: Element) -> None:
        """Leaves out an element, which enters no window and is counted as `"skipped"`.

        Args:
            stream, element: see `take`.

        Raises:
            UsageError: see `take`.
        """
        self._drop(self._moved_to(stream, element), element, "skipped")

    def advance(
        self, time: int, stream: str | None = None, most: int | None = None
    ) -> list[Firing]:
        """Declares that no earlier element will arrive, and returns the resulting evaluations.

        Args:
            time: in microseconds since 1970 in UTC.
            stream: the IRI of the stream; None: all streams.
            most: see `take`.

        Raises:
            UsageError, SourceError: see `take`.
        """
        self._timeline.advance(time, None if stream is None else self._number_of(stream))
        return self.proceed(most)

    def idle(self, stream: str, most: int | None = None) -> list[Firing]:
        """Declares that a stream is silent: windows do not wait for it until its next element.

        Its elements that are earlier than the last evaluation are late.

        Args:
            stream: its IRI.
            most: see `take`.

        Raises:
            UsageError, SourceError: see `take`.
        """
        self._timeline.idle(self._number_of(stream))
        return self.proceed(most)

    def end(self, stream: str, most: int | None = None) -> list[Firing]:
        """Declares that a stream has ended; when all have, the windows that still contain elements close.

        Args:
            stream: its IRI.
            most: see `take`.

        Raises:
            UsageError, SourceError: see `take`.
        """
        self._timeline.end(self._number_of(stream))
        return self.proceed(most)

    def proceed(self, most: int | None = None) -> list[Firing]:
        """Makes the due evaluations, and returns those with messages.

        Args:
            most: see `take`.

        Raises:
            SourceError: see `take`.
        """
        firings, last = [], None if most is None else self.evaluations + most
        next_evaluation = self._timeline.next_evaluation
        while (fired := next_evaluation()) is not None:
            firing = self._fire(fired)
            if firing is not None:
                firings.append(firing)
            self.evaluations += 1
            if self.evaluations == last:
                self.due = True
                return firings
        self.due = False
        return firings

    @property
    def plan(self) -> str:
        """Describes how solutions are computed: maintained by difference or evaluated as a whole, and why."""
        return self._evaluation.plan

    def watermark(self, stream: str | None = None) -> int:
        """Returns the time, in microseconds since 1970 in UTC, before which no element of one stream, or of any, will
        arrive.

        Raises:
            UsageError: the stream is not in the query.
        """
        return self._timeline.watermark_of(None if stream is None else self._number_of(stream))

    def position(self, stream: str) -> int:
        """Returns the sequence of the last element taken from a stream; 0: none.

        Raises:
            UsageError: the stream is not in the query.
        """
        return self._positions[self._number_of(stream)]

    def needs_from(self, stream: str) -> int:
        """Returns the sequence of the oldest element of a stream that is still needed, or else the next sequence.

        Raises:
            UsageError: the stream is not in the query.
        """
        number = self._number_of(stream)
        return min(self._timeline.sequences(number), default=self._positions[number] + 1)

    def _number_of(self, stream: str) -> int:
        number = self._number.get(stream)
        if number is None:
            raise UsageError(
                f"the query has no window on the stream {stream}",
                hint=f"it has windows on {', '.join(self.streams)}",
            )
        return number

    def _moved_to(self, stream: str, element: Element) -> int:
        """Advances the position of a stream to an element; returns the number of the stream."""
        number, sequence = self._number_of(stream), element.sequence
        if sequence <= self._positions[number]:
            raise UsageError(
                f"element {sequence} of {stream} came after element {self._positions[number]}"
            )
        self._positions[number] = sequence
        return number

    def _drop(self, number: int, element: Element, reason: str) -> None:
        stream = self.streams[number]
        self.dropped[stream][reason] += 1
        skipped = self._skipped[number]
        skipped.append(element.sequence)
        if len(skipped) % _MANY == 0:
            self._forget_skipped()
        if self._on_drop is not None:
            self._on_drop(stream, element, reason)

    def _forget_skipped(self) -> None:
        """Forgets elements that will not be read again."""
        for number, stream in enumerate(self.streams):
            first = self.needs_from(stream)
            self._skipped[number] = [
                sequence for sequence in self._skipped[number] if sequence >= first
            ]

    def _fire(self, fired: Fired) -> Firing | None:
        time, changed = fired
        solutions = self._evaluation.fire(changed=changed)
        if not solutions and not self.options.empty:
            self._timeline.quiet, self._again = True, None
            return None
        operator, selected = self.query.operator, self._selected
        again = operator is Operator.RSTREAM and solutions
        self._timeline.quiet = not again and not self.options.empty
        messages = self._again
        if messages is None or changed:
            messages = list(selected.instantiate(solutions, self._given))
            self._again = messages if again and not selected.makes_nodes else None
        self._given += len(messages)
        return Firing(time, operator, selected.variables, solutions, list(messages))

    # --- state ---

    def save(self) -> bytes:
        """Returns the state for `restore`, without the elements in windows: these are read again."""
        self._forget_skipped()
        state = {
            "version": _VERSION,
            "of": self._digest,
            "labels": self._labels.prefix,
            "given": self._given,
            "due": self.due,
            "timeline": self._timeline.save(),
            "streams": [
                {
                    "position": self._positions[number],
                    "first": self.needs_from(stream),
                    "skipped": self._skipped[number],
                    "dropped": self.dropped[stream],
                }
                for number, stream in enumerate(self.streams)
            ],
        }
        return json.dumps(state, separators=(",", ":")).encode()

    @classmethod
    def restore(
        cls,
        saved: bytes,
        read: ReadAgain,
        query: ContinuousQuery,
        options: WindowOptions | None = None,
        *,
        static: Iterable[Quad] = (),
        element_iri: ElementIri | None = None,
        on_drop: OnDrop | None = None,
        maintain: bool = True,
    ) -> Self:
        """Restores a saved query; the next element to take is after the `position` of its stream.

        Args:
            saved: the result of `save`.
            read: reads the elements that are still needed.
            query, options, static, element_iri, on_drop, maintain: as before. Solutions are compared with those of the
                current static data.

        Raises:
            UsageError: the state is that of another query or of other options, or a needed element is missing.
            QueryError, SourceError: see `take`.
        """
        state = json.loads(saved)
        meant = options or WindowOptions()
        # earlier releases took the text of the query as it is
        known = (_digest(_compact(query), meant), _digest(query, meant))
        if state["version"] not in _READ or state["of"] not in known:
            raise UsageError(
                "the state is that of another query or of other options",
                hint="begin again without it",
            )
        engine = cls(
            query,
            options,
            static=static,
            element_iri=element_iri,
            on_drop=on_drop,
            label_prefix=state["labels"],
            maintain=maintain,
        )
        engine._restore(state, read)
        return engine

    def _restore(self, state: dict[str, Any], read: ReadAgain) -> None:
        self._given = state["given"]
        elements: list[list[tuple[int, int, HeldQuads]]] = []
        for number, (stream, saved) in enumerate(zip(self.streams, state["streams"], strict=True)):
            self._positions[number] = saved["position"]
            self._skipped[number] = saved["skipped"]
            self.dropped[stream] = Counter(saved["dropped"])
            again = (
                list(read(stream, saved["first"], saved["position"]))
                if saved["first"] <= saved["position"]
                else []
            )
            if [element.sequence for element in again] != list(
                range(saved["first"], saved["position"] + 1)
            ):
                raise UsageError(
                    f"{stream} no longer has its elements {saved['first']} to {saved['position']}",
                    hint="keep elements at least as long as windows hold them",
                )
            held = []
            for element in again:
                sequence = element.sequence
                time = None if sequence in saved["skipped"] else self._time_of(element)
                if time is not None:
                    kept = self._evaluation.hold(number, stream, self._element_iri, time, element)
                    held.append((time, sequence, kept))
            elements.append(held)
        self.due = state.get("due", False)
        self._timeline.restore(state["timeline"], elements, self._evaluation.fire)


def _below_stream(stream: str, sequence: int) -> str:
    return f"{absolute(stream, STREAM_NAMES)}/{sequence}"


def _compact(query: ContinuousQuery) -> ContinuousQuery:
    """Returns the query without white space and comments, which make no other query."""
    return replace(query, query=QueryText(query.query).compact)


def _digest(query: ContinuousQuery, options: WindowOptions) -> str:
    return blake2b(repr((query, options)).encode(), digest_size=16).hexdigest()

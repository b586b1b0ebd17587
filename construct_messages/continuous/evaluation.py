"""The solutions of firings: by evaluating the whole query each time, or by maintaining its solutions.

Both follow the elements that enter and leave windows, and return the same solutions. `incremental/planner.py` decides
which queries are maintained. RSP-QL: RSTREAM, ISTREAM and DSTREAM. No times, and no messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from construct_messages.continuous.dataset.contents import Contents, ElementIri, HeldElement
from construct_messages.continuous.incremental.contents import HeldQuads, MatchedContents
from construct_messages.continuous.incremental.expressions import NotMaintained
from construct_messages.continuous.incremental.maintained import MaintainedSolutions
from construct_messages.continuous.incremental.plan import MaintenancePlan, Row
from construct_messages.continuous.incremental.planner import plan_of
from construct_messages.continuous.solutions import SelectedMessages, Solution, select_solutions
from construct_messages.query.continuous.values import ContinuousQuery, Operator
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.streams.element import Element

T = TypeVar("T")


class WindowEvaluation(Protocol, Generic[T]):
    """The solutions of a query over windows; `T` is an element as windows hold it."""

    @property
    def plan(self) -> str:
        """Describes how the solutions are computed."""

    def hold(
        self, stream: int, stream_iri: str, element_iri: ElementIri, time: int, element: Element
    ) -> T:
        """Returns an element in the form that enters windows; see `Contents.hold`."""

    def enter(self, window: int, held: T) -> None:
        """An element has entered a window."""

    def leave(self, window: int, held: T) -> None:
        """An element has left a window."""

    def fire(self, *, changed: bool = True) -> list[Solution]:
        """Evaluates, and returns the solutions that the operator of the query selects.

        Args:
            changed: whether an element has entered or left since the last evaluation.

        Raises:
            SourceError: the evaluation failed.
        """


class WholeEvaluation:
    """Evaluates the whole query each time.

    Args:
        selected: the query to evaluate.
        query: its windows and operator.
        static: the quads of static data.
        labels: create the labels of all blank nodes.
        reason: the reason why its solutions are not maintained.

    Attributes:
        contents: the contents of its windows.
    """

    def __init__(
        self,
        selected: SelectedMessages,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        reason: str,
    ) -> None:
        self._selected, self._operator, self._reason = selected, query.operator, reason
        self.contents = Contents(query, static, labels, selected.predicates)
        self.hold, self.enter = self.contents.hold, self.contents.enter
        self.leave = self.contents.leave
        self._solutions: list[Solution] = []

    @property
    def plan(self) -> str:
        """Describes how the solutions are computed."""
        return f"evaluated as a whole each time: {self._reason}"

    def fire(self, *, changed: bool = True) -> list[Solution]:
        """Evaluates; see `WindowEvaluation`."""
        before = self._solutions
        if changed:
            self._solutions = self._selected.solutions(self.contents.update())
        return select_solutions(self._operator, self._solutions, before, self._selected.key)


class IncrementalEvaluation:
    """Maintains the solutions; evaluates the whole query while values are in windows for which that is impossible.

    Args:
        plan: the plan for maintaining them.
        query: its windows and operator.
        static: the quads of static data.
        labels: create the labels of all blank nodes.
        whole: creates the evaluation of the whole query, with a reason.
    """

    def __init__(
        self,
        plan: MaintenancePlan,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        whole: Callable[[str], WholeEvaluation],
    ) -> None:
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
        return f"maintained: {self._plan}" if self._whole is None else self._whole.plan

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
        """Evaluates; see `WindowEvaluation`."""
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


def _let_change(contents: MatchedContents, window: int, held: HeldQuads, *, entered: bool) -> None:
    if held.quads is None:  # the query was evaluated as a whole when the element came
        assert held.origin is not None  # it is kept if a plan may fall back
        held.quads = contents.hold(*held.origin).quads
    (contents.enter if entered else contents.leave)(window, held)


def _held_whole(whole: WholeEvaluation, held: HeldQuads) -> HeldElement:
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
    """Returns the evaluation of a query.

    Args:
        selected, query, static, labels: see `WholeEvaluation`.
        maintain: whether to maintain solutions if possible.
    """
    quads = list(static)

    def whole(reason: str) -> WholeEvaluation:
        return WholeEvaluation(selected, query, quads, labels, reason)

    if not maintain:
        return whole("as requested")
    plan = plan_of(selected.text, [window.name for window in query.windows])
    if isinstance(plan, str):
        return whole(plan)
    # the engine chooses the order of the variables of SELECT *
    plan = replace(plan, variables=selected.variables)
    return IncrementalEvaluation(plan, query, quads, labels, whole)

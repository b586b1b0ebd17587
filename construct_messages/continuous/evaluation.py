"""The solutions of firings: by evaluating the whole query each time, or by maintaining its solutions.

Both follow the elements that enter and leave windows, and return the same solutions. `incremental/planner.py` decides
which queries are maintained. RSP-QL: RSTREAM, ISTREAM and DSTREAM. No times, and no messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from construct_messages.continuous.dataset.contents import Contents, ElementIri, HeldElement
from construct_messages.continuous.incremental.contents import HeldQuads
from construct_messages.continuous.incremental.expressions import NotMaintained
from construct_messages.continuous.incremental.maintained import MaintainedSolutions
from construct_messages.continuous.incremental.plan import MaintenancePlan
from construct_messages.continuous.incremental.planner import plan_of
from construct_messages.continuous.solutions import SelectedMessages, Solution, select_solutions
from construct_messages.labels import Labels
from construct_messages.message import Quad
from construct_messages.query.continuous.values import ContinuousQuery, Operator
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
    """Maintains the solutions; falls back to evaluating the whole query after values for which that is impossible.

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
        self._maintained: MaintainedSolutions | None = MaintainedSolutions(
            plan, query, static, labels
        )
        self._whole: WholeEvaluation | None = None
        self._has_fired = False
        self._counts: dict[Solution, int] = {}  # for RSTREAM, in the order of appearance
        # for a plan that may fall back: the elements at the last evaluation, and the changes since then
        self._held: dict[tuple[int, HeldQuads], None] = {}
        self._changed: list[tuple[int, HeldQuads, bool]] = []
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
            return HeldQuads({}, (stream, stream_iri, element_iri, time, element))
        return self._maintained.contents.hold(stream, stream_iri, element_iri, time, element)

    def _entered(self, window: int, held: HeldQuads) -> None:
        self._change(window, held, entered=True)

    def _left(self, window: int, held: HeldQuads) -> None:
        self._change(window, held, entered=False)

    def fire(self, *, changed: bool = True) -> list[Solution]:
        """Evaluates; see `WindowEvaluation`."""
        maintained = self._maintained
        if maintained is not None:
            if not changed or (maintained.are_current and not self._changed):
                return self._unchanged()
            try:
                return self._select(maintained)
            except NotMaintained as reason:
                self._whole = self._begin_whole(str(reason))
        assert self._whole is not None  # either
        return self._whole.fire(changed=changed)

    def _change(self, window: int, held: HeldQuads, *, entered: bool) -> None:
        maintained = self._maintained
        if maintained is None:
            assert self._whole is not None
            change = self._whole.enter if entered else self._whole.leave
            change(window, _held_whole(self._whole, held))
            return
        contents = maintained.contents
        (contents.enter if entered else contents.leave)(window, held)
        self._changed.append((window, held, entered))

    def _select(self, maintained: MaintainedSolutions) -> list[Solution]:
        appeared, vanished = maintained.difference()
        for window, held, entered in self._changed:
            if entered:
                self._held[window, held] = None
            else:
                del self._held[window, held]
        self._changed.clear()
        self._has_fired = True
        if self._operator is Operator.ISTREAM:
            return [_solution(row) for row in appeared]
        if self._operator is Operator.DSTREAM:
            return [_solution(row) for row in vanished]
        counts = self._counts
        for solution in map(_solution, vanished):
            if counts[solution] > 1:
                counts[solution] -= 1
            else:
                del counts[solution]
        for solution in map(_solution, appeared):
            counts[solution] = counts.get(solution, 0) + 1
        return self._unchanged()

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
        self._held.clear()
        self._changed.clear()
        self._counts.clear()
        return whole


def _solution(row: tuple[str, ...]) -> Solution:
    return row  # type: ignore[return-value] # each text is a term


def _held_whole(whole: WholeEvaluation, held: HeldQuads) -> HeldElement:
    if held.whole is None:
        assert held.origin is not None  # it is kept if a plan may fall back
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

"""Maintains the solutions of a plan as elements enter windows and leave them.

SPARQL 1.1 Query, section 18.5: the solutions of a query are a multiset, and so are their changes. The selection and
time of the output are not decided here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from construct_messages.continuous.incremental.branches import BranchOperators
from construct_messages.continuous.incremental.contents import MatchedContents
from construct_messages.continuous.incremental.groups import Groups
from construct_messages.continuous.incremental.plan import Branch, MaintenancePlan, Row
from construct_messages.continuous.incremental.quads import PatternMatcher
from construct_messages.continuous.incremental.relations import Names, picking
from construct_messages.continuous.incremental.rows import Counted, Steps, read_by
from construct_messages.query.algebra.nodes import Expression, Triple
from construct_messages.query.continuous.values import ContinuousQuery
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad


class SolutionChanges(NamedTuple):
    """Added and removed solutions, with repetitions."""

    appeared: list[Row]
    vanished: list[Row]


class MaintainedSolutions:
    """The solutions of a query over windows, by a plan.

    Args:
        plan: the plan.
        query: its windows, and the graphs that it needs of them.
        static: the quads of static data.
        labels: create the labels of all blank nodes.

    Attributes:
        contents: the contents of the windows.
    """

    def __init__(
        self, plan: MaintenancePlan, query: ContinuousQuery, static: Iterable[Quad], labels: Labels
    ) -> None:
        patterns, conditions = list[Triple](), list[Sequence[Expression]]()
        for branch in plan.branches:
            patterns += branch.all_patterns
            own = len(branch.patterns)
            conditions += [tuple(branch.conditions)] * own
            conditions += [()] * (len(branch.all_patterns) - own)
        self._matcher = PatternMatcher(patterns, conditions)
        self.contents = MatchedContents(query, static, labels, self._matcher, keep=plan.may_end)
        grouping = plan.grouping
        self._groups = None if grouping is None else Groups(grouping)
        needed = plan.variables if self._groups is None else self._groups.needed
        self._branches = list[_Branch]()
        self._handlers: list[Callable[[Row, int], None]] = []
        for branch in plan.branches:
            first = len(self._handlers)
            names = self._matcher.variables[first : first + len(branch.all_patterns)]
            made = _Branch(branch, names, needed)
            self._branches.append(made)
            self._handlers += made.operators.handlers
        known = plan.variables if self._groups is None else self._groups.variables
        self._project = None if known == plan.variables else projection(known, plan.variables)
        self._counts: dict[Row, int] | None = {} if plan.distinct else None
        self._has_begun = False  # the first difference is also that of inline data

    @property
    def are_current(self) -> bool:
        """Whether `difference` would return no changes, because no matching quad has entered or left."""
        return self._has_begun and not self.contents.are_changed

    def difference(self) -> SolutionChanges:
        """Returns the changes since the last call.

        Raises:
            SourceError: the engine failed.
        """
        self._has_begun = True
        matcher, handlers = self._matcher, self._handlers
        appeared, vanished = self.contents.changes()
        for quad in vanished:
            for number, row in matcher.matches(quad):
                handlers[number](row, -1)
        for quad in appeared:
            for number, row in matcher.matches(quad):
                handlers[number](row, 1)
        rows = [counted for branch in self._branches for counted in branch.changes()]
        if self._groups is not None:
            rows = self._groups.changes(rows)
        if self._project is not None:
            rows = [(self._project(row), count) for row, count in rows]
        return _difference(rows if self._counts is None else _distinct(rows, self._counts))


class _Branch:
    """The changes of the rows of a branch, and its steps."""

    def __init__(
        self,
        branch: Branch,
        names: Sequence[Names],
        needed: Names,
    ) -> None:
        self._net: defaultdict[Row, int] = defaultdict(int)
        read = {*needed, *(name for step in branch.steps for name in read_by(step))}
        self.operators = BranchOperators(branch, names, self._note, read)
        self._steps = Steps(branch.steps, self.operators.variables)
        variables = self._steps.variables
        self._project = None if variables == needed else projection(variables, needed)

    def _note(self, row: Row, sign: int) -> None:
        self._net[row] += sign

    def changes(self) -> list[Counted]:
        """Returns the changed rows and the changes of their counts, since the last call."""
        if not self._net:
            return []
        rows = self._steps.made([counted for counted in self._net.items() if counted[1]])
        self._net.clear()
        project = self._project
        return rows if project is None else [(project(row), count) for row, count in rows]


def projection(variables: Sequence[str], needed: Sequence[str]) -> Callable[[Row], Row]:
    """Returns a function for the values of some variables; missing ones are unbound.

    >>> projection(("x", "y"), ("y", "z"))(('"1"', '"2"'))
    ('"2"', '')
    """
    if all(name in variables for name in needed):
        return picking([variables.index(name) for name in needed])
    columns = [variables.index(name) if name in variables else None for name in needed]
    return lambda row: tuple("" if column is None else row[column] for column in columns)


def _difference(rows: Iterable[Counted]) -> SolutionChanges:
    net: dict[Row, int] = {}
    for row, count in rows:
        net[row] = net.get(row, 0) + count
    found = SolutionChanges([], [])
    for row, count in net.items():
        if count == 1:
            found.appeared.append(row)
        elif count > 0:
            found.appeared.extend([row] * count)
        elif count < 0:
            found.vanished.extend([row] * -count)
    return found


def _distinct(rows: Iterable[Counted], counts: dict[Row, int]) -> list[Counted]:
    """The changes of distinct rows."""
    before: dict[Row, int] = {}
    for row, count in rows:
        known = counts.get(row, 0)
        before.setdefault(row, known)
        if known + count:
            counts[row] = known + count
        else:
            counts.pop(row, None)
    return [(row, (row in counts) - (known > 0)) for row, known in before.items()]

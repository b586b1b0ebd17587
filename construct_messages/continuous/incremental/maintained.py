"""Maintains the solutions of a plan as elements enter windows and leave them.

SPARQL 1.1 Query, section 18.5: the solutions of a query are a multiset, and so are their changes. The selection and
time of the output are not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from construct_messages.continuous.incremental.contents import MatchedContents
from construct_messages.continuous.incremental.expressions import Row
from construct_messages.continuous.incremental.operators import netted, projection
from construct_messages.continuous.incremental.planner import Composition, MaintenancePlan
from construct_messages.continuous.incremental.quads import PatternMatcher
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
        composed = Composition(plan.pattern, plan.windows)
        self._matcher = PatternMatcher(composed.patterns, composed.conditions)
        self.contents = MatchedContents(query, static, labels, self._matcher, keep=plan.may_end)
        self._scans, self._root = composed.scans, composed.root
        self._project = projection(self._root.names, plan.variables)
        self._has_begun = False  # the first difference is also that of inline data

    @property
    def are_current(self) -> bool:
        """Whether `difference` would return no changes, because no matching quad has entered or left."""
        return self._has_begun and not self.contents.are_changed

    def difference(self) -> SolutionChanges:
        """Returns the changes since the last call.

        Raises:
            SourceError: the engine failed.
            NotMaintained: some values make it impossible.
        """
        self._has_begun = True
        matcher, scans = self._matcher, self._scans
        for sign, quads in zip((1, -1), self.contents.changes(), strict=True):
            for quad in quads:
                for number, row in matcher.matches(quad):
                    scans[number].pending.append((row, sign))
        found, project = SolutionChanges([], []), self._project
        for row, count in netted(self._root):
            solution = row if project is None else project(row)
            if count > 0:
                found.appeared.extend([solution] * count)
            else:
                found.vanished.extend([solution] * -count)
        return found

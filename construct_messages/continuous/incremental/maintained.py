"""Maintains the solutions of a plan as elements enter windows and leave them.

SPARQL 1.1 Query, section 18.5: the solutions of a query are a multiset, and so are their changes. The selection and
time of the output are not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from construct_messages.continuous.dataset import Contents, QuadReader, TextQuad
from construct_messages.continuous.incremental.expressions import Row, necessary
from construct_messages.continuous.incremental.operators import netted, picking, projection
from construct_messages.continuous.incremental.planner import Composition, MaintenancePlan
from construct_messages.query.algebra.nodes import Expression, Triple, Var
from construct_messages.query.continuous.values import ContinuousQuery
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad

# --- matches --------------------------------------------------------------------------------------
# Matches quads with the triple patterns of a plan.


class Match(NamedTuple):
    """A match of a pattern: the pattern's number, and the values of its variables."""

    pattern: int
    row: Row


class _CompiledPattern:
    """A triple pattern: the required terms of a quad, and the positions of variables."""

    def __init__(
        self, number: int, pattern: Triple, conditions: Iterable[Expression], reader: QuadReader
    ) -> None:
        self.number = number
        self.constants: list[tuple[int, str]] = []
        self.equal: list[tuple[int, int]] = []
        self.named = isinstance(pattern.graph, Var)
        columns: dict[str, int] = {}
        for place, position in enumerate(pattern.positions):
            if not isinstance(position, Var):
                text = "" if position is None else reader.stored(position)
                if place != 1:
                    self.constants.append((place, text))
            elif position.name in columns:
                self.equal.append((columns[position.name], place))
            else:
                columns[position.name] = place
        self.variables = tuple(columns)
        self.row = picking(list(columns.values()))
        self._test = necessary(conditions, self.variables)

    def matches(self, quad: TextQuad) -> bool:
        """Whether a quad with its predicate matches."""
        for place, text in self.constants:
            if quad[place] != text:
                return False
        if self.named and not quad[3]:
            return False
        for place, other in self.equal:
            if quad[place] != quad[other]:
                return False
        return self._test is None or self._test(self.row(quad))


class PatternMatcher:
    """Finds the patterns that a quad matches.

    Args:
        patterns: triple patterns.
        conditions: of each pattern, which only read its variables: a quad that fails one does not match.

    Attributes:
        reader: reads the quads that may match.
        variables: the variables of each pattern.

    >>> from construct_messages.rdf.terms import Term
    >>> matcher = PatternMatcher([Triple(Var("s"), Term("<urn:p>"), Var("o"))])
    >>> matcher.matches(("<urn:s>", "<urn:p>", '"o"', ""))
    [Match(pattern=0, row=('<urn:s>', '"o"'))]
    """

    def __init__(
        self, patterns: Sequence[Triple], conditions: Sequence[Iterable[Expression]] | None = None
    ) -> None:
        named = {p.predicate for p in patterns if not isinstance(p.predicate, Var)}
        every = any(isinstance(pattern.predicate, Var) for pattern in patterns)
        self.reader = QuadReader(None if every else frozenset(map(str, named)))
        compiled = [
            _CompiledPattern(number, pattern, conditions[number] if conditions else (), self.reader)
            for number, pattern in enumerate(patterns)
        ]
        self.variables = [one.variables for one in compiled]
        self._of = {
            predicate: [
                one
                for one, pattern in zip(compiled, patterns, strict=True)
                if isinstance(pattern.predicate, Var) or pattern.predicate == predicate
            ]
            for predicate in map(str, named)
        }
        self._others = [
            one
            for one, pattern in zip(compiled, patterns, strict=True)
            if isinstance(pattern.predicate, Var)
        ]

    def matched(self, quads: Iterable[TextQuad]) -> list[TextQuad]:
        """Returns the quads that match a pattern."""
        patterns, others, found = self._of, self._others, list[TextQuad]()
        for quad in quads:
            for one in patterns.get(quad[1], others):
                if one.matches(quad):
                    found.append(quad)
                    break
        return found

    def matches(self, quad: TextQuad) -> list[Match]:
        """Returns the matches of a quad."""
        return [
            Match(one.number, one.row(quad))
            for one in self._of.get(quad[1], self._others)
            if one.matches(quad)
        ]


# --- solutions ------------------------------------------------------------------------------------


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
        matcher = self._matcher
        self.contents = Contents(
            query, static, labels, matcher.reader, matcher.matched, keep=plan.may_end
        )
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

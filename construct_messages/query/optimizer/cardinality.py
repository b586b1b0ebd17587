"""Cardinality estimation: the numbers of solutions of patterns by the statistics of a table, and a join order.

A wrong estimate costs time, but the result is the same. Without statistics, guesses rank patterns: constants are
selective, `rdf:type` hardly is. `optimize` chooses the nodes of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from construct_messages.query.algebra.nodes import Triple, Var, VarOrTerm, Vars
from construct_messages.rdf.terms import RDF, Term, iri

# --- statistics -----------------------------------------------------------------------------------
# Statistics of a table of quads, by which the optimizer orders joins. No I/O, and no engine.


@dataclass(frozen=True)
class PredicateStatistics:
    """The figures of one predicate."""

    rows: int  # its quads
    subjects: int  # its distinct subjects, about
    objects: int  # its distinct objects, about


@dataclass(frozen=True)
class Statistics:
    """The figures of a table."""

    rows: int | None = None  # all quads
    distinct: bool = False  # whether each quad is in the table once
    # the figures of each predicate; empty if they are not known
    predicates: Mapping[Term, PredicateStatistics] = field(default_factory=dict)


# --- cardinality ----------------------------------------------------------------------------------

_TYPE: Final = iri(f"{RDF}type")
_ROWS: Final = 1_000_000
"""The quads of a table of unknown size."""


@dataclass(frozen=True)
class JoinStep:
    """A pattern in the order of joins."""

    pattern: Triple
    solutions: float  # the estimated number after it has been joined
    # whether it shares a variable with a pattern before it; the first one counts as connected
    connected: bool = True


@dataclass(frozen=True)
class Estimates:
    """Numbers of solutions, from the figures of a table."""

    statistics: Statistics

    @property
    def known(self) -> bool:
        """Whether there are figures of each predicate."""
        return bool(self.statistics.predicates)

    def figures(self, predicate: VarOrTerm) -> PredicateStatistics:
        """The quads of a predicate, or of all if it is a variable: exact, or guessed.

        >>> Estimates(Statistics()).figures(iri("urn:p"))
        PredicateStatistics(rows=50000, subjects=25000, objects=12500)
        """
        if not isinstance(predicate, Var) and self.known:
            return self.statistics.predicates.get(predicate, PredicateStatistics(0, 0, 0))
        rows = self.statistics.rows if self.statistics.rows is not None else _ROWS
        if isinstance(predicate, Var):
            return _guessed(rows, subjects=5, objects=4)
        # as in DBpedia or Wikidata: a handful of types for most subjects, and other predicates a twentieth of the rows
        return (
            _guessed(rows // 5, subjects=1, objects=1000)
            if predicate == _TYPE
            else _guessed(rows // 20, 2, 4)
        )

    def matches(self, pattern: Triple, bound: Vars = frozenset()) -> float:
        """The matches of a pattern for one solution that binds `bound`.

        >>> x, y, p = Var("x"), Var("y"), iri("urn:p")
        >>> known = Estimates(Statistics(60, True, {p: PredicateStatistics(60, 30, 20)}))
        >>> known.matches(Triple(x, p, y)), known.matches(Triple(x, p, y), frozenset({x}))
        (60.0, 2.0)
        """
        figures = self.figures(pattern.predicate)
        matches = float(figures.rows)
        if _is_bound(pattern.subject, bound):
            matches /= max(figures.subjects, 1)
        if _is_bound(pattern.object, bound):
            matches /= max(figures.objects, 1)
        elif pattern.object == pattern.subject:
            matches /= max(figures.subjects, figures.objects, 1)
        return matches

    def ordered(self, patterns: Iterable[Triple]) -> list[JoinStep]:
        """The patterns in the order to join them: the fewest solutions first, and no cross product that can wait."""
        left, order, bound = list(patterns), list[Triple](), frozenset[Var]()
        while left:

            def rank(pattern: Triple, bound: Vars = bound) -> tuple[bool, float]:
                return not _connected(pattern, bound), self.matches(pattern, bound)

            order.append(min(left, key=rank))
            left.remove(order[-1])
            bound |= order[-1].variables
        return self.as_written(order)

    def as_written(self, patterns: Iterable[Triple]) -> list[JoinStep]:
        """The patterns in the order that they have, with the same figures."""
        steps, bound, solutions = list[JoinStep](), frozenset[Var](), 1.0
        for pattern in patterns:
            solutions *= self.matches(pattern, bound)
            steps.append(JoinStep(pattern, solutions, not steps or _connected(pattern, bound)))
            bound |= pattern.variables
        return steps


def _guessed(rows: int, subjects: int, objects: int) -> PredicateStatistics:
    """Figures if only the rows are known, or not even the rows, by the number of quads that a subject and an object
    have."""
    return PredicateStatistics(rows, max(rows // subjects, 1), max(rows // objects, 1))


def _is_bound(position: VarOrTerm, bound: Vars) -> bool:
    return not isinstance(position, Var) or position in bound


def _connected(pattern: Triple, bound: Vars) -> bool:
    """Whether the pattern shares one of the bound variables, or has no variable."""
    mentioned = pattern.variables
    return not mentioned or bool(mentioned & bound)

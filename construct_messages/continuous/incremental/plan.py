"""The values of a plan for maintained solutions: joins of patterns, dependent patterns, steps and groups.

`planner.py` creates plans from the SPARQL algebra, and the operators evaluate them. No evaluation here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from construct_messages.query.algebra.calls import conjuncts
from construct_messages.query.algebra.nodes import Aggregation, Expression, Triple, Values, Var

Row: TypeAlias = "tuple[str, ...]"
"""The values of some variables, as terms; the empty string is unbound."""


class Dependence(Enum):
    """The dependence of a solution on further patterns."""

    OPTIONAL = "OPTIONAL"
    """It is extended by each match, or unchanged without a match."""
    MINUS = "MINUS"
    """It is left out if there is a match: MINUS, NOT EXISTS."""
    EXISTS = "EXISTS"
    """It is left out if there is no match."""


@dataclass(frozen=True)
class Dependent:
    """Patterns on which each solution of a branch depends, by variables that all solutions bind.

    Args:
        kind: the kind of dependence.
        patterns: the patterns to join.
        condition: on solutions of both, or None.
    """

    kind: Dependence
    patterns: tuple[Triple, ...]
    condition: Expression | None = None


@dataclass(frozen=True)
class FilterStep:
    """Keeps a solution if a condition is true."""

    condition: Expression


@dataclass(frozen=True)
class ExtendStep:
    """Binds a variable; an error leaves it unbound."""

    variable: Var
    expression: Expression


Step: TypeAlias = FilterStep | ExtendStep


@dataclass(frozen=True)
class Branch:
    """One operand of a UNION, or the whole pattern.

    Args:
        patterns: the patterns to join.
        tables: inline data to join, without UNDEF and without equal rows, with terms as a store returns them.
        dependents: the dependent patterns, in order.
        steps: applied to each solution.
    """

    patterns: tuple[Triple, ...]
    tables: tuple[Values, ...] = ()
    dependents: tuple[Dependent, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def all_patterns(self) -> tuple[Triple, ...]:
        """Its patterns, then those of its dependents."""
        return self.patterns + tuple(
            pattern for dependent in self.dependents for pattern in dependent.patterns
        )

    @property
    def conditions(self) -> Iterator[Expression]:
        """The conditions all of which each solution fulfils."""
        for step in self.steps:
            if isinstance(step, FilterStep):
                yield from conjuncts(step.condition)


@dataclass(frozen=True)
class GroupingPlan:
    """GROUP BY over the solutions of all branches.

    Args:
        keys: the variables of a group; without keys, there is always one group.
        aggregates: variables, and the aggregates that they are bound to.
        steps: applied to each group.
    """

    keys: tuple[Var, ...]
    aggregates: tuple[tuple[Var, Aggregation], ...]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class MaintenancePlan:
    """The plan for maintaining the solutions of a query.

    Args:
        branches: the branches, whose solutions are combined.
        grouping: their grouping, or None.
        distinct: whether equal solutions count once.
        variables: the names of the values of a solution.
    """

    branches: tuple[Branch, ...]
    grouping: GroupingPlan | None
    distinct: bool
    variables: tuple[str, ...]

    @property
    def may_end(self) -> bool:
        """Whether some values make maintaining the solutions impossible."""
        grouping = self.grouping
        return any(
            dependent.condition is not None
            for branch in self.branches
            for dependent in branch.dependents
        ) or (grouping is not None and any(one.name != "COUNT" for _, one in grouping.aggregates))

    def __str__(self) -> str:
        """Describes the plan: its operators, innermost first."""
        return "; ".join(
            (
                " union ".join(map(_described, self.branches)),
                *(() if self.grouping is None else [_described_grouping(self.grouping)]),
                *(("distinct solutions",) if self.distinct else ()),
            )
        )


def _described(branch: Branch) -> str:
    parts = [f"join of {_number(len(branch.patterns), 'triple pattern')}"]
    if branch.tables:
        parts.append("VALUES")
    parts += (dependent.kind.value for dependent in branch.dependents)
    parts += ("FILTER" if isinstance(step, FilterStep) else "BIND" for step in branch.steps)
    return ", ".join(dict.fromkeys(parts))


def _described_grouping(grouping: GroupingPlan) -> str:
    names = ", ".join(dict.fromkeys(one.name for _, one in grouping.aggregates))
    return f"{_number(len(grouping.keys), 'key')} of GROUP BY" + (f" with {names}" if names else "")


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

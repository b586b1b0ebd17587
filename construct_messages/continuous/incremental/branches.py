"""The operators of one branch of a plan, and the handlers for the matches of each triple pattern.

Patterns that share their graph's variable or their subject are joined first, as a quad changes few rows of these joins
in a window; then the results of these joins are joined. SPARQL 1.1 Query, section 18.5. No quads are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final

from construct_messages.continuous.incremental.expressions import certain, is_about, necessary
from construct_messages.continuous.incremental.operators import (
    DependentOperator,
    JoinOperator,
    Target,
    Test,
)
from construct_messages.continuous.incremental.plan import (
    Branch,
    Dependent,
    Row,
)
from construct_messages.continuous.incremental.relations import Names
from construct_messages.query.algebra.nodes import Triple, Values, Var
from construct_messages.query.continuous.values import MEMBER

_MEMBER: Final = f"<{MEMBER}>"
_ONE_ROW: Final = Values((), ((),))


class BranchOperators:
    """The operators of a branch.

    Args:
        branch: the branch.
        names: the variables of each triple pattern of the branch, and then of its dependents, in order. The
            matches of a pattern of the branch have passed the conditions that only read its variables.
        target: called with the rows of the branch, before its steps; some may be repeated.
        needed: the variables of these rows that are read.

    Attributes:
        variables: the variables of these rows.
        handlers: the functions to call with the rows of each triple pattern.
    """

    def __init__(
        self,
        branch: Branch,
        names: Sequence[Names],
        target: Target,
        needed: Container[str],
    ) -> None:
        self.handlers: list[Target] = [target] * len(names)
        self._tables: list[tuple[Target, list[Row]]] = []
        last = self._joined(branch, names, None if branch.dependents else needed)
        first = len(branch.patterns)
        for dependent in branch.dependents:
            numbers = range(first, first + len(dependent.patterns))
            first += len(numbers)
            others = JoinOperator([names[number] for number in numbers])
            for place, number in enumerate(numbers):
                self.handlers[number] = _side_of(others, place)
            operator = DependentOperator(
                dependent.kind, last.variables, others.variables, _condition_of(dependent)
            )
            others.target, last.target = operator.change_other, operator.change
            last = operator
        last.target = target
        self.variables = last.variables
        for handler, rows in self._tables:
            for row in rows:
                handler(row, 1)

    def _joined(
        self,
        branch: Branch,
        names: Sequence[Names],
        needed: Container[str] | None,
    ) -> JoinOperator | DependentOperator:
        """The join of the patterns and tables of the branch."""
        stars: dict[str, list[int]] = {}
        for number, pattern in enumerate(branch.patterns):
            stars.setdefault(_hub(pattern), []).append(number)

        # the others were tested on the matches of one pattern
        conditions = [
            condition
            for condition in branch.conditions
            if not any(is_about(condition, names[n]) for n in range(len(branch.patterns)))
        ]

        def test(variables: Names) -> Test | None:
            return necessary(conditions, variables)

        joins = []
        for numbers in stars.values():
            join = JoinOperator([names[number] for number in numbers], test)
            for place, number in enumerate(numbers):
                self.handlers[number] = _side_of(join, place)
            joins.append(join)
        tables = branch.tables if joins or branch.tables else (_ONE_ROW,)
        if len(joins) == 1 and not tables:
            return joins[0]
        of_tables = [tuple(variable.name for variable in table.variables) for table in tables]
        whole = JoinOperator([*(join.variables for join in joins), *of_tables], test, needed)
        for place, join in enumerate(joins):
            join.target = _side_of(whole, place)
        for place, table in enumerate(tables, len(joins)):
            rows = [tuple(term or "" for term in row) for row in table.solutions]
            self._tables.append((_side_of(whole, place), rows))
        return whole


def _side_of(join: JoinOperator, place: int) -> Target:
    change = join.change
    return lambda row, sign: change(place, row, sign)


def _hub(pattern: Triple) -> str:
    """The variable on which a pattern is joined first."""
    if isinstance(pattern.graph, Var):
        return pattern.graph.name
    if isinstance(pattern.subject, Var):
        return pattern.subject.name
    if pattern.predicate == _MEMBER and isinstance(pattern.object, Var):
        return pattern.object.name
    return ""


def _condition_of(dependent: Dependent) -> Callable[[Names], Test] | None:
    condition = dependent.condition
    return None if condition is None else lambda variables: certain(condition, variables)

"""Operators that maintain their rows: joins, OPTIONAL, MINUS and EXISTS, each called with the changes of its operands.

All rows but those of the last join have all variables of their patterns, so that none is repeated. SPARQL 1.1 Query,
section 18.5. `plan.py` has the structure of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import TypeAlias

from construct_messages.continuous.incremental.plan import Dependence, Row
from construct_messages.continuous.incremental.relations import (
    IncrementalJoin,
    IndexedRelation,
    Names,
    picking,
    taking,
)

Test: TypeAlias = Callable[[Row], bool]
Target: TypeAlias = Callable[[Row, int], None]
"""Called with a row that was added (1) or removed (-1)."""


class JoinOperator:
    """The join of relations.

    Args:
        variables: the variables of each relation.
        test: creates the filter of rows from their variables; None: all rows pass.
        needed: the variables of its rows, which are then repeated; None: all.

    Attributes:
        variables: the variables of its rows.
        target: called with its rows.
    """

    def __init__(
        self,
        variables: Sequence[Names],
        test: Callable[[Names], Test | None] | None = None,
        needed: Container[str] | None = None,
    ) -> None:
        self._relations = [IndexedRelation(names) for names in variables]
        self._join = IncrementalJoin(self._relations, needed)
        self.variables = self._join.variables
        self._test = None if test is None else test(self.variables)
        self.target: Target = _nobody

    def change(self, number: int, row: Row, sign: int) -> None:
        """A row of a relation was added or removed."""
        relation = self._relations[number]
        if sign < 0:
            relation.remove(row)
        rows = self._join.rows_of(number, row)
        if sign > 0:
            relation.insert(row)
        target, test = self.target, self._test
        for found in rows:
            if test is None or test(found):
                target(found, sign)


class DependentOperator:
    """Rows that depend on matching other rows: OPTIONAL, MINUS, EXISTS.

    Args:
        kind: the kind of dependence.
        variables: the variables of the rows.
        others: the variables of the other rows; shared variables are bound in all rows of both.
        condition: creates the filter of rows extended by a match from their variables; None: all pass.

    Attributes:
        variables: the variables of the resulting rows.
        target: called with the resulting rows.
    """

    def __init__(
        self,
        kind: Dependence,
        variables: Names,
        others: Names,
        condition: Callable[[Names], Test] | None = None,
    ) -> None:
        shared = tuple(name for name in others if name in variables)
        new = [place for place, name in enumerate(others) if name not in shared]
        self._rows, self._others = IndexedRelation(variables), IndexedRelation(others)
        self._of_row, self._of_other = self._rows.finder(shared), self._others.finder(shared)
        self._key = taking([variables.index(name) for name in shared])
        self._key_of_other = taking([others.index(name) for name in shared])
        self._added: Callable[[Row], Row] = picking(new) if new else lambda _: ()
        self._nothing = ("",) * len(new)
        self._kind = kind
        self.target: Target = _nobody
        extended = (*variables, *(others[place] for place in new))
        self._test = None if condition is None else condition(extended)
        self.variables = extended if kind is Dependence.OPTIONAL else variables

    def change(self, row: Row, sign: int) -> None:
        """A row was added or removed."""
        if sign > 0:
            self._rows.insert(row)
        else:
            self._rows.remove(row)
        matches = self._matches(row)
        first = next(matches, None)
        if self._kind is not Dependence.OPTIONAL:
            if (first is None) is (self._kind is Dependence.MINUS):
                self.target(row, sign)
        elif first is None:
            self.target(row + self._nothing, sign)
        else:
            self.target(first, sign)
            for extended in matches:
                self.target(extended, sign)

    def change_other(self, other: Row, sign: int) -> None:
        """A row that others depend on was added or removed."""
        if sign < 0:
            self._others.remove(other)
        for row in list(self._of_row(self._key_of_other(other))):
            extended = row + self._added(other)
            if self._test is not None and not self._test(extended):
                continue
            is_alone = next(self._matches(row), None) is None  # without this one
            if self._kind is Dependence.OPTIONAL:
                # the removal comes first: both rows are the same if the OPTIONAL binds no further variable
                if is_alone and sign > 0:
                    self.target(row + self._nothing, -1)
                self.target(extended, sign)
                if is_alone and sign < 0:
                    self.target(row + self._nothing, 1)
            elif is_alone:
                self.target(row, sign if self._kind is Dependence.EXISTS else -sign)
        if sign > 0:
            self._others.insert(other)

    def _matches(self, row: Row) -> Iterator[Row]:
        for other in self._of_other(self._key(row)):
            extended = row + self._added(other)
            if self._test is None or self._test(extended):
                yield extended


def _nobody(row: Row, sign: int) -> None:
    """The target of an operator whose rows are not read."""

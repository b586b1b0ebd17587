"""Maintains groups of solutions. SPARQL 1.1 Query, sections 11 and 18.5."""

from __future__ import annotations

from collections.abc import Iterable

from construct_messages.continuous.incremental.aggregates import Aggregate, aggregate_of
from construct_messages.continuous.incremental.plan import ExtendStep, GroupingPlan, Row
from construct_messages.continuous.incremental.relations import Names, picking
from construct_messages.continuous.incremental.rows import Counted, Steps
from construct_messages.query.algebra.calls import mentioned
from construct_messages.query.algebra.nodes import Expression, Var


class _Group:
    """A group: the number of its solutions, and its aggregates."""

    __slots__ = ("aggregates", "count", "row")

    def __init__(self, aggregates: list[Aggregate]) -> None:
        self.aggregates = aggregates
        self.count = 0
        self.row: Row | None = None  # the row that was passed on


class Groups:
    """The groups of solutions.

    Args:
        grouping: the keys and aggregates.

    Attributes:
        needed: the variables that it reads of the solutions.
        variables: the variables of the rows of groups, after the steps.
    """

    def __init__(self, grouping: GroupingPlan) -> None:
        keys = [key.name for key in grouping.keys]
        arguments = [one.argument for _, one in grouping.aggregates]
        read = [name for argument in arguments if argument for name in _names_in(argument)]
        self.needed: Names = tuple(dict.fromkeys((*keys, *read)))
        computed = {
            argument: Var(f".c{place}")
            for place, argument in enumerate(arguments)
            if argument is not None and not isinstance(argument, Var)
        }
        before = [ExtendStep(variable, argument) for argument, variable in computed.items()]
        self._before = Steps(before, self.needed)
        columns = {name: place for place, name in enumerate(self._before.variables)}
        self._columns = [
            None
            if argument is None
            else columns[argument.name if isinstance(argument, Var) else computed[argument].name]
            for argument in arguments
        ]
        self._key = picking([columns[key] for key in keys])
        self._aggregations = [one for _, one in grouping.aggregates]
        names = [*keys, *(variable.name for variable, _ in grouping.aggregates)]
        self._after = Steps(grouping.steps, names)
        self.variables: Names = self._after.variables
        self._groups: dict[Row, _Group] = {}
        self._changed: dict[Row, _Group] = {}
        self._is_single = not keys
        if self._is_single:
            self._changed[()] = self._group(())

    def changes(self, rows: Iterable[Counted]) -> list[Counted]:
        """Returns the changes of the rows of groups since the last call.

        Raises:
            NotMaintained: see `Aggregate`.
        """
        changed, columns = self._changed, self._columns
        for row, count in self._before.made(rows):
            key = self._key(row)
            group = changed[key] = self._groups.get(key) or self._group(key)
            group.count += count
            for column, aggregate in zip(columns, group.aggregates, strict=True):
                aggregate.change("*" if column is None else row[column], count)
        made = list[Counted]()
        for key, group in changed.items():
            before, now = group.row, None
            if group.count or self._is_single:
                now = (*key, *(aggregate.result for aggregate in group.aggregates))
            else:
                del self._groups[key]
            if before != now:
                made += [(row, sign) for row, sign in ((before, -1), (now, 1)) if row is not None]
            group.row = now
        changed.clear()
        return self._after.made(made)

    def _group(self, key: Row) -> _Group:
        group = self._groups[key] = _Group([aggregate_of(one) for one in self._aggregations])
        return group


def _names_in(expression: Expression) -> list[str]:
    return [variable.name for variable in mentioned(expression)]

"""Maintains the solutions of a plan as elements enter windows and leave them.

SPARQL 1.1 Query, section 18.5: the solutions of a query are a multiset, and so are their changes. The selection and
time of the output are not decided here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from construct_messages.continuous.incremental.aggregates import Aggregate, aggregate_of
from construct_messages.continuous.incremental.contents import MatchedContents
from construct_messages.continuous.incremental.expressions import certain, is_about, necessary
from construct_messages.continuous.incremental.plan import (
    Branch,
    Dependence,
    Dependent,
    ExtendStep,
    GroupingPlan,
    MaintenancePlan,
    Row,
)
from construct_messages.continuous.incremental.quads import PatternMatcher
from construct_messages.continuous.incremental.relations import (
    IncrementalJoin,
    IndexedRelation,
    Names,
    picking,
    taking,
)
from construct_messages.continuous.incremental.rows import Counted, Steps, read_by
from construct_messages.query.algebra.calls import mentioned
from construct_messages.query.algebra.nodes import Expression, Triple, Values, Var
from construct_messages.query.continuous.values import MEMBER, ContinuousQuery
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad

# --- groups ---------------------------------------------------------------------------------------
# Maintains groups of solutions. SPARQL 1.1 Query, sections 11 and 18.5.


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


# --- branches -------------------------------------------------------------------------------------
# The operators of one branch of a plan, and the handlers for the matches of each triple pattern.
#
# Patterns that share their graph's variable or their subject are joined first, as a quad changes few rows of these
# joins in a window; then the results of these joins are joined. SPARQL 1.1 Query, section 18.5. No quads are read
# here.

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


# --- operators ------------------------------------------------------------------------------------
# Operators that maintain their rows: joins, OPTIONAL, MINUS and EXISTS, each called with the changes of its operands.
#
# All rows but those of the last join have all variables of their patterns, so that none is repeated. SPARQL 1.1
# Query, section 18.5. `plan.py` has the structure of queries.

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


# --- maintained -----------------------------------------------------------------------------------


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

"""Creates the plan for maintaining a query by difference from the SPARQL algebra, if possible.

Joins of triple patterns and inline data, OPTIONAL, MINUS and EXISTS of triple patterns on variables that are bound,
FILTER, BIND, UNION around these, one GROUP BY or DISTINCT around all: other queries are evaluated as a whole. SPARQL
1.1 Query, section 18.5; Pérez, Arenas, Gutierrez, "Semantics and Complexity of SPARQL" (2009), on the patterns whose
OPTIONALs may be evaluated last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from construct_messages.continuous.incremental.expressions import native
from construct_messages.continuous.incremental.plan import (
    Branch,
    Dependence,
    Dependent,
    ExtendStep,
    FilterStep,
    GroupingPlan,
    MaintenancePlan,
    Step,
)
from construct_messages.continuous.incremental.quads import QuadReader
from construct_messages.query.algebra.calls import (
    conjunction,
    conjuncts,
    exists_in,
    map_bodies,
    mentioned,
)
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Call,
    Constant,
    Dataset,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Project,
    Slice,
    Star,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
    Vars,
)
from construct_messages.query.algebra.translation import translate_query
from construct_messages.query.continuous.values import TIMESTAMP
from construct_messages.query.tokens import tokenize
from construct_messages.rdf.errors import ConstructMessagesError
from construct_messages.rdf.terms import Term

# --- renaming -------------------------------------------------------------------------------------
# Renames variables in patterns of the algebra, and removes projections that only hide names.
#
# SPARQL 1.1 Query, section 12: variables that a sub-select does not project are not visible outside, so they may be
# renamed to any unused name.


def renamed(node: Node, names: Mapping[Var, Var]) -> Node:
    """Returns a pattern with renamed variables.

    Args:
        node: without paths, stars, sub-selects that are sliced, and names of graphs.
        names: the new names by the old ones.

    >>> renamed(Bgp((Triple(Var("s"), Var("p"), Var("o")),)), {Var("s"): Var("x")}).patterns[0].subject
    Var(name='x')
    """

    def name(variable: Var) -> Var:
        return names.get(variable, variable)

    def place(position: VarOrTerm) -> VarOrTerm:
        return name(position) if isinstance(position, Var) else position

    if node.children:
        node = node.with_children(tuple(renamed(child, names) for child in node.children))
    node = node.map_expressions(lambda expression: _renamed_in(expression, names))
    match node:
        case Bgp(patterns):
            return Bgp(
                tuple(
                    Triple(
                        place(one.subject),
                        place(one.predicate),
                        place(one.object),
                        None if one.graph is None else place(one.graph),
                    )
                    for one in patterns
                )
            )
        case Values(variables):
            return replace(node, variables=tuple(map(name, variables)))
        case Extend(variable=variable):
            return replace(node, variable=name(variable))
        case Group(keys=keys, aggregates=aggregates):
            return replace(
                node,
                keys=tuple(map(name, keys)),
                aggregates=tuple((name(variable), one) for variable, one in aggregates),
            )
        case Project(variables=variables):
            return replace(node, variables=tuple(map(name, variables)))
        case Minus(within=within):
            return replace(node, within=frozenset(map(name, within)))
    return node


def _renamed_in(expression: Expression, names: Mapping[Var, Var]) -> Expression:
    match expression:
        case Var():
            return names.get(expression, expression)
        case Constant():
            return expression
        case Call(name, arguments):
            return Call(name, tuple(_renamed_in(argument, names) for argument in arguments))
        case Exists():
            return map_bodies(expression, lambda body: renamed(body, names))


class Unprojected:
    """Removes projections, and renames hidden variables to unused names."""

    def __init__(self) -> None:
        self._number = count()

    def __call__(self, node: Node) -> Node:
        """Returns the pattern without projections; its solutions also bind hidden variables."""
        if node.children:
            node = node.with_children(tuple(map(self, node.children)))
        node = node.map_expressions(lambda expression: map_bodies(expression, self))
        match node:
            case Project(pattern, variables):
                hidden = pattern.possible.difference(variables)
                return renamed(pattern, {variable: self._fresh() for variable in hidden})
            case Extend(pattern, variable, Var() as same) if (
                same.hidden and same in pattern.certain and variable not in pattern.possible
            ):  # the graph of a group
                return renamed(pattern, {same: variable})
        return node

    def _fresh(self) -> Var:
        return Var(f".u{next(self._number)}")


# --- planner --------------------------------------------------------------------------------------

_NOW: Final = Term('"now"')
"""The value of NOW(), which cannot occur in the text of a query."""

_NEW: Final = frozenset(("RAND", "UUID", "STRUUID", "BNODE", "FRESH"))
_MOST_BRANCHES: Final = 16


class _Refused(Exception):
    """Raised with the reason why a query cannot be maintained."""


def plan_of(select: str, windows: Iterable[str]) -> MaintenancePlan | str:
    """Returns the plan of a query, or the reason why it is evaluated as a whole.

    Args:
        select: a SELECT query, without prefixed names that the engine cannot parse.
        windows: the names of windows, without brackets.

    >>> plan_of("SELECT ?s { GRAPH <urn:w> { ?s <urn:p> ?o } }", ["urn:w"]).variables
    ('s',)
    >>> plan_of("SELECT ?s { GRAPH <urn:w> { ?s <urn:p>* ?o } }", ["urn:w"])
    'a property path of any length'
    """
    try:
        return _Planner(frozenset(f"<{window}>" for window in windows)).plan(select)
    except _Refused as refused:
        return str(refused)
    except ConstructMessagesError as error:
        return str(error)


@dataclass(frozen=True)
class _Part:
    """A branch under construction.

    Args:
        branch: its patterns and steps so far.
        core: the variables of its patterns and tables, which are bound in all its solutions.
        possible: all variables of its solutions.
    """

    branch: Branch
    core: Vars = frozenset()
    possible: Vars = frozenset()

    @property
    def only_patterns(self) -> bool:
        """Whether it only has patterns and filters."""
        branch = self.branch
        filters = all(isinstance(step, FilterStep) for step in branch.steps)
        return bool(branch.patterns) and filters and not branch.dependents and not branch.tables

    def with_step(self, step: Step) -> _Part:
        return replace(self, branch=replace(self.branch, steps=(*self.branch.steps, step)))


class _Planner:
    """Creates the plan of one query.

    Args:
        windows: the names of windows.
    """

    def __init__(self, windows: frozenset[str]) -> None:
        self._windows = windows

    def plan(self, select: str) -> MaintenancePlan:
        """Returns the plan.

        Raises:
            _Refused: the query cannot be maintained.
            QueryError: this package's algebra does not support the query.
        """
        if TIMESTAMP in select:
            raise _Refused("the function timestamp")
        if any(token.keyword == "REDUCED" for token in tokenize(select)):
            raise _Refused("REDUCED")
        query = translate_query(select, now=_NOW)
        if query.dataset != Dataset():
            raise _Refused("FROM")
        node, is_distinct = query.pattern, False
        if isinstance(node, Slice):
            raise _Refused("LIMIT or OFFSET")
        if isinstance(node, Distinct):
            node, is_distinct = node.pattern, True
        assert isinstance(node, Project)
        if isinstance(node.pattern, OrderBy):
            raise _Refused("ORDER BY")
        node = Unprojected()(node)
        grouping, steps = None, list[Step]()
        below = node
        while isinstance(below, Filter | Extend):
            below = below.pattern
        if isinstance(below, Group):
            while isinstance(node, Filter | Extend):
                steps.insert(0, _step(node))
                node = node.pattern
            grouping = _grouping(below, steps)
            node = below.pattern
        parts = self._parts(node)
        return MaintenancePlan(
            tuple(part.branch for part in parts), grouping, is_distinct, query.variables
        )

    def _parts(self, node: Node) -> list[_Part]:
        """The branches of a pattern."""
        match node:
            case Unit():
                return [_Part(Branch(()))]
            case Bgp(patterns):
                return [_Part(Branch(patterns), node.possible, node.possible)]
            case Values():
                return [_table(node)]
            case Join(Graphs(graph), other) | Join(other, Graphs(graph)):
                return self._within(graph, other)
            case Join(left, right):
                parts = [
                    _joined(one, other) for one in self._parts(left) for other in self._parts(right)
                ]
                return _few(parts)
            case Union(left, right):
                return _few([*self._parts(left), *self._parts(right)])
            case Filter(pattern, condition):
                parts = self._parts(pattern)
                for conjunct in conjuncts(condition):
                    parts = [self._filtered(part, conjunct) for part in parts]
                return parts
            case Extend(pattern):
                return [_extended(part, node) for part in self._parts(pattern)]
            case LeftJoin(left, right, condition):
                return [
                    self._depending(part, Dependence.OPTIONAL, right, condition)
                    for part in self._parts(left)
                ]
            case Minus(left, right, within):
                return [self._without(part, right, within) for part in self._parts(left)]
        raise _Refused(_NAMES.get(type(node), type(node).__name__))

    def _within(self, graph: object, other: Node) -> list[_Part]:
        """A pattern within the graph of a window; the engine ignores the graph if it has no pattern to match."""
        parts = self._parts(other)
        if graph not in self._windows or not all(part.branch.patterns for part in parts):
            raise _Refused("GRAPH without a pattern in it")
        return parts

    def _filtered(self, part: _Part, condition: Expression) -> _Part:
        match condition:
            case Exists(pattern):
                return self._depending(part, Dependence.EXISTS, pattern, is_exists=True)
            case Call("!", (Exists(pattern),)):
                return self._depending(part, Dependence.MINUS, pattern, is_exists=True)
        _check(condition)
        return part.with_step(FilterStep(condition))

    def _without(self, part: _Part, right: Node, within: Vars) -> _Part:
        found = self._parts(right)
        if all(not (one.possible & part.possible) - within for one in found):
            return part  # without a shared variable, it excludes nothing
        return self._depending(part, Dependence.MINUS, right)

    def _depending(
        self,
        part: _Part,
        kind: Dependence,
        right: Node,
        condition: Expression | None = None,
        *,
        is_exists: bool = False,
    ) -> _Part:
        """A branch whose solutions depend on those of another pattern.

        A FILTER in OPTIONAL and MINUS only sees that pattern (section 8.3.3), except for the condition of OPTIONAL. One
        in EXISTS also sees the solution.
        """
        found = self._parts(right)
        if len(found) != 1 or not found[0].only_patterns:
            raise _Refused(f"{kind.value} of more than triple patterns with FILTER")
        (other,) = found
        conditions = [step.condition for step in other.branch.steps if isinstance(step, FilterStep)]
        _require(
            other.possible & part.possible <= part.core,
            f"{kind.value} with a variable that may be unbound",
        )
        for one in conditions:
            outside = frozenset(mentioned(one)) - other.possible
            visible = part.core if is_exists else frozenset()
            _require(
                outside & part.possible <= visible,
                f"{kind.value} whose FILTER reads more than it binds",
            )
        if condition is not None:
            _check(condition)
            conditions.append(condition)
            reads = frozenset(mentioned(condition)) & part.possible
            _require(reads <= part.core | other.possible, "OPTIONAL whose FILTER reads BIND")
        _check_steps(part, other)
        columns = {each.name: place for place, each in enumerate(part.possible | other.possible)}
        _require(
            all(native(one, columns) is not None for one in conditions),
            f"{kind.value} whose FILTER only the engine can evaluate",
        )
        dependent = Dependent(kind, other.branch.patterns, conjunction(conditions))
        branch = replace(part.branch, dependents=(*part.branch.dependents, dependent))
        possible = part.possible | other.possible if kind is Dependence.OPTIONAL else part.possible
        return replace(part, branch=branch, possible=possible)


_NAMES: Final[dict[type, str]] = {
    Path: "a property path of any length",
    Graphs: "GRAPH without a pattern in it",
    Group: "GROUP BY in a part of the pattern",
    Distinct: "DISTINCT in a sub-select",
    Slice: "LIMIT or OFFSET in a sub-select",
    OrderBy: "ORDER BY in a sub-select",
    Number: "BNODE",
    Star: "a star",
}


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _Refused(reason)


def _few(parts: list[_Part]) -> list[_Part]:
    _require(len(parts) <= _MOST_BRANCHES, "UNIONs of very many combinations")
    return parts


def _table(node: Values) -> _Part:
    _require(all(None not in row for row in node.solutions), "UNDEF")
    stored = QuadReader(None).stored
    rows = tuple(tuple(stored(term) for term in row if term is not None) for row in node.solutions)
    _require(len(set(rows)) == len(rows), "equal rows of VALUES")
    return _Part(Branch((), (Values(node.variables, rows),)), node.possible, node.possible)


def _joined(left: _Part, right: _Part) -> _Part:
    """The join of two branches, followed by their steps and dependents, if that makes no difference."""
    for part, other in ((left, right), (right, left)):
        _require(
            part.possible & other.possible <= part.core,
            "a join on a variable that may be unbound or is computed",
        )
        _check_steps(part, other)
        for dependent in part.branch.dependents:
            matched = _variables_of(dependent.patterns)
            _require(
                matched & other.possible <= part.core,
                f"{dependent.kind.value} with a variable that is bound elsewhere",
            )
            if dependent.condition is not None:
                own = part.core | matched
                _require(
                    frozenset(mentioned(dependent.condition)) & other.possible <= own,
                    f"{dependent.kind.value} whose FILTER reads a variable that is bound elsewhere",
                )
    one, two = left.branch, right.branch
    return _Part(
        Branch(
            one.patterns + two.patterns,
            one.tables + two.tables,
            one.dependents + two.dependents,
            one.steps + two.steps,
        ),
        left.core | right.core,
        left.possible | right.possible,
    )


def _variables_of(patterns: Sequence[Triple]) -> Vars:
    return NOTHING.union(*(pattern.variables for pattern in patterns))


def _check_steps(part: _Part, other: _Part) -> None:
    """Rejects steps that would see variables of patterns that are joined before them."""
    for step in part.branch.steps:
        expression = step.condition if isinstance(step, FilterStep) else step.expression
        _require(
            frozenset(mentioned(expression)) & other.possible <= part.core,
            "an expression with a variable that is bound elsewhere",
        )


def _extended(part: _Part, node: Extend) -> _Part:
    _require(node.variable not in part.possible, "BIND of a variable that is bound")
    _check(node.expression)
    return replace(
        part.with_step(ExtendStep(node.variable, node.expression)),
        possible=part.possible | {node.variable},
    )


def _step(node: Filter | Extend) -> Step:
    """A step after GROUP BY."""
    if isinstance(node, Filter):
        _check(node.condition)
        return FilterStep(node.condition)
    _check(node.expression)
    return ExtendStep(node.variable, node.expression)


def _grouping(node: Group, steps: Sequence[Step]) -> GroupingPlan:
    for _, aggregate in node.aggregates:
        argument = aggregate.argument
        _require(
            aggregate.name in ("COUNT", "SUM", "AVG", "MIN", "MAX"),
            f"the aggregate {aggregate.name}",
        )
        _require(argument is not None or not aggregate.distinct, "COUNT(DISTINCT *)")
        if argument is not None:
            _check(argument)
    return GroupingPlan(node.keys, node.aggregates, tuple(steps))


def _check(expression: Expression) -> None:
    """Rejects expressions whose value depends on more than the solution."""
    if exists_in(expression):
        raise _Refused("EXISTS within an expression")
    left = [expression]
    while left:
        match left.pop():
            case Constant(term) if term is _NOW:
                raise _Refused("NOW()")
            case Call("IRI", (_, _)):
                raise _Refused("IRI() with a base")
            case Call(name, arguments):
                _require(name not in _NEW, f"{name}()")
                left += arguments

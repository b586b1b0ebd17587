"""Translation of group graph patterns to the algebra.

SPARQL 1.1 Query, section 18.2.2: the elements of a group in order, then its filters; OPTIONAL takes the filters of its
own group as its condition. GRAPH (section 18.6) is put into the leaves: within `GRAPH ?g` they share a hidden variable,
every group binds it, and `?g` is joined to it outside. Queries that the notes of the grammar forbid (section 19.8) are
rejected, and so are unsupported ones. Solution modifiers are translated by `translation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count

from construct_messages.query.algebra.active_graph import join_active_graph
from construct_messages.query.algebra.calls import ExpressionTranslator
from construct_messages.query.algebra.leaves import HINT_1_1, Leaves
from construct_messages.query.algebra.nodes import (
    Bgp,
    Call,
    Expression,
    Extend,
    Filter,
    Graphs,
    LeftJoin,
    Minus,
    Node,
    Number,
    Unit,
    Values,
    Var,
    VarOrTerm,
)
from construct_messages.query.algebra.patterns import join, triples, union
from construct_messages.query.syntax.nodes import (
    AggregateNode,
    AliasNode,
    BindPattern,
    ExpressionNode,
    FilterPattern,
    GraphPattern,
    GroupPattern,
    MinusPattern,
    OptionalPattern,
    PatternNode,
    SelectForm,
    ServicePattern,
    TriplesBlock,
    UnionPattern,
    ValuesPattern,
    VariableNode,
)
from construct_messages.query.syntax.tree import walk
from construct_messages.rdf.terms import Term

Scope = dict[Var, None]
"""Variables in scope (section 18.2.1) in order of appearance, including those that no solution binds."""


@dataclass
class Collected:
    """A partly translated group: its pattern, its scope, and the filters to apply at its end."""

    pattern: Node
    scope: Scope
    filters: tuple[ExpressionNode, ...] = ()


class Groups:
    """Translates the groups of one query.

    Args:
        leaves: of the query.
        now: the value of NOW().
        subquery: translates a sub-query in an active graph; returns its pattern and the variables that it projects.
    """

    def __init__(
        self,
        leaves: Leaves,
        now: Term,
        subquery: Callable[[SelectForm, VarOrTerm | None], tuple[Node, list[Var]]],
    ) -> None:
        self._leaves, self._now, self._subquery = leaves, now, subquery
        self._sites = count()
        self._made = Counter[str]()

    def fresh(self, kind: str) -> Var:
        self._made[kind] += 1
        return Var(f".{kind}{self._made[kind] - 1}")

    # --- groups -----------------------------------------------------------------------------------------------------

    def closed(self, node: GroupPattern, graph: VarOrTerm | None) -> Collected:
        """A group with its filters applied."""
        group = self._group(node, graph)
        for condition in group.filters:
            pattern, expression = self.expression(group.pattern, condition, graph)
            group.pattern = Filter(pattern, expression)
        return replace(group, filters=())

    def _group(self, node: GroupPattern, graph: VarOrTerm | None) -> Collected:
        """A group whose solutions bind the active graph, and its filters."""
        if len(node.elements) == 1 and isinstance(node.elements[0], SelectForm):
            pattern, scope = self._subquery(node.elements[0], graph)
            return Collected(join_active_graph(pattern, graph), dict.fromkeys(scope))
        group = Collected(Unit(), {})
        block: list[TriplesBlock] = []  # blocks with only filters between them
        for element in node.elements:
            match element:
                case FilterPattern(condition=condition):
                    group.filters += (condition,)
                case TriplesBlock():
                    block.append(element)
                case _:
                    self._triples(block, group, graph)
                    self._element(element, group, graph)
        self._triples(block, group, graph)
        group.pattern = join_active_graph(group.pattern, graph)
        return group

    def _element(self, node: PatternNode, group: Collected, graph: VarOrTerm | None) -> None:
        """Adds an element other than triples and filters."""
        match node:
            case GroupPattern():
                self._union([node], group, graph)
            case UnionPattern(groups=ways):
                self._union(ways, group, graph)
            case OptionalPattern(group=inner):
                self._optional(inner, group, graph)
            case MinusPattern(group=inner):
                right = self.closed(inner, graph).pattern
                within = frozenset({graph}) if isinstance(graph, Var) else frozenset[Var]()
                group.pattern = Minus(join_active_graph(group.pattern, graph), right, within)
            case GraphPattern():
                self._graph(node, group)
            case BindPattern(alias=AliasNode(expression=given, variable=name)):
                pattern, expression = self.expression(
                    join_active_graph(group.pattern, graph), given, graph
                )
                variable = self._leaves.variable(name)
                group.pattern = Extend(pattern, variable, expression)
                group.scope[variable] = None
            case ValuesPattern():
                values = self.values(node)
                group.pattern = join(group.pattern, values)
                group.scope |= dict.fromkeys(values.variables)
            case ServicePattern():
                message = "SERVICE is not supported: the algebra has no remote endpoints"
                raise self._leaves.query.unsupported(node, message, "SERVICE", HINT_1_1)
            case other:
                raise self._leaves.unknown(other)

    def _triples(
        self, blocks: list[TriplesBlock], group: Collected, graph: VarOrTerm | None
    ) -> None:
        """Adds the triples of blocks, and empties the list of these."""
        found = [triple for block in blocks for triple in block.triples]
        blocks.clear()
        if found:
            group.pattern = join(group.pattern, triples(self._leaves, found, graph, self.fresh))
            group.scope |= {
                self._leaves.variable(node): None
                for node in walk(*found)
                if isinstance(node, VariableNode)
            }

    def _union(
        self, nodes: Iterable[GroupPattern], group: Collected, graph: VarOrTerm | None
    ) -> None:
        ways = [self.closed(node, graph) for node in nodes]
        group.pattern = join(group.pattern, union([way.pattern for way in ways]))
        group.scope |= {variable: None for way in ways for variable in way.scope}

    def _optional(self, node: GroupPattern, group: Collected, graph: VarOrTerm | None) -> None:
        """OPTIONAL; its own filters see the variables of both sides (section 18.2.2.6)."""
        optional = self._group(node, graph)
        right = optional.pattern
        conditions: list[Expression] = []
        for condition in optional.filters:
            right, expression = self.expression(right, condition, graph)
            conditions.append(expression)
        together = (
            reduce(lambda left, right: Call("&&", (left, right)), conditions)
            if conditions
            else None
        )
        group.pattern = LeftJoin(join_active_graph(group.pattern, graph), right, together)
        group.scope |= optional.scope

    def _graph(self, node: GraphPattern, group: Collected) -> None:
        graph = self._leaves.position(node.name)
        if not isinstance(graph, Var):
            inner = self.closed(node.group, graph)
            group.pattern = join(group.pattern, inner.pattern)
            group.scope |= inner.scope
            return
        hidden = self.fresh("g")
        inner = self.closed(node.group, hidden)
        group.pattern = join(group.pattern, _named(inner.pattern, hidden, graph))
        group.scope |= inner.scope | {graph: None}

    def values(self, node: ValuesPattern) -> Values:
        solutions = (
            tuple(None if term is None else self._leaves.term(term) for term in solution)
            for solution in node.solutions
        )
        return Values(tuple(map(self._leaves.variable, node.variables)), tuple(solutions))

    # --- expressions ------------------------------------------------------------------------------------------------

    def translator(
        self,
        number: Var,
        graph: VarOrTerm | None,
        aggregate: Callable[[AggregateNode], Var] | None = None,
    ) -> ExpressionTranslator:
        def exists(node: GroupPattern) -> Node:
            return self.closed(node, graph).pattern

        return ExpressionTranslator(
            self._leaves, self._now, number, partial(next, self._sites), exists, aggregate
        )

    def expression(
        self, pattern: Node, node: ExpressionNode, graph: VarOrTerm | None
    ) -> tuple[Node, Expression]:
        """An expression over the solutions of a pattern, and the pattern with the number that it may need."""
        number = numbered_by(pattern)
        translator = self.translator(number or self.fresh("n"), graph)
        expression = translator.expression(node)
        if translator.numbered and number is None:
            pattern = Number(pattern, translator.number)
        return pattern, expression


def _named(pattern: Node, hidden: Var, graph: Var) -> Node:
    """The pattern of `GRAPH ?graph`, in which the variable `hidden` is the graph."""
    if isinstance(pattern, Bgp):
        return Bgp(tuple(replace(triple, graph=graph) for triple in pattern.patterns))
    if graph not in pattern.possible:
        return Extend(pattern, graph, hidden)
    if graph in pattern.certain:
        return Filter(pattern, Call("SAMETERM", (graph, hidden)))
    return join(pattern, Extend(Graphs(hidden), graph, hidden))


def numbered_by(pattern: Node) -> Var | None:
    """The number that the solutions of a pattern have of their own."""
    while isinstance(pattern, Extend | Filter):
        pattern = pattern.pattern
    return pattern.variable if isinstance(pattern, Number) else None

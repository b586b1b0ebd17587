"""Translation of group graph patterns to the algebra.

SPARQL 1.1 Query, section 18.2.2: the elements of a group in order, then its filters; OPTIONAL takes the filters of its
own group as its condition. GRAPH (section 18.6) is put into the leaves: within `GRAPH ?g` they share a hidden variable,
every group binds it, and `?g` is joined to it outside. What the grammar's notes forbid (section 19.8) is refused, as is
whatever is not supported. Solution modifiers are translated by `translation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count, groupby
from typing import Any

import rdflib
from rdflib.plugins.sparql.parserutils import CompValue

from construct_messages.query.algebra.active_graph import join_active_graph
from construct_messages.query.algebra.calls import ExpressionTranslator
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
    Position,
    Unit,
    Values,
    Var,
)
from construct_messages.query.algebra.parse_tree import ParseTree
from construct_messages.query.algebra.patterns import join, triples, union
from construct_messages.terms import Term

Scope = dict[Var, None]
"""Variables in scope (section 18.2.1) in order of appearance: also those that no solution will bind."""


@dataclass
class Collected:
    """A group as far as it is translated: its pattern, its scope, and the filters that apply at its end."""

    pattern: Node
    scope: Scope
    filters: tuple[Any, ...] = ()


class Groups:
    """Translates the groups of one query.

    Args:
        tree: of the query.
        now: the value of NOW().
        subquery: translates a sub-query in an active graph; gives its pattern and the variables that it projects.
    """

    def __init__(
        self,
        tree: ParseTree,
        now: Term,
        subquery: Callable[[CompValue, Position | None], tuple[Node, list[Var]]],
    ) -> None:
        self._tree, self._now, self._subquery = tree, now, subquery
        self._sites = count()
        self._made = Counter[str]()
        self._blocks: dict[Var, int] = {}  # of blank nodes: in which basic graph pattern they stand
        self._block = 0

    def fresh(self, kind: str) -> Var:
        self._made[kind] += 1
        return Var(f".{kind}{self._made[kind] - 1}")

    # --- groups -----------------------------------------------------------------------------------------------------

    def closed(self, part: CompValue, graph: Position | None) -> Collected:
        """A group with its filters applied."""
        group = self._group(part, graph)
        for condition in group.filters:
            pattern, expression = self.expression(group.pattern, condition, graph)
            group.pattern = Filter(pattern, expression)
        return replace(group, filters=())

    def _group(self, part: CompValue, graph: Position | None) -> Collected:
        """A group whose solutions bind the active graph, and its filters."""
        if part.name == "SubSelect":
            pattern, scope = self._subquery(part, graph)
            return Collected(join_active_graph(pattern, graph), dict.fromkeys(scope))
        if part.name != "GroupGraphPatternSub":
            raise self._tree.unsupported(part, f"{part.name} is not supported", part.name)
        group = Collected(Unit(), {})
        elements = [
            element for element in dict.get(part, "part", ()) if not self._tree.is_filler(element)
        ]
        group.filters = tuple(
            dict.__getitem__(one, "expr") for one in elements if one.name == "Filter"
        )
        patterns = [element for element in elements if element.name != "Filter"]
        for kind, same in groupby(patterns, key=lambda element: str(element.name)):
            if kind == "TriplesBlock":
                self._triples(
                    [block for one in same for block in dict.__getitem__(one, "triples")],
                    group,
                    graph,
                )
            else:
                for element in same:
                    self._element(element, dict(dict.items(element)), group, graph)
        group.pattern = join_active_graph(group.pattern, graph)
        return group

    def _element(
        self, part: CompValue, of: dict[str, Any], group: Collected, graph: Position | None
    ) -> None:
        """Adds an element other than triples and filters."""
        match part.name:
            case "GroupOrUnionGraphPattern":
                ways = [self.closed(way, graph) for way in of["graph"]]
                group.pattern = join(group.pattern, union([way.pattern for way in ways]))
                group.scope |= {variable: None for way in ways for variable in way.scope}
            case "OptionalGraphPattern":
                self._optional(of["graph"], group, graph)
            case "MinusGraphPattern":
                right = self.closed(of["graph"], graph).pattern
                within = frozenset({graph}) if isinstance(graph, Var) else frozenset[Var]()
                group.pattern = Minus(join_active_graph(group.pattern, graph), right, within)
            case "GraphGraphPattern":
                self._graph(of["term"], of["graph"], group)
            case "Bind":
                pattern, expression = self.expression(
                    join_active_graph(group.pattern, graph), of["expr"], graph
                )
                variable = self.new_variable(of["var"], group.scope)
                group.pattern = Extend(pattern, variable, expression)
                group.scope[variable] = None
            case "InlineData":
                values = self.values(part)
                group.pattern = join(group.pattern, values)
                group.scope |= dict.fromkeys(values.variables)
            case _:
                raise self._tree.unsupported(part, f"{part.name} is not supported", part.name)

    def _triples(
        self, blocks: Sequence[Sequence[Any]], group: Collected, graph: Position | None
    ) -> None:
        self._block += 1
        leaves = [leaf for block in blocks for leaf in block]
        for leaf in leaves:
            if isinstance(leaf, rdflib.BNode):
                blank = self._tree.position(leaf)
                assert isinstance(blank, Var)
                if self._blocks.setdefault(blank, self._block) != self._block:
                    raise self._tree.error(
                        leaf,
                        "a blank node label stands in two basic graph patterns",
                        "use a variable instead",
                    )
        node = triples(self._tree, leaves, graph, self.fresh)
        group.pattern = join(group.pattern, node)
        appearing = (
            self._tree.variable(leaf) for leaf in leaves if isinstance(leaf, rdflib.Variable)
        )
        group.scope |= dict.fromkeys(appearing)

    def _optional(self, part: CompValue, group: Collected, graph: Position | None) -> None:
        """OPTIONAL; its own filters see the variables of both sides (section 18.2.2.6)."""
        optional = self._group(part, graph)
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

    def _graph(self, name: Any, part: CompValue, group: Collected) -> None:
        graph = self._tree.position(name)
        if not isinstance(graph, Var):
            inner = self.closed(part, graph)
            group.pattern = join(group.pattern, inner.pattern)
            group.scope |= inner.scope
            return
        hidden = self.fresh("g")
        inner = self.closed(part, hidden)
        group.pattern = join(group.pattern, _named(inner.pattern, hidden, graph))
        group.scope |= inner.scope | {graph: None}

    def values(self, part: CompValue) -> Values:
        of = dict(dict.items(part))
        variables = tuple(self._tree.variable(variable) for variable in of.get("var", ()))
        if twice := repeated(variables):
            raise self._tree.error(part, f"?{twice.name} stands in VALUES twice")
        solutions = []
        for given in of.get("value", ()):
            # one variable without brackets has bare values
            row = (
                [given]
                if isinstance(given, (rdflib.term.Identifier, CompValue, str))
                else list(given)
            )
            if len(row) != len(variables):
                raise self._tree.error(
                    part, f"VALUES gives {len(row)} values to {len(variables)} variables"
                )
            solutions.append(
                tuple(None if _is_undef(value) else self._tree.term(value) for value in row)
            )
        return Values(variables, tuple(solutions))

    # --- expressions ------------------------------------------------------------------------------------------------

    def translator(
        self,
        number: Var,
        graph: Position | None,
        aggregate: Callable[[CompValue], Var] | None = None,
    ) -> ExpressionTranslator:
        def exists(part: CompValue) -> Node:
            return self.closed(part, graph).pattern

        return ExpressionTranslator(
            self._tree, self._now, number, partial(next, self._sites), exists, aggregate
        )

    def expression(
        self, pattern: Node, part: Any, graph: Position | None
    ) -> tuple[Node, Expression]:
        """An expression over the solutions of a pattern, and the pattern with the number that it may need."""
        number = numbered_by(pattern)
        translator = self.translator(number or self.fresh("n"), graph)
        expression = translator.expression(part)
        if translator.numbered and number is None:
            pattern = Number(pattern, translator.number)
        return pattern, expression

    def new_variable(self, leaf: rdflib.Variable, scope: Scope) -> Var:
        variable = self._tree.variable(leaf)
        if variable in scope:
            raise self._tree.error(
                leaf, f"?{variable.name} is bound already", "name another variable behind AS"
            )
        return variable


def _named(pattern: Node, hidden: Var, graph: Var) -> Node:
    """The pattern of `GRAPH ?graph`, in which `hidden` stands for the graph."""
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


def repeated(variables: Iterable[Var]) -> Var | None:
    return next((variable for variable, times in Counter(variables).items() if times > 1), None)


def _is_undef(value: Any) -> bool:
    return not isinstance(value, rdflib.term.Identifier) and value == "UNDEF"

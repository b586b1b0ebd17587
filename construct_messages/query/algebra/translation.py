"""Translation of a SELECT or ASK query to the algebra: SPARQL 1.1 Query, sections 18.2.4 and 18.2.5.

The solutions of the WHERE clause are grouped, filtered by HAVING, joined with VALUES, extended by the expressions of
SELECT, ordered, projected, made distinct and sliced. Queries that the grammar accepts and its notes forbid (section
19.8) are refused. Group graph patterns are translated by `groups`; no text is read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final, TypeVar

from construct_messages.errors import QueryError
from construct_messages.query.algebra.calls import (
    HINT_1_1,
    ExpressionTranslator,
    Leaves,
    aggregation,
    conjunction,
    is_repeatable,
    join,
    mentioned,
    substituted,
    triples,
    union,
)
from construct_messages.query.algebra.nodes import (
    Aggregation,
    Bgp,
    Call,
    Closure,
    Dataset,
    Distinct,
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
    Plan,
    Project,
    Slice,
    Star,
    Unary,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
)
from construct_messages.query.checks import check
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import aggregates, walk
from construct_messages.query.syntax.parser import Query
from construct_messages.rdf.terms import Term, iri

# --- active graph ---------------------------------------------------------------------------------
# The active graph of a group: finds the patterns that match in it, and joins the others with its name.
#
# SPARQL 1.1 Query, section 18.6: `GRAPH` evaluates its group once for each named graph of the dataset, and not at all
# for a graph that is not in it. Leaves carry their graph; a group without leaves, or whose leaves need not match, is
# joined with the name of the graph. No parse tree here.


def join_active_graph(node: Node, graph: VarOrTerm | None) -> Node:
    """The node, joined with the name of the active graph unless all of its solutions are of that graph.

    >>> join_active_graph(Unit(), Var(".g0"))
    Graphs(graph=Var(name='.g0'))
    """
    if graph is None or _is_in_graph(node, graph):
        return node
    return Graphs(graph) if isinstance(node, Unit) else Join(node, Graphs(graph))


def _is_in_graph(node: Node, graph: VarOrTerm) -> bool:
    """Whether the node has solutions only in the graph and, if the graph is a variable, each of them binds it."""
    if isinstance(graph, Var):
        return graph in node.certain
    match node:
        case Bgp(patterns) | Star(_, patterns, _):
            return any(pattern.graph == graph for pattern in patterns)
        case Path(_, path, _, other):
            # a path of length zero may match without a triple
            return other == graph and not isinstance(path, Closure)
        case Graphs(other):
            return other == graph
        case Join(left, right):
            return _is_in_graph(left, graph) or _is_in_graph(right, graph)
        case LeftJoin(left, _, _) | Minus(left, _, _):
            return _is_in_graph(left, graph)
        case Union(left, right):
            return _is_in_graph(left, graph) and _is_in_graph(right, graph)
        case Group(pattern, keys, _):
            return bool(keys) and _is_in_graph(pattern, graph)
        case Unary(pattern):
            return _is_in_graph(pattern, graph)
        case Unit() | Values():
            return False


# --- groups ---------------------------------------------------------------------------------------
# Translation of group graph patterns to the algebra.
#
# SPARQL 1.1 Query, section 18.2.2: the elements of a group in order, then its filters; OPTIONAL takes the filters of
# its own group as its condition. GRAPH (section 18.6) is put into the leaves: within `GRAPH ?g` they share a hidden
# variable, every group binds it, and `?g` is joined to it outside. Queries that the notes of the grammar forbid
# (section 19.8) are rejected, and so are unsupported ones. Solution modifiers are translated by `translation`.

Scope = dict[Var, None]
"""Variables in scope (section 18.2.1) in order of appearance, including those that no solution binds."""


@dataclass
class Collected:
    """A partly translated group: its pattern, its scope, and the filters to apply at its end."""

    pattern: Node
    scope: Scope
    filters: tuple[syntax.ExpressionNode, ...] = ()


class Groups:
    """Translates the groups of one query.

    `subquery` translates a sub-query in an active graph; it returns its pattern and the variables that it projects.
    """

    def __init__(
        self,
        leaves: Leaves,
        now: Term,
        subquery: Callable[[syntax.SelectForm, VarOrTerm | None], tuple[Node, list[Var]]],
    ) -> None:
        self._leaves, self._now, self._subquery = leaves, now, subquery
        self._sites = count()
        self._made = Counter[str]()

    def fresh(self, kind: str) -> Var:
        self._made[kind] += 1
        return Var(f".{kind}{self._made[kind] - 1}")

    # --- groups -----------------------------------------------------------------------------------------------------

    def closed(self, node: syntax.GroupPattern, graph: VarOrTerm | None) -> Collected:
        """A group with its filters applied."""
        group = self._group(node, graph)
        for condition in group.filters:
            pattern, expression = self.expression(group.pattern, condition, graph)
            group.pattern = Filter(pattern, expression)
        return replace(group, filters=())

    def _group(self, node: syntax.GroupPattern, graph: VarOrTerm | None) -> Collected:
        """A group whose solutions bind the active graph, and its filters."""
        if len(node.elements) == 1 and isinstance(node.elements[0], syntax.SelectForm):
            pattern, scope = self._subquery(node.elements[0], graph)
            return Collected(join_active_graph(pattern, graph), dict.fromkeys(scope))
        group = Collected(Unit(), {})
        block: list[syntax.TriplesBlock] = []  # blocks with only filters between them
        for element in node.elements:
            match element:
                case syntax.FilterPattern(condition=condition):
                    group.filters += (condition,)
                case syntax.TriplesBlock():
                    block.append(element)
                case _:
                    self._triples(block, group, graph)
                    self._element(element, group, graph)
        self._triples(block, group, graph)
        group.pattern = join_active_graph(group.pattern, graph)
        return group

    def _element(self, node: syntax.PatternNode, group: Collected, graph: VarOrTerm | None) -> None:
        """Adds an element other than triples and filters."""
        match node:
            case syntax.GroupPattern():
                self._union([node], group, graph)
            case syntax.UnionPattern(groups=ways):
                self._union(ways, group, graph)
            case syntax.OptionalPattern(group=inner):
                self._optional(inner, group, graph)
            case syntax.MinusPattern(group=inner):
                right = self.closed(inner, graph).pattern
                within = frozenset({graph}) if isinstance(graph, Var) else frozenset[Var]()
                group.pattern = Minus(join_active_graph(group.pattern, graph), right, within)
            case syntax.GraphPattern():
                self._graph(node, group)
            case syntax.BindPattern(alias=syntax.AliasNode(expression=given, variable=name)):
                pattern, expression = self.expression(
                    join_active_graph(group.pattern, graph), given, graph
                )
                variable = self._leaves.variable(name)
                group.pattern = Extend(pattern, variable, expression)
                group.scope[variable] = None
            case syntax.ValuesPattern():
                values = self.values(node)
                group.pattern = join(group.pattern, values)
                group.scope |= dict.fromkeys(values.variables)
            case syntax.ServicePattern():
                message = "SERVICE is not supported: the algebra has no remote endpoints"
                raise self._leaves.query.unsupported(node, message, "SERVICE", HINT_1_1)
            case other:
                raise self._leaves.unknown(other)

    def _triples(
        self, blocks: list[syntax.TriplesBlock], group: Collected, graph: VarOrTerm | None
    ) -> None:
        """Adds the triples of blocks, and empties the list of these."""
        found = [triple for block in blocks for triple in block.triples]
        blocks.clear()
        if found:
            group.pattern = join(group.pattern, triples(self._leaves, found, graph, self.fresh))
            group.scope |= {
                self._leaves.variable(node): None
                for node in walk(*found)
                if isinstance(node, syntax.VariableNode)
            }

    def _union(
        self, nodes: Iterable[syntax.GroupPattern], group: Collected, graph: VarOrTerm | None
    ) -> None:
        ways = [self.closed(node, graph) for node in nodes]
        group.pattern = join(group.pattern, union([way.pattern for way in ways]))
        group.scope |= {variable: None for way in ways for variable in way.scope}

    def _optional(
        self, node: syntax.GroupPattern, group: Collected, graph: VarOrTerm | None
    ) -> None:
        """OPTIONAL; its own filters see the variables of both sides (section 18.2.2.6)."""
        optional = self._group(node, graph)
        right = optional.pattern
        conditions: list[Expression] = []
        for condition in optional.filters:
            right, expression = self.expression(right, condition, graph)
            conditions.append(expression)
        left = join_active_graph(group.pattern, graph)
        group.pattern = LeftJoin(left, right, conjunction(conditions))
        group.scope |= optional.scope

    def _graph(self, node: syntax.GraphPattern, group: Collected) -> None:
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

    def values(self, node: syntax.ValuesPattern) -> Values:
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
        aggregate: Callable[[syntax.AggregateNode], Var] | None = None,
    ) -> ExpressionTranslator:
        def exists(node: syntax.GroupPattern) -> Node:
            return self.closed(node, graph).pattern

        return ExpressionTranslator(
            self._leaves, self._now, number, partial(next, self._sites), exists, aggregate
        )

    def expression(
        self, pattern: Node, node: syntax.ExpressionNode, graph: VarOrTerm | None
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


# --- translation ----------------------------------------------------------------------------------

_MOST_NESTED: Final = 64
_Clause = TypeVar(
    "_Clause", syntax.GroupClause, syntax.HavingClause, syntax.OrderClause, syntax.ValuesPattern
)


def translate(
    query: Query, *, now: Term, default_graphs: Sequence[str] = (), named_graphs: Sequence[str] = ()
) -> Plan:
    """Translates a SELECT or ASK query to the algebra.

    The value of NOW() is `now`, an xsd:dateTime. The graphs are IRIs of the dataset; if there are any, FROM and FROM
    NAMED of the query do not count (SPARQL 1.1 Protocol, section 2.1.4).
    """
    _refuse(query)
    check(query)
    form = query.form
    assert isinstance(form, syntax.SelectForm | syntax.AskForm)
    leaves = Leaves(query)
    groups = Groups(
        leaves, now, lambda part, graph: _Query(groups, leaves, part, graph).solutions()
    )
    pattern, projection = _Query(groups, leaves, form, None).solutions()
    if default_graphs or named_graphs:
        dataset = Dataset(tuple(map(iri, default_graphs)), tuple(map(iri, named_graphs)))
    else:
        dataset = _dataset(leaves, form)
    return Plan(
        "SELECT" if isinstance(form, syntax.SelectForm) else "ASK",
        pattern,
        tuple(variable.name for variable in projection),
        dataset,
        ordered=any(isinstance(clause, syntax.OrderClause) for clause in form.clauses),
    )


def _refuse(query: Query) -> None:
    """Refuses other forms of queries, and brackets that nest too deeply for recursion."""
    if not isinstance(query.form, syntax.SelectForm | syntax.AskForm):
        form = type(query.form).__name__.removesuffix("Form").upper()
        raise query.error(
            query.form, f"{form} has no solutions", "write a SELECT with the same WHERE clause"
        )
    depth = 0
    for token in query.source.tokens:
        depth += token.is_mark("(", "{", "[") - token.is_mark(")", "}", "]")
        if depth > _MOST_NESTED:
            message = f"more than {_MOST_NESTED} brackets in each other"
            raise query.unsupported(token, message, "nesting")


def _dataset(leaves: Leaves, form: syntax.SelectForm | syntax.AskForm) -> Dataset:
    clauses = [clause for clause in form.dataset if isinstance(clause, syntax.FromClause)]
    default = tuple(leaves.term(clause.name) for clause in clauses if not clause.named)
    named = tuple(leaves.term(clause.name) for clause in clauses if clause.named)
    return Dataset(default, named) if clauses else Dataset()


class _Query:
    """One query or sub-query."""

    def __init__(
        self,
        groups: Groups,
        leaves: Leaves,
        form: syntax.SelectForm | syntax.AskForm,
        graph: VarOrTerm | None,
    ) -> None:
        self._groups, self._leaves, self._graph = groups, leaves, graph
        self._form = form
        self._projected = form.projection if isinstance(form, syntax.SelectForm) else ()
        where = groups.closed(form.where, graph)
        self._below, self._inside = where.pattern, where.scope
        self._scope = where.scope
        self._keys: list[Var] = []
        self._aggregates: list[tuple[Var, Aggregation]] = []
        self._keyed = self._clause(syntax.GroupClause)
        self._having_clause, self._order_clause = (
            self._clause(syntax.HavingClause),
            self._clause(syntax.OrderClause),
        )
        parts = (self._projected, self._having_clause, self._order_clause)
        self._grouped = self._keyed is not None or any(True for _ in aggregates(*parts))

    def _clause(self, kind: type[_Clause]) -> _Clause | None:
        return next((clause for clause in self._form.clauses if isinstance(clause, kind)), None)

    def solutions(self) -> tuple[Node, list[Var]]:
        """The pattern, and the variables that it projects in order; ASK projects none."""
        if self._grouped:
            self._read_keys()
            self._scope = dict.fromkeys(self._keys)
        # all expressions are read before the group is made, which has their aggregates
        filters = self._translator()
        having = self._having(filters)
        clause = self._clause(syntax.ValuesPattern)
        values = None if clause is None else self._groups.values(clause)
        if values is not None:
            self._scope = self._scope | dict.fromkeys(values.variables)
        translator = self._translator()
        projection, extensions = self._projection(translator)
        order = self._order(translator, [variable for variable, _ in extensions])

        pattern = self._group() if self._grouped else self._below
        if filters.numbered:
            pattern = Number(pattern, filters.number)
        for condition in having:
            pattern = Filter(pattern, condition)
        if values is not None:
            pattern = join(pattern, values)
        if translator.numbered:
            known = numbered_by(pattern)
            pattern = (
                Number(pattern, translator.number)
                if known is None
                else Extend(pattern, translator.number, known)
            )
        for variable, expression in extensions:
            pattern = Extend(pattern, variable, expression)
        return self._modified(pattern, order, projection), projection

    def _translator(self) -> ExpressionTranslator:
        return self._groups.translator(self._groups.fresh("n"), self._graph, self._aggregate)

    # --- grouping ---------------------------------------------------------------------------------------------------

    def _read_keys(self) -> None:
        """Extends the solutions of the pattern by the keys that are expressions."""
        for condition in self._keyed.conditions if self._keyed else ():
            key = None
            if isinstance(condition, syntax.AliasNode):
                key, condition = self._leaves.variable(condition.variable), condition.expression
            self._below, expression = self._groups.expression(self._below, condition, self._graph)
            if key is None and isinstance(expression, Var):
                self._keys.append(expression)
                continue
            key = key or self._groups.fresh("k")
            self._below = Extend(self._below, key, expression)
            self._keys.append(key)

    def _aggregate(self, node: syntax.AggregateNode) -> Var:
        def argument(inner: syntax.ExpressionNode) -> Expression:
            self._below, expression = self._groups.expression(self._below, inner, self._graph)
            return expression

        variable = self._groups.fresh("a")
        self._aggregates.append((variable, aggregation(self._leaves, node, argument)))
        return variable

    def _group(self) -> Node:
        """The groups. Without GROUP BY there is one for each graph, even if the pattern has no solution."""
        below, aggregates = self._below, tuple(self._aggregates)
        keys = tuple(dict.fromkeys(self._keys))
        graph = (self._graph,) if isinstance(self._graph, Var) else ()
        if any(one.argument is None and one.distinct for _, one in aggregates):
            # solutions are distinguished by the variables that the query names
            below = Project(below, tuple(dict.fromkeys((*self._inside, *keys, *graph))))
        grouped = Group(below, (*keys, *graph), aggregates)
        if not graph or self._keyed is not None:
            return grouped
        without = Minus(Graphs(graph[0]), Project(below, graph))
        return union(
            [
                grouped,
                Join(without, Group(Values(tuple(sorted(below.possible)), ()), (), aggregates)),
            ]
        )

    # --- expressions ------------------------------------------------------------------------------------------------

    def _having(self, translator: ExpressionTranslator) -> list[Expression]:
        """The conditions of HAVING.

        By SPARQL 1.1 they cannot read the variables of SELECT's expressions, which are evaluated later. As in Jena,
        Virtuoso and others, such a variable is replaced with its expression.
        """
        having = []
        named = {self._leaves.variable(alias.variable) for alias in self._aliases()}
        for condition in self._having_clause.conditions if self._having_clause else ():
            expression = translator.expression(condition)
            if not named.isdisjoint(mentioned(expression)):
                expression = substituted(expression, self._replacements(translator))
            unknown = [variable for variable in mentioned(expression) if variable in named]
            for variable in (*self._ungrouped(expression), *unknown):
                raise self._invisible(
                    "HAVING",
                    condition,
                    variable,
                    "write the aggregate itself, as in HAVING(COUNT(?x) > 1)",
                )
            having.append(expression)
        return having

    def _aliases(self) -> list[syntax.AliasNode]:
        return [item for item in self._projected or () if isinstance(item, syntax.AliasNode)]

    def _replacements(self, translator: ExpressionTranslator) -> dict[Var, Expression]:
        """The variables that SELECT computes with their expressions, except expressions whose values differ each
        time."""
        found: dict[Var, Expression] = {}
        for alias in self._aliases():
            expression = substituted(translator.expression(alias.expression), found)
            if is_repeatable(expression):
                found[self._leaves.variable(alias.variable)] = expression
        return found

    def _projection(
        self, translator: ExpressionTranslator
    ) -> tuple[list[Var], list[tuple[Var, Expression]]]:
        """The projected variables, each once, and the expressions that some of them are bound to."""
        if self._projected is None:
            return [variable for variable in self._scope if not variable.hidden], []
        projection: dict[Var, None] = {}
        extensions: dict[Var, Expression] = {}
        for item in self._projected:
            match item:
                case syntax.VariableNode():
                    projection[self._leaves.variable(item)] = None
                case syntax.AliasNode(expression=expression, variable=name):
                    variable = self._leaves.variable(name)
                    projection[variable] = None
                    extensions[variable] = translator.expression(expression)
                case _:
                    raise self._leaves.unknown(item)
        return list(projection), list(extensions.items())

    def _order(
        self, translator: ExpressionTranslator, extended: Sequence[Var]
    ) -> list[tuple[Expression, bool]]:
        order = []
        for condition in self._order_clause.conditions if self._order_clause else ():
            expression = translator.expression(condition.expression)
            for variable in self._ungrouped(expression):
                if variable not in extended:
                    raise self._invisible(
                        "ORDER BY", condition, variable, "aggregate it, as in ORDER BY SAMPLE(?x)"
                    )
            order.append((expression, condition.descending))
        return order

    def _ungrouped(self, expression: Expression) -> list[Var]:
        """The variables of the pattern that the solutions of a group do not have."""
        if not self._grouped:
            return []
        known = self._inside.keys() - self._scope.keys()
        return [variable for variable in mentioned(expression) if variable in known]

    def _invisible(
        self, clause: str, node: syntax.SyntaxNode, variable: Var, hint: str
    ) -> QueryError:
        message = f"{clause} cannot see ?{variable.name}, which is neither a key of GROUP BY nor an aggregate"
        return self._leaves.query.unsupported(node, message, f"?{variable.name}", hint)

    # --- other clauses -----------------------------------------------------------------------------------------------

    def _modified(
        self, pattern: Node, order: list[tuple[Expression, bool]], projection: list[Var]
    ) -> Node:
        kept = (self._graph,) if isinstance(self._graph, Var) else ()
        slices = {
            clause.keyword: int(clause.number)
            for clause in self._form.clauses
            if isinstance(clause, syntax.SliceClause)
        }
        # the order of a sub-query is lost where it is joined
        if order and (slices or self._form is self._leaves.query.form):
            pattern = OrderBy(pattern, tuple(order))
        if isinstance(self._form, syntax.SelectForm):
            pattern = Project(pattern, (*projection, *kept))
            if self._form.modifier:
                pattern = Distinct(pattern)
        if slices:
            pattern = Slice(pattern, slices.get("OFFSET", 0), slices.get("LIMIT"), kept)
        return pattern

"""Translation of a SELECT or ASK query to the algebra: SPARQL 1.1 Query, sections 18.2.4 and 18.2.5.

The solutions of the WHERE clause are grouped, filtered by HAVING, joined with VALUES, extended by the expressions of
SELECT, ordered, projected, made distinct and sliced. Queries that the grammar accepts and its notes forbid (section
19.8) are refused. Group graph patterns are translated by `groups`; no text is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rdflib.plugins.sparql.parserutils import CompValue

from construct_messages.query.algebra.calls import (
    ExpressionTranslator,
    aggregates,
    aggregation,
    is_repeatable,
    mentioned,
    substituted,
)
from construct_messages.query.algebra.groups import Groups, numbered_by
from construct_messages.query.algebra.nodes import (
    Aggregation,
    Distinct,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    Minus,
    Node,
    Number,
    OrderBy,
    Position,
    Project,
    Slice,
    Values,
    Var,
)
from construct_messages.query.algebra.parse_tree import ParseTree, parse
from construct_messages.query.algebra.patterns import join, union
from construct_messages.query.algebra.plan import Dataset, Plan
from construct_messages.terms import Term, iri


def translate_query(
    select: str,
    *,
    now: Term,
    base: str | None = None,
    default_graphs: Sequence[str] = (),
    named_graphs: Sequence[str] = (),
) -> Plan:
    """Translates a query to the algebra.

    Args:
        select: a SELECT or ASK query.
        now: the value of NOW(), an xsd:dateTime.
        base: an absolute IRI that relative ones are resolved against.
        default_graphs, named_graphs: IRIs of the dataset; if there are any, FROM and FROM NAMED of the text do not
            count (SPARQL 1.1 Protocol, section 2.1.4).

    Raises:
        UnsupportedQuery: a part of the query, named by `fragment`, that is not supported.
        QueryError: the text is not a legal SELECT or ASK query.
        TermError: a graph of the arguments is no absolute IRI.

    >>> from construct_messages.terms import parse_term
    >>> now = parse_term('"2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
    >>> plan = translate_query("SELECT ?s { ?s <urn:p> 01 }", now=now)
    >>> plan.variables, plan.pattern.certain
    (('s',), frozenset({Var(name='s')}))
    """
    tree = parse(select, base=base)
    groups = Groups(tree, now, lambda part, graph: _Query(groups, tree, part, graph).solutions())
    pattern, projection = _Query(groups, tree, tree.query, None).solutions()
    if default_graphs or named_graphs:
        dataset = Dataset(tuple(map(iri, default_graphs)), tuple(map(iri, named_graphs)))
    else:
        dataset = _dataset(tree, dict.get(tree.query, "datasetClause", ()))
    return Plan(
        "ASK" if tree.query.name == "AskQuery" else "SELECT",
        pattern,
        tuple(variable.name for variable in projection),
        dataset,
        ordered="orderby" in tree.query,
    )


def _dataset(tree: ParseTree, clauses: Iterable[CompValue]) -> Dataset:
    default, named = [], []
    for clause in clauses:
        if "named" in clause:
            named.append(tree.term(dict.__getitem__(clause, "named")))
        else:
            default.append(tree.term(dict.__getitem__(clause, "default")))
    return Dataset(tuple(default), tuple(named)) if default or named else Dataset()


class _Query:
    """One query or sub-query.

    Args:
        groups: translates its groups.
        tree: what `part` is of.
        part: rdflib's `SelectQuery`, `AskQuery` or `SubSelect`.
        graph: the active graph.
    """

    def __init__(
        self, groups: Groups, tree: ParseTree, part: CompValue, graph: Position | None
    ) -> None:
        self._groups, self._tree, self._graph = groups, tree, graph
        self._part, self._of = part, dict(dict.items(part))
        where = groups.closed(self._of["where"], graph)
        self._below, self._inside = where.pattern, where.scope
        self._scope = where.scope
        self._keys: list[Var] = []
        self._aggregates: list[tuple[Var, Aggregation]] = []
        asked = (self._of.get(name) for name in ("projection", "having", "orderby"))
        self._grouped = "groupby" in self._of or any(map(aggregates, asked))

    def solutions(self) -> tuple[Node, list[Var]]:
        """The pattern, and the variables that it projects in order; none of ASK."""
        if self._grouped:
            self._read_keys()
            self._scope = dict.fromkeys(self._keys)
        # all expressions are read before the group is made, which has their aggregates
        filters = self._translator()
        having = self._having(filters)
        values = (
            self._groups.values(self._of["valuesClause"]) if "valuesClause" in self._of else None
        )
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
        for condition in self._conditions("groupby"):
            part, name = condition, None
            if isinstance(condition, CompValue) and condition.name == "GroupAs":
                part, name = dict.__getitem__(condition, "expr"), dict.get(condition, "var")
            self._below, expression = self._groups.expression(self._below, part, self._graph)
            if name is None and isinstance(expression, Var):
                self._keys.append(expression)
                continue
            key = (
                self._groups.fresh("k")
                if name is None
                else self._groups.new_variable(name, self._inside)
            )
            self._below = Extend(self._below, key, expression)
            self._keys.append(key)

    def _aggregate(self, part: CompValue) -> Var:
        def argument(inner: Any) -> Expression:
            self._below, expression = self._groups.expression(self._below, inner, self._graph)
            return expression

        variable = self._groups.fresh("a")
        self._aggregates.append((variable, aggregation(self._tree, part, argument)))
        return variable

    def _group(self) -> Node:
        """The groups. Without GROUP BY there is one for each graph, also where the pattern has no solution."""
        below, aggregates = self._below, tuple(self._aggregates)
        keys = tuple(dict.fromkeys(self._keys))
        graph = (self._graph,) if isinstance(self._graph, Var) else ()
        if any(what.argument is None and what.distinct for _, what in aggregates):
            # solutions are told apart by the variables that the query names
            below = Project(below, tuple(dict.fromkeys((*self._inside, *keys, *graph))))
        grouped = Group(below, (*keys, *graph), aggregates)
        if not graph or "groupby" in self._of:
            return grouped
        without = Minus(Graphs(graph[0]), Project(below, graph))
        return union(
            [
                grouped,
                Join(without, Group(Values(tuple(sorted(below.possible)), ()), (), aggregates)),
            ]
        )

    # --- expressions ------------------------------------------------------------------------------------------------

    def _conditions(self, clause: str) -> Iterable[Any]:
        conditions: Iterable[Any] = (
            dict.__getitem__(self._of[clause], "condition") if clause in self._of else ()
        )
        return conditions

    def _having(self, translator: ExpressionTranslator) -> list[Expression]:
        """The conditions of HAVING.

        By SPARQL 1.1 they see no variable of SELECT's expressions, which are evaluated later. As in Jena, Virtuoso and
        others, such a variable here stands for its expression.
        """
        having = []
        names = (dict.get(item, "evar") for item in self._of.get("projection", ()))
        named = {self._tree.variable(name) for name in names if name is not None}
        for condition in self._conditions("having"):
            expression = translator.expression(condition)
            if not named.isdisjoint(mentioned(expression)):
                expression = substituted(expression, self._aliases(translator))
            unknown = [variable for variable in mentioned(expression) if variable in named]
            for variable in (*self._ungrouped(expression), *unknown):
                raise self._tree.unsupported(
                    condition,
                    f"HAVING cannot see ?{variable.name}, which is neither a key of GROUP BY nor an aggregate",
                    f"?{variable.name}",
                    "write the aggregate itself, as in HAVING(COUNT(?x) > 1)",
                )
            having.append(expression)
        return having

    def _aliases(self, translator: ExpressionTranslator) -> dict[Var, Expression]:
        """The variables that SELECT computes with their expressions, but for those that differ each time."""
        found: dict[Var, Expression] = {}
        for item in self._of.get("projection", ()):
            of = dict(dict.items(item))
            if "evar" in of:
                expression = substituted(translator.expression(of["expr"]), found)
                if is_repeatable(expression):
                    found[self._tree.variable(of["evar"])] = expression
        return found

    def _projection(
        self, translator: ExpressionTranslator
    ) -> tuple[list[Var], list[tuple[Var, Expression]]]:
        """The variables that are projected, each once, and what some of them are bound to."""
        projection: dict[Var, None] = {}
        extensions: dict[Var, Expression] = {}
        if self._part.name == "AskQuery":
            return [], []
        if "projection" not in self._of:
            if self._grouped:
                raise self._tree.error(
                    self._part, "SELECT * has no meaning with GROUP BY", "name the variables"
                )
            return [variable for variable in self._scope if not variable.hidden], []
        for item in self._of["projection"]:
            of = dict(dict.items(item))
            if "var" in of:
                variable = self._tree.variable(of["var"])
                if self._grouped and variable not in self._scope and variable not in extensions:
                    raise self._not_grouped(item, variable)
            else:
                expression = translator.expression(of["expr"])
                for other in self._ungrouped(expression):
                    if other not in extensions:
                        raise self._not_grouped(item, other)
                # what is grouped has nothing left of the pattern but its keys: (COUNT(?x) AS ?x) is a new ?x
                bound = self._scope if self._grouped else self._inside | self._scope
                variable = self._groups.new_variable(of["evar"], bound | projection)
                extensions[variable] = expression
            projection[variable] = None
        return list(projection), list(extensions.items())

    def _order(
        self, translator: ExpressionTranslator, extended: Sequence[Var]
    ) -> list[tuple[Expression, bool]]:
        order = []
        for condition in self._conditions("orderby"):
            of = dict(dict.items(condition))
            expression = translator.expression(of["expr"])
            for variable in self._ungrouped(expression):
                if variable not in extended:
                    raise self._tree.unsupported(
                        condition,
                        f"ORDER BY cannot see ?{variable.name}, which is neither a key of GROUP BY nor an aggregate",
                        f"?{variable.name}",
                        "aggregate it, as in ORDER BY SAMPLE(?x)",
                    )
            order.append((expression, of.get("order") == "DESC"))
        return order

    def _ungrouped(self, expression: Expression) -> list[Var]:
        """The variables of the pattern that the solutions of a group do not have."""
        if not self._grouped:
            return []
        known = self._inside.keys() - self._scope.keys()
        return [variable for variable in mentioned(expression) if variable in known]

    # --- what is left -----------------------------------------------------------------------------------------------

    def _modified(
        self, pattern: Node, order: list[tuple[Expression, bool]], projection: list[Var]
    ) -> Node:
        kept = (self._graph,) if isinstance(self._graph, Var) else ()
        slice: CompValue | None = self._of.get("limitoffset")
        # the order of a sub-query is lost where it is joined
        if order and (slice is not None or self._part.name != "SubSelect"):
            pattern = OrderBy(pattern, tuple(order))
        if self._part.name != "AskQuery":
            pattern = Project(pattern, (*projection, *kept))
        if "modifier" in self._of:
            pattern = Distinct(pattern)
        if slice is not None:
            offset, limit = (
                self._tree.integer(dict.__getitem__(slice, name)) if name in slice else None
                for name in ("offset", "limit")
            )
            pattern = Slice(pattern, offset or 0, limit, kept)
        return pattern

    def _not_grouped(self, part: Any, variable: Var) -> Exception:
        return self._tree.error(
            part,
            f"?{variable.name} is neither a key of GROUP BY nor an aggregate",
            f"write SAMPLE(?{variable.name}), or GROUP BY it",
        )

"""Evaluation of a plan on an engine of SQL: each node of the algebra as a SELECT. SPARQL 1.1 Query, section 18.6.

Expressions that `native` knows are part of the SELECT. Each other one is evaluated in a stage of its own: the solutions
that the native filters leave are read once for its distinct inputs, `Evaluator` evaluates these, and the values are
joined back. Solutions that are read twice, numbered or cut by LIMIT become a temporary table. The engine is behind
`Engine`, and its SQL in `dialects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count
from types import MappingProxyType
from typing import Any, Final, assert_never

from construct_messages.query.algebra.calls import (
    conjuncts,
    exists_in,
    filtered,
    is_volatile,
    replace_exists,
)
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Aggregation,
    Bgp,
    Call,
    Constant,
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
    Plan,
    Project,
    Slice,
    Star,
    Union,
    Unit,
    Values,
    Var,
    Vars,
    contains_path,
    correlated_variables,
    join_order,
    mentions,
)
from construct_messages.query.optimizer.push_down import links
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import boolean, number
from construct_messages.sparql.relational import native
from construct_messages.sparql.relational.dialects import Dialect, Engine
from construct_messages.sparql.relational.expressions import Evaluator
from construct_messages.sparql.relational.paths import path
from construct_messages.sparql.relational.relation import (
    SolutionBag,
    column,
    columns,
    in_pairs,
    join,
    left_join,
    semi_join,
    union,
)
from construct_messages.sparql.relational.scans import Quads

_TRUE: Final = boolean("true")
_FALSE: Final = boolean("false")
_NUMBER: Final = column(Var(".u"))
"""The beginning of the columns of hidden variables that number solutions."""
_ZERO: Final = number("0")
_FEW_TERMS: Final = 100  # of inline data, to be listed in a condition


@dataclass(frozen=True)
class BodyBindings:
    """The bindings for which a correlated body of EXISTS is evaluated, all at once.

    The solutions are distinct; the variable `key` has another value in each, and all solutions of the body bind it.
    """

    solutions: SolutionBag
    key: Var
    variables: Vars


def check(node: Node, evaluator: Evaluator) -> None:
    """Raises `UnsupportedQuery` for an expression that cannot be evaluated, before anything is."""
    for expression in node.expressions:
        evaluator.check(replace_exists(expression, lambda _: Var(".e")))
        for exists in exists_in(expression):
            check(exists.pattern, evaluator)
    for child in node.children:
        check(child, evaluator)


@dataclass(frozen=True)
class PlanSelect:
    """The evaluation of one query, or of a body of EXISTS for outer bindings.

    The first leaf of each operand is joined with the outer bindings, and so is every leaf of operands that need them.
    Thus conditions at any depth see the bindings, and groups, slices and MINUS are evaluated for each of them.
    """

    engine: Engine
    quads: Quads
    evaluator: Evaluator
    labels: Labels = field(default_factory=Labels)
    outer: BodyBindings | None = None
    numbers: Iterator[int] = field(default_factory=count)  # for names that are unique in the query

    def select(self, plan: Plan) -> str:
        """Returns the SELECT of a plan: a column for each of its variables, in order; for ASK at most one row."""
        check(plan.pattern, self.evaluator)
        match plan.pattern:
            case Slice(pattern, offset, limit, ()):
                found = self.solutions(pattern).slice(offset, limit)
            case pattern:
                found = self.solutions(pattern)
        if plan.form == "ASK":
            return f"SELECT 1 AS one FROM {found.source} AS t LIMIT 1"
        names = [
            f"{column(var)} AS {column(var)}"
            if var in found.possible
            else f"{self.dialect.null} AS {column(var)}"
            for var in map(Var, plan.variables)
        ]
        order = f" ORDER BY {found.order}" if found.order else ""
        return found.selected(names) + order

    def solutions(self, node: Node, known: tuple[SolutionBag, ...] = ()) -> SolutionBag:
        """Returns the solutions of a node, which the caller joins with the known relations.

        Paths may begin from these: solutions that are compatible with none of theirs may be missing.
        """
        match node:
            case Unit():
                return self._with_outer(SolutionBag("SELECT 1 AS one", NOTHING, NOTHING))
            case Bgp(patterns):
                scans = map(self.quads.scan, patterns)
                return reduce(self._join_two, [*self._outer_solutions(), *scans])
            case Path():
                found = path(node, self.quads, self.engine, [*known, *self._outer_solutions()])
                return self._with_outer(found)
            case Graphs(graph):
                return self._with_outer(self.quads.graphs(graph))
            case Values():
                return self._with_outer(self._values(node))
            case Join():
                return self._join(node, known)
            case Filter():
                return self._filter(node, known)
            case LeftJoin(left, right, condition):
                return self._left_join(self._unordered(left, known), right, condition)
            case Union(left, right):
                one, other = self._unordered(left, known), self._unordered(right, known)
                return union(one, other, self.dialect)
            case Minus(left):
                return self._minus(node, self._unordered(left, known))
            case Extend(pattern, variable, expression):
                return self._extend(self.solutions(pattern, known), variable, expression)
            case Number(pattern, variable):
                return self._number(self.solutions(pattern, known), variable)
            case Group():
                return self._with_outer(self._group(node))
            case Project(pattern, kept):
                return self._with_outer(self._project(pattern, frozenset(kept), known))
            case Distinct(pattern):
                return self.solutions(pattern, known).distinct()
            case OrderBy(pattern, conditions):
                return self._order(self._unordered(pattern), conditions)
            case Slice():
                return self._slice(node)
            case Star():
                raise AssertionError("stars are planned for Spark only")
            case other:
                assert_never(other)

    # --- help -----------------------------------------------------------------------------------------------------

    @property
    def dialect(self) -> Dialect:
        return self.engine.dialect

    def _unordered(self, node: Node, known: tuple[SolutionBag, ...] = ()) -> SolutionBag:
        return self.solutions(node, known).unordered()

    def _fresh(self, letter: str) -> Var:
        return Var(f".{letter}{next(self.numbers)}")

    def _table(self, relation: SolutionBag) -> SolutionBag:
        """Computes solutions that are read twice."""
        if relation.light:
            return relation
        return replace(relation, sql=self.engine.table(relation.sql), table=True, light=True)

    def _numbered(self, relation: SolutionBag) -> tuple[SolutionBag, Var]:
        """Numbers the solutions, by a hidden variable, in a table."""
        key = self._fresh("u")
        return self._table(relation.bind(key, "row_number() OVER ()", certain=True)), key

    def _outer_solutions(self) -> tuple[SolutionBag, ...]:
        return (self.outer.solutions,) if self.outer else ()

    def _with_outer(self, relation: SolutionBag) -> SolutionBag:
        if not self.outer:
            return relation
        return self._join_two(self.outer.solutions, relation.unordered())

    def _without_outer(self) -> PlanSelect:
        return replace(self, outer=None) if self.outer else self

    def _join_two(self, left: SolutionBag, right: SolutionBag) -> SolutionBag:
        return join(left, right, self.dialect)

    def _values(self, node: Values) -> SolutionBag:
        names = columns(node.variables)
        order = sorted(range(len(node.variables)), key=lambda n: column(node.variables[n]))
        rows = ([solution[place] for place in order] for solution in node.solutions)
        if not names:
            one = " UNION ALL ".join(["SELECT 1 AS one"] * len(node.solutions))
            return SolutionBag(one or "SELECT 1 AS one WHERE FALSE", NOTHING, NOTHING)
        table = self.engine.filled(
            dict.fromkeys(names, "string"),
            iter([list(map(list, zip(*rows, strict=True)))] if node.solutions else ()),
        )
        return SolutionBag(table, node.possible, node.certain, table=True, light=True)

    # --- joins ----------------------------------------------------------------------------------------------------

    def _filter(self, node: Filter, known: tuple[SolutionBag, ...]) -> SolutionBag:
        """Returns the solutions that meet the condition of this filter and of the filters directly below it."""
        pattern, conditions = filtered(node)
        if not isinstance(pattern, Join | Bgp):
            return self._where(self.solutions(pattern, known), conditions)
        keyed, sides = self._with_key_columns(conditions)
        if isinstance(pattern, Join):
            found = self._join(pattern, known, conditions, sides)
        else:
            scans: list[SolutionBag] = []
            for one in pattern.patterns:
                taken = NOTHING.union(*(scan.possible for scan in scans))
                scans.append(self._with_sides(self.quads.scan(one), sides, taken))
            found = reduce(self._join_two, [*self._outer_solutions(), *scans])
        for key in sorted(sides.keys() - found.possible):  # no operand has all of its variables
            found = self._with_key(found, key, sides[key])
        return self._where(found, keyed).without(frozenset(sides))

    def _with_key_columns(
        self, conditions: Sequence[Expression]
    ) -> tuple[list[Expression], dict[Var, Expression]]:
        """Returns conditions in which equal keys are equal hidden variables, and the values that these are keys of.

        An engine joins by equal columns, and not by expressions of them.
        """
        found: list[Expression] = []
        sides: dict[Var, Expression] = {}
        for one in conditions:
            if isinstance(one, Call) and one.name == "SAMEKEY":
                keys = {self._fresh("k"): side for side in one.arguments}
                sides |= keys
                found.append(Call("SAMETERM", tuple(keys)))
            else:
                found.append(one)
        return found, sides

    def _with_sides(
        self, relation: SolutionBag, sides: Mapping[Var, Expression], taken: Vars = NOTHING
    ) -> SolutionBag:
        """Adds the keys that an operand has all variables of, but for those that another operand has."""
        for key, side in sides.items():
            if key not in taken and mentions(side) and mentions(side) <= relation.certain:
                relation = self._with_key(relation, key, side)
        return relation

    def _with_key(self, relation: SolutionBag, key: Var, side: Expression) -> SolutionBag:
        if isinstance(side, Var):
            wide, value = relation.with_columns_of(frozenset({side}), self.dialect), side
        else:
            wide, value = self._extended(relation, side)
        found = wide.bind(key, native.join_key(value, self.dialect))
        return found.without(found.possible - relation.possible - {key})

    def _join(
        self,
        node: Join,
        known: tuple[SolutionBag, ...],
        conditions: tuple[Expression, ...] = (),
        sides: Mapping[Var, Expression] = MappingProxyType({}),
    ) -> SolutionBag:
        bound = NOTHING.union(*(one.certain for one in (*known, *self._outer_solutions())))
        first, *others = join_order(node, bound, links(conditions))
        inline = [one for one in (first, *others) if isinstance(one, Values)]
        relation = self._with_sides(self._among(self._unordered(first, known), inline), sides)
        for other in others:
            left, right = self._right(relation, other, known)
            right = self._with_sides(self._among(right, inline), sides, left.possible)
            relation = self._join_two(left, right)
        return relation

    def _among(self, relation: SolutionBag, inline: Sequence[Values]) -> SolutionBag:
        """Leaves out solutions that join with none of some inline data: engines do not see how few it has."""
        for values in inline:
            for variable in sorted(values.certain & relation.certain):
                place = values.variables.index(variable)
                terms = {solution[place] or "" for solution in values.solutions}
                if not relation.table and 0 < len(terms) <= _FEW_TERMS:
                    listed = ", ".join(map(self.dialect.text, sorted(terms)))
                    relation = relation.where(f"{column(variable)} IN ({listed})")
        return relation

    def _right(
        self, left: SolutionBag, node: Node, known: tuple[SolutionBag, ...] = ()
    ) -> tuple[SolutionBag, SolutionBag]:
        """Returns the left side of a join, as a table if paths begin from it, and the solutions of its right side."""
        left, starts = self._starts(left, node)
        # it needs the outer bindings only if it is correlated with them, or if paths begin from them
        outer = self.outer and (
            correlated_variables(node) & self.outer.variables or contains_path(node)
        )
        inside = self if outer else self._without_outer()
        return left, inside._unordered(node, (*starts, *known))

    def _starts(
        self, left: SolutionBag, right: Node
    ) -> tuple[SolutionBag, tuple[SolutionBag, ...]]:
        if not contains_path(right):
            return left, ()
        left = self._table(left)
        return left, (left,)

    def _left_join(
        self, left: SolutionBag, right_node: Node, condition: Expression | None
    ) -> SolutionBag:
        left, right = self._right(left, right_node)
        conditions = () if condition is None else conjuncts(condition)
        # conditions on the right side alone only narrow it
        own = tuple(one for one in conditions if mentions(one) & left.possible <= right.certain)
        right = self._where(right, own)
        rest = tuple(one for one in conditions if one not in own)
        shared = left.possible & right.possible
        if shared <= left.certain & right.certain:
            across = self._across(rest, left, right)
            if across is not None:
                return left_join(left, right, across or None)
        numbered, key = self._numbered(left)
        pairs = self._table(self._where(self._join_two(numbered, right), rest))
        alone = in_pairs(numbered, pairs, key, keep=False)
        return union(pairs.without(frozenset({key})), alone, self.dialect)

    def _across(
        self, conditions: Sequence[Expression], left: SolutionBag, right: SolutionBag
    ) -> str | None:
        """Returns SQL over `l` and `r` for conditions on both sides; None if some of them need a stage."""
        found = []
        for one in conditions:
            if exists_in(one) or not mentions(one) <= left.possible | right.possible:
                return None
            sides = {var: "l" if var in left.possible else "r" for var in mentions(one)}
            sql = native.condition(one, self.dialect, sides)
            if sql is None or sql.decided != native.ALWAYS:
                return None
            found.append(f"({sql.sql})")
        return " AND ".join(found)

    def _minus(self, node: Minus, left: SolutionBag) -> SolutionBag:
        left, right = self._right(left, node.right)
        within = node.within
        if self.outer:
            # outer bindings do not count as variables that both sides share
            own = node.left.possible & node.right.possible
            within = within | {self.outer.key} | (self.outer.variables - own)
        shared = left.possible & right.possible
        counting = shared - within
        if not counting:
            return left
        right = right.only(shared)
        if shared <= left.certain & right.certain:
            return semi_join(left, right, keep=False)
        numbered, key = self._numbered(left)
        pairs = join(numbered, right.distinct(), self.dialect, overlapping=counting)
        return in_pairs(numbered, pairs, key, keep=False)

    # --- conditions and expressions -------------------------------------------------------------------------------

    def _where(self, relation: SolutionBag, conditions: Sequence[Expression]) -> SolutionBag:
        """Returns the solutions for which all conditions are true: the native filters first."""
        stages = []
        for one in conditions:
            if exists_in(one):
                continue
            sql = None if is_volatile(one) else native.condition(one, self.dialect)
            if sql is not None and sql.decided == native.ALWAYS:
                wide = relation.with_columns_of(mentions(one), self.dialect).where(sql.sql)
                relation = wide.without(wide.possible - relation.possible)
            else:
                stages.append((one, sql))
        for one, sql in stages:
            relation = self._staged_filter(relation, one, sql)
        for one in conditions:
            match one:
                case Exists(body):
                    relation = self._exists(relation, body, keep=True)
                case Call("!", (Exists(body),)):
                    relation = self._exists(relation, body, keep=False)
                case _ if exists_in(one):
                    marked, condition = self._with_marks(relation, one)
                    found = self._where(marked, (condition,))
                    relation = found.without(marked.possible - relation.possible)
        return relation

    def _staged_filter(
        self, relation: SolutionBag, condition: Expression, sql: native.Native | None
    ) -> SolutionBag:
        relation, value = self._staged(relation, condition, sql, truth=True)
        kept = ", ".join(f"t.{name}" for name in relation.columns) or "1 AS one"
        text = f"SELECT {kept} FROM {value.source} WHERE {value.sql}"
        return replace(relation, sql=text, table=False, light=False)

    def _extend(self, relation: SolutionBag, variable: Var, expression: Expression) -> SolutionBag:
        marked, value = self._with_marks(relation, expression)
        if isinstance(value, Constant):
            found = marked.bind(variable, self.dialect.text(value.term), certain=True)
        elif isinstance(value, Var):
            name = column(value) if value in marked.possible else self.dialect.null
            found = marked.bind(variable, name, certain=value in marked.certain)
        else:
            sql = None if is_volatile(value) else native.term(value, self.dialect)
            wide, staged = self._staged(marked, value, sql, truth=False)
            names = ", ".join([*(f"t.{name}" for name in wide.columns), f"{staged.sql} AS value"])
            text = f"(SELECT {names} FROM {staged.source}) AS t"
            wide = replace(wide, sql=f"SELECT * FROM {text}", table=False, light=False)
            found = wide.bind(variable, "value")
        return found.without(found.possible - relation.possible - {variable})

    def _extended(self, relation: SolutionBag, value: Expression) -> tuple[SolutionBag, Var]:
        """Adds a hidden variable with a value."""
        variable = self._fresh("v")
        return self._extend(relation, variable, value), variable

    def _staged(
        self,
        relation: SolutionBag,
        expression: Expression,
        sql: native.Native | None,
        *,
        truth: bool,
    ) -> tuple[SolutionBag, _Staged]:
        """Evaluates an expression for its distinct inputs, except where native SQL decides it.

        Returns the solutions `t`, which the caller reads from the source, and the value as SQL.
        """
        if sql is not None and sql.decided == native.ALWAYS:
            wide = relation.with_columns_of(mentions(expression), self.dialect)
            return wide, _Staged(f"{wide.source} AS t", sql.sql)
        relation = relation.with_columns_of(mentions(expression) - relation.possible, self.dialect)
        inputs = sorted(mentions(expression))
        if is_volatile(expression):  # each solution has a value of its own
            relation, key = self._numbered(relation)
            inputs.append(key)
        relation = self._table(relation)
        names = [*map(column, inputs)]
        evaluate = self.evaluator.truths if truth else self.evaluator.terms
        variables = [variable.name for variable in inputs]
        if not names:
            (value,) = evaluate(expression, (), [()])
            constant = _sql_of(value, self.dialect)
            return relation, _Staged(f"{relation.source} AS t", constant)
        undecided = "" if sql is None else f"NOT coalesce({sql.decided}, FALSE)"
        distinct = relation.selected(names, undecided).replace("SELECT ", "SELECT DISTINCT ", 1)
        found = 0

        def evaluated() -> Iterator[Sequence[list[Any]]]:
            nonlocal found
            for batch in self.engine.batches(distinct):
                found += len(batch[0])
                rows = zip(*batch, strict=True)
                yield [*batch, evaluate(expression, variables, rows)]

        types = {name: "integer" if name.startswith(_NUMBER) else "string" for name in names}
        table = self.engine.filled(
            {**types, "value": "boolean" if truth else "string"}, evaluated()
        )
        if not found and sql is not None:
            return relation, _Staged(f"{relation.source} AS t", sql.sql)
        on = " AND ".join(f"t.{name} IS NOT DISTINCT FROM e.{name}" for name in names)
        value = "e.value"
        if sql is not None:
            value = f"CASE WHEN {sql.decided} THEN {sql.sql} ELSE e.value END"
        return relation, _Staged(f"{relation.source} AS t LEFT JOIN {table} AS e ON {on}", value)

    def _number(self, relation: SolutionBag, variable: Var) -> SolutionBag:
        # the variable's name distinguishes the numbers of two nodes
        name = f"{self.labels.prefix}{variable.name.removeprefix('.')}x"
        number = f"concat({self.dialect.text(name)}, row_number() OVER ())"
        return self._table(relation.bind(variable, number, certain=True))

    # --- EXISTS ---------------------------------------------------------------------------------------------------
    # SPARQL 1.1 Query, section 18.6, substitutes each solution into the body. Here a body is evaluated once and joined
    # on the shared variables, as a semi-join, if `correlation` shows that the result is the same; any other is
    # evaluated once for all distinct bindings of the variables that it needs.

    def _with_marks(
        self, relation: SolutionBag, expression: Expression
    ) -> tuple[SolutionBag, Expression]:
        """Returns the solutions with a boolean for each EXISTS in an expression, and the expression over these."""
        variables: dict[Exists, Var] = {}
        for exists in dict.fromkeys(exists_in(expression)):
            variables[exists] = marked = self._fresh("e")
            numbered, key = self._numbered(relation)
            found = self._exists(numbered, exists.pattern, keep=True)
            number = column(key)
            there = f"EXISTS (SELECT 1 FROM {found.source} AS r WHERE t.{number} = r.{number})"
            true, false = map(self.dialect.text, (_TRUE, _FALSE))
            value = f"CASE WHEN {there} THEN {true} ELSE {false} END"
            relation = self._table(numbered.bind(marked, value, certain=True))
            relation = relation.without(frozenset({key}))
        value_of = replace_exists(expression, variables.__getitem__)
        return relation.with_columns_of(mentions(value_of), self.dialect), value_of

    def _exists(self, relation: SolutionBag, body: Node, *, keep: bool) -> SolutionBag:
        """Returns the solutions for which the body has a solution; if not `keep`, those for which it has none."""
        match body:
            case Filter(pattern, condition) if self._is_uncorrelated(relation, pattern):
                conditions = conjuncts(condition)
                own = [
                    one
                    for one in conditions
                    if mentions(one) & relation.possible <= pattern.certain
                ]
                rest = [one for one in conditions if one not in own]
                shared = pattern.possible & relation.possible
                if rest and shared <= relation.certain:
                    left, starts = self._starts(relation, pattern)
                    right = self._where(self._without_outer()._unordered(pattern, starts), own)
                    across = self._across(rest, left, right)
                    if across is not None:
                        return semi_join(left, right, keep=keep, condition=across)
        if correlated_variables(body) & relation.possible:
            return self._exists_for_each(relation, body, keep=keep)
        left, starts = self._starts(relation, body)
        right = self._without_outer()._unordered(body, starts).only(relation.possible)
        if right.possible & left.possible <= left.certain & right.certain:
            return semi_join(left, right, keep=keep)
        numbered, key = self._numbered(left)
        return in_pairs(numbered, self._join_two(numbered, right.distinct()), key, keep=keep)

    def _exists_for_each(self, relation: SolutionBag, body: Node, *, keep: bool) -> SolutionBag:
        """Evaluates a body for the distinct bindings of the variables that it needs."""
        variables = (body.possible | correlated_variables(body)) & relation.possible
        key = self._fresh("t")
        left = self._table(self._table(relation).with_key_of(variables, key, self.dialect))
        bindings = self._table(left.only(variables | {key}).distinct())
        outer = BodyBindings(bindings, key, variables)
        right = replace(self, outer=outer)._unordered(body).only(frozenset({key}))
        return semi_join(left, right, keep=keep).without(frozenset({key}))

    def _is_uncorrelated(self, relation: SolutionBag, body: Node) -> bool:
        shared = body.possible & relation.possible
        return not correlated_variables(body) & relation.possible and shared <= body.certain

    # --- groups: SPARQL 1.1 Query, section 18.5.1 -----------------------------------------------------------------

    def _group(self, node: Group) -> SolutionBag:
        relation = self._unordered(node.pattern).with_columns_of(frozenset(node.keys), self.dialect)
        keys = frozenset(node.keys) | ({self.outer.key} if self.outer else NOTHING)
        node, means = self._without_means(node)
        arguments: dict[Var, tuple[str | None, str | None]] = {}
        for variable, one in node.aggregates:
            argument, key = one.argument, None
            if argument is not None:
                if not isinstance(argument, Var):
                    relation, argument = self._extended(relation, argument)
                relation = relation.with_columns_of(frozenset({argument}), self.dialect)
                if one.name in ("MIN", "MAX"):
                    relation, key = self._extended(relation, Call("ORDERKEY", (argument,)))
            arguments[variable] = (
                None if argument is None else column(argument),
                None if key is None else column(key),
            )
        relation = self._table(relation)
        groups = self._grouped(relation, node, keys, arguments)
        if self.outer and not node.keys:
            # an empty group for each outer binding without solutions
            nothing = self._table(relation.where("FALSE"))
            empty = self._grouped(nothing, node, NOTHING, arguments)
            groups = self._table(groups)
            outer = self.outer.solutions.only(frozenset({self.outer.key}))
            rest = self._join_two(semi_join(outer, groups, keep=False), empty)
            groups = union(groups, rest, self.dialect)
        for variable, mean in means.items():
            groups = self._extend(groups, variable, mean)
        return groups.without(NOTHING.union(*map(mentions, means.values())))

    def _without_means(self, node: Group) -> tuple[Group, dict[Var, Expression]]:
        """Returns a group with SUM and COUNT for each AVG, and their quotients."""
        aggregates, means = [], dict[Var, Expression]()
        for variable, one in node.aggregates:
            if one.name != "AVG":
                aggregates.append((variable, one))
                continue
            total, size = self._fresh("s"), self._fresh("n")
            aggregates += [(total, replace(one, name="SUM")), (size, replace(one, name="COUNT"))]
            empty = Call("=", (size, Constant(_ZERO)))
            means[variable] = Call("IF", (empty, Constant(_ZERO), Call("/", (total, size))))
        return replace(node, aggregates=tuple(aggregates)), means

    def _grouped(
        self,
        relation: SolutionBag,
        node: Group,
        keys: Vars,
        arguments: Mapping[Var, tuple[str | None, str | None]],
    ) -> SolutionBag:
        names = columns(keys)
        visible = columns(one for one in node.pattern.possible if not one.hidden)
        made, evaluated = [*names], dict[Var, str]()
        for variable, one in node.aggregates:
            known = native.aggregate(one, *arguments[variable], visible, self.dialect)
            known = known or native.Native(self.dialect.null, "FALSE")
            if known.decided != native.ALWAYS:
                evaluated[variable] = f"d{len(evaluated)}"
                made.append(f"{known.decided} AS {evaluated[variable]}")
            made.append(f"{known.sql} AS {column(variable)}")
        grouped = relation.selected([*made, "count(*) AS size"])
        grouped += f" GROUP BY {', '.join(names)}" if names else ""
        source = self.engine.table(grouped) if evaluated else f"({grouped})"
        selected = {name: f"g.{name}" for name in names}
        selected |= {column(variable): f"g.{column(variable)}" for variable, _ in node.aggregates}
        joined = ""
        for variable, one in node.aggregates:
            if (decided := evaluated.get(variable)) is not None:
                argument, name = arguments[variable][0], column(variable)
                undecided = f"(SELECT * FROM {source} AS g WHERE NOT {decided})"
                table = self._aggregated(relation, names, argument, one, undecided)
                joined += f" LEFT JOIN {table} AS a{decided} ON {_same('g', f'a{decided}', names)}"
                selected[name] = f"CASE WHEN g.{decided} THEN g.{name} ELSE a{decided}.value END"
        values = ", ".join(f"{value} AS {name}" for name, value in selected.items())
        sql = f"SELECT {values or '1 AS one'} FROM {source} AS g{joined}"
        counts = frozenset(variable for variable, one in node.aggregates if one.name == "COUNT")
        bound = keys | {variable for variable, _ in node.aggregates}
        return SolutionBag(sql, bound, (keys & relation.certain) | counts)

    def _aggregated(
        self,
        relation: SolutionBag,
        names: Sequence[str],
        argument: str | None,
        one: Aggregation,
        groups: str,
    ) -> str:
        """Makes a table of an aggregate for some of the groups, from their distinct terms and the numbers of these."""
        kept = [f"t.{name}" for name in names]
        size = "1" if one.distinct else "count(*)"
        counted = (
            f"SELECT {', '.join([*kept, f't.{argument} AS term', f'{size} AS size'])} "
            f"FROM {relation.source} AS t JOIN {groups} AS u ON {_same('t', 'u', names)} "
            f"GROUP BY {', '.join([*kept, f't.{argument}'])}"
        )
        line, line_feed = (
            "concat(CAST(size AS STRING), ' ', coalesce(term, ''))",
            self.dialect.text("\n"),
        )
        terms = f"string_agg({line}, {line_feed}) AS terms"
        sql = f"SELECT {', '.join([*names, terms])} FROM ({counted}) AS t"
        sql += f" GROUP BY {', '.join(names)}" if names else ""
        evaluate = partial(self.evaluator.aggregates, one.name, one.separator)
        return self.engine.filled(
            {**dict.fromkeys(names, "string"), "value": "string"},
            (
                [*batch[:-1], evaluate(zip(*batch, strict=True))]
                for batch in self.engine.batches(sql)
            ),
        )

    # --- sequences ------------------------------------------------------------------------------------------------

    def _project(self, pattern: Node, kept: Vars, known: tuple[SolutionBag, ...]) -> SolutionBag:
        inside = self
        if self.outer:
            # variables that are not projected differ from those of the same name outside
            bound, key = self.outer.variables & kept, self.outer.key
            solutions = self.outer.solutions.only(bound | {key})
            inside = replace(self, outer=BodyBindings(solutions, key, bound))
            kept |= {key}
        found = inside.solutions(pattern, tuple(one.only(kept) for one in known))
        return found.without(found.possible - kept)

    def _order(
        self, relation: SolutionBag, conditions: tuple[tuple[Expression, bool], ...]
    ) -> SolutionBag:
        possible, order = relation.possible, []
        for expression, descending in conditions:
            relation, key = self._extended(relation, Call("ORDERKEY", (expression,)))
            order.append(
                f"t.{column(key)} {'DESC NULLS LAST' if descending else 'ASC NULLS FIRST'}"
            )
        name = f"o_{next(self.numbers)}"
        kept = [f"t.{one}" for one in columns(possible)]
        number = f"row_number() OVER (ORDER BY {', '.join(order)}) AS {name}"
        sql = f"SELECT {', '.join([*kept, number])} FROM {relation.source} AS t"
        found = SolutionBag(sql, possible, relation.certain & possible, order=name)
        return self._table(found)

    def _slice(self, node: Slice) -> SolutionBag:
        relation = self.solutions(node.pattern)
        within = frozenset(node.within) & relation.possible
        within |= {self.outer.key} if self.outer else NOTHING
        return self._table(relation.slice(node.offset, node.limit, within))


def _same(one: str, other: str, names: Sequence[str]) -> str:
    same = [f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in names]
    return " AND ".join(same) or "TRUE"


@dataclass(frozen=True)
class _Staged:
    """Where the solutions `t` are read from, and the value of an expression for each, as SQL."""

    source: str
    sql: str


def _sql_of(value: Any, dialect: Dialect) -> str:
    if value is None:
        return dialect.null
    return str(value).upper() if isinstance(value, bool) else dialect.text(value)

"""Evaluation of a plan on an engine of SQL: each node of the algebra as a SELECT. SPARQL 1.1 Query, section 18.6.

Expressions that `native` knows are part of the SELECT. Each other one is evaluated in a stage of its own after the
native filters: `expressions` evaluates its distinct inputs. Solutions that are read twice have a name. The engine is
behind `Engine`, and its SQL in `dialects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count
from types import MappingProxyType
from typing import Final, assert_never

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
from construct_messages.sparql.relational import expressions, native
from construct_messages.sparql.relational.dialects import Dialect, Engine
from construct_messages.sparql.relational.paths import path
from construct_messages.sparql.relational.relation import (
    Pairs,
    SolutionBag,
    column,
    columns,
    compatible_pairs,
    join,
    left_join,
    semi_join,
    union,
)
from construct_messages.sparql.relational.scans import Quads

_TRUE: Final = boolean("true")
_FALSE: Final = boolean("false")
_ZERO: Final = number("0")
_FEW_TERMS: Final = 100  # of inline data, to be listed in a condition


@dataclass(frozen=True)
class BodyBindings:
    """The bindings for which a correlated body of EXISTS is evaluated, all at once.

    The solutions are distinct; the variable `key` has another value in each, and all solutions of the body bind it.
    """

    solutions: SolutionBag
    key: Var

    @property
    def variables(self) -> Vars:
        return self.solutions.possible - {self.key}


def check(node: Node) -> None:
    """Raises `UnsupportedQuery` for an expression that cannot be evaluated, before anything is."""
    for expression in node.expressions:
        expressions.check(replace_exists(expression, lambda _: Var(".e")))
        for exists in exists_in(expression):
            check(exists.pattern)
    for child in node.children:
        check(child)


@dataclass(frozen=True)
class PlanSelect:
    """The evaluation of one query, or of a body of EXISTS for outer bindings.

    The first leaf of each operand is joined with the outer bindings, and so is every leaf of operands that need them.
    Thus conditions at any depth see the bindings, and groups, slices and MINUS are evaluated for each of them.
    """

    engine: Engine
    quads: Quads
    labels: Labels = field(default_factory=Labels)
    outer: BodyBindings | None = None
    numbers: Iterator[int] = field(default_factory=count)  # for names that are unique in the query
    kinds: dict[str, frozenset[str]] = field(default_factory=dict)  # by the SELECT of terms

    def select(self, plan: Plan) -> str:
        """Returns the SELECT of a plan: a column for each of its variables, in order; for ASK at most one row."""
        check(plan.pattern)
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
        order = f" ORDER BY {found.ordering}" if found.order else ""
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
                return self._with_outer(self.quads.star(node))
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
        name = self.engine.table(relation.sql, stable=relation.stable)
        return replace(relation, sql=name, table=True, light=True, stable=True)

    def _pairs(
        self,
        left: SolutionBag,
        right: SolutionBag,
        conditions: Sequence[Expression] = (),
        overlapping: Vars | None = None,
    ) -> Pairs:
        """Returns the pairs that meet all conditions."""
        names = self._fresh("k"), self._fresh("m")
        across = self._across(conditions, left, right)
        pairs = compatible_pairs(left, right, names, self.dialect, overlapping, across.not_excluded)
        solutions, mark = pairs.solutions, column(pairs.mark)
        for one in across.undecided:
            # a left solution stays alone whatever the condition
            if exists_in(one) or is_volatile(one):
                is_alone = Call("!", (Call("BOUND", (pairs.mark,)),))
                solutions = self._where(solutions, [Call("||", (is_alone, one))])
            else:
                sql = native.unless(f"t.{mark} IS NULL", native.condition(one, self.dialect))
                solutions = self._judged(solutions, one, sql)
        return replace(pairs, solutions=solutions)

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
        linked = [
            one
            for one in keyed
            if sides and mentions(one) <= NOTHING.union(*map(mentions, sides.values()))
        ]
        return self._where(found, keyed, self._kinds(linked, found)).without(frozenset(sides))

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
        rest = [one for one in conditions if one not in own]
        left, right, keyed, hidden = self._with_keys(left, right, rest)
        shared = left.possible & right.possible
        across = self._across(keyed, left, right)
        if shared <= left.certain & right.certain and not across.undecided:
            found = left_join(left, right, across.met)
        else:
            found = self._pairs(left, right, keyed).left_join()
        return found.without(hidden)

    def _with_keys(
        self, left: SolutionBag, right: SolutionBag, conditions: Sequence[Expression]
    ) -> tuple[SolutionBag, SolutionBag, list[Expression], Vars]:
        """Adds columns by which conditions join each side; returns the conditions and the variables that hold it.

        The keys of equalities of one side with the other, see `_with_key_columns`, and the values that are compared.
        """

        def across(one: Expression) -> bool:
            if not (isinstance(one, Call) and one.name == "SAMEKEY"):
                return False
            names = [mentions(side) for side in one.arguments]
            mine, yours = left.certain, right.certain - left.possible
            return all(names) and any(a <= mine and b <= yours for a, b in (names, names[::-1]))

        keyed, sides = self._with_key_columns([one for one in conditions if across(one)])
        keyed += [one for one in conditions if not across(one)]
        one, other = self._with_sides(left, sides), self._with_sides(right, sides, left.possible)
        compared = native.comparands(keyed) - _unsure(left, right)
        kinds = self._kinds(keyed, left, right)
        one = self._with_comparands(one, compared & left.possible, kinds)
        other = self._with_comparands(other, (compared & right.possible) - left.possible, kinds)
        hidden = (one.possible | other.possible) - left.possible - right.possible
        return one, other, keyed, hidden

    def _kinds(self, conditions: Sequence[Expression], *sides: SolutionBag) -> native.Kinds:
        """Asks for the kinds of terms that are compared, where all are known and can be read quickly."""
        found: dict[Var, frozenset[str]] = {}
        for one in conditions:
            compared = native.comparands([one])
            read = {
                variable: next((side for side in sides if variable in side.possible), sides[0])
                for variable in compared
            }
            if all(variable in side.values for variable, side in read.items()):
                found |= {var: self._kinds_of(side.values[var]) for var, side in read.items()}
        return found

    def _kinds_of(self, sql: str) -> frozenset[str]:
        if sql not in self.kinds:
            kind = native.kind_of_terms("t.value", self.dialect)
            rows = self.engine.batches(f"SELECT DISTINCT {kind} AS kind FROM ({sql}) AS t")
            self.kinds[sql] = frozenset(one for batch in rows for one in batch[0])
        return self.kinds[sql]

    def _with_comparands(
        self,
        relation: SolutionBag,
        variables: Vars,
        kinds: native.Kinds = MappingProxyType({}),
    ) -> SolutionBag:
        for variable in sorted(variables):
            for made in native.comparand(variable, self.dialect, kinds):
                if made.keys() <= relation.possible:
                    continue
                values = [f"{self.dialect.once(sql)} AS {column(one)}" for one, sql in made.items()]
                relation = replace(
                    relation,
                    sql=relation.selected(["t.*", *values]),
                    possible=relation.possible | made.keys(),
                    table=False,
                )
        return relation

    def _across(
        self, conditions: Sequence[Expression], left: SolutionBag, right: SolutionBag
    ) -> _Across:
        """Returns conditions on both sides as SQL over `l` and `r`.

        Variables that one of the sides may leave unbound have no value before the sides are merged.
        """
        found = _Across()
        unsure = _unsure(left, right)
        kinds = self._kinds(conditions, left, right)
        for one in conditions:
            sql, names = None, mentions(one)
            if not (exists_in(one) or is_volatile(one) or names & unsure) and (
                names <= left.possible | right.possible
            ):
                sides = {var: "l" if var in left.possible else "r" for var in names}
                sql = native.condition(one, self.dialect, sides, kinds)
            if sql is None:
                found.undecided.append(one)
            elif _is_exact(sql):
                found.met.append(f"({sql.sql})")
                found.not_excluded.append(f"({sql.sql})")
            else:
                found.undecided.append(one)
                found.met.append(f"({sql.decided} AND {sql.sql})")
                found.not_excluded.append(f"(NOT coalesce({sql.decided}, FALSE) OR ({sql.sql}))")
        return found

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
        pairs = self._pairs(left, right.distinct(), overlapping=counting)
        return pairs.semi_join(keep=False)

    # --- conditions and expressions -------------------------------------------------------------------------------

    def _where(
        self,
        relation: SolutionBag,
        conditions: Sequence[Expression],
        kinds: native.Kinds = MappingProxyType({}),
    ) -> SolutionBag:
        """Returns the solutions for which all conditions are true: the native filters first."""
        plain = [one for one in conditions if not exists_in(one)]
        natives = {
            one: None if is_volatile(one) else native.condition(one, self.dialect, kinds=kinds)
            for one in plain
        }
        for one in sorted(plain, key=lambda one: not _is_exact(natives[one])):
            relation = self._judged(relation, one, natives[one], kinds)
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

    def _judged(
        self,
        relation: SolutionBag,
        condition: Expression,
        sql: native.Native | None,
        kinds: native.Kinds = MappingProxyType({}),
    ) -> SolutionBag:
        """Returns the solutions for which a condition is true; those that SQL decides need no stage."""
        if sql is None and _is_constant(condition):
            (holds,) = expressions.truths(condition, (), [()])
            return relation.where("TRUE" if holds else "FALSE")
        wide = relation.with_columns_of(mentions(condition), self.dialect)
        if sql is None:
            found, truth = self._evaluated(wide, wide.source, condition, "boolean"), "t.value"
        else:
            wide = self._with_comparands(wide, native.comparands([condition]), kinds)
            if _is_exact(sql):
                wide = wide.where(sql.sql)
                return wide.without(wide.possible - relation.possible)
            verdict = f"CASE WHEN {sql.decided} THEN coalesce({sql.sql}, FALSE) END"
            judged = wide.selected(["t.*", f"{self.dialect.once(verdict)} AS verdict"])
            rows = f"(SELECT * FROM ({judged}) AS t WHERE coalesce(t.verdict, TRUE))"
            found = self._evaluated(wide, rows, condition, "boolean", "t.verdict IS NULL")
            truth = "coalesce(t.verdict, t.value)"
        kept = ", ".join(f"t.{name}" for name in relation.columns) or "1 AS one"
        text = f"SELECT {kept} FROM {found} AS t WHERE {truth}"
        return relation.made(text, stable=relation.stable and not is_volatile(condition))

    def _extend(self, relation: SolutionBag, variable: Var, expression: Expression) -> SolutionBag:
        marked, value = self._with_marks(relation, expression)
        if isinstance(value, Constant):
            found = marked.bind(variable, self.dialect.text(value.term), certain=True)
        elif isinstance(value, Var):
            name = column(value) if value in marked.possible else self.dialect.null
            found = marked.bind(variable, name, certain=value in marked.certain)
        else:
            wide, source, term = self._term(marked, value)
            names = ", ".join([*(f"t.{name}" for name in wide.columns), f"{term} AS value"])
            text = f"SELECT * FROM (SELECT {names} FROM {source} AS t) AS t"
            wide = wide.made(text, stable=wide.stable and not is_volatile(value))
            found = wide.bind(variable, self.dialect.once("value"))
        return found.without(found.possible - relation.possible - {variable})

    def _extended(self, relation: SolutionBag, value: Expression) -> tuple[SolutionBag, Var]:
        """Adds a hidden variable with a value."""
        variable = self._fresh("v")
        return self._extend(relation, variable, value), variable

    def _term(self, relation: SolutionBag, value: Expression) -> tuple[SolutionBag, str, str]:
        """Returns the solutions, the source to read them from as `t`, and there the term of an expression, in SQL."""
        sql = None if is_volatile(value) else native.term(value, self.dialect)
        if sql is None and _is_constant(value):
            (term,) = expressions.terms(value, (), [()])
            known = self.dialect.null if term is None else self.dialect.text(term)
            return relation, relation.source, known
        wide = relation.with_columns_of(mentions(value), self.dialect)
        if sql is None:
            return wide, self._evaluated(wide, wide.source, value, "string"), "t.value"
        if _is_exact(sql):
            return wide, wide.source, sql.sql
        wide = self._with_comparands(wide, native.comparands([value]))
        undecided = f"NOT coalesce({sql.decided}, FALSE)"
        source = self._evaluated(wide, wide.source, value, "string", undecided)
        return wide, source, f"CASE WHEN {sql.decided} THEN {sql.sql} ELSE t.value END"

    def _evaluated(
        self, relation: SolutionBag, rows: str, expression: Expression, kind: str, where: str = ""
    ) -> str:
        """Adds the column `value` to rows of some solutions: of an expression, for its distinct inputs."""
        inputs = sorted(mentions(expression))
        evaluate = expressions.truths if kind == "boolean" else expressions.terms
        return self.engine.evaluated(
            rows,
            list(map(column, inputs)),
            partial(evaluate, expression, [one.name for one in inputs]),
            kind,
            where=where,
            light=relation.light,
            volatile=is_volatile(expression),  # each solution has a value of its own
        )

    def _number(self, relation: SolutionBag, variable: Var) -> SolutionBag:
        # the variable's name distinguishes the numbers of two nodes
        name = f"{self.labels.prefix}{variable.name.removeprefix('.')}x"
        number = f"concat({self.dialect.text(name)}, {self.dialect.number})"
        return replace(relation.bind(variable, number, certain=True), stable=False)

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
            key = self._fresh("k")
            keyed = self._table(relation.with_key_of(relation.possible, key, self.dialect))
            found = self._exists(keyed, exists.pattern, keep=True)
            key_name = column(key)
            there = f"(SELECT DISTINCT {key_name} AS there FROM {found.source} AS t)"
            true, false = map(self.dialect.text, (_TRUE, _FALSE))
            value = f"CASE WHEN r.there IS NULL THEN {false} ELSE {true} END AS {column(marked)}"
            names = ", ".join([*(f"l.{name}" for name in relation.columns), value])
            sql = f"SELECT {names} FROM {keyed.source} AS l LEFT JOIN {there} AS r ON l.{key_name} = r.there"
            bound = frozenset({marked})
            relation = relation.made(
                sql,
                possible=relation.possible | bound,
                certain=relation.certain | bound,
                stable=found.stable,
            )
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
                if rest and shared <= relation.certain and not any(map(exists_in, rest)):
                    left, starts = self._starts(relation, pattern)
                    right = self._where(self._without_outer()._unordered(pattern, starts), own)
                    return self._exists_pair(left, right, rest, keep=keep)
        if correlated_variables(body) & relation.possible:
            return self._exists_for_each(relation, body, keep=keep)
        left, starts = self._starts(relation, body)
        right = self._without_outer()._unordered(body, starts).only(relation.possible)
        if right.possible & left.possible <= left.certain & right.certain:
            return semi_join(left, right, keep=keep)
        return self._pairs(left, right.distinct()).semi_join(keep=keep)

    def _exists_pair(
        self, left: SolutionBag, right: SolutionBag, conditions: Sequence[Expression], *, keep: bool
    ) -> SolutionBag:
        """Returns the left solutions with a partner that meets all conditions, or (not `keep`) without.

        Both sides bind all that they share. Pairs that SQL does not decide are read only of solutions that have none
        for which it is true.
        """
        left, right, keyed, hidden = self._with_keys(left, right, conditions)
        across = self._across(keyed, left, right)
        if not across.undecided:
            only = semi_join(left, right, keep=keep, condition=across.met)
            return only.without(hidden)
        needed = hidden.union(left.possible & right.possible, *map(mentions, keyed))
        rest, right, settled = left, right.only(needed), None
        if len(across.met) == len(keyed):  # SQL decides each for some pairs
            right = self._table(right)
            if keep:
                rest = left = self._table(left)
                settled = semi_join(left, right, keep=True, condition=across.met)
            rest = semi_join(left, right, keep=False, condition=across.met)
        found = self._pairs(rest, right.distinct(), keyed)
        unsettled = found.semi_join(keep=keep).without(hidden)
        return union(settled.without(hidden), unsettled, self.dialect) if settled else unsettled

    def _exists_for_each(self, relation: SolutionBag, body: Node, *, keep: bool) -> SolutionBag:
        """Evaluates a body for the distinct bindings of the variables that it needs."""
        variables = (body.possible | correlated_variables(body)) & relation.possible
        key = self._fresh("t")
        left = self._table(self._table(relation).with_key_of(variables, key, self.dialect))
        bindings = self._table(left.only(variables | {key}).distinct())
        outer = BodyBindings(bindings, key)
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
        made = {name: name for name in names}
        rests: dict[str, Aggregation] = {}
        for variable, one in node.aggregates:
            found = native.aggregate(one, *arguments[variable], visible, self.dialect)
            name = column(variable)
            made[name] = found.sql
            if found.rest is not None:
                made[f"rest_{name}"] = found.rest
                rests[name] = one
        values = [f"{sql} AS {name}" for name, sql in made.items()]
        sql = relation.selected(values or ["count(*) AS one"])
        sql += f" GROUP BY {', '.join(names)}" if names else ""
        for name, one in rests.items():
            del made[f"rest_{name}"]
            sql = self._with_rest(sql, list(made), name, one)
        bound = keys | {variable for variable, _ in node.aggregates}
        counts = frozenset(variable for variable, one in node.aggregates if one.name == "COUNT")
        return SolutionBag(sql, bound, (keys & relation.certain) | counts, stable=relation.stable)

    def _with_rest(self, sql: str, kept: Sequence[str], name: str, one: Aggregation) -> str:
        """Returns groups with an aggregate of all terms, also of those that its native value leaves out."""
        line_feed = self.dialect.text("\n")
        lines = f"concat_ws({line_feed}, rest_{name}, ('1 ' || {name}))"
        terms = f"CASE WHEN rest_{name} IS NOT NULL THEN {lines} END AS terms_{name}"
        evaluate = partial(expressions.aggregates, one.name, one.separator)
        source = self.engine.evaluated(
            f"(SELECT t.*, {terms} FROM ({sql}) AS t)",
            [f"terms_{name}"],
            evaluate,
            "string",
            where=f"t.terms_{name} IS NOT NULL",
            volatile=True,
        )
        value = f"CASE WHEN t.terms_{name} IS NULL THEN t.{name} ELSE t.value END AS {name}"
        names = ", ".join(value if other == name else f"t.{other}" for other in kept)
        return f"SELECT {names} FROM {source} AS t"

    # --- sequences ------------------------------------------------------------------------------------------------

    def _project(self, pattern: Node, kept: Vars, known: tuple[SolutionBag, ...]) -> SolutionBag:
        inside = self
        if self.outer:
            # variables that are not projected differ from those of the same name outside
            kept |= {self.outer.key}
            solutions = self.outer.solutions.only(kept)
            inside = replace(self, outer=replace(self.outer, solutions=solutions))
        found = inside.solutions(pattern, tuple(one.only(kept) for one in known))
        return found.without(found.possible - kept)

    def _order(
        self, relation: SolutionBag, conditions: tuple[tuple[Expression, bool], ...]
    ) -> SolutionBag:
        possible, order = relation.possible, []
        for expression, descending in conditions:
            key = self._fresh("o")
            relation = self._extend(relation, key, Call("ORDERKEY", (expression,)))
            order.append((column(key), descending))
        kept = replace(relation, possible=possible, certain=relation.certain & possible)
        return replace(kept, order=tuple(order))

    def _slice(self, node: Slice) -> SolutionBag:
        relation = self.solutions(node.pattern)
        within = frozenset(node.within) & relation.possible
        within |= {self.outer.key} if self.outer else NOTHING
        return relation.slice(node.offset, node.limit, within)


def _unsure(left: SolutionBag, right: SolutionBag) -> Vars:
    """Returns the shared variables that one of the sides may leave unbound."""
    return (left.possible & right.possible) - (left.certain & right.certain)


@dataclass
class _Across:
    """Conditions on both sides of a join, as SQL over `l` and `r`."""

    met: list[str] = field(default_factory=list)  # all are true for a pair only if SQL decides so
    not_excluded: list[str] = field(default_factory=list)  # true also where SQL does not decide
    undecided: list[Expression] = field(default_factory=list)  # that need a stage, too


def _is_exact(sql: native.Native | None) -> bool:
    """Whether SQL decides a condition for all terms."""
    return sql is not None and sql.decided == native.ALWAYS


def _is_constant(expression: Expression) -> bool:
    return not mentions(expression) and not is_volatile(expression)

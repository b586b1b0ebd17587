"""Evaluation of a plan: each node of the algebra as an operation on DataFrames. SPARQL 1.1 Query, section 18.6.

Expressions become SQL in `expressions`, solutions are joined in `joins`, triples matched in `scans` and `paths`.
Nothing is collected here, and no Python runs on solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from typing import Final, assert_never
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.calls import (
    conjunction,
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
    Dataset,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    Leaf,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Plan,
    Project,
    Scan,
    Slice,
    Star,
    Triple,
    Unary,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
    Vars,
    contains_path,
    correlated_variables,
    join_order,
    mentions,
    variables,
)
from construct_messages.query.optimizer.push_down import links
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import XSD, Term, boolean
from construct_messages.spark.frames.joins import (
    binds_shared,
    compatible_pairs,
    join,
    left_join,
    mark_join,
    minus,
    semi_join,
    union,
)
from construct_messages.spark.frames.paths import path, require_ends
from construct_messages.spark.frames.scans import named_graphs, needed_quads, scan, star
from construct_messages.spark.frames.solutions import Solutions, names, null
from construct_messages.spark.quads.table import COLUMNS, QuadTable
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.values import ERROR, column, literal, out_of_range_unbound

# --- leaves: SPARQL 1.1 Query, sections 10.2.2 (VALUES), 13.3 (GRAPH), 18.3.1 (triple patterns) --------


def unit(table: QuadTable) -> Solutions:
    """Returns one solution that binds nothing."""
    return Solutions(table.frame.sparkSession.range(1).select(), frozenset(), frozenset())


def graphs(graph: VarOrTerm, table: QuadTable, dataset: Dataset) -> Solutions:
    """Returns the names of named graphs as a variable; for a term one empty solution if it is such a name, or none."""
    names = named_graphs(table, dataset)
    if isinstance(graph, Var):
        bound = frozenset({graph})
        return Solutions(names.withColumnRenamed("graph", column(graph)), bound, bound)
    return Solutions(
        names.filter(F.col("graph") == F.lit(graph)).limit(1).select(), frozenset(), frozenset()
    )


def values(node: Values, table: QuadTable) -> Solutions:
    """Inline data, as an inline table, whose size Spark's optimizer knows."""
    session = table.frame.sparkSession
    if not node.solutions:
        frame = session.range(0).select(*map(null, node.variables))
    elif not node.variables:
        frame = session.range(len(node.solutions)).select()
    else:
        solutions = ", ".join(
            f"({', '.join(map(_literal_or_null, solution))})" for solution in node.solutions
        )
        columns = ", ".join(map(column, node.variables))
        frame = session.sql(f"SELECT * FROM VALUES {solutions} AS t({columns})")
    return Solutions(frame, node.possible, node.certain)


def _literal_or_null(term: Term | None) -> str:
    return ERROR.sql if term is None else literal(term)


# --- checks ---------------------------------------------------------------------------------------
# Evaluation would refuse an unsupported function, and a path that starts at every node, after it has run jobs. So all
# expressions are compiled and all paths checked before.


def check(plan: Plan, *, allow_full_closure: bool = False) -> None:
    """Raises `UnsupportedQuery` for a function that is not supported, and for a path neither end of which is bound."""
    _check_expressions(plan.pattern)
    if not allow_full_closure:
        _check_paths(plan.pattern, NOTHING, NOTHING)


def _check_expressions(node: Node) -> None:
    for expression in node.expressions:
        expressions.term(replace_exists(expression, lambda _: Var(".e")))
        for exists in exists_in(expression):
            _check_expressions(exists.pattern)
    if isinstance(node, Group):
        for _, aggregation in node.aggregates:
            if aggregation.argument is None or not exists_in(aggregation.argument):
                expressions.aggregate(aggregation)
    for child in node.children:
        _check_expressions(child)


def _check_paths(node: Node, known: Vars, outer: Vars) -> None:
    """Checks that each path has a bound end to begin from, in the order of evaluation.

    The other operands of a join bind `known`. In a body of EXISTS, `outer` are the variables that are bound outside.
    """
    inside = (known | outer).union(*(child.certain for child in node.children))
    for expression in node.expressions:
        for exists in exists_in(expression):
            _check_paths(exists.pattern, NOTHING, inside)
    match node:
        case Path():
            require_ends(node, known | outer)
        case Leaf():
            pass
        case Join():
            for operand in join_order(node, known | outer):
                _check_paths(operand, known, outer)
                known |= operand.certain
        case Union(left, right):
            _check_paths(left, known, outer)
            _check_paths(right, known, outer)
        case LeftJoin(left, right) | Minus(left, right):
            _check_paths(left, known, outer)
            _check_paths(right, left.certain, outer)
        case Project(pattern, kept):
            _check_paths(pattern, known & frozenset(kept), outer & frozenset(kept))
        case Group(pattern) | OrderBy(pattern) | Slice(pattern):
            _check_paths(pattern, NOTHING, outer)
        case Unary(pattern):
            _check_paths(pattern, known, outer)
        case other:
            assert_never(other)


# --- EXISTS ---------------------------------------------------------------------------------------

_TRUE: Final = boolean("true")
_FALSE: Final = boolean("false")


@dataclass(frozen=True)
class OuterBindings:
    """The bindings for which a correlated body of EXISTS is evaluated, all at once.

    The solutions are distinct; the variable `key` tells them apart, and all solutions of the body bind it.
    """

    solutions: Solutions
    key: Var
    variables: Vars


def path_starts(left: Solutions, right: Node) -> tuple[Solutions, tuple[Solutions, ...]]:
    """Returns the left side of a join, and the solutions from which paths on the right side may begin.

    These are the left side, which is then read twice and so is materialized, or none if there are no paths.
    """
    if not contains_path(right):
        return left, ()
    left = left.materialize()
    return left, (left,)


def is_join_condition(condition: Expression) -> bool:
    return not exists_in(condition) and not is_volatile(condition)


def _is_uncorrelated(solutions: Solutions, body: Node) -> bool:
    shared = body.possible & solutions.possible
    return not correlated_variables(body) & solutions.possible and shared <= body.certain


# --- shared scan ----------------------------------------------------------------------------------
# Text is parsed and checked each time that it is read, which takes longer than the rest of the evaluation. So patterns
# that the optimizer chooses share one scan, shuffled by subject, and select their quads from its result.


def shared_scan(scans: Iterable[Scan], table: QuadTable, dataset: Dataset) -> QuadTable:
    """Returns the quads that any of the patterns needs, with all quads of a subject in one partition."""
    quads = needed_quads(scans, table, dataset).frame.repartition("subject")
    # Spark would push the filters and columns of each pattern below the shuffle, and so read and shuffle the quads once
    # for each pattern, if that did not change an observed figure: this is the only purpose of the figure.
    # It is of all columns, as each pattern may need others; and two figures of a query must have different names.
    # Spark would count without reading columns that are never NULL.
    *others, last = COLUMNS
    count = F.expr(f"count({', '.join(others)}, nullif({last}, ''))")
    return replace(table, frame=quads.observe(f"shared scan {uuid4()}", count.alias("quads")))


# --- groups: SPARQL 1.1 Query, section 18.5.1 ---------------------------------------------------------

_INTEGER: Final = f'"^^<{XSD}integer>'
_NONDETERMINISTIC: Final = {"SUM", "AVG", "SAMPLE", "GROUP_CONCAT"}
"""Aggregates whose value depends on the order in which a group is read."""


def group(
    node: Group,
    solutions: Solutions,
    aggregates: Sequence[tuple[Var, Aggregation]],
    outer: OuterBindings | None,
    table: QuadTable,
) -> Solutions:
    """Returns a solution for each group, and for each of the outer bindings, if there are any.

    The solutions have columns for all keys and all aggregated variables.
    """
    keys = frozenset(node.keys)
    if outer:
        keys |= {outer.key}
    columns = [
        F.expr(_aggregate(one, node.pattern.possible)).alias(column(variable))
        for variable, one in aggregates
    ]
    deterministic = solutions.deterministic and not any(
        one.name in _NONDETERMINISTIC for _, one in aggregates
    )
    counts = frozenset(variable for variable, one in aggregates if one.name == "COUNT")
    bound = frozenset(variable for variable, _ in aggregates)

    def grouped(keys: Vars, frame: DataFrame) -> Solutions:
        if columns:
            frame = frame.groupBy(*names(keys)).agg(*columns)
        elif keys:
            frame = frame.select(*names(keys)).distinct()
        else:
            frame = unit(table).frame
        return Solutions(frame, keys | bound, (keys & solutions.certain) | counts, deterministic)

    groups = grouped(keys, solutions.frame)
    if outer and not node.keys:
        # an empty group for each outer binding without solutions
        empty = grouped(NOTHING, solutions.frame.limit(0))
        groups = groups.materialize()
        rest = semi_join(outer.solutions.only(frozenset({outer.key})), groups, keep=False)
        groups = union(groups, join(rest, empty))
    return groups


def _aggregate(aggregation: Aggregation, inside: Vars) -> str:
    """Returns the SQL of an aggregate, also of `COUNT(DISTINCT *)`, which needs the columns of the pattern inside."""
    if aggregation.argument is not None or not aggregation.distinct:
        return expressions.aggregate(aggregation)
    solution = names(variable for variable in inside if not variable.hidden)
    counted = f"COUNT(DISTINCT STRUCT({', '.join(solution)}))" if solution else "LEAST(COUNT(*), 1)"
    return f"CONCAT('\"', CAST({counted} AS STRING), {literal(_INTEGER)})"


# --- evaluation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvaluationOptions:
    """Limits of evaluation, see `construct.construct_messages`.

    The prefix of `labels` begins the labels of the blank nodes that BNODE makes: a table holds no such label.
    """

    max_path_rounds: int = 1000
    allow_full_closure: bool = False
    labels: Labels = field(default_factory=Labels)
    out_of_range_unbound: bool = False


def evaluate(plan: Plan, table: QuadTable, options: EvaluationOptions | None = None) -> DataFrame:
    """Returns a string column for each of the plan's variables, named by `values.column`; NULL is unbound.

    For ASK: no columns, and one row if the answer is true.
    """
    options = options or EvaluationOptions()
    check(plan, allow_full_closure=options.allow_full_closure)
    with out_of_range_unbound(options.out_of_range_unbound):
        scanned = shared_scan(plan.shared_scan, table, plan.dataset) if plan.shared_scan else table
        evaluation = _PlanEvaluation(
            table, {scan.pattern: scanned for scan in plan.shared_scan}, plan.dataset, options
        )
        solutions = evaluation.solutions(_without_projection(plan))
    if plan.form == "ASK":
        return solutions.frame.limit(1).select()
    return solutions.in_order().select(
        *(_column_or_null(Var(name), solutions) for name in plan.variables)
    )


def _without_projection(plan: Plan) -> Node:
    """Returns the pattern without a projection at its top that selecting the plan's variables makes redundant."""
    match plan.pattern:
        case Project(pattern, kept) if set(map(Var, plan.variables)) <= set(kept):
            return pattern
    return plan.pattern


@dataclass(frozen=True)
class _PlanEvaluation:
    """The evaluation of one query, or of a body of EXISTS for outer bindings.

    The first leaf of each operand is joined with the outer bindings, and so is every leaf of operands that need them.
    Thus conditions at any depth see the bindings, and groups, slices and MINUS are evaluated for each of them.
    """

    table: QuadTable
    shared_scan: Mapping[Triple, QuadTable]
    dataset: Dataset
    options: EvaluationOptions
    outer: OuterBindings | None = None
    numbers: Iterator[int] = field(default_factory=count)  # for names that are unique in the query

    def solutions(self, node: Node, known: tuple[Solutions, ...] = ()) -> Solutions:
        """Returns the solutions of a node, which the caller joins with the known relations.

        Paths may begin from these: solutions that are compatible with none of theirs may be missing.
        """
        match node:
            case Unit():
                return self._with_outer(unit(self.table))
            case Bgp(patterns):
                return reduce(join, [*self._outer_solutions(), *map(self._triples, patterns)])
            case Star():
                frame = star(node, self._quads(node.patterns[0]), self.dataset)
                return self._with_outer(Solutions(frame, node.possible, node.certain))
            case Path():
                return self._path(node, known)
            case Graphs(graph):
                return self._with_outer(graphs(graph, self.table, self.dataset))
            case Values():
                return self._with_outer(values(node, self.table))
            case Join():
                return self._join(node, known)
            case Filter():
                return self._filter(node, known)
            case LeftJoin(left, right, condition):
                return self._left_join(self._unordered(left, known), right, condition)
            case Union(left, right):
                return union(self._unordered(left, known), self._unordered(right, known))
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
            case other:
                assert_never(other)

    def _unordered(self, node: Node, known: tuple[Solutions, ...] = ()) -> Solutions:
        return self.solutions(node, known).unordered()

    def _fresh(self, letter: str) -> Var:
        return Var(f".{letter}{next(self.numbers)}")

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _outer_solutions(self) -> tuple[Solutions, ...]:
        return (self.outer.solutions,) if self.outer else ()

    def _triples(self, pattern: Triple) -> Solutions:
        bound = pattern.variables
        return Solutions(scan(pattern, self._quads(pattern), self.dataset), bound, bound)

    def _quads(self, pattern: Triple) -> QuadTable:
        return self.shared_scan.get(pattern, self.table)

    def _with_outer(self, solutions: Solutions) -> Solutions:
        return join(self.outer.solutions, solutions.unordered()) if self.outer else solutions

    def _path(self, node: Path, known: tuple[Solutions, ...]) -> Solutions:
        """Evaluates a path from the values of one end, taken from the solutions that it is joined with."""
        seeds = None
        for relation in (*known, *self._outer_solutions()):
            if ends := variables((node.subject, node.object)) & relation.certain:
                seeds = relation.frame.select(
                    *names(ends | (variables((node.graph,)) & relation.certain))
                ).distinct()
                break
        frame = path(
            node,
            self.table,
            self.dataset,
            seeds=seeds,
            max_rounds=self.options.max_path_rounds,
            allow_full_closure=self.options.allow_full_closure,
        )
        return self._with_outer(Solutions(frame, node.possible, node.certain))

    # --- joins ----------------------------------------------------------------------------------------------------

    def _filter(self, node: Filter, known: tuple[Solutions, ...]) -> Solutions:
        """Returns the solutions that meet the condition of this filter and of the filters directly below it."""
        pattern, conditions = filtered(node)
        if isinstance(pattern, Join):
            return self._where(self._join(pattern, known, conditions), conditions)
        return self._where(self.solutions(pattern, known), conditions)

    def _join(
        self, node: Join, known: tuple[Solutions, ...], conditions: tuple[Expression, ...] = ()
    ) -> Solutions:
        """Returns the joined solutions; Spark pushes the conditions, which the caller applies, down to the joins."""
        bound = NOTHING.union(
            *(relation.certain for relation in (*known, *self._outer_solutions()))
        )
        first, *others = join_order(node, bound, links(conditions))
        solutions = self._unordered(first, known)
        for other in others:
            if contains_path(other):
                # Spark does not push filters below a frame that was materialized for the path
                own = tuple(
                    one
                    for one in conditions
                    if is_join_condition(one) and mentions(one) <= solutions.certain
                )
                solutions = self._where(solutions, own)
            solutions = join(*self._right(solutions, other, known))
        return solutions

    def _right(
        self, left: Solutions, node: Node, known: tuple[Solutions, ...] = ()
    ) -> tuple[Solutions, Solutions]:
        """Returns the left side of a join, materialized if it is read twice, and the solutions of its right side."""
        left, starts = path_starts(left, node)
        # it needs the outer bindings only if it is correlated with them, or if paths begin from them
        outer = self.outer and (
            correlated_variables(node) & self.outer.variables or contains_path(node)
        )
        return left, (self if outer else self._without_outer())._unordered(node, (*starts, *known))

    def _left_join(
        self, left: Solutions, right_node: Node, condition: Expression | None
    ) -> Solutions:
        left, right = self._right(left, right_node)
        conditions = () if condition is None else conjuncts(condition)
        # conditions on the right side alone only narrow it
        own = tuple(one for one in conditions if mentions(one) & left.possible <= right.certain)
        if own:
            right = self._where(right, own)
        rest = conjunction(one for one in conditions if one not in own)
        unsure = (left.possible & right.possible) - left.certain
        if binds_shared(left, right):
            if rest is None:
                return left_join(left, right)
            if is_join_condition(rest) and not mentions(rest) & unsure:
                wide = left.with_columns_of(mentions(rest) - right.possible)
                return left_join(wide, right, expressions.condition(rest)).without(
                    wide.possible - left.possible
                )
        pairs = compatible_pairs(left, right, self._fresh("t"))
        if rest is not None:
            marked, value = self._with_marks(pairs.solutions, rest)
            marked = replace(marked, deterministic=marked.deterministic and not is_volatile(rest))
            pairs = replace(pairs, solutions=marked).where(expressions.condition(value))
        return pairs.left_join().only(left.possible | right.possible)

    def _minus(self, node: Minus, left: Solutions) -> Solutions:
        left, right = self._right(left, node.right)
        within = node.within
        if self.outer:
            # outer bindings do not count as variables that both sides share
            own = node.left.possible & node.right.possible
            within = within | {self.outer.key} | (self.outer.variables - own)
        return minus(left, right, within, self._fresh("t"))

    # --- conditions and expressions -------------------------------------------------------------------------------

    def _without_outer(self) -> _PlanEvaluation:
        return replace(self, outer=None) if self.outer else self

    def _extend(self, solutions: Solutions, variable: Var, expression: Expression) -> Solutions:
        marked, value = self._with_marks(solutions, expression)
        certain = isinstance(value, Constant) or (
            isinstance(value, Var) and value in marked.certain
        )
        sql = expressions.term(value)
        if not isinstance(value, Var | Constant):
            # Spark would move filters below this and copy the SQL to each place that names the variable, nesting it
            # without limit; it moves nothing below an expression that depends on the partition
            sql = f"if(spark_partition_id() < 0, NULL, {sql})"
        extended = marked.bind(variable, F.expr(sql), certain)
        extended = extended.without(marked.possible - solutions.possible - {variable})
        return replace(extended, deterministic=extended.deterministic and not is_volatile(value))

    def _number(self, solutions: Solutions, variable: Var) -> Solutions:
        # the variable's name distinguishes the numbers of two nodes
        name = f"{self.options.labels.prefix}{variable.name.removeprefix('.')}x"
        number = F.concat(F.lit(name), F.monotonically_increasing_id().cast("string"))
        numbered = solutions.bind(variable, number, certain=True)
        return replace(numbered, deterministic=False)

    # --- EXISTS ---------------------------------------------------------------------------------------------------
    # SPARQL 1.1 Query, section 18.6, substitutes each solution into the body. Here a body is evaluated once and joined
    # on the shared variables, as a semi-join, if `correlation` shows that the result is the same; any other is
    # evaluated once for all distinct bindings of the variables that it needs.

    def _where(self, solutions: Solutions, conditions: tuple[Expression, ...]) -> Solutions:
        """Returns the solutions for which all conditions are true."""
        plain = conjunction(one for one in conditions if not exists_in(one))
        if plain is not None:
            wide = solutions.with_columns_of(mentions(plain))
            wide = replace(wide, frame=wide.frame.filter(expressions.condition(plain)))
            deterministic = solutions.deterministic and not is_volatile(plain)
            solutions = replace(
                wide.without(wide.possible - solutions.possible), deterministic=deterministic
            )
        for one in conditions:
            match one:
                case Exists(body):
                    solutions = self._exists(solutions, body, keep=True)
                case Call("!", (Exists(body),)):
                    solutions = self._exists(solutions, body, keep=False)
                case _ if exists_in(one):
                    marked, condition = self._with_marks(solutions, one)
                    solutions = self._where(marked, (condition,)).without(
                        marked.possible - solutions.possible
                    )
        return solutions

    def _with_marks(
        self, solutions: Solutions, expression: Expression
    ) -> tuple[Solutions, Expression]:
        """Returns the solutions with a boolean for each EXISTS in an expression, and the expression over these.

        The solutions have a column for each variable of the expression.
        """
        variables: dict[Exists, Var] = {}
        for exists in dict.fromkeys(exists_in(expression)):
            variables[exists] = marked = self._fresh("e")
            left, right = self._partners(solutions, exists.pattern, keys=True)
            keys = left.possible - solutions.possible
            solutions = mark_join(left, right, marked, _TRUE, _FALSE).without(keys)
        value = replace_exists(expression, variables.__getitem__)
        return solutions.with_columns_of(mentions(value)), value

    def _exists(self, solutions: Solutions, body: Node, keep: bool) -> Solutions:
        """Returns the solutions for which the body has a solution; if not `keep`, those for which it has none."""
        match body:
            case Filter(pattern, condition) if _is_uncorrelated(solutions, pattern):
                conditions = conjuncts(condition)
                own = tuple(
                    one
                    for one in conditions
                    if mentions(one) & solutions.possible <= pattern.certain
                )
                across = conjunction(one for one in conditions if one not in own)
                if across is not None and is_join_condition(across):
                    shared = mentions(across) & pattern.possible & solutions.possible
                    if shared <= solutions.certain:
                        left, starts = path_starts(solutions, pattern)
                        right = self._where(self._without_outer()._unordered(pattern, starts), own)
                        wide = left.with_columns_of(mentions(across) - right.possible)
                        found = semi_join(wide, right, keep, expressions.condition(across))
                        return found.without(wide.possible - left.possible)
        if not correlated_variables(body) & solutions.possible and not _is_uncorrelated(
            solutions, body
        ):
            left, starts = path_starts(solutions, body)
            right = (
                self._without_outer()._unordered(body, starts).only(solutions.possible).distinct()
            )
            pairs = compatible_pairs(left, right, self._fresh("t"))
            return pairs.semi_join() if keep else pairs.anti_join()
        left, right = self._partners(solutions, body)
        return semi_join(left, right, keep).without(left.possible - solutions.possible)

    def _partners(
        self, solutions: Solutions, body: Node, keys: bool = False
    ) -> tuple[Solutions, Solutions]:
        """Returns two sides of a join: a left solution has a partner if the body has a solution for it.

        With `keys`, the two share a variable, and each binds all that they share.
        """
        shared = body.possible & solutions.possible
        if _is_uncorrelated(solutions, body) and (
            not keys or (shared and shared <= solutions.certain)
        ):
            left, starts = path_starts(solutions, body)
            return left, self._without_outer()._unordered(body, starts).only(shared)
        variables = (body.possible | correlated_variables(body)) & solutions.possible
        key = self._fresh("t")
        left = solutions.materialize().with_key(variables, key)
        bindings = left.only(variables | {key})
        outer = OuterBindings(replace(bindings, frame=bindings.frame.distinct()), key, variables)
        return left, replace(self, outer=outer)._unordered(body).only(frozenset({key}))

    # --- groups ---------------------------------------------------------------------------------------------------

    def _group(self, node: Group) -> Solutions:
        # Spark groups by no column otherwise than by one of NULL
        solutions = self._unordered(node.pattern).with_columns_of(frozenset(node.keys))
        aggregates = []
        for variable, aggregation in node.aggregates:
            argument = aggregation.argument
            if argument is not None and (exists_in(argument) or is_volatile(argument)):
                # Spark can aggregate neither
                value = self._fresh("a")
                solutions = self._extend(solutions, value, argument)
                aggregation = replace(aggregation, argument=value)
            aggregates.append((variable, aggregation))
            solutions = solutions.with_columns_of(mentions(aggregation.argument))
        return group(node, solutions, aggregates, self.outer, self.table)

    # --- sequences ------------------------------------------------------------------------------------------------

    def _project(self, pattern: Node, kept: Vars, known: tuple[Solutions, ...]) -> Solutions:
        inside = self
        if self.outer:
            # variables that are not projected differ from those of the same name outside
            bound, key = self.outer.variables & kept, self.outer.key
            inside = replace(
                self, outer=OuterBindings(self.outer.solutions.only(bound | {key}), key, bound)
            )
            kept |= {key}
        solutions = inside.solutions(pattern, tuple(relation.only(kept) for relation in known))
        return solutions.without(solutions.possible - kept)

    def _order(
        self, solutions: Solutions, conditions: tuple[tuple[Expression, bool], ...]
    ) -> Solutions:
        marked = solutions
        keys: list[tuple[str, bool]] = []
        for expression, descending in conditions:
            marked, value = self._with_marks(marked, expression)
            keys.append((expressions.order(value), descending))
        ordered = marked.order_by(keys, next(self.numbers)).without(
            marked.possible - solutions.possible
        )
        deterministic = solutions.deterministic and not any(
            is_volatile(expression) for expression, _ in conditions
        )
        return replace(ordered, deterministic=deterministic)

    def _slice(self, node: Slice) -> Solutions:
        solutions = self.solutions(node.pattern)
        within = frozenset(node.within) & solutions.possible
        return solutions.slice(
            node.offset, node.limit, within | {self.outer.key} if self.outer else within
        )


def _column_or_null(variable: Var, solutions: Solutions) -> Column:
    return F.col(column(variable)) if variable in solutions.possible else null(variable)

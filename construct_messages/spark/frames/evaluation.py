"""Evaluation of a plan: each node of the algebra as an operation on DataFrames. SPARQL 1.1 Query, section 18.6.

Expressions become SQL in `expressions`, conditions with EXISTS are evaluated in `exists`, solutions are joined in
`joins` and grouped in `groups`, triples matched in `scans`, `stars` and `paths`. Nothing is collected here, and no
Python runs on solutions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import count
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.correlation import correlated_variables, mentions
from construct_messages.query.algebra.expressions import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
)
from construct_messages.query.algebra.join_order import contains_path, join_order
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Constant,
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
    Project,
    Slice,
    Star,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    Vars,
    variables,
)
from construct_messages.query.algebra.plan import Dataset, Plan
from construct_messages.query.optimizer.equalities import links
from construct_messages.rdf.labels import Labels
from construct_messages.spark.frames.checks import check
from construct_messages.spark.frames.exists import (
    Conditions,
    OuterBindings,
    is_join_condition,
    path_starts,
)
from construct_messages.spark.frames.groups import group
from construct_messages.spark.frames.joins import (
    binds_shared,
    compatible_pairs,
    join,
    left_join,
    minus,
    union,
)
from construct_messages.spark.frames.leaf_nodes import graphs, triples, unit, values
from construct_messages.spark.frames.paths import path
from construct_messages.spark.frames.shared_scan import shared_scan
from construct_messages.spark.frames.solutions import Solutions, names, null
from construct_messages.spark.frames.stars import star
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.values import column, out_of_range_unbound


@dataclass(frozen=True)
class EvaluationOptions:
    """Limits of evaluation.

    Args:
        max_path_rounds: the longest path, in steps, that `*` and `+` follow; a longer one is an error.
        allow_full_closure: whether `*` and `+` may be computed between all nodes of the data, where neither end of
            the path is known.
        labels: their prefix begins the labels of the blank nodes that BNODE makes: a table holds no such label.
        out_of_range_unbound: whether a value that Spark cannot hold is an error of the query, and does not end the job.
    """

    max_path_rounds: int = 1000
    allow_full_closure: bool = False
    labels: Labels = field(default_factory=Labels)
    out_of_range_unbound: bool = False


def evaluate(plan: Plan, table: QuadTable, options: EvaluationOptions | None = None) -> DataFrame:
    """Evaluates a query.

    Args:
        plan: the result of `translate_query`, best after `optimize`.
        table: the quads.
        options: limits.

    Returns:
        a DataFrame with a string column for each of the plan's variables, named by `values.column`; NULL is unbound.
        For ASK a frame without columns, of one solution if the answer is true and none if it is false.

    Raises:
        UnsupportedQuery: a part of the query that is not supported; before any job runs.
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
    """Returns the pattern of a plan, without a projection at its top that selecting the plan's variables makes
    redundant.
    """
    match plan.pattern:
        case Project(pattern, kept) if set(map(Var, plan.variables)) <= set(kept):
            return pattern
    return plan.pattern


@dataclass(frozen=True)
class _PlanEvaluation:
    """The evaluation of one query, or of a body of EXISTS for outer bindings.

    Args:
        table: the quads.
        shared_scan: the quads of the patterns that are not matched in the table.
        dataset: the graphs of FROM and FROM NAMED.
        options: limits.
        outer: the first leaf of each operand is joined with these, and so is every leaf of operands that need them.
            Thus conditions at any depth see the bindings, and groups, slices and MINUS are evaluated for each of them.
        numbers: for names that are unique in the query.
    """

    table: QuadTable
    shared_scan: Mapping[Triple, QuadTable]
    dataset: Dataset
    options: EvaluationOptions
    outer: OuterBindings | None = None
    numbers: Iterator[int] = field(default_factory=count)

    def solutions(self, node: Node, known: tuple[Solutions, ...] = ()) -> Solutions:
        """Returns the solutions of a node.

        Args:
            node: the node.
            known: relations that the result is going to be joined with, from which a path may begin: solutions that
                are compatible with none of theirs may be missing.
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
        """Returns the solutions of a node in no order."""
        return self.solutions(node, known).unordered()

    @cached_property
    def _conditions(self) -> Conditions:
        return Conditions(
            self._without_outer()._unordered,
            lambda body, outer: replace(self, outer=outer)._unordered(body),
            self._fresh,
        )

    def _fresh(self, letter: str) -> Var:
        return Var(f".{letter}{next(self.numbers)}")

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _outer_solutions(self) -> tuple[Solutions, ...]:
        return (self.outer.solutions,) if self.outer else ()

    def _triples(self, pattern: Triple) -> Solutions:
        return triples(pattern, self._quads(pattern), self.dataset)

    def _quads(self, pattern: Triple) -> QuadTable:
        return self.shared_scan.get(pattern, self.table)

    def _with_outer(self, solutions: Solutions) -> Solutions:
        return join(self.outer.solutions, solutions.unordered()) if self.outer else solutions

    def _path(self, node: Path, known: tuple[Solutions, ...]) -> Solutions:
        """Evaluates a path from the values of a variable at one end, taken from the solutions that it
        is joined with.
        """
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
        pattern, conditions = node.pattern, conjuncts(node.condition)
        while isinstance(pattern, Filter):
            conditions = (*conjuncts(pattern.condition), *conditions)
            pattern = pattern.pattern
        if isinstance(pattern, Join):
            return self._conditions.filter(self._join(pattern, known, conditions), conditions)
        return self._conditions.filter(self.solutions(pattern, known), conditions)

    def _join(
        self, node: Join, known: tuple[Solutions, ...], conditions: tuple[Expression, ...] = ()
    ) -> Solutions:
        """Returns the solutions of both sides, merged.

        Args:
            node: the join.
            known: as for `solutions`.
            conditions: on the result; Spark pushes them down to the first join that has all their variables.
        """
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
                solutions = self._conditions.filter(solutions, own)
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
            right = self._conditions.filter(right, own)
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
            marked, value = self._conditions.with_marks(pairs.solutions, rest)
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
        marked, value = self._conditions.with_marks(solutions, expression)
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
            marked, value = self._conditions.with_marks(marked, expression)
            keys += ((key, descending) for key in expressions.order(value))
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

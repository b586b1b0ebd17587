"""The solutions of a plan: each node of the algebra as an operation on DataFrames.

SPARQL 1.1 Query, section 18.6. What SQL an expression is belongs to `expressions`, how solutions join to `joins`,
where triples match to `scans`, `stars` and `paths`. Nothing is collected here, and no Python runs on solutions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from typing import Final, assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from construct_messages.labels import Labels
from construct_messages.query.algebra.correlation import (
    NOTHING,
    arranged,
    conjunction,
    conjuncts,
    dependent,
    exists_in,
    holds_path,
    mentions,
    replaced,
    volatile,
)
from construct_messages.query.algebra.nodes import (
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
    Triple,
    Union,
    Unit,
    Values,
    Var,
    Vars,
    column,
    variables,
)
from construct_messages.query.optimizer.equalities import links
from construct_messages.spark.frames.checks import check
from construct_messages.spark.frames.gathering import gather
from construct_messages.spark.frames.joins import is_direct, join, left_join, mark, minus, paired, semi_join, union
from construct_messages.spark.frames.leaves import graphs, triples, unit, values
from construct_messages.spark.frames.paths import path
from construct_messages.spark.frames.solutions import Solutions, names, null
from construct_messages.spark.frames.stars import star
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.values import literal, out_of_range_unbound
from construct_messages.terms import XSD
from construct_messages.terms import literal as literal_term

_TRUE: Final = literal_term("true", datatype=f"{XSD}boolean")
_FALSE: Final = literal_term("false", datatype=f"{XSD}boolean")
_INTEGER: Final = f'"^^<{XSD}integer>'
_NONDETERMINISTIC: Final = {"SUM", "AVG", "SAMPLE", "GROUP_CONCAT"}
"""Aggregates whose value depends on the order in which a group is read."""


@dataclass(frozen=True)
class Options:
    """How far evaluation may go.

    Args:
        max_path_rounds: the longest path, in steps, that `*` and `+` follow; a longer one is an error.
        allow_full_closure: whether `*` and `+` may be computed between all nodes of the data, where neither end of
            the path is known.
        labels: those of the blank nodes that BNODE makes begin with their prefix: a table holds no such label.
        out_of_range_unbound: whether a value that the engine cannot hold is an error of the query, and no end of the
            job.
    """

    max_path_rounds: int = 1000
    allow_full_closure: bool = False
    labels: Labels = field(default_factory=Labels)
    out_of_range_unbound: bool = False


def evaluate(plan: Plan, table: QuadTable, options: Options | None = None) -> DataFrame:
    """The solutions of a query.

    Args:
        plan: what `plan.plan` made, best after `optimize.optimize`.
        table: the quads.
        options: limits, see `Options`.

    Returns:
        a DataFrame with a string column for each of the plan's variables, named by `algebra.column`; NULL is unbound.
        For ASK a frame without columns, of one solution if the answer is true and none if it is false.

    Raises:
        UnsupportedQuery: a part of the query that is not evaluated here; before any job runs.
    """
    options = options or Options()
    check(plan, allow_full_closure=options.allow_full_closure)
    with out_of_range_unbound(options.out_of_range_unbound):
        gathered = gather(plan.gathered, table, plan.dataset) if plan.gathered else table
        evaluation = _Evaluation(table, {demand.pattern: gathered for demand in plan.gathered}, plan.dataset, options)
        solutions = evaluation.solutions(plan.pattern)
    if plan.form == "ASK":
        return solutions.frame.limit(1).select()
    return solutions.in_order().select(*(_column_or_null(Var(name), solutions) for name in plan.variables))


@dataclass(frozen=True)
class _Seed:
    """The bindings that an EXISTS body is evaluated for, at once.

    Args:
        solutions: the distinct bindings, and `tag`.
        tag: what tells them apart, in all solutions of the body.
        bound: the variables they are of.
    """

    solutions: Solutions
    tag: Var
    bound: Vars


@dataclass(frozen=True)
class _Evaluation:
    """The evaluation of one query, or of one EXISTS body for a seed.

    Args:
        gathered: where patterns are not to be matched in the table.
        seed: with a seed, the first leaf of each part is joined with it, and every one of those that depend on it, so
            that conditions at any depth see its bindings, and all that counts, cuts or subtracts does so for each of
            its solutions apart.
        numbers: for names that nothing else of the query has.
    """

    table: QuadTable
    gathered: Mapping[Triple, QuadTable]
    dataset: Dataset
    options: Options
    seed: _Seed | None = None
    numbers: Iterator[int] = field(default_factory=count)

    def solutions(self, node: Node, known: tuple[Solutions, ...] = ()) -> Solutions:
        """The solutions of a node.

        Args:
            known: relations that the result is going to be joined with. Solutions that none of theirs is compatible
                with may be left out: where a path begins is taken from there.
        """
        match node:
            case Unit():
                return self._leaf(unit(self.table))
            case Bgp(patterns):
                return reduce(join, [*self._seeds(), *map(self._triples, patterns)])
            case Star():
                frame = star(node, self._quads(node.patterns[0]), self.dataset)
                return self._leaf(Solutions(frame, node.possible, node.certain))
            case Path():
                return self._path(node, known)
            case Graphs(graph):
                return self._leaf(graphs(graph, self.table, self.dataset))
            case Values():
                return self._leaf(values(node, self.table))
            case Join():
                return self._join(node, known)
            case Filter(Join() as pattern, condition):
                conditions = conjuncts(condition)
                return self._filter(self._join(pattern, known, conditions), conditions)
            case LeftJoin(left, right, condition):
                return self._left_join(self._bag(left, known), right, condition)
            case Union(left, right):
                return union(self._bag(left, known), self._bag(right, known))
            case Minus(left, right, within):
                return self._minus(node, self._bag(left, known), right, within)
            case Filter(pattern, condition):
                return self._filter(self.solutions(pattern, known), conjuncts(condition))
            case Extend(pattern, variable, expression):
                return self._extend(self.solutions(pattern, known), variable, expression)
            case Number(pattern, variable):
                return self._number(self.solutions(pattern, known), variable)
            case Group():
                return self._leaf(self._group(node))
            case Project(pattern, kept):
                return self._leaf(self._project(pattern, frozenset(kept), known))
            case Distinct(pattern):
                return self.solutions(pattern, known).distinct()
            case OrderBy(pattern, conditions):
                return self._order(self._bag(pattern), conditions)
            case Slice():
                return self._slice(node)
            case other:
                assert_never(other)

    def _bag(self, node: Node, known: tuple[Solutions, ...] = ()) -> Solutions:
        """The solutions in no order."""
        return self.solutions(node, known).unordered()

    def _new(self, letter: str) -> Var:
        return Var(f".{letter}{next(self.numbers)}")

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _seeds(self) -> tuple[Solutions, ...]:
        return (self.seed.solutions,) if self.seed else ()

    def _triples(self, pattern: Triple) -> Solutions:
        return triples(pattern, self._quads(pattern), self.dataset)

    def _quads(self, pattern: Triple) -> QuadTable:
        return self.gathered.get(pattern, self.table)

    def _leaf(self, solutions: Solutions) -> Solutions:
        return join(self.seed.solutions, solutions.unordered()) if self.seed else solutions

    def _path(self, node: Path, known: tuple[Solutions, ...]) -> Solutions:
        """A path, from where a bound end is known: the values of its variable in what it is to be joined with."""
        seeds = None
        for relation in (*known, *self._seeds()):
            if ends := variables((node.subject, node.object)) & relation.certain:
                seeds = relation.frame.select(*names(ends | (variables((node.graph,)) & relation.certain))).distinct()
                break
        frame = path(
            node,
            self.table,
            self.dataset,
            seeds=seeds,
            max_rounds=self.options.max_path_rounds,
            allow_full_closure=self.options.allow_full_closure,
        )
        return self._leaf(Solutions(frame, node.possible, node.certain))

    # --- joins ----------------------------------------------------------------------------------------------------

    def _join(self, node: Join, known: tuple[Solutions, ...], conditions: tuple[Expression, ...] = ()) -> Solutions:
        """The solutions of both sides, merged.

        Args:
            conditions: on the result. Spark moves them to the first join that has all that they read.
        """
        bound = NOTHING.union(*(relation.certain for relation in (*known, *self._seeds())))
        first, *others = arranged(node, bound, links(conditions))
        solutions = self._bag(first, known)
        for other in others:
            if holds_path(other):
                # what is deterministic for the path is beyond Spark's optimizer
                own = tuple(one for one in conditions if _is_sql(one) and mentions(one) <= solutions.certain)
                solutions = self._filter(solutions, own)
            solutions, more = self._joinable(solutions, other)
            solutions = join(solutions, self._beside(other)._bag(other, (*more, *known)))
        return solutions

    def _joinable(self, left: Solutions, right: Node) -> tuple[Solutions, tuple[Solutions, ...]]:
        """The left side of a join as it can be read for the paths of the right side, too."""
        if not holds_path(right):
            return left, ()
        left = left.make_deterministic()
        return left, (left,)

    def _left_join(self, left: Solutions, right_node: Node, condition: Expression | None) -> Solutions:
        left, known = self._joinable(left, right_node)
        right = self._beside(right_node)._bag(right_node, known)
        conditions = () if condition is None else conjuncts(condition)
        # what concerns the right side only narrows it
        own = tuple(one for one in conditions if mentions(one) & left.possible <= right.certain)
        if own:
            right = self._filter(right, own)
        rest = conjunction(tuple(one for one in conditions if one not in own))
        unsure = (left.possible & right.possible) - left.certain
        if is_direct(left, right):
            if rest is None:
                return left_join(left, right)
            if _is_sql(rest) and not mentions(rest) & unsure:
                wide = left.widened(mentions(rest) - right.possible)
                return left_join(wide, right, expressions.condition(rest)).without(wide.possible - left.possible)
        pairs = paired(left, right, self._new("t"))
        if rest is not None:
            marked, value = self._marked(pairs.solutions, rest)
            marked = replace(marked, deterministic=marked.deterministic and not volatile(rest))
            pairs = replace(pairs, solutions=marked).where(expressions.condition(value))
        return pairs.or_alone().only(left.possible | right.possible)

    def _minus(self, node: Minus, left: Solutions, right_node: Node, within: Vars) -> Solutions:
        left, known = self._joinable(left, right_node)
        right = self._beside(right_node)._bag(right_node, known)
        if self.seed:
            # what the seed brings to a side does not make it share variables with the other
            own = node.left.possible & node.right.possible
            within = within | {self.seed.tag} | (self.seed.bound - own)
        return minus(left, right, within, self._new("t"))

    # --- conditions and expressions -------------------------------------------------------------------------------

    def _filter(self, solutions: Solutions, conditions: tuple[Expression, ...]) -> Solutions:
        plain = conjunction(tuple(one for one in conditions if not exists_in(one)))
        if plain is not None:
            wide = solutions.widened(mentions(plain))
            wide = replace(wide, frame=wide.frame.filter(expressions.condition(plain)))
            deterministic = solutions.deterministic and not volatile(plain)
            solutions = replace(wide.without(wide.possible - solutions.possible), deterministic=deterministic)
        for one in conditions:
            match one:
                case Exists(body):
                    solutions = self._exists(solutions, body, keep=True)
                case Call("!", (Exists(body),)):
                    solutions = self._exists(solutions, body, keep=False)
                case _ if exists_in(one):
                    marked, condition = self._marked(solutions, one)
                    solutions = self._filter(marked, (condition,)).without(marked.possible - solutions.possible)
        return solutions

    def _exists(self, solutions: Solutions, body: Node, keep: bool) -> Solutions:
        """The solutions for which the body has a solution, or has none."""
        match body:
            case Filter(pattern, condition) if self._asks_alone(solutions, pattern):
                conditions = conjuncts(condition)
                own = tuple(one for one in conditions if mentions(one) & solutions.possible <= pattern.certain)
                across = conjunction(tuple(one for one in conditions if one not in own))
                if across is not None and _is_sql(across):
                    shared = mentions(across) & pattern.possible & solutions.possible
                    if shared <= solutions.certain:
                        left, known = self._joinable(solutions, pattern)
                        right = self._unseeded()._filter(self._unseeded()._bag(pattern, known), own)
                        wide = left.widened(mentions(across) - right.possible)
                        found = semi_join(wide, right, keep, expressions.condition(across))
                        return found.without(wide.possible - left.possible)
        if not dependent(body) & solutions.possible and not self._asks_alone(solutions, body):
            left, known = self._joinable(solutions, body)
            right = self._unseeded()._bag(body, known).only(solutions.possible).distinct()
            pairs = paired(left, right, self._new("t"))
            return pairs.met() if keep else pairs.alone()
        left, right = self._asked(solutions, body)
        return semi_join(left, right, keep).without(left.possible - solutions.possible)

    def _marked(self, solutions: Solutions, expression: Expression) -> tuple[Solutions, Expression]:
        """The expression with a variable for each EXISTS, and the solutions with a column for each variable in it."""
        variables: dict[Exists, Var] = {}
        for exists in dict.fromkeys(exists_in(expression)):
            variables[exists] = marked = self._new("e")
            left, right = self._asked(solutions, exists.pattern, keys=True)
            tags = left.possible - solutions.possible
            solutions = mark(left, right, marked, _TRUE, _FALSE).without(tags)
        value = replaced(expression, variables.__getitem__)
        return solutions.widened(mentions(value)), value

    def _asks_alone(self, solutions: Solutions, body: Node) -> bool:
        """Whether the body can be evaluated without the solutions, and joined with them directly."""
        dependencies = dependent(body) & solutions.possible
        return not dependencies and body.possible & solutions.possible <= body.certain

    def _asked(self, solutions: Solutions, body: Node, keys: bool = False) -> tuple[Solutions, Solutions]:
        """The solutions, and what they are compatible with if the body has a solution for them.

        Args:
            keys: whether the two must share a variable, and each bind all they share.
        """
        shared = body.possible & solutions.possible
        if self._asks_alone(solutions, body) and (not keys or (shared and shared <= solutions.certain)):
            left, known = self._joinable(solutions, body)
            return left, self._unseeded()._bag(body, known).only(shared)
        bound = (body.possible | dependent(body)) & solutions.possible
        tag = self._new("t")
        left = solutions.make_deterministic().identified(bound, tag)
        seeds = left.only(bound | {tag})
        seed = _Seed(replace(seeds, frame=seeds.frame.distinct()), tag, bound)
        return left, replace(self, seed=seed)._bag(body).only(frozenset({tag}))

    def _unseeded(self) -> _Evaluation:
        return replace(self, seed=None)

    def _beside(self, node: Node) -> _Evaluation:
        """The evaluation of what joins solutions that have the seed's bindings: it needs them where it depends on them.

        Paths begin there, too.
        """
        alone = self.seed and not dependent(node) & self.seed.bound and not holds_path(node)
        return self._unseeded() if alone else self

    def _extend(self, solutions: Solutions, variable: Var, expression: Expression) -> Solutions:
        marked, value = self._marked(solutions, expression)
        certain = isinstance(value, Constant) or (isinstance(value, Var) and value in marked.certain)
        sql = expressions.term(value)
        if not isinstance(value, Var | Constant):
            # Spark would move filters below this and copy the SQL to each place that names the variable, and SQL of
            # SQL without end; it moves nothing below what depends on the partition
            sql = f"if(spark_partition_id() < 0, NULL, {sql})"
        extended = marked.bind(variable, F.expr(sql), certain)
        extended = extended.without(marked.possible - solutions.possible - {variable})
        return replace(extended, deterministic=extended.deterministic and not volatile(value))

    def _number(self, solutions: Solutions, variable: Var) -> Solutions:
        # the name in front keeps the numbers of two nodes apart
        name = f"{self.options.labels.prefix}{variable.name.removeprefix('.')}x"
        number = F.concat(F.lit(name), F.monotonically_increasing_id().cast("string"))
        numbered = solutions.bind(variable, number, certain=True)
        return replace(numbered, deterministic=False)

    # --- groups ---------------------------------------------------------------------------------------------------

    def _group(self, node: Group) -> Solutions:
        solutions = self._bag(node.pattern).widened(frozenset(node.keys))  # Spark groups by none otherwise than by NULL
        inside = node.pattern.possible
        aggregates = []
        for variable, aggregation in node.aggregates:
            argument = aggregation.argument
            if argument is not None and (exists_in(argument) or volatile(argument)):
                # Spark aggregates neither
                value = self._new("a")
                solutions = self._extend(solutions, value, argument)
                aggregation = replace(aggregation, argument=value)
            aggregates.append((variable, aggregation))
            solutions = solutions.widened(mentions(aggregation.argument))
        keys = frozenset(node.keys)
        if self.seed:
            keys |= {self.seed.tag}
        columns = [F.expr(_aggregate(one, inside)).alias(column(variable)) for variable, one in aggregates]
        deterministic = solutions.deterministic and not any(one.name in _NONDETERMINISTIC for _, one in aggregates)
        counts = frozenset(variable for variable, one in aggregates if one.name == "COUNT")
        bound = frozenset(variable for variable, _ in aggregates)

        def grouped(keys: Vars, frame: DataFrame) -> Solutions:
            if columns:
                frame = frame.groupBy(*names(keys)).agg(*columns)
            elif keys:
                frame = frame.select(*names(keys)).distinct()
            else:
                frame = unit(self.table).frame
            return Solutions(frame, keys | bound, (keys & solutions.certain) | counts, deterministic)

        groups = grouped(keys, solutions.frame)
        if self.seed and not node.keys:
            # a group of no solution for each binding that has none
            empty = grouped(NOTHING, solutions.frame.limit(0))
            groups = groups.make_deterministic()
            rest = semi_join(self.seed.solutions.only(frozenset({self.seed.tag})), groups, keep=False)
            groups = union(groups, join(rest, empty))
        return groups

    # --- sequences ------------------------------------------------------------------------------------------------

    def _project(self, pattern: Node, kept: Vars, known: tuple[Solutions, ...]) -> Solutions:
        inside = self
        if self.seed:
            # variables that are not projected are others than those outside
            bound, tag = self.seed.bound & kept, self.seed.tag
            inside = replace(self, seed=_Seed(self.seed.solutions.only(bound | {tag}), tag, bound))
            kept |= {tag}
        solutions = inside.solutions(pattern, tuple(relation.only(kept) for relation in known))
        return solutions.without(solutions.possible - kept)

    def _order(self, solutions: Solutions, conditions: tuple[tuple[Expression, bool], ...]) -> Solutions:
        marked = solutions
        keys: list[tuple[str, bool]] = []
        for expression, descending in conditions:
            marked, value = self._marked(marked, expression)
            keys += ((key, descending) for key in expressions.order(value))
        ordered = marked.by(keys, next(self.numbers)).without(marked.possible - solutions.possible)
        deterministic = solutions.deterministic and not any(volatile(expression) for expression, _ in conditions)
        return replace(ordered, deterministic=deterministic)

    def _slice(self, node: Slice) -> Solutions:
        solutions = self.solutions(node.pattern)
        within = frozenset(node.within) & solutions.possible
        return solutions.slice(node.offset, node.limit, within | {self.seed.tag} if self.seed else within)


def _aggregate(aggregation: Aggregation, inside: Vars) -> str:
    """The SQL of an aggregate; which columns make a solution is known only here.

    Args:
        inside: the variables of the pattern that is grouped.
    """
    if aggregation.argument is not None or not aggregation.distinct:
        return expressions.aggregate(aggregation)
    solution = names(variable for variable in inside if not variable.hidden)
    counted = f"COUNT(DISTINCT STRUCT({', '.join(solution)}))" if solution else "LEAST(COUNT(*), 1)"
    return f"CONCAT('\"', CAST({counted} AS STRING), {literal(_INTEGER)})"


def _column_or_null(variable: Var, solutions: Solutions) -> Column:
    return F.col(column(variable)) if variable in solutions.possible else null(variable)


def _is_sql(condition: Expression) -> bool:
    """Whether Spark can join on it."""
    return not exists_in(condition) and not volatile(condition)

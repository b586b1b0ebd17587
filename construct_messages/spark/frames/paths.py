"""Evaluation of property paths: pairs of nodes, as a DataFrame.

SPARQL 1.1 Query, sections 9 and 18.4. Links, sequences and alternatives are bags of pairs; a path of any length is a
set, found by semi-naive iteration: the frontier moves from the bound end until it finds no new nodes. Over few steps
`small_closures` does that on the driver. Over many, each round is checkpointed, as Spark cannot plan the growing query
of all rounds. Single patterns are matched by `scans`; paths are joined with the rest of a query by `evaluation`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, assert_never

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from construct_messages.errors import LimitExceeded, UnsupportedQuery
from construct_messages.query.algebra.nodes import (
    Alternative,
    Closure,
    Dataset,
    Inverse,
    Link,
    Negated,
    Path,
    PathExpression,
    Sequence,
    Triple,
    Var,
    VarOrTerm,
    Vars,
    first_part,
    is_nullable,
    outward,
    step,
    unbound_closure,
    variables,
    written,
)
from construct_messages.rdf.terms import Term
from construct_messages.spark.frames.scans import named_graphs, scan
from construct_messages.spark.frames.solutions import checkpointed
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql.values import column

# --- small closures -------------------------------------------------------------------------------
# A round on executors takes two jobs with shuffles, even if it finds nothing: a path of 100 links over 3,000 quads took
# 54 seconds. If steps and pairs are few enough, they are collected and followed on the driver; both find the same
# pairs.

MOST_STEPS: Final = 100_000
"""The most steps, and the most pairs to begin with, that are collected: about 30 MB."""

MOST_PAIRS: Final = 100_000
"""The most pairs that are found on the driver."""

Pair = tuple[str, ...]
"""A start and an end, after the graph where that varies."""


def small_closure(
    begin: Callable[[], DataFrame], steps: DataFrame, *, max_rounds: int
) -> DataFrame | None:
    """Extends pairs by any number of steps; None if there are too many steps, pairs or rounds. Each pair comes once."""
    few = _few(steps, MOST_STEPS)
    pairs = None if few is None else _few(begin().select(*steps.columns), MOST_STEPS)
    found = (
        None
        if few is None or pairs is None
        else reached(pairs, few, max_rounds=max_rounds, most=MOST_PAIRS)
    )
    return None if found is None else _frame(steps.sparkSession, found, steps.columns)


def _few(pairs: DataFrame, most: int) -> list[Pair] | None:
    """Collects pairs; None if there are more than `most`, of which Spark then reads only slightly more."""
    rows = pairs.limit(most + 1).collect()
    return None if len(rows) > most else [tuple(row) for row in rows]


def reached(
    begin: Iterable[Pair], steps: Iterable[Pair], *, max_rounds: int, most: int
) -> set[Pair] | None:
    """Extends pairs by any number of steps; returns None if there are too many pairs or rounds.

    >>> steps = [("a", "b"), ("b", "c"), ("c", "b")]
    >>> sorted(reached([("a", "b")], steps, max_rounds=2, most=9))
    [('a', 'b'), ('a', 'c')]
    >>> reached([("a", "b")], steps, max_rounds=0, most=9) is reached([("a", "b")], steps, max_rounds=2, most=1) is None
    True
    """
    ends = defaultdict[Pair, list[str]](list)
    for *graph, start, end in steps:
        ends[*graph, start].append(end)
    found = set(begin)
    frontier = found.copy()
    rounds = 0
    while frontier and len(found) <= most:
        news = set[Pair]()
        for *graph, start, via in frontier:
            news.update((*graph, start, end) for end in ends.get((*graph, via), ()))
            if len(news) > 2 * most:
                return None
        frontier = news - found
        found |= frontier
        rounds += bool(frontier)
        if rounds > max_rounds:
            return None
    return found if len(found) <= most else None


def _frame(spark: SparkSession, pairs: Collection[Pair], columns: list[str]) -> DataFrame:
    by_column = zip(*sorted(pairs), strict=True) if pairs else ([] for _ in columns)
    table = pa.table(
        {
            name: pa.array(values, pa.string())
            for name, values in zip(columns, by_column, strict=True)
        }
    )
    return spark.createDataFrame(table)


# --- paths ----------------------------------------------------------------------------------------

# A frontier of at most this many pairs goes to all executors rather than all steps to the frontier's partitions.
_SMALL_FRONTIER: Final = 50_000
# After this many rounds the path is long, and the steps are doubled while they are few.
_ROUNDS_BEFORE_DOUBLING: Final = 4
_FEW_STEPS: Final = 1_000_000


def path(
    node: Path,
    table: QuadTable,
    dataset: Dataset,
    *,
    seeds: DataFrame | None = None,
    max_rounds: int = 100,
    allow_full_closure: bool = False,
) -> DataFrame:
    """Evaluates a path: a column for each of its variables, none of them NULL.

    Closures are evaluated here and now; the rest when the DataFrame is. The result is going to be joined with the
    seeds, distinct solutions of some of the variables: solutions that are compatible with none may be missing. A path
    of n links takes at most n rounds; after `max_rounds`, new nodes raise `LimitExceeded`.
    """
    names = set() if seeds is None else set(seeds.columns)

    def bound(end: VarOrTerm) -> _Bound:
        if not isinstance(end, Var):
            return end
        if seeds is None or column(end) not in names:
            return None
        keys = [F.col(column(end)).alias("node")]
        if isinstance(node.graph, Var) and column(node.graph) in names:
            keys.append(F.col(column(node.graph)).alias("graph"))
        return _Seeds(seeds.select(*keys).distinct(), known=False)

    expression, start, end = outward(node.path), bound(node.subject), bound(node.object)
    matching = _Matching(table, dataset, node.graph, max_rounds)
    if node.subject == node.object and isinstance(expression, Closure) and is_nullable(expression):
        # each node reaches itself; no other pairs are needed
        return _named(matching.itself(start), node)
    if not allow_full_closure:
        require_ends(
            node,
            frozenset(
                end for end in variables((node.subject, node.object)) if column(end) in names
            ),
        )
    return _named(matching.pairs(expression, start, end), node)


def require_ends(node: Path, bound: Vars) -> None:
    """Raises `UnsupportedQuery` for a closure that would start at every node, where these variables are bound.

    >>> from construct_messages.rdf.terms import iri
    >>> require_ends(Path(Var("x"), Closure(Link(iri("urn:p")), "+"), Var("y")), frozenset({Var("y")}))
    """
    start, end = (
        not isinstance(place, Var) or place in bound for place in (node.subject, node.object)
    )
    expression = outward(node.path)
    if node.subject == node.object and isinstance(expression, Closure) and is_nullable(expression):
        return  # each node reaches itself, and no step is taken
    closure = unbound_closure(expression, start, end)
    if closure is not None:
        raise UnsupportedQuery(
            f"neither end of the path {written(closure)} is bound, so it would start at every node of the data",
            fragment=written(closure),
            hint="bind its subject or object, or allow it with allow_full_closure=True",
        )


def _named(pairs: DataFrame, node: Path) -> DataFrame:
    """Returns the pairs as solutions; ends that are the same variable must be the same node."""
    places: dict[Var, Column] = {}
    for name, position in (("start", node.subject), ("end", node.object), ("graph", node.graph)):
        if isinstance(position, Var):
            if position in places:
                pairs = pairs.filter(F.col(name) == places[position])
            else:
                places[position] = F.col(name)
    return pairs.select(*(place.alias(column(variable)) for variable, place in places.items()))


# --- relations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seeds:
    """The distinct values of a bound end of a path: a column `node`, and `graph` where that is bound, too."""

    frame: DataFrame
    known: bool  # whether each is a node of the graph


_Bound = Term | _Seeds | None


@dataclass(frozen=True)
class _Matching:
    """Paths as pairs: columns `start` and `end`, and `graph` where the graph is a variable."""

    table: QuadTable
    dataset: Dataset
    graph: VarOrTerm | None
    max_rounds: int

    @property
    def keys(self) -> list[str]:
        return ["graph"] if isinstance(self.graph, Var) else []

    def pairs(self, path: PathExpression, start: _Bound, end: _Bound) -> DataFrame:
        """Returns the pairs that the path joins; with a term as an end, only those that have it.

        Where an end is bound by seeds, the result may contain pairs with other nodes.
        """
        match path:
            case Link(predicate):
                return _with_ends(
                    self.quads(predicate).select(*self.keys, "start", "end"), start, end
                )
            case Inverse(inner):
                return _swapped(self.pairs(inner, end, start))
            case Negated(forward, backward):
                return _with_ends(self.negated(forward, backward), start, end)
            case Alternative(paths):
                relation, *others = (self.pairs(part, start, end) for part in paths)
                for other in others:
                    relation = relation.unionByName(other)
                return relation
            case Sequence(paths):
                return self.sequence(paths, start, end)
            case Closure(inner, kind):
                forwards = isinstance(start, str) or (
                    isinstance(start, _Seeds) and not isinstance(end, str)
                )
                if forwards or end is None:
                    return _with_ends(self.closure(path, start), start, end)
                return _with_ends(
                    _swapped(self.closure(Closure(outward(inner, inverse=True), kind), end)),
                    start,
                    end,
                )
            case _:
                assert_never(path)

    def quads(self, predicate: VarOrTerm) -> DataFrame:
        """Returns the quads with this predicate: `start`, `end`, and `predicate` and `graph` where these vary."""
        places = {"start": Var("start"), "end": Var("end")}
        if isinstance(predicate, Var):
            places["predicate"] = predicate
        if isinstance(self.graph, Var):
            places["graph"] = Var("graph")
        pattern = Triple(places["start"], predicate, places["end"], places.get("graph", self.graph))
        quads = scan(pattern, self.table, self.dataset)
        return quads.select(
            *(F.col(column(variable)).alias(name) for name, variable in places.items())
        )

    def negated(
        self, forward: tuple[Term, ...] | None, backward: tuple[Term, ...] | None
    ) -> DataFrame:
        quads = self.quads(Var("predicate"))

        def but(predicates: tuple[Term, ...]) -> DataFrame:
            others = quads.filter(~F.col("predicate").isin(*predicates)) if predicates else quads
            return others.select(*self.keys, "start", "end")

        if backward is None:
            return but(forward or ())
        return (
            _swapped(but(backward))
            if forward is None
            else but(forward).unionByName(_swapped(but(backward)))
        )

    def sequence(self, paths: tuple[PathExpression, ...], start: _Bound, end: _Bound) -> DataFrame:
        """Joins the parts, from a bound end or from a part that needs none on, so that closures between have seeds."""
        last = len(paths) - 1
        first = first_part(paths, start is not None, end is not None)
        # intermediate nodes are in the graph, unless a term outside it is connected to itself by a path of length 0
        known = not (isinstance(start if first == 0 else end, str) and is_nullable(paths[first]))

        def part(index: int, left: _Bound, right: _Bound) -> DataFrame:
            return self.pairs(
                paths[index], start if index == 0 else left, end if index == last else right
            )

        relation = part(first, None, None)
        for index in range(first + 1, last + 1):
            right = part(index, self.seeds(relation, "end", known), None)
            relation = self.joined(relation, right)
        for index in range(first - 1, -1, -1):
            left = part(index, None, self.seeds(relation, "start", known))
            relation = self.joined(left, relation)
        return relation

    def joined(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Returns the pairs from the start of `left` to the end of `right`."""
        left, right = left.withColumnRenamed("end", "via"), right.withColumnRenamed("start", "via")
        return left.join(right, [*self.keys, "via"]).select(*self.keys, "start", "end")

    def seeds(self, relation: DataFrame, end: str, known: bool) -> _Seeds:
        return _Seeds(relation.select(*self.keys, F.col(end).alias("node")).distinct(), known)

    # --- closures ---------------------------------------------------------------------------------------------------

    def closure(self, path: Closure, start: _Bound) -> DataFrame:
        """Returns the pairs of a closure from its start, each once."""
        if path.kind == "?":
            return self.itself(start).unionByName(self.pairs(path.path, start, None)).distinct()

        def begin() -> DataFrame:
            return (
                self.itself(start)
                if path.kind == "*"
                else _from_seeds(self.pairs(path.path, start, None), start)
            )

        steps = self.pairs(step(path.path), None, None).select(*self.keys, "start", "end")
        if (found := small_closure(begin, steps, max_rounds=self.max_rounds)) is not None:
            return found
        return self.reached(begin(), checkpointed(steps.distinct()), written(path))

    def reached(self, begin: DataFrame, steps: DataFrame, fragment: str) -> DataFrame:
        """Returns the pairs of `begin`, extended by any number of steps, each once.

        The steps are pairs of nodes a distance apart, at first of 1. The frontier is the pairs found last, as many
        distances deep as the steps are long; to double the steps, it is kept for one more round.
        """
        pair = [*self.keys, "start", "end"]
        found = checkpointed(begin.withColumn("round", F.lit(0)))
        since, frontier, doubling, few = 0, None, True, _FEW_STEPS
        for number in count(1):
            last = found.filter(F.col("round") >= since).select(*pair)
            if frontier is not None and frontier <= _SMALL_FRONTIER:
                last = F.broadcast(last)
            further = self.joined(last, steps).withColumn("round", F.lit(number))
            reached = found.unionByName(further).groupBy(*pair).agg(F.min("round").alias("round"))
            found = checkpointed(reached)
            news = found.filter(F.col("round") == number).count()
            if not news:
                break
            if number > self.max_rounds:
                raise LimitExceeded(
                    f"the path {fragment} still finds new nodes after {self.max_rounds} rounds",
                    hint="raise max_path_rounds=, if the data may hold paths as long as that",
                )
            if number == _ROUNDS_BEFORE_DOUBLING:
                few = max(few, 2 * steps.count())
            if doubling and number >= _ROUNDS_BEFORE_DOUBLING:
                doubling = self.product(steps) <= few
            if doubling and number >= _ROUNDS_BEFORE_DOUBLING:
                steps = checkpointed(self.joined(steps, steps).distinct())
                frontier = (frontier or 0) + news
            else:
                since, frontier = number, news
        return found.select(*pair)

    def product(self, steps: DataFrame) -> float:
        """Returns the number of pairs of two steps, before duplicates are counted once."""
        keys = [*self.keys, "via"]
        arriving = steps.select(
            *self.keys, F.col("end").alias("via"), F.lit(1.0).alias("ins"), F.lit(0.0).alias("outs")
        )
        leaving = steps.select(
            *self.keys,
            F.col("start").alias("via"),
            F.lit(0.0).alias("ins"),
            F.lit(1.0).alias("outs"),
        )
        ways = (
            arriving.unionByName(leaving)
            .groupBy(*keys)
            .agg(F.sum("ins").alias("ins"), F.sum("outs").alias("outs"))
        )
        total = ways.agg(F.sum(F.col("ins") * F.col("outs"))).first()
        return (total and total[0]) or 0.0

    # --- zero length ------------------------------------------------------------------------------------------------

    def itself(self, start: _Bound) -> DataFrame:
        """Each start with itself: a term also if the graph does not hold it, otherwise nodes of the graph."""
        if isinstance(start, str):
            graphs = self.graphs()
            return graphs.select(*self.keys, F.lit(start).alias("start"), F.lit(start).alias("end"))
        if start is None:
            nodes = self.nodes()
        elif start.known and set(self.keys) <= set(start.frame.columns):
            nodes = start.frame
        else:
            nodes = self.nodes().join(start.frame, start.frame.columns, "left_semi")
        return nodes.select(*self.keys, F.col("node").alias("start"), F.col("node").alias("end"))

    def graphs(self) -> DataFrame:
        """Returns a row for each graph that the path matches in."""
        if self.graph is None:
            return self.table.frame.sparkSession.range(1)
        names = named_graphs(self.table, self.dataset)
        return (
            names
            if isinstance(self.graph, Var)
            else names.filter(F.col("graph") == F.lit(self.graph))
        )

    def nodes(self) -> DataFrame:
        """Returns the subjects and objects of the graph, each once."""
        # a quad that occurs twice adds no nodes
        table = QuadTable(self.table.frame, replace(self.table.statistics, distinct=True))
        quads = replace(self, table=table).quads(Var("predicate"))
        return quads.select(*self.keys, F.explode(F.array("start", "end")).alias("node")).distinct()


def _swapped(pairs: DataFrame) -> DataFrame:
    turned = {"start": "end", "end": "start"}
    return pairs.select(*(F.col(turned.get(name, name)).alias(name) for name in pairs.columns))


def _with_ends(pairs: DataFrame, start: _Bound, end: _Bound) -> DataFrame:
    """Returns the pairs with the ends that are terms."""
    for name, bound in (("start", start), ("end", end)):
        if isinstance(bound, str):
            pairs = pairs.filter(F.col(name) == F.lit(bound))
    return pairs


def _from_seeds(pairs: DataFrame, start: _Bound) -> DataFrame:
    """Returns the pairs that begin at a seed, where there are seeds."""
    if not isinstance(start, _Seeds):
        return pairs
    return pairs.join(
        start.frame.withColumnRenamed("node", "start"), _named_keys(start), "left_semi"
    )


def _named_keys(seeds: _Seeds) -> list[str]:
    return ["start" if name == "node" else name for name in seeds.frame.columns]

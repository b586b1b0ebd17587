"""Spark as the engine of a plan: stages are DataFrames, which are computed by an action on the last of them.

At once are computed: paths of any length, and solutions that are read twice and may differ between two readings.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from construct_messages.errors import LimitExceeded
from construct_messages.spark.dialect import SparkSql
from construct_messages.spark.evaluator import SEPARATOR, with_value
from construct_messages.sparql.relational.dialects import Dialect, Function

_TYPES: Final = {"string": pa.string(), "boolean": pa.bool_(), "integer": pa.int64()}


class SparkEngine:
    """See `dialects.Engine`.

    Args:
        spark: the session of the quads.
        max_path_rounds: the maximal number of steps of a path of any length.
    """

    def __init__(self, spark: SparkSession, max_path_rounds: int) -> None:
        self.dialect: Dialect = SparkSql()
        self._spark, self._max_rounds = spark, max_path_rounds
        self._frames: dict[str, DataFrame] = {}
        self._texts: dict[str, str] = {}
        self._reads: dict[str, Counter[str]] = {}
        # no name is a part of a literal of the query
        self._token = secrets.token_hex(6)
        self._names = re.compile(rf"\b(stage\d+_{self._token})\b")

    # --- names ------------------------------------------------------------------------------------------------------

    def named(self, frame: DataFrame, text: str = "") -> str:
        """Returns a name for a DataFrame in the engine's SQL."""
        name = f"stage{len(self._frames)}_{self._token}"
        self._frames[name], self._texts[name] = frame, text
        self._reads[name] = self.reads(text) if text else Counter((name,))
        return name

    def reads(self, sql: str) -> Counter[str]:
        """Counts how often a SELECT reads each frame that has no text; stages are not kept between two readings."""
        return sum((self._reads[name] for name in self._names.findall(sql)), Counter[str]())

    def frame(self, sql: str) -> DataFrame:
        """Returns the DataFrame of a SELECT."""
        used = dict.fromkeys(self._names.findall(sql))
        text = self._names.sub(r"{\1}", sql.replace("{", "{{").replace("}", "}}"))
        # not the frames themselves: Spark would uncache one when it drops the view that it makes of its argument
        frames = {one: self._frames[one].filter("TRUE") for one in used}
        return self._spark.sql(text, None, **frames)

    def explained(self, sql: str) -> str:
        """Returns the stages of a SELECT, and itself, as text."""
        stages = [f"{name}:\n{text}" for name, text in self._texts.items() if text]
        return "\n\n".join([*stages, sql]).replace(f"_{self._token}", "")

    # --- stages -----------------------------------------------------------------------------------------------------

    def table(self, sql: str, *, stable: bool = True) -> str:
        frame = self.frame(sql)
        return self.named(frame if stable else checkpointed(frame), sql)

    def evaluated(
        self,
        rows: str,
        inputs: Sequence[str],
        function: Function,
        kind: str,
        *,
        where: str = "",
        light: bool = False,  # noqa: ARG002  # they are read once
        volatile: bool = False,
    ) -> str:
        """Evaluates in workers, each batch by its distinct inputs: to join values back, rows would be read twice."""
        frame = self.frame(f"SELECT * FROM {rows} AS t")
        if volatile:
            given = [
                f"CASE WHEN {where} THEN t.{name} END" if where else f"t.{name}" for name in inputs
            ]
        else:
            texts = ", ".join(f"coalesce(t.{name}, '')" for name in inputs)
            joined = f"concat_ws({self.dialect.text(SEPARATOR)}, {texts})"
            given = [f"CASE WHEN {where} THEN {joined} END" if where else joined]
        arguments = [f"{value} AS argument{place}" for place, value in enumerate(given)]
        wide = f"SELECT {', '.join(['t.*', *arguments])} FROM {rows} AS t"
        return self.named(
            with_value(self.frame(wide), frame.columns, function, kind, volatile=volatile), wide
        )

    def batches(self, sql: str) -> Iterator[Sequence[list[Any]]]:
        for batch in self.frame(sql).toArrow().to_batches():
            yield [column.to_pylist() for column in batch.columns]

    def filled(self, types: Mapping[str, str], batches: Iterator[Sequence[list[Any]]]) -> str:
        schema = pa.schema([(name, _TYPES[kind]) for name, kind in types.items()])
        made = [
            pa.RecordBatch.from_arrays(
                [pa.array(values, field.type) for values, field in zip(batch, schema, strict=True)],
                schema=schema,
            )
            for batch in batches
        ]
        return self.named(self._spark.createDataFrame(pa.Table.from_batches(made, schema)))

    # --- paths ------------------------------------------------------------------------------------------------------

    def reached(self, begin: str, steps: str, keys: Sequence[str], path: str) -> str:
        """Follows few steps on the driver, and many in rounds of jobs: Spark cannot plan the query of all rounds."""
        pair = [*keys, "s", "e"]
        links = self.frame(steps).select(*pair)

        def starts() -> DataFrame:
            return self.frame(begin).select(*pair)

        found = small_closure(starts, links, max_rounds=self._max_rounds)
        if found is None:
            rounds = _Rounds(pair, self._max_rounds, path)
            with _without_constraints(self._spark):
                found = rounds.reached(starts(), checkpointed(links.distinct()))
        return self.named(found)


def checkpointed(frame: DataFrame) -> DataFrame:
    """Computes a frame, here and now, and keeps its rows without the plan that they came from.

    They are kept in `spark.checkpoint.dir`, if a session has one; otherwise by the executors, and on a cluster by two
    of them each: rows that were lost with one could not be computed again.
    """
    settings = frame.sparkSession.conf
    if settings.get("spark.checkpoint.dir", ""):
        return frame.checkpoint()
    one_process = re.match(r"local(\[|\Z)", settings.get("spark.master", "") or "")
    level = StorageLevel.MEMORY_AND_DISK if one_process else StorageLevel.MEMORY_AND_DISK_2
    return frame.localCheckpoint(storageLevel=level)


@contextmanager
def _without_constraints(spark: SparkSession) -> Iterator[None]:
    """Infers no constraints meanwhile: a frame is kept with its own, and Spark's unions fail on those of GRAPH ?g."""
    name = "spark.sql.constraintPropagation.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, before or "true")


# --- closures of few steps ------------------------------------------------------------------------
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


# --- closures of many steps -----------------------------------------------------------------------

# A frontier of at most this many pairs goes to all executors rather than all steps to the frontier's partitions.
_SMALL_FRONTIER: Final = 50_000
# After this many rounds the path is long, and the steps are doubled while they are few.
_ROUNDS_BEFORE_DOUBLING: Final = 4
_FEW_STEPS: Final = 1_000_000


class _Rounds:
    """Semi-naive iteration over pairs of nodes `s` and `e`, and `graph` where it varies; each round is checkpointed."""

    def __init__(self, pair: Sequence[str], max_rounds: int, path: str) -> None:
        self._pair, self._keys = list(pair), list(pair[:-2])
        self._max_rounds, self._path = max_rounds, path

    def reached(self, begin: DataFrame, steps: DataFrame) -> DataFrame:
        """Returns the pairs of `begin`, extended by any number of steps, each once.

        The steps are pairs of nodes a distance apart, at first of 1. The frontier is the pairs found last, as many
        distances deep as the steps are long; to double the steps, it is kept for one more round.
        """
        pair = self._pair
        found = checkpointed(begin.withColumn("round", F.lit(0)))
        since, frontier, doubling, few = 0, None, True, _FEW_STEPS
        for number in count(1):
            last = found.filter(F.col("round") >= since).select(*pair)
            if frontier is not None and frontier <= _SMALL_FRONTIER:
                last = F.broadcast(last)
            further = self._joined(last, steps).withColumn("round", F.lit(number))
            reached = found.unionByName(further).groupBy(*pair).agg(F.min("round").alias("round"))
            found = checkpointed(reached)
            news = found.filter(F.col("round") == number).count()
            if not news:
                break
            if number > self._max_rounds:
                raise LimitExceeded(
                    f"the path {self._path} still finds new nodes after {self._max_rounds} rounds",
                    hint="raise max_path_rounds=, if the data may hold paths as long as that",
                )
            if number == _ROUNDS_BEFORE_DOUBLING:
                few = max(few, 2 * steps.count())
            if doubling and number >= _ROUNDS_BEFORE_DOUBLING:
                doubling = self._product(steps) <= few
            if doubling and number >= _ROUNDS_BEFORE_DOUBLING:
                steps = checkpointed(self._joined(steps, steps).distinct())
                frontier = (frontier or 0) + news
            else:
                since, frontier = number, news
        return found.select(*pair)

    def _joined(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Returns the pairs from the start of `left` to the end of `right`."""
        left, right = left.withColumnRenamed("e", "via"), right.withColumnRenamed("s", "via")
        return left.join(right, [*self._keys, "via"]).select(*self._pair)

    def _product(self, steps: DataFrame) -> float:
        """Returns the number of pairs of two steps, before duplicates are counted once."""
        arriving = steps.select(
            *self._keys, F.col("e").alias("via"), F.lit(1.0).alias("ins"), F.lit(0.0).alias("outs")
        )
        leaving = steps.select(
            *self._keys, F.col("s").alias("via"), F.lit(0.0).alias("ins"), F.lit(1.0).alias("outs")
        )
        ways = (
            arriving.unionByName(leaving)
            .groupBy(*self._keys, "via")
            .agg(F.sum("ins").alias("ins"), F.sum("outs").alias("outs"))
        )
        total = ways.agg(F.sum(F.col("ins") * F.col("outs"))).first()
        return (total and total[0]) or 0.0

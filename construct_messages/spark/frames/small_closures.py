"""Closures of property paths over few steps, on the driver: without the jobs that each round takes on executors.

A round of `paths` takes two jobs with shuffles, even if it finds nothing: a path of 100 links over 3,000 quads took 54
seconds. If steps and pairs are few enough, they are collected and followed here; otherwise the result is None, and
`paths` evaluates the closure. Both find the same pairs. SPARQL 1.1 Query, section 18.4 (ALP). No quads and no
expressions here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

MOST_STEPS: Final = 100_000
"""The most steps, and the most pairs to begin with, that are collected: about 30 MB."""

MOST_PAIRS: Final = 100_000
"""The most pairs that are found on the driver."""

Pair = tuple[str, ...]
"""A start and an end, after the graph where that varies."""


def small_closure(
    begin: Callable[[], DataFrame], steps: DataFrame, *, max_rounds: int
) -> DataFrame | None:
    """Extends pairs by any number of steps.

    Args:
        begin: makes the pairs to begin with; called if there are few steps.
        steps: pairs of nodes, with the same columns, duplicates among them.
        max_rounds: how often the pairs found last are extended.

    Returns:
        the pairs, each once; None: there are too many steps or pairs, or more rounds are needed.
    """
    few = _few(steps, MOST_STEPS)
    pairs = None if few is None else _few(begin().select(*steps.columns), MOST_STEPS)
    found = (
        None
        if few is None or pairs is None
        else reached(pairs, few, max_rounds=max_rounds, most=MOST_PAIRS)
    )
    return None if found is None else _frame(steps.sparkSession, found, steps.columns)


def _few(pairs: DataFrame, most: int) -> list[Pair] | None:
    """Collects pairs; returns None if there are more than `most`, of which Spark then reads only slightly more."""
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


def _frame(spark: SparkSession, pairs: Collection[Pair], columns: Sequence[str]) -> DataFrame:
    by_column = zip(*sorted(pairs), strict=True) if pairs else ([] for _ in columns)
    table = pa.table(
        {
            name: pa.array(values, pa.string())
            for name, values in zip(columns, by_column, strict=True)
        }
    )
    return spark.createDataFrame(table)

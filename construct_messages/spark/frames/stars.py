"""Star joins: triple patterns with one subject, evaluated in one pass over its quads.

SPARQL 1.1 Query, section 18.3 (basic graph patterns) and OPTIONAL of single triples. The objects of a subject are
collected by predicate, and their combinations are its solutions. Those of a hub would take too much memory: there the
patterns are joined by sort and merge. Single patterns are matched in `scans`; whether a star is worth it is decided by
the optimizer.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import Position, Star, Triple, Var
from construct_messages.query.algebra.plan import Dataset, Scan
from construct_messages.spark.frames.scans import is_distinct, matches, needed_quads
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql.columns import column

_PREDICATE: Final = Var(".predicate")
_OBJECT: Final = Var(".object")
_HUB_BYTES: Final = 1 << 20
"""How much the objects of one subject may take to be collected; a task of Spark's may hold those of some hundred."""


def star(node: Star, table: QuadTable, dataset: Dataset) -> DataFrame:
    """The solutions of a star: a column for each of its variables, those of its optional objects NULL where unbound.

    Args:
        node: the patterns.
        table: the quads, those of one subject best in one partition already.
        dataset: what FROM and FROM NAMED say.
    """
    graph = node.patterns[0].graph
    keys = [column(node.subject)]
    if isinstance(graph, Var) and graph != node.subject:
        keys.append(column(graph))
    needed = needed_quads(map(Scan, (*node.patterns, *node.optional)), table, dataset)
    quads = matches(Triple(node.subject, _PREDICATE, _OBJECT, graph), needed, dataset)
    # they are few, and where there are none, Spark leaves the branch of theirs out before it runs
    hubs = quads.groupBy(*keys).agg(F.sum(F.octet_length(column(_OBJECT))).alias("bytes"))
    hubs = F.broadcast(hubs.filter(F.col("bytes") > _HUB_BYTES).select(*keys))
    collected = _collected(node, quads.join(hubs, keys, "left_anti"), keys)
    distinct = is_distinct(graph, table, dataset)
    merged = _merged(node, quads.join(hubs, keys, "left_semi"), keys, distinct=distinct)
    return collected.unionByName(merged)


def _matched(pattern: Triple, keys: list[str]) -> Column:
    """Whether a quad matches a pattern of its subject."""
    matched = F.col(column(_PREDICATE)) == F.lit(pattern.predicate)
    if not isinstance(pattern.object, Var):
        return matched & (F.col(column(_OBJECT)) == F.lit(pattern.object))
    name = column(pattern.object)
    return matched & (F.col(column(_OBJECT)) == F.col(name)) if name in keys else matched


def _free(pattern: Triple, keys: list[str]) -> str | None:
    """The column of a pattern's object, if it is a variable that the subject does not say already."""
    name = column(pattern.object) if isinstance(pattern.object, Var) else None
    return None if name in keys else name


def _collected(node: Star, quads: DataFrame, keys: list[str]) -> DataFrame:
    """The solutions of subjects whose objects are held at once; sets, whether the quads are distinct or not."""
    patterns = (*node.patterns, *node.optional)
    objects = {pattern.predicate: f"objects{n}" for n, pattern in enumerate(patterns) if _free(pattern, keys)}
    tests = {f"test{n}": pattern for n, pattern in enumerate(node.patterns) if not _free(pattern, keys)}
    # Spark sorts what it groups, and compares IRIs by their first eight bytes, which are mostly the same, before it
    # looks at the rest of them where that stands
    subjects = quads.groupBy(F.xxhash64(*keys), *keys).agg(
        *(F.bool_or(_matched(pattern, keys)).alias(name) for name, pattern in tests.items()),
        *(_objects(predicate).alias(name) for predicate, name in objects.items()),
    )
    needed: dict[str, Column] = {}
    for pattern in node.patterns:
        if name := _free(pattern, keys):
            found = F.col(objects[pattern.predicate])
            needed[name] = F.array_intersect(needed[name], found) if name in needed else found
    there = [*map(F.col, tests), *(F.size(found) > 0 for found in needed.values())]
    solutions = subjects.filter(reduce(and_, there))
    for name, found in needed.items():
        solutions = solutions.withColumn(name, F.explode(found))
    for pattern in node.optional:
        if name := _free(pattern, keys):
            solutions = solutions.withColumn(name, F.explode_outer(objects[pattern.predicate]))
    return solutions.select(*map(column, sorted(node.possible)))


def _objects(predicate: Position) -> Column:
    """The objects that a subject has for a predicate, as a set."""
    return F.collect_set(F.when(F.col(column(_PREDICATE)) == F.lit(predicate), F.col(column(_OBJECT))))


def _merged(node: Star, quads: DataFrame, keys: list[str], *, distinct: bool) -> DataFrame:
    """The solutions of subjects that may have any number of objects."""

    def matching(pattern: Triple) -> DataFrame:
        name = _free(pattern, keys)
        found = quads.filter(_matched(pattern, keys))
        found = found.select(*keys, *([F.col(column(_OBJECT)).alias(name)] if name else []))
        return found if distinct else found.distinct()

    solutions = matching(node.patterns[0])
    for pattern in (*node.patterns[1:], *node.optional):
        found = matching(pattern)
        shared = [known for known in found.columns if known in solutions.columns]
        # merged where they are: a broadcast would be a job of its own, and of a size that is hard to foresee
        solutions = solutions.join(found.hint("merge"), shared, "left" if pattern in node.optional else "inner")
    return solutions

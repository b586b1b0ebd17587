"""Stars: triple patterns with one subject, in one pass over the quads.

SPARQL 1.1 Query, section 18.3 (basic graph patterns) and OPTIONAL of single triples. The quads of all predicates are
read and shuffled by subject once; then each pattern takes its own from there, and these are sorted and merged.
Nothing holds all objects of a subject in memory, so it does not matter how many there are. Matching one pattern is
`scans`; whether a star is worth it is decided in `optimize`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from construct_messages.spark.algebra import Dataset, Star, Triple, Var, column, variables
from construct_messages.spark.scans import scan
from construct_messages.spark.table import QuadTable

_PREDICATE = Var(".predicate")
_OBJECT = Var(".object")


def star(node: Star, table: QuadTable, dataset: Dataset) -> DataFrame:
    """The solutions of a star: a column for each of its variables, those of its optional objects NULL where unbound.

    Args:
        node: the patterns.
        table: the quads.
        dataset: what FROM and FROM NAMED say.
    """
    graph = node.patterns[0].graph
    keys = [column(node.subject)]
    if isinstance(graph, Var) and graph != node.subject:
        keys.append(column(graph))
    quads = _shuffled(node, table, dataset, keys)
    solutions: DataFrame | None = None
    bound = frozenset({node.subject})
    for pattern in (*node.patterns, *node.optional):
        matches = _matches(pattern, quads, keys)
        if not table.statistics.distinct:
            matches = matches.distinct()
        if solutions is None:
            solutions = matches
        else:
            shared = [*keys, *sorted({column(variable) for variable in bound & variables((pattern.object,))} - {*keys})]
            # merged where they are: a broadcast would be a job of its own, and of a size that is hard to foresee
            how = "left" if pattern in node.optional else "inner"
            solutions = solutions.join(matches.hint("merge"), shared, how)
        bound |= variables((pattern.object,))
    assert solutions is not None, "a star has patterns"
    return solutions


def _shuffled(node: Star, table: QuadTable, dataset: Dataset, keys: list[str]) -> DataFrame:
    """The quads of a star, those of one subject in one place: columns of the keys, the predicate and the object."""
    patterns = (*node.patterns, *node.optional)
    wanted = table.frame.filter(
        reduce(or_, (_matched(pattern, F.col("predicate"), F.col("object")) for pattern in patterns))
    )
    # each pattern takes duplicates away for itself, where its quads are together already
    quads = QuadTable(wanted, replace(table.statistics, distinct=True))
    every = Triple(node.subject, _PREDICATE, _OBJECT, patterns[0].graph)
    # Counting them has a purpose: Spark would push the filters of the patterns below the shuffle, and so read and
    # shuffle the quads once for each pattern, if that did not change a count which was asked for.
    # A query may hold the same star twice, and no two of its counts may have one name.
    name = f"star of {node.subject.name} {uuid4()}"
    return scan(every, quads, dataset).repartition(*keys).observe(name, F.count(F.lit(1)).alias("quads"))


def _matched(pattern: Triple, predicate: Column, object: Column) -> Column:
    matched = predicate == F.lit(pattern.predicate)
    return matched if isinstance(pattern.object, Var) else matched & (object == F.lit(pattern.object))


def _matches(pattern: Triple, quads: DataFrame, keys: list[str]) -> DataFrame:
    """The solutions of one pattern, in columns of the keys and, if it is another variable, the object."""
    object = F.col(column(_OBJECT))
    matches = quads.filter(_matched(pattern, F.col(column(_PREDICATE)), object))
    if not isinstance(pattern.object, Var):
        return matches.select(*keys)
    name = column(pattern.object)
    if name in keys:
        return matches.filter(object == F.col(name)).select(*keys)
    return matches.select(*keys, object.alias(name))

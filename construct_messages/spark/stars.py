"""Stars: triple patterns with one subject, joined on it.

SPARQL 1.1 Query, section 18.3 (basic graph patterns) and OPTIONAL of single triples. Matching one pattern is `scans`;
whether a star is worth it is decided in `optimize`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from construct_messages.spark.algebra import Dataset, Star, column, variables
from construct_messages.spark.scans import scan
from construct_messages.spark.table import QuadTable


def star(node: Star, table: QuadTable, dataset: Dataset) -> DataFrame:
    """The solutions of a star: a column for each of its variables, those of its optional objects NULL where unbound.

    Args:
        node: the patterns.
        table: the quads.
        dataset: what FROM and FROM NAMED say.
    """
    first, *others = node.patterns
    solutions = scan(first, table, dataset)
    bound = variables(first.positions)
    for pattern in (*others, *node.optional):
        shared = [column(variable) for variable in sorted(bound & variables(pattern.positions))]
        solutions = solutions.join(
            scan(pattern, table, dataset), shared, "left" if pattern in node.optional else "inner"
        )
        bound |= variables(pattern.positions)
    return solutions

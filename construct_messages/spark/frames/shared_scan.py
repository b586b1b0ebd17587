"""The shared scan of a query: quads that several patterns match, read once and shuffled by subject.

Text is parsed and checked each time that it is read, which takes longer than the rest of the evaluation. The optimizer
decides which patterns share a scan; each pattern then selects its own quads from the result, in `scans` or `stars`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import functions as F

from construct_messages.query.algebra.plan import Dataset, Scan
from construct_messages.spark.frames.scans import needed_quads
from construct_messages.spark.quads.table import COLUMNS, QuadTable


def shared_scan(scans: Iterable[Scan], table: QuadTable, dataset: Dataset) -> QuadTable:
    """Returns the quads that any of the patterns needs, with all quads of a subject in one partition.

    Args:
        scans: the patterns, with the filters pushed down to them.
        table: all quads.
        dataset: the graphs of FROM and FROM NAMED.
    """
    quads = needed_quads(scans, table, dataset).frame.repartition("subject")
    # Spark would push the filters and columns of each pattern below the shuffle, and so read and shuffle the quads once
    # for each pattern, if that did not change an observed figure: this is the only purpose of the figure.
    # It is of all columns, as each pattern may need others; and two figures of a query must have different names.
    # Spark would count without reading columns that are never NULL.
    *others, last = COLUMNS
    count = F.expr(f"count({', '.join(others)}, nullif({last}, ''))")
    return replace(table, frame=quads.observe(f"shared scan {uuid4()}", count.alias("quads")))

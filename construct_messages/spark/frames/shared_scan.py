"""The shared scan of a query: quads that several patterns match, read once and shuffled by subject.

Text is parsed and checked each time that it is read, which takes longer than all else that is done with it. Which
patterns share a scan is decided by the optimizer; each then takes its own quads from the result, in `scans` or `stars`.
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
    """The quads that any of the patterns needs, those of one subject in one partition.

    Args:
        scans: the patterns, with the filters pushed down to them.
        table: all quads.
        dataset: the graphs of FROM and FROM NAMED.
    """
    quads = needed_quads(scans, table, dataset).frame.repartition("subject")
    # Spark would push what each pattern filters and selects below the shuffle, and so read and shuffle the quads once
    # for each pattern, if that did not change a figure that was asked for: this is all that the figure is for.
    # It is of all columns, as each pattern may need others; and no two figures of a query may have one name.
    # Spark would count without reading columns that are never NULL.
    *others, last = COLUMNS
    count = F.expr(f"count({', '.join(others)}, nullif({last}, ''))")
    return replace(table, frame=quads.observe(f"shared scan {uuid4()}", count.alias("quads")))

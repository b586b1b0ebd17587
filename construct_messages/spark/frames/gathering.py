"""The quads that several patterns of a query match, read once and together by their subjects.

What is read from text is parsed and checked each time that it is read, which takes longer than all else that is done
with it: so, it is read once for the whole query, and shuffled once. Which patterns are worth it is decided in
`optimize`; each then takes its own from here, by `scans` or `stars`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import Dataset, Demand
from construct_messages.spark.frames.scans import wanted
from construct_messages.spark.quads.table import COLUMNS, QuadTable


def gather(demands: Iterable[Demand], table: QuadTable, dataset: Dataset) -> QuadTable:
    """The quads that any of the patterns can use, those of one subject in one partition.

    Args:
        demands: what is going to be matched in them.
        table: all quads.
        dataset: what FROM and FROM NAMED say.
    """
    quads = wanted(demands, table, dataset).frame.repartition("subject")
    # Spark would push what each pattern filters and selects below the shuffle, and so read and shuffle the quads once
    # for each pattern, if that did not change a figure that was asked for: this is all that the figure is for.
    # It is of all columns, as each pattern may need others; and no two figures of a query may have one name.
    size = sum((F.coalesce(F.octet_length(name), F.lit(0)) for name in COLUMNS), start=F.lit(0))
    return replace(table, frame=quads.observe(f"gathered {uuid4()}", F.sum(size).alias("bytes")))

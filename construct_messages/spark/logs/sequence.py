"""A number for each message of a table, in the order of (file, block, ordinal). Native expressions of Spark only."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def with_sequence(messages: DataFrame) -> DataFrame:
    """Adds a column `sequence` to messages: 0, 1, 2, … in the order of (file, block, ordinal), without gaps.

    Blocks are counted first, so the logs are read twice, and no message moves between partitions.

    Args:
        messages: a DataFrame with the columns `file`, `block` and `ordinal`, with all rows of its logs.

    >>> messages = spark.createDataFrame([("a.nq", 0, 0), ("a.nq", 0, 1), ("b.nq", 0, 0)], ["file", "block", "ordinal"])
    >>> sorted(row["sequence"] for row in with_sequence(messages).collect())
    [0, 1, 2]
    """
    counted = messages.groupBy("file", "block").agg(F.count("*").alias("messages"))
    # the blocks alone are few enough for one task
    before = Window.orderBy("file", "block").rowsBetween(Window.unboundedPreceding, -1)
    first = counted.select(
        "file", "block", F.coalesce(F.sum("messages").over(before), F.lit(0)).alias("first")
    )
    return (
        messages.join(F.broadcast(first), ["file", "block"])
        .withColumn("sequence", F.col("first") + F.col("ordinal"))
        .drop("first")
    )

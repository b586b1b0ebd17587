"""Logs as data: `spark.read.format("rdfm")` and `frame.write.format("rdfm")`, once `register` has been called.

A log is read as rows (file, block, index, message). `splitting.py` says which messages belong to which bytes,
`blocks.py` what a task reads, `texts.py` what a message is in a DataFrame, `writing.py` how tasks make logs together;
`source.py` is the one room of these that knows Spark's data sources. RDF Messages, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes `rdfm` a format of a session, to read and to write."""
    from construct_messages.spark.logs.source import LogSource

    spark.dataSource.register(LogSource)

"""Sessions: what is missing is said with its remedy, and what Spark raises becomes an error of this package."""

from __future__ import annotations

from pyspark.sql import SparkSession


def test_session_runs(spark: SparkSession) -> None:
    assert spark.range(3).count() == 3

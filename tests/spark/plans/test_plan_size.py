"""How much Spark has to plan for the benchmark's query over a dump of text: it is what a short run waits for.

Counted are DataFrames, temporary views (Spark makes one of each DataFrame that a statement names, and drops it),
characters of SQL that Spark parses, and characters and relations of its plans. No times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.micro.spark_data import QUERY, write_dump
from tests.support.spark.sessions import executed, optimized

pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

MOST_FRAMES, MOST_VIEWS = 18, 3


class Counted:
    """What is made while it counts: DataFrames, temporary views, and characters of SQL."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        from pyspark.sql.classic.dataframe import DataFrame as Classic

        self.frames: list[object] = []
        self.sql = 0
        create = Classic.__init__

        def counted(frame: DataFrame, of_java: object, *rest: object) -> None:
            if of_java not in self.frames:  # pyspark calls it twice for some
                self.frames.append(of_java)
            create(frame, of_java, *rest)

        patch.setattr(Classic, "__init__", counted)
        create_view = Classic.createOrReplaceTempView
        self.views = 0

        def viewed(frame: DataFrame, name: str) -> None:
            self.views += 1
            create_view(frame, name)

        patch.setattr(Classic, "createOrReplaceTempView", viewed)
        from pyspark.sql import SparkSession

        for owner, name in ((Classic, "selectExpr"), (Classic, "filter"), (SparkSession, "sql")):
            self._count(patch, owner, name)

    def _count(self, patch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        called = getattr(owner, name)

        def counted(*arguments: object, **named: object) -> object:
            self.sql += sum(len(argument) for argument in arguments if isinstance(argument, str))
            return called(*arguments, **named)

        patch.setattr(owner, name, counted)


def test_a_query_of_five_patterns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from construct_messages.spark.construct import construct_messages
    from construct_messages.spark.quads.loading import load_quads

    dump = tmp_path / "dump.nt"
    write_dump(dump, 1000)
    with monkeypatch.context() as patch:
        counted = Counted(patch)
        quads = load_quads(spark, dump)
        frame = construct_messages(QUERY, quads).frame
    assert len(counted.frames) <= MOST_FRAMES
    assert counted.views <= MOST_VIEWS
    assert counted.sql <= 28_000
    assert len(optimized(frame)) <= 60_000
    plan = executed(frame)
    assert len(plan) <= 60_000
    # what the star collects, its hubs, and the places: one reading, which Spark shares as it runs
    assert plan.count("FileScan text") == 3
    frame.collect()
    assert executed(frame).partition("Initial Plan")[0].count("FileScan text") == 1
    assert plan.count("SortMergeJoin") == 0
    assert plan.count("\n") <= 60, "a plan that one can read"

"""Logs on Spark against one process: `python -m benchmarks micro spark_logs [--messages N] [--rounds N]`.

The messages are those of `micro.lines`, five quads each. One process reads and writes them with `read_log` and
`write_log`; Spark does with its data source `rdfm`, in one session with a thread for each core, whose start is measured
by itself. That Spark reads the log's lines as text, and nothing more, is there to compare with.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro.lines import generate
from construct_messages.logs.reading import read_log
from construct_messages.logs.writing import write_log
from construct_messages.spark.logs import register
from construct_messages.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUADS = 5
_QUADS_OF = "if(message = '', 0, length(message) - length(translate(message, '\n', '')) + 1)"


def main() -> None:
    """Measures reading, writing and converting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cores = os.cpu_count() or 1
    started = time.perf_counter()
    spark = local_session(f"local[{cores}]", {"spark.driver.memory": "1g"})
    register(spark)
    session = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.nq"
        log.write_text("".join(generate(arguments.messages)), encoding="utf-8")
        figures = measure(spark, log, arguments.messages, arguments.rounds)
    quads = QUADS * arguments.messages
    report(
        "spark_logs",
        f"Logs on Spark, {cores} cores: {arguments.messages} messages, {quads} quads",
        [Figure("session start", session), *figures],
    )
    spark.stop()


def measure(spark: SparkSession, log: Path, messages: int, rounds: int) -> list[Figure]:
    """Runs all in turn; each Spark run against the same in one process."""
    frame = spark.read.format("rdfm").option("maxPartitionBytes", "32m").load(str(log))
    _check(frame, messages)
    runs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "read": (lambda: sum(map(len, read_log(log))), lambda: _check(frame, messages)),
        **{
            f"to {format}": (
                partial(_write_one, log, format),
                partial(_write, frame, log.with_name("many"), format),
            )
            for format in ("nq", "trig")
        },
    }
    seconds = alternate(
        rounds, [lambda: spark.read.text(str(log)).selectExpr("sum(length(value))").collect()]
    )
    figures = [Figure("Spark, lines as text", seconds[0])]
    for what, pair in runs.items():
        one, many = alternate(rounds, pair)
        rate = QUADS * messages / many / 1000
        figures.append(Figure(f"one process, {what}", one))
        figures.append(Figure(f"Spark, {what}: {rate:.0f},000 quads a second", many, one / many))
    _check(spark.read.format("rdfm").load(str(log.with_name("many"))), messages)
    return figures


def _write_one(log: Path, format: str) -> None:
    write_log(read_log(log), log.with_name("one"), format)


def _write(frame: DataFrame, folder: Path, format: str) -> None:
    frame.write.format("rdfm").mode("overwrite").option("format", format).save(str(folder))


def _check(frame: DataFrame, messages: int) -> None:
    """Reads all, and compares the counts; a benchmark that is wrong prints nothing."""
    ((found, quads),) = frame.selectExpr("count(*)", f"sum({_QUADS_OF})").collect()
    if (found, quads) != (messages, QUADS * messages):
        raise SystemExit(f"wrong log: {found} messages with {quads} quads instead of {messages}")

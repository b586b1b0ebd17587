"""Structured Streaming beside Spark's text stream: `python -m benchmarks micro spark_streams [--rounds N]`.

Messages of three quads, in 30 N-Quads logs or in a stream of a server, by `trigger(availableNow=True)` in one session
of two cores. Windows are averages of 997 sensors each minute, of 6,000 messages. A CONSTRUCT of one pattern and a
FILTER is answered by `construct_stream`, and beside it by a streaming plan of Spark, written by hand. The figures are
CPU seconds of all processes, Java, Python workers and the server, halved: what two cores that do nothing else would
take. A first round, which starts workers and has Java compile, is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Figure, alternate, report, tree
from benchmarks.micro.stream_server import serving
from construct_messages.continuous import WindowOptions
from construct_messages.feeds import publish
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.terms.values import date_time_of
from construct_messages.spark import construct_stream, construct_windows, local_session, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_FILES = 30
_NAME = "http://example.org/property/"
_HIGH = f"""CONSTRUCT {{ ?observation a <http://example.org/High> ; <{_NAME}value> ?value }}
WHERE {{ ?observation <{_NAME}value> ?value FILTER(?value > 3000) }}"""
_MEANS = f"""CONSTRUCT {{ ?sensor <http://example.org/mean> ?mean }}
FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT1M STEP PT1M]
WHERE {{ {{ SELECT ?sensor (AVG(?value) AS ?mean) {{
    WINDOW <urn:w> {{ ?observation <{_NAME}sensor> ?sensor ; <{_NAME}value> ?value }} }} GROUP BY ?sensor }} }}"""
# queries that are evaluated by `foreachBatch`, which may read a batch again
_BATCHES = ("windows", "construct")
_GOALS = {"folder": 100_000, "sink": 60_000, "server": 100_000}


def main() -> None:
    """Measures each in turn, and checks that all messages came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="the names of some runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report(
            "spark_streams",
            f"{arguments.messages:,} messages of 3 quads, CPU seconds of two cores; ratio: to Spark's text stream",
            _measured(Path(name), arguments.messages, arguments.rounds, arguments.only),
        )


def message(number: int) -> str:
    """Three lines, about 350 bytes."""
    subject = f"<http://example.org/observation/{number}>"
    return "\n".join(
        (
            f"{subject} <http://example.org/property/sensor> <http://example.org/sensor/{number % 997}> .",
            f'{subject} <http://example.org/property/time> "{date_time_of(number * 10_000)}"^^'
            "<http://www.w3.org/2001/XMLSchema#dateTime> .",
            f'{subject} <http://example.org/property/value> "{number % 4001}"^^'
            "<http://www.w3.org/2001/XMLSchema#integer> .",
        )
    )


def _write(folder: Path, messages: int) -> None:
    folder.mkdir()
    each = messages // _FILES
    for file in range(_FILES):
        numbers = range(file * each, (file + 1) * each)
        log = "".join(f"# @message\n{message(number)}\n" for number in numbers)
        (folder / f"{file:02d}.nq").write_text(log)


def _native(messages: DataFrame) -> DataFrame:
    """What `_HIGH` finds, for integers in canonical form only."""
    line = rf'^(\S+) <{_NAME}value> "([0-9]+)"(\S+) [.]$'
    return (
        messages.selectExpr("explode(array_distinct(split(message, '\\n'))) AS line")
        .filter(f"contains(line, ' <{_NAME}value> ')")
        .selectExpr(
            *(f"regexp_extract(line, r'{line}', {n}) AS {c}" for n, c in enumerate("svt", 1))
        )
        .filter("try_cast(v AS DECIMAL(38, 0)) > 3000")
        .selectExpr(
            "concat(s, ' <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/High> .\\n',"
            f""" s, ' <{_NAME}value> "', v, '"', t, ' .') AS message"""
        )
    )


def _cpu_seconds() -> float:
    return sum(used for _, _, used in tree(os.getpid()))


def _measured(folder: Path, messages: int, rounds: int, only: list[str]) -> list[Figure]:
    logs = folder / "logs"
    _write(logs, messages)
    with serving(folder) as server:
        url = server.url
        if not only or "server" in only:
            whole = to_messages([message(number) for number in range(messages)])
            asyncio.run(publish(whole, url))
        spark = local_session(
            "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "1200m"}
        )
        register(spark)
        now = {"availableNow": True}

        def copied(frame: DataFrame, place: str, sink: str = "noop") -> StreamingQuery:
            writer = frame.writeStream.format(sink).option("checkpointLocation", f"{place}-state")
            return writer.trigger(availableNow=True).start(place)

        def folder_of_logs() -> DataFrame:
            return spark.readStream.format("rdfm").load(str(logs))

        runs: dict[str, Callable[[str], StreamingQuery]] = {
            "text": lambda place: copied(spark.readStream.text(str(logs)), place),
            "folder": lambda place: copied(folder_of_logs(), place),
            "sink": lambda place: copied(folder_of_logs(), place, "rdfm"),
            "server": lambda place: copied(spark.readStream.format("rdfm").load(url), place),
            "windows": lambda place: construct_windows(
                _MEANS,
                folder_of_logs(),
                place,
                checkpoint=f"{place}-state",
                options=WindowOptions(time=f"<{_NAME}time>"),
                trigger=now,
            ),
            "construct": lambda place: construct_stream(
                _HIGH, folder_of_logs(), place, checkpoint=f"{place}-state", trigger=now
            ),
            "native": lambda place: copied(_native(folder_of_logs()), place, "rdfm"),
        }
        runs = {name: runs[name] for name in runs if name in ("text", *(only or runs))}
        numbers = count()

        def run(name: str) -> None:
            query = runs[name](str(folder / f"{name}-{next(numbers)}"))
            query.awaitTermination()
            read = sum(progress["numInputRows"] for progress in query.recentProgress)
            if read != (4 * messages if name == "text" else messages) and name not in _BATCHES:
                raise SystemExit(f"{name}: {read} of {messages} messages")

        seconds = alternate(rounds, [partial(run, name) for name in runs], _cpu_seconds)
        spark.stop()
    halves = {name: each / 2 for name, each in zip(runs, seconds, strict=True)}
    titles = {
        "text": "Spark's text stream",
        "folder": "folder of logs",
        "sink": "folder of logs → folder of logs",
        "server": "stream of a server",
        "windows": "averages of each minute → folder of logs",
        "construct": "construct_stream, one pattern → folder of logs",
        "native": "the same as a streaming plan by hand",
    }
    return [
        Figure(
            f"{titles[name]}: {messages / each:,.0f} messages/s",
            each,
            each / halves["text"],
            f"≥ {_GOALS[name]:,} messages/s" if name in _GOALS else "",
        )
        for name, each in halves.items()
    ]


if __name__ == "__main__":
    main()

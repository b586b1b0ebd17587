"""Structured Streaming beside Spark's text stream: `python -m benchmarks micro spark_streams [--rounds N]`.

Messages of three quads, in 30 N-Quads logs or in a stream of a server, by `trigger(availableNow=True)` in one session
of two cores. Windows are averages of 997 sensors each minute, of 6,000 messages. `construct_stream` answers a CONSTRUCT
of one pattern and a FILTER, one of three patterns, and one with a static table of 997 rooms; the first also a streaming
plan of Spark, written by hand, which checks nothing. `--batches` cuts the folder into micro-batches. The figures are
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
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Figure, alternate, report, tree
from benchmarks.micro.stream_server import serving
from construct_messages.continuous import WindowOptions
from construct_messages.feeds import publish
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.terms.values import date_time_of
from construct_messages.spark import (
    QuadTable,
    construct_stream,
    construct_windows,
    local_session,
    register,
)

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
_PARTS = f"""CONSTRUCT {{ [] <{_NAME}sensor> ?sensor ; <{_NAME}time> ?time ; <{_NAME}value> ?value }}
WHERE {{ ?observation <{_NAME}sensor> ?sensor ; <{_NAME}time> ?time ; <{_NAME}value> ?value }}"""
_ROOMS = f"""CONSTRUCT {{ ?room <{_NAME}value> ?value }}
WHERE {{ ?observation <{_NAME}sensor> ?sensor ; <{_NAME}value> ?value .
    GRAPH <urn:rooms> {{ ?sensor <urn:in> ?room }} }}"""
# queries that are evaluated by `foreachBatch`, which may read a batch again
_BATCHES = ("windows", "construct", "three", "static")
_GOALS = {"folder": 100_000, "sink": 60_000, "server": 100_000}


def main() -> None:
    """Measures each in turn, and checks that all messages came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=1, help="of the folder, up to 30")
    parser.add_argument("--only", nargs="*", default=[], help="the names of some runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report(
            "spark_streams",
            f"{arguments.messages:,} messages of 3 quads, CPU seconds of two cores; ratio: to Spark's text stream",
            _measured(Path(name), arguments),
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


def _measured(folder: Path, arguments: argparse.Namespace) -> list[Figure]:
    messages, only, logs = arguments.messages, arguments.only, folder / "logs"
    files = str(-(-_FILES // arguments.batches))
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
            reader = spark.readStream.format("rdfm").option("maxFilesPerTrigger", files)
            return reader.load(str(logs))

        sensors = spark.range(997).selectExpr(
            "concat('<http://example.org/sensor/', id, '>') AS subject",
            "'<urn:in>' AS predicate",
            "concat('<urn:room:', id % 40, '>') AS object",
        )
        rooms = {"urn:rooms": QuadTable.of(sensors, assume_distinct=True)}

        def constructed(query: str, place: str, **options: Any) -> StreamingQuery:
            state = f"{place}-state"
            return construct_stream(
                query, folder_of_logs(), place, checkpoint=state, trigger=now, **options
            )

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
            "construct": lambda place: constructed(_HIGH, place),
            "three": lambda place: constructed(_PARTS, place),
            "static": lambda place: constructed(_ROOMS, place, graphs=rooms),
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

        seconds = alternate(arguments.rounds, [partial(run, name) for name in runs], _cpu_seconds)
        spark.stop()
    halves = {name: each / 2 for name, each in zip(runs, seconds, strict=True)}
    titles = {
        "text": "Spark's text stream",
        "folder": "folder of logs",
        "sink": "folder of logs → folder of logs",
        "server": "stream of a server",
        "windows": "averages of each minute → folder of logs",
        "construct": "construct_stream, one pattern → folder of logs",
        "three": "construct_stream, three patterns → folder of logs",
        "static": "construct_stream, two patterns and a static table → folder of logs",
        "native": "one pattern by a streaming plan by hand → folder of logs",
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

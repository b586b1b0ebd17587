"""Structured Streaming beside Spark's text stream: `python -m benchmarks micro spark_streams [--rounds N]`.

Messages of three quads, in 30 N-Quads logs or in a stream of a server, by `trigger(availableNow=True)` in one session
of two cores. The figures are CPU seconds of all processes, Java, Python workers and the server, halved: what two cores
that do nothing else would take. A first round, which starts workers and has Java compile, is not counted.
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
from typing import Any

from benchmarks.harness import Figure, alternate, report, tree
from benchmarks.micro.stream_server import serving
from construct_messages.feeds import publish
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.spark import local_session, register

_FILES = 30
_GOALS = {"folder": 100_000, "sink": 60_000, "server": 100_000}


def main() -> None:
    """Measures each in turn, and checks that all messages came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report(
            "spark_streams",
            f"{arguments.messages:,} messages of 3 quads, CPU seconds of two cores; ratio: to Spark's text stream",
            _measured(Path(name), arguments.messages, arguments.rounds),
        )


def message(number: int) -> str:
    """Three lines, about 330 bytes."""
    subject = f"<http://example.org/observation/{number}>"
    return "\n".join(
        (
            f"{subject} <http://example.org/property/sensor> <http://example.org/sensor/{number % 997}> .",
            f'{subject} <http://example.org/property/label> "observation number {number}"@en .',
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


def _cpu_seconds() -> float:
    return sum(used for _, _, used in tree(os.getpid()))


def _measured(folder: Path, messages: int, rounds: int) -> list[Figure]:
    logs = folder / "logs"
    _write(logs, messages)
    with serving(folder) as server:
        url = server.url
        whole = to_messages([message(number) for number in range(messages)])
        asyncio.run(publish(whole, url))
        spark = local_session(
            "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "1200m"}
        )
        register(spark)
        rdfm = spark.readStream.format("rdfm")
        runs: dict[str, Callable[[], Any]] = {
            "text": lambda: spark.readStream.text(str(logs)),
            "folder": lambda: rdfm.load(str(logs)),
            "sink": lambda: rdfm.load(str(logs)),
            "server": lambda: spark.readStream.format("rdfm").load(url),
        }
        numbers = count()

        def run(name: str) -> None:
            place = folder / f"{name}-{next(numbers)}"
            sink = "rdfm" if name == "sink" else "noop"
            writer = runs[name]().writeStream.format(sink).trigger(availableNow=True)
            query = writer.option("checkpointLocation", f"{place}-checkpoint").start(str(place))
            query.awaitTermination()
            read = sum(progress["numInputRows"] for progress in query.recentProgress)
            if read != (4 * messages if name == "text" else messages):
                raise SystemExit(f"{name}: {read} of {messages} messages")

        seconds = alternate(rounds, [partial(run, name) for name in runs], _cpu_seconds)
        spark.stop()
    halves = {name: each / 2 for name, each in zip(runs, seconds, strict=True)}
    titles = {
        "text": "Spark's text stream",
        "folder": "folder of logs",
        "sink": "folder of logs → folder of logs",
        "server": "stream of a server",
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

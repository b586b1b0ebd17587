"""Queries of the shape of SP2Bench's in one kept session of Spark, beside Oxigraph.

`python -m benchmarks micro spark_joins [--triples N …]`. Spark (two cores, a heap of 1.2 GB) loads a dump into a table
and answers each query three times, from the text of the query to a folder of logs: the first time with all that a new
query costs, planning included. Oxigraph loads the dump into memory and answers each query once, to a log. Both give the
same number of messages, or nothing is printed. A query that takes longer than the limit is stopped, and told as such;
what Oxigraph does not answer in time is not asked of it again over more data.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import pyoxigraph as ox
from rich.console import Console
from rich.table import Table

from benchmarks.harness import record
from benchmarks.micro.spark import two_cores
from benchmarks.micro.spark_papers import QUERIES, write_papers
from construct_messages import construct_messages as embedded
from construct_messages.spark.construct import construct_messages
from construct_messages.spark.quads.loading import load_quads, read_quads, write_quads
from construct_messages.spark.session import failures

SIZES = (250_000, 1_000_000)
_LOAD = "load"
_TIMES = 3
_LIMIT = 20.0
_GOAL = 3  # times Oxigraph's load and query


@dataclass(frozen=True)
class Answer:
    """What one engine did with a query, or while it loaded the dump.

    Args:
        engine: its name.
        query: the query's name, or `load`.
        seconds: each time that it came to an end; empty if it was stopped.
        messages: how many it gave.
        planned: the part of the first time that is planning, at Spark.
        failure: why it did not come to an end.
    """

    engine: str
    query: str
    seconds: Sequence[float] = ()
    messages: int | None = None
    planned: float | None = None
    failure: str = ""


@dataclass(frozen=True)
class Row:
    """One query at one size."""

    triples: int
    query: str
    oxigraph_load: float
    oxigraph: Answer
    spark: Answer


def main() -> None:
    """Measures each size, or (with --engine) what one engine takes for a dump."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=tuple(QUERIES))
    parser.add_argument(
        "--limit", type=float, default=_LIMIT, metavar="SECONDS", help="for one answer of an engine"
    )
    parser.add_argument("--engine", nargs=2, metavar=("NAME", "DUMP"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        name, dump = arguments.engine
        for answer in _ENGINES[name](Path(dump), arguments.queries, arguments.limit):
            print(json.dumps(asdict(answer)), flush=True)
        return
    rows: list[Row] = []
    late: set[str] = set()
    for triples in sorted(arguments.triples):
        found = list(_measured(triples, arguments.queries, arguments.limit, late))
        late |= {row.query for row in found if row.oxigraph.failure}
        _print(triples, found, arguments.limit)
        rows += found
    record("spark_joins", rows)


def _measured(triples: int, queries: Sequence[str], limit: float, late: set[str]) -> Iterator[Row]:
    answers: dict[tuple[str, str], Answer] = {}
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.nt"
        write_papers(dump, triples)
        for engine, asked in (
            ("oxigraph", [name for name in queries if name not in late]),
            ("spark", queries),
        ):
            for answer in _answers(engine, dump, asked, limit):
                answers[engine, answer.query] = answer
                taken = (
                    ", ".join(f"{seconds:.2f} s" for seconds in answer.seconds) or answer.failure
                )
                print(
                    f"{triples:,} triples, {engine}, {answer.query}: {taken}",
                    file=sys.stderr,
                    flush=True,
                )
    for name in queries:
        one = answers.get(("oxigraph", name), Answer("oxigraph", name, failure="not asked again"))
        other = answers["spark", name]
        if not one.failure and not other.failure and one.messages != other.messages:
            raise SystemExit(
                f"{triples:,} triples, {name}: the numbers of messages differ: {one}, {other}"
            )
        yield Row(triples, name, answers["oxigraph", _LOAD].seconds[0], one, other)
    print(
        f"{triples:,} triples, loaded by Spark: {answers['spark', _LOAD].seconds[0]:.1f} s",
        file=sys.stderr,
    )


def _answers(engine: str, dump: Path, queries: Sequence[str], limit: float) -> Iterator[Answer]:
    """What one engine answers, in a process of its own, as it comes."""
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "micro",
        "spark_joins",
        "--engine",
        engine,
        str(dump),
    ]
    command += ["--limit", str(limit), "--queries", *queries]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield Answer(**json.loads(line))
    if process.returncode:
        raise SystemExit(f"{engine} failed over {dump}")


def _print(triples: int, rows: Sequence[Row], limit: float) -> None:
    """A line for each query; what was stopped counts as the limit in ratios to it."""
    load = rows[0].oxigraph_load
    table = Table(
        title=f"{triples:,} triples; Oxigraph's load: {load:.1f} s; ratios to load and query, and to query"
    )
    for head in (
        "",
        "messages",
        "Oxigraph",
        "Spark plans",
        "1st",
        "2nd",
        "3rd",
        "1st : load + query",
        "2nd : query",
    ):
        table.add_column(head, justify="right" if head else "left")
    for row in rows:
        one, other = row.oxigraph, row.spark
        base = one.seconds[0] if one.seconds else limit
        times = [f"{seconds:.2f} s" for seconds in other.seconds] or [other.failure, "", ""]
        ratios = ["", ""]
        if other.seconds:
            most = "" if one.seconds else "< "
            ratios = [
                f"{most}{other.seconds[0] / (load + base):.2f} ×",
                f"{most}{other.seconds[1] / base:.2f} ×",
            ]
        table.add_row(
            row.query,
            "" if other.messages is None else f"{other.messages:,}",
            f"{one.seconds[0]:.3f} s" if one.seconds else one.failure,
            "" if other.planned is None else f"{other.planned:.2f} s",
            *times,
            *ratios,
        )
    Console(width=120).print(table)


# --- the engines, each in a process of its own ------------------------------------------------------------------------


def _oxigraph(dump: Path, queries: Sequence[str], limit: float) -> Iterator[Answer]:
    store, started = ox.Store(), time.perf_counter()
    store.bulk_load(path=str(dump))
    yield Answer("oxigraph", _LOAD, [time.perf_counter() - started])
    forks = multiprocessing.get_context("fork")
    for name in queries:
        # a fork has the store, and can be stopped
        receiver, sender = forks.Pipe(duplex=False)
        process = forks.Process(
            target=_send, args=(sender, name, store, dump.with_name("oxigraph.nq"))
        )
        process.start()
        if receiver.poll(limit):
            yield Answer(*receiver.recv())
        else:
            process.kill()
            yield Answer("oxigraph", name, failure=f"> {limit:g} s")
        process.join()


def _send(sender: Any, name: str, store: ox.Store, log: Path) -> None:
    started = time.perf_counter()
    messages = embedded(QUERIES[name], store).write(log)
    sender.send(("oxigraph", name, [time.perf_counter() - started], messages))


def _spark(dump: Path, queries: Sequence[str], limit: float) -> Iterator[Answer]:
    spark, table, log = two_cores(), dump.with_name("quads"), dump.with_name("log")
    started = time.perf_counter()
    write_quads(load_quads(spark, dump), table)
    yield Answer("spark", _LOAD, [time.perf_counter() - started])
    quads = read_quads(spark, table)
    for name in queries:
        seconds: list[float] = []
        messages = planned = None
        for _ in range(_TIMES):
            timer = Timer(limit, spark.sparkContext.cancelAllJobs)
            started = time.perf_counter()
            timer.start()
            try:
                asked = construct_messages(QUERIES[name], quads)
                if planned is None:
                    asked.frame._jdf.queryExecution().executedPlan()
                    planned = time.perf_counter() - started
                messages = asked.write(log, mode="overwrite").message_count
            except failures():
                if time.perf_counter() - started < limit:
                    raise
                yield Answer("spark", name, planned=planned, failure=f"> {limit:g} s")
                break
            finally:
                timer.cancel()
            seconds.append(time.perf_counter() - started)
        else:
            yield Answer("spark", name, seconds, messages, planned)
    spark.stop()


_ENGINES: dict[str, Callable[[Path, Sequence[str], float], Iterator[Answer]]] = {
    "oxigraph": _oxigraph,
    "spark": _spark,
}

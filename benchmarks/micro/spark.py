"""CONSTRUCT over a dump on Spark against Oxigraph and DuckDB: `python -m benchmarks micro spark [--triples N …]`.

Every run is a cold process of this package's command line, with the session's start: a dump of N-Triples becomes an
N-Quads log. Oxigraph loads the dump into memory and answers the query there; DuckDB loads it into a table, and answers
from that; Spark has two cores and a heap of 1.2 GB.
Memory is the most that the process, the JVM and the Python workers hold together. All
logs must have the same messages and quads, or nothing is printed. What a session takes that is kept, and that Java
has compiled the work of, is measured beside: the third time of three.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.harness import Figure, Run, completed, report
from benchmarks.micro.spark_data import QUERY, write_dump
from construct_messages.spark.construct import construct_messages
from construct_messages.spark.quads.loading import append_quads, load_quads, read_quads
from construct_messages.spark.session import local_session

SIZES = (2_000_000, 5_000_000, 10_000_000, 20_000_000)
_TIMES = 3
_FILES = 20
# from text, for as many triples at most
_GOALS = (
    (20_000, "≤ 9 s"),
    (4_999_999, ""),
    (9_999_999, "≥ 1.2"),
    (19_999_999, "≥ 2"),
    (sys.maxsize, "≥ 3"),
)
_MASTER, _MEMORY = "local[2]", "1200m"
_SPARK = ("--master", _MASTER, "--conf", f"spark.driver.memory={_MEMORY}")


def main() -> None:
    """Measures each size, or (with --session) what one session takes for the same work again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--session", type=Path, nargs=3, metavar=("DUMP", "TABLE", "QUERY"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.session:
        print(json.dumps(_session(*arguments.session)))
        return
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        for triples in arguments.triples:
            figures += _measure(triples, Path(name), arguments.rounds)
    report(
        "spark",
        "from a dump to an N-Quads log, cold processes; the ratio is Oxigraph's time to Spark's",
        figures,
    )


def _measure(triples: int, folder: Path, rounds: int) -> list[Figure]:
    dump, query, table = folder / "dump.nt", folder / "query.rq", folder / "table"
    duckdb = folder / "duckdb"
    write_dump(dump, triples)
    query.write_text(QUERY)
    size, logs = (
        f"{triples / 1e6:g}M",
        {name: folder / name for name in ("oxigraph.nq", "duckdb.nq", "text", "parquet")},
    )
    spark = ("spark", "run", str(query), *_SPARK)

    def run(name: str, source: Path) -> tuple[str, ...]:
        return "run", str(query), "--source", str(source), "--output", str(logs[name])

    commands = {
        "oxigraph.nq": run("oxigraph.nq", dump),
        "to duckdb": ("load", str(dump), "--output", str(duckdb)),
        "duckdb.nq": run("duckdb.nq", duckdb),
        "text": (*spark, "--quads", str(dump), "--output", str(logs["text"])),
        "load": (
            "spark",
            "load",
            str(dump),
            *_SPARK,
            "--output",
            str(table),
            "--mode",
            "overwrite",
        ),
        "parquet": (*spark, "--quads", str(table), "--output", str(logs["parquet"])),
    }
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):  # in turn, so that what the machine does meanwhile meets all alike
        for name, command in commands.items():
            if name in logs:
                shutil.rmtree(logs[name], ignore_errors=True)
            runs[name].append(_run(command))
    contents = {name: _contents(log) for name, log in logs.items()}
    if len(set(contents.values())) > 1:
        raise SystemExit(f"{size}: the logs differ in messages and quads: {contents}")
    oxigraph = statistics.median(run.seconds for run in runs["oxigraph.nq"])

    def figure(what: str, name: str, goal: str = "") -> Figure:
        seconds = statistics.median(run.seconds for run in runs[name])
        peak = max(run.peak_bytes for run in runs[name]) / 2**30
        said = runs[name][-1].stderr.strip().rpartition("(")[2].rstrip(")")
        stages = f" ({said})" if said and name in ("text", "load", "parquet") else ""
        ratio = None if name in ("oxigraph.nq", "load", "to duckdb") else oxigraph / seconds
        cpu = statistics.median(run.cpu_seconds for run in runs[name])
        return Figure(
            f"{size}, {what}: {cpu:.1f} CPU s, {peak:.1f} GiB{stages}", seconds, ratio, goal
        )

    from_text = next(goal for most, goal in _GOALS if triples <= most)
    from_table = "≥ 3" if triples >= 10_000_000 else ""
    session = _run(("--session", str(dump), str(table), str(query)), "benchmarks", "micro", "spark")
    kept: dict[str, list[float]] = json.loads(session.stdout.splitlines()[-1])

    def again(what: str, name: str) -> Figure:
        return Figure(
            f"{size}, again in one session, {what}", kept[name][-1], oxigraph / kept[name][-1]
        )

    parsed = kept["parse"]
    added, replaced = (statistics.median(kept[name]) for name in ("add", "replace"))
    rates = [f"{triples / seconds / 1e6:.2f}M triples/s" for seconds in (parsed[0], parsed[-1])]
    return [
        figure(f"{contents['text'][0]:,} messages, Oxigraph: load and query", "oxigraph.nq"),
        figure("DuckDB, text to a table", "to duckdb"),
        figure("DuckDB, from the table", "duckdb.nq"),
        figure("Spark, from text", "text", from_text),
        figure("Spark, text to Parquet with statistics", "load"),
        figure("Spark, from Parquet", "parquet", from_table),
        again("from text", "text"),
        again("from Parquet", "parquet"),
        Figure(f"{size}, {_FILES} files added to a table, CPU s of a warm session", added),
        Figure(
            f"{size}, one of them replaced, CPU s; the ratio is its part of adding all",
            replaced,
            replaced / added,
            "≤ 0.15",
        ),
        Figure(
            f"{size}, text checked and cut, {rates[1]} (at first {rates[0]})",
            parsed[-1],
            None,
            "≥ 3M/s",
        ),
    ]


def _run(arguments: tuple[str, ...], *program: str) -> Run:
    """One cold process of this package's command line, or of `program`."""
    return completed([sys.executable, "-m", *(program or ("construct_messages",)), *arguments])


def _contents(log: Path) -> tuple[int, int]:
    """Messages and quads of a log, or of a folder of them."""
    messages = quads = 0
    for part in [log] if log.is_file() else sorted(log.rglob("part-*")):
        with part.open("rb") as lines:
            for line in lines:
                messages += line == b"# @message\n"
                quads += not line.startswith(b"#")
    return messages, quads


def two_cores() -> SparkSession:
    """A session as the command line is told to start one."""
    return local_session(_MASTER, {"spark.driver.memory": _MEMORY})


def _session(dump: Path, table: Path, query: Path) -> dict[str, list[float]]:
    """The seconds that one session takes each time: parsing a dump, and the query from text and from Parquet."""
    spark = two_cores()
    text, log = query.read_text(), query.with_name("again")

    def from_dump() -> None:
        quads = load_quads(spark, dump)
        construct_messages(text, quads).write(log, mode="overwrite")

    def from_table() -> None:
        construct_messages(text, read_quads(spark, table)).write(log, mode="overwrite")

    runs = {
        "parse": lambda: load_quads(spark, dump).write.format("noop").mode("overwrite").save(),
        "text": from_dump,
        "parquet": from_table,
    }
    seconds = {name: [_seconds(run) for _ in range(_TIMES)] for name, run in runs.items()}
    seconds |= _growing(spark, dump)
    spark.stop()
    return seconds


def _growing(spark: SparkSession, dump: Path) -> dict[str, list[float]]:
    """The CPU seconds of Java for adding the files of a dump to a table, and for replacing one of them."""
    parts = [dump.with_name(f"part{number}.nt") for number in range(_FILES)]
    size = -(-dump.stat().st_size // _FILES)
    with dump.open("rb") as lines:
        for part in parts:
            part.write_bytes(b"".join(lines.readlines(size)))
    table = dump.with_name("growing")

    def add(files: list[Path]) -> float:
        started = _java_seconds(spark)
        append_quads(spark, files, table)
        return _java_seconds(spark) - started

    return {
        "add": [add(parts) for _ in range(_TIMES)],
        "replace": [add(parts[number : number + 1]) for number in range(_TIMES)],
    }


def _java_seconds(spark: SparkSession) -> float:
    """The CPU seconds of Spark's Java process."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]  # Java's
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started

"""Loads into one table at once, by Spark and by processes of DuckDB: each is there as a whole, or fails aloud."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyspark")

import pyarrow.parquet as pq

from construct_messages.errors import ConstructMessagesError
from construct_messages.spark.quads.loading import append_quads, read_quads
from construct_messages.sparql.relational import quads
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.process, pytest.mark.slow]

LINES = 200
Versions = dict[str, int]


def write(source: Path, version: int) -> None:
    """A file whose lines all name its version."""
    lines = (f'<urn:{source.stem}> <urn:v{version}> "{line}" .\n' for line in range(LINES))
    source.write_text("".join(lines))


def versions(rows: list[tuple[str, str]]) -> Versions:
    """The version of each source, by subjects and predicates: each is there whole, and once."""
    found = defaultdict[str, dict[str, int]](lambda: defaultdict(int))
    for subject, predicate in rows:
        found[subject[5:-1]][predicate[6:-1]] += 1
    assert all(list(of.values()) == [LINES] for of in found.values()), found
    return {source: int(next(iter(of))) for source, of in found.items()}


def by_record(table: Path) -> Versions:
    """What a reader finds by the record of the table."""
    files = [
        pq.read_table(file, columns=["subject", "predicate"])
        for file in quads.read_quads(table).files
    ]
    return versions(
        [(row["subject"], row["predicate"]) for file in files for row in file.to_pylist()]
    )


def by_duckdb(table: Path, sources: list[Path]) -> str | None:
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "load",
        "--quiet",
        "--output",
        str(table),
    ]
    done = subprocess.run(
        [*command, *map(str, sources)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1, 2), done.stderr
    assert (done.returncode == 0) == (done.stderr == ""), done.stderr
    return done.stderr or None


def by_spark(spark: SparkSession) -> Callable[[Path, list[Path]], str | None]:
    def load(table: Path, sources: list[Path]) -> str | None:
        try:
            append_quads(spark, [str(source) for source in sources], table)
        except ConstructMessagesError as error:
            return str(error)
        return None

    return load


def test_loads_at_once(quick: SparkSession, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """After each round the table has what loads that ended well have loaded, and what it had before of others."""
    rounds, seed = 3 * pytestconfig.getoption("--rounds"), Random().randrange(1 << 32)
    chance, table = Random(seed), tmp_path / "table"
    loaders = dict(
        zip("abcd", [by_duckdb, by_duckdb, by_spark(quick), by_spark(quick)], strict=True)
    )
    sources = {name: tmp_path / f"{name}.nt" for name in (*loaders, "shared")}
    for source in sources.values():
        write(source, 0)
    expected: Versions = {"a": 0, "shared": 0}
    assert by_duckdb(table, [sources["a"], sources["shared"]]) is None
    failed, seen = dict[str, str](), list[Versions]()
    for number in range(1, rounds + 1):
        for source in sources.values():
            write(source, number)
        ended, outcomes = Event(), dict[str, str | None]()

        def load(name: str, delay: float, outcomes: dict[str, str | None] = outcomes) -> None:
            time.sleep(delay)
            outcomes[name] = loaders[name](table, [sources[name], sources["shared"]])

        def read(ended: Event = ended) -> None:
            while not ended.is_set():
                try:
                    seen.append(by_record(table))
                except FileNotFoundError:  # replaced after the record was read: a query fails then
                    continue

        delays = [chance.random() * 1.5 for _ in loaders]
        threads = [Thread(target=load, args=each) for each in zip(loaders, delays, strict=True)]
        reader = Thread(target=read)
        for thread in (reader, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        reader.join()
        done = [name for name, error in outcomes.items() if error is None]
        failed |= {f"{number} {name}": error for name, error in outcomes.items() if error}
        assert len(outcomes) == len(loaders), seed
        expected |= dict.fromkeys([*done, *(["shared"] if done else [])], number)
        assert by_record(table) == expected, (seed, number, outcomes)
    rows = read_quads(quick, table).frame.select("subject", "predicate").collect()
    assert versions([(row.subject, row.predicate) for row in rows]) == expected
    assert seen
    for before, after in pairwise(seen):
        assert all(after[source] >= before[source] for source in before), (before, after)
    print(
        f"\nseed {seed}: {rounds * len(loaders)} loads, {len(failed)} failed:",
        *{*failed.values()},
        sep="\n",
    )

"""Timing, checking and reporting: what the benchmarks share."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pyoxigraph as ox
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One line of a table: seconds are the median of the rounds, the ratio is of medians within one run."""

    what: str
    seconds: float
    ratio: float | None = None
    goal: str = ""


def alternate(
    rounds: int,
    runs: Sequence[Callable[[], object]],
    clock: Callable[[], float] = time.perf_counter,
    before_each: Callable[[], object] = lambda: None,
) -> list[float]:
    """Median seconds of each run, taken in turn so that what the machine does meanwhile meets all alike.

    Args:
        rounds: how often each is measured.
        runs: what is measured.
        clock: `time.process_time` for the CPU seconds of all threads.
        before_each: what is done before each run, unmeasured.
    """
    seconds: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()  # once unmeasured: caches, allocator
    for _ in range(rounds):
        for index, run in enumerate(runs):
            before_each()
            started = clock()
            run()
            seconds[index].append(clock() - started)
    return [statistics.median(each) for each in seconds]


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keeps all cores but one busy with other processes; threads of this process still run wherever they may."""
    cores = os.sched_getaffinity(0)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in cores - {min(cores)}]
    try:
        for other, core in zip(others, cores - {min(cores)}, strict=True):
            os.sched_setaffinity(other.pid, {core})
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextmanager
def one_core() -> Iterator[None]:
    """Leaves one core to all threads of this process."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # threads inherit it
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def check_log(chunks: Iterable[bytes], messages: int, quads: int) -> None:
    """Reads an rdfm log back with pyoxigraph and compares the counts; a benchmark that is wrong prints nothing."""
    log = b"".join(chunks)
    found = sum(line == b"# @message" for line in log.split(b"\n"))
    read = sum(1 for _ in ox.parse(log, ox.RdfFormat.N_QUADS))
    if (found, read) != (messages, quads):
        raise SystemExit(f"wrong log: {found} messages with {read} quads instead of {messages} with {quads}")


def report(name: str, title: str, figures: Sequence[Figure]) -> None:
    """Prints the table, and writes it with the machine's description to benchmarks/results/NAME.json."""
    table = Table(title=title)
    for column in ("", "median", "ratio", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} ×"
        table.add_row(figure.what, f"{figure.seconds:.3f} s", ratio, figure.goal)
    Console(width=120).print(table)
    record = {
        "benchmark": name,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "versions": {
            package: version(package) for package in ("construct-messages", "pyoxigraph", "msgspec", "aiohttp")
        },
        "figures": [asdict(figure) for figure in figures],
    }
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")

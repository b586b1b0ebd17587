"""Peak memory of 100,000 and of 1,000,000 solutions: `python -m benchmarks micro memory`.

Each run is a fresh process; the query's LIMIT says how many solutions. Embedded, the engine's own caches are in the
figure too, and grow with what it reads, so the engine alone is measured beside; through HTTP the process is ours.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import pyoxigraph as ox

from benchmarks.harness import Figure, completed, report
from benchmarks.micro import data
from benchmarks.micro.engine import oxigraph_server
from construct_messages import ConstructQuery, construct_messages

SIZES = (100_000, 1_000_000)


def main() -> None:
    """Measures the peak of each size, or (with --solutions) one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    parser.add_argument("--how", choices=("engine", "log", "messages"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.solutions:
        _run(arguments.source, arguments.solutions, arguments.how)
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        # in a process of its own: a child is charged with what its parent held when it was forked
        build = multiprocessing.get_context("spawn").Process(target=_build, args=(store,))
        build.start()
        build.join()
        with oxigraph_server(store) as url:
            figures = [
                *_measure("embedded, the engine alone: SELECT → TSV", str(store), "engine"),
                *_measure("embedded, N-Quads log", str(store), "log"),
                *_measure("embedded, Message objects", str(store), "messages"),
                *_measure("endpoint (JSON), N-Quads log", url, "log"),
                *_measure("endpoint (JSON), Message objects", url, "messages"),
            ]
    report(
        "memory",
        "seconds, and peak resident memory of the process (the ratio is of memory)",
        figures,
    )


def _measure(what: str, source: str, how: str) -> list[Figure]:
    figures, peaks = [], []
    for size in SIZES:
        command = [
            sys.executable,
            "-m",
            "benchmarks",
            "micro",
            "memory",
            "--source",
            source,
            "--how",
            how,
        ]
        done = completed([*command, "--solutions", str(size)])
        run = json.loads(done.stdout)
        if run["messages"] != size:
            raise SystemExit(f"{what}: {run['messages']} messages instead of {size}")
        peaks.append(done.peak_bytes)
        ratio, goal = (peaks[-1] / peaks[0], "≤ 1.2") if len(peaks) > 1 else (None, "")
        figures.append(
            Figure(f"{what}, {size}: {peaks[-1] / 2**20:.0f} MiB", run["seconds"], ratio, goal)
        )
    return figures


def _build(path: Path) -> None:
    data.store(int(max(SIZES) * 1.05), path)


def _run(source: str, solutions: int, how: str) -> None:
    query = f"{data.SPECIFICATION} LIMIT {solutions}"
    started = time.perf_counter()
    messages = 0
    if how == "engine":
        select = ConstructQuery.parse(query).select
        found = ox.Store.read_only(source).query(select)
        assert isinstance(found, ox.QuerySolutions)
        with open("/dev/null", "wb") as nowhere:
            found.serialize(nowhere, ox.QueryResultsFormat.TSV)
        messages = solutions
    else:
        stream = construct_messages(query, source)
        for _ in stream.serialize("nq") if how == "log" else stream:
            pass
        messages = stream.message_count
    print(json.dumps({"messages": messages, "seconds": time.perf_counter() - started}))

"""Watching a source of 100,000 solutions, of which 1 % change, beside the SELECT alone; and the size of its state.

`python -m benchmarks micro watch`; the ratio is the watch's time to that of the SELECT. The source is a store in this
process, the quickest there is, so that what comparing costs shows.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import time
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox

from benchmarks.harness import Figure, report
from construct_messages import construct_messages
from construct_messages.continuous import Watch
from construct_messages.streams import open_store

_EXAMPLE = "http://example.org/"
_QUERY = f"""PREFIX : <{_EXAMPLE}>
CONSTRUCT {{ ?s :label ?name ; :size ?count }} WHERE {{ ?s :name ?name ; :count ?count }}"""
_NAME, _COUNT = ox.NamedNode(f"{_EXAMPLE}name"), ox.NamedNode(f"{_EXAMPLE}count")


def things(count: int) -> ox.Store:
    """A store with two literals for each of so many subjects."""
    store = ox.Store()
    store.bulk_extend(
        quad
        for number in range(count)
        for thing in [ox.NamedNode(f"{_EXAMPLE}thing/{number}")]
        for quad in (
            ox.Quad(thing, _NAME, ox.Literal(f"The name of thing {number}", language="en")),
            ox.Quad(thing, _COUNT, ox.Literal(number)),
        )
    )
    return store


def change(store: ox.Store, count: int, round: int) -> int:
    """Gives 1 % of the subjects another number; tells how many."""
    changed = range(round % 100, count, 100)
    for number in changed:
        thing = ox.NamedNode(f"{_EXAMPLE}thing/{number}")
        for quad in list(store.quads_for_pattern(thing, _COUNT, None)):
            store.remove(quad)
        store.add(ox.Quad(thing, _COUNT, ox.Literal(count * (round + 1) + number)))
    return len(changed)


async def select(store: ox.Store) -> int:
    """Reads the solutions alone; tells how many."""
    count = 0
    async with (
        construct_messages(_QUERY, store) as messages,
        aclosing(messages.abatches()) as batches,
    ):
        async for batch in batches:
            count += len(batch)
    return count


def size(path: Path) -> int:
    """Bytes of the tables of what was seen."""
    connection = sqlite3.connect(path)
    (bytes,) = connection.execute("SELECT total(pgsize) FROM dbstat WHERE name = 'seen'").fetchone()
    connection.close()
    return int(bytes)


async def measure(count: int, rounds: int, folder: Path) -> list[Figure]:
    """The figures; wall time, and CPU time of all threads."""
    store, path = things(count), folder / "watch.db"
    walls: dict[str, list[float]] = {"select": [], "watch": []}
    cpus: dict[str, list[float]] = {"select": [], "watch": []}
    with open_store(path) as kept:
        kept.create("out")
        watch = Watch(_QUERY, store, store=kept, stream="out", owner="watch")
        started = time.perf_counter()
        if await watch.evaluate() != count:
            raise SystemExit("the first evaluation did not find every solution")
        first = time.perf_counter() - started
        for round in range(rounds):
            changed = change(store, count, round)
            for name, expected in (("select", count), ("watch", changed)):
                wall, cpu = time.perf_counter(), time.process_time()
                found = await (select(store) if name == "select" else watch.evaluate())
                walls[name].append(time.perf_counter() - wall)
                cpus[name].append(time.process_time() - cpu)
                if found != expected:
                    raise SystemExit(f"{name} found {found} instead of {expected}")
    alone, watched = (statistics.median(walls[name]) for name in ("select", "watch"))
    alone_cpu, watched_cpu = (statistics.median(cpus[name]) for name in ("select", "watch"))
    each = size(path) / count
    return [
        Figure(f"SELECT of {count:,} solutions", alone),
        Figure("watch, 1 % changed", watched, watched / alone, "≤ 1.30 ×"),
        Figure("SELECT, CPU time", alone_cpu),
        Figure("watch, CPU time", watched_cpu, watched_cpu / alone_cpu),
        Figure("first evaluation, all is new", first, first / alone),
        Figure(f"{each:.1f} bytes of state a solution (goal: ≤ 32)", 0.0),
    ]


def main() -> None:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        figures = asyncio.run(measure(options.solutions, options.rounds, Path(folder)))
    report("watch", "watching a source beside its SELECT alone", figures)

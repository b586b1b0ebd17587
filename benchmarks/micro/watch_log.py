"""The bytes that a watch writes to append to a log file, by the size of the log.

`python -m benchmarks micro watch_log`. A first evaluation finds everything new and appends it a page of 1,000 messages
at a time, which is what makes the most pages. Counted are the bytes of all `write` calls of the process: to the log, to
its journal, and to the state, each divided by the size of the log. They must not grow with the log.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import Figure, report
from benchmarks.micro.watch import _QUERY, things
from construct_messages import read_log
from construct_messages.continuous import Watch
from construct_messages.feeds.delivery.targets import FileTarget
from construct_messages.feeds.forwarding import forward
from construct_messages.logs.writing import GrowingLog
from construct_messages.streams import open_store

_MOST = 10.0
"""How many bytes may be written for each of the log, whatever its size."""


def written() -> int:
    """The bytes that this process has written by `write` and its like (proc(5), wchar)."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


async def measure(count: int, folder: Path) -> tuple[float, float, float]:
    """Seconds of the appending, the bytes that it writes ÷ those of the log, and those of the whole run ÷ the same."""
    log, before = folder / "log.nq", written()
    with open_store(folder / "watch.db") as kept:
        kept.create("out")
        await Watch(_QUERY, things(count), store=kept, stream="out", owner="watch").evaluate()
        evaluated, started = written(), time.perf_counter()
        if await forward(kept, "out", "watch", FileTarget(GrowingLog(log, "nq"))) != count:
            raise SystemExit("not every solution was sent")
        seconds, end = time.perf_counter() - started, written()
    found = {quad.subject for message in read_log(log, "nq", syntax="rdfm") for quad in message}
    if len(found) != count:
        raise SystemExit(f"the log has {len(found)} subjects instead of {count}")
    size = log.stat().st_size
    return seconds, (end - evaluated) / size, (end - before) / size


def main() -> None:
    """Measures and reports.

    Raises:
        SystemExit: more is written than the goal allows.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--solutions", type=int, nargs="+", default=[5_000, 10_000, 20_000, 40_000, 80_000]
    )
    options = parser.parse_args()
    figures, most = [], 0.0
    for count in options.solutions:
        with TemporaryDirectory() as folder:
            seconds, appending, whole = asyncio.run(measure(count, Path(folder)))
        most = max(most, whole)
        figures.append(
            Figure(f"{count:,} solutions: appending, bytes written ÷ log", seconds, appending)
        )
        figures.append(
            Figure(
                f"{count:,} solutions: the same with the evaluation",
                seconds,
                whole,
                f"≤ {_MOST:.0f} ×",
            )
        )
    report("watch_log", "bytes written to append to the log of a watch", figures)
    if most > _MOST:
        raise SystemExit(f"{most:.1f} bytes are written for each of the log")

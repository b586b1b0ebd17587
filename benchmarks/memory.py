"""Peak memory of a log from 100,000 and from 1,000,000 solutions: `python -m benchmarks.memory`.

Each run is a fresh process over the same on-disk store, which the engine maps; the query's LIMIT says how many
solutions. The process's own peak resident size is read at its end, less its size before the query.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import data
from benchmarks.measure import Figure, report
from construct_messages import construct_messages

SIZES = (100_000, 1_000_000)


def main() -> None:
    """Measures the peak of each size, or (with --solutions) one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--how", choices=("log", "messages"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.solutions:
        _run(arguments.store, arguments.solutions, arguments.how)
        return
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        data.store(int(max(SIZES) * 1.05), Path(folder) / "store")
        for how, what in (("log", "N-Quads log"), ("messages", "Message objects")):
            peaks = []
            for size in SIZES:
                command = [sys.executable, "-m", "benchmarks.memory", "--store", f"{folder}/store", "--how", how]
                done = subprocess.run([*command, "--solutions", str(size)], check=True, capture_output=True)
                run = json.loads(done.stdout)
                if run["messages"] != size:
                    raise SystemExit(f"{run['messages']} messages instead of {size}")
                peaks.append(run["peak"])
                ratio = peaks[-1] / peaks[0]
                label = f"{what}, {size} solutions: peak {peaks[-1] / 1024:.0f} MiB"
                figures.append(
                    Figure(label, run["seconds"], ratio if len(peaks) > 1 else None, "≤ 1.2" if len(peaks) > 1 else "")
                )
    report("memory", "peak resident memory of the process (ratio: of memory)", figures)


def _run(store: str, solutions: int, how: str) -> None:
    stream = construct_messages(f"{data.SPECIFICATION} LIMIT {solutions}", store)
    started = time.perf_counter()
    for _ in stream.serialize("nq") if how == "log" else stream:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"messages": stream.messages, "peak": peak, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()

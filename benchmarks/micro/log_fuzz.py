"""Feeds mutated logs to every decoder: `python -m benchmarks micro log_fuzz`, or `make fuzz-logs`.

A process for each format, with a bound on its memory; what kills or hangs it is a finding as well. Each finding is
printed with its input, once for its kind. See tests/support/logs/fuzzer.py for what is checked of each input.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import re
import resource
import time
import warnings
from collections import Counter
from multiprocessing.connection import Connection

from rich.console import Console
from rich.table import Table

from construct_messages.formats import FORMATS
from tests.support.logs.fuzzer import Finding, check, inputs

_MEMORY = 2 << 30  # bytes of address space, of which the libraries take a part
_SILENCE = 120.0  # seconds after which a process hangs
_REPORTED = 500  # inputs between two reports


def main() -> None:
    """Runs one format after the other, and prints a table; fails where there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--inputs", type=int, default=100_000, help="inputs for each format (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="(default %(default)s)")
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help="file extensions (default all)"
    )
    arguments = parser.parse_args()
    extensions = arguments.formats or [format.extension for format in FORMATS]
    table = Table(title=f"seed {arguments.seed}")
    for column in (
        "format",
        "inputs",
        "read to the end",
        "messages",
        "inputs/s",
        "peak memory",
        "findings",
    ):
        table.add_column(column, justify="left" if column == "format" else "right")
    findings = 0
    for extension in extensions:
        counts, kinds = _run(extension, arguments.inputs, arguments.seed)
        findings += len(kinds)
        table.add_row(
            extension,
            f"{counts['inputs']:,}",
            f"{counts['read']:,}",
            f"{counts['messages']:,}",
            f"{counts['inputs'] / (counts['milliseconds'] / 1000):.0f}",
            f"{counts['peak'] / 1024:.0f} MiB",
            str(len(kinds)),
        )
        for what in kinds.values():
            print(what, flush=True)
    Console(width=120).print(table)
    raise SystemExit(1 if findings else 0)


def _run(extension: str, count: int, seed: int) -> tuple[Counter[str], dict[str, str]]:
    """The last counts and the findings of a process of its own."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_feed, args=(theirs, extension, count, seed))
    process.start()
    theirs.close()
    counts: Counter[str] = Counter(milliseconds=1)
    kinds: dict[str, str] = {}
    try:
        while ours.poll(_SILENCE):
            counts, found = ours.recv()
            kinds |= found
            if counts["inputs"] == count:
                break
        else:
            kinds["hangs"] = f"{extension}: hangs behind input {counts['inputs']} of seed {seed}"
    except EOFError:
        kinds["dies"] = (
            f"{extension}: the process dies behind input {counts['inputs']} of seed {seed}"
        )
    process.kill()
    process.join()
    return counts, kinds


def _feed(reports: Connection, extension: str, count: int, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    # PyLD does as JSON-LD 1.1 says with terms that look like keywords
    warnings.filterwarnings("ignore", "terms beginning with", SyntaxWarning)
    counts: Counter[str] = Counter()
    kinds: dict[str, str] = {}
    began = time.perf_counter()
    for number, input in enumerate(itertools.islice(inputs(extension, seed), count), 1):
        try:
            found = check(input)
            counts["read"] += found.error is None
            counts["messages"] += len(found.messages)
        except Finding as finding:
            # the same but for names and numbers is the same finding
            kinds.setdefault(re.sub(r"[0-9]+|'.*?'|<.*?>", "…", finding.what)[:60], str(finding))
        if number % _REPORTED == 0 or number == count:
            counts["inputs"] = number
            counts["milliseconds"] = int((time.perf_counter() - began) * 1000)
            counts["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            reports.send((counts, kinds))

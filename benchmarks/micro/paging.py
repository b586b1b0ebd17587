"""What reading a result in pages costs the engine: `python -m benchmarks micro paging`.

The CPU seconds of the engine's process for one result: without pages, in pages by OFFSET, and by a key that is chosen;
of 500 solutions, and of sizes that are chosen (`page_size="auto"`). One table for each engine that is installed. The
engines are those of the tests; Virtuoso, whose cap is 10,000 here, returns nothing larger without pages.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

from benchmarks.harness import Figure, report, tree
from construct_messages import Requests, construct_messages
from tests.support.engines.servers import ALL, Missing

ENGINES = ("oxigraph", "virtuoso", "fuseki", "rdf4j", "blazegraph")
QUERY = """CONSTRUCT { ?item <urn:name> ?name ; <urn:value> ?value ; <urn:class> ?class }
WHERE { ?item <urn:name> ?name ; <urn:value> ?value ; <urn:class> ?class }"""
CAP = 10_000  # of the tests' Virtuoso


def main() -> None:
    """Measures each engine, and checks that all ways of reading return the same messages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    arguments = parser.parse_args()
    for engine in arguments.engines:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "data.nt"
            write_items(file, arguments.solutions)
            try:
                with ALL[engine].start(file, Path(folder)) as url:
                    figures = _figures(engine, url, arguments.solutions, arguments.rounds)
            except Missing as missing:
                print(missing)
                continue
        title = f"{engine}, {arguments.solutions} solutions: CPU seconds of the engine"
        report(f"paging-{engine}", title, figures)


def write_items(file: Path, count: int) -> None:
    """Writes the data of the query: a name, a value and a class of each item, whose numbers come in any order.

    Args:
        file: in N-Triples.
        count: how many items.
    """
    numbers = Random(42).sample(range(count), count)
    with file.open("w") as lines:
        for n in numbers:
            item = f"<http://example.org/item{n}>"
            lines.write(f'{item} <urn:name> "Name of {n * 7919 % 100_003}"@en .\n')
            lines.write(f'{item} <urn:value> "{n % 1000}" .\n')
            lines.write(f"{item} <urn:class> <http://example.org/class{n % 50}> .\n")


def _figures(engine: str, url: str, count: int, rounds: int) -> list[Figure]:
    def read(size: int | Literal["auto"] | None, *, by_offset: bool = False) -> Counter[str]:
        requests = Requests(profile=engine, page_size=size)
        # a lenient reader pages by OFFSET
        messages = construct_messages(QUERY, url, requests=requests, lenient=by_offset)
        return Counter(map(str, messages))

    ways: dict[str, Callable[[], Counter[str]]] = {
        "without pages": partial(read, None),
        "pages of 500 by OFFSET": partial(read, 500, by_offset=True),
        "pages of 500 by a key": partial(read, 500),
        "auto by OFFSET": partial(read, "auto", by_offset=True),
        "auto by a key": partial(read, "auto"),
    }
    if engine == "virtuoso" and count >= CAP:
        del ways["without pages"]
    expected = ways["auto by a key"]()  # the engine has warmed up, too
    if expected.total() != count:
        raise SystemExit(f"{engine} returned {expected.total()} messages of {count}")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            started = _cpu_seconds()
            if way() != expected:
                raise SystemExit(f"{engine}: {name} returned other messages")
            seconds[name].append(_cpu_seconds() - started)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    first = next(iter(medians.values()))
    return [Figure(name, each, each / first) for name, each in medians.items()]


def _cpu_seconds() -> float:
    """Of the processes that this one has started."""
    return sum(used for process, _, used in tree(os.getpid()) if process != os.getpid())

"""The embedded path against the engine alone: `python -m benchmarks micro embedded [--companies N] [--rounds N]`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox

from benchmarks.harness import Figure, alternate, busy_cores, check_log, one_core, report
from benchmarks.micro import data
from construct_messages import ConstructQuery, QueryMessages, construct_messages

FORMATS = ("nq", "trig", "jelly")


def main() -> None:
    """Measures the specification's query and the hostile one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=130_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    store = data.store(arguments.companies)
    figures = []
    for name, query in (("specification", data.SPECIFICATION), ("hostile", data.HOSTILE)):
        figures += _measure(name, query, store, arguments.rounds)
    report("embedded", f"embedded, {arguments.companies} companies", figures)


def _measure(name: str, query: str, store: ox.Store, rounds: int) -> list[Figure]:
    select = ConstructQuery.parse(query).select

    def stream() -> QueryMessages:
        return construct_messages(query, store)

    slow = list(stream())
    check_log(stream().serialize("nq"), len(slow), sum(map(len, slow)))
    size = len(slow)
    del slow

    def solutions() -> ox.QuerySolutions:
        found = store.query(select)
        assert isinstance(found, ox.QuerySolutions)
        return found

    def triples() -> object:
        found = store.query(query)
        assert isinstance(found, ox.QueryTriples)
        return found.serialize(format=ox.RdfFormat.N_TRIPLES)

    def look() -> None:
        for message in stream():
            for _subject, _predicate, _object, _graph in message:
                pass

    def tsv() -> object:
        return solutions().serialize(format=ox.QueryResultsFormat.TSV)

    with tempfile.TemporaryDirectory() as folder:

        def writer(format: str) -> Callable[[], object]:
            return lambda: stream().write(f"{folder}/log.{format}")

        def remove_logs() -> None:
            # a filesystem may write a file to the disk at once when it takes the name of another one: ext4 does
            for path in Path(folder).iterdir():
                path.unlink()

        log = writer("nq")
        idle_tsv, idle_log, construct, iterated, messages, looked = alternate(
            rounds,
            [
                tsv,
                log,
                triples,
                lambda: sum(1 for _ in solutions()),
                lambda: sum(1 for _ in stream()),
                look,
            ],
            before_each=remove_logs,
        )
        with busy_cores():
            busy_tsv, busy_log = alternate(rounds, [tsv, log], before_each=remove_logs)
        with one_core():
            alone_tsv, alone_log = alternate(rounds, [tsv, log], before_each=remove_logs)
        cpu_tsv, *cpu = alternate(
            rounds, [tsv, *map(writer, FORMATS)], time.process_time, remove_logs
        )
    return [
        Figure(f"{name}: SELECT → TSV, {size} solutions", idle_tsv),
        Figure(
            f"{name}: N-Quads log on disk, against that", idle_log, idle_log / idle_tsv, "≤ 1.25"
        ),
        Figure(f"{name}, the other cores busy: SELECT → TSV", busy_tsv),
        Figure(
            f"{name}, the other cores busy: N-Quads log, against that",
            busy_log,
            busy_log / busy_tsv,
            "≤ 1.7",
        ),
        Figure(f"{name}, on one core: SELECT → TSV", alone_tsv),
        Figure(f"{name}, on one core: N-Quads log, against that", alone_log, alone_log / alone_tsv),
        Figure(f"{name}, CPU: SELECT → TSV", cpu_tsv),
        *(
            Figure(f"{name}, CPU: {format} log, against that", seconds, seconds / cpu_tsv)
            for format, seconds in zip(FORMATS, cpu, strict=True)
        ),
        # of the hostile query, the evaluation itself is most of either
        Figure(
            f"{name}: Oxigraph's CONSTRUCT → N-Triples, against the log",
            construct,
            construct / idle_log,
            "≥ 2" if name == "specification" else "",
        ),
        Figure(f"{name}: pyoxigraph's solutions, iterated", iterated),
        Figure(f"{name}: Message objects, iterated, against these", messages, messages / iterated),
        Figure(f"{name}: — with a look at each quad", looked, looked / iterated, "≤ 3"),
    ]

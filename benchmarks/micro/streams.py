"""Live streams: durable appends by many publishers, appends of logs, replay; beside SQLite alone. Then over HTTP.

`python -m benchmarks micro streams`; the ratio is SQLite's rate to the store's.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

from benchmarks.harness import Figure, report
from benchmarks.micro.serving import streams_server
from construct_messages import Message, Quad, iri, literal
from construct_messages.logs.lines.texts import to_text
from construct_messages.streams import StreamStore, open_store


def messages(count: int) -> list[Message]:
    """Messages of five quads, about 530 bytes each."""
    return [
        Message(
            Quad(
                iri(f"http://example.org/thing/{number}"),
                iri(f"http://example.org/property/{each}"),
                literal("x" * 40),
            )
            for each in range(5)
        )
        for number in range(count)
    ]


async def publish(store: StreamStore, publishers: int, sent: Sequence[Message]) -> list[float]:
    """Seconds until each message was acknowledged, ascending."""
    seconds: list[float] = []

    async def one(own: Sequence[Message]) -> None:
        for message in own:
            started = time.perf_counter()
            await store.aappend("a", message)
            seconds.append(time.perf_counter() - started)

    await asyncio.gather(*(one(sent[start::publishers]) for start in range(publishers)))
    return sorted(seconds)


def alone(folder: Path, rows: Sequence[bytes], commit: int) -> float:
    """Seconds for SQLite to insert the rows, so many in a transaction, each on disk before the next."""
    connection = sqlite3.connect(folder / "alone.db", isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE element (id INTEGER PRIMARY KEY, nquads BLOB)"
    )
    started = time.perf_counter()
    for start in range(0, len(rows), commit):
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO element (nquads) VALUES (?)",
            [(row,) for row in rows[start : start + commit]],
        )
        connection.execute("COMMIT")
    seconds = time.perf_counter() - started
    connection.close()
    (folder / "alone.db").unlink()
    return seconds


def get(url: str, accept: str = "application/n-quads") -> bytes:
    """The body of an answer."""
    with urlopen(Request(url, headers={"Accept": accept})) as response:
        body = response.read()
    assert isinstance(body, bytes)
    return body


def pulled(stream: str) -> int:
    """How many elements come as one log, which is read as it comes."""
    request = Request(
        f"{stream}/output?after=0", headers={"Accept": "application/n-quads; messages=rdfm"}
    )
    found, held = 0, b""
    with urlopen(request) as response:
        while piece := response.read(1 << 20):
            held += piece
            whole, _, held = held.rpartition(b"\n")
            found += (whole + b"\n").count(b"# @message\n")
    return found


def paged(stream: str, accept: str = "application/n-quads") -> int:
    """How many members the pages of the event stream have."""
    pages = sorted(set(re.findall(rb"<(\S+/ldes/\d+-\d+)>", get(f"{stream}/ldes"))))
    # each member is the object of one statement, however it is written
    return sum(len(re.findall(rb'#member["> :]+', get(page.decode(), accept))) for page in pages)


def paged_in_json_ld(stream: str) -> int:
    """The same in JSON-LD."""
    return paged(stream, "application/ld+json")


def over_http(store: Path, count: int) -> Iterator[Figure]:
    """All elements from a server."""
    with streams_server(store) as server:
        for what, read, goal in (
            ("one log", pulled, "300,000/s"),
            ("pages of an event stream", paged, "10,000/s"),
            ("pages of an event stream, JSON-LD", paged_in_json_ld, "10,000/s"),
        ):
            started = time.perf_counter()
            found = read(f"{server.url}/streams/a")
            seconds = time.perf_counter() - started
            if found != count:
                raise SystemExit(f"{found} elements of {count} came over HTTP")
            yield Figure(
                f"{count / seconds:,.0f}/s: {what}, server at {server.peak_mib:.0f} MiB",
                seconds,
                goal=goal,
            )


def main() -> None:
    """`python -m benchmarks micro streams`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument(
        "--folder", type=Path, help="on the disk that is to be measured; by default a temporary one"
    )
    options = parser.parse_args()
    sent = messages(options.messages)
    rows = [to_text(message).encode() for message in sent]
    figures = []
    with TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        in_thousands = alone(folder, rows, 1000)
        figures.append(
            Figure(f"{len(rows) / in_thousands:,.0f}/s: SQLite alone, 1,000 a commit", in_thousands)
        )
        with open_store(folder / "streams.db") as store:
            store.create("a")
            for publishers in (1, 10, 100, 1000):
                some = sent[: min(len(sent), 300 * publishers)]
                started = time.perf_counter()
                waits = asyncio.run(publish(store, publishers, some))
                seconds = time.perf_counter() - started
                what = f"{len(some) / seconds:,.0f}/s: {publishers:,} publishers"
                middle, late = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
                what += f", median {middle * 1e3:.1f} ms, 99 % {late * 1e3:.1f} ms"
                figures.append(
                    Figure(what, seconds, goal="15,000/s, 30 ms" if publishers == 100 else "")
                )
            before = store.state("a").last
            started = time.perf_counter()
            for start in range(0, len(sent), 10_000):
                store.append_all("a", sent[start : start + 10_000])
            seconds = time.perf_counter() - started
            what = f"{len(sent) / seconds:,.0f}/s: logs of 10,000"
            figures.append(Figure(what, seconds, in_thousands / seconds, "30,000/s"))
            # a full garbage collection among these, which no reader has, takes longer than the replay
            del sent, some
            started = time.perf_counter()
            replayed = [element.nquads for element in store.read("a", after=before)]
            seconds = time.perf_counter() - started
            if replayed != rows:
                raise SystemExit("what was read is not what was appended")
            figures.append(
                Figure(f"{len(rows) / seconds:,.0f}/s: replay", seconds, goal="300,000/s")
            )
            count = store.state("a").last
        figures.extend(over_http(folder / "streams.db", count))
    report("streams", "live streams: durable messages of five quads", figures)

"""Windows for hours: a window of 10 seconds over 100 messages a second, each with a text of 1.2 kB, without an end.

`python -m benchmarks micro windows_soak` evaluates in this process; with `--server` it publishes to a server that runs
the same as a registered query. Each million messages it prints messages a second, evaluations, and the memory of
the process that evaluates (with `--server` also that of the server). All of these stay the same, or something is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import aiohttp

from benchmarks.micro.serving import streams_server
from construct_messages.continuous import WindowedQuery, WindowOptions
from construct_messages.feeds import register
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.streams.element import GENERATED_AT, Element, time_at

TEXT: Final = "reading "  # repeated
PERIOD: Final = 10_000  # microseconds between two messages
QUERY: Final = """PREFIX : <http://example.org/>
REGISTER ISTREAM <out> AS CONSTRUCT { ?s :high ?v ; :says ?t }
FROM NAMED WINDOW :w ON <in> [RANGE PT10S STEP PT1S]
WHERE { WINDOW :w { ?s :value ?v ; :text ?t . FILTER(?v > 950) } }"""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BATCH: Final = 1000
_MOST_BEHIND: Final = 50_000  # messages
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Line(NamedTuple):
    """What a number of messages took.

    Args:
        messages: how many there were before and in it.
        rate: messages a second.
        cpu: seconds of CPU of the process that evaluates, a thousand messages.
        p99: milliseconds, which 99 % of evaluations took less than; None: not known.
        given: messages that were given out.
        memory: bytes resident in the process that evaluates.
        server: bytes resident in the server; None: there is none.
    """

    messages: int
    rate: float
    cpu: float
    p99: float | None
    given: int
    memory: int
    server: int | None = None

    def __str__(self) -> str:
        p99 = "" if self.p99 is None else f" {self.p99:8.2f} ms"
        server = "" if self.server is None else f" {self.server / 1e6:8.0f} MB"
        return (
            f"{self.messages:12,} {self.rate:9,.0f}/s {self.cpu * 1e3:8.1f} ms{p99} {self.given:10,}"
            f" {self.memory / 1e6:8.0f} MB{server}"
        )


def nquads(number: int, text: int) -> bytes:
    """A message of four quads: its time, and so many characters of text of its own, among them."""
    subject = f"<http://example.org/observation/{number}>"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    value = (f"{number} " + TEXT * (text // len(TEXT)))[:text]
    time = time_at(number * PERIOD).replace(tzinfo=None).isoformat()
    lines = (
        f'{subject} <http://example.org/value> "{number * 7919 % 1000}"^^{integer} .',
        f"{subject} <http://example.org/sensor> <http://example.org/sensor/{number % 50}> .",
        f'{subject} <http://example.org/text> "{value}" .',
        f'{subject} <{GENERATED_AT}> "{time}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .',
    )
    return "\n".join(lines).encode()


def in_process(messages: int, every: int, text: int) -> Iterator[Line]:
    """Evaluates in this process; a line for so many messages."""
    query = parse_continuous(QUERY)
    (stream,) = (window.stream for window in query.windows)
    engine = WindowedQuery(query, WindowOptions())
    given, evaluations = 0, list[float]()
    begun, cpu = time.perf_counter(), time.process_time()
    for number in range(1, messages + 1):
        element = Element("in", number, number * PERIOD, nquads(number, text))
        before = time.perf_counter()
        firings = engine.take(stream, element)
        if firings:
            evaluations.append(time.perf_counter() - before)
            given += sum(len(firing.messages) for firing in firings)
        if number % every == 0:
            now, now_cpu = time.perf_counter(), time.process_time()
            p99 = sorted(evaluations)[len(evaluations) * 99 // 100] * 1e3 if evaluations else None
            yield Line(
                number,
                every / (now - begun),
                (now_cpu - cpu) / every * 1e3,
                p99,
                given,
                resident(os.getpid()),
            )
            evaluations, given, begun, cpu = [], 0, time.perf_counter(), time.process_time()


def resident(process: int) -> int:
    """The bytes that a process has in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE


def cpu_seconds(process: int) -> float:
    """The CPU seconds that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def at_server(messages: int, every: int, text: int, folder: Path) -> None:
    """Publishes to a server with a registered query, and prints a line for so many messages."""
    with streams_server(folder / "streams.db") as served:
        server, process = served.url, served.process.pid
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            kept = {"retainedElements": 4 * _MOST_BEHIND}
            async with session.put(f"{server}/streams/in", json=kept):
                pass
            out = await register(
                QUERY,
                f"{server}/streams",
                name="out",
                parameters={"from": "first", "time": "generated"},
            )
            (evaluator,) = children(process)
            given, begun, cpu = 0, time.perf_counter(), cpu_seconds(evaluator)
            for first in range(1, messages + 1, _BATCH):
                numbers = range(first, first + _BATCH)
                body = b"".join(
                    b"# @message\n" + nquads(number, text) + b"\n" for number in numbers
                )
                async with session.post(
                    f"{server}/streams/in/input",
                    data=body,
                    headers={"Content-Type": "application/n-quads; messages=rdfm"},
                ):
                    pass
                sent = first + _BATCH - 1
                if sent % every and sent % (_MOST_BEHIND // 2):
                    continue
                behind = 0 if sent % every == 0 else _MOST_BEHIND
                while (described := await description(session, out))["lag"] > behind:
                    if described["status"] != "running":
                        sys.exit(
                            f"after {described['taken']:,} messages, {described['status']}: {described['error']}"
                        )
                    await asyncio.sleep(0.1)
                if behind == 0:
                    now, now_cpu = time.perf_counter(), cpu_seconds(evaluator)
                    new = int(described["given"]) - given
                    print(
                        Line(
                            sent,
                            every / (now - begun),
                            (now_cpu - cpu) / every * 1e3,
                            None,
                            new,
                            resident(evaluator),
                            resident(process),
                        ),
                        flush=True,
                    )
                    given, begun, cpu = int(described["given"]), time.perf_counter(), now_cpu


async def description(session: aiohttp.ClientSession, stream: str) -> dict[str, Any]:
    """What the server says about a stream."""
    async with session.get(stream, headers={"Accept": "application/ld+json"}) as response:
        described: dict[str, Any] = await response.json(content_type=None)
        return described


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in listed for child in path.read_text().split()]


def main() -> None:
    """`python -m benchmarks micro windows_soak`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument(
        "--every",
        type=int,
        default=1_000_000,
        metavar="MESSAGES",
        help="print a line after so many",
    )
    parser.add_argument(
        "--text", type=int, default=1200, metavar="CHARACTERS", help="of each message"
    )
    parser.add_argument("--server", action="store_true", help="through a server")
    options = parser.parse_args()
    print("    messages      rate   CPU/1,000  99 % of evaluations  given out   memory", flush=True)
    if options.server:
        with TemporaryDirectory() as folder:
            asyncio.run(at_server(options.messages, options.every, options.text, Path(folder)))
    else:
        for line in in_process(options.messages, options.every, options.text):
            print(line, flush=True)

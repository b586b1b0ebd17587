"""A server of streams under many followers, and with a long log: nothing is lost, and memory stays flat.

`python -m benchmarks micro stream_server followers` has 200 followers, half by server-sent events and half by
WebSocket, get 100 messages a second for a minute. `python -m benchmarks micro stream_server million` posts a million
messages, pulls them as one log, and reads them as pages of an event stream.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

import aiohttp

from benchmarks.harness import Figure, report
from benchmarks.micro.serving import Server, streams_server

LOG = "application/n-quads; messages=rdfm"


def text(number: int) -> str:
    """A message of five quads, about 530 bytes."""
    return "".join(
        f'<http://example.org/thing/{number}> <http://example.org/property/{each}> "{"x" * 40}" .\n'
        for each in range(5)
    )  # fmt: skip


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server with an empty stream, `a`."""
    with streams_server(folder / "streams.db") as server:
        stream = f"{server.url}/streams/a"
        urlopen(Request(stream, method="PUT")).close()
        yield Server(stream, server.process)


def cpu_seconds(server: Server) -> float:
    """What the server has used of the processors."""
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- followers ---


class Deliveries:
    """When messages were sent, and what each follower got.

    Args:
        followers: how many there are.
    """

    def __init__(self, followers: int) -> None:
        self.sent: list[float] = []
        self.received = [0] * followers
        self.waits: list[float] = []

    def deliver(self, follower: int, number: int) -> None:
        """Notes a message, which must be the next one of the follower."""
        if number != self.received[follower]:
            raise SystemExit(
                f"follower {follower} got message {number} and not {self.received[follower]}"
            )
        self.received[follower] += 1
        self.waits.append(time.perf_counter() - self.sent[number])


_NUMBER = re.compile(rb"data: <http://example.org/thing/(\d+)> <http://example.org/property/0>")


async def by_events(
    session: aiohttp.ClientSession, url: str, follower: int, deliveries: Deliveries
) -> None:
    """Follows by server-sent events."""
    async with session.get(f"{url}/events?after=0") as response:
        held = b""
        async for piece in response.content.iter_any():
            *events, held = (held + piece).split(b"\n\n")
            for event in events:
                if found := _NUMBER.search(event):
                    deliveries.deliver(follower, int(found[1]))


async def by_socket(
    session: aiohttp.ClientSession, url: str, follower: int, deliveries: Deliveries
) -> None:
    """Follows by WebSocket."""
    async with session.ws_connect(f"{url}/socket?after=0") as socket:
        async for frame in socket:
            deliveries.deliver(follower, int(frame.data.partition("/thing/")[2].partition(">")[0]))


async def publish(
    session: aiohttp.ClientSession, url: str, total: int, rate: float, deliveries: Deliveries
) -> None:
    """Publishes messages, one at a time, at a rate."""
    started = time.perf_counter()
    for number in range(total):
        await asyncio.sleep(started + number / rate - time.perf_counter())
        deliveries.sent.append(time.perf_counter())
        async with session.post(
            f"{url}/input", data=text(number), headers={"Content-Type": LOG[:19]}
        ) as response:
            if response.status != 201:
                raise SystemExit(await response.text())


async def followed(server: Server, followers: int, rate: float, seconds: float) -> Sequence[Figure]:
    """The figures of followers."""
    deliveries, total = Deliveries(followers), int(rate * seconds)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=timeout
    ) as session:
        following = [
            asyncio.create_task(
                (by_events, by_socket)[number % 2](session, server.url, number, deliveries)
            )
            for number in range(followers)
        ]
        warm = asyncio.create_task(publish(session, server.url, total, rate, deliveries))
        while min(deliveries.received) < total // 6:  # noqa: ASYNC110 # to look at each delivery would cost more
            await asyncio.sleep(0.1)
        before, used = server.resident_mib, cpu_seconds(server)
        started = time.perf_counter()
        begun = sum(deliveries.received)
        deliveries.waits.clear()
        while min(deliveries.received) < total:
            await asyncio.sleep(0.1)
            if any(task.done() for task in following) or (warm.done() and warm.exception()):
                raise SystemExit("a follower or the publisher ended")
        passed, used = time.perf_counter() - started, cpu_seconds(server) - used
        delivered = sum(deliveries.received) - begun
        after = server.resident_mib
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
    waits = sorted(deliveries.waits)
    what = f"{delivered / passed:,.0f}/s delivered to {followers} followers, {rate:.0f} messages/s, none lost"
    waited = f"from the request to the follower: median {waits[len(waits) // 2] * 1e3:.1f} ms"
    waited += f", 99 % {waits[len(waits) * 99 // 100] * 1e3:.1f} ms"
    return [
        Figure(what, passed, goal=f"{followers * rate:,.0f}/s"),
        Figure(waited, waits[len(waits) // 2]),
        Figure(f"server: {used / passed:.0%} of a core, {before:.0f} → {after:.0f} MiB", used),
    ]


# --- a long log ---


def long_log(server: Server, total: int, batch: int = 10_000) -> Iterator[Figure]:
    """The figures of a long log."""
    started, early = time.perf_counter(), server.resident_mib
    for start in range(0, total, batch):
        body = "".join(
            f"# @message\n{text(number)}" for number in range(start, min(start + batch, total))
        )
        request = Request(f"{server.url}/input", body.encode(), {"Content-Type": LOG})
        urlopen(request).close()
        if start <= total // 10:
            early = server.resident_mib
    seconds = time.perf_counter() - started
    memory = f"server {early:.0f} → {server.resident_mib:.0f} MiB"
    yield Figure(
        f"{total / seconds:,.0f}/s: posted as logs of {batch:,}, {memory}", seconds, goal="30,000/s"
    )
    for what, read, goal in (
        ("one log", pulled, "300,000/s"),
        ("pages of an event stream", paged, "10,000/s"),
    ):
        started = time.perf_counter()
        found = read(server.url)
        seconds = time.perf_counter() - started
        if found != total:
            raise SystemExit(f"{found} elements of {total} came")
        memory = f"server at {server.resident_mib:.0f} MiB, at most {server.peak_mib:.0f}"
        yield Figure(f"{total / seconds:,.0f}/s: {what}, {memory}", seconds, goal=goal)


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


def main() -> None:
    """`python -m benchmarks micro stream_server followers|million`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("followers", "million"))
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--rate", type=float, default=100.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument(
        "--folder", type=Path, help="on the disk that is to be measured; by default a temporary one"
    )
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.folder) as place, serving(Path(place)) as server:
        if options.part == "followers":
            figures = asyncio.run(
                followed(server, options.followers, options.rate, options.seconds)
            )
            report("stream_followers", "followers of a live stream", figures)
        else:
            report(
                "stream_million",
                "a long log in a live stream",
                [*long_log(server, options.messages)],
            )

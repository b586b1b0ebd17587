"""Publishing single messages to a server, durably: by POST, over WebSockets, and by logs that are acknowledged.

`python -m benchmarks micro publishing`. The publishers are raw sockets of another process, so that what is measured is
the server: its figure is messages for each second of its own CPU, as other programs take turns with it.

The ratios are those of the server's CPU to that of a handler of aiohttp that reads the body and answers.

Also `publish`, which sends its batches as one log to a stream, and each as a request of its own to an input: the ratio
is that of the messages for each second of CPU, of the server and the publisher together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from benchmarks.harness import Figure, report
from benchmarks.micro.serving import Server, listening
from benchmarks.micro.stream_server import LOG, cpu_seconds, serving
from construct_messages.feeds import publish
from construct_messages.logs.lines.decoder import to_messages

_READ = 1 << 16


def document(quads: int) -> bytes:
    """A message: about 530 bytes with 5 quads."""
    return "".join(
        f'<http://example.org/thing/7> <http://example.org/property/{each}> "{"x" * 40}" .\n'
        for each in range(quads)
    ).encode()


async def connect(url: str, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to which the head of a request was sent."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 22)
    writer.write(head.replace("PATH", f"{address.path}/input").encode())
    return reader, writer


async def by_post(url: str, body: bytes, count: int, _: int) -> None:
    """A request for each message, one after the other, on a kept connection."""
    head = "POST PATH HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/n-quads\r\n"
    reader, writer = await connect(url, "")
    path = f"{urlsplit(url).path}/input"
    request = f"{head.replace('PATH', path)}Content-Length: {len(body)}\r\n\r\n".encode() + body
    for _ in range(count):
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        size = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        await reader.readexactly(size)
        if not answer.startswith(b"HTTP/1.1 201"):
            raise SystemExit(answer.decode())
    writer.close()


async def by_socket(url: str, body: bytes, count: int, window: int) -> None:
    """A frame for each message, of which so many are unanswered at most."""
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = f"Sec-WebSocket-Key: {'A' * 22}==\r\n\r\n"
    reader, writer = await connect(url, f"GET PATH HTTP/1.1\r\nHost: localhost\r\n{upgrade}{key}")
    await reader.readuntil(b"\r\n\r\n")
    frame = b"\x81\xfe" + len(body).to_bytes(2, "big") + bytes(4) + body  # the mask is 0
    sent = answered = 0
    while answered < count:
        more = min(window - (sent - answered), count - sent)
        writer.write(frame * more)
        sent += more
        piece = await reader.read(_READ)
        if not piece:
            raise SystemExit("the server closed the socket")
        answered += piece.count(b'"elements"')
    writer.close()


async def by_log(url: str, body: bytes, count: int, window: int) -> None:
    """One request with all messages, of which so many are not acknowledged at most."""
    reader, writer = await connect(
        url,
        f"POST PATH HTTP/1.1\r\nHost: localhost\r\nContent-Type: {LOG}\r\n"
        "Accept: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    await reader.readuntil(b"\r\n\r\n")
    message = b"# @message\n" + body
    sent = acknowledged = 0
    while acknowledged < count:
        if more := min(window - (sent - acknowledged), count - sent):
            writer.write(b"%x\r\n%s\r\n" % (more * len(message), message * more))
            sent += more
            if sent == count:
                writer.write(b"0\r\n\r\n")
        line = await reader.readline()
        if line.startswith(b"{"):
            acknowledged = json.loads(line)["messages"]
    writer.close()


BARE = "a POST a message, a bare aiohttp handler that reads the body"

_HANDLER = """
import asyncio, sys
from aiohttp import web

async def handle(request):
    await request.read()
    return web.Response(status=201, text='{"elements": 1}', content_type="application/json")

async def main():
    app = web.Application()
    app.router.add_post("/streams/a/input", handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print("listening on http://%s:%s" % runner.addresses[0], file=sys.stderr, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def bare() -> Iterator[Server]:
    """A server that reads bodies and does nothing with them: what aiohttp takes at least."""
    with listening([sys.executable, "-c", _HANDLER], os.environ) as (url, process):
        yield Server(f"{url}/streams/a", process)


Publish = Callable[[str, bytes, int, int], Awaitable[None]]

_WAYS: tuple[tuple[str, Publish, int, int, str], ...] = (
    ("a POST a message, 100 publishers", by_post, 100, 1, "8,000/s"),
    ("WebSocket, 10 publishers, 100 unanswered", by_socket, 10, 100, "20,000/s"),
    ("one log, 1,000 unacknowledged", by_log, 1, 1000, "20,000/s"),
    ("10 logs, 100 unacknowledged", by_log, 10, 100, "20,000/s"),
)


async def by_publish(url: str, body: bytes, count: int, batch: int) -> None:
    """Batches of the package's own publisher, each acknowledged before the next one is sent."""
    (message,) = to_messages([body.decode().strip()])
    await publish((message for _ in range(count)), url, batch=batch)


def compared(server: Server, batch: int, count: int, rounds: int) -> Iterator[Figure]:
    """One log, beside a request for each batch; runs alternate."""
    found: dict[str, list[tuple[float, float]]] = {"/input": [], "": []}
    for endpoint in list(found) * rounds:
        before, own, started = cpu_seconds(server), time.process_time(), time.perf_counter()
        asyncio.run(by_publish(f"{server.url}{endpoint}", document(5), count, batch))
        seconds = time.perf_counter() - started
        found[endpoint].append((cpu_seconds(server) - before, time.process_time() - own))
        print(f"{endpoint or 'one log'}, batches of {batch}: {count / seconds:,.0f}/s")
    median = {
        endpoint: tuple(statistics.median(each) for each in zip(*times, strict=True))
        for endpoint, times in found.items()
    }
    for what, endpoint in (("a request a batch", "/input"), ("one log", "")):
        servers, own = (1e6 * seconds / count for seconds in median[endpoint])
        text = f"publish, batches of {batch}, {what}: {servers:.0f} µs of CPU of the server, {own:.0f} of its own"
        ratio = sum(median["/input"]) / sum(median[endpoint])
        yield Figure(text, sum(median[endpoint]), ratio)


async def measured(
    server: Server,
    way: Publish,
    body: bytes,
    count: int,
    publishers: int,
    window: int,
    rounds: int,
) -> tuple[float, float]:
    """Seconds, and seconds of the server's CPU: medians."""

    async def all_of(total: int) -> None:
        each = total // publishers
        await asyncio.gather(*(way(server.url, body, each, window) for _ in range(publishers)))

    await all_of(max(count // 10, publishers))
    seconds, used = [], []
    for _ in range(rounds):
        before, started = cpu_seconds(server), time.perf_counter()
        await all_of(count)
        seconds.append(time.perf_counter() - started)
        used.append(cpu_seconds(server) - before)
    return statistics.median(seconds), statistics.median(used)


def main() -> None:
    """`python -m benchmarks micro publishing`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, help="on the disk that is to be measured; by default a temporary one"
    )
    options = parser.parse_args()
    figures = []
    count = options.messages
    with (
        TemporaryDirectory(dir=options.folder) as place,
        serving(Path(place)) as server,
        bare() as floor,
    ):
        for quads in (5, 30):
            least = 0.0
            for what, way, publishers, window, goal in ((BARE, by_post, 100, 1, ""), *_WAYS):
                measures = measured(
                    floor if what == BARE else server,
                    way, document(quads), count, publishers, window, options.rounds,
                )  # fmt: skip
                seconds, used = asyncio.run(measures)
                least = least or used
                text = f"{quads} quads, {what}: {count / seconds:,.0f}/s, "
                text += f"{count / used:,.0f}/s of CPU, {used / count * 1e6:.0f} µs a message"
                figures.append(Figure(text, used, used / least, goal))
        for batch, part in ((1, 10), (1000, 1)):
            figures += compared(server, batch, options.messages // part, options.rounds)
    report("publishing", "single messages published over HTTP, durably", figures)

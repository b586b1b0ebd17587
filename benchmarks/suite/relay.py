"""A relay on loopback between a competitor and an endpoint, which counts requests and bytes: a process of its own.

It hands bytes on as they come and changes none; of requests it reads only where they end. `python -m
benchmarks.suite.relay HOST PORT` prints the port it listens to, and what has passed for each line on standard input.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit, urlunsplit

_CHUNK = 1 << 18


@dataclass
class Traffic:
    """What has passed: requests, and bytes of HTTP, heads too, to the competitor (received) and from it (sent)."""

    requests: int = 0
    received: int = 0
    sent: int = 0


class Relay:
    """A relay that runs.

    Args:
        url: where the competitor finds the endpoint.
    """

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self._process = process

    def traffic(self) -> Traffic:
        """What has passed since this was last asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Traffic(**json.loads(self._process.stdout.readline()))


@contextmanager
def relay(endpoint: str) -> Iterator[Relay]:
    """A relay before an endpoint, until the end of the block.

    Args:
        endpoint: an `http:` URL.
    """
    there = urlsplit(endpoint)
    command = [sys.executable, "-m", __name__, str(there.hostname), str(there.port or 80)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield Relay(urlunsplit(there._replace(netloc=f"127.0.0.1:{port}")), process)
        finally:
            process.stdin.close()  # upon which it ends; it also ends when this process does


class Requests:
    """Counts the requests in the bytes of a connection.

    Raises:
        ValueError: for a body without a length; no competitor sends one.
    """

    def __init__(self) -> None:
        self._head = b""
        self._body = 0  # bytes of the body that are still to come

    def feed(self, data: bytes) -> int:
        """How many heads of requests end in these bytes."""
        count = 0
        while data:
            if self._body:
                taken = min(self._body, len(data))
                self._body -= taken
                data = data[taken:]
                continue
            self._head, end, data = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                break
            count += 1
            if re.search(rb"(?im)^transfer-encoding:", self._head):
                raise ValueError("a request body without Content-Length cannot be counted")
            length = re.search(rb"(?im)^content-length:\s*(\d+)", self._head)
            self._body = int(length[1]) if length else 0
            self._head = b""
        return count


async def _serve(host: str, port: int) -> None:
    passed = Traffic()

    async def up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests = Requests()
        while data := await reader.read(_CHUNK):
            passed.sent += len(data)
            passed.requests += requests.feed(data)
            writer.write(data)
            await writer.drain()

    async def down(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            passed.received += len(data)
            writer.write(data)
            await writer.drain()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_endpoint, to_endpoint = await asyncio.open_connection(host, port)
            try:
                ways = [
                    asyncio.create_task(up(reader, to_endpoint)),
                    asyncio.create_task(down(from_endpoint, writer)),
                ]
                # a competitor that leaves is no reason for the endpoint to go on
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                for end in await asyncio.gather(*ways, return_exceptions=True):
                    if isinstance(end, ValueError):
                        print(end, file=sys.stderr)
            finally:
                to_endpoint.close()
        except (OSError, asyncio.CancelledError):
            pass  # the endpoint does not listen, or the relay ends: the competitor is told by the close
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=_CHUNK)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(asdict(passed)), flush=True)
        passed.requests = passed.received = passed.sent = 0
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))

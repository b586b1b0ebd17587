"""A server that is stopped ends its followers at once: nobody else is waited for, and they resume without a gap."""

from __future__ import annotations

import io
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from construct_messages import Message
from construct_messages.feeds import subscribe
from tests.support.http.command import Running
from tests.support.http.streams import StreamsServer, events, serving_streams
from tests.support.streams import numbered
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.slow

LONGER_THAN_A_TEST = "shutdown_seconds = 100000\n"
"""How long requests under way are waited for: a follower that is waited for fails the test."""


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[Running, aiohttp.ClientSession]]:
    settings = folder / "server.toml"
    settings.write_text(f'{LONGER_THAN_A_TEST}[streams]\nfile = "{folder}/streams.db"\n')
    server = Running(folder, "--config", str(settings))
    try:
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{server.url}/streams/a") as response:
                assert response.status == 201
            yield server, session
    finally:
        server.kill()


def opened(url: str, request: str) -> socket.socket:
    """A connection that sends a request, and reads nothing by itself."""
    address = urlsplit(url)
    connection = socket.socket()
    connection.settimeout(SECONDS)
    connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
    )  # before it connects, or else it grows
    connection.connect((str(address.hostname), int(address.port or 0)))
    connection.sendall(f"{request}\r\nHost: x\r\n\r\n".encode())
    return connection


UPGRADE = "\r\n".join(
    (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {'A' * 22}==",
    )
)


@pytest.mark.process
@pytest.mark.parametrize(
    ("request_", "end"),
    [
        ("GET /streams/a/events HTTP/1.1", b"the server stops"),
        ("GET /streams/a/events HTTP/1.0", b"the server stops"),
        (f"GET /streams/a/socket HTTP/1.1\r\n{UPGRADE}", b"the server stops"),
        (f"GET /streams/a/input HTTP/1.1\r\n{UPGRADE}", b"the server stops"),
        ("GET /streams/a HTTP/1.1", b""),
    ],
    ids=["events", "events-1.0", "socket", "input", "kept-alive"],
)
async def test_idle_connections_are_ended_with_the_reason(
    tmp_path: Path, request_: str, end: bytes
) -> None:
    """Also of clients that do not answer the end of a WebSocket."""
    async with started(tmp_path) as (server, _):
        connection = opened(server.url, request_)
        came = b""
        while b"\r\n\r\n" not in came:
            came += connection.recv(65536)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        while data := connection.recv(65536):
            came += data
        assert end in came
        connection.close()


@pytest.mark.process
async def test_followers_that_do_not_read_are_cut_off(tmp_path: Path) -> None:
    """An element waits for each of them that is larger than the buffers of a connection."""
    async with started(tmp_path) as (server, session):
        sent = numbered(1, 8_000_000).lines
        headers = {"Content-Type": "application/n-quads"}
        async with session.post(
            f"{server.url}/streams/a/input", data=io.BytesIO(sent), headers=headers
        ) as response:
            assert response.status == 201
        with (
            opened(server.url, "GET /streams/a/events?after=0 HTTP/1.1") as pushed,
            opened(server.url, f"GET /streams/a/socket?after=0 HTTP/1.1\r\n{UPGRADE}") as frames,
        ):
            assert pushed.recv(1)
            assert frames.recv(1)
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == 0
    ends = [line["outcome"] for line in server.log if line.get("action") == "events"]
    assert ends == ["aborted:shutdown"]


QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


@pytest.mark.process
async def test_registered_queries_are_not_waited_for(tmp_path: Path) -> None:
    async with started(tmp_path) as (server, session):
        headers = {"Content-Type": "application/sparql-query"}
        async with session.post(
            f"{server.url}/streams/a/query", data=QUERY, headers=headers
        ) as response:
            assert response.status == 201, await response.text()
        async with session.get(f"{response.headers['Location']}/events") as following:
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == 0
            assert b"the server stops" in await following.read()


@pytest.mark.parametrize("via", ["sse", "websocket"])
async def test_followers_resume_behind_what_they_got(tmp_path: Path, via: str) -> None:
    """Through three servers on one store, one after the other; each stops while elements come."""
    seen: list[Message] = []
    checkpoint, number = None, 0
    for _ in range(3):
        async with serving_streams(tmp_path / "streams.db") as served:
            await served.ask("PUT", "/streams/a")
            where = {"after": 0} if checkpoint is None else {"checkpoint": checkpoint}
            subscription = subscribe(f"{served.url}/streams/a", via=via, retries=0, **where)  # type: ignore[arg-type]
            await subscription.start()
            for _ in range(30):
                number += 1
                await served.publish([numbered(number)])
                if number % 30 <= 20:
                    seen.append((await anext(subscription)).message)
            checkpoint = subscription.checkpoint
            await subscription.aclose()
    async with serving_streams(tmp_path / "streams.db") as served:
        rest = subscribe(f"{served.url}/streams/a", checkpoint=checkpoint, follow=False)
        seen += [element.message async for element in rest]
    assert seen == [numbered(each) for each in range(1, number + 1)]


async def test_another_stream_of_the_same_name_is_not_followed(served: StreamsServer) -> None:
    """It has got further than the one that was deleted before anybody who follows had a turn."""
    store = served.streams._store
    store.append_all("a", [numbered(number) for number in range(1, 4)])
    async with served.client.get(f"{served.url}/streams/a/events?after=0") as response:
        coming = events(response)
        came = [await anext(coming) for _ in range(3)]
        store.delete("a")
        store.create("a")
        store.append_all("a", [numbered(number) for number in range(11, 21)])
        with pytest.raises(aiohttp.ClientError):
            came += [event async for event in coming]
    assert [event.id for event in came] == ["1", "2", "3"]

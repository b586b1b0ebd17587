"""Logs that are acknowledged while they are being sent."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import zstandard

from construct_messages.server.config import BridgeSettings
from construct_messages.streams import open_store
from tests.support.conformance.shapes import PREFIXES
from tests.support.http.command import Running
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.waiting import SECONDS, eventually

PATH = "/streams/a/input"
LOG = "application/n-quads; messages=rdfm"


def message(number: int | str) -> bytes:
    return f'# @message\n<urn:s> <urn:p> "{number}" .\n'.encode()


class Publisher:
    """A request whose body is sent piece by piece, and the lines of its answer."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.response: aiohttp.ClientResponse

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._pieces.put_nowait(piece)

    def end(self) -> None:
        self._pieces.put_nowait(None)

    async def body(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def line(self) -> Any:
        """The next line with something in it; None: there are no more."""
        async with asyncio.timeout(SECONDS):
            async for line in self.response.content:
                if line.strip():
                    return json.loads(line)
        return None

    async def reach(self, count: int) -> Any:
        """The line that acknowledges so many messages."""
        while (line := await self.line())["messages"] < count:
            pass
        return line


@asynccontextmanager
async def publishing(
    url: str, path: str = PATH, type: str = LOG, **headers: str
) -> AsyncIterator[Publisher]:
    publisher = Publisher()
    sent = {"Content-Type": type, "Accept": "application/x-ndjson"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + path, data=publisher.body(), headers=sent, expect100=True) as response,
    ):
        publisher.response = response
        yield publisher


async def stored(served: StreamsServer, stream: str = "a") -> list[str]:
    answer = await served.ask("GET", f"/streams/{stream}/output?after=0", Accept=LOG)
    lines = answer.body.decode().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith("<")]


async def test_messages_are_acknowledged_while_the_log_is_open(served: StreamsServer) -> None:
    async with publishing(served.url) as publisher:
        assert publisher.response.status == 200
        assert publisher.response.content_type == "application/x-ndjson"
        publisher.send(message(1)[:20])
        element = f"{served.url}/streams/a/output"
        for number in (1, 2, 3):
            publisher.send(message(number)[20:], message(number + 1)[:20])
            assert await publisher.line() == {
                "first": f"{element}/{number}",
                "last": f"{element}/{number}",
                "elements": 1,
                "messages": number,
            }
            assert len(await stored(served)) == number
        publisher.send(message(4)[20:])
        publisher.end()
        assert (await publisher.line())["messages"] == 4
        assert await publisher.line() is None
    assert await stored(served) == ["1", "2", "3", "4"]


def flushing(coding: str) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    """What compresses a piece so that all of it can be read at once, and the end."""
    if coding == "gzip":
        packer = zlib.compressobj(wbits=31)
        return lambda piece: packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH), packer.flush
    zstd = zstandard.ZstdCompressor().compressobj()
    block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
    return lambda piece: zstd.compress(piece) + zstd.flush(block), zstd.flush


CODINGS = pytest.mark.parametrize("coding", ["gzip", "zstd"])


@CODINGS
async def test_compressed_logs(served: StreamsServer, coding: str) -> None:
    """Each message is acknowledged when its delimiter can be decompressed."""
    pack, end = flushing(coding)
    async with publishing(served.url, Content_Encoding=coding) as publisher:
        publisher.send(pack(message(1)))
        for number in range(1, 20):
            publisher.send(*(bytes([byte]) for byte in pack(message(number + 1))))
            assert (await publisher.line())["messages"] == number
        publisher.send(end())
        publisher.end()
        assert (await publisher.line())["messages"] == 20
        assert await publisher.line() is None
    assert await stored(served) == list(map(str, range(1, 21)))


@CODINGS
@pytest.mark.parametrize("damage", ["cut", "changed", "plain"])
async def test_damaged_compression(served: StreamsServer, coding: str, damage: str) -> None:
    """What was acknowledged before stays; the last line says what is wrong."""
    pack, end = flushing(coding)
    async with publishing(served.url, Content_Encoding=coding) as publisher:
        publisher.send(pack(message(1)), pack(message(2)))
        assert (await publisher.line())["messages"] == 1
        rest = pack(message(3)) + end()
        publisher.send({"cut": rest[:-1], "changed": b"\xff" * 20, "plain": message(4)}[damage])
        publisher.end()
        lines = [json.loads(line) async for line in publisher.response.content if line.strip()]
    assert lines[-1]["status"] == 400
    assert "Content-Encoding" in lines[-1]["hint"]
    assert await stored(served) in (["1"], ["1", "2"])


@CODINGS
async def test_few_bytes_of_a_long_log(served: StreamsServer, coding: str) -> None:
    """Others are answered while they are read, and `message_bytes` is about what they contain."""
    pack, _ = flushing(coding)
    comment = b"# nothing\n" * 50_000
    async with publishing(served.url, Content_Encoding=coding) as publisher:
        last = asyncio.create_task(publisher.reach(50))
        publisher.send(b"".join([pack(message(number) + comment) for number in range(51)]))
        answered = 0
        async with asyncio.timeout(SECONDS):
            while not last.done():
                await served.ask("GET", "/streams/a")
                answered += 1
        assert (await last)["messages"] == 50
        assert answered > 5
        publisher.send(b"".join([pack(comment) for _ in range(100)]))
        assert (await publisher.line())["status"] == 413
    assert len(await stored(served)) == 50


async def test_a_window_of_zstd_is_bounded(served: StreamsServer) -> None:
    """RFC 9659, section 3."""
    log = b"".join(map(message, range(3)))
    for size, kept in ((23, 3), (24, 0)):
        wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=size)
        packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
        headers = {"Content_Encoding": "zstd", "Idempotency_Key": f'"{size}"'}
        async with publishing(served.url, **headers) as publisher:
            publisher.send(packer.compress(log) + packer.flush())
            publisher.end()
            lines = [json.loads(line) async for line in publisher.response.content if line.strip()]
        assert lines[-1].get("messages", 0) == kept
    assert "8 MiB" in lines[-1]["hint"]


async def test_many_messages_have_few_lines(served: StreamsServer) -> None:
    total = 3000
    async with publishing(served.url) as publisher:
        publisher.send(b"".join(map(message, range(total))))
        publisher.end()
        lines = [line async for line in publisher.response.content if line.strip()]
    assert len(lines) < total / 10
    assert sum(json.loads(line)["elements"] for line in lines) == total
    assert await stored(served) == [str(number) for number in range(total)]


async def test_a_malformed_message_ends_the_log(served: StreamsServer) -> None:
    async with publishing(served.url) as publisher:
        publisher.send(message(1), message(2), b"# @message\n<urn:s> <urn:p> .\n", message(4))
        publisher.end()
        assert (await publisher.reach(2))["last"].endswith("/2")
        refused = await publisher.line()
        assert (refused["status"], refused["message"], refused["line"]) == (422, 3, 6)
        assert "detail" in refused
        assert await publisher.line() is None
    assert await stored(served) == ["1", "2"]


async def test_a_log_without_messages(served: StreamsServer) -> None:
    async with publishing(served.url) as publisher:
        publisher.end()
        assert (await publisher.line())["status"] == 422


async def test_a_key_numbers_the_messages(served: StreamsServer) -> None:
    """What was stored before is not stored again, wherever the publisher begins and however the log is cut."""
    key = {"Idempotency_Key": '"log"'}
    for first, last, after in ((1, 3, 0), (1, 5, 0), (4, 8, 3), (9, 9, 8)):
        async with publishing(served.url, **key, RDF_Log_After=str(after)) as publisher:
            publisher.send(*map(message, range(first, last + 1)))
            publisher.end()
            await publisher.reach(last)
    assert await stored(served) == [str(number) for number in range(1, 10)]
    async with publishing(served.url, **key, RDF_Log_After="11") as publisher:
        publisher.send(message(12))
        publisher.end()
        missing = await publisher.line()
        assert (missing["status"], missing["message"]) == (409, 12)
        assert "from message 10 on" in missing["hint"]
    answer = await served.ask("POST", PATH, message(1), LOG, Idempotency_Key='"log"')
    assert answer.status == 422
    assert len(await stored(served)) == 9


async def test_a_publisher_that_leaves(served: StreamsServer) -> None:
    """What it was told is stored; the message that it was sending is not."""
    client = socket.create_connection(served.url.removeprefix("http://").split(":"))
    with client:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {LOG}\r\n"
            "Accept: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        body = message(1) + message(2)[:30]
        await loop.sock_sendall(client, head.encode() + b"%x\r\n%s\r\n" % (len(body), body))
        answer = b""
        while b'"messages": 1' not in answer:
            answer += await loop.sock_recv(client, 4096)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await eventually(lambda: served.followers() == 0)
    assert served.streams.bounds.body_bytes == 0
    assert await stored(served) == ["1"]


async def test_a_quiet_publisher_hears_that_the_server_is_there(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", heartbeat_seconds=0.05) as served:
        await served.ask("PUT", "/streams/a")
        async with publishing(served.url) as publisher:
            for _ in range(3):
                assert await publisher.response.content.readline() == b"\n"
            publisher.send(message(1))
            publisher.end()
            assert (await publisher.line())["messages"] == 1


@pytest.mark.parametrize(
    ("settings", "status"),
    [({"message_bytes": 1000}, 413), ({"bodies_bytes": 1000}, 503)],
    ids=["a large message", "no memory"],
)
async def test_limits(tmp_path: Path, settings: dict[str, int], status: int) -> None:
    async with serving_streams(tmp_path / "streams.db", **settings) as served:
        await served.ask("PUT", "/streams/a")
        async with publishing(served.url) as publisher:
            publisher.send(message(1), b"# @message\n")
            await publisher.reach(1)
            publisher.send(message("x" * 4000).removeprefix(b"# @message\n"), message(3))
            publisher.end()
            refused = await publisher.line()
            assert (refused["status"], refused["message"]) == (status, 2)
        assert await stored(served) == ["1"]
        assert served.streams.bounds.body_bytes == 0


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/streams/b/input", {}, 404),
        (PATH, {"type": "text/html; messages=rdfm"}, 415),
        (PATH, {"Content_Encoding": "br"}, 415),
        (PATH, {"RDF_Log_After": "3"}, 400),
        (PATH, {"RDF_Log_After": "x", "Idempotency_Key": "k"}, 400),
    ],
)
async def test_refused_before_it_begins(
    served: StreamsServer, path: str, headers: dict[str, str], status: int
) -> None:
    async with publishing(served.url, path, **headers) as publisher:
        publisher.end()
        assert publisher.response.status == status


async def test_who_may_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_TOKEN", "secret")
    token = {"Authorization": "Bearer secret"}
    settings: dict[str, Any] = {"publish": "STREAM_TOKEN", "followers": 1}
    async with serving_streams(tmp_path / "streams.db", **settings) as served:
        await served.ask("PUT", "/streams/a", **token)
        async with publishing(served.url) as publisher:
            publisher.end()
            assert publisher.response.status == 401
        async with (
            publishing(served.url, **token) as publisher,
            publishing(served.url, **token) as another,
        ):
            another.end()
            assert another.response.status == 503
            publisher.send(message(1))
            publisher.end()
            await publisher.reach(1)


async def test_the_end_of_the_server(served: StreamsServer) -> None:
    async with publishing(served.url) as publisher:
        publisher.send(message(1), message(2)[:20])
        await publisher.reach(1)
        await served.streams.stop()
        stopped = await publisher.line()
        assert (stopped["status"], stopped["message"]) == (503, 2)
    assert await stored(served) == ["1"]


@pytest.mark.parametrize(
    ("accept", "type"),
    [
        ("*/*", LOG),
        ("application/json, application/x-ndjson", LOG),
        ("application/x-ndjson;q=0, application/json", LOG),
        ("application/x-ndjson", "application/n-quads"),
    ],
)
async def test_other_answers_are_as_before(served: StreamsServer, accept: str, type: str) -> None:
    answer = await served.ask("POST", PATH, message(1), type, Accept=accept)
    assert (answer.status, answer.json["elements"]) == (201, 1)


async def test_each_message_has_a_base_of_its_own(served: StreamsServer) -> None:
    async with publishing(served.url, type="text/turtle; messages=rdfm") as publisher:
        for number in (1, 2, 3):
            publisher.send(b"# @message\n<> <urn:p> <#it> .\n")
            if number > 1:
                await publisher.reach(number - 1)
        publisher.end()
        await publisher.reach(3)
    answer = await served.ask("GET", "/streams/a/output/3", Accept="application/n-quads")
    element = f"{served.url}/streams/a/output/3"
    assert answer.body.decode() == f"<{element}> <urn:p> <{element}#it> .\n"


async def test_shapes(tmp_path: Path) -> None:
    shapes = tmp_path / "shapes.ttl"
    shapes.write_text(
        f"{PREFIXES}ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:minInclusive 3 ] ."
    )
    settings: dict[str, Any] = {
        "strict": BridgeSettings(shapes=(str(shapes),)),
        "sorted": BridgeSettings(shapes=(str(shapes),), invalid_to="letters"),
    }
    log = b"".join(
        b"# @message\n<http://example.org/a> <http://example.org/p> %d .\n" % n for n in (5, 1, 6)
    )
    async with serving_streams(tmp_path / "streams.db", bridges=settings) as served:
        for name in settings:
            await served.ask("PUT", f"/streams/{name}")
        turtle = {"type": "text/turtle; messages=rdfm", "Idempotency_Key": "k"}
        async with publishing(served.url, "/streams/strict/input", **turtle) as publisher:
            publisher.send(log)
            publisher.end()
            assert (await publisher.line())["messages"] == 1
            refused = await publisher.line()
            assert (refused["status"], refused["message"]) == (422, 2)
            assert refused["report"]["results"]
        for _ in range(2):
            async with publishing(served.url, "/streams/sorted/input", **turtle) as publisher:
                publisher.send(log)
                publisher.end()
                line = await publisher.reach(3)
                assert line["invalid"] == 1
        for stream, count in (("strict", 1), ("sorted", 2), ("letters", 1)):
            state = (
                await served.ask("GET", f"/streams/{stream}", Accept="application/ld+json")
            ).json
            assert state["lastSequence"] == count


@pytest.mark.slow
async def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """What was acknowledged is on disk, and the same log sent again is there once."""
    file, total = tmp_path / "streams.db", 5000
    log = [message(number) for number in range(1, total + 1)]
    acknowledged = 0
    for kill_after in (1000, None):
        server = Running(tmp_path, "--streams", str(file))
        url = await asyncio.to_thread(lambda server=server: server.url)
        async with aiohttp.ClientSession() as session:
            await session.put(f"{url}/streams/a")
        headers = {"Idempotency_Key": "log", "RDF_Log_After": str(acknowledged)}
        try:
            async with publishing(url, **headers) as publisher:
                publisher.send(*log[acknowledged:])
                publisher.end()
                while line := await publisher.line():
                    acknowledged = line["messages"]
                    if kill_after is not None and acknowledged >= kill_after:
                        server.process.kill()
        except (aiohttp.ClientError, ConnectionError):
            assert kill_after is not None
        await asyncio.to_thread(server.kill)
        with open_store(file, read_only=True) as store:
            assert store.state("a").last >= acknowledged
    with open_store(file, read_only=True) as store:
        texts = [element.nquads.decode().split('"')[1] for element in store.read("a")]
    assert texts == [str(number) for number in range(1, total + 1)]

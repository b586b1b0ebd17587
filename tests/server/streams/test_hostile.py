"""Requests to streams that make no sense, over bare sockets: a clear refusal or a clean close, and nothing appended."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import cycle, pairwise
from pathlib import Path
from random import Random

import pytest

from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.slow

ELEMENT = b"<urn:s> <urn:p> 1 ."
POST = b"POST /streams/a/input HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/turtle\r\n"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server of the stream `a` with two elements."""
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        await server.publish([numbered(1), numbered(2)])
        yield server


async def connected(served: StreamsServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = served.url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def exchange(served: StreamsServer, sent: bytes, *, ends: bool = False) -> bytes:
    """Sends bytes, and the end of them where that is asked for; gives what comes until the connection is closed."""
    reader, writer = await connected(served)
    came = b""
    try:
        writer.write(sent)
        if ends:
            writer.write_eof()
        with suppress(ConnectionError):  # a reset, as what else was sent is not read any more
            async with asyncio.timeout(SECONDS):
                while data := await reader.read(1 << 16):
                    came += data
    finally:
        writer.close()
    return came


async def status_of(served: StreamsServer, sent: bytes) -> int:
    """The status of the answer, whose connection may stay open."""
    reader, writer = await connected(served)
    try:
        writer.write(sent)
        async with asyncio.timeout(SECONDS):
            return int((await reader.readline()).split()[1])
    finally:
        writer.close()


async def check_whole(served: StreamsServer, elements: int = 2) -> None:
    """Nothing else was appended, and the server saw no fault of its own."""
    assert (await served.ask("GET", "/streams/a")).json["lastSequence"] == elements
    assert "event=fault" not in served.served.request_log.getvalue()


HUGE = "9" * 19  # more than 64 bits hold
TARGETS = {
    **{
        f"output?{query}": status
        for query, status in {
            "last=-1": 400,
            "last=1.5": 400,
            "last=": 400,
            "last=%00": 400,
            "last=%FF": 400,
            "last=%D9%A3": 400,  # a digit, of Arabic
            "last=1e3": 400,
            f"last={HUGE}": 200,
            f"last={HUGE}9": 400,
            "last=1&last=2": 400,
            "after=-1": 400,
            "after=%2B1": 400,
            "after=0x1": 400,
            "after=2": 200,
            "after=3": 404,
            f"after={HUGE}": 404,
            "since=2026-01-01": 400,
            "since=2026-01-01T00:00:00": 400,
            "since=2026-13-01T00:00:00Z": 400,
            "since=2026-01-01T00:00:00%2B25:00": 400,
            "since=0001-01-01T00:00:00%2B14:00": 400,
            "until=9999-12-31T23:59:59.999999Z": 400,
            "until=9999-12-31T23:59:59-14:00": 400,
            "until=" + "9" * 5000: 400,
            "list=x": 400,
            "list=-1": 400,
            f"list={HUGE}": 404,
            "format=": 200,  # as clients of SPARQL have names of their own
            "format=other": 200,
            "format=other&last=1": 200,
            "messages=other": 400,
            "other=1": 200,
        }.items()
    },
    **dict.fromkeys(["output/0", "output/3", "output/01", f"output/{HUGE}", "output/1/"], 404),
    **dict.fromkeys(
        ["output/-1", "output/1.0", f"output/{HUGE}9", "output/1%00", "output/%D9%A1"], 400
    ),
    "events?after=3": 404,
    **dict.fromkeys(
        ["events?after=x", "events?after=", "events?last=-1", "events?after=1&after=2"], 400
    ),
    **dict.fromkeys(
        ["events?until=2026-01-01T00:00:00Z", "events?since=x", "events?format=other"], 400
    ),
    "events?format=jelly": 406,
    "socket": 426,
    **{
        f"ldes/{page}": 404
        for page in (
            "1-0",
            "0-999",
            "-1--5",
            f"1-{HUGE}",
            "1001-1999",
            "01-1000",
            "1001-2000",
            "x",
            "%00",
            "",
        )
    },
    **dict.fromkeys(["../b", "%2E%2E", "nothing", ""], 404),
}


@pytest.mark.parametrize(
    ("target", "status"), TARGETS.items(), ids=[target[:40] for target in TARGETS]
)
async def test_targets(served: StreamsServer, target: str, status: int) -> None:
    request = f"GET /streams/a/{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert await status_of(served, request.encode()) == status
    await check_whole(served)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("", 400),
        ("x", 400),
        ("-1", 400),
        ("1, 2", 400),
        ("9" * 30, 400),
        ("\xff", 400),
        ("é", 400),
        ("3", 404),
    ],
)
async def test_last_event_ids(served: StreamsServer, value: str, status: int) -> None:
    head = f"GET /streams/a/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nLast-Event-ID: {value}\r\n\r\n"
    assert await status_of(served, head.encode()) == status
    await check_whole(served)


@pytest.mark.parametrize("path", ["output/1", "output?last=1", "ldes", "ldes/1-1000"])
async def test_ranges_are_not_served(served: StreamsServer, path: str) -> None:
    """They may be ignored (RFC 9110, section 14.2): the answer is whole, and does not look like a part."""
    accept = "application/n-quads"
    whole = await served.ask("GET", f"/streams/a/{path}", Accept=accept)
    part = await served.ask("GET", f"/streams/a/{path}", Accept=accept, Range="bytes=0-3")
    assert (part.status, part.body) == (200, whole.body)
    assert "Content-Range" not in part.headers


async def test_http_1_0(served: StreamsServer) -> None:
    """Without chunks: the end of the connection is the end of the log."""
    pulled = await exchange(
        served, b"GET /streams/a/output?last=2&format=nq&messages=rdfm HTTP/1.0\r\n\r\n"
    )
    head, _, body = pulled.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200")
    assert b"chunked" not in head
    assert body.count(b"# @message\n") == 2
    assert (await exchange(served, b"HEAD /streams/a/output HTTP/1.0\r\n\r\n")).endswith(
        b"\r\n\r\n"
    )
    sent = (
        b"POST /streams/a/input HTTP/1.0\r\nContent-Type: text/turtle\r\nContent-Length: 19\r\n\r\n"
        + ELEMENT
    )
    assert (await exchange(served, sent)).startswith(b"HTTP/1.0 201")
    await check_whole(served, 3)


async def test_pipelined_requests_are_answered_in_order(served: StreamsServer) -> None:
    head = b" HTTP/1.1\r\nHost: x\r\nAccept: application/n-quads\r\n"
    came = await exchange(
        served,
        b"GET /streams/a/output/1" + head + b"\r\n"
        b"HEAD /streams/a/output/1" + head + b"\r\n" + POST.replace(b"Connection: close\r\n", b"")
        + b"Content-Length: 19\r\n\r\n" + ELEMENT
        + b"GET /streams/a/output/9" + head + b"\r\n"
        b"GET /streams/a/output/3" + head + b"Connection: close\r\n\r\n",
    )  # fmt: skip
    assert re.findall(rb"HTTP/1.1 (\d+)", came) == [b"200", b"200", b"201", b"404", b"200"]
    assert came.endswith(b'<urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    await check_whole(served, 3)


BODIES = {
    # head, body, status; 0: closed without an answer, as nobody is there to read it
    "half a chunk": (b"Transfer-Encoding: chunked", b"13\r\n<urn:s> ", 0),
    "no last chunk": (b"Transfer-Encoding: chunked", b"13\r\n" + ELEMENT + b"\r\n", 0),
    "half a body": (b"Content-Length: 100", ELEMENT, 0),
    "chunk of no length": (b"Transfer-Encoding: chunked", b"zz\r\n", 400),
    "negative length": (b"Content-Length: -5", ELEMENT, 400),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 19", ELEMENT, 400),
    "length and chunks": (b"Content-Length: 19\r\nTransfer-Encoding: chunked", ELEMENT, 400),
    "length of twenty digits": (b"Content-Length: 99999999999999999999", ELEMENT, 400),
    "too long by its own word": (b"Content-Length: 999999999999", ELEMENT, 413),
    "another transfer coding": (
        b"Transfer-Encoding: gzip, chunked",
        b"13\r\n" + ELEMENT + b"\r\n0\r\n\r\n",
        501,
    ),
    "not compressed as it says": (b"Content-Encoding: gzip\r\nContent-Length: 19", ELEMENT, 400),
    "compressed otherwise": (b"Content-Encoding: br\r\nContent-Length: 19", ELEMENT, 415),
    "unknown expectation": (b"Expect: 200-maybe\r\nContent-Length: 19", ELEMENT, 417),
}


@pytest.mark.parametrize(("head", "body", "status"), BODIES.values(), ids=BODIES)
async def test_bodies(served: StreamsServer, head: bytes, body: bytes, status: int) -> None:
    sent = POST + head + b"\r\n\r\n" + body
    if status:
        assert await status_of(served, sent) == status
    else:
        assert await exchange(served, sent, ends=True) == b""
    await check_whole(served)


@pytest.mark.parametrize(
    ("head", "body"),
    [(b"Content-Length: 100", b"<"), (b"Transfer-Encoding: chunked", b"1\r\n#\r\n")],
    ids=["a body that never comes", "chunks that never end"],
)
async def test_bodies_must_arrive_in_time(head: bytes, body: bytes, tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", idle_seconds=0.5) as server:
        await server.ask("PUT", "/streams/a")
        assert await status_of(server, POST + head + b"\r\n\r\n" + body) == 408
        await check_whole(server, 0)


@pytest.mark.parametrize("path", ["/streams/b", "/streams"])
async def test_half_a_description_makes_no_stream(served: StreamsServer, path: str) -> None:
    method = b"PUT" if path.endswith("b") else b"POST"
    head = b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    assert await exchange(served, method + b" " + path.encode() + head, ends=True) == b""
    assert len((await served.ask("GET", "/streams")).json["contains"]) == 1
    await check_whole(served)


def frame(opcode: int, data: bytes = b"", *, bits: int = 0x80, length: int | None = None) -> bytes:
    """A masked frame (RFC 6455, section 5.2); `bits` are FIN and those that are reserved."""
    size = len(data) if length is None else length
    shown = bytes([0x80 | size]) if size < 126 else b"\xff" + struct.pack(">Q", size)
    return bytes([bits | opcode]) + shown + b"\0\0\0\0" + data


def deflated(size: int) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return (compressor.compress(b"x" * size) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]


HANDSHAKE = (
    b"GET /streams/a/socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(b"x" * 16) + b"\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
REFUSED, BROKEN, NO_TEXT, TOO_LARGE, NORMAL = 1003, 1002, 1007, 1009, 1000
FRAMES = {
    "text": (frame(TEXT, b"x"), REFUSED),
    "binary": (frame(BINARY, b"x"), REFUSED),
    "fragments": (frame(TEXT, b"x", bits=0) + frame(0, b"x"), REFUSED),
    "too large": (frame(TEXT, b"x" * 70_000), TOO_LARGE),
    "too large by its own word": (frame(TEXT, length=1 << 40), TOO_LARGE),
    "fragments without end": (
        frame(TEXT, b"x", bits=0) + frame(0, b"x" * 1000, bits=0) * 50,
        TOO_LARGE,
    ),
    "compressed, which was not agreed on": (
        frame(TEXT, deflated(50 << 20)[:3000], bits=0xC0),
        BROKEN,
    ),
    "reserved bit": (frame(TEXT, b"x", bits=0x90), BROKEN),
    "unknown opcode": (frame(3, b"x"), BROKEN),
    "continuation of nothing": (frame(0, b"x"), BROKEN),
    "ping of many bytes": (frame(PING, b"x" * 126), BROKEN),
    "bytes that are no text": (frame(TEXT, b"\xff"), NO_TEXT),
    "close of one byte": (frame(CLOSE, b"\0"), BROKEN),
    "close with a code that is none": (frame(CLOSE, b"\0\1"), BROKEN),
    "close without a code": (frame(CLOSE), NORMAL),
    "close": (frame(CLOSE, b"\x03\xe8"), NORMAL),
    "text that is not masked": (b"\x81\x01x", BROKEN),
    "ping that is not masked": (b"\x89\x00", BROKEN),
    "close that is not masked": (b"\x88\x02\x03\xe8", BROKEN),
    "long text that is not masked": (b"\x82\x7f" + bytes(8), BROKEN),
    "half a frame, before which one is not masked": (b"\x81\x00\x81", BROKEN),
}


@pytest.mark.parametrize(("sent", "code"), FRAMES.values(), ids=FRAMES)
async def test_frames_of_followers(served: StreamsServer, sent: bytes, code: int) -> None:
    reader, writer = await connected(served)
    async with asyncio.timeout(SECONDS):
        writer.write(HANDSHAKE)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        writer.write(sent)
        first, second = await reader.readexactly(2)
        assert first == 0x80 | CLOSE
        assert int.from_bytes((await reader.readexactly(second))[:2], "big") == code
    writer.close()
    await eventually(lambda: not served.followers())
    await check_whole(served)


@pytest.mark.parametrize("seed", range(20))
async def test_frames_that_are_not_masked_at_any_cut(served: StreamsServer, seed: int) -> None:
    """However the bytes come, masked frames are stored, and nothing from the unmasked one on is."""
    random = Random(seed)

    def of_size(size: int, mask: bytes) -> bytes:
        text = b"#" + b"x" * (size - 1)
        short = size if size < 126 else 126 if size < 1 << 16 else 127
        length = {126: struct.pack(">H", size & 0xFFFF), 127: struct.pack(">Q", size)}.get(
            short, b""
        )
        data = bytes(byte ^ key for byte, key in zip(text, cycle(mask or b"\0"), strict=False))
        return bytes([0x80 | TEXT, short | (0x80 if mask else 0)]) + length + mask + data

    sizes = random.choices([1, 124, 125, 126, 127, 300, 65_534, 65_535, 65_536, 70_000], k=5)
    before = b"".join(of_size(size, random.randbytes(4)) for size in sizes)
    rest = of_size(random.choice([1, 125, 126]), b"") + of_size(1, random.randbytes(4))
    reader, writer = await connected(served)
    writer.write(HANDSHAKE.replace(b"/socket", b"/input"))
    came = b""
    async with asyncio.timeout(SECONDS):
        if random.random() < 0.5:
            await reader.readuntil(b"\r\n\r\n")
        whole = len(before) + 1  # the mask is in the second byte
        ends = {random.choice([1, 2, 3, 9, whole]) + random.randrange(whole) for _ in range(30)}
        for start, end in pairwise([0, *sorted(end for end in ends if end < whole), whole]):
            writer.write((before + rest)[start:end])
            await asyncio.sleep(0.001)  # so that the server reads it by itself
        while came.count(b'"elements"') < len(sizes):
            came += await reader.read(1 << 16)
        writer.write(rest[1:])
        assert await reader.read() == b"\x88\x02" + BROKEN.to_bytes(2)
    writer.close()
    await check_whole(served, 2 + len(sizes))


async def test_a_websocket_that_reads_nothing(tmp_path: Path) -> None:
    async with serving_streams(
        tmp_path / "streams.db", idle_seconds=0.5, heartbeat_seconds=SECONDS
    ) as server:
        await server.ask("PUT", "/streams/a")
        await server.streams._store.aappend_all("a", [numbered(1, 8_000_000)])
        with socket.socket() as connection:
            # before it connects, or else it grows
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, ("127.0.0.1", int(server.url.rpartition(":")[2])))
            sent = HANDSHAKE.replace(b"/socket", b"/socket?after=0")
            await loop.sock_sendall(connection, sent)
            await eventually(server.followers)
            await eventually(lambda: not server.followers())
            await eventually(lambda: "action=websocket" in server.served.request_log.getvalue())
            assert "outcome=aborted:idle" in server.served.request_log.getvalue()


async def test_pings_are_answered(served: StreamsServer) -> None:
    reader, writer = await connected(served)
    async with asyncio.timeout(SECONDS):
        writer.write(HANDSHAKE + frame(PING, b"here"))
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(6) == b"\x8a\x04here"
    writer.close()
    await eventually(lambda: not served.followers())


@pytest.mark.parametrize("cut", [1, 5, len(frame(TEXT, b"xxxx")) - 1])
async def test_half_a_frame(served: StreamsServer, cut: int) -> None:
    await exchange(served, HANDSHAKE + frame(TEXT, b"xxxx")[:cut], ends=True)
    await eventually(lambda: not served.followers())
    await check_whole(served)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Sec-WebSocket-Key", b"X-Key"),
        (base64.b64encode(b"x" * 16), b"x"),
        (b"websocket\r\n", b"other\r\n"),
    ],
    ids=["no key", "bad key", "another protocol"],
)
async def test_handshakes(served: StreamsServer, old: bytes, new: bytes) -> None:
    reader, writer = await connected(served)
    writer.write(HANDSHAKE.replace(old, new))
    async with asyncio.timeout(SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 426")
    assert b"Upgrade: websocket" in head
    writer.close()
    assert not served.followers()

"""How bytes reach a client, and how a client learns that they did not all come, over real sockets."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
import zstandard
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from construct_messages.errors import ConstructMessagesError, SourceError
from construct_messages.server.http.sending import (
    Aborted,
    coder_for,
    negotiate_coding,
    problem,
    send,
)
from tests.support.http.programs import CLIENTS, Broken, Client, is_installed
from tests.support.places import absent
from tests.support.waiting import SECONDS, eventually, settled

Body = Callable[[], AsyncGenerator[bytes]]


@asynccontextmanager
async def serving(
    body: Body, outcomes: list[str] | None = None, **options: object
) -> AsyncIterator[str]:
    """A server that sends one body to everybody; what became of each is added to `outcomes`."""
    outcomes = [] if outcomes is None else outcomes

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            response = await send(
                request,
                body(),
                {"Content-Type": "text/plain"},
                **{"idle_seconds": SECONDS} | options,
            )
        except ConstructMessagesError as error:
            outcomes.append("problem")
            return problem(error)
        except Aborted as error:
            outcomes.append(error.reason)
            return web.Response()
        except asyncio.CancelledError:
            outcomes.append("cancelled")
            raise
        outcomes.append("complete")
        return response

    app = web.Application()
    app.router.add_get("/", handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield site.name
    finally:
        await runner.cleanup()


async def whole() -> AsyncGenerator[bytes]:
    for number in range(3):
        yield b"%d\n" % number * 40_000


async def cut() -> AsyncGenerator[bytes]:
    yield b"whole\n" * 1000
    await asyncio.sleep(
        0.05
    )  # so that the first bytes are read before the reset, which may overtake them
    raise SourceError("the source broke off")


async def refused() -> AsyncGenerator[bytes]:
    raise SourceError("the source is away", status=503, retry_after=1.2)
    yield b""


async def nothing() -> AsyncGenerator[bytes]:
    return
    yield b""


def client_of(name: str) -> Client:
    if not is_installed(name):
        absent("curl is not installed")
    return CLIENTS[name]


@pytest.mark.parametrize("buffer_bytes", [0, 1 << 20], ids=["streamed", "held back"])
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_whole_body_arrives(name: str, buffer_bytes: int) -> None:
    outcomes: list[str] = []
    async with serving(whole, outcomes, buffer_bytes=buffer_bytes) as url:
        assert (await client_of(name)(url, {})).body == b"".join([chunk async for chunk in whole()])
        await eventually(lambda: outcomes)  # a moment after the client has everything
    assert outcomes == ["complete"]


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_body_that_breaks_off_is_an_error_for_every_client(name: str) -> None:
    outcomes: list[str] = []
    async with serving(cut, outcomes) as url:
        with pytest.raises(Broken):
            await client_of(name)(url, {})
        await eventually(lambda: outcomes)
    assert outcomes == ["SourceError"]


@pytest.mark.parametrize("buffer_bytes", [0, 1 << 20])
async def test_an_error_before_the_first_byte_is_a_status(buffer_bytes: int) -> None:
    async with (
        serving(refused, buffer_bytes=buffer_bytes) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert response.status == 503
        assert response.headers["Retry-After"] == "2"
        assert response.content_type == "application/problem+json"
        assert (await response.json(content_type=None))["detail"] == "the source is away"


async def test_an_error_in_a_body_that_is_held_back_is_a_status() -> None:
    async with (
        serving(cut, buffer_bytes=1 << 20) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert response.status == 502


async def test_a_body_that_is_held_back_has_a_length() -> None:
    async with (
        serving(whole, buffer_bytes=1 << 20) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert response.headers["Content-Length"] == "240000"
        assert "Transfer-Encoding" not in response.headers


async def test_a_body_past_the_buffer_is_streamed() -> None:
    async with (
        serving(whole, buffer_bytes=100_000) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert "Content-Length" not in response.headers
        assert len(await response.read()) == 240_000


async def test_an_empty_body_has_a_length() -> None:
    async with (
        serving(nothing) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert (response.status, response.headers["Content-Length"]) == (200, "0")


async def test_the_connection_is_used_again_after_a_whole_body() -> None:
    async with serving(whole) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()
        await writer.wait_closed()


async def test_a_slow_client_holds_back_the_body() -> None:
    made = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield b"x" * 65536

    outcomes: list[str] = []
    async with serving(endless, outcomes) as url:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await eventually(lambda: made)
        assert await settled(lambda: made) < 400  # what the sockets hold
        writer.transport.abort()
        await eventually(lambda: outcomes)
    assert outcomes in (["cancelled"], ["left"])


async def test_a_client_that_takes_nothing_is_let_go() -> None:
    async def endless() -> AsyncGenerator[bytes]:
        while True:
            yield b"x" * 65536

    outcomes: list[str] = []
    async with serving(endless, outcomes, idle_seconds=0.2) as url:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await eventually(lambda: outcomes)
        assert outcomes == ["idle"]
        writer.transport.abort()


async def test_a_client_that_leaves_ends_the_body() -> None:
    ended = asyncio.Event()

    async def silent() -> AsyncGenerator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(silent) as url:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert await response.content.readany() == b"first"
            response.close()
        await asyncio.wait_for(ended.wait(), SECONDS)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_each_chunk_can_be_decoded_when_it_comes(coding: str) -> None:
    go_on = asyncio.Event()

    async def two() -> AsyncGenerator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async with (
        serving(two, coding=coding) as url,
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(url) as response,
    ):
        decoder = (
            zlib.decompressobj(wbits=31)
            if coding == "gzip"
            else zstandard.ZstdDecompressor().decompressobj()
        )
        decoded = b""
        while decoded != b"first":
            decoded += decoder.decompress(
                await asyncio.wait_for(response.content.readany(), SECONDS)
            )
        go_on.set()
        assert decoder.decompress(await response.read()) == b"second"


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        (None, None),
        ("", None),
        ("*", "zstd"),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("gzip, zstd;q=0.9", "gzip"),
        ("gzip, zstd", "zstd"),
        ("zstd;q=0, *", "gzip"),
        ("gzip;q=0", None),
        ("identity", None),
        ("identity, gzip;q=0.5", None),
        ("identity;q=0.5, gzip", "gzip"),
        ("br", None),
        ("gzip;q=much", None),
    ],
)
def test_negotiation_of_codings(header: str | None, coding: str | None) -> None:
    headers = {} if header is None else {"Accept-Encoding": header}
    assert negotiate_coding(make_mocked_request("GET", "/", headers)) == coding


def test_the_identity_changes_nothing() -> None:
    coder = coder_for(None)
    assert coder.code(b"x") + coder.finish() == b"x"

"""Whether a server expects TLS, found where a connection without TLS failed: servers of OpenSSL, and others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from construct_messages import Message
from construct_messages.errors import SourceError
from construct_messages.feeds import publish, subscribe
from construct_messages.sparql.client.tls import check_plain, check_tls
from tests.support.certificates import certificate_in
from tests.support.engines.servers import free_port, running
from tests.support.http.streams import serving_streams


@pytest.fixture(params=[(), ("-tls1_2", "-Verify", "1"), ("-tls1_3", "-Verify", "1")], ids=str)
def tls_port(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a server of OpenSSL, with or without certificates of clients."""
    made, port = certificate_in(tmp_path), free_port()
    files = ("-cert", made.certificate, "-key", made.key)
    command = ["openssl", "s_server", "-quiet", "-accept", f"127.0.0.1:{port}", *files]
    with running([*command, *request.param], [port], tmp_path):
        yield port


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[int]:
    """The port of a server that answers to anything, or never does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if answer is not None:
            writer.write(answer)
            writer.close()
        else:
            await reader.read()
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.process
async def test_a_server_of_tls(tls_port: int) -> None:
    with pytest.raises(SourceError, match="a:b expects TLS at this port") as refused:
        await check_plain("a:b", "127.0.0.1", tls_port, "write c:")
    assert refused.value.hint == "write c:"
    assert not refused.value.transient


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 9, None])
async def test_another_server(answer: bytes | None) -> None:
    async with answering(answer) as port:
        await check_plain("a:b", "127.0.0.1", port, "")
    await check_plain("a:b", "127.0.0.1", free_port(), "")


async def test_a_server_without_tls() -> None:
    async with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        with pytest.raises(SourceError, match="a:b has no TLS at this port") as refused:
            await check_tls("a:b", "127.0.0.1", port, b"x", "write c:")
    assert (refused.value.hint or "").endswith("or write c:")
    assert not refused.value.transient


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"", b"\x15\3\3\0\2\2\x0a", None])
async def test_silence_may_have_other_reasons(answer: bytes | None) -> None:
    """An alert is of TLS."""
    async with answering(answer) as port:
        await check_tls("a:b", "127.0.0.1", port, b"x", "write c:")
    await check_tls("a:b", "127.0.0.1", free_port(), b"x", "")


@pytest.mark.process
async def test_a_server_of_tls_has_it(tls_port: int) -> None:
    await check_tls("a:b", "127.0.0.1", tls_port, b"OPTIONS * HTTP/1.1\r\n\r\n", "")


@pytest.mark.parametrize("scheme", ["https", "wss", "grpcs"])
async def test_clients_of_streams_at_a_port_without_tls(tmp_path: Path, scheme: str) -> None:
    port = free_port()
    async with serving_streams(tmp_path / "s.db", grpc=f"127.0.0.1:{port}") as served:
        await served.ask("PUT", "/streams/a")
        if scheme == "grpcs":
            url = f"grpcs://127.0.0.1:{port}/a"
        else:
            url = served.url.replace("http:", f"{scheme}:") + "/streams/a/output"
        async with asyncio.timeout(50), aclosing(subscribe(url, after=0)) as elements:
            with pytest.raises(
                SourceError, match=r"has no TLS|WRONG_VERSION|LAYER_FAIL"
            ) as refused:
                await anext(elements)
        assert "the port that has TLS" in (refused.value.hint or "")


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("tls_port", [()], indirect=True, ids=str)
@pytest.mark.parametrize("scheme", ["http", "grpc", "mqtt", "kafka"])
async def test_clients_of_streams_do_not_try_for_a_minute(tls_port: int, scheme: str) -> None:
    """Each took 62 s, and then named the network."""
    url = f"{scheme}://127.0.0.1:{tls_port}/a"
    async with asyncio.timeout(50):
        with pytest.raises(SourceError, match="expects TLS at this port"):
            await publish([Message()], url)
        async with aclosing(subscribe(url)) as elements:
            with pytest.raises(SourceError, match="expects TLS at this port"):
                await anext(elements)

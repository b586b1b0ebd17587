"""Google's grpcio as the other side, which compresses both ways and enforces its own rules for pings and sizes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import grpc
import pytest

from construct_messages import Message
from construct_messages.feeds import publish, subscribe
from construct_messages.logs.jelly.service import PUBLISH, SUBSCRIBE, RdfStreamSubscribe
from construct_messages.sparql.client.grpc import MessageReader
from tests.support.grpc.peer import decoded, split
from tests.support.grpc.serving import GrpcServer
from tests.support.logs.kinds import isomorphic
from tests.support.logs.pyjelly import LookupPreset, write_by_peer
from tests.support.streams import numbered
from tests.support.waiting import eventually

SENT = [numbered(number, 300) for number in range(1, 40)]
GZIP = grpc.Compression.Gzip


@asynccontextmanager
async def serving(
    *, stays: bool = False, compression: grpc.Compression = GZIP
) -> AsyncIterator[tuple[str, list[bytes], list[str]]]:
    """A server that sends the frames of `SENT`; its address, the frames that it gets, and who subscribed."""
    subscriptions: list[str] = []
    frames, taken = split(write_by_peer(SENT, True, LookupPreset.small())), list[bytes]()

    async def subscribed(
        _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        subscriptions.append(context.peer())
        await context.send_initial_metadata(())
        for frame in frames:
            yield frame
        if stays:
            await asyncio.Event().wait()

    async def published(
        messages: AsyncIterator[bytes], _: grpc.aio.ServicerContext[bytes, bytes]
    ) -> bytes:
        taken.extend([message async for message in messages])
        return b""

    methods = {
        SUBSCRIBE: grpc.unary_stream_rpc_method_handler(subscribed),
        PUBLISH: grpc.stream_unary_rpc_method_handler(published),
    }

    class Service(grpc.GenericRpcHandler):  # type: ignore[misc] # grpcio has no types here
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
            return methods.get(details.method)

    server = grpc.aio.server(compression=compression)
    server.add_generic_rpc_handlers((Service(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}", taken, subscriptions
    finally:
        await server.stop(None)


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the messages that came compressed."""
    sizes: list[int] = []
    unpack = MessageReader._unpacked

    def counting(reader: MessageReader, data: bytes) -> bytes:
        sizes.append(len(data))
        return unpack(reader, data)

    monkeypatch.setattr(MessageReader, "_unpacked", counting)
    return sizes


async def test_our_client(unpacked: list[int]) -> None:
    async with serving() as (address, taken, _):
        url = f"grpc://{address}/a"
        elements = [element async for element in subscribe(url, follow=False)]
        assert [element.message for element in elements] == SENT
        assert len(unpacked) == len(SENT)
        assert await publish(SENT, url, options={"compression": "gzip"}) == len(SENT)
        assert isomorphic(decoded(taken), SENT)


async def test_our_server(served: GrpcServer, unpacked: list[int]) -> None:
    frames = split(write_by_peer(SENT, True, LookupPreset.small()))
    async with grpc.aio.insecure_channel(served.address, compression=GZIP) as channel:
        publishing = channel.stream_unary(PUBLISH)
        metadata = (("rdf-stream-topic", "a"), ("idempotency-key", "k"))
        assert await publishing(iter(frames), metadata=metadata) == b""
        assert len(unpacked) == len(SENT)
        ends = (("rdf-stream-follow", "false"),)
        call = channel.unary_stream(SUBSCRIBE)(RdfStreamSubscribe("a").encode(), metadata=ends)
        assert decoded([frame async for frame in call]) == SENT
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await publishing(iter(()), metadata=metadata)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in channel.unary_stream(SUBSCRIBE)(RdfStreamSubscribe("b").encode()):
                pass
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert await check(b"") == b"\x08\x01", "it is serving"


@pytest.mark.slow
async def test_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet stream stays open under pings, and where the server has enough of them, the client comes back."""
    monkeypatch.setattr("construct_messages.feeds.connections._PAUSE_SECONDS", 0)
    async with serving(stays=True) as (address, _, subscriptions):
        replays = {"replays": "true"}
        async with aclosing(
            subscribe(f"grpc://{address}/a", options=replays, idle_seconds=0.2, retries=2)
        ) as following:
            elements: list[Message] = [(await anext(following)).message for _ in SENT]
            waiting = asyncio.create_task(anext(following))
            await eventually(lambda: len(subscriptions) == 3)  # after three pings each
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert elements == SENT

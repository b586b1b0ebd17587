"""PublishRdf: what is stored and acknowledged, keys, limits, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.errors import SourceError
from construct_messages.feeds.grpc import ClientCall
from construct_messages.logs.jelly.encoder import FrameWriter, options_row
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.service import DEFAULT_OPTIONS, PUBLISH, SUBSCRIBE
from construct_messages.sparql.client.grpc import IDENTITY, framed
from construct_messages.streams.element import Description
from tests.support.grpc.serving import GrpcServer, serving_grpc
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually

NAMED = replace(DEFAULT_OPTIONS, stream_name="a")
NODE = Message([Quad(blank("b"), iri("urn:p"), literal("x"), iri("urn:g"))])
SENT = [numbered(1), Message(), NODE, NODE, *map(numbered, range(2, 9))]


def written(messages: Sequence[Message], options: JellyOptions = NAMED) -> list[bytes]:
    writer = FrameWriter(options, {})
    return [writer.write(message) for message in messages]


async def published(
    served: GrpcServer, frames: Sequence[bytes], *, end: bool = True, **metadata: str
) -> dict[str, str]:
    """Publishes frames, and returns the trailers."""
    sent = {name.replace("_", "-"): value for name, value in metadata.items()}
    with served.connection() as connection:
        async with await connection.call(PUBLISH, sent, IDENTITY, 1 << 20) as call:
            return await replied(call, frames, end=end)


async def replied(call: ClientCall, frames: Sequence[bytes], *, end: bool = True) -> dict[str, str]:
    await call.send(b"".join(map(framed, frames)), end=end)
    assert await call.read() == b"", "the reply has no fields"
    assert await call.read() is None
    return dict(call.trailers)


def stored(served: GrpcServer) -> list[Message]:
    return [element.message for element in served.elements()]


@pytest.mark.parametrize("metadata", [{}, {"idempotency_key": "k"}], ids=["no key", "key"])
async def test_publish(served: GrpcServer, metadata: dict[str, str]) -> None:
    for times in (1, 2):
        trailers = await published(served, written(SENT), **metadata)
        expected = SENT if metadata else SENT * times
        assert isomorphic(stored(served), expected)
        assert trailers["rdf-stream-last"] == str(len(expected))
    nodes = [next(iter(message)).subject for message in stored(served) if NODE.isomorphic(message)]
    assert len(set(nodes)) == len(nodes), "a node is one of its message"


async def test_a_key_of_other_messages(served: GrpcServer) -> None:
    await published(served, written(SENT), idempotency_key='"k"')
    with pytest.raises(SourceError, match="INVALID_ARGUMENT: the key 'k' was used"):
        await published(served, written(SENT[1:]), idempotency_key="k")
    assert isomorphic(stored(served), SENT)


async def test_a_stream_without_messages(served: GrpcServer) -> None:
    """The options twice in one frame, as this package writes a log without messages."""
    row = options_row(NAMED)
    assert "rdf-stream-last" not in await published(served, [row * 2])
    assert stored(served) == []


BAD = written([numbered(1)])[0]


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ([], "the call has no frame"),
        ([b""], "the first frame has no options"),
        ([b"\x0a\x02\x12\x00"], "a triple, where the options of the stream are due"),
        ([b"\xff"], "byte 0 of the frame"),
        (written([numbered(1)], DEFAULT_OPTIONS), "stream_name is empty"),
        ([options_row(replace(NAMED, version=1)).replace(b"\x78\x01", b"\x78\x09")], "version 9"),
        ([b"\x0a\x07\x0a\x05\x0a\x01a\x10\x02"], "max_name_table_size=0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_refusals(served: GrpcServer, frames: list[bytes], said: str) -> None:
    with pytest.raises(SourceError, match="INVALID_ARGUMENT: .*" + said) as refused:
        await published(served, frames)
    assert refused.value.response_status == 400
    assert stored(served) == []


@pytest.mark.parametrize("key", [{}, {"idempotency_key": "k"}], ids=["no key", "key"])
async def test_a_frame_that_is_none(served: GrpcServer, key: dict[str, str]) -> None:
    """Those before it are stored, unless all are to be or none; the refusal names it."""
    frames = [*written(SENT), b"\x0a\x02\x1a\x07"]
    with pytest.raises(SourceError, match=f"INVALID_ARGUMENT: .*message {len(frames)}"):
        await published(served, frames, **key)
    assert isomorphic(stored(served), [] if key else SENT)


async def test_no_such_stream(served: GrpcServer) -> None:
    frames = written([numbered(1)], replace(NAMED, stream_name="none"))
    for metadata in ({}, {"rdf_stream_topic": "none"}):
        with pytest.raises(SourceError, match="NOT_FOUND: there is no stream none"):
            await published(served, frames, **metadata)


async def test_limits(tmp_path: Path) -> None:
    settings = {"message_bytes": 2000, "batch_messages": 3, "bodies_bytes": 1 << 20}
    async with serving_grpc(tmp_path, **settings) as served:
        for frames, said in (
            (written([numbered(1, 3000)]), "the client sends a message of 3"),
            (written(list(map(numbered, range(4)))), "more than 3 messages"),
        ):
            with pytest.raises(SourceError, match=f"RESOURCE_EXHAUSTED: {said}"):
                await published(served, frames, idempotency_key="k")
        assert stored(served) == []
        await published(served, written(list(map(numbered, range(4)))))
        assert len(stored(served)) == 4, "without a key there may be any number"
        assert served.http.streams.bounds.body_bytes == 0


async def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBLISH_TOKEN", "secret")
    frames = written([numbered(1)])
    async with serving_grpc(tmp_path, publish="PUBLISH_TOKEN") as served:
        for topic in ({}, {"rdf_stream_topic": "a"}):
            for metadata in ({}, {"authorization": "Bearer wrong"}):
                with pytest.raises(SourceError, match="UNAUTHENTICATED"):
                    await published(served, frames, **topic, **metadata)
        await published(served, frames, authorization="Bearer secret")
        assert len(stored(served)) == 1
    async with serving_grpc(tmp_path, publish="deny") as served:
        with pytest.raises(SourceError, match="PERMISSION_DENIED"):
            await published(served, frames)


async def opened(
    served: GrpcServer, call: Callable[[ClientCall], Awaitable[None]], method: str = PUBLISH
) -> None:
    """Begins a call that sends nothing yet, and has no token."""
    with served.connection() as connection:
        async with await connection.call(method, {}, IDENTITY, 1 << 20) as begun:
            await call(begun)


@pytest.mark.parametrize(
    ("publish", "policy", "said"),
    [
        ("PUBLISH_TOKEN", None, "UNAUTHENTICATED"),
        ("deny", None, "PERMISSION_DENIED"),
        ("deny", "PUBLISH_TOKEN", "UNAUTHENTICATED"),
    ],
)
async def test_who_names_no_stream_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, publish: str, policy: str | None, said: str
) -> None:
    """It takes no place before its token is checked."""
    monkeypatch.setenv("PUBLISH_TOKEN", "secret")
    tokens = ("PUBLISH_TOKEN",)

    async def wait(call: ClientCall) -> None:
        with pytest.raises(SourceError, match=said):
            await call.read()

    async with serving_grpc(tmp_path, publish=publish, tokens=tokens) as served:
        if policy:
            store = served.http.streams._store
            await store.adescribe("a", Description(publish=policy))
        await asyncio.wait_for(opened(served, wait), SECONDS)
        assert served.http.followers() == 0


async def test_a_stream_that_may_be_named_by_others(tmp_path: Path) -> None:
    """Its description allows what the server does not."""
    async with serving_grpc(tmp_path, publish="deny") as served:
        store = served.http.streams._store
        await store.adescribe("a", Description(publish="allow"))
        await store.acreate("b")
        await published(served, written([numbered(1)]))
        other = written([numbered(1)], replace(DEFAULT_OPTIONS, stream_name="b"))
        with pytest.raises(SourceError, match="PERMISSION_DENIED"):
            await published(served, other)
        assert len(stored(served)) == 1


@pytest.mark.slow
async def test_who_never_names_a_stream(tmp_path: Path) -> None:
    """Its place is free again after a while; one that has named its stream may wait."""
    async with serving_grpc(tmp_path, idle_seconds=0.5) as served:

        async def wait(call: ClientCall) -> None:
            await eventually(served.http.followers)
            with pytest.raises(
                SourceError,
                match=r"DEADLINE_EXCEEDED: the call named no stream within 0\.5 seconds",
            ):
                await call.read()

        await asyncio.wait_for(opened(served, wait), SECONDS)
        await eventually(lambda: not served.http.followers())

        async def request_nothing(call: ClientCall) -> None:
            with pytest.raises(SourceError, match="DEADLINE_EXCEEDED: the request did not arrive"):
                await call.read()

        await asyncio.wait_for(opened(served, request_nothing, SUBSCRIBE), SECONDS)

        async def options_first(call: ClientCall) -> None:
            row = options_row(NAMED)
            await call.send(framed(row), end=False)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call.read(), 1.5)
            assert served.http.followers() == 1

        await asyncio.wait_for(opened(served, options_first), SECONDS)


async def test_messages_are_stored_as_they_come(served: GrpcServer) -> None:
    """A publisher may stay for hours; followers need not wait for its end. The server's end tells it what is stored."""
    frames = written(SENT)
    with served.connection() as connection:
        async with await connection.call(PUBLISH, {}, IDENTITY, 1 << 20) as call:
            for count, frame in enumerate(frames, 1):
                await call.send(framed(frame), end=False)
                await eventually(lambda count=count: len(served.elements()) == count)
            assert isomorphic(stored(served), SENT)
            await served.http.served.stop()
            with pytest.raises(SourceError, match="UNAVAILABLE: the server stops"):
                await call.read()
            assert call.trailers["rdf-stream-last"] == str(len(SENT))


async def test_a_publisher_that_leaves(served: GrpcServer) -> None:
    """What it sent may be stored or not, and nothing more comes of it; others go on."""
    for end in range(3):
        with served.connection() as connection:
            call = await connection.call(PUBLISH, {}, IDENTITY, 1 << 20)
            data = b"".join(map(framed, written(SENT)))
            await call.send(data[: len(data) - end], end=False)
        await eventually(lambda: served.http.followers() == 0)
    count = len(served.elements())
    await published(served, written(SENT))
    assert len(served.elements()) == count + len(SENT)


async def test_many_publishers(served: GrpcServer) -> None:
    """Each one's messages are stored in order."""
    batches = [[numbered(1000 * name + n) for n in range(100)] for name in range(8)]
    await asyncio.gather(*(published(served, written(batch)) for batch in batches))
    found = stored(served)
    for batch in batches:
        assert [message for message in found if message in batch] == batch
    assert len(found) == 800

"""The transport `grpc` over real connections to our server: reading, resuming, writing, and its errors."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Any

import pytest

from construct_messages import Message, Quad, blank, iri, literal, triple
from construct_messages.errors import LimitExceeded, SourceError, UsageError
from construct_messages.feeds import publish, subscribe
from construct_messages.streams import Element
from tests.support.grpc.serving import GrpcServer, serving_grpc
from tests.support.http.relay import relay
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered

NODE = Message([Quad(blank("b"), iri("urn:p"), literal("\r\n"), iri("urn:g"))])
TERM = Message([Quad(iri("urn:s"), iri("urn:p"), triple(iri("urn:a"), iri("urn:b"), iri("urn:c")))])
SENT = [numbered(1), Message(), NODE, TERM, *map(numbered, range(2, 30))]

compression = pytest.mark.parametrize("compression", ["none", "gzip"])


async def taken(url: str, **options: Any) -> list[Element]:
    return [element async for element in subscribe(url, follow=False, **options)]


@compression
@pytest.mark.parametrize("batch", [1, 3, 1000])
async def test_round_trip(served: GrpcServer, batch: int, compression: str) -> None:
    options = {"compression": compression}
    assert await publish(SENT, served.url, batch=batch, options=options) == len(SENT)
    elements = await taken(served.url, options=options)
    assert isomorphic([element.message for element in elements], SENT)
    assert [element.sequence for element in elements] == list(range(1, len(SENT) + 1))
    assert [(element.sequence, element.time) for element in elements] == [
        (element.sequence, element.time) for element in served.elements()
    ], "the frames have the times of the server"


async def test_starts(served: GrpcServer) -> None:
    await served.publish(*SENT)
    ahead = len(SENT)
    for options, expected in (
        ({"after": 7}, range(8, ahead + 1)),
        ({"last": 2}, range(ahead - 1, ahead + 1)),
        ({"since": datetime(2000, 1, 1, tzinfo=UTC)}, range(1, ahead + 1)),
        ({}, range(1, ahead + 1)),
    ):
        assert [each.sequence for each in await taken(served.url, **options)] == list(expected)


async def test_following(served: GrpcServer) -> None:
    """A follower begins with what is new, and its checkpoint is where another one goes on."""
    await served.publish(numbered(1))
    async with aclosing(subscribe(served.url)) as following:
        await following.start()
        assert following.checkpoint is not None
        assert following.checkpoint.sequence == 1
        await served.publish(numbered(2), numbered(3))
        assert (await anext(following)).message == numbered(2)
        checkpoint = following.checkpoint
    assert checkpoint is not None
    async with aclosing(subscribe(served.url, checkpoint=checkpoint)) as following:
        assert (await anext(following)).message == numbered(3)


async def test_a_stream_that_was_made_again(served: GrpcServer) -> None:
    await served.publish(numbered(1))
    async with aclosing(subscribe(served.url, after=0)) as following:
        await anext(following)
        checkpoint = following.checkpoint
    store = served.http.streams._store
    await store.adelete("a")
    await store.acreate("a")
    await served.publish(numbered(1))
    with pytest.raises(SourceError, match="another stream") as refused:
        await taken(served.url, checkpoint=checkpoint)
    assert refused.value.status == 410


@pytest.mark.slow
async def test_cut_connections(served: GrpcServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that break anywhere: nothing is lost, and nothing comes twice."""
    monkeypatch.setattr("construct_messages.feeds.connections._PAUSE_SECONDS", 0)
    sent = [numbered(number, 300) for number in range(300)]
    points = Random(7)
    async with relay(points.randrange(1, 400) for _ in range(4)) as between:
        between.target = f"http://{served.address}"
        url = between.url.replace("http://", "grpc://") + "/a"
        assert await publish(sent, url, batch=100) == 300
    assert [element.message for element in served.elements()] == sent
    async with relay(points.randrange(1, 40_000) for _ in range(6)) as between:
        between.target = f"http://{served.address}"
        url = between.url.replace("http://", "grpc://") + "/a"
        elements = await taken(url, retries=100)
        assert between.connections > 3
    assert [element.message for element in elements] == sent


@pytest.mark.slow
@compression
async def test_a_network_that_cuts_each_connection_early(
    served: GrpcServer, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before a cut is not asked for again, so that the whole log comes, without an attempt in vain."""
    monkeypatch.setattr("construct_messages.feeds.connections._PAUSE_SECONDS", 0)
    sent = [noise(number) for number in range(100)]
    await served.publish(*sent)
    async with relay(repeat(20_000)) as between:
        between.target = f"http://{served.address}"
        url = between.url.replace("http://", "grpc://") + "/a"
        elements = await taken(url, retries=1, options={"compression": compression})
    assert [element.message for element in elements] == sent
    assert between.connections > 5


def noise(number: int) -> Message:
    """A message of a kilobyte that does not become shorter."""
    text = Random(number).randbytes(500).hex()
    return Message([Quad(iri(f"urn:s{number}"), iri("urn:p"), literal(text))])


async def test_state(served: GrpcServer, tmp_path: Path) -> None:
    """A publisher that was ended goes on where its state says, under the same keys."""
    state = tmp_path / "state"
    sent = [numbered(number) for number in range(20)]

    with pytest.raises(RuntimeError):
        await publish(failing(sent, 12), served.url, state=state, batch=5)
    assert await publish(sent, served.url, state=state, batch=5) == 20
    assert [element.message for element in served.elements()] == sent


def failing(messages: Sequence[Message], count: int) -> Iterator[Message]:
    yield from messages[:count]
    raise RuntimeError("the source failed")


async def test_large_messages(tmp_path: Path) -> None:
    """What the server takes can be written and read; what is larger than usual frames is refused by name."""
    large = numbered(1, 5 << 20)
    async with serving_grpc(tmp_path) as served:
        with pytest.raises(
            LimitExceeded, match="message 2 of the batch is a frame of 52"
        ) as refused:
            await publish([numbered(0), large], served.url)
        assert "frame_bytes" in (refused.value.hint or "")
        options = {"frame_bytes": str(6 << 20)}
        assert await publish([numbered(0), large], served.url, options=options) == 2
        elements = await taken(served.url)
        assert [element.message for element in elements] == [numbered(0), large]
        with pytest.raises(SourceError, match="RESOURCE_EXHAUSTED"):
            await taken(served.url, message_bytes=1 << 20)


async def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    async with serving_grpc(tmp_path, read="TOKEN", publish="TOKEN") as served:
        for doing in (publish([numbered(1)], served.url), taken(served.url)):
            with pytest.raises(SourceError, match=r"UNAUTHENTICATED: .* needs a token") as refused:
                await doing
            assert "Bearer" in (refused.value.hint or "")
            assert refused.value.response_status == 401
        assert await publish([numbered(1)], served.url, token="secret") == 1
        assert len(await taken(served.url, token="secret")) == 1


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("grpc://localhost:1/a?b=c", {}, "no URL of a topic"),
        ("grpc:///a", {}, "no URL of a topic"),
        ("grpc://localhost:port/a", {}, "no URL of a topic"),
        ("grpc://user:secret@localhost/a", {}, "credentials"),
        ("grpcs://localhost/a", {"ca_certs": "/nowhere.pem"}, "certificates cannot be read"),
        ("grpc://localhost/a", {"compression": "br"}, "compression=br is no value"),
        ("grpc://localhost/a", {"frame_bytes": "4M"}, "frame_bytes=4M is no number"),
        ("grpc://localhost/a", {"qos": "1"}, "no option qos"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_is_refused_at_once(url: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        await taken(url, options=options)
    assert "secret" not in str(refused.value)


async def test_no_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(SourceError, match="could not be reached") as refused:
        await taken(f"grpc://127.0.0.1:{port}/a", retries=0)
    assert refused.value.transient


async def test_a_server_of_http(served: GrpcServer) -> None:
    """HTTP/1.1 where gRPC is expected, and the other way round."""
    url = served.http.url.replace("http://", "grpc://")
    with pytest.raises(SourceError, match="broke off"):
        await taken(f"{url}/a", retries=0)
    reader, writer = await asyncio.open_connection(*served.address.split(":"))
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while await reader.read(1000):
        pass  # it is closed
    writer.close()
    assert await taken(served.url) == []

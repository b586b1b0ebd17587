"""SubscribeRdf: what is asked for and what comes, and what is refused, with which status and in which words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyjelly.jelly import RdfStreamOptions

from construct_messages import Message, Quad, blank, iri, literal, triple
from construct_messages.errors import SourceError
from construct_messages.feeds.grpc import ClientCall
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.service import (
    SUBSCRIBE,
    FrameReader,
    RdfStreamSubscribe,
    read_metadata,
)
from construct_messages.sparql.client.grpc import IDENTITY, framed
from tests.support.grpc.serving import GrpcServer, serving_grpc
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered
from tests.support.waiting import eventually

NAMED = Message([Quad(blank("b"), iri("urn:p"), literal("x"), iri("urn:g"))])
TRIPLE_TERM = Message(
    [Quad(iri("urn:s"), iri("urn:p"), triple(iri("urn:a"), iri("urn:b"), literal("c")))]
)
TYPED = Message([Quad(iri("urn:s"), iri("urn:p"), literal("1", datatype="urn:datatype"))])
WHOLE: dict[str, Any] = {
    "physical_type": 2,
    "rdf_star": True,
    "max_name_table_size": 128,
    "max_prefix_table_size": 16,
    "max_datatype_table_size": 16,
    "version": 2,
}
ALL = {"rdf-stream-after": "0", "rdf-stream-follow": "false"}


async def frames(
    served: GrpcServer,
    topic: str = "a",
    options: dict[str, Any] | None = None,
    method: str = SUBSCRIBE,
    **metadata: str,
) -> list[bytes]:
    """The frames that come; `metadata` with underscores for hyphens."""
    requested = b"" if options is None else RdfStreamOptions(**options).SerializeToString()
    sent = ALL | {name.replace("_", "-"): value for name, value in metadata.items()}
    with served.connection() as connection:
        async with await connection.call(method, sent, IDENTITY, 1 << 30) as call:
            await call.send(framed(RdfStreamSubscribe(topic, requested).encode()), end=True)
            return await all_of(call)


async def all_of(call: ClientCall) -> list[bytes]:
    """The rest of the frames of a call."""
    found = []
    while (frame := await call.read()) is not None:
        found.append(frame)
    return found


def messages(found: Sequence[bytes]) -> list[Message]:
    """Their messages."""
    reader = FrameReader(DecoderOptions())
    read = [reader.read(read_metadata(frame)[1]) for frame in found]
    assert None not in read
    return [message for message in read if message is not None]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_prefix_table_size": 0},
        *({"max_prefix_table_size": size} for size in (1, 2, 3, 4)),
        {"max_name_table_size": 8, "max_datatype_table_size": 1},
        {"physical_type": 3},
        {"max_name_table_size": 1 << 20, "max_prefix_table_size": 1 << 20},
        {"logical_type": 14},
        {"version": 1},
        {"version": 99},
    ],
    ids=str,
)
async def test_options(served: GrpcServer, options: dict[str, Any]) -> None:
    sent = [NAMED, TRIPLE_TERM, TYPED, Message(), *map(numbered, range(20))]
    await served.publish(*sent)
    found = await frames(served, options=WHOLE | options)
    assert isomorphic(messages(found), sent)


async def test_positions(served: GrpcServer) -> None:
    await served.publish(*map(numbered, range(1, 11)))
    now = served.elements()[-1].time
    for metadata, expected in (
        ({"rdf_stream_after": "7"}, [8, 9, 10]),
        ({"rdf_stream_after": "10"}, []),
        ({"rdf_stream_after": "0", "rdf_stream_last": "2"}, [9, 10]),
        ({"rdf_stream_since": now.isoformat()}, None),
        ({"rdf_stream_since": (now + timedelta(hours=1)).isoformat()}, []),
        ({"rdf_stream_since": datetime(2000, 1, 1, tzinfo=UTC).isoformat()}, list(range(1, 11))),
    ):
        found = messages(await frames(served, **metadata))
        if expected is None:
            assert found[-1] == numbered(10)
        else:
            assert found == [numbered(number) for number in expected], metadata


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"topic": "none"}, 404, "NOT_FOUND: there is no stream none"),
        ({"topic": ""}, 404, "NOT_FOUND"),
        ({"rdf_stream_after": "9"}, 404, "NOT_FOUND: a has no element 9"),
        (
            {"rdf_stream_after": "x"},
            400,
            "INVALID_ARGUMENT: rdf-stream-after=x is not a whole number",
        ),
        ({"rdf_stream_since": "today"}, 400, "INVALID_ARGUMENT: since=today is no time"),
        ({"rdf_stream_follow": "maybe"}, 400, "INVALID_ARGUMENT: rdf-stream-follow: maybe"),
        ({"options": {"version": 2}}, 400, "INVALID_ARGUMENT: physical_type is 0"),
        (
            {"options": WHOLE | {"max_name_table_size": 7}},
            400,
            "INVALID_ARGUMENT: max_name_table_size is 7",
        ),
        (
            {"options": WHOLE | {"logical_type": 3}},
            400,
            "INVALID_ARGUMENT: logical_type is 3",
        ),
        ({"method": "/eu.example.Service/Method"}, 501, "UNIMPLEMENTED: there is no method"),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_refusals(served: GrpcServer, asked: dict[str, Any], status: int, said: str) -> None:
    with pytest.raises(SourceError, match=said) as refused:
        await frames(served, **asked)
    assert refused.value.response_status == status
    assert not refused.value.transient


@pytest.mark.parametrize(
    ("message", "options", "said"),
    [
        (NAMED, {"physical_type": 1}, "physical_type QUADS"),
        (TRIPLE_TERM, {"rdf_star": False}, "rdf_star true"),
        (TYPED, {"max_datatype_table_size": 0}, "max_datatype_table_size"),
    ],
    ids=["a named graph", "a triple term", "a datatype"],
)
async def test_what_the_options_cannot_carry(
    served: GrpcServer, message: Message, options: dict[str, Any], said: str
) -> None:
    """What comes before is sent, and the refusal names the element and the option."""
    await served.publish(numbered(1), message)
    with pytest.raises(SourceError, match="INVALID_ARGUMENT: element 2: ") as refused:
        await frames(served, options=WHOLE | options)
    assert said in (refused.value.hint or "")
    assert isomorphic(messages(await frames(served, options=WHOLE)), [numbered(1), message])


async def test_large_frames(tmp_path: Path) -> None:
    """A frame of more than 4 MB is refused by name, unless the client takes it."""
    large = numbered(2, 5 << 20)
    async with serving_grpc(tmp_path) as served:
        await served.publish(numbered(1), large, numbered(3))
        with pytest.raises(
            SourceError, match="RESOURCE_EXHAUSTED: element 2 is a frame of 52"
        ) as refused:
            await frames(served)
        assert "after 2" in (refused.value.hint or "")
        assert messages(await frames(served, rdf_stream_after="2")) == [numbered(3)]
        found = await frames(served, rdf_stream_frame_bytes=str(1 << 30))
        assert messages(found) == [numbered(1), large, numbered(3)]


async def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READ_TOKEN", "secret")
    async with serving_grpc(tmp_path, read="READ_TOKEN") as served:
        for headers, status in (({}, 401), ({"authorization": "Bearer wrong"}, 401)):
            with pytest.raises(SourceError, match="UNAUTHENTICATED") as refused:
                await frames(served, **headers)
            assert refused.value.response_status == status
        assert await frames(served, authorization="Bearer secret") == []
    async with serving_grpc(tmp_path, read="deny") as served:
        with pytest.raises(SourceError, match="PERMISSION_DENIED"):
            await frames(served)


async def test_retention(tmp_path: Path) -> None:
    async with serving_grpc(tmp_path) as served:
        await served.publish(*map(numbered, range(5)))
        await served.http.streams._store.atrim("a", 3)
        with pytest.raises(SourceError, match="OUT_OF_RANGE") as refused:
            await frames(served, rdf_stream_after="1")
        assert refused.value.status == 410


async def test_the_end_of_the_server(served: GrpcServer) -> None:
    """Followers get what is there, and a status that tells them to come back."""
    await served.publish(numbered(1))
    following = asyncio.create_task(frames(served, rdf_stream_follow="true"))
    await eventually(lambda: served.http.followers() == 1)
    await served.http.served.stop()
    with pytest.raises(SourceError, match="UNAVAILABLE: the server stops") as ended:
        await following
    assert ended.value.transient


async def test_the_end_of_a_stream(served: GrpcServer) -> None:
    following = asyncio.create_task(frames(served, rdf_stream_follow="true"))
    await eventually(lambda: served.http.followers() == 1)
    await served.http.streams._store.adelete("a")
    with pytest.raises(SourceError, match="NOT_FOUND"):
        await following


async def test_too_many(tmp_path: Path) -> None:
    async with serving_grpc(tmp_path, followers=1) as served:
        following = asyncio.create_task(frames(served, rdf_stream_follow="true"))
        await eventually(lambda: served.http.followers() == 1)
        with pytest.raises(SourceError, match="UNAVAILABLE: 1 follow already") as refused:
            await frames(served)
        assert refused.value.retry_after == 5
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await eventually(lambda: served.http.followers() == 0)


async def test_a_deadline(served: GrpcServer) -> None:
    with pytest.raises(SourceError, match="DEADLINE_EXCEEDED"):
        await frames(served, rdf_stream_follow="true", grpc_timeout="200m")
    with pytest.raises(SourceError, match="INVALID_ARGUMENT"):
        await frames(served, grpc_timeout="soon")


async def test_a_slow_reader(tmp_path: Path) -> None:
    """It holds nothing up but itself, and is cut off after a while; it can come back."""
    async with serving_grpc(tmp_path, idle_seconds=0.5) as served:
        for number in range(12):
            await served.publish(numbered(number, 1 << 20))
        with served.connection() as connection:
            async with await connection.call(
                SUBSCRIBE, {"rdf-stream-after": "0"}, IDENTITY, 1 << 30
            ) as call:
                await call.send(framed(RdfStreamSubscribe("a").encode()), end=True)
                await call.headers()
                assert len(await frames(served)) == 12, "others get all"
                await eventually(lambda: served.http.followers() == 0)
                with pytest.raises(SourceError, match="broke off"):
                    await all_of(call)
        log = served.http.served.request_log.getvalue()
        assert "outcome=aborted:idle" in log


async def test_what_is_logged_and_counted(served: GrpcServer) -> None:
    await served.publish(numbered(1), numbered(2))
    await frames(served)
    with pytest.raises(SourceError):
        await frames(served, "none")
    await eventually(lambda: "status=404" in served.http.served.request_log.getvalue())
    lines = served.http.served.request_log.getvalue().splitlines()
    (line,) = (line for line in lines if "method=SubscribeRdf" in line and "status=200" in line)
    assert "stream=a action=subscribe delivered=2" in line
    exposition = served.http.served.metrics.exposition(None)[0].decode()
    assert 'delivered_total{endpoint="/streams"} 2.0' in exposition
    assert 'requests_total{action="subscribe",answer="problem",endpoint="/streams"' in exposition

"""Answers that outlive their token: each ends when it expires, and clients that renew their tokens lose nothing."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from construct_messages.errors import SourceError
from construct_messages.feeds import publish, relay, subscribe
from construct_messages.logs.jelly.service import PUBLISH, SUBSCRIBE, RdfStreamSubscribe
from construct_messages.rdf.formats import RDFM
from tests.support.engines.issuer import Issuer
from tests.support.grpc.peer import split
from tests.support.grpc.serving import GrpcServer, serving_grpc
from tests.support.logs.kinds import KINDS, write
from tests.support.logs.pyjelly import LookupPreset, write_by_peer
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.slow

LINES = {"Content-Type": "application/n-quads; messages=rdfm"}
NQ = next(kind for kind in KINDS if str(kind) == "nq-1.2-rdfm")


@pytest.fixture
async def served(issuer: Issuer, tmp_path: Path) -> AsyncIterator[GrpcServer]:
    async with serving_grpc(
        tmp_path,
        server={"jwt": issuer.trusted()},
        read="jwt",
        publish="jwt",
        body_bytes=1 << 26,
        message_bytes=1 << 26,
    ) as server:
        # larger than the buffers of a connection, so that a client that does not read it is not sent all of it
        await server.publish(numbered(1, 20_000_000))
        yield server


class Client:
    """A client whose connections have one token.

    Args:
        served: the server.
        token: the token.
        session: sends requests.
    """

    def __init__(self, served: GrpcServer, token: str, session: aiohttp.ClientSession) -> None:
        self.address, self.session = served.address, session
        self.url, self.headers = served.http.url, {"Authorization": f"Bearer {token}"}
        self.metadata = (("authorization", f"Bearer {token}"),)

    async def follow_events(self) -> object:
        async with self.session.get(f"{self.url}/streams/a/events", headers=self.headers) as events:
            assert events.status == 200
            with pytest.raises(aiohttp.ClientPayloadError):
                await events.read()
        return "reset"

    async def read_a_log_slowly(self) -> object:
        headers = self.headers | {"Accept": LINES["Content-Type"], "Accept-Encoding": "identity"}
        url = f"{self.url}/streams/a/output?after=0"
        async with self.session.get(url, headers=headers) as log:
            assert log.status == 200
            try:
                async for _ in log.content.iter_chunked(1 << 14):
                    await asyncio.sleep(0.01)
            except aiohttp.ClientError:
                return "reset"
        return "whole"

    async def follow_frames(self) -> object:
        return await self.wait_for_close("socket", None)

    async def publish_frames(self) -> object:
        return await self.wait_for_close("input", numbered(2).lines.decode())

    async def wait_for_close(self, endpoint: str, frame: str | None) -> object:
        async with self.session.ws_connect(
            f"{self.url}/streams/a/{endpoint}", headers=self.headers
        ) as socket:
            if frame is not None:
                await socket.send_str(frame)
                assert "last" in (await socket.receive_str())
            while (end := await socket.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
            return end.data, end.extra

    async def publish_a_log(self) -> object:
        async def body() -> AsyncIterator[bytes]:
            yield write([numbered(3)], NQ) + RDFM.delimiter.encode()  # which completes it
            await asyncio.Event().wait()

        async with self.session.post(
            f"{self.url}/streams/a/input",
            data=body(),
            headers=self.headers | LINES | {"Accept": "application/x-ndjson"},
        ) as answer:
            lines = [json.loads(line) async for line in answer.content if line.strip()]
        return lines[0]["messages"], lines[-1]["status"], lines[-1]["detail"]

    async def publish_slowly(self) -> object:
        async def body() -> AsyncIterator[bytes]:
            yield numbered(4).lines
            await asyncio.Event().wait()

        async with self.session.post(
            f"{self.url}/streams/a/input", data=body(), headers=self.headers | LINES
        ) as answer:
            return answer.status, (await answer.json())["detail"]

    async def subscribe(self) -> object:
        async with grpc.aio.insecure_channel(self.address) as channel:
            call = channel.unary_stream(SUBSCRIBE)(
                RdfStreamSubscribe("a", b"").encode(), metadata=self.metadata
            )
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                [frame async for frame in call]
        return ended.value.code(), ended.value.details()

    async def publish_by_grpc(self) -> object:
        frame, *_ = split(write_by_peer([numbered(5)], True, LookupPreset.small()))

        async def frames() -> AsyncIterator[bytes]:
            yield frame
            await asyncio.Event().wait()

        async with grpc.aio.insecure_channel(self.address) as channel:
            call = channel.stream_unary(PUBLISH)(
                frames(), metadata=(*self.metadata, ("rdf-stream-topic", "a"))
            )
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call
        trailers = dict(ended.value.trailing_metadata())
        return ended.value.code(), ended.value.details(), int(trailers["rdf-stream-last"]) > 1


EXPIRED = "needs a token: the token has expired"


async def test_each_answer_ends_with_its_token(served: GrpcServer, issuer: Issuer) -> None:
    """Whatever was accepted until then is stored, and its publisher knows."""
    expires = math.ceil(time.time()) + 2
    async with aiohttp.ClientSession() as session:
        client = Client(served, issuer.token(exp=expires), session)
        ends: dict[Callable[[], Awaitable[object]], object] = {
            client.follow_events: "reset",
            client.read_a_log_slowly: "reset",
            client.follow_frames: (4401, f"reading {EXPIRED}"),
            client.publish_frames: (4401, f"publishing {EXPIRED}"),
            client.publish_a_log: (1, 401, f"publishing {EXPIRED}"),
            client.publish_slowly: (401, f"publishing {EXPIRED}"),
            client.subscribe: (grpc.StatusCode.UNAUTHENTICATED, f"reading {EXPIRED}"),
            client.publish_by_grpc: (
                grpc.StatusCode.UNAUTHENTICATED,
                f"publishing {EXPIRED}",
                True,
            ),
        }
        async with asyncio.timeout(SECONDS):
            found = await asyncio.gather(*(act() for act in ends))
    assert dict(zip(ends, found, strict=True)) == ends
    assert expires <= time.time() < expires + SECONDS
    await eventually(lambda: not served.http.followers())
    assert {element.message for element in served.elements()[1:]} == {
        numbered(2),
        numbered(3),
        numbered(5),
    }


async def test_a_token_within_the_leeway(served: GrpcServer, issuer: Issuer) -> None:
    """It is accepted because the clocks may differ, and therefore not ended at once."""
    token = issuer.token(exp=int(time.time()) - 2)
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        session.ws_connect(f"{served.http.url}/streams/a/input") as socket,
    ):
        await socket.send_bytes(numbered(2).lines)
        assert (await socket.receive_json())["last"].endswith("/2")


@pytest.mark.parametrize("via", ["sse", "websocket", "pull", "grpc"])
async def test_clients_with_credentials_go_on(served: GrpcServer, issuer: Issuer, via: str) -> None:
    """A relay that reads and publishes for longer than several tokens live."""
    issuer.lifetime, issuer.jwt = 1.0, True
    credentials = issuer.credentials()
    await served.http.streams._store.acreate("copy")
    stream, copy = f"{served.http.url}/streams/a", f"{served.http.url}/streams/copy"
    if via == "grpc":
        stream, copy = served.url, served.url.replace("/a", "/copy")
    options: dict[str, Any] = {} if via == "grpc" else {"via": via}
    relaying = asyncio.create_task(
        relay(
            stream,
            copy,
            after=1,
            follow=True,
            source_token=credentials,
            target_token=credentials,
            **options,
        )
    )
    store = served.http.streams._store
    number = 0
    while len(issuer.granted) < 4:
        number += 1
        await served.publish(numbered(number))
        await asyncio.sleep(0.05)
        assert not relaying.done(), relaying.result()
    await eventually(lambda: store.state("copy").last >= number)
    relaying.cancel()
    await asyncio.gather(relaying, return_exceptions=True)
    copied = [element.message for element in store.read("copy")]
    assert copied == [numbered(each) for each in range(1, number + 1)]


async def test_clients_with_one_token_stop(served: GrpcServer, issuer: Issuer) -> None:
    token = issuer.token(exp=int(time.time()) - 29)
    async with aclosing(
        subscribe(f"{served.http.url}/streams/a", after=1, via="websocket", token=token)
    ) as elements:
        with pytest.raises(SourceError, match="status 401"):
            await anext(elements)
    with pytest.raises(SourceError, match="status 401"):
        await publish([numbered(1)], f"{served.http.url}/streams/a", token=token)

"""Streams that are fed from a transport, or forwarded to one, by configuration: what arrives, and what is shown."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.feeds import subscribe
from construct_messages.server.config import BridgeSettings
from construct_messages.streams import Description, Retention, open_store
from tests.support.engines.issuer import issuing
from tests.support.grpc.serving import serving_grpc
from tests.support.http.command import Running
from tests.support.http.relay import relay
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered
from tests.support.waiting import SECONDS

NODE = Message([Quad(blank("x"), iri("urn:p"), literal("é"), iri("urn:g"))])
SENT = [numbered(1), Message(), NODE, NODE, numbered(5), Message(), numbered(7)]


async def there(server: StreamsServer, stream: str) -> list[Message]:
    url = f"{server.url}/streams/{stream}"
    return [element.message async for element in subscribe(url, after=0, follow=False)]


async def arrived(server: StreamsServer, stream: str, count: int) -> list[Message]:
    """The messages of a stream, once it has so many."""
    async with asyncio.timeout(300):
        while (await server.ask("GET", f"/streams/{stream}")).json.get("lastSequence") != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return await there(server, stream)


async def shown(server: StreamsServer) -> list[dict[str, object]]:
    """What the report of health has of the bridges."""
    bridges: list[dict[str, object]] = (await server.ask("GET", "/health/ready")).json["bridges"]
    return bridges


def through(url: str, **more: object) -> dict[str, BridgeSettings]:
    """A stream `rooms` between two streams of another server."""
    bridge = BridgeSettings(
        source=f"{url}/streams/a",
        target=f"{url}/streams/b",
        create=True,
        **more,  # type: ignore[arg-type]
    )
    return {"rooms": bridge}


async def test_from_one_stream_to_another(tmp_path: Path) -> None:
    """Over a restart in between; the nodes stay those of the messages."""
    async with serving_streams(tmp_path / "far.db") as far:
        assert (await far.ask("PUT", "/streams/a")).status == 201
        await far.publish(SENT[:4])
        for count in (4, 7):
            await far.publish(SENT[4:count])
            near = serving_streams(tmp_path / "near.db", bridges=through(far.url))
            async with near as server:
                assert isomorphic(await arrived(server, "rooms", count), SENT[:count])
                assert isomorphic(await arrived(far, "b", count), SENT[:count])
                metrics = (await server.ask("GET", "/metrics")).body.decode()
                labels = 'direction="to",endpoint="/streams",stream="rooms"'
                assert f"construct_messages_bridge_connected{{{labels}}} 1.0" in metrics
                assert f"construct_messages_bridge_behind{{{labels}}} 0.0" in metrics
                source, target = await shown(server)
                assert (source["stream"], source["from"]) == ("rooms", f"{far.url}/streams/a")
                assert target["to"] == f"{far.url}/streams/b"
                assert (target["status"], target["error"], target["behind"]) == (
                    "connected",
                    None,
                    0,
                )
                assert source["elements"] == count - (0 if count == 4 else 4)


async def test_tokens_that_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides, over HTTP and gRPC, with the credentials of a client."""
    monkeypatch.setenv("SERVER_TOKEN", "token-1")
    named = dict.fromkeys(("read", "publish"), "SERVER_TOKEN")
    async with issuing() as issuer, serving_grpc(tmp_path, **named) as far:
        (tmp_path / "secret").write_text(issuer.secret)
        monkeypatch.setenv("CLIENT_SECRET", issuer.secret)
        await far.publish(*SENT)
        await far.http.streams._store.acreate("b")
        bridge = BridgeSettings(
            source=f"{far.http.url}/streams/a",
            from_token_url=f"{issuer.url}/token",
            from_client_id="me",
            from_client_secret_variable="CLIENT_SECRET",
            target=f"grpc://{far.address}/b",
            to_token_url=f"{issuer.url}/token",
            to_client_id="me",
            to_client_secret_file=str(tmp_path / "secret"),
        )
        near = serving_streams(tmp_path / "near.db", bridges={"rooms": bridge})
        async with near as server:
            assert isomorphic(await arrived(server, "rooms", len(SENT)), SENT)
            async with asyncio.timeout(SECONDS):
                while (await shown(server))[1]["elements"] != len(SENT):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        forwarded = [element.message for element in far.http.streams._store.read("b")]
        assert isomorphic(forwarded, SENT)
        assert len(issuer.granted) == 1, "both sides share the tokens of the same credentials"


async def test_where_it_starts(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "far.db") as far:
        assert (await far.ask("PUT", "/streams/a")).status == 201
        await far.publish(SENT[:4])
        bridges = through(far.url, start="next")
        async with serving_streams(tmp_path / "near.db", bridges=bridges) as server:

            async def connected() -> bool:
                return all(each["status"] == "connected" for each in await shown(server))

            async with asyncio.timeout(300):
                while not await connected():  # noqa: ASYNC110 # of the server
                    await asyncio.sleep(0.01)
            await far.publish(SENT[4:])
            assert isomorphic(await arrived(far, "b", 3), SENT[4:])


@pytest.mark.slow
async def test_a_side_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs, shows why, and goes on when the other side is there."""
    monkeypatch.setattr("construct_messages.feeds.bridging._PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("construct_messages.feeds.bridging._MOST_SECONDS", 0.05)
    async with relay() as between:
        bridges = through(between.url)
        async with serving_streams(tmp_path / "near.db", bridges=bridges) as server:
            for _ in range(2):
                async with asyncio.timeout(300):
                    while not (await shown(server))[0]["error"]:  # noqa: ASYNC110 # of the server
                        await asyncio.sleep(0.01)
                assert (await shown(server))[0]["status"] == "retrying"
                assert (await server.ask("GET", "/health/ready")).status == 200
                count = len(await there(server, "rooms"))
                async with serving_streams(tmp_path / "far.db") as far:
                    between.target = far.url
                    await far.ask("PUT", "/streams/a")
                    await far.publish([numbered(count + 1)])
                    await arrived(far, "b", count + 1)
                between.target = None
            log = server.served.request_log.getvalue()
            assert "bridge failed" in log
            assert await there(server, "rooms") == [numbered(1), numbered(2)]


async def test_a_target_that_lags_more_than_is_kept(tmp_path: Path) -> None:
    """What retention removed is counted, and the rest is forwarded under other keys."""
    with open_store(tmp_path / "near.db") as store:
        store.create("rooms", Description(retention=Retention(count=2)))
    async with serving_streams(tmp_path / "far.db") as far:
        bridges = {"rooms": BridgeSettings(target=f"{far.url}/streams/b", create=True)}
        async with serving_streams(tmp_path / "near.db", bridges=bridges) as server:
            await server.publish([numbered(1)], stream="rooms")
            await arrived(far, "b", 1)
        async with serving_streams(tmp_path / "near.db") as server:
            await server.publish([numbered(number) for number in range(2, 8)], stream="rooms")
        async with serving_streams(tmp_path / "near.db", bridges=bridges) as server:
            assert await arrived(far, "b", 3) == [numbered(1), numbered(6), numbered(7)]
            (target,) = await shown(server)
            assert target["removed"] == 4


@pytest.mark.slow
@pytest.mark.process
async def test_kills(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A server that is killed between two streams: each message is in both once, in order."""
    points, total = random.Random(7), 0
    async with serving_streams(tmp_path / "far.db") as far:
        assert (await far.ask("PUT", "/streams/a")).status == 201
        config = tmp_path / "server.toml"
        config.write_text(
            f'[streams]\nfile = "near.db"\n[streams.rooms]\nfrom = "{far.url}/streams/a"\n'
            f'to = "{far.url}/streams/b"\ncreate = true\nbatch = 3\n'
        )

        async def reached(least: int, running: Running) -> None:
            async with asyncio.timeout(300):
                while True:
                    answer = (await far.ask("GET", "/streams/b")).json
                    if answer.get("lastSequence", 0) >= least:
                        return
                    assert running.process.poll() is None, running.log
                    await asyncio.sleep(0)

        rounds = request.config.getoption("--kills")
        for number in range(rounds + 1):
            running = Running(tmp_path, "--config", str(config))
            try:
                sent = [numbered(total + each) for each in range(1, 41)]
                await far.publish(sent)
                if number < rounds:
                    await reached(total + points.randrange(1, 38), running)
                else:
                    await reached(total + 40, running)
                    running.process.terminate()
                    assert await asyncio.to_thread(running.wait) == 0
            finally:
                await asyncio.to_thread(running.kill)
            total += 40
        expected = [numbered(each) for each in range(1, total + 1)]
        assert await there(far, "b") == expected
        with open_store(tmp_path / "near.db", read_only=True) as store:
            assert [element.message for element in store.read("rooms")] == expected

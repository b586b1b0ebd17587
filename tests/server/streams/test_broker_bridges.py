"""Bridges between brokers: what a server shows of them, and what arrives from each to each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

from construct_messages.server.config import BridgeSettings
from tests.support.engines.broker_logs import log, same
from tests.support.engines.kinds import Kinds, Place
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.streams import numbered

pytestmark = [pytest.mark.slow, pytest.mark.engine]


@pytest.fixture(scope="module")
def kinds(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Kinds]:
    broker = partial(request.getfixturevalue, "kafka")
    with Kinds(tmp_path_factory.mktemp("kinds"), broker) as made:
        yield made


async def until_current(server: StreamsServer) -> None:
    """Waits until nothing waits on either side, as the report of health has it."""
    async with asyncio.timeout(300):
        while True:
            bridges = (await server.ask("GET", "/health/ready")).json["bridges"]
            assert all(each["behind"] is None or each["behind"] >= 0 for each in bridges)
            if all(each["status"] == "connected" and not each["behind"] for each in bridges):
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("source", "target"), [("kafka", "nats"), ("nats", "kafka")])
async def test_from_broker_to_broker(
    tmp_path: Path, kinds: Kinds, source: str, target: str
) -> None:
    """Over two restarts of the server between them, with some messages of a megabyte."""
    parts = [[*log(30, large=1), numbered(1_000_000 + number)] for number in range(3)]
    async with serving_streams(tmp_path / "unused.db") as unused:
        places: list[Place] = [kinds.place(kind, unused) for kind in (source, target)]
    bridge = BridgeSettings(source=places[0].name, target=places[1].name, create=True, batch=7)
    for part in parts:
        await places[0].put(part)
        async with serving_streams(tmp_path / "near.db", bridges={"rooms": bridge}) as server:
            arrived = await places[1].messages(part[-1])
            await until_current(server)
    assert same(arrived, list(chain.from_iterable(parts)))

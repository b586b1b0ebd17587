"""Several servers with a broker as the log: one takes messages, two read them. Any of the four is killed.

The configuration is that of docs/guides/scale-out.md.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from construct_messages.feeds import publish, subscribe
from construct_messages.streams import open_store
from tests.support.engines.brokers import NatsServer
from tests.support.engines.servers import Missing
from tests.support.http.command import Running
from tests.support.places import ROOT, absent
from tests.support.streams import numbered

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.engine]

GUIDE = ROOT / "docs" / "guides" / "scale-out.md"
SERVERS = ("writer", "reader-1", "reader-2")
STEP = 30
"""How many messages are acknowledged between two kills, at most."""


def configuration(name: str, nats: str) -> str:
    """The configuration of a server, as the guide has it, with the address of a broker."""
    kind = name.partition("-")[0]
    blocks = re.findall(r"```ini\n# (\w+)\.toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return str(dict(blocks)[kind]).replace("nats://nats.example.org", nats)


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    try:
        with NatsServer(tmp_path / "nats") as server:
            yield server
    except Missing as missing:
        absent(str(missing))


class Deployment:
    """The three servers, each over a folder of its own."""

    def __init__(self, folder: Path, nats: NatsServer) -> None:
        self._folder, self._nats = folder, nats
        self.running: dict[str, Running] = {}
        self.acknowledged = 0
        for name in SERVERS:
            place = folder / name
            place.mkdir()
            (place / "server.toml").write_text(configuration(name, f"nats://127.0.0.1:{nats.port}"))
            self.start(name)

    def start(self, name: str) -> None:
        place = self._folder / name
        self.running[name] = Running(place, "--config", str(place / "server.toml"))

    def kill(self, name: str) -> None:
        """Kills a server or the broker, and starts it again."""
        if name == "nats":
            self._nats.restart()
        else:
            self.running[name].kill()
            self.start(name)

    def store(self, name: str) -> Path:
        return self._folder / name / "streams.db"

    async def publish(self, count: int) -> None:
        """Sends messages to the writer, each again under its key until it is acknowledged."""
        async with aiohttp.ClientSession() as session:
            while self.acknowledged < count:
                number = self.acknowledged + 1
                headers = {"Content-Type": "application/n-quads", "Idempotency-Key": f'"{number}"'}
                with suppress(aiohttp.ClientError, AssertionError, ConnectionError):
                    url = await asyncio.to_thread(lambda: self.running["writer"].url)
                    target = f"{url}/streams/rooms/input"
                    body = numbered(number).lines
                    async with session.post(target, data=body, headers=headers) as response:
                        if response.status == 201:
                            self.acknowledged = number

    async def reached(self, name: str, count: int) -> None:
        """Waits until a server has so many messages."""
        async with asyncio.timeout(300), aiohttp.ClientSession() as session:
            while True:
                url = await asyncio.to_thread(lambda: self.running[name].url)
                async with session.get(f"{url}/streams/rooms") as response:
                    said = await response.json(content_type=None)
                    if said.get("lastSequence", 0) >= count:
                        return
                await asyncio.sleep(0.05)


async def test_any_of_them_is_killed(
    tmp_path: Path, nats: NatsServer, request: pytest.FixtureRequest
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    points = random.Random(seed)
    victims = [*SERVERS, "nats"] * (1 + request.config.getoption("--kills") // 4)
    points.shuffle(victims)
    total = STEP * (len(victims) + 1)
    await publish([], nats.url("rooms"), create=True)
    deployment = Deployment(tmp_path, nats)
    publishing = asyncio.ensure_future(deployment.publish(total))
    try:
        for victim in victims:
            at = deployment.acknowledged + points.randrange(1, STEP)
            while deployment.acknowledged < at and not publishing.done():  # noqa: ASYNC110 # in a task
                await asyncio.sleep(0.002)
            await asyncio.to_thread(deployment.kill, victim)
        await publishing
        expected = [numbered(number) for number in range(1, total + 1)]
        for name in SERVERS:
            await deployment.reached(name, total)
        in_broker = subscribe(nats.url("rooms"), after=0, follow=False)
        assert [element.message async for element in in_broker] == expected
        for name, running in deployment.running.items():
            running.process.terminate()
            assert await asyncio.to_thread(running.wait) == 0
            with open_store(deployment.store(name), read_only=True) as store:
                assert [element.message for element in store.read("rooms")] == expected, name
    finally:
        publishing.cancel()
        for running in deployment.running.values():
            await asyncio.to_thread(running.kill)
    print(f"{len(victims)} kills, {total} messages, in three stores and the broker")

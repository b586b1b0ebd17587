"""A server, a publisher and a subscriber that talk gRPC, each killed again and again and started again.

`make kill-grpc` does it fifty times.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from construct_messages import read_log, write_log
from construct_messages.feeds import publish, subscribe
from construct_messages.streams import open_store
from tests.support.engines.broker_logs import log, same
from tests.support.engines.servers import free_port
from tests.support.grpc.serving import serving_grpc
from tests.support.http.command import Running
from tests.support.processes import start
from tests.support.streams import written
from tests.support.waiting import SECONDS, eventually

EACH = 300  # messages for each kill


class Place:
    """The three processes, and their files in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"grpc://127.0.0.1:{self.port}/a"
        self.store, self.log = folder / "streams.db", folder / "sent.nq"
        self.sent, self.received = folder / "sent.state", folder / "received.state"
        self.output = folder / "received.nq"
        self.server: Running | None = None
        self.publisher: asyncio.subprocess.Process | None = None
        self.subscriber: asyncio.subprocess.Process | None = None

    async def serve(self) -> None:
        self.server = await asyncio.to_thread(
            Running, self.folder, "--streams", str(self.store), "--grpc", f"127.0.0.1:{self.port}"
        )

    async def publish(self) -> None:
        options = ["--state", str(self.sent), "--batch", "10", "--retries", "1000"]
        self.publisher = await start("publish", str(self.log), "--to", self.url, *options)

    async def subscribe(self) -> None:
        options = ["--follow", "--after", "0", "--retries", "1000"]
        if self.received.exists():
            options = ["--follow", "--retries", "1000"]
        files = ["--state", str(self.received), "--output", str(self.output)]
        self.subscriber = await start("subscribe", self.url, *options, *files)

    def acknowledged(self) -> int:
        """How many messages the state of the publisher counts."""
        return json.loads(self.sent.read_text()).get("acknowledged", 0) if self.sent.exists() else 0

    async def kill(self, who: str) -> None:
        """Kills one of the processes, and starts it again."""
        if who == "server":
            assert self.server is not None
            await asyncio.to_thread(self.server.kill)
            await self.serve()
            return
        process = getattr(self, who)
        if process.returncode is None:
            process.kill()
        await process.communicate()
        await (self.publish() if who == "publisher" else self.subscribe())

    async def end(self) -> None:
        for process in (self.publisher, self.subscriber):
            if process is not None and process.returncode is None:
                process.kill()
                await process.communicate()
        if self.server is not None:
            await asyncio.to_thread(self.server.kill)


@pytest.mark.slow
@pytest.mark.process
async def test_kills_lose_and_double_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The server has each message once, and the subscriber's log as well: both ends keep a state."""
    kills, seed = 3 * request.config.getoption("--kills") // 2, random.randrange(1 << 32)
    print(f"seed {seed}")
    points, place = random.Random(seed), Place(tmp_path)
    messages = log(EACH * (kills + 1), large=3)
    write_log(messages, place.log)
    with open_store(place.store) as prepared:
        prepared.create("a")
    try:
        await place.serve()
        await place.publish()
        await place.subscribe()
        for number in range(kills):
            target = EACH * number + points.randrange(EACH)
            await eventually(
                lambda target=target: max(place.acknowledged(), written(place.received)) >= target,
                SECONDS * 4,
            )
            await asyncio.sleep(points.random() * 0.05)
            await place.kill(("server", "publisher", "subscriber")[number % 3])
        assert place.publisher is not None
        _, said = await place.publisher.communicate()
        assert place.publisher.returncode == 0, said.decode()
        await eventually(lambda: written(place.received) >= len(messages), SECONDS * 4)
    finally:
        await place.end()
    with open_store(place.store) as after:
        assert same([element.message for element in after.read("a")], messages)
    assert same(list(read_log(place.output)), messages)
    print(f"{kills} kills, {len(messages)} messages")


@pytest.mark.slow
async def test_a_log(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Of few quads and many, of none, and of a megabyte; `make logs-brokers` has 20,000 messages."""
    sent = log(request.config.getoption("--messages"), large=10)
    async with serving_grpc(tmp_path) as served:
        assert await publish(sent, served.url) == len(sent)
        elements = [element async for element in subscribe(served.url, follow=False)]
    assert [element.sequence for element in elements] == list(range(1, len(sent) + 1))
    assert same([element.message for element in elements], sent)

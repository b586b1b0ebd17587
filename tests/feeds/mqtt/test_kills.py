"""Mosquitto, killed under a writer and a reader: nothing is lost that it had stored, and doubles are recognised.

It acknowledges a message before it writes its database. So a batch is begun when the one before is in the database; the
broker is killed at any point of the batch.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing

import pytest

from construct_messages import Message
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.state import Checkpoint
from tests.support.broker_logs import log, same
from tests.support.engines.brokers import Mosquitto
from tests.support.waiting import settled

pytestmark = pytest.mark.slow

READER = {"identifier": "reader"}


async def test_kills_lose_nothing(broker: Mosquitto, request: pytest.FixtureRequest) -> None:
    kills, seed = 5 * request.config.getoption("--kills"), random.randrange(1 << 32)
    random.seed(seed)
    sent = log(60 * kills, large=kills, bytes=300_000)
    url = broker.url("rooms/a")
    read: list[Message] = []
    begun = asyncio.Event()

    async def write() -> None:
        for number in range(kills):
            await settled(broker.saved)
            begun.set()
            batch = sent[60 * number : 60 * number + 60]
            await publish(batch, url, batch=random.randint(20, 60), retries=100)

    async def follow() -> None:
        async with aclosing(subscribe(url, options=READER, retries=100)) as elements:
            async for element in elements:
                read.append(element.message)
                if random.random() < 0.3:
                    await elements.acknowledge(Checkpoint(element.sequence))
                if len(read) == len(sent):
                    return

    async def kill() -> None:
        for _ in range(kills):
            await begun.wait()
            begun.clear()
            await asyncio.sleep(random.random() / 5)
            await asyncio.to_thread(broker.restart)

    async with aclosing(subscribe(url, options=READER)) as elements:
        await elements.start()
    await asyncio.gather(write(), follow(), kill())
    assert same(read, sent), f"seed {seed}"
    print(f"{kills} kills, {len(sent)} messages, seed {seed}")

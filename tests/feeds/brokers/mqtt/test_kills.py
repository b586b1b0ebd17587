"""Mosquitto, killed under a writer and a reader: nothing is lost, and doubles are recognised.

It acknowledges a message before it writes its database. So each batch begins when the one before is in the database,
and is published again under its key: all of it may have been acknowledged before the broker was killed.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from functools import partial

import pytest

from construct_messages import Message
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.state import Checkpoint
from tests.support.engines.broker_logs import log, same
from tests.support.engines.brokers import Mosquitto
from tests.support.waiting import settled

pytestmark = pytest.mark.slow

READER = {"identifier": "reader"}


async def test_kills_lose_nothing(broker: Mosquitto, request: pytest.FixtureRequest) -> None:
    kills, seed = 2 * request.config.getoption("--kills"), random.randrange(1 << 32)
    random.seed(seed)
    sent = log(30 * kills, large=kills, bytes=100_000)
    url = broker.url("rooms/a")
    read: list[Message] = []

    async def write_and_kill() -> None:
        for number in range(kills):
            batch = sent[30 * number : 30 * number + 30]
            again = partial(publish, batch, url, key=f"batch {number}", retries=100)
            publishing = asyncio.create_task(again())
            await asyncio.wait([publishing], timeout=random.random() / 5)
            await asyncio.to_thread(broker.kill)
            broker.start()
            await publishing
            await again()
            await settled(broker.saved)

    async def follow() -> None:
        async with aclosing(subscribe(url, options=READER, retries=100)) as elements:
            async for element in elements:
                read.append(element.message)
                if random.random() < 0.3:
                    await elements.acknowledge(Checkpoint(element.sequence))
                if len(read) == len(sent):
                    return

    async with aclosing(subscribe(url, options=READER)) as elements:
        await elements.start()
    await asyncio.gather(write_and_kill(), follow())
    assert same(read, sent), f"seed {seed}"
    print(f"{kills} kills, {len(sent)} messages, seed {seed}")

"""A NATS server that is killed under a writer and a reader: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

import pytest

from construct_messages import Message
from construct_messages.feeds import publish, subscribe
from tests.support.engines.broker_logs import log, same
from tests.support.engines.brokers import NatsServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


async def test_kills_lose_nothing_and_double_nothing(
    server: NatsServer, request: pytest.FixtureRequest
) -> None:
    kills, seed = 2 * request.config.getoption("--kills"), random.randrange(1 << 32)
    random.seed(seed)
    sent = log(150 * kills, large=kills, bytes=500_000)
    url = server.url("a")
    await publish(sent[:1], url, create=True)
    read: list[Message] = []
    taken = 0

    async def write() -> None:
        async def slowly() -> AsyncIterator[Message]:
            nonlocal taken
            for message in sent[1:]:
                taken += 1
                if random.random() < 0.05:
                    await asyncio.sleep(0)  # batches of several sizes
                yield message

        await publish(slowly(), url, batch=100, retries=100)

    async def follow() -> None:
        async with aclosing(subscribe(url, after=0, retries=100)) as elements:
            async for element in elements:
                read.append(element.message)
                if len(read) == len(sent):
                    return

    async def kill() -> None:
        for each in range(kills):
            # the writer, or the reader, is somewhere in this part
            part = (each + random.random()) * (len(sent) - 1) / kills
            await eventually(partial(lambda part: min(taken, len(read)) >= part, part))
            await asyncio.sleep(random.random() / 50)
            await asyncio.to_thread(server.restart)

    await asyncio.gather(write(), follow(), kill())
    assert same(read, sent), f"seed {seed}"
    print(f"{kills} kills, {len(sent)} messages, seed {seed}")

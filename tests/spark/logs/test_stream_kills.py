"""Streaming queries that are killed, and started again from their checkpoints: each message is there once."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from construct_messages.errors import SparkUnavailable
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.spark import session
from tests.support.engines.kafka import Kafka
from tests.support.engines.kafka_records import consume
from tests.support.places import absent
from tests.support.processes import end_group
from tests.support.spark.flows import (
    ATTEMPTS,
    appear,
    appeared,
    elements,
    publish,
    quad,
    server,
    started,
    texts,
)
from tests.support.spark.sessions import NO_CONNECTOR, connectors
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.process]

# what is to be seen of a batch that began after the process did, and is killed then, by a pattern in the folder
MOMENTS = {
    "the batch has begun": "checkpoint-0/offsets/[0-9]*",
    "a task writes": "out/_batches/*/*.part",
    "the batch is recorded": "out/_batches/*/*.json",
    "a log has its name": "out/*.nq",
    "the batch is committed": "checkpoint-0/commits/[0-9]*",
    "a batch for the stream has begun": "checkpoint-1/offsets/[0-9]*",
    "a batch for the stream is committed": "checkpoint-1/commits/[0-9]*",
    "a batch for the topic has begun": "checkpoint-2/offsets/[0-9]*",
    "a batch for the topic is committed": "checkpoint-2/commits/[0-9]*",
}
SINKS = ("folder", "stream", "topic")
PROGRAM = "tests.support.spark.flowing"


def test_kills_lose_and_double_nothing(
    tmp_path: Path, kafka: Kafka, request: pytest.FixtureRequest
) -> None:
    """A folder and a stream have each message once. Spark's connector for Kafka writes those of a batch that runs again
    once more, under the same keys.
    """
    try:
        session.require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    if not connectors():
        absent(NO_CONNECTOR)
    # each start of Spark takes ten seconds
    kills, seed = request.config.getoption("--kills") // 2, random.randrange(1 << 32)
    chance = random.Random(seed)
    batches = 3 * (kills + 1)
    messages = [quad(f"m{number}") for number in range(20 * batches)]
    (tmp_path / "in").mkdir()
    for number in range(2 * batches):
        appear(tmp_path / "in" / f"{number}.nq", *messages[10 * number : 10 * (number + 1)])
    seen, hit, topic = Counter[str](), Counter[str](), kafka.topic()
    with server(tmp_path / "streams.db") as served:
        streams = f"{served.url}/streams"
        publish(f"{streams}/source", to_messages(messages))
        asyncio.run(_create(f"{streams}/target"))
        arguments = (streams, kafka.address, topic)
        for kill in range(kills * ATTEMPTS):
            if seen.total() == kills or not [*_unfinished(tmp_path, batches)]:
                break
            moment = chance.choice([*MOMENTS])
            running = started(PROGRAM, tmp_path, *arguments)
            if appeared(tmp_path, MOMENTS[moment], running, SECONDS):
                # within the batch, or between it and the next one
                time.sleep(chance.choice((0, 0, chance.random() / 4, chance.random() * 2)))
                if running.poll() is None:
                    seen[moment] += 1
                    hit.update(_unfinished(tmp_path, batches))
            end_group(running)
            assert Counter(elements(f"{streams}/target")).keys() <= {*messages}, (seed, kill)
        for _ in range(ATTEMPTS):
            running = started(PROGRAM, tmp_path, *arguments)
            if running.wait(SECONDS) == 0:
                break
        errors = tmp_path / "errors"
        assert running.returncode == 0, (seed, errors.read_text()[-2000:])
        records = consume(kafka, topic)
        print(f"\nseed {seed}, kills: {dict(seen)}, of queries at work: {dict(hit)}")
        print(f"records that came twice: {len(records) - len(messages)} of {len(records)}")
        assert Counter(texts(tmp_path / "out")) == Counter(messages), seed
        assert Counter(elements(f"{streams}/target")) == Counter(messages), seed
        by_key = {each.key: each.value for each in records}
        assert len({(each.key, each.value) for each in records}) == len(by_key), seed
        assert Counter(by_key.values()) == Counter(f"{each}\n".encode() for each in messages), seed
    assert seen.total() > 0


def _unfinished(folder: Path, batches: int) -> Iterator[str]:
    """The sinks whose queries have batches left."""
    for number, sink in enumerate(SINKS):
        if len([*folder.glob(f"checkpoint-{number}/commits/[0-9]*")]) < batches:
            yield sink


async def _create(url: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as client, client.put(url) as answer:
        assert answer.status == 201

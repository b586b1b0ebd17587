"""Writing topics of a real broker: order, partitions, sizes, and each batch once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import Message
from construct_messages.errors import LimitExceeded, SourceError, UsageError
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.brokers.kafka.transport import KafkaTransport
from construct_messages.feeds.state import BatchKey, Sent, read_state, write_state
from construct_messages.feeds.transport import Settings
from construct_messages.logs.documents import CONTEXTS
from tests.support.engines.kafka import Kafka
from tests.support.engines.kafka_records import consume
from tests.support.streams import numbered

pytestmark = pytest.mark.slow


def settings(**given: Any) -> Settings:
    return Settings(
        **{
            "contexts": CONTEXTS,
            "message_bytes": 1 << 26,
            "retries": 3,
            "idle_seconds": 60,
            **given,
        }
    )


async def read(url: str) -> list[Message]:
    return [element.message async for element in subscribe(url, follow=False)]


SENT = [numbered(1), Message(), numbered(3), numbered(4), numbered(5)]


@pytest.mark.parametrize("key", [None, "k"])
async def test_the_records_that_are_written(kafka: Kafka, key: str | None) -> None:
    """In order, in the first partition, with an empty value for an empty message, and keys of their own."""
    topic = kafka.topic(partitions=2)
    assert await publish(SENT, kafka.url(topic), key=key, batch=2) == 5
    records = consume(kafka, topic)
    assert [each.value for each in records] == [each.lines for each in SENT]
    assert {name for each in records for name, _ in each.headers} == {
        "RDF-Message-Content-Type",
        "content-type",
    }
    assert {value for each in records for _, value in each.headers} == {b"application/n-quads"}
    assert len({each.key for each in records}) == 5
    if key is not None:
        assert [each.key for each in records] == [b"k-1-1", b"k-1-2", b"k-3-1", b"k-3-2", b"k-5-1"]
    assert consume(kafka, topic, 1) == []


async def test_another_partition_or_all_of_them(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    url = kafka.url(topic)
    await publish(SENT, url, options={"partition": "1"})
    assert [len(consume(kafka, topic, number)) for number in (0, 1)] == [0, 5]
    await publish([numbered(n) for n in range(100)], url, options={"partition": "key"}, key="k")
    sizes = [len(consume(kafka, topic, number)) for number in (0, 1)]
    assert sum(sizes) == 105
    assert min(sizes) > 10
    with pytest.raises(UsageError, match="no partition 2"):
        await publish(SENT, url, options={"partition": "2"})
    with pytest.raises(UsageError, match="partition is 'first'"):
        await publish(SENT, url, options={"partition": "first"})


async def test_a_topic_is_created(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.delete(topic)
    for _ in range(2):
        await publish(SENT, kafka.url(topic), create=True)
    assert await read(kafka.url(topic)) == SENT * 2


async def test_a_message_that_is_too_large(kafka: Kafka) -> None:
    """For the topic, not for a limit of the library: it is refused with its batch, before anything of it is sent."""
    topic = kafka.topic(max_message_bytes="20000")
    large = [numbered(n, 19_000) for n in range(20)]  # together more than a batch may have
    await publish(large, kafka.url(topic))
    with pytest.raises(
        LimitExceeded, match=r"message 2 of 3 takes 2\d{4} bytes as a record; the topic takes 20000"
    ):
        await publish([numbered(1), numbered(2, 20_000), numbered(3)], kafka.url(topic))
    assert await read(kafka.url(topic)) == large
    topic = kafka.topic(max_message_bytes="8000000")
    huge = [numbered(n, size) for n, size in enumerate((1_000_000, 1 << 20, 7_000_000))]
    await publish(huge, kafka.url(topic), key="k")
    assert await read(kafka.url(topic)) == huge


async def test_a_batch_is_written_once_under_its_key(kafka: Kafka) -> None:
    """Also by another process: each transport here knows nothing of the others."""
    url = kafka.url(kafka.topic())

    async def write(key: str, batch: Sequence[Message]) -> None:
        transport = KafkaTransport(url, settings())
        try:
            await transport.write(batch, key)
        finally:
            await transport.aclose()

    for _ in range(3):
        await write("a-1", SENT)
    await write("b-1", SENT)
    await write("a-6", SENT)
    await write("a-6", SENT)
    assert await read(url) == SENT * 3
    for key, batch in (("a-6", SENT[:-1]), ("a-1", SENT), ("a-3", SENT)):
        with pytest.raises(UsageError, match=f"the batch {key} was written before"):
            await write(key, batch)
    assert await read(url) == SENT * 3


async def test_a_state_that_is_behind(kafka: Kafka, tmp_path: Path) -> None:
    """As after a kill between the acknowledgement and the state: nothing comes twice."""
    url, state = kafka.url(kafka.topic()), tmp_path / "state.json"
    await publish(SENT[:3], url, state=state, batch=3)
    kept = read_state(state, Sent, url)
    assert kept is not None
    lines = tuple(each.lines[:-1].decode() for each in SENT[:3])
    write_state(state, msgspec.structs.replace(kept, acknowledged=0, in_flight=lines))
    assert await publish(SENT, url, state=state, batch=3) == 5
    assert await read(url) == SENT


async def test_an_older_writer_is_shut_out(kafka: Kafka) -> None:
    url = kafka.url(kafka.topic())
    older, newer = KafkaTransport(url, settings()), KafkaTransport(url, settings())
    await older.write(SENT[:1], "k-1")
    await newer.write(SENT[1:2], "k-2")
    with pytest.raises(SourceError, match=r"_FENCED|INVALID_PRODUCER_EPOCH") as refused:
        await older.write(SENT[2:], "k-3")
    assert "one at a time" in (refused.value.hint or "")
    await newer.write(SENT[2:], "k-3")
    for transport in (older, newer):
        await transport.aclose()
    assert await read(url) == SENT


async def test_the_transactional_id_of_the_user(kafka: Kafka) -> None:
    url = kafka.url(kafka.topic())
    for _ in range(2):
        transport = KafkaTransport(
            url, settings(options={"transactional.id": "mine"}, repeatable=False)
        )
        await transport.write(SENT, "k-1")
        await transport.aclose()
    assert await read(url) == SENT
    groups = kafka.admin.list_consumer_groups().result().valid
    assert "mine" in {each.group_id for each in groups}


async def test_a_publication_that_is_cancelled(kafka: Kafka, tmp_path: Path) -> None:
    """At any point: what is sent again is stored once, and readers need not wait for a transaction to time out."""
    url, state = kafka.url(kafka.topic()), tmp_path / "state.json"
    sent = [numbered(n) for n in range(2000)]
    for milliseconds in (20, 50, 80, 110, 140, 200, 300):
        task = asyncio.ensure_future(publish(sent, url, state=state, batch=100))
        await asyncio.sleep(milliseconds / 1000)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await publish(sent, url, state=state, batch=100)
    assert await read(url) == sent


async def test_publishers_at_once(kafka: Kafka) -> None:
    """Each with its own key: none is shut out, and the messages of each are in order."""
    url = kafka.url(kafka.topic())
    own = [[numbered(100 * n + each) for each in range(50)] for n in range(4)]
    await asyncio.gather(
        *(publish(each, url, key=f"writer-{n}", batch=7) for n, each in enumerate(own))
    )
    found = await read(url)
    assert len(found) == 200
    for each in own:
        assert [message for message in found if message in each] == each


@given(st.text(max_size=20))
def test_keys(key: str) -> None:
    """Each has a writer and a number that tell it."""
    parsed = BatchKey.parse(key)
    assert parsed.number >= 0
    if parsed.number:
        assert f"{parsed.writer}-" in key
    numbers = [BatchKey.parse(f"{key or 'k'}-{number}") for number in (1, 10, 101)]
    assert numbers == sorted(numbers)
    assert len({each.writer for each in numbers}) == 1

"""Reading topics of a real broker: where it begins and ends, positions, groups, and what is not there any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import NewPartitions

from construct_messages import Message, read_log
from construct_messages.errors import LogError, SourceError, UsageError
from construct_messages.feeds import Checkpoint, publish, subscribe
from construct_messages.feeds.brokers.records import RecordTransport
from construct_messages.feeds.opening import opened
from construct_messages.feeds.subscription import Subscription
from construct_messages.feeds.transport import Settings, Start
from construct_messages.rdf.wire import Header
from construct_messages.streams import Element
from tests.support.commands import run
from tests.support.engines.kafka import Kafka
from tests.support.engines.kafka_records import Raw, consume, produce
from tests.support.streams import numbered
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

TURTLE = [("content-type", b"text/turtle")]


def triple(number: int) -> bytes:
    return f'<urn:s> <urn:number> "x{number}" .'.encode()


def record(number: int, partition: int = 0, milliseconds: int = 0) -> Raw:
    """The record of `numbered`."""
    return Raw(triple(number), TURTLE, None, partition, milliseconds)


async def read(url: str, **options: Any) -> list[Element]:
    async with aclosing(subscribe(url, follow=False, **options)) as elements:
        return [element async for element in elements]


def messages(elements: Sequence[Element]) -> list[Message]:
    return [element.message for element in elements]


async def checkpoint_after(subscription: Subscription, count: int) -> Checkpoint:
    for _ in range(count):
        await anext(subscription)
    assert subscription.checkpoint is not None
    return subscription.checkpoint


@pytest.mark.parametrize("name", ["content-type", "Content-Type", "rdf-message-content-TYPE"])
async def test_the_type_is_in_a_header_of_any_case(kafka: Kafka, name: str) -> None:
    topic = kafka.topic()
    produce(kafka, topic, [Raw(triple(1), [("other", b"\xff"), (name, b"text/turtle")])])
    assert messages(await read(kafka.url(topic))) == [numbered(1)]


async def test_the_type_is_that_of_the_caller(kafka: Kafka) -> None:
    topic = kafka.topic()
    produce(kafka, topic, [Raw(triple(1))])
    with pytest.raises(SourceError, match="record 0:0 names no media type"):
        await read(kafka.url(topic))
    assert messages(await read(kafka.url(topic), media_type="text/turtle")) == [numbered(1)]


async def test_empty_values_are_messages_and_tombstones_are_none(kafka: Kafka) -> None:
    topic = kafka.topic(cleanup_policy="compact")
    produce(
        kafka,
        topic,
        [Raw(b"", TURTLE, b"a"), Raw(None, TURTLE, b"a"), Raw(triple(3), TURTLE, b"b")],
    )
    elements = await read(kafka.url(topic))
    assert messages(elements) == [Message(), numbered(3)]
    assert [element.sequence for element in elements] == [1, 2]


async def test_records_that_come_together_keep_what_each_has(kafka: Kafka) -> None:
    topic = kafka.topic()
    other = [("Content-Type", b"text/turtle"), ("a", b"1")]
    sent = [
        record(1),
        record(2)._replace(headers=other, key=b"two"),
        record(3)._replace(value=None),  # a tombstone
        record(4)._replace(headers=[], key=b"\xff"),
        record(5)._replace(key=b"five"),
    ]
    await asyncio.to_thread(produce, kafka, topic, sent)
    async with (
        opened(kafka.url(topic), Settings()) as transport,
        aclosing(cast(RecordTransport, transport).records(Start(after=0), follow=False)) as batches,
    ):
        found = [each async for batch in batches for each in batch]
    assert [each[:4] + each[5:] for each in found] == [
        (triple(1), "text/turtle", "", 1, {}, 0, 0),
        (triple(2), "text/turtle", "two", 2, {"a": "1"}, 0, 1),
        (triple(4), None, "\\xff", 3, {}, 0, 3),
        (triple(5), "text/turtle", "five", 4, {}, 0, 4),
    ]


async def test_times_are_those_of_the_records(kafka: Kafka) -> None:
    topic = kafka.topic()
    produce(kafka, topic, [record(n, milliseconds=n * 1000) for n in range(1, 6)])
    elements = await read(kafka.url(topic))
    assert [element.microseconds for element in elements] == [n * 1_000_000 for n in range(1, 6)]
    since = datetime.fromtimestamp(3, UTC)
    assert messages(await read(kafka.url(topic), since=since)) == [numbered(n) for n in (3, 4, 5)]
    assert await read(kafka.url(topic), since=datetime.now(UTC)) == []


@pytest.mark.parametrize("last", range(8))
async def test_the_last_messages_of_several_partitions(kafka: Kafka, last: int) -> None:
    """By their times; tombstones and the ends of transactions do not count."""
    topic = kafka.topic(partitions=3)
    for number in range(1, 7):
        partition = number % 2
        produce(kafka, topic, [record(number, partition, number * 1000)])
        produce(kafka, topic, [Raw(None, TURTLE, b"k", partition, number * 1000 + 1)])
    elements = await read(kafka.url(topic), last=last)
    newest = [numbered(number) for number in range(1, 7)][max(6 - last, 0) :]
    assert {each.message.lines for each in elements} == {each.lines for each in newest}


async def test_the_last_of_many_transactions(kafka: Kafka) -> None:
    """Each ends with a record that no reader sees."""
    topic = kafka.topic()
    sent = [numbered(number) for number in range(1, 13)]
    await publish(sent, kafka.url(topic), key="k", batch=1)
    for last in (1, 5, 12, 100):
        assert messages(await read(kafka.url(topic), last=last)) == sent[-last:]


async def test_a_follower_begins_with_what_comes_next(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, [record(1), record(2, 1)])
    async with aclosing(subscribe(kafka.url(topic))) as elements:
        await elements.start()
        assert elements.checkpoint is not None
        assert elements.checkpoint.place == {"offsets": ("0:1", "1:1")}
        produce(kafka, topic, [record(3)])
        assert (await anext(elements)).message == numbered(3)
        assert elements.checkpoint is not None
        assert elements.checkpoint.place == {"offsets": ("0:2", "1:1")}


async def test_a_checkpoint_after_each_message(kafka: Kafka) -> None:
    """With gaps between offsets, and several partitions: nothing is lost or comes twice."""
    topic = kafka.topic(partitions=2)
    await publish([numbered(n) for n in range(1, 5)], kafka.url(topic), key="k", batch=2)
    produce(kafka, topic, [record(5, 1), Raw(None, TURTLE, b"k", 1), record(6, 1)])
    expected = {numbered(n).lines for n in range(1, 7)}
    for count in range(7):
        async with aclosing(subscribe(kafka.url(topic), after=0, follow=False)) as elements:
            await elements.start()
            first = [await anext(elements) for _ in range(count)]
            checkpoint = elements.checkpoint
        rest = await read(kafka.url(topic), checkpoint=checkpoint)
        assert {each.message.lines for each in [*first, *rest]} == expected
        assert len(first) + len(rest) == 6
        assert [each.sequence for each in rest] == list(range(count + 1, 7))


async def test_a_reader_ends_where_the_topic_ended_when_it_began(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, [record(1), record(2), record(3, 1)])
    async with aclosing(subscribe(kafka.url(topic), follow=False)) as elements:
        await elements.start()
        produce(kafka, topic, [record(4), record(5, 1)])
        read_now = [each.message.lines async for each in elements]
        checkpoint = elements.checkpoint
    assert sorted(read_now) == [numbered(n).lines for n in (1, 2, 3)]
    rest = await read(kafka.url(topic), checkpoint=checkpoint)
    assert {each.message.lines for each in rest} == {numbered(n).lines for n in (4, 5)}


async def test_partitions_that_are_added_while_following(kafka: Kafka) -> None:
    topic = kafka.topic()
    async with aclosing(subscribe(kafka.url(topic), poll_seconds=0.1)) as elements:
        await elements.start()
        for done in kafka.admin.create_partitions([NewPartitions(topic, 3)]).values():
            done.result()
        await eventually(lambda: len(kafka.admin.list_topics(topic).topics[topic].partitions) == 3)
        produce(kafka, topic, [record(1, 2), record(2, 1)])
        found = {(await anext(elements)).message.lines for _ in range(2)}
    assert found == {numbered(1).lines, numbered(2).lines}


def remove_before(kafka: Kafka, topic: str, offset: int) -> None:
    """Does what retention does."""
    for done in kafka.admin.delete_records([Partition(topic, 0, offset)]).values():
        done.result()


async def test_offsets_that_retention_removed(kafka: Kafka) -> None:
    topic = kafka.topic()
    produce(kafka, topic, [record(n) for n in range(1, 6)])
    async with aclosing(subscribe(kafka.url(topic), after=0)) as elements:
        checkpoint = await checkpoint_after(elements, 2)
    remove_before(kafka, topic, 3)
    with pytest.raises(
        SourceError, match="offset 2 of partition 0 is not there: it has 3 to 5"
    ) as gone:
        await read(kafka.url(topic), checkpoint=checkpoint)
    assert gone.value.status == 410
    assert messages(await read(kafka.url(topic))) == [numbered(4), numbered(5)]


async def test_offsets_that_retention_removes_while_they_are_read(kafka: Kafka) -> None:
    """The library has fetched some of them; the others are an error, and no jump."""
    topic = kafka.topic(max_message_bytes="2000000")
    large = [Raw(b"#" * 900_000 + b"\n" + triple(n), TURTLE) for n in range(1, 31)]
    produce(kafka, topic, large)
    options = {"queued.min.messages": "1", "queued.max.messages.kbytes": "1000"}
    async with aclosing(subscribe(kafka.url(topic), after=0, options=options)) as elements:
        found = [(await anext(elements)).message.lines]
        remove_before(kafka, topic, 30)
        with pytest.raises(SourceError, match="offset") as gone:
            found.extend([each.message.lines async for each in elements])
    assert gone.value.status == 410
    assert found == [numbered(n).lines for n in range(1, len(found) + 1)]
    assert len(found) < 30


async def test_a_topic_that_was_created_again(kafka: Kafka) -> None:
    topic = kafka.topic()
    produce(kafka, topic, [record(1), record(2)])
    async with aclosing(subscribe(kafka.url(topic), after=0)) as elements:
        checkpoint = await checkpoint_after(elements, 2)
    kafka.delete(topic)
    kafka.topic(name=topic)
    produce(kafka, topic, [record(3), record(4)])
    with pytest.raises(SourceError, match="another topic") as gone:
        await read(kafka.url(topic), checkpoint=checkpoint)
    assert gone.value.status == 410


async def test_a_topic_that_is_deleted_while_it_is_followed(kafka: Kafka) -> None:
    topic = kafka.topic()
    async with aclosing(subscribe(kafka.url(topic), poll_seconds=0.1)) as elements:
        await elements.start()
        kafka.delete(topic)
        with pytest.raises(SourceError, match="Unknown topic"):
            await anext(elements)


async def test_the_offsets_of_a_group(kafka: Kafka) -> None:
    """They are committed by `acknowledge` alone, and are where the next reader of the group begins."""
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, [record(1), record(2), record(3)])
    group = {"group.id": f"group-{topic}"}
    for _ in range(2):
        assert len(await read(kafka.url(topic), options=group)) == 3  # without an acknowledgement
    async with aclosing(subscribe(kafka.url(topic), follow=False, options=group)) as elements:
        await elements.acknowledge(await checkpoint_after(elements, 2))
    assert messages(await read(kafka.url(topic), options=group)) == [numbered(3)]
    produce(kafka, topic, [record(4, 1)])
    async with aclosing(subscribe(kafka.url(topic), options=group)) as elements:
        found = {(await anext(elements)).message.lines for _ in range(2)}
        assert found == {numbered(3).lines, numbered(4).lines}
    assert len(await read(kafka.url(topic))) == 4  # no group, no position
    assert len(await read(kafka.url(topic), after=0, options=group)) == 4


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("with_state", [True, False])
async def test_a_bounded_read_commits_at_its_end(
    kafka: Kafka, tmp_path: Path, partitions: int, with_state: bool
) -> None:
    """The offsets are those that the topic ends at, as another client of the group sees them."""
    topic = kafka.topic(partitions=partitions)
    group, log = f"group-{topic}", tmp_path / "log.nq"
    state = ["--state", str(tmp_path / "state")] if with_state else []
    command = ["subscribe", kafka.url(topic), "--output", str(log), "--set", f"group.id={group}"]
    sent = 0
    for count in (5, 0, 2):
        added = range(sent, sent + count)
        await asyncio.to_thread(
            produce, kafka, topic, [record(number, number % partitions) for number in added]
        )
        sent += count
        if not with_state:
            log.unlink(missing_ok=True)
        done = await asyncio.to_thread(run, *command, *state)
        assert (done.status, done.errors) == (0, "")
        found = [message.lines for message in read_log(log)]
        read_now = range(sent) if with_state else added
        assert sorted(found) == [numbered(number).lines for number in read_now]
        assert await asyncio.to_thread(committed, kafka, topic, group, partitions) == sent


async def test_nothing_is_committed_of_a_log_that_is_not_there(
    kafka: Kafka, tmp_path: Path
) -> None:
    """The file appears when it is complete; here a record is no message, after more than are saved at a time."""
    topic = kafka.topic()
    group, log = f"group-{topic}", tmp_path / "log.nq"
    command = ["subscribe", kafka.url(topic), "--output", str(log), "--set", f"group.id={group}"]
    produce(kafka, topic, [record(number) for number in range(1200)])
    produce(kafka, topic, [record(1200)._replace(value=b"no message")])
    done = await asyncio.to_thread(run, *command)
    assert (done.status, log.exists()) == (3, False)
    assert await asyncio.to_thread(committed, kafka, topic, group, 1) == 0
    letters = tmp_path / "letters"
    done = await asyncio.to_thread(run, *command, "--dead-letters", str(letters))
    assert (done.status, done.errors) == (0, "")
    assert list(read_log(log)) == [numbered(number) for number in range(1200)]
    assert await asyncio.to_thread(committed, kafka, topic, group, 1) == 1201


def committed(kafka: Kafka, topic: str, group: str, partitions: int) -> int:
    """The sum of the offsets that a group has committed."""
    asked = [Partition(topic, number) for number in range(partitions)]
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": group})
    try:
        return sum(max(each.offset, 0) for each in consumer.committed(asked, 60))
    finally:
        consumer.close()


async def test_the_last_element_is_acknowledged_until_the_subscription_is_closed(
    kafka: Kafka,
) -> None:
    topic = kafka.topic()
    produce(kafka, topic, [record(1), record(2)])
    group = {"group.id": f"group-{topic}"}
    async with aclosing(subscribe(kafka.url(topic), follow=False, options=group)) as elements:
        assert len([each async for each in elements]) == 2
        checkpoint = elements.checkpoint
        assert checkpoint is not None
        with pytest.raises(StopAsyncIteration):
            await anext(elements)
        await elements.acknowledge(checkpoint)
    assert await read(kafka.url(topic), options=group) == []
    with pytest.raises(UsageError, match="after the subscription was closed"):
        await elements.acknowledge(checkpoint)


async def test_transactions_that_were_aborted_are_not_read(kafka: Kafka) -> None:
    topic = kafka.topic()
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        producer.produce(topic, triple(number), headers=TURTLE)
        producer.flush()
        (producer.commit_transaction if number % 2 else producer.abort_transaction)()
    assert messages(await read(kafka.url(topic))) == [numbered(1), numbered(3)]
    producer.begin_transaction()
    producer.produce(topic, triple(5), headers=TURTLE)
    producer.flush()
    assert len(await read(kafka.url(topic))) == 2, "it does not wait for an open transaction"
    async with aclosing(subscribe(kafka.url(topic))) as elements:
        await elements.start()
        producer.commit_transaction()
        assert (await anext(elements)).message == numbered(5)


async def test_dead_letters(kafka: Kafka, tmp_path: Path) -> None:
    """With where they were; in a file, and in another topic as they came."""
    topic, dead = kafka.topic(partitions=2), kafka.topic()
    bad = Raw(b"<urn:s", [*TURTLE, ("trace", b"7")], b"key", 1)
    produce(kafka, topic, [record(1), record(2, 1), bad, record(3, 1)])
    with pytest.raises(LogError):
        await read(kafka.url(topic))
    file = tmp_path / "dead.jsonl"
    for place in (file, kafka.url(dead)):
        found = await read(kafka.url(topic), dead_letters=place)
        assert {each.message.lines for each in found} == {numbered(n).lines for n in (1, 2, 3)}
    letter = json.loads(file.read_text())
    assert (letter["place"], letter["key"]) == ("1:1", "key")
    assert letter["headers"] == {"trace": "7"}
    (other,) = consume(kafka, dead)
    assert other.value == bad.value
    assert {
        "trace": b"7",
        Header.DEAD_LETTER_SOURCE.value: kafka.url(topic).encode(),
        Header.DEAD_LETTER_PLACE.value: b"1:1",
    }.items() <= dict(other.headers).items()


async def test_what_cannot_be_asked_for(kafka: Kafka) -> None:
    topic = kafka.topic()
    with pytest.raises(UsageError, match="does not number"):
        await read(kafka.url(topic), after=3)
    for place in ({}, {"offsets": ("a:b",)}, {"known": ("x",)}):
        with pytest.raises(UsageError, match="another transport"):
            await read(kafka.url(topic), checkpoint=Checkpoint(1, place))


async def test_a_subscription_that_is_cancelled(kafka: Kafka) -> None:
    elements = subscribe(kafka.url(kafka.topic()))
    await elements.start()
    waiting = asyncio.ensure_future(anext(elements))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await elements.aclose()

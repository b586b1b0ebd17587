"""What tests of Kafka share: records as its own clients write and read them, without this package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import OffsetSpec

from tests.support.engines.kafka import Kafka

Headers = Sequence[tuple[str, bytes]]


class Raw(NamedTuple):
    """A record as a client of Kafka has it; without a value it is a tombstone."""

    value: bytes | None
    headers: Headers = ()
    key: bytes | None = None
    partition: int = 0
    milliseconds: int = 0
    offset: int = 0


def produce(kafka: Kafka, topic: str, records: Iterable[Raw]) -> None:
    """Writes records."""
    producer = Producer({"bootstrap.servers": kafka.address, "message.max.bytes": 100_000_000})
    for each in records:
        producer.produce(
            topic,
            each.value,
            each.key,
            each.partition,
            headers=list(each.headers),
            timestamp=each.milliseconds,
        )
    assert producer.flush(60) == 0


def consume(kafka: Kafka, topic: str, partition: int = 0) -> list[Raw]:
    """Reads the records of a partition that are committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.address,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    ((_, oldest),) = kafka.admin.list_offsets(
        {Partition(topic, partition): OffsetSpec.earliest()}
    ).items()
    consumer.assign([Partition(topic, partition, oldest.result().offset)])
    found = []
    while True:
        message = consumer.poll(60)
        assert message is not None, "nothing came in time"
        if message.error() is not None:
            consumer.close()
            return found
        found.append(
            Raw(
                message.value(),
                message.headers() or (),
                message.key(),
                message.partition(),
                message.timestamp()[1],
                message.offset(),
            )
        )

"""Case 1.1.3 of the specification's tests, over a real broker: read, and written."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition

from construct_messages.errors import LogError
from construct_messages.feeds import publish, subscribe
from construct_messages.rdf.formats import N_QUADS
from tests.support.engines.kafka import Kafka
from tests.support.http.streams import read
from tests.support.places import shared_path

pytestmark = pytest.mark.slow


def case() -> dict[str, Any]:
    """The case as given."""
    file = shared_path("suites/rdf-messages") / "cases.json"
    cases = json.loads(file.read_text(encoding="utf-8"))["cases"]
    return next(case for case in cases if case["id"] == "1.1.3")


async def test_records_are_read(kafka: Kafka) -> None:
    """As given, written by a client without this package."""
    given = case()
    topic = kafka.topic()
    headers = [(name, value.encode()) for name, value in given["record_headers"].items()]
    async with AIOKafkaProducer(bootstrap_servers=kafka.address) as producer:
        for frame in given["frames"]:
            await producer.send_and_wait(topic, frame.encode(), headers=headers)
    elements = [element async for element in subscribe(kafka.url(topic), follow=False)]
    assert [element.message for element in elements] == [
        read("\n".join(lines), N_QUADS) for lines in given["messages"]
    ]


@pytest.mark.parametrize("media_type", ["application/n-quads", "application/trig"])
async def test_two_messages_in_one_record(kafka: Kafka, media_type: str) -> None:
    """They were merged into one. Without the parameter, the delimiter is a comment."""
    topic, value = kafka.topic(), b"<urn:s> <urn:p> 'x' .\n# @message\n<urn:s> <urn:p> 'y' .\n"
    value = value.replace(b"'", b'"')
    async with AIOKafkaProducer(bootstrap_servers=kafka.address) as producer:
        for each in (media_type, f"{media_type}; messages=rdfm"):
            await producer.send_and_wait(topic, value, headers=[("content-type", each.encode())])
    async with aclosing(subscribe(kafka.url(topic), follow=False)) as elements:
        assert len((await anext(elements)).message) == 2
        with pytest.raises(LogError, match="message 2: the document holds 2 messages"):
            await anext(elements)


@pytest.mark.parametrize("key", [None, "in-a-transaction"])
async def test_records_are_written(kafka: Kafka, key: str | None) -> None:
    """As given, read by a client without this package."""
    given = case()
    topic = kafka.topic()
    messages = [read("\n".join(lines), N_QUADS) for lines in given["messages"]]
    await publish(messages, kafka.url(topic), media_type="application/n-triples", key=key)
    async with AIOKafkaConsumer(
        bootstrap_servers=kafka.address, isolation_level="read_committed"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        records = [await consumer.getone() for _ in messages]
    assert [record.value.decode() for record in records] == given["frames"]
    for record in records:
        headers = {name: value.decode() for name, value in record.headers}
        assert headers.items() >= given["record_headers"].items()
        assert headers["content-type"] == "application/n-triples"

"""Messages through a broker of Kafka, beside its client libraries alone with the same bytes.

`python -m benchmarks micro kafka`. The ratio is the rate to that of confluent-kafka alone with the same guarantee: for
writing, a producer with the same properties that sends the same values, keys and headers, and at the end of each batch
waits, or, for once per key, commits a transaction; for reading, a consumer that looks at the same parts of each record,
and for a log, one that writes each value and a delimiter, unread, into a file.
The broker runs on this machine; runs alternate. The garbage collector does not look at the messages to send, which a
program would make on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import Message as KafkaMessage
from confluent_kafka import TopicPartition as Partition

from benchmarks.harness import Figure, report
from construct_messages import GrowingLog, Message, Quad, iri, literal
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.recording import record
from construct_messages.feeds.transport import Record
from construct_messages.rdf.formats import RDFM
from tests.support.engines.kafka import Kafka, kafka

_GOAL: Final = "≥ 0.7"
_ALONE: Final = {
    "read by confluent-kafka": "read by confluent-kafka",
    "read by aiokafka": "read by confluent-kafka",
    "subscribed": "read by confluent-kafka",
    "recorded in a log": "recorded by confluent-kafka",
    "published once per key": "written by confluent-kafka in transactions",
}
"""What a run is compared with, if not with `written by confluent-kafka`."""

_DELIMITER: Final = RDFM.delimiter.encode()

_HEADERS: Final[list[tuple[str, str | bytes | None]]] = [
    (name, value.encode()) for name, value in Record(b"", "application/n-quads").named.items()
]


def message(number: int, quads: int) -> Message:
    """A message of about 110 bytes for each quad."""
    subject = iri(f"http://example.org/observation/{number:09}")
    return Message(
        Quad(
            subject, iri(f"http://example.org/property/{index:02}"), literal("x" * 30 + str(number))
        )
        for index in range(quads)
    )


class Shape:
    """The runs over messages of one size.

    Args:
        broker: of all of them.
        quads: in a message.
        messages: how many.
        batch: the most that are sent at once.
    """

    def __init__(self, broker: Kafka, quads: int, messages: int, batch: int) -> None:
        self._broker, self._batch = broker, batch
        sent = [message(number, quads) for number in range(messages)]
        self._lines = [each.lines for each in sent]
        self._nquads = [each[:-1] for each in self._lines]
        self._quads = [tuple(each) for each in sent]
        self._keys = count(1)
        self.topic = ""

    def _sent(self) -> list[Message]:
        """The messages anew for each run, so that none was checked or written before."""
        return [*map(Message, self._quads)]

    def _checked(self, found: Sequence[object], sent: Sequence[bytes]) -> None:
        if found != sent:
            raise SystemExit("other messages arrived than were sent")

    async def confluent_writes(self) -> None:
        """The library alone."""
        self.topic = self._broker.topic()
        producer = self._producer()
        for start in range(0, len(self._lines), self._batch):
            self._produce(producer, start)
            producer.flush()

    async def confluent_transacts(self) -> None:
        """The library alone, each batch in a transaction."""
        self.topic = self._broker.topic()
        producer = self._producer(**{"transactional.id": f"benchmark-alone-{next(self._keys)}"})
        producer.init_transactions()
        for start in range(0, len(self._lines), self._batch):
            producer.begin_transaction()
            self._produce(producer, start)
            producer.commit_transaction()

    def _producer(self, **config: str) -> Producer:
        return Producer(
            {"bootstrap.servers": self._broker.address, "enable.idempotence": True, **config}
        )

    def _produce(self, producer: Producer, start: int) -> None:
        """Hands over the batch from an index on."""
        for number, line in enumerate(self._lines[start : start + self._batch], start):
            producer.produce(self.topic, line, b"0123456789abcdef-%d" % number, 0, headers=_HEADERS)

    async def confluent_reads(self) -> None:
        """The library alone, from the topic that was written last."""
        found: list[object] = []
        for each in self._consumed():
            each.headers(), each.key(), each.timestamp(), each.offset()
            found.append(each.value())
        self._checked(found, self._lines)

    async def confluent_records(self) -> None:
        """The library alone, from the topic that was written last into a file."""
        with TemporaryFile() as file:
            for each in self._consumed():
                file.write((each.value() or b"") + _DELIMITER)

    def _consumed(self) -> Iterator[KafkaMessage]:
        config = {"bootstrap.servers": self._broker.address, "group.id": "benchmark"}
        consumer = Consumer({**config, "enable.auto.commit": False})
        consumer.assign([Partition(self.topic, 0, 0)])
        left = len(self._lines)
        while left:
            found = consumer.consume(min(left, 500), 0.1)
            left -= len(found)
            yield from found
        consumer.close()

    async def aiokafka_writes(self) -> None:
        """The other library alone."""
        self.topic = self._broker.topic()
        async with AIOKafkaProducer(
            bootstrap_servers=self._broker.address, enable_idempotence=True, max_batch_size=1 << 20
        ) as producer:
            for start in range(0, len(self._lines), self._batch):
                sending = [
                    await producer.send(
                        self.topic, line, b"0123456789abcdef-%d" % number, 0, headers=_HEADERS
                    )
                    for number, line in enumerate(self._lines[start : start + self._batch], start)
                ]
                await asyncio.gather(*sending)

    async def aiokafka_reads(self) -> None:
        """The other library alone, from the topic that was written last."""
        found: list[object] = []
        async with AIOKafkaConsumer(
            bootstrap_servers=self._broker.address, isolation_level="read_committed"
        ) as consumer:
            partition = TopicPartition(self.topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            while len(found) < len(self._lines):
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    found += [record.value for record in records]
        self._checked(found, self._lines)

    def written(self) -> Coroutine[Any, Any, None]:
        """This package, without a key. The messages are made before, as the bytes for the libraries alone are."""
        return self._published(self._sent(), None)

    def written_once(self) -> Coroutine[Any, Any, None]:
        """This package, each batch in a transaction."""
        return self._published(self._sent(), f"benchmark-{next(self._keys)}")

    async def _published(self, sent: list[Message], key: str | None) -> None:
        self.topic = self._broker.topic()
        await publish(sent, self._broker.url(self.topic), batch=self._batch, key=key)

    async def read(self) -> None:
        """This package, from the topic that was written last."""
        elements = subscribe(self._broker.url(self.topic), follow=False)
        self._checked([element.nquads async for element in elements], self._nquads)

    async def record(self) -> None:
        """This package, from the topic that was written last into a log, as the command `subscribe` does."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "log.nq"
            with GrowingLog(path).opened() as log:
                await record(subscribe(self._broker.url(self.topic), follow=False), log)
            self._checked([path.read_bytes()], [b"".join(map(_DELIMITER.__add__, self._lines))])


def measured(
    rounds: int, runs: Sequence[Callable[[], Coroutine[Any, Any, None]]]
) -> list[tuple[float, float]]:
    """The median of seconds of each run, and of the CPU of this process."""
    seconds: list[list[tuple[float, float]]] = [[] for _ in runs]
    for _ in range(rounds):
        for each, found in zip(runs, seconds, strict=True):
            run = each()
            gc.collect()
            gc.freeze()
            started, used = time.perf_counter(), time.process_time()
            asyncio.run(run)
            found.append((time.perf_counter() - started, time.process_time() - used))
    return [
        (statistics.median(s for s, _ in found), statistics.median(c for _, c in found))
        for found in seconds
    ]


def main() -> None:
    """Measures and reports.

    Raises:
        SystemExit: messages are lost.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    figures = []
    with TemporaryDirectory() as folder, kafka(Path(folder)) as broker:
        for quads, messages in ((5, options.messages), (30, options.messages // 5)):
            shape = Shape(broker, quads, messages, options.batch)
            asyncio.run(shape.written_once())  # the broker is warm
            runs = {
                "written by confluent-kafka": shape.confluent_writes,
                "read by confluent-kafka": shape.confluent_reads,
                "written by confluent-kafka in transactions": shape.confluent_transacts,
                "written by aiokafka": shape.aiokafka_writes,
                "read by aiokafka": shape.aiokafka_reads,
                "published": shape.written,
                "published once per key": shape.written_once,
                "subscribed": shape.read,
                "recorded by confluent-kafka": shape.confluent_records,
                "recorded in a log": shape.record,
            }
            found = dict(zip(runs, measured(options.rounds, list(runs.values())), strict=True))
            for what, (seconds, cpu) in found.items():
                alone, its_cpu = found[_ALONE.get(what, "written by confluent-kafka")]
                goal = _GOAL if what.startswith(("published", "subscribed")) else ""
                title = f"{quads} quads, {what}"
                figures.append(
                    Figure(
                        f"{title}: {messages / seconds:,.0f} messages/s",
                        seconds,
                        alone / seconds,
                        goal,
                    )
                )
                figures.append(
                    Figure(f"{title}: {messages / cpu:,.0f} per second of CPU", cpu, its_cpu / cpu)
                )
    report("kafka", f"Kafka: messages in batches of {options.batch}", figures)


if __name__ == "__main__":
    main()

"""Writes records to a topic: in order, each once while it runs, and each batch once over restarts.

The producer is idempotent: what it repeats after a lost answer is stored once. What another process repeats is stored
once by a transaction, which commits, along with the records, an offset of a group that is used for nothing else: it is
the number of the batch, and its metadata are the digest of the batch. They tell the next process whether the batch is
there. The transactional id, which is the name of the group, shuts out an older process that still runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Partition

from construct_messages.errors import LimitExceeded, UsageError
from construct_messages.feeds.kafka.client import GROUP, PARTITION, TRANSACTION, TopicClient
from construct_messages.feeds.record import Record

T = TypeVar("T")

_BY_KEY: Final = "key"
_ANY: Final = -1  # the partition that the library chooses
_STEP_SECONDS: Final = (
    0.5  # how long the thread is blocked at a time, so that closing need not wait
)
_ABORT_SECONDS: Final = 5.0
_DEFAULT_BYTES: Final = 1_000_000  # of the library
_MOST_BYTES: Final = 1_000_000_000  # of the library
_BATCH_OVERHEAD: Final = 61  # bytes before the records of a batch
_RECORD_OVERHEAD: Final = 64  # more than the lengths in a record have


class BatchKey(NamedTuple):
    """The key of a batch.

    Args:
        writer: the same for all batches of one writer.
        number: grows from batch to batch.
    """

    writer: str
    number: int

    @classmethod
    def parse(cls, key: str) -> BatchKey:
        """Reads a key, `WRITER-NUMBER`.

        >>> BatchKey.parse("rooms-2026-1001"), BatchKey.parse("rooms")
        (BatchKey(writer='rooms-2026', number=1001), BatchKey(writer='rooms', number=0))
        """
        writer, _, number = key.rpartition("-")
        if writer and number.isascii() and number.isdigit() and len(number) < 19:
            return cls(writer, int(number))
        return cls(key, 0)


class TopicWriter:
    """Writes to a topic.

    Args:
        client: asks about the topic.
        repeatable: whether another process may send batches again that this one sent.
        create: whether to create the topic if it does not exist.

    Raises:
        UsageError: the option `partition` is neither a number nor `key`.
    """

    def __init__(self, client: TopicClient, *, repeatable: bool, create: bool) -> None:
        self._client, self._create = client, create
        self._repeatable = repeatable or TRANSACTION in client.own
        partition = client.own.get(PARTITION, "0")
        if partition != _BY_KEY and not partition.isdecimal():
            raise UsageError(
                f"the option {PARTITION} is {partition!r}", hint=f"give a number, or {_BY_KEY}"
            )
        self._partition = _ANY if partition == _BY_KEY else int(partition)
        self._limit = 0
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None  # of the group with the numbers of batches
        self._name: str | None = None
        self._failed: KafkaError | None = None
        self._in_transaction = False
        self._stored = (-1, "")

    async def send(self, records: Sequence[Record], key: str) -> None:
        """See `RecordTransport.send`.

        Raises:
            LimitExceeded: a record is larger than the topic takes; none of the batch is sent.
            SourceError: also if another process writes with the same key.
        """
        await self._prepare()
        self._check_sizes(records)
        deadline = time.monotonic() + self._client.patience
        while True:
            try:
                if self._repeatable:
                    await self._send_once(records, key, deadline)
                else:
                    await self._take_producer(None, deadline)
                    await self._produce(records, deadline)
                return
            except KafkaException as error:
                failed = error.args[0]
            await self._leave()
            if not self._repeatable:  # some of the records may be there
                raise self._client.failure(self._client.refused or failed)
            await self._client.survive(failed, deadline)

    async def _send_once(self, records: Sequence[Record], key: str, deadline: float) -> None:
        """Sends a batch in a transaction, unless it is there."""
        batch, digest = BatchKey.parse(key), f"{key} {_digest(records)}"
        name = self._client.own.get(TRANSACTION) or f"construct-messages-{batch.writer}"
        await self._take_producer(name, deadline)
        if not self._is_there(batch, digest):
            await self._transact(records, batch, digest, deadline)
            self._stored = (batch.number, digest)

    async def _prepare(self) -> None:
        if self._limit:
            return
        if self._create:
            await self._client.create()
        topic = await self._client.describe()
        if self._partition not in (_ANY, *topic.partitions):
            raise UsageError(
                f"{self._client.url} has no partition {self._partition}",
                hint=f"its partitions are 0 to {len(topic.partitions) - 1}",
            )
        self._limit = await self._client.message_bytes() or _DEFAULT_BYTES

    def _created(self, name: str | None) -> Producer:
        config = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # that of Kafka's own clients
            "message.max.bytes": min(max(self._limit, 1000), _MOST_BYTES),
            "batch.size": min(self._limit, _DEFAULT_BYTES),
            "delivery.report.only.error": True,
            "on_delivery": self._report,
        }
        return self._client.created(
            Producer, config if name is None else {**config, TRANSACTION: name}
        )

    def _report(self, error: KafkaError | None, _: Message) -> None:
        self._failed = self._failed or error

    def _check_sizes(self, records: Sequence[Record]) -> None:
        for number, record in enumerate(records, 1):
            size = len(record.value) + len(record.key.encode()) + _BATCH_OVERHEAD + _RECORD_OVERHEAD
            size += sum(len(each.encode()) + 2 for pair in record.named.items() for each in pair)
            if size > self._limit:
                raise LimitExceeded(
                    f"{self._client.url}: message {number} of {len(records)} takes {size} bytes as a record; the topic "
                    f"takes {self._limit}",
                    hint="raise max.message.bytes of the topic",
                )

    async def _produce(self, records: Sequence[Record], deadline: float) -> None:
        """Sends records, and waits until all are acknowledged."""
        producer = self._producer
        assert producer is not None
        self._failed = None
        left = await self._client.run(self._queue, producer, records)
        while left and self._failed is None:
            if time.monotonic() > deadline or self._client.refused is not None:
                raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
            left = await self._client.run(_flush, producer)
        if self._failed is not None:
            raise KafkaException(self._failed)

    def _queue(self, producer: Producer, records: Sequence[Record]) -> int:
        topic, partition = self._client.topic, self._partition
        headers: list[tuple[str, str | bytes | None]] = []
        named: object = None
        for record in records:
            if named != (now := (record.content_type, record.headers)):
                headers = [(name, value.encode()) for name, value in record.named.items()]
                named = now
            while True:
                try:
                    producer.produce(
                        topic,
                        record.value,
                        record.key.encode() or None,
                        partition,
                        headers=headers,
                    )
                    break
                except BufferError:
                    producer.poll(_STEP_SECONDS)
        return _flush(producer)

    async def _take_producer(self, name: str | None, deadline: float) -> None:
        """Opens a producer, if there is none of this name; with a name, it becomes the only one that has it."""
        if self._producer is not None and self._name == name:
            return
        await self._leave()
        producer = await self._client.run(self._created, name)
        self._producer, self._name = producer, name
        if name is not None:
            group = {GROUP: name, "enable.auto.commit": False}
            self._consumer = await self._client.run(self._client.created, Consumer, group)
            await self._finished(producer.init_transactions, deadline)
            self._stored = await self._last_stored(name)

    async def _last_stored(self, name: str) -> tuple[int, str]:
        """Returns the number and the digest of the last batch that was stored under a name."""
        (found,) = await self._client.committed(name, (0,))
        return found.offset, found.metadata or ""

    def _is_there(self, batch: BatchKey, digest: str) -> bool:
        """Whether a batch was stored before.

        Raises:
            UsageError: another one was, or a later one.
        """
        number, stored = self._stored
        if number < batch.number or number < 0:
            return False
        if number == batch.number and stored == digest:
            return True
        raise UsageError(
            f"{self._client.url}: the batch {batch.writer}-{batch.number} was written before with other messages, or "
            f"one after it was: {batch.writer}-{number}",
            hint="give the messages that were given first, or another key or state file",
        )

    async def _transact(
        self, records: Sequence[Record], batch: BatchKey, digest: str, deadline: float
    ) -> None:
        producer, consumer = self._producer, self._consumer
        assert producer is not None
        assert consumer is not None
        self._in_transaction = True
        await self._client.run(producer.begin_transaction)
        await self._produce(records, deadline)
        offset = Partition(self._client.topic, 0, batch.number, digest)
        group = consumer.consumer_group_metadata()
        await self._finished(
            lambda seconds: producer.send_offsets_to_transaction([offset], group, seconds),
            deadline,
        )
        await self._finished(producer.commit_transaction, deadline)
        self._in_transaction = False

    async def _finished(self, step: Callable[[float], T], deadline: float) -> T:
        """Calls a step of a transaction until it is done: the library allows to call it again."""
        while True:
            try:
                return await self._client.run(step, _STEP_SECONDS)
            except KafkaException as error:
                failed = error.args[0]
                again = failed.retriable() and not failed.txn_requires_abort()
                if not again or time.monotonic() > deadline or self._client.refused is not None:
                    raise

    async def _leave(self) -> None:
        producer, consumer = self._producer, self._consumer
        self._producer = self._consumer = self._name = None
        if producer is not None:
            await self._client.run(_stop, producer, self._in_transaction)
            self._in_transaction = False
        if consumer is not None:
            await self._client.run(consumer.close)

    async def aclose(self) -> None:
        """Ends an open transaction, and closes the connections."""
        await self._leave()


def _flush(producer: Producer) -> int:
    """Waits for acknowledgements; returns how many records have none yet.

    Raises:
        KafkaException: the producer is broken. It is raised between the reports of records, which Python finds wrong.
    """
    try:
        return producer.flush(_STEP_SECONDS)
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


def _stop(producer: Producer, is_open: bool) -> None:
    with suppress(KafkaException):  # the broker ends it, after transaction.timeout.ms at the latest
        producer.purge()
        if is_open:
            producer.abort_transaction(_ABORT_SECONDS)
        _flush(producer)


def _digest(records: Sequence[Record]) -> str:
    digest = blake2b(digest_size=16)
    for record in records:
        digest.update(b"%d:" % len(record.value))
        digest.update(record.value)
    return digest.hexdigest()

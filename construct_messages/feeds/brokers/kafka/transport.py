"""The transport `kafka`: a topic, whose records are one message each; and how they are written.

docs/decisions/079-transports.md
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Partition

from construct_messages.errors import LimitExceeded, SourceTimeout, UsageError
from construct_messages.feeds.brokers.kafka.client import (
    GROUP,
    PARTITION,
    TRANSACTION,
    ConsumerGroup,
    TopicClient,
    passes,
)
from construct_messages.feeds.brokers.kafka.reader import TopicReader
from construct_messages.feeds.brokers.records import RecordTransport
from construct_messages.feeds.state import BatchKey, Checkpoint
from construct_messages.feeds.transport import Record, Settings, Start

# --- writer ---------------------------------------------------------------------------------------
# Writes records to a topic: in order, each once while it runs, and each batch once over restarts.
#
# The producer is idempotent: records that it repeats after a lost answer are stored once. Batches that another
# process repeats are stored once because each batch is a transaction, and what the topic holds determines whether it
# is stored. The transactional id fences an older process that still runs.

# Determines the batches of a writer in a topic, so that a batch that another process sends again is stored once.
#
# Before the transaction of a batch is committed, end offsets of the topic from before the batch are committed for a
# separate group, with the key and a digest of the batch as their metadata. The next process finds them, and reads the
# later records of the topic: the batch is stored completely, because it is sent in a transaction, or not at all. (An
# offset committed within the transaction would show this directly, but the call for it hangs after the restart of a
# broker: librdkafka, issue 5456.) docs/decisions/086-kafka-client.md

_WAIT_SECONDS: Final = 0.2
_DIGITS: Final = 32  # of a digest
_SHARED: Final = 8
"""The number of batches whose offsets are those before the first of them: earlier ones only make more to read."""


class RecordBatch(NamedTuple):
    """A batch of records."""

    key: str
    digest: str
    first: str  # the key of the first record, which is unique in the topic

    @classmethod
    def of(cls, records: Sequence[Record], key: str) -> RecordBatch:
        """Returns the batch for records to send."""
        values = [record.value for record in records]
        sizes = ",".join(map(str, map(len, values)))
        digest = sha256(f"{sizes}:".encode())  # the fastest that is not broken: processors have it
        digest.update(b"".join(values))
        return cls(key, digest.hexdigest()[:_DIGITS], records[0].key)

    @property
    def number(self) -> int:
        """See `BatchKey`."""
        return BatchKey.parse(self.key).number


class WrittenBatches:
    """The batches of one writer, once no other process can write under its name; `group` is the group that has its
    notes.
    """

    def __init__(self, client: TopicClient, group: str, partitions: Sequence[int]) -> None:
        self._client, self._partitions = client, partitions
        self._group = ConsumerGroup(client, group)
        self._last: RecordBatch | None = None
        self._offsets: Mapping[int, int] | None = None  # before `_last`; None: it is there
        self._begun = 0  # batches
        self._ends: Mapping[int, int] = {}  # offsets before the next batch

    async def load(self) -> None:
        """Finds the last batch that an earlier process began."""
        found = await self._group.committed(self._partitions)
        texts = [each.metadata.split("\n") for each in found if each.metadata]
        if texts and len(texts[0]) == 3:
            self._last = RecordBatch(*texts[0])
            self._offsets = {each.partition: max(each.offset, 0) for each in found}

    async def have(self, batch: RecordBatch, deadline: float) -> bool:
        """Returns whether a batch is stored. Raises `UsageError` if another one is, or one with a greater number."""
        last = self._last
        if last is None or last.number < batch.number:
            return False
        if last.number == batch.number and self._offsets is not None:
            if not await self._is_stored(last, self._offsets, deadline):
                return False
            self._offsets = None
        if last == batch:
            return True
        raise UsageError(
            f"{self._client.url}: the batch {batch.key} was written before with other messages, or one after it was: "
            f"{last.key}",
            hint="give the messages that were given first, or another key or state file",
        )

    async def find_offsets(self) -> None:
        """Finds offsets before the next batch; called before its first record is sent."""
        if self._begun % _SHARED == 0:
            bounds = await self._client.bounds(self._partitions)
            self._ends = {number: each.end for number, each in bounds.items()}

    async def begin(self, batch: RecordBatch) -> None:
        """Stores durably that a batch is being sent; done before its transaction is committed."""
        self._begun += 1
        await self._group.commit(self._ends, "\n".join(batch))
        self._last, self._offsets = batch, self._ends

    def finish(self) -> None:
        """Records that the begun batch is stored."""
        self._offsets = None

    async def _is_stored(
        self, batch: RecordBatch, offsets: Mapping[int, int], deadline: float
    ) -> bool:
        """Returns whether the first record of a batch is after offsets."""
        bounds = await self._client.bounds(self._partitions, committed=False)
        ends = {number: each.end for number, each in bounds.items()}
        while True:
            readable = await self._client.bounds(self._partitions)
            if all(readable[number].end >= end for number, end in ends.items()):
                break
            if time.monotonic() > deadline:
                raise SourceTimeout(
                    f"{self._client.url}: a transaction of another producer has not ended, so that it cannot be known "
                    f"whether the batch {batch.key} is stored",
                    hint="try again later",
                    transient=True,
                )
            await asyncio.sleep(_WAIT_SECONDS)
        left = {
            number: max(offset, bounds[number].oldest)
            for number, offset in offsets.items()
            if max(offset, bounds[number].oldest) < ends[number]
        }
        config = {"isolation.level": "read_committed"}
        consumer = await self._client.run(self._client.consumer, config)
        try:
            topic = self._client.topic
            assigned = [Partition(topic, number, offset) for number, offset in left.items()]
            await self._client.run(consumer.assign, assigned)
            while left:
                message = await self._client.run(consumer.poll, _WAIT_SECONDS)
                if message is None:
                    await self._client.describe()  # checks that it can be reached
                    continue
                error, number = message.error(), message.partition()
                if error is None and message.key() == batch.first.encode():
                    return True
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    unused = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED  # the group
                    if not unused and not passes(error):
                        raise self._client.failure(error)
                elif (message.offset() or 0) + (error is None) >= ends[number or 0]:
                    left.pop(number or 0, None)
            return False
        finally:
            await self._client.run(consumer.close)

    async def aclose(self) -> None:
        await self._group.aclose()


# --- writer ---------------------------------------------------------------------------------------

T = TypeVar("T")

Headers: TypeAlias = list[tuple[str, str | bytes | None]]
Prepared: TypeAlias = tuple[Sequence[bytes], Sequence[bytes | None], Sequence[Headers]]
"""The arguments of the library for records: their values, their keys and their headers."""

_BY_KEY: Final = "key"
_ANY: Final = -1  # the partition that the library chooses
_STEP_SECONDS: Final = 0.5  # that the thread is blocked at a time: closing waits for it
_ABORT_SECONDS: Final = 5.0
_DEFAULT_BYTES: Final = 1_000_000  # of the library
_MOST_BYTES: Final = 1_000_000_000  # of the library
# bytes before the records of a batch, and more than the lengths in a record have
_OVERHEAD: Final = 61 + 64


class TopicWriter:
    """Writes to a topic. `repeatable`: another process may send the batches of this one again.

    Raises `UsageError` for an option `partition` that is neither a number nor `key`.
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
        self._name: str | None = None
        self._failed: KafkaError | None = None
        self._in_transaction = False
        self._batches: WrittenBatches | None = None
        self._partitions: Sequence[int] = ()

    async def send(self, records: Sequence[Record], key: str) -> None:
        """Sends records; see `RecordTransport.send`.

        Raises `LimitExceeded` for a record that is too large, before any is sent.
        """
        await self._prepare()
        prepared = self._prepared(records)
        deadline = time.monotonic() + self._client.patience
        while True:
            try:
                if self._repeatable:
                    await self._send_once(prepared, RecordBatch.of(records, key), deadline)
                else:
                    await self._take_producer(None, deadline)
                    await self._produce(prepared, deadline)
                return
            except KafkaException as error:
                failed = error.args[0]
            await self._leave()
            if not self._repeatable:  # some of the records may be stored
                raise self._client.failure(self._client.refused or failed)
            await self._client.survive(failed, deadline)

    async def _send_once(self, records: Prepared, batch: RecordBatch, deadline: float) -> None:
        """Sends a batch in a transaction, unless it is stored."""
        writer = BatchKey.parse(batch.key).writer
        name = self._client.own.get(TRANSACTION) or f"construct-messages-{writer}"
        batches = await self._take_producer(name, deadline)
        assert batches is not None
        if not await batches.have(batch, deadline):
            await batches.find_offsets()
            await self._transact(records, partial(batches.begin, batch), deadline)
            batches.finish()

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
        self._partitions = topic.partitions if self._partition == _ANY else [self._partition]
        self._limit = await self._client.message_bytes() or _DEFAULT_BYTES

    def _created(self, name: str | None) -> Producer:
        config = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # as in Kafka's own clients
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

    @staticmethod
    def _headers(records: Sequence[Record]) -> Sequence[Headers]:
        """Returns the headers of each record in the form of the library; records with the same ones share them."""
        made: dict[tuple[int, str | None], Headers] = {}
        found: list[Headers] = []
        for record in records:
            own = (id(record.headers), record.content_type)
            if (headers := made.get(own)) is None:
                pairs = record.named.items()
                headers = made[own] = [(name, value.encode()) for name, value in pairs]
            found.append(headers)
        return found

    def _prepared(self, records: Sequence[Record]) -> Prepared:
        """Returns records in the form of the library; raises `LimitExceeded` if one is too large."""
        values = [record.value for record in records]
        keys = [record.key.encode() for record in records]
        headers = self._headers(records)
        distinct = {id(each): each for each in headers}.values()  # mostly one for the batch
        if max(map(len, values)) + max(map(len, keys)) > min(map(self._left_beside, distinct)):
            for number, (value, key, own) in enumerate(zip(values, keys, headers, strict=True), 1):
                size, left = len(value) + len(key), self._left_beside(own)
                if size > left:
                    raise LimitExceeded(
                        f"{self._client.url}: message {number} of {len(records)} takes {size + self._limit - left} "
                        f"bytes as a record; the topic takes {self._limit}",
                        hint="raise max.message.bytes of the topic",
                    )
        return values, [key or None for key in keys], headers

    def _left_beside(self, headers: Headers) -> int:
        """Returns the maximal number of bytes of a value and its key."""
        named = sum(len(name.encode()) + len(value or b"") + 4 for name, value in headers)
        return self._limit - _OVERHEAD - named

    async def _produce(self, records: Prepared, deadline: float) -> None:
        """Sends records, and waits until all are acknowledged."""
        producer = self._producer
        assert producer is not None
        self._failed = None
        await self._queue(producer, records, deadline)
        while await self._client.run(_flush, producer) and self._failed is None:
            self._check(deadline)
        if self._failed is not None:
            raise KafkaException(self._failed)

    async def _queue(self, producer: Producer, records: Prepared, deadline: float) -> None:
        """Hands records over to the library, without a thread: nothing blocks, unless its queue is full."""
        topic, partition, produce = self._client.topic, self._partition, producer.produce
        for value, key, headers in zip(*records, strict=True):
            while True:
                try:
                    produce(topic, value, key, partition, headers=headers)
                    break
                except BufferError:
                    self._check(deadline)
                    await self._client.run(producer.poll, _STEP_SECONDS)

    def _check(self, deadline: float) -> None:
        """Raises an error if records cannot be acknowledged, or have not been for too long."""
        if self._has_failed(deadline):
            raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))

    def _has_failed(self, deadline: float) -> bool:
        """Whether the brokers refuse the client, or were unreachable for too long."""
        return time.monotonic() > deadline or self._client.refused is not None

    async def _take_producer(self, name: str | None, deadline: float) -> WrittenBatches | None:
        """Opens a producer, if there is none with this name; with a name, it becomes the only one."""
        if self._producer is None or self._name != name:
            await self._leave()
            producer = await self._client.run(self._created, name)
            self._producer, self._name = producer, name
            await self._client.run(_connect, producer, self._client.topic)
            if name is not None:
                await self._finished(producer.init_transactions, deadline)
                self._batches = WrittenBatches(self._client, name, self._partitions)
                await self._batches.load()
        return self._batches

    async def _transact(
        self, records: Prepared, begin: Callable[[], Awaitable[None]], deadline: float
    ) -> None:
        """Sends records in a transaction.

        `begin` stores that they are sent; it is called while they are, and done before the transaction is committed.
        """
        assert self._producer is not None
        self._in_transaction = True
        self._producer.begin_transaction()
        # both end, also if one of them fails: closing would wait for an answer that `begin` has not awaited
        for failed in await asyncio.gather(
            begin(), self._produce(records, deadline), return_exceptions=True
        ):
            if failed is not None:
                raise failed
        await self._finished(self._producer.commit_transaction, deadline)
        self._in_transaction = False

    async def _finished(self, step: Callable[[float], T], deadline: float) -> T:
        """Repeats a step of a transaction until it is done: the library allows repeated calls."""
        while True:
            try:
                return await self._client.run(step, _STEP_SECONDS)
            except KafkaException as error:
                failed = error.args[0]
                again = failed.retriable() and not failed.txn_requires_abort()
                if not again or self._has_failed(deadline):
                    raise

    async def _leave(self) -> None:
        producer, batches = self._producer, self._batches
        self._producer = self._name = self._batches = None
        if batches is not None:
            await batches.aclose()
        if producer is not None:
            await self._client.run(_stop, producer, self._in_transaction)
            self._in_transaction = False

    async def aclose(self) -> None:
        """Ends an open transaction, and closes the connections."""
        await self._leave()


def _connect(producer: Producer, topic: str) -> None:
    """Connects a producer to a broker.

    The library requests the number of an idempotent producer after 500 ms, or when a broker answers while another one
    is connected: the first answer may be too early.
    """
    with suppress(KafkaException):  # it connects later
        for _ in range(2):
            producer.list_topics(topic, _STEP_SECONDS)


def _flush(producer: Producer) -> int:
    """Waits for acknowledgements; returns the number of unacknowledged records."""
    try:
        return producer.flush(_STEP_SECONDS)
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        producer.abort_transaction(0)  # raises the error of the failed producer
        raise


def _stop(producer: Producer, is_open: bool) -> None:
    with suppress(KafkaException):  # the broker ends it, after transaction.timeout.ms at the latest
        producer.purge()
        if is_open:
            producer.abort_transaction(_ABORT_SECONDS)
        _flush(producer)


# --- transport ------------------------------------------------------------------------------------


class KafkaTransport(RecordTransport):
    """A topic of Kafka: `kafka://HOST:PORT/TOPIC`, or several hosts with commas between them.

    Options are `partition`, `group.id`, `transactional.id`, and the properties of librdkafka.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        super().__init__(url, settings)
        self._client = TopicClient(url, settings)
        self._reader = TopicReader(self._client, settings.poll_seconds)
        self._writer = TopicWriter(
            self._client, repeatable=settings.repeatable, create=settings.create
        )

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`; `place` has the next offset of each partition."""
        return self._reader.position

    def advance_past(self, record: Record) -> None:
        self._reader.advance_past(record)

    @property
    def acknowledges(self) -> bool:
        """See `Transport.acknowledges`: for the group of `group.id`."""
        return GROUP in self._client.own

    @property
    def behind(self) -> int | None:
        """See `Transport.behind`: of all partitions, by the last answers of the brokers."""
        return self._reader.behind

    def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:
        return self._reader.records(start, follow=follow)

    async def acknowledge(self, position: Checkpoint) -> None:
        """Commits the offsets for the group of `group.id`, if it is set; see `Transport.acknowledge`."""
        await self._reader.commit(position)

    async def send(self, records: Sequence[Record], key: str) -> None:
        await self._writer.send(records, key)

    async def aclose(self) -> None:
        await self._reader.aclose()
        await self._writer.aclose()
        await self._client.aclose()

"""Determines the batches of a writer in a topic, so that a batch that another process sends again is stored once.

Before the transaction of a batch is committed, end offsets of the topic from before the batch are committed for a
separate group, with the key and a digest of the batch as their metadata. The next process finds them, and reads the
later records of the topic: the batch is stored completely, because it is sent in a transaction, or not at all. (An
offset committed within the transaction would show this directly, but the call for it hangs after the restart of a
broker: librdkafka, issue 5456.)
docs/decisions/086-kafka-client.md
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Partition

from construct_messages.feeds.kafka.client import GROUP, TopicClient
from construct_messages.feeds.kafka.failures import passes
from construct_messages.feeds.kafka.groups import ConsumerGroup
from construct_messages.feeds.record import Record
from construct_messages.feeds.state import BatchKey
from construct_messages.rdf.errors import SourceTimeout, UsageError

_WAIT_SECONDS: Final = 0.2
_DIGITS: Final = 32  # of a digest
_SHARED: Final = 8
"""The number of batches whose offsets are those before the first of them: earlier ones only make more to read."""


class RecordBatch(NamedTuple):
    """A batch of records.

    Args:
        key: the key of the batch.
        digest: the digest of the records.
        first: the key of the first record, which is unique in the topic.
    """

    key: str
    digest: str
    first: str

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
    """The batches of one writer, once no other process can write under its name.

    Args:
        client: requests data about the topic.
        group: the name of the group.
        partitions: the partitions to write to.
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
        """Returns whether a batch is stored.

        Raises:
            UsageError: another one is stored under its key, or one with a greater number.
            SourceError: the topic cannot be read.
        """
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
        """Finds offsets before the next batch; called before its first record is sent.

        Raises:
            SourceError: the cluster rejects the request, or cannot be reached.
        """
        if self._begun % _SHARED == 0:
            bounds = await self._client.bounds(self._partitions)
            self._ends = {number: each.end for number, each in bounds.items()}

    async def begin(self, batch: RecordBatch) -> None:
        """Stores durably that a batch is being sent; done before its transaction is committed.

        Raises:
            SourceError: the user may not use the group, or the cluster cannot be reached.
        """
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
        config = {
            GROUP: "construct-messages",  # the library needs one; it is not used
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
        }
        consumer: Consumer = await self._client.run(self._client.created, Consumer, config)
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
        """Closes the connections."""
        await self._group.aclose()

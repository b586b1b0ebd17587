"""The offsets that a group committed, without being a member of it.

Uses a consumer instead of the library's administration client, which ends the process when a broker is restarted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition

from construct_messages.feeds.brokers.kafka.client import GROUP, TopicClient, passes

_SHORTEST_SECONDS: Final = 0.001
_LONGER: Final = 1.2  # each wait for an answer than the one before
_STEP_SECONDS: Final = 0.2
_ATTEMPT_SECONDS: Final = 1.0


class ConsumerGroup:
    """The offsets of the group of this name; see above."""

    def __init__(self, client: TopicClient, name: str) -> None:
        self._client, self._name = client, name
        self._consumer: Consumer | None = None
        self._answers: list[KafkaError | None] = []

    async def committed(self, partitions: Iterable[int]) -> list[Partition]:
        """Returns the committed offsets of the group; missing ones are less than 0."""
        consumer = await self._opened()
        asked = [Partition(self._client.topic, number) for number in partitions]
        deadline = time.monotonic() + self._client.patience
        while True:
            try:
                found = await self._client.run(consumer.committed, asked, _ATTEMPT_SECONDS)
            except KafkaException as error:
                failed: KafkaError = error.args[0]
            else:
                errors = [each.error for each in found if each.error is not None]
                if not errors:
                    return list(found)
                failed = errors[0]
            await self._client.survive(await self._refusal() or failed, deadline)

    async def commit(self, offsets: Mapping[int, int], metadata: str = "") -> None:
        """Commits the next offset of each partition, with the same metadata."""
        consumer = await self._opened()
        given = [
            Partition(self._client.topic, number, offset, metadata)
            for number, offset in offsets.items()
        ]
        deadline = time.monotonic() + self._client.patience
        while True:
            self._answers.clear()
            consumer.commit(offsets=given, asynchronous=True)
            seconds = _SHORTEST_SECONDS
            while not self._answers:
                # not in the thread, where a poll that calls `_note` continues to wait
                await asyncio.sleep(seconds)
                seconds = min(_LONGER * seconds, _STEP_SECONDS)
                refusal = await self._refusal()
                if refusal is not None or time.monotonic() > deadline:
                    raise self._client.failure(refusal or KafkaError(KafkaError._TIMED_OUT))
            if (failed := self._answers[0]) is None:
                return
            await self._client.survive(failed, deadline)

    def _note(self, error: KafkaError | None, partitions: list[Partition]) -> None:
        """Records the result of a commit; called by the library."""
        errors = [error, *(each.error for each in partitions)]
        self._answers.append(next((each for each in errors if each is not None), None))

    async def _refusal(self) -> KafkaError | None:
        """Lets the library call `_note`, and returns a failure that does not end a call."""
        message = (await self._opened()).poll(0)  # which does not block
        error = None if message is None else message.error()
        return None if error is None or passes(error) else error

    async def _opened(self) -> Consumer:
        if self._consumer is None:
            config = {GROUP: self._name, "enable.auto.commit": False, "on_commit": self._note}
            self._consumer = await self._client.run(self._client.created, Consumer, config)
        return self._consumer

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._consumer is not None:
            await self._client.run(self._consumer.close)
            self._consumer = None

"""The transport `kafka`: a topic, whose records are one message each. docs/decisions/079-transports.md"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from construct_messages.feeds.brokers.kafka.client import GROUP, TopicClient
from construct_messages.feeds.brokers.kafka.reader import TopicReader
from construct_messages.feeds.brokers.kafka.writer import TopicWriter
from construct_messages.feeds.brokers.records import RecordTransport
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Record, Settings, Start


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

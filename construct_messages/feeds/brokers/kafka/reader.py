"""Reads the records of all partitions of a topic, from offsets on, and commits offsets of a group.

The position is the next offset of each partition. Offsets have gaps where a topic is compacted or transactions end, so
only the broker can detect that a record was removed: it then rejects the offset, and no record is skipped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from itertools import count, groupby, repeat
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Partition

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.brokers.kafka.client import (
    GROUP,
    ConsumerGroup,
    OffsetBounds,
    Topic,
    TopicClient,
    passes,
)
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import (
    TYPE_HEADERS,
    Record,
    Start,
    content_type_in,
    make_records,
)
from construct_messages.streams.element import microseconds_of

_PLACE: Final = "offsets"
_GONE: Final = 410
_WAIT_SECONDS: Final = 0.2
_AT_ONCE: Final = 250  # more than caches hold takes longer
_END_MILLISECONDS: Final = 10
_NO_OFFSET: Final = 0  # offsets with another meaning are smaller
_HEADERS: Final = 64  # the number of cached sets of headers
_TYPES: Final = frozenset(name.lower() for name in TYPE_HEADERS)

_RawHeaders = tuple[Any, ...]
_Headers = tuple[str | None, Mapping[str, str]]


class TopicReader:
    """Reads a topic, once; searches for new partitions every `poll_seconds`."""

    def __init__(self, client: TopicClient, poll_seconds: float) -> None:
        self._client, self._poll_seconds = client, poll_seconds
        self._group = ConsumerGroup(client, client.own[GROUP]) if GROUP in client.own else None
        self._consumer: Consumer | None = None
        self._identity: str | None = None
        self._next: dict[int, int] = {}  # the position after the yielded records
        self._passed: dict[int, int] = {}  # the offsets of `position`
        self._before: Mapping[int, int] | None = None  # before the records that were yielded last
        self._count = self._passed_count = 0
        self._headers: dict[_RawHeaders, _Headers] = {}

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`: the next offset of each partition, as `partition:offset`."""
        if self._identity is None:
            return None
        offsets = tuple(f"{number}:{offset}" for number, offset in sorted(self._passed.items()))
        return Checkpoint(self._passed_count, {_PLACE: offsets}, self._identity)

    def advance_past(self, record: Record) -> None:
        if self._before is not None:
            self._passed.update(self._before)  # also beyond offsets without records
            self._before = None
        assert record.partition is not None
        self._passed[record.partition] = record.offset + 1
        self._passed_count = record.sequence

    @property
    def behind(self) -> int | None:
        """See `Transport.behind`: the offsets after the position, some of which may not have records."""
        consumer = self._consumer
        if consumer is None:
            return None
        ends = {
            partition.partition: consumer.get_watermark_offsets(partition, cached=True)[1]
            for partition in self._partitions(self._passed)
        }
        return sum(max(ends[number] - offset, 0) for number, offset in self._passed.items())

    async def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:
        """Yields the records; see `RecordTransport.records`. Records without a value (tombstones) are skipped."""
        topic = await self._client.describe()
        self._consumer = await self._client.run(self._created, follow=follow)
        bounds = await self._client.bounds(topic.partitions)
        oldest = {number: each.oldest for number, each in bounds.items()}
        ends = {number: each.end for number, each in bounds.items()}
        found = await self._begin(start, topic, oldest, ends)
        for number, offset in found.items():
            if not oldest[number] <= offset <= ends[number]:
                raise self._removed(number, offset, bounds[number])
        self._next, self._passed = dict(found), dict(found)
        self._identity, self._passed_count = topic.identity, self._count
        await self._assign(found)
        yield ()
        before: Mapping[int, int] = found
        async for messages in self._messages(self._next, None if follow else ends):
            if records := self._records_of(messages):
                self._before, before = before, dict(self._next)
                yield records

    def _created(self, *, follow: bool) -> Consumer:
        # a broker reports the end after this time, where the last record is that of a transaction
        return self._client.consumer({} if follow else {"fetch.wait.max.ms": _END_MILLISECONDS})

    async def _begin(
        self, start: Start, topic: Topic, oldest: Mapping[int, int], ends: Mapping[int, int]
    ) -> Mapping[int, int]:
        """Returns the offsets to start at."""
        if start.checkpoint is not None:
            return self._continued(start.checkpoint, topic, oldest)
        if start.after:
            raise UsageError(
                f"Kafka does not number the messages of a topic: after={start.after}",
                hint="give a checkpoint, last, since, or after=0 for all",
            )
        if start.since is not None:
            milliseconds = -(-microseconds_of(start.since) // 1000)
            found = await self._client.offsets_at(topic.partitions, max(milliseconds, 0))
            return {
                number: ends[number] if offset < _NO_OFFSET else offset
                for number, offset in found.items()
            }
        if start.last:
            return await self._last(start.last, oldest, ends)
        if start.after is None and (committed := await self._committed(topic)):
            return {**oldest, **committed}
        return oldest if start.last is None else ends

    def _continued(
        self, checkpoint: Checkpoint, topic: Topic, oldest: Mapping[int, int]
    ) -> Mapping[int, int]:
        found = _offsets_in(checkpoint)
        if checkpoint.identity != topic.identity or found.keys() - oldest.keys():
            raise SourceError(
                f"{self._client.url} is another topic than the checkpoint is of",
                status=_GONE,
                hint="it was deleted and created again: begin again, without the state",
            )
        self._count = checkpoint.sequence
        return {**oldest, **found}  # other partitions are new

    async def _committed(self, topic: Topic) -> Mapping[int, int]:
        """Returns the offsets that the group committed; empty if it has none, or there is no group."""
        if self._group is None:
            return {}
        found = await self._group.committed(topic.partitions)
        return {each.partition: each.offset for each in found if each.offset >= _NO_OFFSET}

    async def _last(
        self, count: int, oldest: Mapping[int, int], ends: Mapping[int, int]
    ) -> Mapping[int, int]:
        """Returns the offsets with this number of newest messages after them, by the times of the records."""
        window, behind = count, dict(ends)
        found: list[tuple[int, int, int]] = []
        while behind:
            starts = {number: max(oldest[number], ends[number] - window) for number in behind}
            await self._assign(starts)
            found = [each for each in found if each[0] not in behind]
            async for messages in self._messages(dict(starts), behind):
                found += [
                    (message.partition() or 0, message.timestamp()[1], message.offset() or 0)
                    for message in messages
                    if message.value() is not None
                ]
            sizes = {number: sum(each[0] == number for each in found) for number in behind}
            behind = {
                number: ends[number]
                for number in behind
                if sizes[number] < count and starts[number] > oldest[number]
            }
            window *= 4
        chosen = dict(ends)
        by_partition = {
            number: [each[1:] for each in group]
            for number, group in groupby(sorted(found), key=lambda each: each[0])
        }
        for each in by_partition.values():
            each.sort(key=lambda pair: pair[1])
        for _ in range(count):
            if not (left := {number: each for number, each in by_partition.items() if each}):
                break
            newest = max(left, key=lambda number: left[number][-1])
            chosen[newest] = by_partition[newest].pop()[1]
        return chosen

    async def _messages(
        self, following: dict[int, int], ends: Mapping[int, int] | None
    ) -> AsyncGenerator[list[Message]]:
        """Yields the messages of the assigned partitions, all received ones together.

        Updates `following`, the next offset of each partition. Without `ends`, reading does not end, and includes new
        partitions.
        """
        consumer = self._consumer
        assert consumer is not None
        asked = time.monotonic()
        while ends is None or any(following[number] < end for number, end in ends.items()):
            # received messages are taken here, because a call in a thread takes longer
            messages = consumer.consume(_AT_ONCE, 0)
            await asyncio.sleep(0)  # other tasks run as well
            if not messages:
                messages = await self._client.run(_poll, consumer)
            if _follow(messages, following, ends):
                found, others = messages, []
            else:
                found, others = [], messages
            for message in others:
                number, offset = message.partition(), message.offset()
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    if found:  # messages before the error
                        yield found
                        found = []
                    await self._check(error, message, following)
                    continue
                assert number is not None
                assert offset is not None
                if ends is not None and offset >= ends[number]:
                    following[number] = ends[number]  # newer records are not requested
                elif error is None:
                    following[number] = offset + 1
                    found.append(message)
                else:  # past records that end transactions
                    following[number] = max(following[number], offset)
            if found:
                yield found
            if time.monotonic() > asked + self._poll_seconds and (ends is None or not messages):
                await self._look_again(following, is_growing=ends is None)
                asked = time.monotonic()

    async def _look_again(self, following: dict[int, int], *, is_growing: bool) -> None:
        """Checks that the cluster can be reached, and reads new partitions."""
        topic = await self._client.describe()
        if self._identity is not None and topic.identity != self._identity:
            raise SourceError(
                f"{self._client.url} was deleted and created again",
                status=_GONE,
                hint="begin again, without the state",
            )
        new = dict.fromkeys(sorted(set(topic.partitions) - following.keys()), 0)
        if new and is_growing:
            following |= new
            consumer = self._consumer
            assert consumer is not None
            await self._client.run(consumer.incremental_assign, self._partitions(new))

    async def _check(
        self, error: KafkaError, message: Message, following: Mapping[int, int]
    ) -> None:
        """Raises an error that the library returned instead of a record, unless the library continues after it."""
        code, number = error.code(), message.partition()
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION):
            assert number is not None
            bounds = await self._client.bounds([number])
            raise self._removed(number, following[number], bounds[number])
        if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return  # the library searches the coordinator of an unused group
        if passes(error):
            return  # the library retries, and `_look_again` stops this
        raise self._client.failure(error)

    def _removed(self, number: int, offset: int, bounds: OffsetBounds) -> SourceError:
        return SourceError(
            f"{self._client.url}: offset {offset} of partition {number} is not there: it has {bounds.oldest} to "
            f"{bounds.end}",
            status=_GONE,
            hint="the records were removed before they were read; begin again, without the state",
        )

    def _records_of(self, messages: Sequence[Message]) -> list[Record]:
        """Returns the records of messages, by column: a Python call for each message would take longer than the
        library.
        """
        values = list(map(Message.value, messages))
        if None in values:
            messages = [message for message in messages if message.value() is not None]
            values = list(map(Message.value, messages))
        first, self._count = self._count + 1, self._count + len(values)
        times = map(Message.timestamp, messages)
        types, others = zip(*self._headers_of(messages), strict=True) if messages else ((), ())
        rows = zip(
            values,
            types,
            _texts(list(map(Message.key, messages))),
            count(first),
            [milliseconds * 1000 if kind else None for kind, milliseconds in times],
            others,
            map(Message.partition, messages),
            map(Message.offset, messages),
            strict=False,
        )
        return list(make_records(rows))

    def _headers_of(self, messages: Sequence[Message]) -> Iterable[_Headers]:
        """Returns the headers of each message; nearly always, they are equal."""
        raws = list(map(Message.headers, messages))
        if raws.count(raws[0]) == len(raws):
            return repeat(self._headers_in(tuple(raws[0] or ())), len(raws))
        return [self._headers_in(tuple(raw or ())) for raw in raws]

    def _headers_in(self, raw: _RawHeaders) -> _Headers:
        headers = self._headers.get(raw)
        if headers is None:
            if len(self._headers) >= _HEADERS:
                self._headers.clear()
            headers = self._headers[raw] = _read_headers(raw)
        return headers

    async def commit(self, position: Checkpoint) -> None:
        """Commits the offsets of a position for the group; see `Transport.acknowledge`."""
        if self._group is not None:
            await self._group.commit(_offsets_in(position))

    def _partitions(self, offsets: Mapping[int, int]) -> list[Partition]:
        topic = self._client.topic
        return [Partition(topic, number, offset) for number, offset in offsets.items()]

    async def _assign(self, offsets: Mapping[int, int]) -> None:
        assert self._consumer is not None
        await self._client.run(self._consumer.assign, self._partitions(offsets))

    async def aclose(self) -> None:
        if self._group is not None:
            await self._group.aclose()
        if self._consumer is not None:
            await self._client.run(self._consumer.close)
            self._consumer = None


def _poll(consumer: Consumer) -> list[Message]:
    """Waits for one message, and takes those that arrived with it: the library would wait for the requested number."""
    first = consumer.poll(_WAIT_SECONDS)
    return [] if first is None else [first, *consumer.consume(_AT_ONCE, 0)]


def _follow(
    messages: Sequence[Message], following: dict[int, int], ends: Mapping[int, int] | None
) -> bool:
    """Moves `following` past messages where all of them are records before their ends; they are looked at together."""
    if any(map(Message.error, messages)):
        return False
    newest = dict(zip(map(Message.partition, messages), map(Message.offset, messages), strict=True))
    after = {number or 0: (offset or 0) + 1 for number, offset in newest.items()}
    if ends is not None and any(offset > ends[number] for number, offset in after.items()):
        return False
    following.update(after)
    return True


def _offsets_in(checkpoint: Checkpoint) -> dict[int, int]:
    """Returns the next offset of each partition in a checkpoint."""
    checkpoint.check(_PLACE)
    try:
        pairs = (each.split(":") for each in checkpoint.place[_PLACE])
        return {int(number): int(offset) for number, offset in pairs}
    except (KeyError, ValueError) as error:
        raise UsageError(
            "the checkpoint is of another transport", hint="continue via the same one"
        ) from error


def _read_headers(raw: _RawHeaders) -> _Headers:
    """Returns the media type in headers, and the other headers; the last one of repeated headers."""
    texts = {name: _text(value) for name, value in raw}
    others = {name: text for name, text in texts.items() if name.lower() not in _TYPES}
    return content_type_in(texts), others


def _texts(data: Sequence[bytes | None]) -> Sequence[str]:
    try:
        return [each.decode() for each in data]  # type: ignore[union-attr] # None: see below
    except (AttributeError, UnicodeDecodeError):
        return list(map(_text, data))


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "backslashreplace")

"""Reads and writes the streams of NATS JetStream: an element is a message of the stream, with its sequence and time.

RDF Messages, section 3 (brokers); https://docs.nats.io/nats-concepts/jetstream. docs/decisions/079-transports.md
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from functools import partial
from typing import Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import NotFoundError

from construct_messages.feeds.connections import attempts_of, over_connections
from construct_messages.feeds.nats.connection import OPTIONS, NatsConnection, connected
from construct_messages.feeds.nats.publishing import KEY, Publisher, publisher
from construct_messages.feeds.nats.pulling import pulled
from construct_messages.feeds.record import TYPE_HEADERS, Record, content_type_in
from construct_messages.feeds.records.transport import RecordTransport
from construct_messages.feeds.sequences import check_next
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Settings, Start, option_values
from construct_messages.rdf.errors import SourceError, UsageError, shown
from construct_messages.streams.element import microseconds_of

_GONE: Final = 410
_STREAM: Final = re.compile(r"[^\s.*>/\\]+")
_SUBJECT: Final = re.compile(r"[^\s.]+(\.[^\s.]+)*")
_KNOWN: Final = {name.lower() for name in (*TYPE_HEADERS, KEY, "Nats-Expected-Stream")}
_INACTIVE_SECONDS: Final = 300.0
"""The seconds after which the server removes a consumer without requests."""

T = TypeVar("T")


class NatsTransport(RecordTransport):
    """Reads and writes a stream; see `Transport`.

    Args:
        url: `nats://host/stream`, or `tls:`; with `?subject=`, only the messages of this subject, which may have
            wildcards, are read, and messages are written to it.
        settings: see `Settings`; options: those of `connection.OPTIONS`.

    Raises:
        UsageError: another URL.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        super().__init__(url, settings)
        self._options = option_values(settings, OPTIONS)
        self._stream, self._subject = _named(url)
        self._reached: Checkpoint | None = None  # the position after the yielded records
        self._passed = 0  # the sequence of `position`
        self._end = 0
        self._writer: Publisher | None = None
        self._behind: int | None = None
        self._left = 0  # yielded records that were not passed by
        self._writing = AsyncExitStack()  # its connection

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`: the sequence is that of the stream."""
        reached = self._reached
        return None if reached is None else Checkpoint(self._passed, identity=reached.identity)

    def pass_by(self, record: Record) -> None:
        """Advances the position; see `RecordTransport.pass_by`."""
        self._passed = record.sequence
        self._left -= 1

    @property
    def behind(self) -> int | None:
        """See `Transport.behind`: the number that the server sent with the last message."""
        return None if self._behind is None else self._behind + self._left

    async def aclose(self) -> None:
        """Closes the connections; see `Transport.aclose`."""
        await self._writing.aclose()

    # --- reading ---

    async def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:
        """Yields the records; see `RecordTransport.records`.

        Raises:
            UsageError: `last` messages of some subjects of a stream.
            SourceError: also if the stream does not exist, or was replaced (410).
        """
        if start.checkpoint is not None:
            start.checkpoint.check()
        if start.last and self._subject is not None:
            raise UsageError(
                f"last={start.last} of one subject is not known",
                hint="begin with since= or after=, or read the whole stream",
            )
        async for attempt in attempts_of(self.settings):
            with attempt:
                async with self._connected() as connection:
                    self._reached = await self._begin(connection, start)
                    if not follow:
                        self._end = await self._last(connection)
        self._passed = self._at
        yield ()
        if not follow and self._end <= self._at:
            return
        connecting = partial(self._connection, follow=follow)
        async with aclosing(over_connections(connecting, self.settings)) as records:
            async for some in records:
                yield some

    @property
    def _known(self) -> Checkpoint:
        assert self._reached is not None  # it was found at the beginning
        return self._reached

    @property
    def _at(self) -> int:
        return self._known.sequence

    def _connected(self) -> AbstractAsyncContextManager[NatsConnection]:
        return connected(self.url, self._options, self.settings)

    async def _begin(self, connection: NatsConnection, start: Start) -> Checkpoint:
        """Returns the position before the first requested element."""
        info = await self._info(connection)
        first, last = info.state.first_seq or 1, info.state.last_seq
        if start.checkpoint is not None:
            after = start.checkpoint.sequence
        elif start.after is not None:
            after = start.after
        elif start.last is not None:
            after = max(first - 1, last - start.last)
        elif start.since is not None:
            consumer = await self._consumer(
                connection, api.DeliverPolicy.BY_START_TIME, opt_start_time=start.since
            )
            after = consumer.delivered.stream_seq if consumer.delivered else 0
        else:
            after = first - 1
        known = "" if start.checkpoint is None else start.checkpoint.identity
        position = Checkpoint(after, identity=known or _identity(info))
        self._check(position, info, after + 1)
        return position

    async def _last(self, connection: NatsConnection) -> int:
        """Returns the sequence of the newest requested message."""
        if self._subject is None:
            return (await self._info(connection)).state.last_seq
        try:
            newest = await connection.run(
                connection.streams.get_last_msg(self._stream, self._subject)
            )
        except NotFoundError:
            return 0
        return newest.seq or 0

    async def _connection(self, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:
        """Yields the records of one connection, after those that were yielded before."""
        async with self._connected() as connection:
            self._check(self._known, await self._info(connection), self._at + 1)
            consumer = await self._consumer(
                connection, api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._at + 1
            )
            self._behind = consumer.num_pending
            if not follow and not consumer.num_pending:
                return
            count, pending = 0, 0
            batches = pulled(connection, self._stream, consumer.name, self.settings.idle_seconds)
            async with aclosing(batches):
                async for messages in batches:
                    records: list[Record] = []
                    for message in messages:
                        metadata = message.metadata
                        sequence, count = metadata.sequence.stream, count + 1
                        last = records[-1].sequence if records else self._at
                        is_missing = sequence > last + 1 and self._subject is None
                        is_lost = metadata.sequence.consumer != count
                        if records and (is_missing or is_lost):  # records before the error
                            yield self._reach(records, pending)
                            records = []
                        if is_lost:
                            raise SourceError(
                                f"{self.url}: messages were lost on their way after {last}",
                                transient=True,
                            )
                        if is_missing:
                            self._check(self._known, await self._info(connection), sequence)
                        pending = metadata.num_pending
                        records.append(
                            _record(message, sequence, microseconds_of(metadata.timestamp))
                        )
                        if not follow and (sequence >= self._end or not pending):
                            yield self._reach(records, pending)
                            return
                    yield self._reach(records, pending)

    def _reach(self, records: Sequence[Record], pending: int) -> Sequence[Record]:
        """Updates the position after yielding records that others follow."""
        self._reached = Checkpoint(records[-1].sequence, identity=self._known.identity)
        self._behind, self._left = pending, len(records)
        return records

    def _check(self, position: Checkpoint, info: api.StreamInfo, next: int) -> None:
        """Checks that a stream is the one that was read before, and has the messages after a position.

        Messages that were deleted individually do not count as missing; messages that retention removed do.

        Args:
            position: the position.
            info: the current description of the stream by the server.
            next: the sequence of the next message, if it is known.
        """
        if position.identity and position.identity != _identity(info):
            raise SourceError(
                f"{self.url} is another stream than the one that was read before",
                status=_GONE,
                hint="it was deleted and created again: begin again, without the state",
            )
        first, last, at = info.state.first_seq or 1, info.state.last_seq, position.sequence
        if last < at:
            raise SourceError(
                f"{self.url} ends with element {last}, and {at} was read before",
                status=_GONE,
                hint="the server has lost elements, or another backup was restored: begin again, without the state",
            )
        if self._subject is None and first > at + 1:
            check_next(self.url, at, max(first, next))

    async def _consumer(
        self, connection: NatsConnection, policy: api.DeliverPolicy, **start: object
    ) -> api.ConsumerInfo:
        config = api.ConsumerConfig(
            deliver_policy=policy,
            ack_policy=api.AckPolicy.NONE,
            filter_subject=self._subject,
            inactive_threshold=_INACTIVE_SECONDS,
            **start,  # type: ignore[arg-type] # the start of the policy
        )
        return await self._asked(
            connection, connection.streams.add_consumer(self._stream, config=config)
        )

    async def _info(self, connection: NatsConnection) -> api.StreamInfo:
        info = await self._asked(connection, connection.streams.stream_info(self._stream))
        if info.config.retention not in (None, api.RetentionPolicy.LIMITS):
            raise SourceError(
                f"{self.url} removes messages when they are acknowledged, and cannot be read again after a failure",
                hint="read a stream whose retention is by limits, such as one that has this stream as its source",
            )
        return info

    async def _asked(self, connection: NatsConnection, asking: Awaitable[T]) -> T:
        try:
            return await connection.run(asking)
        except NotFoundError as error:
            raise connection.no_stream(self._stream) from error

    # --- writing ---

    async def send(self, records: Sequence[Record], key: str) -> None:  # noqa: ARG002 - each record has its own
        """Sends records, each stored once (`publishing.py`); see `RecordTransport.send`.

        Raises:
            LimitExceeded: a message is larger than the server or the stream accepts; none was sent.
        """
        async for attempt in attempts_of(self.settings):
            with attempt:
                publisher = await self._publisher()
                try:
                    await publisher.publish(records)
                except BaseException:
                    self._writer = None  # replies to sent messages may still arrive
                    raise

    async def _publisher(self) -> Publisher:
        if self._writer is None:
            await self._writing.aclose()
            connection = await self._writing.enter_async_context(self._connected())
            self._writer = await publisher(
                connection,
                self.url,
                self._stream,
                self._subject,
                create=self.settings.create,
            )
        return self._writer


def _record(message: Msg, sequence: int, microseconds: int) -> Record:
    headers = message.headers or {}
    return Record(
        message.data,
        content_type_in(headers),
        headers.get(KEY, ""),
        sequence,
        microseconds,
        {name: value for name, value in headers.items() if name.lower() not in _KNOWN},
    )


def _identity(info: api.StreamInfo) -> str:
    return "" if info.created is None else info.created.isoformat()


def _named(url: str) -> tuple[str, str | None]:
    """Returns the stream and the subject of a URL.

    >>> _named("nats://localhost/rooms"), _named("nats://localhost/rooms?subject=rooms.*")
    (('rooms', None), ('rooms', 'rooms.*'))
    """
    parts = urlsplit(url)
    stream = unquote(parts.path.removeprefix("/"))
    query = parse_qs(parts.query, keep_blank_values=True)
    subject = query.pop("subject", [None])[-1]
    if not parts.hostname or query or not _STREAM.fullmatch(stream):
        raise UsageError(
            f"{shown(url)} is no URL of a stream",
            hint="write it like nats://localhost/STREAM or nats://localhost/STREAM?subject=SUBJECT",
        )
    if subject is not None and not _SUBJECT.fullmatch(subject):
        raise UsageError(f"{shown(subject)!r} is no subject", hint="write it like rooms.kitchen")
    return stream, subject

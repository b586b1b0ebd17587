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

import msgspec
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import NotFoundError

from construct_messages.errors import LimitExceeded, SourceError, UsageError, shown
from construct_messages.feeds.brokers.nats.connection import (
    IN_FLIGHT,
    OPTIONS,
    Inbox,
    NatsConnection,
    connected,
)
from construct_messages.feeds.brokers.records import RecordTransport
from construct_messages.feeds.connections import attempts_of, over_connections
from construct_messages.feeds.state import Checkpoint, check_next, same_stream
from construct_messages.feeds.transport import (
    TYPE_HEADERS,
    Record,
    Settings,
    Start,
    content_type_in,
    option_values,
)
from construct_messages.rdf.wire import Header
from construct_messages.sparql.client.responses import HEADER_NAME
from construct_messages.streams.element import microseconds_of

# --- pulling --------------------------------------------------------------------------------------
# Pulls the messages of a consumer of a stream in batches, one of which is always in flight.
#
# https://docs.nats.io/nats-concepts/jetstream/consumers: requests for messages, and the statuses that answer them.

_BYTES: Final = 32 << 20  # the maximal size of a batch
_NANOSECONDS: Final = 1_000_000_000
_HEARTBEATS: Final = 4  # while the server may be silent
_HEARTBEAT, _EXPIRED = "100", "408"


async def pulled(
    connection: NatsConnection, stream: str, consumer: str, idle_seconds: float
) -> AsyncGenerator[list[Msg]]:
    """Yields the messages of a consumer endlessly: all received ones together, at least one.

    Raises a temporary `SourceError` when the consumer or the connection has ended.
    """
    client, inbox = connection.client, await connection.inbox()
    request = msgspec.json.encode(
        {
            "batch": IN_FLIGHT,
            "max_bytes": max(_BYTES, 2 * client.max_payload),
            "expires": int(idle_seconds * _NANOSECONDS),
            "idle_heartbeat": int(idle_seconds / _HEARTBEATS * _NANOSECONDS),
        }
    )
    wanted = 0
    while True:
        if wanted <= IN_FLIGHT // 2:
            wanted += IN_FLIGHT
            with connection.errors():
                await client.publish(
                    f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request, reply=inbox.subject
                )
        message: Msg | None = await inbox.next()
        messages: list[Msg] = []
        while message is not None and message.subject != inbox.subject:
            messages.append(message)
            message = inbox.waiting()
        if messages:
            wanted -= len(messages)
            yield messages
        if message is None:
            continue
        headers = message.headers or {}
        status = headers.get("Status")
        if status == _EXPIRED:  # the header has the number of missing messages
            wanted -= int(headers.get("Nats-Pending-Messages", wanted))
        elif status != _HEARTBEAT:
            raise SourceError(
                f"the consumer of {stream} has ended: {shown(headers.get('Description', status or ''))}",
                transient=True,
            )


# --- publishing -----------------------------------------------------------------------------------
# Sends records to a stream of NATS JetStream, many at a time, each stored once.
#
# Within the stream's duplicate window, the server does not store a message whose `Nats-Msg-Id` it has seen. Later,
# the newest message of the subject shows the stored part, as long as there is no other writer.
# https://docs.nats.io/nats-concepts/jetstream/streams

KEY: Final = "Nats-Msg-Id"
"""The header of a message that distinguishes it from others of the stream."""

_WILDCARDS: Final = ("*", ">")
_NO_RESPONDERS: Final = "503"

# error codes of JetStream
_OTHER_STREAM: Final = 10060
_PASSING: Final = (10008, 10009)  # temporarily unavailable, not enough servers

_END: Final = b"\r\n"


class _Error(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Reply(msgspec.Struct):
    """The server's answer to a message; without an error, it was stored, possibly before."""

    error: _Error | None = None


class Publisher:
    """Sends records over one connection, of at most `most` bytes with their headers."""

    def __init__(
        self,
        connection: NatsConnection,
        url: str,
        stream: str,
        subject: str,
        most: int,
        inbox: Inbox,
    ) -> None:
        self._connection, self._url = connection, url
        self._stream, self._subject, self._most = stream, subject, most
        self._inbox = inbox
        self._is_first = True

    async def publish(self, records: Sequence[Record]) -> None:
        """Sends records until each is acknowledged. After an error, the publisher must not be used again.

        Raises `LimitExceeded` for a record that is too large, before any is sent.
        """
        named: object = None
        common = b""
        headers = []
        for number, record in enumerate(records, 1):
            if named != (now := (record.content_type, record.headers)):
                common, named = self._headers(record), now
            own = common + _line(KEY, record.key) + _END if record.key else common + _END
            if (size := len(own) + len(record.value)) > self._most:
                raise self._too_large(number, record, size)
            headers.append(own)
        done = await self._known(records) if self._is_first else 0
        self._is_first = False
        await self._send(records[done:], headers[done:])

    def _too_large(self, number: int, record: Record, size: int) -> LimitExceeded:
        return LimitExceeded(
            f"message {number} of {record.key.rpartition('-')[0]} has {size} bytes with its headers, and "
            f"{self._url} takes {self._most}",
            hint="raise max_payload of the server, and the stream's maximal message size; or send smaller messages",
        )

    async def _known(self, records: Sequence[Record]) -> int:
        """Returns the number of records of a batch in the stream, if there are no later ones."""
        streams = self._connection.streams
        try:
            last = await self._connection.run(streams.get_last_msg(self._stream, self._subject))
        except NotFoundError:
            return 0
        key = (last.headers or {}).get(KEY)
        return next((n for n, record in enumerate(records, 1) if record.key == key), 0)

    async def _send(self, records: Sequence[Record], headers: Sequence[bytes]) -> None:
        """Sends records, with up to `IN_FLIGHT` unacknowledged ones.

        The library's own `publish_async` does not report rejected messages to the sender.
        """
        inbox = self._inbox
        sent = acknowledged = 0
        while acknowledged < len(records):
            most = min(acknowledged + IN_FLIGHT, len(records))
            values = [record.value for record in records[sent:most]]
            await self._connection.publish(
                self._subject, inbox.subject, zip(headers[sent:most], values, strict=True)
            )
            sent = most
            answer: Msg | None = await inbox.next()
            while answer is not None:
                self._check_reply(answer)
                acknowledged += 1
                answer = inbox.waiting()

    def _headers(self, record: Record) -> bytes:
        """Returns the headers of a record, except its key and the end."""
        headers = dict(record.headers)
        headers.pop(KEY, None)
        if record.content_type is not None:
            # as NATS writes the one, and RDF Messages the other
            headers["Content-Type"] = headers[Header.CONTENT_TYPE.value] = record.content_type
        headers["Nats-Expected-Stream"] = self._stream
        for name in headers:
            if not HEADER_NAME.fullmatch(name):
                raise SourceError(
                    f"{self._url} takes no header with the name {shown(name)!r}",
                    hint="names have ASCII letters, digits, and characters such as -",
                )
        return b"".join([b"NATS/1.0\r\n", *(_line(*pair) for pair in headers.items())])

    def _check_reply(self, reply: Msg) -> None:
        """Checks that a reply acknowledges a message."""
        if (reply.headers or {}).get("Status") == _NO_RESPONDERS:
            raise SourceError(
                f"no stream takes messages of the subject {self._subject}",
                hint=f"name a subject of the stream {self._stream} in the URL: ?subject=",
            )
        error = msgspec.json.decode(reply.data, type=_Reply).error
        if error is None:
            return
        if error.err_code == _OTHER_STREAM:
            raise SourceError(
                f"the subject {self._subject} is of another stream than {self._stream}",
                hint="name the other stream in the URL, or another subject: ?subject=",
            )
        raise SourceError(
            f"{self._url} refuses a message: {shown(error.description)}",
            hint="see the limits of the stream: nats stream info",
            transient=error.err_code in _PASSING,
        )


def _line(name: str, value: str) -> bytes:
    """Returns a header. A line break would end it: the library, too, writes a space instead."""
    text = value.strip().replace("\r", " ").replace("\n", " ")
    return f"{name}: {text}\r\n".encode()


async def publisher(
    connection: NatsConnection,
    url: str,
    stream: str,
    subject: str | None,
    *,
    create: bool,
) -> Publisher:
    """Returns the publisher of records to a stream.

    Without a subject, they have the only one of the stream, or its name if it is created (in files).
    """
    streams = connection.streams
    try:
        info = await connection.run(streams.stream_info(stream))
    except NotFoundError as error:
        if not create:
            raise connection.no_stream(stream) from error
        config = api.StreamConfig(
            name=stream, subjects=[subject or stream], storage=api.StorageType.FILE
        )
        info = await connection.run(streams.add_stream(config))
    subjects = info.config.subjects or []
    if not subjects:
        raise SourceError(
            f"the stream {stream} takes no messages, because it is a copy of others",
            hint="write to those",
        )
    if subject is None:
        subject, *others = subjects
        if others or any(each in subject for each in _WILDCARDS):
            raise SourceError(
                f"the stream {stream} has messages of several subjects: {shown(', '.join(subjects))}",
                hint="name one of them, without wildcards, in the URL: ?subject=",
            )
    most = connection.client.max_payload
    if (limit := info.config.max_msg_size or -1) > 0:
        most = min(most, limit)
    return Publisher(connection, url, stream, subject, most, await connection.inbox())


# --- transport ------------------------------------------------------------------------------------

_GONE: Final = 410
_STREAM: Final = re.compile(r"[^\s.*>/\\]+")
_SUBJECT: Final = re.compile(r"[^\s.]+(\.[^\s.]+)*")
_KNOWN: Final = {name.lower() for name in (*TYPE_HEADERS, KEY, "Nats-Expected-Stream")}
_INACTIVE_SECONDS: Final = 300.0
"""The seconds after which the server removes a consumer without requests."""

T = TypeVar("T")


class NatsTransport(RecordTransport):
    """A stream: `nats://host/stream`, or `tls:`. With `?subject=`, only its messages are read, and messages are written
    to it.

    A subject for reading may have wildcards. Options are `OPTIONS`.
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

    def advance_past(self, record: Record) -> None:
        self._passed = record.sequence
        self._left -= 1

    @property
    def behind(self) -> int | None:
        """See `Transport.behind`: the number that the server sent with the last message."""
        return None if self._behind is None else self._behind + self._left

    async def aclose(self) -> None:
        await self._writing.aclose()

    # --- reading ---

    async def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:
        """Yields the records; see `RecordTransport.records`.

        Raises `UsageError` for the `last` messages of a subject, and `SourceError` (410) for a replaced stream.
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
        """Checks that a stream is the one that was read before, and has the messages between a position and `next`.

        Messages that were deleted individually do not count as missing; messages that retention removed do.
        """
        same_stream(self.url, position.identity, _identity(info))
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
        """Sends records, each stored once; see `RecordTransport.send`. Raises `LimitExceeded` before any is sent."""
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

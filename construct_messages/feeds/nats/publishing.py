"""Sends records to a stream of NATS JetStream, many at a time, each stored once.

Within the stream's duplicate window, the server does not store a message whose `Nats-Msg-Id` it has seen. Later, the
newest message of the subject shows the stored part, as long as there is no other writer.
https://docs.nats.io/nats-concepts/jetstream/streams
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import NotFoundError

from construct_messages.feeds.nats.connection import IN_FLIGHT, Inbox, NatsConnection
from construct_messages.feeds.record import Record
from construct_messages.rdf.errors import LimitExceeded, SourceError, shown
from construct_messages.rdf.wire import Header
from construct_messages.sparql.client.headers import HEADER_NAME

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
    """Sends records over one connection.

    Args:
        connection: the connection to the server.
        url: the URL of the stream, for errors.
        stream: the name of the stream.
        subject: the subject of the messages.
        most: the maximal size of a message with its headers, in bytes.
        inbox: the inbox for replies of the server.
    """

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

        Raises:
            LimitExceeded: a record is too large; none was sent.
            SourceError: the server rejects a record, or the connection has ended.
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
        """Returns the headers of a record, except its key and the end.

        Raises:
            SourceError: a name that NATS does not allow.
        """
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

    Args:
        connection: the connection to the server.
        url: the URL of the stream, for errors.
        stream: the name of the stream.
        subject: the subject of the messages; None: the only one of the stream, or its name if it is created.
        create: whether to create the stream if it does not exist, in files.

    Raises:
        SourceError: the stream does not exist, or the subject of messages is unknown.
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

"""The parts of gRPC over HTTP/2 that client and server share: messages, statuses, and connection settings.

grpclib implements HTTP/2: docs/decisions/087-grpc.md. Each side implements its calls. RFC 9113.
"""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from grpclib.config import Configuration
from grpclib.const import Status
from grpclib.protocol import AbstractHandler, H2Protocol
from h2.config import H2Configuration
from h2.events import (
    AlternativeServiceAvailable,
    InformationalResponseReceived,
    UnknownFrameReceived,
)
from h2.settings import SettingCodes

from construct_messages.errors import ConstructMessagesError, LimitExceeded, SourceError

# --- framing --------------------------------------------------------------------------------------
# Messages of gRPC in the data of an HTTP/2 stream: each has a prefix of five bytes, and may be compressed with gzip.
#
# gRPC over HTTP/2 (Length-Prefixed-Message, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) and gRPC
# Compression. No library of gRPC is imported here.

IDENTITY, GZIP = "identity", "gzip"
CODINGS: Final = f"{IDENTITY},{GZIP}"  # the value of `grpc-accept-encoding`

FRAME_BYTES: Final = 4 << 20
"""The default limit of the size of a message in clients and servers of gRPC."""

PIECE_BYTES: Final = 1 << 16
"""The number of bytes of messages that are sent at once, in one frame of HTTP/2 if the other side allows this size."""

_PREFIX: Final = struct.Struct(">BI")
_LEVEL: Final = 1  # fast, because repeated terms are already in lookup tables
_SMALL: Final = 128  # bytes that gzip would make longer


def framed(message: bytes, coding: str = IDENTITY) -> bytes:
    """Returns a message with its prefix.

    >>> framed(b"abc")
    b'\\x00\\x00\\x00\\x00\\x03abc'
    >>> framed(bytes(1000), GZIP)[:1]
    b'\\x01'
    """
    if coding == GZIP and len(message) > _SMALL:
        packed = gzip.compress(message, _LEVEL, mtime=0)
        return _PREFIX.pack(1, len(packed)) + packed
    return _PREFIX.pack(0, len(message)) + message


class ReceiveBuffer:
    """The received and unread bytes of one stream; it replaces grpclib's buffer, whose reads need a known length.

    `acknowledge` is called with the number of bytes read, so that the other side may send more.
    """

    def __init__(self, acknowledge: Callable[[int], None]) -> None:
        self._acknowledge = acknowledge
        self._chunks: list[bytes] = []
        self._unread = 0
        self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    def add(self, data: bytes, ack_size: int) -> None:
        """Adds received bytes, which count as `ack_size` in flow control."""
        self._unread += ack_size
        if data:  # padding alone is not the end
            self._chunks.append(data)
            self._changed.set()

    def eof(self) -> None:
        self._ended = True
        self._changed.set()

    def fail(self, error: Exception) -> None:
        """Marks the failure of the stream or the connection."""
        self._error = error
        self._changed.set()

    def unacked_size(self) -> int:
        """Returns the number of unread bytes, at the end of the stream."""
        size, self._unread = self._unread, 0
        return size

    async def take(self) -> bytes:
        """Returns all unread bytes; waits if there are none. At the end, returns none, or raises the exception of
        `fail`.
        """
        while not self._chunks and not self._ended:
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        data = b"".join(self._chunks)
        self._chunks.clear()
        if (size := self.unacked_size()) and self._error is None:
            self._acknowledge(size)
        return data


class MessageReader:
    """Reads the messages of one direction of a call, of at most `most` bytes each. `take` returns none at the end.

    While there are unread messages in `ready`, flow control holds back others.
    """

    def __init__(
        self, take: Callable[[], Awaitable[bytes]], coding: str, most: int, by: str
    ) -> None:
        self._take, self._coding, self._most, self._by = take, coding, most, by
        self._held: list[bytes] = []  # the beginning of a message
        self._size = 0  # of the message
        self._error: ConstructMessagesError | None = None
        self.ready: deque[bytes] = deque()

    async def read(self) -> bytes | None:
        """Returns the next message, or None at the end. Nothing is lost if it is cancelled.

        Raises `SourceError` and `LimitExceeded`: the stream is cut, its coding unknown, or the message too large.
        """
        while not self.ready:
            if self._error is not None:
                raise self._error
            data = await self._take()
            if not data:
                if self._size:
                    raise SourceError(
                        f"{self._by} ends within a message", status=400, transient=True
                    )
                return None
            self._held.append(data)
            self._size += len(data)
            if self._size >= self._wanted:
                self._parse(b"".join(self._held))
        return self.ready.popleft()

    _wanted = _PREFIX.size  # the minimal number of bytes of the next message, with its prefix

    def _parse(self, data: bytes) -> None:
        place, end = 0, len(data)
        try:
            while True:
                start = place + _PREFIX.size
                if start > end:
                    self._wanted = _PREFIX.size
                    break
                compressed, size = _PREFIX.unpack_from(data, place)
                if size > self._most:
                    raise self._too_large(f"a message of {size} bytes")
                if start + size > end:
                    self._wanted = _PREFIX.size + size
                    break
                place = start + size
                message = data[start:place]
                self.ready.append(self._unpacked(message) if compressed else message)
        except ConstructMessagesError as error:
            self._error = error  # raised after the previous messages
        rest = data[place:]
        self._held, self._size = [rest] if rest else [], len(rest)

    def _unpacked(self, data: bytes) -> bytes:
        if self._coding != GZIP:
            raise SourceError(
                f"{self._by} sends a message that is compressed with {self._coding!r:.40}",
                status=501,
                hint=f"compress with {GZIP}, or not at all",
            )
        packed = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            message = packed.decompress(data, self._most + 1)
        except zlib.error as error:
            raise SourceError(
                f"{self._by} sends a message that is not gzip: {error}", status=400
            ) from None
        if len(message) > self._most:
            raise self._too_large("a compressed message that is larger")
        if not packed.eof:
            raise SourceError(f"{self._by} sends truncated gzip", status=400)
        return message

    def _too_large(self, what: str) -> LimitExceeded:
        return LimitExceeded(
            f"{self._by} sends {what}, where {self._most} bytes are allowed",
            hint="send smaller messages, or raise the limit",
        )


# --- status ---------------------------------------------------------------------------------------
# Statuses of gRPC, and the equivalent statuses of HTTP: errors have the same status in each protocol.
#
# https://grpc.github.io/grpc/core/md_doc_statuscodes.html


_OF_HTTP: Final[Mapping[int, Status]] = {
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.NOT_FOUND,
    408: Status.DEADLINE_EXCEEDED,
    409: Status.ALREADY_EXISTS,
    410: Status.OUT_OF_RANGE,
    413: Status.RESOURCE_EXHAUSTED,
    429: Status.RESOURCE_EXHAUSTED,
    501: Status.UNIMPLEMENTED,
    502: Status.UNAVAILABLE,
    503: Status.UNAVAILABLE,
    504: Status.DEADLINE_EXCEEDED,
    507: Status.RESOURCE_EXHAUSTED,
}
_TO_HTTP: Final[Mapping[Status, int]] = {
    Status.CANCELLED: 503,
    Status.INVALID_ARGUMENT: 400,
    Status.DEADLINE_EXCEEDED: 504,
    Status.NOT_FOUND: 404,
    Status.ALREADY_EXISTS: 409,
    Status.PERMISSION_DENIED: 403,
    Status.RESOURCE_EXHAUSTED: 413,
    Status.FAILED_PRECONDITION: 400,
    Status.ABORTED: 503,
    Status.OUT_OF_RANGE: 410,
    Status.UNIMPLEMENTED: 501,
    Status.UNAVAILABLE: 503,
    Status.UNAUTHENTICATED: 401,
}


def status_of(http_status: int) -> Status:
    """Returns the status of a call for an error with this status of HTTP.

    >>> status_of(404).name, status_of(422).name, status_of(500).name
    ('NOT_FOUND', 'INVALID_ARGUMENT', 'INTERNAL')
    """
    known = _OF_HTTP.get(http_status)
    if known is not None:
        return known
    return Status.INVALID_ARGUMENT if 400 <= http_status < 500 else Status.INTERNAL


def http_status_of(status: Status) -> int:
    """Returns the status of HTTP for the status of a failed call.

    >>> http_status_of(Status.OUT_OF_RANGE), http_status_of(Status.DATA_LOSS)
    (410, 500)
    """
    return _TO_HTTP.get(status, 500)


PASSING: Final = frozenset(
    (
        Status.CANCELLED,
        Status.DEADLINE_EXCEEDED,
        Status.ABORTED,
        Status.INTERNAL,
        Status.UNAVAILABLE,
    )
)
"""Statuses of temporary failures. CANCELLED is one, because this package does not cancel the calls that it retries."""


# --- connection -----------------------------------------------------------------------------------

# a receiver ignores frames of unknown types (section 4.1)
_IGNORED: Final = (
    AlternativeServiceAvailable,
    InformationalResponseReceived,
    UnknownFrameReceived,
)


def configuration(ping_seconds: float, silent_seconds: float, **windows: int) -> Configuration:
    """Returns the settings of a connection; `__for_client__` or `__for_server__` completes them.

    Pings are sent without calls, too; the connection is closed if one is not answered within `silent_seconds`.
    `windows` are the maximal numbers of bytes in transit, by grpclib's names.
    """
    given: dict[str, Any] = dict(windows)
    return Configuration(
        _keepalive_time=ping_seconds,
        _keepalive_timeout=silent_seconds,
        _keepalive_permit_without_calls=True,
        _http2_max_pings_without_data=0,
        _http2_min_sent_ping_interval_without_data=ping_seconds / 2,
        **given,
    )


class GrpcProtocol(H2Protocol):
    """A connection of HTTP/2, whose other side may send frames of `frame_bytes`.

    A frame can only be read after it has arrived completely.
    """

    def __init__(
        self, calls: AbstractHandler, kept: Configuration, http: H2Configuration, frame_bytes: int
    ) -> None:
        super().__init__(calls, kept, http)
        self._frame_bytes = frame_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # each frame of HTTP/2 takes as long as several messages; grpclib has no option for their size
        http = self.connection._connection
        http.update_settings({SettingCodes.MAX_FRAME_SIZE: self._frame_bytes})
        # at once: h2 applies it only to later reads
        http.max_inbound_frame_size = self._frame_bytes
        self.connection.flush()
        for event in _IGNORED:
            self.processor.processors[event] = lambda _: None

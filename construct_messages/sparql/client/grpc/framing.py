"""Messages of gRPC in the data of an HTTP/2 stream: each has a prefix of five bytes, and may be compressed with gzip.

gRPC over HTTP/2 (Length-Prefixed-Message, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) and gRPC
Compression. No library of gRPC is imported here.
"""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from construct_messages.rdf.errors import ConstructMessagesError, LimitExceeded, SourceError

IDENTITY, GZIP = "identity", "gzip"
CODINGS: Final = f"{IDENTITY},{GZIP}"
"""The value of `grpc-accept-encoding`."""

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

    Args:
        acknowledge: called with the number of bytes read, so that the other side may send more.
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
        """Marks the end of the stream."""
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
        """Returns all unread bytes; waits if there are none. Returns none at the end.

        Raises:
            Exception: the exception of `fail`, after all earlier bytes.
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
    """Reads the messages of one direction of a call.

    Args:
        take: returns received bytes; none at the end of the stream.
        coding: the coding of compressed messages, by `grpc-encoding`.
        most: the maximal number of bytes of a message.
        by: the sender, for errors.

    Attributes:
        ready: received and unread messages. While there are any, flow control holds back others.
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
        """Returns the next message; None: there are no more. Nothing is lost if it is cancelled.

        Raises:
            SourceError: the stream ends within a message, or its coding is unknown.
            LimitExceeded: the message is too large, before or after decompression.
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

    _wanted = _PREFIX.size
    """The minimal number of bytes of the next message, with its prefix."""

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

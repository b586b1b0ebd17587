"""Messages of gRPC in the data of an HTTP/2 stream: each after a prefix of five bytes, plain or compressed with gzip.

gRPC over HTTP/2 (Length-Prefixed-Message, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) and gRPC
Compression. Knows no library of gRPC: what reads bytes is passed in.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Final

from construct_messages.errors import LimitExceeded, SourceError

IDENTITY, GZIP = "identity", "gzip"
CODINGS: Final = f"{IDENTITY},{GZIP}"
"""The value of `grpc-accept-encoding`."""

FRAME_BYTES: Final = 4 << 20
"""The size of a message that clients and servers of gRPC take, unless they are told otherwise."""

_PREFIX: Final = struct.Struct(">BI")
_LEVEL: Final = 1  # fast: repeated terms are in lookup tables already
_SMALL: Final = 128  # bytes that gzip would make longer


def framed(message: bytes, coding: str = IDENTITY) -> bytes:
    """Returns a message after its prefix.

    >>> framed(b"abc")
    b'\\x00\\x00\\x00\\x00\\x03abc'
    >>> framed(bytes(1000), GZIP)[:1]
    b'\\x01'
    """
    if coding == GZIP and len(message) > _SMALL:
        packed = gzip.compress(message, _LEVEL, mtime=0)
        return _PREFIX.pack(1, len(packed)) + packed
    return _PREFIX.pack(0, len(message)) + message


class MessageReader:
    """Reads the messages of one direction of a call.

    Args:
        receive: returns the next bytes, exactly as many as it is asked for; none at the end of the stream.
        coding: of compressed messages, as `grpc-encoding` names it.
        most: how many bytes a message may have.
        by: who sends them, for errors.
    """

    def __init__(
        self, receive: Callable[[int], Awaitable[bytes]], coding: str, most: int, by: str
    ) -> None:
        self._receive, self._coding, self._most, self._by = receive, coding, most, by

    async def read(self) -> bytes | None:
        """Returns the next message; None: there are no more.

        Raises:
            SourceError: the stream ends within a message, or its coding is unknown.
            LimitExceeded: the message is too large, also after it is unpacked.
        """
        prefix = await self._receive(_PREFIX.size)
        if not prefix:
            return None
        compressed, size = _PREFIX.unpack(prefix)
        if size > self._most:
            raise self._too_large(f"a message of {size} bytes")
        data = await self._receive(size) if size else b""
        if not compressed:
            return data
        if self._coding != GZIP:
            raise SourceError(
                f"{self._by} sends a message that is compressed with {self._coding!r:.40}",
                status=501,
                hint=f"compress with {GZIP}, or not at all",
            )
        return self._unpacked(data)

    def _unpacked(self, data: bytes) -> bytes:
        packed = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            message = packed.decompress(data, self._most + 1)
        except zlib.error as error:
            raise SourceError(
                f"{self._by} sends a message that is no gzip: {error}", status=400
            ) from None
        if len(message) > self._most:
            raise self._too_large("a compressed message that is larger")
        if not packed.eof:
            raise SourceError(f"{self._by} sends gzip that is not whole", status=400)
        return message

    def _too_large(self, what: str) -> LimitExceeded:
        return LimitExceeded(
            f"{self._by} sends {what}, where {self._most} bytes are allowed",
            hint="send smaller messages, or raise the limit",
        )

"""Frames on a stream: values of MessagePack, each with its length in four bytes as a prefix. No I/O here."""

from __future__ import annotations

import struct
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

RECEIVED: Final = 1 << 18  # the number of bytes to receive at once

_LENGTH: Final = struct.Struct(">I")
_MOST: Final = 1 << 30  # bytes; a greater length is invalid


def frame(value: object) -> bytes:
    """Returns the frame of a value that msgspec can encode."""
    data = msgspec.msgpack.encode(value)
    return _LENGTH.pack(len(data)) + data


class Frames(Generic[T]):
    """Reads frames of one type of values, from bytes as they arrive.

    >>> frames = Frames(int)
    >>> frames.feed(frame(7) + frame(8)[:-1])
    >>> frames.take(), frames.take()
    (7, None)
    """

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kind)
        self._received = bytearray()

    def feed(self, data: bytes) -> None:
        """Adds bytes."""
        self._received += data

    def take(self) -> T | None:
        """Returns the next value, or None if more bytes are needed; raises `ValueError` for bytes that are no such
        frame.
        """
        if len(self._received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if length > _MOST:
            raise ValueError(f"a frame of {length} bytes")
        end = _LENGTH.size + length
        if len(self._received) < end:
            return None
        data = bytes(self._received[_LENGTH.size : end])
        del self._received[:end]
        try:
            return self._decoder.decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error

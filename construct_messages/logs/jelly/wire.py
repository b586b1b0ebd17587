"""Reads and writes the part of the Protocol Buffers wire format that Jelly needs: varints and fields.

https://protobuf.dev/programming-guides/encoding/. Independent of the meaning of fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

DEEPEST: Final = 97
"""The maximal nesting of quoted triples: libraries of Protocol Buffers read 100 nested messages, here a row, a
statement, the quoted triples, and an IRI or a literal in the innermost.
"""

VARINT: Final = 0
LENGTH_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}  # bytes by wire type


class Malformed(Exception):
    """Raised for bytes that are not such a message; the decoder converts it to a `LogError` with the position."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def varint(number: int) -> bytes:
    """Encodes a number that is not negative, with seven bits per byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def delimited(data: bytes) -> bytes:
    """Encodes bytes after their length.

    >>> delimited(b"abc")
    b'\\x03abc'
    """
    return varint(len(data)) + data


def read_varint(data: bytes | bytearray, start: int) -> tuple[int, int]:
    """Returns the number that begins at `start`, and its end.

    >>> read_varint(bytes.fromhex("ac02"), 0)
    (300, 2)
    """
    if start < len(data) and data[start] < 0x80:
        return data[start], start + 1
    number = shift = 0
    for byte in data[start : start + 10]:
        start += 1
        if byte < 0x80:
            number |= byte << shift
            if number >> 64:
                break
            return number, start
        number |= (byte & 0x7F) << shift
        shift += 7
    raise Malformed("a varint of more than 64 bits" if shift >= 63 else "the end within a varint")


def read_field(data: bytes, start: int) -> tuple[int, int | bytes, int]:
    """Returns the field that begins at `start`: its number, its value (an integer of a varint, else bytes), and its
    end.
    """
    tag, place = read_varint(data, start)
    number, kind = tag >> 3, tag & 7
    if not 0 < number < 1 << 29:
        raise Malformed(f"a field with the number {number}")
    if kind == VARINT:
        value, place = read_varint(data, place)
        return number, value, place
    if kind == LENGTH_DELIMITED:
        length, place = read_varint(data, place)
    elif kind in _FIXED:
        length = _FIXED[kind]
    else:
        raise Malformed(f"field {number} of wire type {kind}")
    end = place + length
    if end > len(data):
        raise Malformed(f"field {number} of {length} bytes, where {len(data) - place} are left")
    return number, data[place:end], end


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the fields of a message in order, as numbers and values.

    >>> list(fields(bytes.fromhex("08ac02 1a0161")))
    [(1, 300), (3, b'a')]
    """
    place = 0
    while place < len(data):
        number, value, place = read_field(data, place)
        yield number, value


def text(data: int | bytes, what: str) -> str:
    """Returns the text of a field."""
    if isinstance(data, int):
        raise Malformed(f"{what} is a number, where text is due")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Malformed(
            f"{what} is not UTF-8: byte {error.start} is 0x{data[error.start]:02X}"
        ) from None


def integer(data: int | bytes, what: str) -> int:
    """Returns the number of a field."""
    if not isinstance(data, int):
        raise Malformed(f"{what} is bytes, where a number is due")
    return data

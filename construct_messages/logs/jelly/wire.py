"""Reads and writes the part of the Protocol Buffers wire format that Jelly needs: varints and fields.

https://protobuf.dev/programming-guides/encoding/. Independent of the meaning of fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from construct_messages.errors import UnsupportedByFormat

# --- tables ---------------------------------------------------------------------------------------
# Lookup tables of a producer (ids by strings) and of a consumer (strings by ids).
#
# Jelly 1.1, "Prefix, name, and datatype lookups". The specification lets the producer choose the entry that a new one
# replaces. Here it is the oldest one: this needs no bookkeeping when an entry is used, and ids are nearly always
# consecutive, so that they need not be written. No terms here.

JOINED: Final = (
    "if streams were joined end to end, read them one by one, as construct-messages cat does"
)
"""The fix for a stream within a stream."""


class Table:
    """A table of a producer. `tag`: the tag of the row that enters a string.

    >>> table = Table("prefixes", 0x52, 1)
    >>> table.enter("a", "b".__eq__)
    (1, None, b'\\n\\x07R\\x05\\x08\\x01\\x12\\x01a')
    >>> table.enter("b", "b".__eq__), table.ids
    ((1, 'a', b'\\n\\x07R\\x05\\x08\\x01\\x12\\x01b'), {'b': 1})
    """

    def __init__(self, name: str, tag: int, size: int) -> None:
        # size: the maximal number of entries
        self._name, self._tag, self.size = name, tag, size
        # the ids of the current strings, from 1
        self.ids: dict[str, int] = {}
        # the strings, in the order of their ids
        self.strings: list[str] = []
        # the id of the last entry
        self.last = 0

    def enter(self, string: str, is_kept: Callable[[str], bool]) -> tuple[int, str | None, bytes]:
        """Enters a string; returns its id, the string that it replaces, and the row of the entry. `is_kept`: whether
        the current statement needs a string itself; called if the table is full.
        """
        old, last, strings = None, self.last, self.strings
        if len(strings) < self.size:
            strings.append(string)
            number = len(strings)
        else:
            index = last % self.size
            if is_kept(strings[index]):
                index = self._free(is_kept)
            old = strings[index]
            del self.ids[old]
            strings[index] = string
            number = index + 1
        self.ids[string] = self.last = number
        data = string.encode()
        # without an id, it is the one after the last; the first id is written, so that logs can be concatenated
        entry = b"" if number == last + 1 > 1 else b"\x08" + varint(number)
        if data:
            entry += b"\x12" + delimited(data)
        return number, old, b"\x0a" + delimited(bytes((self._tag,)) + delimited(entry))

    def follow(self, count: int) -> None:
        """Records strings that were entered in order, each replacing the oldest one."""
        if count:
            self.last = (self.last + count - 1) % self.size + 1

    def _free(self, is_kept: Callable[[str], bool]) -> int:
        for step in range(self.size):
            index = (self.last + step) % self.size
            if not is_kept(self.strings[index]):
                return index
        raise UnsupportedByFormat(
            f"one statement needs more {self._name} than the {self.size} that the stream's options allow",
            hint="choose a larger table",
        )


class Entries:
    """A table of a consumer.

    >>> entries = Entries("names", 8)
    >>> entries.enter(b"\x12\x01a"), entries.enter(b"\x12\x01b"), entries.get(2)
    (1, 2, 'b')
    """

    def __init__(self, name: str, size: int) -> None:
        # size: the maximal number of entries
        self._name, self.size = name, size
        # the strings by their ids, from 1
        self.strings: dict[int, str] = {}
        # the id of the last entry; -1: the next entry must have one
        self.last = 0

    def enter(self, entry: bytes) -> int:
        """Processes an RdfNameEntry, RdfPrefixEntry or RdfDatatypeEntry, and returns its id."""
        number, string = 0, ""
        for field, value in fields(entry):
            if field == 1:
                number = integer(value, "the id of an entry")
            elif field == 2:
                string = text(value, f"an entry of {self._name}")
        number = number or self.last + 1
        if not number:
            raise Malformed(
                f"the first entry of {self._name} after repeated options has no id: it is the next one in a "
                "stream that goes on, and 1 in a stream that was joined to another",
                hint=JOINED,
            )
        if number > self.size:
            raise Malformed(f"entry {number} in a table of {self.size} {self._name}")
        self.strings[number] = string
        self.last = number
        return number

    def demand_id(self) -> None:
        """Requires an id in the next entry: without one, it could be the first id as well as the one after the last."""
        self.last = -1

    def get(self, number: int) -> str:
        try:
            return self.strings[number]
        except KeyError:
            raise Malformed(f"{number} is not in the table of {self._name}") from None


# --- wire -----------------------------------------------------------------------------------------

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

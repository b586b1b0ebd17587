"""Lookup tables: as a producer keeps them (ids by strings), and as a consumer does (strings by ids).

Jelly 1.1, "Prefix, name, and datatype lookups", which leaves it to the producer what makes room for a new entry. Here
it is the oldest one: that needs no bookkeeping when an entry is used, and ids nearly always follow each other, so that
they need not be written. Which terms use the entries is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs.jelly.wire import Malformed, delimited, fields, integer, text, varint

JOINED: Final = (
    "if streams were joined end to end, read them one by one, as construct-messages cat does"
)
"""What to do about a stream within a stream."""


class Table:
    """A table as a producer keeps it.

    Args:
        name: what the table holds, for errors.
        tag: of the row that enters a string.
        size: how many entries there may be.

    Attributes:
        size: how many entries there may be.
        ids: the ids of the strings that are entered now, from 1.
        strings: in the order of their ids.
        last: the id entered last.
        entered: how many strings were entered so far.

    >>> table = Table("prefixes", 0x52, 1)
    >>> table.enter("a", "b".__eq__)
    (1, None, b'\\n\\x07R\\x05\\x08\\x01\\x12\\x01a')
    >>> table.enter("b", "b".__eq__), table.ids
    ((1, 'a', b'\\n\\x07R\\x05\\x08\\x01\\x12\\x01b'), {'b': 1})
    """

    def __init__(self, name: str, tag: int, size: int) -> None:
        self._name, self._tag, self.size = name, tag, size
        self._heads = _entry_heads(tag)
        self.ids: dict[str, int] = {}
        self.strings: list[str] = []
        self.last = self.entered = 0

    def enter(self, string: str, is_kept: Callable[[str], bool]) -> tuple[int, str | None, bytes]:
        """The id that a string gets, the string that had it, and the row that assigns it.

        Args:
            string: one that is not entered.
            is_kept: whether the statement at hand needs a string itself; asked where the table is full.

        Raises:
            UnsupportedByFormat: it needs them all.
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
        self.entered += 1
        follows = number == last + 1 > 1
        data = string.encode()
        # 0 is the id after the last; the first is written, so that logs can be joined end to end
        if follows and 0 < len(data) < 0x70:
            return number, old, self._heads[len(data)] + data
        explicit = b"" if follows else b"\x08" + varint(number)
        entry = explicit + (b"\x12" + delimited(data) if data else b"")
        return number, old, b"\x0a" + delimited(bytes((self._tag,)) + delimited(entry))

    def follow(self, count: int) -> None:
        """Takes note of strings that were entered in turn, each in the place of the oldest."""
        if count:
            self.last = (self.last + count - 1) % self.size + 1
            self.entered += count

    def spares(self, ids: Iterable[int]) -> int:
        """Returns the number of strings that can be entered before one of these ids is replaced.

        >>> table = Table("names", 0x4A, 8)
        >>> number, _, _ = table.enter("a", "b".__eq__)
        >>> table.spares([number])
        7
        """
        return min(((number - self.last - 1) % self.size for number in ids), default=self.size)

    def _free(self, is_kept: Callable[[str], bool]) -> int:
        for step in range(self.size):
            index = (self.last + step) % self.size
            if not is_kept(self.strings[index]):
                return index
        raise UnsupportedByFormat(
            f"one statement needs more {self._name} than the {self.size} that the stream's options allow",
            hint="choose a larger table",
        )


@cache
def _entry_heads(tag: int) -> tuple[bytes, ...]:
    """Returns the bytes before a string that gets the next id, by its length."""
    return tuple(bytes((0x0A, size + 4, tag, size + 2, 0x12, size)) for size in range(0x70))


class Entries:
    """A table as a consumer keeps it.

    Args:
        name: what the table holds, for errors.
        size: how many entries there may be.

    Attributes:
        size: how many entries there may be.
        strings: by their ids, from 1.
        last: the id entered last; -1: the next entry must have one.

    >>> entries = Entries("names", 8)
    >>> entries.enter(b"\x12\x01a"), entries.enter(b"\x12\x01b"), entries.get(2)
    (1, 2, 'b')
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self.size = name, size
        self.strings: dict[int, str] = {}
        self.last = 0

    def enter(self, entry: bytes) -> int:
        """Takes an RdfNameEntry, RdfPrefixEntry or RdfDatatypeEntry, and returns its id.

        Raises:
            Malformed: no such entry, an id that the table's size excludes, or none where one is demanded.
        """
        number, string, size = 0, "", len(entry)
        # most: the next id, and less than 128 bytes
        if 1 < size < 0x82 and entry[0] == 0x12 and entry[1] == size - 2 and entry.isascii():
            string = entry[2:].decode()
        else:
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
        """Takes the next entry only with an id: none could mean the one after the last as well as the first."""
        self.last = -1

    def get(self, number: int) -> str:
        """The string with an id.

        Raises:
            Malformed: there is none.
        """
        try:
            return self.strings[number]
        except KeyError:
            raise Malformed(f"{number} is not in the table of {self._name}") from None

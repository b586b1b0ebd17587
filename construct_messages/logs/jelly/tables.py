"""A lookup table as a producer keeps it: strings get ids, and the entry that stands longest makes room.

Jelly 1.1, "Prefix, name, and datatype lookups", which leaves it to the producer what makes room. First in, first out
needs no bookkeeping where an entry is used, and ids nearly always follow each other, so that they need not be written.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from construct_messages.errors import CannotCarry
from construct_messages.logs.jelly.wire import delimited, varint


class Table:
    """The entries of one table, by string.

    Args:
        name: what the table holds, for errors.
        tag: of the row that enters a string.
        size: how many entries there may be.

    Attributes:
        ids: the ids of the strings that are entered now, from 1.

    >>> table = Table("prefixes", 0x52, 1)
    >>> table.enter("a", set)
    (1, None, b'\\n\\x07R\\x05\\x08\\x01\\x12\\x01a')
    >>> table.enter("b", set), table.ids
    ((1, 'a', b'\\n\\x07R\\x05\\x08\\x01\\x12\\x01b'), {'b': 1})
    """

    def __init__(self, name: str, tag: int, size: int) -> None:
        self._name, self._tag, self._size = name, bytes((tag,)), size
        self.ids: dict[str, int] = {}
        self._strings: list[str] = []
        self._last = 0  # the id entered last

    def enter(self, string: str, kept: Callable[[], Container[int]]) -> tuple[int, str | None, bytes]:
        """The id that a string gets, the string that had it, and the row that tells so.

        Args:
            string: one that is not entered.
            kept: gives the ids that the statement at hand needs itself; asked where the table is full.

        Raises:
            CannotCarry: it needs them all.
        """
        old = None
        if len(self._strings) < self._size:
            self._strings.append(string)
            number = len(self._strings)
        else:
            number = self._free(kept())
            old = self._strings[number - 1]
            del self.ids[old]
            self._strings[number - 1] = string
        self.ids[string] = number
        # 0 is the id after the last; the first is written, so that logs can be joined end to end
        explicit = b"\x08" + varint(number) if number != self._last + 1 or number == 1 else b""
        self._last = number
        entry = explicit + (b"\x12" + delimited(string.encode()) if string else b"")
        return number, old, b"\x0a" + delimited(self._tag + delimited(entry))

    def _free(self, kept: Container[int]) -> int:
        for step in range(self._size):
            number = (self._last + step) % self._size + 1
            if number not in kept:
                return number
        raise CannotCarry(
            f"one statement needs more {self._name} than the {self._size} that the stream's options allow",
            hint="choose a larger table",
        )

"""The members that a reader has returned: the least state by which each is returned once, also after a restart.

Where members are in an order, that is the last one, and those with the same values; otherwise all of them. No I/O.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b

from construct_messages.feeds.collections.values import Value, value_of
from construct_messages.feeds.state import Checkpoint
from construct_messages.terms import Term


class Known:
    """The members that were returned.

    Args:
        checkpoint: what an earlier reader gave; None: nothing.

    Attributes:
        sequence: of the last that was given, or how many were.

    >>> known = Known(None)
    >>> known.give("urn:a", (), 1)
    >>> known.has("urn:a", ()), known.has("urn:b", ()), Known(known.checkpoint).has("urn:a", ())
    (True, False, True)
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        checkpoint = checkpoint or Checkpoint(0)
        self.sequence = checkpoint.sequence
        self._terms = tuple(map(Term, checkpoint.last))
        self._last = tuple(map(value_of, self._terms))
        self._known = set(checkpoint.known)

    @property
    def checkpoint(self) -> Checkpoint:
        """Returns the position of the reader."""
        return Checkpoint(self.sequence, tuple(self._terms), tuple(sorted(self._known)))

    def has(self, name: str, values: tuple[Value, ...]) -> bool:
        """Whether a member was given. One that is earlier than the last counts as given.

        Args:
            name: its IRI.
            values: what it is in the order of.
        """
        return values < self._last or (values == self._last and _digest(name) in self._known)

    def is_past(self, bound: Value) -> bool:
        """Whether all members up to a bound were given."""
        return bool(self._last) and bound[0] == self._last[0][0] and bound < self._last[0]

    def give(self, name: str, terms: tuple[Term, ...], sequence: int) -> None:
        """Takes a member for given.

        Args:
            name: its IRI.
            terms: what it is in the order of.
            sequence: of its element.
        """
        if terms != self._terms:
            self._terms, self._last = terms, tuple(map(value_of, terms))
            self._known.clear()
        self._known.add(_digest(name))
        self.sequence = sequence


def _digest(name: str) -> str:
    return urlsafe_b64encode(blake2b(name.encode(), digest_size=9).digest()).decode()

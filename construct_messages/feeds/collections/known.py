"""The members that a reader has returned: the minimal state for returning each once, also after a restart.

For ordered members, the state is the last one, and those with the same values; otherwise all of them. No I/O.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Self

from construct_messages.feeds.collections.values import Value, value_of
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Start
from construct_messages.rdf.terms import XSD, Term, literal


class Known:
    """The members that were returned.

    Args:
        checkpoint: the checkpoint of an earlier reader; None: there is none.

    Attributes:
        sequence: the sequence of the last returned member, or the number of returned members.

    >>> known = Known(None)
    >>> known.add("urn:a", (), 1)
    >>> known.has("urn:a", ()), known.has("urn:b", ()), Known(known.checkpoint).has("urn:a", ())
    (True, False, True)
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.sequence = 0 if checkpoint is None else checkpoint.sequence
        if checkpoint is not None:
            checkpoint.check("last", "known")
        place = {} if checkpoint is None else checkpoint.place
        # the values that order the last member, and digests of the IRIs of those with these values
        self._terms = tuple(map(Term, place.get("last", ())))
        self._last = tuple(map(value_of, self._terms))
        self._known = set(place.get("known", ()))

    @classmethod
    def at(cls, start: Start) -> Self:
        """Returns the state before the first member, without a request."""
        known = cls(start.checkpoint)
        if start.checkpoint is None:
            known.sequence = start.after or 0
        if start.since is not None:
            known._terms = (literal(start.since.isoformat(), datatype=f"{XSD}dateTime"),)
            known._last = tuple(map(value_of, known._terms))
        return known

    @property
    def checkpoint(self) -> Checkpoint:
        """Returns the position of the reader."""
        place = {"last": tuple(self._terms), "known": tuple(sorted(self._known))}
        return Checkpoint(self.sequence, {name: texts for name, texts in place.items() if texts})

    def has(self, name: str, values: tuple[Value, ...]) -> bool:
        """Returns whether a member was returned. One that is earlier than the last counts as returned.

        Args:
            name: the IRI of the member.
            values: the values by which it is ordered.
        """
        return values < self._last or (values == self._last and _digest(name) in self._known)

    def is_past(self, bound: Value) -> bool:
        """Returns whether all members up to a bound were returned."""
        return bool(self._last) and bound[0] == self._last[0][0] and bound < self._last[0]

    def add(self, name: str, terms: tuple[Term, ...], sequence: int) -> None:
        """Records that a member was returned.

        Args:
            name: the IRI of the member.
            terms: the terms by which it is ordered.
            sequence: the sequence of its element.
        """
        if terms != self._terms:
            self._terms, self._last = terms, tuple(map(value_of, terms))
            self._known.clear()
        self._known.add(_digest(name))
        self.sequence = sequence


def _digest(name: str) -> str:
    return urlsafe_b64encode(blake2b(name.encode(), digest_size=9).digest()).decode()

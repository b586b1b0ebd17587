"""Compares two sequences of messages by number, up to blank node labels.

RDF 1.2 Concepts, section 4.4 defines when two datasets are the same. Memory is that of one pair of messages. Messages
are read and differences are shown elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from construct_messages.rdf.errors import LimitExceeded
from construct_messages.rdf.isomorphism import match, rename
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import UNBOUND


@dataclass(frozen=True)
class Difference:
    """Two messages of the same number that are not isomorphic.

    Attributes:
        number: counted from 1.
        first_only, second_only: the quads that the other one does not have, each with the labels of its own message.
            Blank nodes are considered the same if the statements about them are.
    """

    number: int
    first_only: tuple[Quad, ...]
    second_only: tuple[Quad, ...]


@dataclass(frozen=True)
class Surplus:
    """The messages of one sequence after the end of the other.

    Attributes:
        second: whether the second is longer.
        number: the number, from 1, of the first message that the other does not have.
        message_count: the number of these messages.
    """

    second: bool
    number: int
    message_count: int


def compare(first: Iterable[Message], second: Iterable[Message]) -> Iterator[Difference | Surplus]:
    """Yields the differences of two sequences of messages, by number; none if they are equal up to blank node labels.

    A longer sequence is read to its end, to count the difference; its surplus comes last.

    Raises:
        LimitExceeded: two messages are too large and symmetric to be compared; the error has their number.

    >>> from construct_messages.rdf.terms import Term
    >>> one = Message([Quad(Term("_:a"), Term("<urn:p>"), Term('"1"'))])
    >>> two = Message([Quad(Term("_:b"), Term("<urn:p>"), Term('"1"'))])
    >>> list(compare([one, one], [two]))
    [Surplus(second=False, number=2, message_count=1)]
    >>> [(d.number, len(d.first_only), len(d.second_only)) for d in compare([one, one], [two, Message()])]
    [(2, 1, 0)]
    """
    second_is_longer, shorter, surplus = False, 0, 0
    for number, (one, other) in enumerate(zip_longest(first, second), 1):
        if one is None or other is None:
            second_is_longer = one is None
            surplus += 1
            continue
        shorter = number
        if difference := _difference(number, one, other):
            yield difference
    if surplus:
        yield Surplus(second_is_longer, shorter + 1, surplus)


def _difference(number: int, one: Message, other: Message) -> Difference | None:
    if one == other:
        return None
    try:
        names = match(one, other)
    except LimitExceeded as error:
        raise LimitExceeded(f"message {number}: {error.message}", hint=error.hint) from error
    # a node without a counterpart is replaced by a term that is in no quad
    renamed = rename(one, lambda label: names.get(label, UNBOUND))
    first_only = tuple(
        quad for quad, as_other in zip(one, renamed, strict=True) if as_other not in other.quads
    )
    among_renamed = set(renamed)
    second_only = tuple(quad for quad in other if quad not in among_renamed)
    return Difference(number, first_only, second_only) if first_only or second_only else None

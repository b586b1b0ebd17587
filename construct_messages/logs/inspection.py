"""Figures of a sequence of messages: their numbers, sizes and contents, in bounded memory.

Messages are read and figures are shown elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from construct_messages.errors import LimitExceeded
from construct_messages.rdf.isomorphism import match, rename
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import UNBOUND, Term, has_blank, is_triple

# --- comparison -----------------------------------------------------------------------------------
# Compares two sequences of messages by number, up to blank node labels.
#
# RDF 1.2 Concepts, section 4.4 defines when two datasets are the same. Memory is that of one pair of messages.
# Messages are read and differences are shown elsewhere.


@dataclass(frozen=True)
class Difference:
    """Two messages of the same number that are not isomorphic."""

    number: int
    # first_only, second_only: the quads that the other one does not have, each with the labels of its message.
    # Blank nodes are considered the same if the statements about them are
    first_only: tuple[Quad, ...]
    second_only: tuple[Quad, ...]


@dataclass(frozen=True)
class Surplus:
    """The messages of one sequence after the end of the other."""

    # whether the second is longer
    second: bool
    # the number, from 1, of the first message that the other does not have
    number: int
    # the number of these messages
    message_count: int


def compare(first: Iterable[Message], second: Iterable[Message]) -> Iterator[Difference | Surplus]:
    """Yields the differences of two sequences of messages, by number; none if they are equal up to blank node labels.

    A longer sequence is read to its end, to count the difference; its surplus comes last.

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


# --- inspection -----------------------------------------------------------------------------------

GRAPHS: Final = 10_000
"""The default number of graph names that are distinguished."""


class Inspection:
    """Computes the figures of the messages so far. Sizes are in quads. `most_graphs`: the number of graph names to
    distinguish; beyond that, only their existence is recorded. `messages`, `quads`: the total numbers.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, literal
    >>> quads = [Quad(iri("urn:s"), iri("urn:p"), literal(text), iri("urn:g")) for text in "abc"]
    >>> inspection = Inspection()
    >>> for message in (Message(quads), Message(), Message(quads[:1])):
    ...     inspection.add(message)
    >>> inspection.message_count, inspection.quads, inspection.empty, inspection.graphs, inspection.largest
    (3, 4, 1, 1, (1, 3))
    >>> inspection.histogram()
    [(0, 0, 1), (1, 1, 1), (2, 3, 1)]
    >>> inspection.median(), Inspection().median()
    (1, None)
    """

    def __init__(self, *, most_graphs: int = GRAPHS) -> None:
        # with_graphs, with_blanks, with_triples: messages that have a named graph, a blank node, a triple term
        self.message_count = self.quads = self.with_graphs = self.with_blanks = (
            self.with_triples
        ) = 0
        # number, from 1, and size of the first message of the largest size; None without messages
        self.largest: tuple[int, int] | None = None
        # whether there are more names than are distinguished
        self.more_graphs = False
        self._most_graphs = most_graphs
        self._graphs: set[Term] = set()
        # The number of messages of each size. A thousand different sizes need half a million quads, two thousand need
        # two million: the memory grows with the square root of the input, so the median can be exact.
        self._sizes: Counter[int] = Counter()

    def add(self, message: Message) -> None:
        self.message_count += 1
        self.quads += len(message)
        self._sizes[len(message)] += 1
        if self.largest is None or len(message) > self.largest[1]:
            self.largest = self.message_count, len(message)
        terms = {term for quad in message for term in quad if term is not None}
        self.with_blanks += any(map(has_blank, terms))
        self.with_triples += any(map(is_triple, terms))
        graphs = {quad.graph for quad in message if quad.graph is not None}
        self.with_graphs += bool(graphs)
        # blank nodes are only names within their message
        for graph in graphs:
            if graph not in self._graphs and not has_blank(graph):
                if len(self._graphs) < self._most_graphs:
                    self._graphs.add(graph)
                else:
                    self.more_graphs = True

    @property
    def empty(self) -> int:
        """Messages without a quad."""
        return self._sizes[0]

    @property
    def graphs(self) -> int:
        """Different IRIs of named graphs, up to the limit."""
        return len(self._graphs)

    def smallest(self) -> int | None:
        """The least size; None without messages."""
        return min(self._sizes, default=None)

    def mean(self) -> float | None:
        """The mean size; None without messages."""
        return self.quads / self.message_count if self.message_count else None

    def median(self) -> float | None:
        """The median size: the mean of the middle two, if there are two; None without messages."""
        if not self.message_count:
            return None
        low, high = (
            self._size_at((self.message_count - 1) // 2),
            self._size_at(self.message_count // 2),
        )
        return low if low == high else (low + high) / 2

    def _size_at(self, place: int) -> int:
        """The size at an index, from 0, in the order of sizes."""
        passed = 0
        for size, messages in sorted(self._sizes.items()):
            passed += messages
            if passed > place:
                return size
        raise IndexError(place)

    def histogram(self) -> list[tuple[int, int, int]]:
        """Sizes by powers of two, without gaps: the least and greatest of each range, and the number of messages."""
        ranges: Counter[int] = Counter()
        for size, messages in self._sizes.items():
            ranges[size.bit_length()] += messages
        if not ranges:
            return []
        return [
            (1 << bits >> 1, (1 << bits) - 1, ranges[bits])
            for bits in range(min(ranges), max(ranges) + 1)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Returns all figures as JSON.

        >>> figures = Inspection().as_dict()
        >>> figures["messages"], figures["sizes"]["largest"], figures["histogram"]
        (0, None, [])
        """
        return {
            "messages": self.message_count,
            "quads": self.quads,
            "empty": self.empty,
            "with_named_graphs": self.with_graphs,
            "with_blank_nodes": self.with_blanks,
            "with_triple_terms": self.with_triples,
            "graphs": self.graphs,
            "more_graphs": self.more_graphs,
            "sizes": {
                "smallest": self.smallest(),
                "median": self.median(),
                "mean": self.mean(),
                "largest": self.largest and self.largest[1],
                "largest_message": self.largest and self.largest[0],
            },
            "histogram": [
                {"from": low, "to": high, "messages": count}
                for low, high, count in self.histogram()
            ],
        }

"""Groups solutions into messages: one each, or those with equal values of the grouping variables.

Grouping never adds or removes solutions. In the order of first appearance, all solutions are held until the end; if the
source sorts by the key, a group is returned when the next begins. Nothing is instantiated here, and there is no I/O.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from construct_messages.rdf.errors import GroupError, LimitExceeded
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term, has_blank


class Numbered(NamedTuple):
    """A solution with its number in the stream, counted from 0."""

    number: int
    solution: tuple[Term, ...]


Group: TypeAlias = list[Numbered]


def digest(text: str) -> bytes:
    """128 bits that represent a text, to save memory."""
    from hashlib import blake2b  # OpenSSL takes long to load, and most queries do not need it

    return blake2b(text.encode(), digest_size=16).digest()


class Grouper(Protocol):
    """Groups batches of solutions."""

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        """Takes the next batch, and returns the groups that are now complete.

        Raises:
            LimitExceeded: more solutions would be held than allowed.
            GroupError: a group is ambiguous.
        """
        ...

    def finish(self) -> Iterator[Group]:
        """The groups that were complete only with the last solution."""
        ...


class EachSolution:
    """No grouping: a group for each solution.

    >>> [group[0].number for group in EachSolution().feed(Solutions.of([("<urn:a>",), ("<urn:a>",)]))]
    [0, 1]
    """

    def __init__(self) -> None:
        self._next = 0

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        """See `Grouping.feed`."""
        first = self._next
        self._next += len(solutions)
        for number, solution in enumerate(solutions, first):
            yield [Numbered(number, solution)]

    def finish(self) -> Iterator[Group]:
        """Returns nothing, as no solution is held."""
        return iter(())


class _Keys:
    """Reads the key of each solution, and refuses blank nodes that cannot be compared."""

    def __init__(
        self, indexes: Sequence[int], names: Sequence[str], stable_blank_nodes: bool
    ) -> None:
        self._indexes, self._names, self._stable = indexes, names, stable_blank_nodes
        self._next = 0
        self._blank_in: int | None = None

    def read(self, solutions: Solutions) -> Iterator[tuple[tuple[Term, ...], Numbered]]:
        response = solutions.response
        for solution in solutions:
            key = tuple(solution[index] for index in self._indexes)
            if not self._stable and (self._blank_in is not None or any(map(has_blank, key))):
                if self._blank_in is None:
                    self._blank_in = response
                if response != self._blank_in or response > 0:
                    raise GroupError(
                        f"grouping by {' '.join(f'?{name}' for name in self._names)} met a blank node, "
                        "whose label means nothing in another response of this source",
                        hint="group by IRIs or literals, or read the result in one response (no page_size)",
                    )
            yield key, Numbered(self._next, solution)
            self._next += 1


class ByAppearance:
    """Groups in the order of their first solutions; holds all solutions until the end.

    Args:
        indexes: where the key's values are in a solution.
        names: the key's variables, for errors.
        limit: how many solutions may be held.
        stable_blank_nodes: whether labels mean the same in every response.
    """

    def __init__(
        self, indexes: Sequence[int], names: Sequence[str], limit: int, stable_blank_nodes: bool
    ) -> None:
        self._keys = _Keys(indexes, names, stable_blank_nodes)
        self._limit, self._held = limit, 0
        self._groups: dict[tuple[Term, ...], Group] = {}

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        """See `Grouping.feed`."""
        for key, numbered in self._keys.read(solutions):
            self._held += 1
            if self._held > self._limit:
                raise LimitExceeded(
                    f"grouping would hold more than {self._limit} solutions",
                    hint='raise the limit of the grouping, or stream with order="sorted"',
                )
            self._groups.setdefault(key, []).append(numbered)
        return iter(())

    def finish(self) -> Iterator[Group]:
        """See `Grouping.finish`."""
        yield from self._groups.values()
        self._groups = {}


class Sorted:
    """Groups as they come from a source that sorts by the key; holds one group, and 16 bytes for each closed key.

    Args:
        indexes: where the key's values are in a solution.
        names: the key's variables, for errors.
        limit: how many solutions one group may hold.
        stable_blank_nodes: whether labels mean the same in every response.
    """

    def __init__(
        self, indexes: Sequence[int], names: Sequence[str], limit: int, stable_blank_nodes: bool
    ) -> None:
        self._keys = _Keys(indexes, names, stable_blank_nodes)
        self._names, self._limit = names, limit
        self._key: tuple[Term, ...] | None = None
        self._group: Group = []
        self._closed: set[bytes] = set()

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        """See `Grouping.feed`."""
        for key, numbered in self._keys.read(solutions):
            if key != self._key:
                yield from self.finish()
                self._open(key)
            if len(self._group) == self._limit:
                raise LimitExceeded(
                    f"one group holds more than {self._limit} solutions",
                    hint="raise the limit of the grouping",
                )
            self._group.append(numbered)

    def finish(self) -> Iterator[Group]:
        """See `Grouping.finish`."""
        if self._key is not None:
            self._closed.add(digest("\n".join(self._key)))
            yield self._group
        self._key, self._group = None, []

    def _open(self, key: tuple[Term, ...]) -> None:
        if digest("\n".join(key)) in self._closed:
            named = ", ".join(
                f"?{name} = {term or 'unbound'}"
                for name, term in zip(self._names, key, strict=True)
            )
            raise GroupError(
                f"the group {named} came back after it was closed: the source does not sort by this key",
                hint='use order="appearance"',
            )
        self._key = key

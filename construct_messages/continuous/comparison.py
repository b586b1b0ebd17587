"""Compares the solutions of one evaluation with those of the evaluation before: which are new, which vanished.

Solutions are compared as a multiset, by digests of 12 bytes. Labels of blank nodes change from answer to answer, so
they are numbered in the order in which a solution holds them; that a node is in two solutions is not compared. No I/O.
RSP-QL: what ISTREAM and DSTREAM compare; docs/decisions/049-state-of-continuous-queries.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, cast

from construct_messages.solutions import Solutions
from construct_messages.terms import Term, has_blank, map_blanks

_BYTES: Final = 12  # two of ten million solutions are taken for one with a probability of about 10^-15
_BLANK: Final = b"_:"


class Digests:
    """Makes digests of solutions, and knows those of the solutions that it met before.

    They are found by Python's own hash of a solution, which is many times quicker. It has 64 bits and another key in
    each process: of n solutions that are known, a new one is taken for one with a probability of n / 2^64.

    >>> digests = Digests()
    >>> first, second = (Solutions.of([("_:" + label, "<urn:a>"), ("_:x", "_:x")]) for label in "ab")
    >>> digests.of(first) == digests.of(second), digests.of(first)[0] == digests.of(first)[1]
    (True, False)
    """

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, solutions: Solutions) -> list[bytes]:
        """The digests of a batch, in its order."""
        columns = solutions.utf8
        hashes = list(map(hash, zip(*columns, strict=True)))
        found = list(map(self._known.get, hashes))
        if None in found:
            for place, digest in enumerate(found):
                if digest is None:
                    made = _digest([column[place] for column in columns])
                    found[place] = self._known[hashes[place]] = made
        return cast(list[bytes], found)

    def forget(self) -> None:
        """Forgets the solutions that it met."""
        self._known.clear()


def _digest(solution: Sequence[bytes]) -> bytes:
    row = b"\n".join(solution)  # no canonical term holds a line break
    if _BLANK in row:
        row = _numbered(row)
    return blake2b(row, digest_size=_BYTES).digest()


def _numbered(row: bytes) -> bytes:
    """A solution with its blank nodes called by their order in it."""
    names: dict[Term, Term] = {}

    def name(node: Term) -> Term:
        return names.setdefault(node, Term(f"_:{len(names)}"))

    terms = [Term(text) for text in row.decode().split("\n")]
    return "\n".join(map_blanks(term, name) if has_blank(term) else term for term in terms).encode()


class Comparison:
    """Takes the solutions of one evaluation, batch by batch.

    Args:
        seen: how often each digest was there in the evaluation before.
        digests: makes those of this one.

    Attributes:
        new: the digests of those that are new so far, in order; one that is there twice is in it twice.

    >>> comparison = Comparison({}, Digests())
    >>> batch = Solutions.of([("<urn:a>",), ("<urn:a>",), ("<urn:b>",)])
    >>> comparison.feed(batch)
    <Solutions: 3 of response 0>
    >>> later = Comparison({digest: comparison.new.count(digest) for digest in comparison.new}, Digests())
    >>> list(later.feed(Solutions.of([("<urn:c>",), ("<urn:a>",)])))
    [('<urn:c>',)]
    >>> list(later.vanished.values())
    [1, 1]
    """

    def __init__(self, seen: Mapping[bytes, int], digests: Digests) -> None:
        self._digests = digests
        # most are there once: those as a set, which takes a batch at once, the others counted
        self._once, self._often = set(seen), dict[bytes, int]()
        if sum(seen.values()) > len(seen):
            self._often = {digest: count for digest, count in seen.items() if count > 1}
            self._once -= self._often.keys()
        self.new: list[bytes] = []

    def feed(self, solutions: Solutions) -> Solutions | None:
        """Takes the next solutions; gives those that are new, None where none is."""
        found = self._digests.of(solutions)
        distinct = set(found)
        if len(distinct) == len(found) and distinct.isdisjoint(self._often):
            new = distinct - self._once
            self._once -= distinct
            places = [place for place, digest in enumerate(found) if digest in new] if new else []
        else:
            places = [place for place, digest in enumerate(found) if not self._take(digest)]
        if not places:
            return None
        if len(places) == len(found):
            self.new += found
            return solutions
        self.new += [found[place] for place in places]
        return solutions.take(places)

    def _take(self, digest: bytes) -> bool:
        """Takes one solution; tells whether it was there before."""
        count = self._often.pop(digest, 0)
        if count > 1:
            self._often[digest] = count - 1
        if count == 0 and digest in self._once:
            self._once.remove(digest)
            return True
        return count > 0

    @property
    def vanished(self) -> Mapping[bytes, int]:
        """After the last solution: how often each digest is missing."""
        return dict.fromkeys(self._once, 1) | self._often


def digest_of(batches: Iterable[Solutions]) -> bytes:
    """One digest of all solutions of a result, in whatever order they came.

    >>> a, b = Solutions.of([("<urn:a>",)]), Solutions.of([("<urn:b>",)])
    >>> digest_of([a, b]) == digest_of([b, a]), digest_of([a, b]) == digest_of([a, b, b])
    (True, False)
    """
    every = sorted(digest for batch in batches for digest in map(_digest, zip(*batch.utf8, strict=True)))
    return blake2b(b"".join(every), digest_size=_BYTES).digest()

"""Compares the solutions of one evaluation with those of the previous one, to find new and removed solutions.

Solutions are compared as a multiset, by digests of 12 bytes. Labels of blank nodes change from answer to answer, so
they are numbered in their order in a solution; nodes shared by two solutions are not compared. No I/O. RSP-QL: the
comparison of ISTREAM and DSTREAM; docs/decisions/049-state-of-continuous-queries.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term, has_blank, map_blanks

_BYTES: Final = 12  # the probability that two of ten million solutions collide is about 10^-15
_BLANK: Final = b"_:"


class Known:
    """The solutions of the previous evaluation.

    Args:
        counts: the number of solutions of each digest; updated by the caller that commits the changes.

    Python's own hash is many times faster than a digest. So a solution without blank nodes that occurred once is found
    by its hash if this process has seen it. The hash has 64 bits and a different key in each process: with n known
    solutions, a new one collides with a probability of n / 2^64.
    """

    def __init__(self, counts: dict[bytes, int]) -> None:
        self.counts = counts
        self.by_hash: dict[int, bytes] = {}

    def others(self) -> dict[bytes, int]:
        """The counts of digests that have no hash."""
        if len(self.by_hash) == len(self.counts):
            return {}
        found = set(self.by_hash.values())
        return {digest: count for digest, count in self.counts.items() if digest not in found}


class Comparison:
    """Compares the solutions of one evaluation, batch by batch.

    Args:
        known: the solutions of the previous evaluation.

    Attributes:
        new: the digests of the new solutions so far, in order, with repetitions.

    >>> known = Known({})
    >>> first = Comparison(known)
    >>> first.feed(Solutions.of([("<urn:a>",), ("<urn:a>",), ("_:b",)]))
    <Solutions: 3 of response 0>
    >>> known.counts.update({digest: first.new.count(digest) for digest in first.new})
    >>> first.settle()
    >>> second = Comparison(known)
    >>> list(second.feed(Solutions.of([("<urn:c>",), ("<urn:a>",), ("_:other",)])))
    [('<urn:c>',)]
    >>> list(second.vanished.values())
    [1]
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._left, self._others = set(known.by_hash), known.others()
        self._met: list[tuple[int, bytes]] = []
        self.new: list[bytes] = []

    def feed(self, solutions: Solutions) -> Solutions | None:
        """Adds the next solutions, and returns the new ones, or None."""
        columns = solutions.utf8
        hashes = list(map(hash, zip(*columns, strict=True)))
        distinct = set(hashes)
        places: Iterable[int] = ()
        if len(distinct) == len(hashes):
            unknown = distinct - self._left
            self._left -= distinct
            if unknown:
                places = [place for place, each in enumerate(hashes) if each in unknown]
        else:
            places = [place for place, each in enumerate(hashes) if not self._take(each)]
        new = []
        for place in places:
            row = b"\n".join(
                [column[place] for column in columns]
            )  # no canonical term holds a line break
            digest = _digest(row)
            if _BLANK not in row:
                self._met.append((hashes[place], digest))
            count = self._others.pop(digest, 0)
            if count == 0:
                new.append(place)
                self.new.append(digest)
            elif count > 1:
                self._others[digest] = count - 1
        if len(new) == len(hashes):
            return solutions if new else None
        return solutions.take(new) if new else None

    def _take(self, found: int) -> bool:
        if found not in self._left:
            return False
        self._left.remove(found)
        return True

    @property
    def vanished(self) -> Mapping[bytes, int]:
        """Returns how often each digest is missing, after the last solution."""
        return {self._known.by_hash[each]: 1 for each in self._left} | self._others

    def settle(self) -> None:
        """Stores the hashes of the solutions of this evaluation, after the counts were updated."""
        by_hash, counts = self._known.by_hash, self._known.counts
        for each in self._left:
            del by_hash[each]
        for each, digest in self._met:
            if counts.get(digest) == 1:
                by_hash[each] = digest
            else:
                by_hash.pop(each, None)


def _digest(row: bytes) -> bytes:
    if _BLANK in row:
        row = _numbered(row)
    return blake2b(row, digest_size=_BYTES).digest()


def _numbered(row: bytes) -> bytes:
    """A solution with its blank nodes numbered by their order."""
    names: dict[Term, Term] = {}

    def name(node: Term) -> Term:
        return names.setdefault(node, Term(f"_:{len(names)}"))

    terms = [Term(text) for text in row.decode().split("\n")]
    return "\n".join(map_blanks(term, name) if has_blank(term) else term for term in terms).encode()


def digest_of(batches: Iterable[Solutions]) -> bytes:
    """Returns one digest of all solutions of a result, independent of their order.

    >>> a, b = Solutions.of([("<urn:a>",)]), Solutions.of([("<urn:b>",)])
    >>> digest_of([a, b]) == digest_of([b, a]), digest_of([a, b]) == digest_of([a, b, b])
    (True, False)
    """
    rows = (row for batch in batches for row in map(b"\n".join, zip(*batch.utf8, strict=True)))
    every = sorted(map(_digest, rows))
    return blake2b(b"".join(every), digest_size=_BYTES).digest()

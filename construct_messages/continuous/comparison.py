"""Compares the solutions of one evaluation with those of the evaluation before: which are new, which vanished.

Solutions are compared as a multiset, by digests of 12 bytes. Labels of blank nodes change from answer to answer, so
they are numbered in the order in which a solution holds them; that a node is in two solutions is not compared. No I/O.
RSP-QL: what ISTREAM and DSTREAM compare; docs/decisions/049-state-of-continuous-queries.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from construct_messages.solutions import Solutions
from construct_messages.terms import Term, has_blank, map_blanks

_BYTES: Final = 12  # two of ten million solutions are taken for one with a probability of about 10^-15
_BLANK: Final = b"_:"


def digests(solutions: Solutions) -> list[bytes]:
    """What tells the solutions of a batch from others, in their order.

    >>> first, second = (Solutions.of([("_:" + label, "<urn:a>"), ("_:x", "_:x")]) for label in "ab")
    >>> digests(first) == digests(second), digests(first)[0] == digests(first)[1]
    (True, False)
    """
    rows = map(b"\n".join, zip(*solutions.utf8, strict=True))  # no canonical term holds a line break
    return [blake2b(row if _BLANK not in row else _numbered(row), digest_size=_BYTES).digest() for row in rows]


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

    Attributes:
        new: the digests of those that are new so far, in order; one that is there twice is in it twice.

    >>> comparison = Comparison({})
    >>> batch = Solutions.of([("<urn:a>",), ("<urn:a>",), ("<urn:b>",)])
    >>> comparison.feed(batch)
    <Solutions: 3 of response 0>
    >>> later = Comparison({digest: comparison.new.count(digest) for digest in comparison.new})
    >>> list(later.feed(Solutions.of([("<urn:c>",), ("<urn:a>",)])))
    [('<urn:c>',)]
    >>> list(later.vanished.values())
    [1, 1]
    """

    def __init__(self, seen: Mapping[bytes, int]) -> None:
        # most are there once: those as a set, which takes a batch at once, the others counted
        self._once = set(seen)
        self._often = {digest: count for digest, count in seen.items() if count > 1}
        self._once -= self._often.keys()
        self.new: list[bytes] = []

    def feed(self, solutions: Solutions) -> Solutions | None:
        """Takes the next solutions; gives those that are new, None where none is."""
        found = digests(solutions)
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
    every = sorted(digest for batch in batches for digest in digests(batch))
    return blake2b(b"".join(every), digest_size=_BYTES).digest()

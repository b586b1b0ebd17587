"""Right, wrong, merged, split, missing: the groups that a competitor delivers, against the truth.

A group is a set of triples; what is expected and what is delivered are bags: two solutions with equal results count
twice. Blank nodes are equal up to their labels, group by group; literals are equal if Oxigraph, which the truth comes
from, keeps them alike. A *part* of a group is a triple without blank nodes, or all triples that blank nodes hold
together; a group contains another one if it has all its parts.

- *right*: delivered groups that equal an expected one, each expected one counted once.
- *merged*: other delivered groups that contain several expected ones, of which none contains all those.
- *split*: expected groups that were not delivered, but in pieces: every part of it is in a delivered group that is
  neither right nor merged and that it contains.
- *wrong*: delivered groups that are neither right nor merged nor a piece of a split one: too much, too little, once too
  often, or nothing that was asked for.
- *missing*: expected groups that are neither right nor split.

So `expected = right + split + missing`, and `delivered = right + merged + wrong + pieces`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

import pyoxigraph as ox

from benchmarks.suite.records import Group, Groups, Triple

Parts = frozenset[int]  # 64 bits of each part: large results are compared, and not kept


def compare(expected: Iterable[Group], delivered: Iterable[Group]) -> Groups:
    """Compares two bags of groups; empty groups count for neither."""
    return verdict(bag(expected), bag(delivered))


def bag(groups: Iterable[Group]) -> Counter[Parts]:
    """The groups as they are compared."""
    return Counter(parts(group) for group in groups if group)


def verdict(wanted: Counter[Parts], found: Counter[Parts]) -> Groups:
    """Compares two bags: what is expected, and what was delivered."""
    right = wanted & found
    surplus, lacking = found - right, wanted - right
    merged = _merged([group for group in surplus if group not in wanted], wanted)
    rest = Counter({group: count for group, count in surplus.items() if group not in merged})
    split, pieces = _split(lacking, rest)
    total = wanted.total()
    return Groups(
        expected=total,
        right=right.total(),
        wrong=rest.total() - pieces,
        merged=sum(surplus[group] for group in merged),
        split=split,
        missing=total - right.total() - split,
    )


def parts(group: Group) -> Parts:
    """What a group consists of, the same for groups that differ in labels of blank nodes alone."""
    group = frozenset((s, p, kept(o)) for s, p, o in group)
    ground = [triple for triple in group if triple[0][0] != "_" and triple[2][0] != "_"]
    found = list(map(hash, ground))
    if len(ground) < len(group):
        held = Counter(_canonical(triples) for triples in _held(group.difference(ground)))
        found += [hash((part, number)) for part, count in held.items() for number in range(count)]
    return frozenset(found)


@lru_cache(1 << 16)
def kept(term: str) -> str:
    """A term as Oxigraph's store keeps it: `"07"^^xsd:int` is an integer there, and `"1.5E1"^^xsd:float` is `"15"`."""
    if term[0] != '"' or term[-1] != ">":
        return term
    try:
        (quad,) = ox.parse(f"<urn:s> <urn:p> {term} .", ox.RdfFormat.N_TRIPLES, lenient=True)
    except SyntaxError:  # which no expected term has
        return term
    store = ox.Store()
    store.add(quad)
    return str(next(iter(store)).object)


def _held(triples: Iterable[Triple]) -> Iterator[list[Triple]]:
    """The triples that blank nodes hold together, each time."""
    at: dict[str, list[Triple]] = {}
    for triple in triples:
        joined = [triple]
        nodes = [term for term in (triple[0], triple[2]) if term[0] == "_"]
        for other in {id(at[node]): at[node] for node in nodes if node in at}.values():
            joined += other
        for each in joined:
            for term in (each[0], each[2]):
                if term[0] == "_":
                    at[term] = joined
    yield from {id(joined): joined for joined in at.values()}.values()


def _canonical(triples: Iterable[Triple]) -> tuple[str, ...]:
    """Lines that are the same for isomorphic graphs (RDFC-1.0)."""
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    dataset = ox.Dataset(ox.parse(text, ox.RdfFormat.N_TRIPLES, lenient=True))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return tuple(sorted(map(str, dataset)))


def _merged(surplus: Iterable[Parts], wanted: Iterable[Parts]) -> set[Parts]:
    """Those that contain several expected groups, of which none contains all those."""
    frequency = Counter(part for group in wanted for part in group)
    by_rarest: dict[int, list[Parts]] = defaultdict(list)
    for group in wanted:
        by_rarest[min(group, key=frequency.__getitem__)].append(group)
    found = set()
    for group in surplus:
        contained = [each for part in group for each in by_rarest.get(part, ()) if each <= group]
        largest = max(contained, key=len, default=frozenset())
        if not all(each <= largest for each in contained):
            found.add(group)
    return found


def _split(lacking: Counter[Parts], rest: Counter[Parts]) -> tuple[int, int]:
    """How many expected groups were delivered in pieces, and how many groups are such pieces."""
    holders: dict[int, list[Parts]] = defaultdict(list)
    for group in lacking:
        for part in group:
            holders[part].append(group)
    inside: dict[Parts, list[Parts]] = defaultdict(list)
    for piece in rest:
        for group in min((holders.get(part, []) for part in piece), key=len):
            if piece < group:
                inside[group].append(piece)
    split, pieces = 0, set()
    for group, found in inside.items():
        covered: Counter[int] = Counter()
        for piece in found:
            for part in piece:
                covered[part] += rest[piece]
        if whole := min(covered[part] for part in group):
            split += min(whole, lacking[group])
            pieces.update(found)
    return split, sum(rest[piece] for piece in pieces)

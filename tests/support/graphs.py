"""Graphs of blank nodes: symmetric ones, random ones, and a strategy for small messages."""

from __future__ import annotations

import random
from collections.abc import Iterable

from hypothesis import strategies as st

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri, triple

P = iri("urn:p")
Edges = list[tuple[int, int]]


def graph(edges: Iterable[tuple[int, int]], chance: random.Random | None = None) -> Message:
    """A message with a blank node for each number; with `chance`, under other labels and in another order."""
    edges = list(edges)
    labels = list(range(max((node for edge in edges for node in edge), default=0) + 1))
    if chance:
        chance.shuffle(labels)
        chance.shuffle(edges)
    return Message(Quad(Term(f"_:b{labels[a]}"), P, Term(f"_:b{labels[b]}")) for a, b in edges)


def both_ways(edges: Iterable[tuple[int, int]]) -> Edges:
    return [edge for a, b in edges for edge in ((a, b), (b, a))]


def clique(size: int) -> Edges:
    return [(a, b) for a in range(size) for b in range(size) if a != b]


def cycle(size: int, first: int = 0) -> Edges:
    return [(first + node, first + (node + 1) % size) for node in range(size)]


def cubic(size: int, seed: int) -> Edges:
    """A random graph in which each node has three neighbours: colours alone tell no two nodes apart."""
    chance = random.Random(seed)
    while True:
        ends = [node for node in range(size) for _ in range(3)]
        chance.shuffle(ends)
        edges = list(zip(ends[::2], ends[1::2], strict=True))
        if all(a != b for a, b in edges) and len({frozenset(edge) for edge in edges}) == len(edges):
            return both_ways(edges)


SQUARE = [(a, b) for a in range(4) for b in range(4)]


def number(a: int, b: int) -> int:
    return a % 4 * 4 + b % 4


# Two graphs of 16 nodes with six neighbours each that only trying tells apart
ROOK = [
    (number(a, b), number(c, d))
    for a, b in SQUARE
    for c, d in SQUARE
    if (a, b) != (c, d) and (a == c or b == d)
]
STEPS = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)]
SHRIKHANDE = [(number(a, b), number(a + x, b + y)) for a, b in SQUARE for x, y in STEPS]
HYPERCUBE = [(node, node ^ (1 << bit)) for node in range(64) for bit in range(6)]
TREE = [((node - 1) // 2, node) for node in range(1, 1023)]


def plane(order: int) -> Edges:
    """The points and lines of a projective plane: nearly as symmetric as a graph can be."""
    points = [(1, a, b) for a in range(order) for b in range(order)]
    points += [(0, 1, a) for a in range(order)] + [(0, 0, 1)]
    return [
        (point, len(points) + line)
        for point, here in enumerate(points)
        for line, there in enumerate(points)
        if sum(a * b for a, b in zip(here, there, strict=True)) % order == 0
    ]


# --- against another algorithm ---

blanks = st.sampled_from([Term(f"_:b{n}") for n in range(4)])
nodes = st.one_of(blanks, blanks, st.just(iri("urn:a")))
terms = st.one_of(nodes, nodes, st.builds(triple, nodes, st.just(P), nodes))
quads = st.builds(Quad, nodes, st.just(P), terms, st.one_of(st.none(), st.none(), nodes))
small = st.lists(quads, max_size=6).map(Message)

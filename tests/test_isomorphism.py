"""`isomorphism.py`: against another algorithm on small graphs, and against symmetry that defeats others."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded
from construct_messages.isomorphism import match, rename
from construct_messages.message import Message, Quad
from construct_messages.terms import UNBOUND, Term, iri, triple

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
ROOK = [(number(a, b), number(c, d)) for a, b in SQUARE for c, d in SQUARE if (a, b) != (c, d) and (a == c or b == d)]
STEPS = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)]
SHRIKHANDE = [(number(a, b), number(a + x, b + y)) for a, b in SQUARE for x, y in STEPS]
HYPERCUBE = [(node, node ^ (1 << bit)) for node in range(64) for bit in range(6)]
TREE = [((node - 1) // 2, node) for node in range(1, 1023)]

SYMMETRIC: dict[str, Edges] = {
    "a clique of 9": clique(9),
    "a clique of 25": clique(25),
    "a cycle": cycle(1000),
    "many cycles": [edge for first in range(0, 700, 7) for edge in cycle(7, first)],
    "a cubic graph": cubic(50, 1),
    "a chain": [(node, node + 1) for node in range(3000)],
    "a star": [(0, node) for node in range(1, 3000)],
    "a binary tree": TREE,
    "a hypercube": HYPERCUBE,
    "the rook's graph": ROOK,
    "the Shrikhande graph": SHRIKHANDE,
    "nodes that know themselves": [(node, node) for node in range(50)],
}


@pytest.mark.parametrize("case", SYMMETRIC)
def test_symmetry(case: str) -> None:
    edges = SYMMETRIC[case]
    other = graph(edges, random.Random(3))
    names = match(graph(edges), other)
    assert len(set(names.values())) == len(names)
    assert set(rename(graph(edges), names.__getitem__)) == other.quads


DIFFERENT: dict[str, tuple[Edges, Edges]] = {
    "one cycle and two": (cycle(6), [*cycle(3), *cycle(3, 3)]),
    "cubic graphs": (cubic(30, 1), cubic(30, 2)),
    "the rook's and Shrikhande's": (ROOK, SHRIKHANDE),
    "a chain turned around at one place": ([(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (3, 2)]),
    "itself or the other": ([(0, 0), (1, 1)], [(0, 1), (1, 0)]),
    "many parts, one of them other": (
        [*(edge for first in range(0, 60, 6) for edge in cycle(6, first))],
        [*(edge for first in range(0, 54, 6) for edge in cycle(6, first)), *cycle(3, 54), *cycle(3, 57)],
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_difference(case: str) -> None:
    one, other = (graph(edges, random.Random(5)) for edges in DIFFERENT[case])
    assert len(one) == len(other)
    assert not one.isomorphic(other)
    assert not other.isomorphic(one)


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


@pytest.mark.parametrize("edges", [plane(11), clique(120)], ids=["a projective plane", "a large clique"])
def test_what_takes_too_long_is_an_error(edges: Edges) -> None:
    started = time.process_time()
    with pytest.raises(LimitExceeded, match="more than 100000 steps") as error:
        match(graph(edges), graph(edges, random.Random(1)), steps=100_000)
    assert error.value.hint
    assert time.process_time() - started < 20


def test_messages_have_the_bound() -> None:
    with pytest.raises(LimitExceeded):
        graph(plane(11)).isomorphic(graph(plane(11), random.Random(1)))


@pytest.mark.parametrize(
    "build", [lambda size: cycle(size), lambda size: [(n, n + 1) for n in range(size)]], ids=["cycle", "chain"]
)
def test_long_chains_take_linear_time(build: Callable[[int], Edges]) -> None:
    times = []
    for size in (1000, 8000):
        started = time.process_time()
        assert graph(build(size)).isomorphic(graph(build(size), random.Random(2)))
        times.append(time.process_time() - started)
    assert times[1] < 8 * 4 * times[0]


# --- against another algorithm ---

blanks = st.sampled_from([Term(f"_:b{n}") for n in range(4)])
nodes = st.one_of(blanks, blanks, st.just(iri("urn:a")))
terms = st.one_of(nodes, nodes, st.builds(triple, nodes, st.just(P), nodes))
quads = st.builds(Quad, nodes, st.just(P), terms, st.one_of(st.none(), st.none(), nodes))
small = st.lists(quads, max_size=6).map(Message)


def by_pyoxigraph(one: Message, other: Message) -> bool:
    datasets = [ox.Dataset(message.to_pyoxigraph()) for message in (one, other)]
    for dataset in datasets:
        dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return bool(datasets[0] == datasets[1])


@given(small, small)
def test_agrees_with_pyoxigraph(one: Message, other: Message) -> None:
    same = by_pyoxigraph(one, other)
    event(f"isomorphic: {same}")
    assert one.isomorphic(other) == same


@given(small, st.permutations(range(4)), st.randoms(), st.none() | st.tuples(st.integers(0, 5), quads))
def test_agrees_on_what_is_nearly_the_same(
    one: Message, order: list[int], chance: random.Random, change: tuple[int, Quad] | None
) -> None:
    """The same under other labels and in another order, with perhaps one quad another."""
    other = [Quad(*quad) for quad in rename(one, lambda label: Term(f"_:x{order[int(label[3:])]}"))]  # type: ignore[arg-type]
    chance.shuffle(other)
    if change and other:
        other[change[0] % len(other)] = change[1]
    same = by_pyoxigraph(one, Message(other))
    event(f"isomorphic: {same}")
    assert one.isomorphic(Message(other)) == same


@given(small, small)
def test_pairs_are_one_to_one_whatever_differs(one: Message, other: Message) -> None:
    names = match(one, other)
    assert len(set(names.values())) == len(names)
    labels = [{label for quad in message for label in labels_of(quad)} for message in (one, other)]
    assert names.keys() <= labels[0]
    assert set(names.values()) <= labels[1]
    assert len(names) == min(map(len, labels))


def labels_of(quad: Quad) -> list[Term]:
    labels: list[Term] = []
    rename([quad], lambda label: labels.append(label) or UNBOUND)  # type: ignore[func-returns-value]
    return labels

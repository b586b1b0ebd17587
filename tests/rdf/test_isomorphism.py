"""`isomorphism.py`: against another algorithm on small graphs, and against symmetry that defeats others."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded
from construct_messages.rdf.isomorphism import match, rename
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import UNBOUND, Term
from tests.support.graphs import (
    HYPERCUBE,
    ROOK,
    SHRIKHANDE,
    TREE,
    Edges,
    clique,
    cubic,
    cycle,
    graph,
    plane,
    quads,
    small,
)
from tests.support.growth import assert_linear, bounded_cpu, cpu_seconds

pytestmark = pytest.mark.slow

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
        [
            *(edge for first in range(0, 54, 6) for edge in cycle(6, first)),
            *cycle(3, 54),
            *cycle(3, 57),
        ],
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_difference(case: str) -> None:
    one, other = (graph(edges, random.Random(5)) for edges in DIFFERENT[case])
    assert len(one) == len(other)
    assert not one.isomorphic(other)
    assert not other.isomorphic(one)


@pytest.mark.parametrize(
    "edges", [plane(11), clique(120)], ids=["a projective plane", "a large clique"]
)
def test_what_takes_too_long_is_an_error(edges: Edges) -> None:
    with bounded_cpu():
        with pytest.raises(LimitExceeded, match="more than 100000 steps") as error:
            match(graph(edges), graph(edges, random.Random(1)), steps=100_000)
        assert error.value.hint


def test_messages_have_the_bound() -> None:
    with pytest.raises(LimitExceeded):
        graph(plane(11)).isomorphic(graph(plane(11), random.Random(1)))


@pytest.mark.parametrize(
    "build",
    [lambda size: cycle(size), lambda size: [(n, n + 1) for n in range(size)]],
    ids=["cycle", "chain"],
)
def test_long_chains_take_linear_time(build: Callable[[int], Edges]) -> None:
    def seconds(size: int) -> float:
        one, other = graph(build(size)), graph(build(size), random.Random(2))
        found = []
        taken = cpu_seconds(lambda: found.append(one.isomorphic(other)))
        assert found == [True]
        return taken

    assert_linear(seconds, 1000, 8)


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


@given(
    small, st.permutations(range(4)), st.randoms(), st.none() | st.tuples(st.integers(0, 5), quads)
)
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

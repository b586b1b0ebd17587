"""Closures on the driver are those of a plain search, and of the rounds on executors (issue 26, 38)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

small_closures = pytest.importorskip("construct_messages.spark.engine")

NODES = st.sampled_from("abcdefg")
PAIRS = st.lists(st.tuples(st.sampled_from("GH"), NODES, NODES), max_size=12)


def followed(
    begin: list[tuple[str, str, str]], steps: list[tuple[str, str, str]]
) -> tuple[set[tuple[str, ...]], int]:
    """The pairs, and how many rounds find new ones: round by round over all pairs, as the section writes it."""
    found, rounds = set(begin), 0
    while True:
        further = {
            (g, start, end)
            for g, start, via in found
            for h, at, end in steps
            if (g, via) == (h, at)
        }
        if further <= found:
            return found, rounds
        found, rounds = found | further, rounds + 1


@given(PAIRS, PAIRS)
def test_reached(begin: list[tuple[str, str, str]], steps: list[tuple[str, str, str]]) -> None:
    wanted, rounds = followed(begin, steps)
    assert small_closures.reached(begin, steps, max_rounds=rounds, most=100) == wanted
    if rounds:
        assert small_closures.reached(begin, steps, max_rounds=rounds - 1, most=100) is None
    if wanted:
        assert small_closures.reached(begin, steps, max_rounds=rounds, most=len(wanted)) == wanted
        assert small_closures.reached(begin, steps, max_rounds=rounds, most=len(wanted) - 1) is None

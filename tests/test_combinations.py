"""`one_in(n)` leaves each value of each parameter, whatever the numbers of values."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.combinations import one_in


@pytest.mark.parametrize("sizes", [(3, 3), (3, 2), (2, 2), (7, 5, 3), (1, 9), (9, 1), (4, 1, 4)])
@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_each_value_is_left(sizes: tuple[int, ...], n: int) -> None:
    combinations = list(product(*map(range, sizes)))
    left = [combinations[place] for place in one_in(n, combinations)]
    assert 0 < len(left) <= len(combinations)
    if sum(size > 1 for size in sizes) > 1:
        for parameter, size in enumerate(sizes):
            assert {each[parameter] for each in left} == set(range(size))


def test_one_in_n_is_left() -> None:
    combinations = list(product(range(12), range(12)))
    assert len(one_in(3, combinations)) == len(combinations) / 3


def test_values_that_are_no_positions() -> None:
    combinations = [(fixture, (1, 2)) for fixture in ("a", "b", "c")] + [
        (fixture, (3, 4)) for fixture in ("a", "b", "c")
    ]
    left = {combinations[place] for place in one_in(3, combinations)}
    assert {fixture for fixture, _ in left} == {"a", "b", "c"}

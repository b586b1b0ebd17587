"""Which combinations of the parameters of a test `one_in(n)` leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest


def chosen(items: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Returns the items of one test function that are run: all, or of those that are marked `one_in(n)`, one in n."""
    thinned = [item for item in items if item.get_closest_marker("one_in")]
    if not thinned:
        return list(items)
    mark = thinned[0].get_closest_marker("one_in")
    assert mark is not None
    left = one_in(mark.args[0], [positions(item) for item in thinned])
    dropped = {id(item) for place, item in enumerate(thinned) if place not in left}
    return [item for item in items if id(item) not in dropped]


def one_in(n: int, combinations: Sequence[Sequence[object]]) -> set[int]:
    """Returns the places of the combinations that are left, each of which has a value for each parameter.

    These are the combinations whose positions add up to a multiple of n, where the position of a value is that of its
    first use: each value meets others of another parameter in turn. The first combination is added for each value of
    several that none of these has, as where another parameter has fewer than n values.

    >>> sorted(one_in(2, [(letter, number) for letter in "ab" for number in range(4)]))
    [0, 2, 5, 7]
    >>> sorted(one_in(3, [(letter, number) for letter in "abc" for number in range(2)]))
    [0, 2, 5]
    """
    found: list[dict[object, int]] = [{} for _ in combinations[0]]
    sums = [
        sum(known.setdefault(value, len(known)) for known, value in zip(found, each, strict=True))
        for each in combinations
    ]
    left = {place for place, total in enumerate(sums) if total % n == 0}
    seen = {value for place in left for value in enumerate(combinations[place])}
    product = sum(len(known) > 1 for known in found) > 1
    for place, each in enumerate(combinations):
        if product and not seen.issuperset(enumerate(each)):
            left.add(place)
            seen.update(enumerate(each))
    return left


def positions(item: pytest.Function) -> Sequence[object]:
    """Returns what tells the values of the parameters of an item apart; names that are set together are one parameter.

    pytest numbers the values of a fixture, and for the parameters of a function the items, whichever value they have.
    """
    numbers = dict[str, object](item.callspec.indices)
    together: list[object] = []
    for each in item.iter_markers("parametrize"):
        names = _names(each.kwargs.get("argnames", each.args[0] if each.args else ()))
        together.append(tuple(id(item.callspec.params[name]) for name in names))
        for name in names:
            numbers.pop(name, None)
    return [*together, *numbers.values()]


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (
        tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names)
    )

"""Event streams of any shape: whichever pages lead to which, with bounds or not, each member comes once, in order."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.feeds import subscribe
from tests.support.http.ldes import FAST, numbers, site, time_of

BOUNDS = [
    ("GreaterThanOrEqualTo", min, 0),
    ("GreaterThan", min, -1),
    ("LessThanOrEqualTo", max, 0),
    ("LessThan", max, 1),
]


class Leaf(NamedTuple):
    """A page but for the root.

    Args:
        parents: the pages that lead to it, which are all before it: 0 is the root.
        members: the numbers of its members.
        bounds: which bounds relations to it have.
        immutable: whether it says that it stays as it is.
    """

    parents: set[int]
    members: list[int]
    bounds: list[Any]
    immutable: bool


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[int], list[Leaf]]:
    """The time of each member, and pages that hold all of them, some twice."""
    times = draw(st.lists(st.integers(2, 5), max_size=15))
    count = draw(st.integers(1, 5))
    places = [draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2)) for _ in times]
    leaves = []
    for page in range(count):
        members = draw(
            st.permutations([number for number, each in enumerate(places) if page in each])
        )
        parents = draw(st.sets(st.integers(0, page), min_size=1, max_size=2))
        leaves.append(
            Leaf(
                parents,
                members,
                draw(st.lists(st.sampled_from(BOUNDS), max_size=2)),
                draw(st.booleans()),
            )
        )
    return times, leaves


def below(leaves: list[Leaf], page: int) -> set[int]:
    """The members of a page, and of those that it leads to: a relation holds for all of them."""
    found = set(leaves[page - 1].members)
    for other, leaf in enumerate(leaves, 1):
        if page in leaf.parents:
            found |= below(leaves, other)
    return found


def relations(page: int, times: list[int], leaves: list[Leaf], loop: bool) -> str:
    said = "<> tree:relation [ tree:node </> ] . " if loop else ""
    for other, leaf in enumerate(leaves, 1):
        if page in leaf.parents:
            held = [times[number] for number in below(leaves, other)]
            said += f"<> tree:relation [ tree:node </{other}> ] . "
            for kind, choose, slack in leaf.bounds if held else ():
                value = time_of(choose(held) + slack)
                said += f"<> tree:relation [ a tree:{kind}Relation ; tree:path dct:created ; tree:value {value} ; "
                said += f"tree:node </{other}> ] . "
    return said


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    drawn=streams(),
    ordered=st.booleans(),
    loop=st.booleans(),
    cuts=st.lists(st.integers(1, 6), max_size=3),
)
def test_any_shape(
    drawn: tuple[list[int], list[Leaf]], ordered: bool, loop: bool, cuts: list[int]
) -> None:
    """Also where the reader is closed behind some members, and another one goes on from its checkpoint."""
    times, leaves = drawn
    found: list[int] = []

    async def main() -> None:
        async with site() as where:
            path = "ldes:timestampPath dct:created ;" if ordered else ""
            where.page("/", f"</#s> {path} tree:view <> . {relations(0, times, leaves, loop)}")
            for page, leaf in enumerate(leaves, 1):
                said = relations(page, times, leaves, loop)
                for number in leaf.members:
                    said += f"</#s> tree:member ex:m{number} . ex:m{number} ex:number {number} ; "
                    said += f"dct:created {time_of(times[number])} . "
                where.page(
                    f"/{page}", said + ("<> ldes:immutable true ." if leaf.immutable else "")
                )
            options: dict[str, Any] = {"after": 0}
            for cut in [*cuts, len(times) + 1]:
                subscription = subscribe(f"{where.url}/", follow=False, **FAST, **options)
                async with aclosing(subscription):
                    async for element in subscription:
                        found.extend(numbers([element]))
                        assert element.sequence == len(found)
                        cut -= 1
                        if cut == 0:
                            break
                    options = {"checkpoint": subscription.checkpoint}

    asyncio.run(main())
    assert sorted(found) == list(range(len(times)))
    if ordered:
        assert [times[number] for number in found] == sorted(times)

"""`construct/assembly.py`: which solutions make one message, and what cannot be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.construct.assembly import ByAppearance, EachSolution, Sorted
from construct_messages.errors import GroupError, LimitExceeded
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term

A, B, C, BLANK = Term("<urn:a>"), Term("<urn:b>"), Term("<urn:c>"), Term("_:da")


def run(grouping: ByAppearance | EachSolution | Sorted, *batches: Solutions) -> list[list[int]]:
    groups = [group for batch in batches for group in grouping.feed(batch)]
    return [[number for number, _ in group] for group in [*groups, *grouping.finish()]]


def batch(*keys: str, response: int = 0) -> Solutions:
    return Solutions.of([(Term(key), A) for key in keys], response=response)


def test_each_solution() -> None:
    assert run(EachSolution(), batch(A, A), batch(B)) == [[0], [1], [2]]


def test_by_appearance() -> None:
    assert run(ByAppearance([0], ["k"], 10, True), batch(B, A, B), batch(A, "", C, "")) == [
        [0, 2],
        [1, 3],
        [4, 6],
        [5],
    ]


def test_sorted_leaves_as_soon_as_the_next_begins() -> None:
    grouping = Sorted([0], ["k"], 10, True)
    assert [len(group) for group in grouping.feed(batch(A, A, B))] == [2]
    assert [len(group) for group in grouping.feed(batch(B, C))] == [2]
    assert [len(group) for group in grouping.finish()] == [1]


def test_a_key_that_comes_back() -> None:
    with pytest.raises(GroupError, match=r"\?k = <urn:a> came back"):
        run(Sorted([0], ["k"], 10, True), batch(A, B), batch(A))


def test_limits() -> None:
    assert len(run(ByAppearance([0], ["k"], 3, True), batch(A, B, A))) == 2
    with pytest.raises(LimitExceeded, match="more than 3 solutions"):
        run(ByAppearance([0], ["k"], 3, True), batch(A, B, A, B))
    assert len(run(Sorted([0], ["k"], 2, True), batch(A, A, B, B, C, C))) == 3
    with pytest.raises(LimitExceeded, match="one group holds more than 2"):
        run(Sorted([0], ["k"], 2, True), batch(A, A, A))


@pytest.mark.parametrize("kind", [ByAppearance, Sorted])
class TestBlankNodeKeys:
    """Labels of different responses are never compared, unless the source says that they may be."""

    def test_within_one_response(self, kind: type[ByAppearance]) -> None:
        assert run(kind([0], ["k"], 10, False), batch(BLANK, BLANK), batch(BLANK)) == [[0, 1, 2]]

    def test_stable(self, kind: type[ByAppearance]) -> None:
        assert run(kind([0], ["k"], 10, True), batch(BLANK), batch(BLANK, response=1)) == [[0, 1]]

    @pytest.mark.parametrize(
        "batches",
        [
            [batch(BLANK), batch(BLANK, response=1)],
            [batch(BLANK), batch(A, response=1)],
            [batch(A), batch(BLANK, response=1)],
            [batch(A), batch(f"<<( <urn:s> <urn:p> {BLANK} )>>", response=2)],
        ],
    )
    def test_across_responses(self, kind: type[ByAppearance], batches: list[Solutions]) -> None:
        with pytest.raises(GroupError, match=r"grouping by \?k met a blank node"):
            run(kind([0], ["k"], 10, False), *batches)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1)))
def test_no_solution_is_lost_or_doubled(batches: list[list[str]]) -> None:
    keys = [key for keys in batches for key in keys]
    groups = run(
        ByAppearance([0], ["k"], 1000, True),
        *(batch(*map("<urn:{}>".format, keys)) for keys in batches),
    )
    assert sorted(number for group in groups for number in group) == list(range(len(keys)))
    assert [keys[group[0]] for group in groups] == list(dict.fromkeys(keys))
    assert all(len({keys[number] for number in group}) == 1 for group in groups)

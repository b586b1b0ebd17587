"""`records/gaps.py`: numbers in keys of records that follow each other, come again, or have a gap."""

from __future__ import annotations

import pytest

from construct_messages.errors import SourceError
from construct_messages.feeds.brokers.records import Gaps

URL = "mqtt://localhost/a"


@pytest.mark.parametrize(
    "keys",
    [
        ["k-1-1", "k-1-2", "k-3-1", "k-4-1"],
        ["k-7-1", "k-7-2"],
        ["k-1-1", "other-5-1", "k-1-2", "other-5-2"],
        ["k-1-1", "k-1-2", "k-1-1", "k-1-2", "k-3-1"],
        ["", "a", "a-b-c", "a-1-x", "1-1", "k-1-1-9-dead"],
        ["a-b-1-1", "a-b-2-1"],
    ],
    ids=" ".join,
)
def test_no_gap(keys: list[str]) -> None:
    gaps = Gaps(URL)
    for key in keys:
        gaps.check(key)


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        (["k-1-1", "k-1-3"], "2 to 2 of publisher k"),
        (["k-1-1", "k-1001-1"], "2 to 1000 of publisher k"),
        (["k-1-1", "l-1-1", "k-2-1", "l-2-2"], "2 to 2 of publisher l"),
    ],
    ids=["in a batch", "a batch", "of another"],
)
def test_a_gap(keys: list[str], missing: str) -> None:
    gaps = Gaps(URL)
    for key in keys[:-1]:
        gaps.check(key)
    with pytest.raises(SourceError, match=missing) as gap:
        gaps.check(keys[-1])
    assert gap.value.status == 410
    gaps.check(keys[-1])


def test_the_publishers_that_are_remembered_are_bounded() -> None:
    gaps = Gaps(URL)
    for number in range(5000):
        gaps.check(f"k{number}-1-1")
    assert len(gaps._last) == 1000

"""`benchmarks/suite/groups.py`: the verdict holds for any order and labels, and fails when it should."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.suite.groups import compare, parts
from benchmarks.suite.records import Group, Groups

P = "<urn:p>"


def group(text: str) -> Group:
    """Triples of pairs: `ab ac` says that a has b, and a has c; lower case letters from x on are blank nodes."""

    def term(letter: str) -> str:
        return f"_:{letter}" if letter in "xyz" else f"<urn:{letter}>"

    return frozenset((term(pair[0]), P, term(pair[1])) for pair in text.split())


# the same for every group, so that hubs are common
terms = st.sampled_from(["<urn:a>", "<urn:b>", "<urn:c>", "_:x", "_:y"])
groups = st.frozensets(
    st.tuples(terms, st.sampled_from([P, "<urn:q>"]), terms), min_size=1, max_size=5
)
bags = st.lists(groups, max_size=6)


def renamed(one: Group, names: dict[str, str]) -> Group:
    return frozenset((names.get(s, s), p, names.get(o, o)) for s, p, o in one)


@pytest.mark.parametrize(
    ("delivered", "right"),
    [
        ('"7"^^<http://www.w3.org/2001/XMLSchema#nonNegativeInteger>', 1),
        ('"007"^^<http://www.w3.org/2001/XMLSchema#int>', 1),
        ('"7"', 0),
        ('"8"^^<http://www.w3.org/2001/XMLSchema#integer>', 0),
        ('"7"^^<not an IRI>', 0),
    ],
)
def test_literals_are_equal_if_the_store_of_the_truth_keeps_them_alike(
    delivered: str, right: int
) -> None:
    expected = frozenset({("<urn:a>", P, '"7"^^<http://www.w3.org/2001/XMLSchema#integer>')})
    assert compare([expected], [frozenset({("<urn:a>", P, delivered)})]).right == right


@given(bags, st.randoms(use_true_random=False))
def test_any_order_and_any_labels_are_right(expected: list[Group], random: object) -> None:
    delivered = [renamed(each, {"_:x": "_:y", "_:y": "_:n1"}) for each in expected]
    random.shuffle(delivered)  # type: ignore[attr-defined]
    assert compare(expected, delivered) == Groups(len(expected), len(expected), 0, 0, 0, 0)


@given(bags, bags)
def test_the_counts_add_up(expected: list[Group], delivered: list[Group]) -> None:
    found = compare(expected, delivered)
    assert found.expected == len(expected) == found.right + found.split + found.missing
    assert found.right + found.merged + found.wrong <= len(delivered)
    assert min(astuple(found)) >= 0
    if not found.split:
        assert found.right + found.merged + found.wrong == len(delivered)


@given(bags, groups)
def test_one_group_too_many_is_not_right(expected: list[Group], surplus: Group) -> None:
    found = compare(expected, [*expected, surplus])
    assert found.right == len(expected)
    assert found.wrong + found.merged == 1


@given(st.lists(groups, min_size=1, max_size=6))
def test_one_group_less_is_missing(expected: list[Group]) -> None:
    assert compare(expected, expected[1:]) == Groups(len(expected), len(expected) - 1, 0, 0, 0, 1)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=6, unique=True))
def test_results_in_one_group_are_merged(subjects: list[str]) -> None:
    expected = [group(f"{each}b {each}x") for each in subjects]
    together = frozenset(
        triple
        for each, one in zip(subjects, expected, strict=True)
        for triple in renamed(one, {"_:x": f"_:{each}"})
    )
    assert compare(expected, [together]) == Groups(len(expected), 0, 0, 1, 0, len(expected))


@given(
    st.lists(
        groups.filter(lambda one: len(parts(one)) > 1), min_size=1, max_size=4, unique_by=parts
    )
)
def test_results_in_single_parts_are_split(expected: list[Group]) -> None:
    ground = [
        frozenset(triple for triple in one if "_:" not in "".join(triple)) for one in expected
    ]
    expected = list(dict.fromkeys(one for one in ground if len(one) > 1))
    pieces = [frozenset([triple]) for one in expected for triple in one]
    found = compare(expected, pieces)
    assert (found.right, found.split, found.missing, found.wrong) == (0, len(expected), 0, 0)


E_ = ["ab ac", "db dc"]


@pytest.mark.parametrize(
    ("expected", "delivered", "verdict"),
    [
        (E_, E_, (2, 2, 0, 0, 0, 0)),
        (E_, ["ab ac db dc"], (2, 0, 0, 1, 0, 2)),
        (E_, ["ab ac db dc ef"], (2, 0, 0, 1, 0, 2)),
        (E_, ["ab", "ac", "db dc"], (2, 1, 0, 0, 1, 0)),
        (E_, ["ab", "db dc"], (2, 1, 1, 0, 0, 1)),
        (E_, ["ab ac", "db dc ef"], (2, 1, 1, 0, 0, 1)),
        (E_, ["ab ac", "ab ac"], (2, 1, 1, 0, 0, 1)),
        (E_, [], (2, 0, 0, 0, 0, 2)),
        (["ab", "ab"], ["ab"], (2, 1, 0, 0, 0, 1)),
        (["ab ac", "ab ac"], ["ab", "ac"], (2, 0, 0, 0, 1, 1)),
        (["ab", "ab ac"], ["ab ac", "ab ac"], (2, 1, 1, 0, 0, 1)),
        (["ab", "ab ac"], ["ab ac ad"], (2, 0, 1, 0, 0, 2)),
        (["ab", "ac", "ab ac"], ["ab ac ad"], (3, 0, 1, 0, 0, 3)),
        (["ax xb"], ["az zb"], (1, 1, 0, 0, 0, 0)),
        (["ax xb"], ["ax yb"], (1, 0, 1, 0, 0, 1)),
        (["ax ay"], ["ax"], (1, 0, 1, 0, 0, 1)),
        (["ax xb", "cy yb"], ["ax xb cx"], (2, 0, 1, 0, 0, 2)),
        (["xy yz zx"], ["zy yx xz"], (1, 1, 0, 0, 0, 0)),
        ([], ["ab"], (0, 0, 1, 0, 0, 0)),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "".join(map(str, value)),
)
def test_verdicts(expected: list[str], delivered: list[str], verdict: tuple[int, ...]) -> None:
    assert compare(map(group, expected), map(group, delivered)) == Groups(*verdict)

"""`logs/inspection/__init__.py`: where two sequences of messages differ, and in what."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded
from construct_messages.logs import inspection
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.inspection import Difference, Surplus, compare
from construct_messages.rdf.isomorphism import match, rename
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term
from tests.support.graphs import graph, plane, small


def trig(text: str) -> Message:
    return to_message(ox.parse(f"PREFIX : <http://example.org/>\n{text}", format=ox.RdfFormat.TRIG))


def shown(first: list[str], second: list[str]) -> list[str]:
    """The differences as lines: where they are, and what one has and the other has not."""
    lines = []
    for found in compare(map(trig, first), map(trig, second)):
        if isinstance(found, Surplus):
            lines.append(
                f"{'second' if found.second else 'first'} has {found.message_count} more, from {found.number}"
            )
            continue
        for sign, quads in (("-", found.first_only), ("+", found.second_only)):
            lines += [
                f"{found.number} {sign} {quad}".replace("http://example.org/", ":")
                for quad in quads
            ]
    return lines


CASES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "nothing": ([], [], []),
    "the same": ([":s :p 1, 2 .", ""], [":s :p 2, 1 .", ""], []),
    "the same up to labels": (["_:a :p _:b . _:b :q 1 ."], ["_:b :p _:a . _:a :q 1 ."], []),
    "another order": (
        [":s :p 'a' .", ":s :p 'b' ."],
        [":s :p 'b' .", ":s :p 'a' ."],
        [
            '1 - <:s> <:p> "a" .',
            '1 + <:s> <:p> "b" .',
            '2 - <:s> <:p> "b" .',
            '2 + <:s> <:p> "a" .',
        ],
    ),
    "a quad more": ([":s :p 'a' ."], [":s :p 'a', 'b' ."], ['1 + <:s> <:p> "b" .']),
    "in another graph": (
        [":s :p 'a' ."],
        [":g { :s :p 'a' }"],
        ['1 - <:s> <:p> "a" .', '1 + <:s> <:p> "a" <:g> .'],
    ),
    "an empty one": ([":s :p 'a' ."], [""], ['1 - <:s> <:p> "a" .']),
    "the first is longer": ([":s :p 'a' .", "", ""], [":s :p 'a' ."], ["first has 2 more, from 2"]),
    "the second is longer": ([], [""], ["second has 1 more, from 1"]),
    "a difference and then an end": (
        [""],
        [":s :p 'a' .", ""],
        ['1 + <:s> <:p> "a" .', "second has 1 more, from 2"],
    ),
    "one value of a blank node": (
        ["_:a a :Person ; :name 'A' ; :age 1 ; :knows _:b . _:b :name 'B' ."],
        ["_:x :name 'B' . _:y a :Person ; :name 'A' ; :age 2 ; :knows _:x ."],
        [
            '1 - _:a <:age> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
            '1 + _:y <:age> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        ],
    ),
    "one of many alike": (
        ["_:a :p 'x' . _:b :p 'x' . _:c :p 'x' ."],
        ["_:x :p 'x' . _:y :p 'y' . _:z :p 'x' ."],
        ['1 - _:c <:p> "x" .', '1 + _:y <:p> "y" .'],
    ),
    "each in its own order": (
        [":d :p 'a', 'c', 'b' . :a :p 'x', 'e' . _:b :p 'f' ."],
        [":c :p 'b', 'a' . _:a :q 'z' . :e :p 'd', 'c', 'k' ."],
        [
            *(f'1 - <:d> <:p> "{each}" .' for each in "acb"),
            *(f'1 - <:a> <:p> "{each}" .' for each in "xe"),
            '1 - _:b <:p> "f" .',
            *(f'1 + <:c> <:p> "{each}" .' for each in "ba"),
            '1 + _:a <:q> "z" .',
            *(f'1 + <:e> <:p> "{each}" .' for each in "dck"),
        ],
    ),
    "a blank node more": (["_:a :p 'x' ."], ["_:a :p 'x' . _:b :p 'x' ."], ['1 + _:b <:p> "x" .']),
    "far from the difference": (
        ["_:a :n _:b . _:b :n _:c . _:c :n _:d . _:d :n 'end' ."],
        ["_:a :n _:b . _:b :n _:c . _:c :n _:d . _:d :n 'END' ."],
        ['1 - _:d <:n> "end" .', '1 + _:d <:n> "END" .'],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_compare(case: str) -> None:
    first, second, expected = CASES[case]
    assert shown(first, second) == expected


def test_what_takes_too_long_names_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "match", partial(match, steps=10_000))
    hard = graph(plane(11)), graph(plane(11), random.Random(1))
    with pytest.raises(LimitExceeded, match=r"^message 2: .* steps"):
        list(compare([Message(), hard[0]], [Message(), hard[1]]))


def test_no_more_than_a_pair_is_read_at_a_time() -> None:
    read = []

    def reading(side: str) -> Iterator[Message]:
        for number in range(3):
            read.append((side, number))
            yield trig(f":{side} :p {number} .")

    differences = compare(reading("a"), reading("b"))
    assert isinstance(next(differences), Difference)
    assert read == [("a", 0), ("b", 0)]


@given(small, small)
def test_differences_say_what_to_change(one: Message, other: Message) -> None:
    """As many quads are left on both sides, and there is no difference if and only if the two are isomorphic."""
    found = list(compare([one], [other]))
    assert (found == []) == one.isomorphic(other)
    for difference in found:
        assert isinstance(difference, Difference)
        assert set(difference.first_only) <= one.quads
        assert set(difference.second_only) <= other.quads
        assert len(one) - len(difference.first_only) == len(other) - len(difference.second_only)


@given(st.lists(small, max_size=4))
def test_other_labels_are_no_difference(messages: list[Message]) -> None:
    others = [
        Message(Quad(*quad) for quad in rename(message, lambda label: Term(f"_:x{label[2:]}")))  # type: ignore[arg-type]
        for message in messages
    ]
    assert list(compare(messages, others)) == []

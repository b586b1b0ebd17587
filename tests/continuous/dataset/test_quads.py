"""Quads that are found by their predicates are those of all quads that have them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from construct_messages.continuous.dataset import QuadReader

PREDICATES = ("<urn:p>", "<urn:q>", "<urn:other>")
OBJECTS = (
    "<urn:o>",
    '"text"',
    '"with <urn:p> in it"',
    '"twice <urn:p> and <urn:p> "',
    r'"escaped \" <urn:q> \n"',
    '"text"@en',
    '"05"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
    "_:b1",
    "<<( <urn:s> <urn:p> <urn:o> )>>",
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """One line of a message."""
    subject, graph = (
        draw(st.sampled_from(("<urn:s>", "_:b0"))),
        draw(st.sampled_from(("", " <urn:g>"))),
    )
    return (
        f"{subject} {draw(st.sampled_from(PREDICATES))} {draw(st.sampled_from(OBJECTS))}{graph} ."
    )


@given(st.lists(lines(), max_size=6), st.sets(st.sampled_from(PREDICATES), min_size=1))
def test_quads_are_those_of_all_with_these_predicates(found: list[str], names: set[str]) -> None:
    text = "\n".join(found)
    expected = [quad for quad in QuadReader(None).read(text.encode()) if quad[1] in names]
    assert sorted(QuadReader(frozenset(names)).read(text.encode())) == sorted(expected)
    assert sorted(QuadReader(frozenset(names)).read(f"{text}\n".encode())) == sorted(expected)

"""`texts.py`: lines that are read as the terms they were made of are those of a message that `Checker` passes."""

from __future__ import annotations

import pytest
from hypothesis import given

from construct_messages import Message, Quad
from construct_messages.errors import TermError
from construct_messages.logs.checking import Checker
from construct_messages.logs.lines.decoder import lines_read_back
from construct_messages.rdf.terms import Term
from tests.support import strategies

S, P, O = (Term(f"<urn:{name}>") for name in "spo")  # noqa: E741 - as RDF has it

SPLIT = {
    "a graph in the object": (S, P, Term(f"{O} <urn:g>")),
    "an object in the predicate": (S, Term(f"{P} {O}"), Term("<urn:g>")),
    "a literal over two terms": (S, P, Term('"a'), Term('b"')),
    "two quads": (S, P, Term(f"{O} .\n{S} {P} {O}")),
}


@given(strategies.messages())
def test_as_the_checker(messages: list[Message]) -> None:
    for message in messages:
        fresh = Message(message)
        Checker().check(message)
        lines = lines_read_back(fresh)
        assert lines in (None, message.lines)
        assert fresh.checked == (lines is not None)


def test_what_nearly_all_messages_have() -> None:
    message = Message([Quad(S, P, O), Quad(S, P, Term('"o"@en'), S), Quad(Term("_:b"), P, O)])
    assert lines_read_back(message) == message.lines
    assert lines_read_back(Message()) == b""


@pytest.mark.parametrize("parts", SPLIT.values(), ids=[*SPLIT])
def test_terms_that_make_other_lines(parts: tuple[Term, ...]) -> None:
    message = Message([Quad(*parts)])
    assert lines_read_back(message) is None
    with pytest.raises(TermError):
        Checker().check(message)

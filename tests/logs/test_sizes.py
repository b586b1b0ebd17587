"""The sizes that a piece of a log tells are those of the messages in it."""

from __future__ import annotations

import pytest

from construct_messages.logs import encoder_for
from construct_messages.logs.sizes import sizes
from construct_messages.message import Message, Quad
from construct_messages.solutions import Solutions
from construct_messages.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.terms import Term, iri, literal
from tests.support.logs.kinds import KINDS, Kind

PREFIXES = {"ex": "http://example.org/", "": "http://example.org/MESSAGE/"}
S, P = iri("http://example.org/MESSAGE/s"), iri("http://example.org/p")
# what reads like a delimiter, and is none
TEXTS = ("MESSAGE\n", "\n# @message\n", "\n---\n", "\r\n---\n", "...\n", "", "\n\n", "</rdf:RDF>\n", "x" * 300)
MESSAGES = [
    Message(),
    *(Message([Quad(S, P, literal(text)), Quad(Term("_:b"), P, S)]) for text in TEXTS),
    Message(Quad(iri(f"http://example.org/{number}"), P, literal(str(number))) for number in range(20)),
    Message(),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sizes_of_messages(kind: Kind) -> None:
    encoder = encoder_for(kind.format, kind.syntax, PREFIXES)
    written = [encoder.encode(message) for message in MESSAGES]
    assert sizes(*kind, b"".join(written)) == [len(part) for part in written]
    assert [size for part in written for size in sizes(*kind, part)] == [len(part) for part in written]
    assert sizes(*kind, b"") == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sizes_of_a_batch(kind: Kind) -> None:
    template = Template(
        ("s", "o"), (Pattern(Variable(0), Constant(P), Variable(1)), Pattern(Blank(0), Constant(P), Constant(S)))
    )
    batch = Solutions.of([(S, literal(text)) for text in TEXTS])
    chunk = encoder_for(kind.format, kind.syntax, PREFIXES).for_template(template).encode(batch, 0)
    encoder = encoder_for(kind.format, kind.syntax, PREFIXES)
    one_by_one = [
        len(encoder.encode(Message(template.instantiate(solution, number)))) for number, solution in enumerate(batch)
    ]
    assert sizes(*kind, chunk) == one_by_one

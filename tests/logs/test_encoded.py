"""What encoders of every format give message by message: a batch one by one, and a message as a document of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.jelly.options import JellyOptions, LogicalType
from construct_messages.logs.jelly.wire import delimited
from construct_messages.rdf.formats import (
    JELLY,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    TRIG,
    TURTLE,
    YAML_LD,
    Format,
)
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal, triple
from tests.support.logs.kinds import KINDS, Kind, isomorphic, read
from tests.support.strategies import SOLUTIONS, templates

PREFIXES = {
    "ex": "http://example.org/",
    "": "http://example.org/MESSAGE/",
    "unused": "http://example.org/unused/",
}
S, P = iri("http://example.org/MESSAGE/s"), iri("http://example.org/p")
# what reads like a delimiter, and is none
TEXTS = (
    "MESSAGE\n",
    "\n# @message\n",
    "\n---\n",
    "\r\n---\n",
    "...\n",
    "",
    "\n\n",
    "</rdf:RDF>\n",
    "x" * 300,
    "é",
)
MESSAGES = [
    Message(),
    *(Message([Quad(S, P, literal(text)), Quad(Term("_:b"), P, S)]) for text in TEXTS),
    Message([Quad(S, iri(f"{RDF}type"), S), Quad(S, P, literal("1", datatype=f"{XSD}date"))]),
    Message([Quad(S, P, iri("ex:ample")), Quad(S, P, iri("unused:iri"))]),
    Message(
        Quad(iri(f"http://example.org/{number}"), P, literal(str(number))) for number in range(20)
    ),
    Message(),
]
(KIND_OF_JELLY,) = (kind for kind in KINDS if kind.format is JELLY)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def new_encoder(kind: Kind, *, triple_terms: bool = False) -> Encoder:
    return encoder_for(
        kind.format, kind.syntax, EncoderOptions(PREFIXES, triple_terms=triple_terms)
    )


# --- batches ---------------------------------------------------------------------------------------------------------


def one_by_one(
    encoder: Encoder, template: Template, solutions: Iterable[Sequence[Term]], first: int
) -> list[bytes]:
    return [
        encoder.encode(Message(template.instantiate(tuple(solution), number)))
        for number, solution in enumerate(solutions, first)
    ]


@each_kind
def test_messages_of_a_batch(kind: Kind) -> None:
    """Each message of a batch can be had singly, with its size; joined, they are what the batch adds to the log."""
    template = Template(
        ("s", "o"),
        (
            Pattern(Variable(0), Constant(P), Variable(1)),
            Pattern(Blank(0), Constant(P), Constant(S)),
        ),
    )
    special, plain = new_encoder(kind), new_encoder(kind)
    batches = special.for_template(template)
    first = 0
    for texts in (TEXTS, TEXTS[:1], TEXTS[3:]):
        # the literal as a subject gives nothing: the second triple of the template is then the whole message
        solutions = [(S, literal(text)) for text in texts] + [(literal("x"), S)]
        expected = one_by_one(plain, template, solutions, first)
        encoded = batches.encode(Solutions.of(solutions), first)
        assert list(encoded) == expected
        assert bytes(encoded) == b"".join(expected)
        assert list(encoded) == expected
        first += len(solutions)


@pytest.mark.slow
@each_kind
@settings(max_examples=settings.default.max_examples // 4)
@given(template=templates(), solutions=SOLUTIONS, cut=st.integers(0, 6))
def test_any_batch(
    kind: Kind, template: Template, solutions: list[tuple[Term, ...]], cut: int
) -> None:
    def by_batch() -> list[bytes]:
        batches, found = new_encoder(kind, triple_terms=True).for_template(template), list[bytes]()
        for first, part in ((5, solutions[:cut]), (5 + cut, solutions[cut:])):
            if part:
                encoded = batches.encode(Solutions.of(part), first)
                assert b"".join(encoded) == bytes(encoded)
                found += encoded
        return found

    expected = outcome(
        lambda: one_by_one(new_encoder(kind, triple_terms=True), template, solutions, 5)
    )
    assert outcome(by_batch) == expected
    event("refused" if isinstance(expected, str) else "written")


def outcome(encode: Callable[[], list[bytes]]) -> list[bytes] | str:
    try:
        return encode()
    except UnsupportedByFormat as error:
        return str(error)


# --- documents -------------------------------------------------------------------------------------------------------


def document_of(kind: Kind, message: Message) -> bytes:
    return new_encoder(kind).encode_document(message)


@each_kind
def test_a_document_is_read_by_itself(kind: Kind) -> None:
    for message in MESSAGES:
        document = document_of(kind, message)
        found = read([document], Kind(kind.format, kind.syntax), announced=False)
        assert found.error is None
        # a document that tells of no messages is one message; nothing at all is none
        assert isomorphic(found.messages or [Message()], [message])


@each_kind
def test_documents_leave_the_log_as_it_is(kind: Kind) -> None:
    """They depend on nothing that was written before, and nothing that is written later depends on them."""
    alone, mixed = new_encoder(kind), new_encoder(kind)
    assert mixed.start() == alone.start()
    for message in MESSAGES:
        assert mixed.encode_document(message) == document_of(kind, message)
        assert mixed.encode(message) == alone.encode(message)
        assert mixed.encode_document(message) == document_of(kind, message)


DOCUMENTS: list[tuple[Format, Message, bytes]] = [
    (N_TRIPLES, MESSAGES[0], b""),
    (N_TRIPLES, Message([Quad(Term("_:b0"), P, S)]), b"_:b0 <http://example.org/p> <http://example.org/MESSAGE/s> .\n"),
    (TURTLE, MESSAGES[0], b""),
    (TURTLE, Message([Quad(S, P, literal("1", datatype=f"{XSD}integer"))]), b""
     b"PREFIX ex: <http://example.org/>\nPREFIX : <http://example.org/MESSAGE/>\n\n:s ex:p 1 .\n"),
    (TRIG, Message([Quad(Term("_:b"), iri(f"{RDF}type"), triple(S, P, S), P)]), b""
     b"PREFIX ex: <http://example.org/>\nPREFIX : <http://example.org/MESSAGE/>\n\n"
     b"ex:p {\n    _:b a <<( :s ex:p :s )>> .\n}\n"),
    (NDJSON_LD, MESSAGES[0], b"{}"),
    (NDJSON_LD, Message([Quad(P, iri("urn:p"), literal("x"))]), b""
     b'{"@context":{"ex":"http://example.org/"},"@id":"ex:p","urn:p":"x"}'),
    (NDJSON_LD, Message([Quad(P, iri("ex:p"), literal("x"))]), b'{"@id":"http://example.org/p","ex:p":"x"}'),
    (YAML_LD, MESSAGES[0], b"{}\n"),
    (YAML_LD, Message([Quad(P, P, literal("x"))]), b""
     b'"@context":\n  "ex": "http://example.org/"\n"@id": "ex:p"\n"ex:p": "x"\n'),
    (RDF_XML, MESSAGES[0], b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'),
    (JELLY, MESSAGES[0], b"\x0a\x10\x0a\x0e\x10\x02\x48\xa0\x1f\x50\x96\x01\x58\x20\x70\x04\x78\x01"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "message", "document"), DOCUMENTS)
def test_documents(format: Format, message: Message, document: bytes) -> None:
    for kind in KINDS:
        if kind.format is format and kind.syntax.triple_terms | (format is not TRIG):
            assert document_of(kind, message) == document


@pytest.mark.parametrize("flat", [False, True])
def test_jelly_documents_are_frames_of_any_stream_with_their_options(flat: bool) -> None:
    options = JellyOptions(logical_type=LogicalType.FLAT_QUADS if flat else LogicalType.DATASETS)
    encoder = encoder_for(JELLY, JELLY.own, EncoderOptions(PREFIXES, own=options))
    frames = [delimited(encoder.encode_document(message)) for message in MESSAGES]
    for start in (0, 3):
        found = read([b"".join(frames[start:])], KIND_OF_JELLY, shared_labels=False)
        assert found.error is None
        assert isomorphic(found.messages, MESSAGES[start:])


@each_kind
def test_what_a_format_cannot_write_is_no_document_either(kind: Kind) -> None:
    """The error names the message among those that were asked for."""
    refused = Message(
        [Quad(S, P, triple(S, P, S), S), Quad(S, P, literal("x", language="ar", direction="rtl"))]
    )
    encoder = new_encoder(kind)
    encoder.encode_document(Message())
    if (
        kind.format.graphs
        and kind.syntax.triple_terms
        and kind.syntax.directions
        and kind.format is not JELLY
    ):
        assert (
            to_message(
                ox.parse(
                    encoder.encode_document(refused),
                    format=ox.RdfFormat.from_media_type(kind.format.media_type),
                )
            )
            == refused
        )
    else:
        with pytest.raises(UnsupportedByFormat, match=r"^message 2: "):
            encoder.encode_document(refused)
        with pytest.raises(UnsupportedByFormat, match=r"^message 3: "):
            encoder.encode(refused)

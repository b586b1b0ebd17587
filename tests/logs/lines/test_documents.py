"""Documents that are taken as they are: what a decoder reads of them is the same, and it refuses none of them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.errors import LimitExceeded, LogError
from construct_messages.formats import N_QUADS, N_TRIPLES, Format
from construct_messages.labels import Labels
from construct_messages.logs import DecoderOptions, read_document
from construct_messages.logs.lines.documents import as_it_is, decoded
from construct_messages.message import of_lines
from construct_messages.terms import Term, number
from tests.support.strategies import messages

UNIQUE = Labels("bcdfghjkmnpq")
"""Labels as this package makes them, which readers keep."""

FORMATS = (N_QUADS, N_TRIPLES)
LINE = b'<urn:s> <urn:p> "o"@en .\n'

Outcome = tuple[list[tuple[object, ...]], str, str]


def outcome(read: Iterable[Message]) -> Outcome:
    """The statements of each message in order, as lines and as terms; and the error."""
    found: list[tuple[object, ...]] = []
    try:
        for message in read:
            found.append((message.lines, tuple(message), len(message), message.quads))
    except (LogError, LimitExceeded) as error:
        return found, type(error).__name__, str(error)
    return found, "", ""


def agree(document: bytes, format: Format = N_QUADS, **given: object) -> bool:
    """Asserts that both ways return the same; returns whether the document was taken as it is."""
    options = DecoderOptions(comments=False, labels=Labels("x"), **given)  # type: ignore[arg-type] # each by its name
    fast = outcome(read_document(format, document, options))
    assert fast == outcome(decoded(format, document, options))
    return as_it_is(format, document, options) is not None


BROKEN = (
    r'#|# @message\n|.|<|>|"|\|_:|_:b|MESSAGE\n|VERSION "1.2"\n|VERSION "1.2-messages"\n|@en'
    "|@en--ltr|^^|<<( | )>>|<urn:a b>|<r>"
).replace(r"\n", "\n")

PIECES = st.sampled_from(
    [
        *(each.encode() for each in BROKEN.split("|")),
        *(b"\n", b"\r\n", b"\r", b" ", b"\x00", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xe2\x80\xa8"),
        *(LINE, LINE.replace(b" .", b" <urn:g> ."), LINE.replace(b" .", b" . # a comment")),
    ]
)


PLAIN = st.lists(
    st.builds(
        Quad,
        st.sampled_from([iri("urn:s"), blank("a"), iri("http://example.org/é")]),
        st.sampled_from([iri("urn:p"), iri("http://example.org/p#q")]),
        st.sampled_from(
            [*map(number, "12345"), literal("é", language="fr"), literal('"_:a"'), blank("a")]
        ),
        st.sampled_from([None, None, iri("urn:g"), blank("g")]),
    ),
    min_size=1,
).map(Message)
"""Messages that have triple terms and odd characters nowhere."""


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """The N-Quads of a message; sometimes with labels that are unique, joined, repeated, cut or damaged."""
    log = draw(messages() | st.lists(PLAIN, min_size=1, max_size=2))
    if draw(st.sampled_from([True, True, False])):
        log = [message.map_blanks(UNIQUE.in_log) for message in log]
    document = b"".join(message.lines for message in log[: draw(st.sampled_from([1, 1, 2]))])
    if draw(st.booleans()):
        return document
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(document)))
        end = draw(st.sampled_from([place, place, place + 1, len(document)]))
        document = document[:place] + draw(PIECES | st.just(b"")) + document[end:]
    return document.replace(b"\n", draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"])))


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(document=documents(), shared=st.sampled_from([None, None, True, False]))
@example(document=LINE + LINE, shared=None)  # a message is a set
@example(document=LINE.rstrip(), shared=None)
@example(document=b"\xef\xbb\xbf" + LINE, shared=None)
@example(document=b"_:bcdfghjkmnpq_db0 <urn:p> _:b .\n", shared=None)
@example(document=b"_:bcdfghjkmnpq_db0 <urn:p> <urn:o> .\n", shared=False)
def test_both_ways_agree(format: Format, document: bytes, shared: bool | None) -> None:
    event(f"taken as it is: {agree(document, format, shared_labels=shared)}")


@pytest.mark.parametrize("least", [1, len(LINE) - 1, len(LINE), len(LINE) + 1])
@pytest.mark.parametrize("document", [LINE, LINE[:-1], LINE + LINE, LINE[:-1] + b"\r\n"])
def test_sizes_are_bounded_alike(document: bytes, least: int) -> None:
    agree(document, message_bytes=least)


TAKEN = [
    LINE,
    LINE[:-1],
    LINE + LINE.replace(b"en", b"fr"),
    LINE.replace(b" .", b" <urn:g> ."),
    b"<urn:s> <urn:p> _:bcdfghjkmnpq_m1b0 .\n",
    b'<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> _:bcdfghjkmnpq_db .\n',
]
DECODED = [
    b"",
    b"\n",
    LINE + LINE,
    LINE.replace(b" .", b"  ."),
    LINE.replace(b"\n", b"\r\n"),
    LINE + b"# a comment\n",
    LINE + b"MESSAGE\n",
    b"<urn:s> <urn:p> _:b .\n",
    b'<urn:s> <urn:p> "a _:b" .\n',  # as far as is looked
    b"<urn:s> <urn:p> <<( <urn:s> <urn:p> <urn:o> )>> .\n",
    b'<urn:s> <urn:p> "o"@en--ltr .\n',
    b"<urn:s> <urn:p> <r> .\n",
    b"<urn:s> <urn:p> <urn:o>",
    LINE[:-3],
]


@pytest.mark.parametrize("document", TAKEN)
def test_documents_that_are_taken_as_they_are(document: bytes) -> None:
    assert agree(document)


@pytest.mark.parametrize("document", DECODED)
def test_documents_that_are_decoded(document: bytes) -> None:
    assert not agree(document)


def test_triples_have_no_graphs() -> None:
    assert not agree(LINE.replace(b" .", b" <urn:g> ."), N_TRIPLES)


@given(sent=messages())
def test_lines_are_read_when_quads_are_asked_for(sent: list[Message]) -> None:
    for message in sent:
        later = of_lines(message.lines)
        assert (len(later), later.lines) == (len(message), message.lines)
        renamed = of_lines(message.lines).map_blanks(lambda node: Term(f"{node}2"))
        assert renamed == message.map_blanks(lambda node: Term(f"{node}2"))
        assert list(of_lines(message.lines).statements) == list(message.statements)
        assert (list(later), later.lines, len(later)) == (
            list(message),
            message.lines,
            len(message),
        )
        assert later == message

"""Documents that are taken as they are: what a decoder reads of them is the same, and it refuses none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from construct_messages import Message
from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import DecoderOptions, document_lines, read_document
from construct_messages.logs.lines.decoder import LinesDecoder, decoded
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, VARIANTS, Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import of_lines
from construct_messages.rdf.terms import Term
from tests.support.logs.kinds import cut
from tests.support.logs.lines import LINE, documents
from tests.support.strategies import messages

FORMATS = (N_QUADS, N_TRIPLES)

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
    with_end = document if document.endswith(b"\n") else document + b"\n"
    return bool(document) and document_lines(format, [with_end], options) is not None


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


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(some=st.lists(documents(), min_size=1, max_size=4), shared=st.sampled_from([None, False]))
@example(some=[LINE, LINE], shared=None)  # which is no repetition
@example(some=[LINE, LINE[:-1], LINE], shared=None)
@example(some=[LINE, b"", LINE], shared=None)
@example(some=[LINE, b"\xc3", b"\xa9\n"], shared=None)
def test_several_together_are_as_one_by_one(
    format: Format, some: list[bytes], shared: bool | None
) -> None:
    options = DecoderOptions(comments=False, shared_labels=shared)
    together = document_lines(format, some, options)
    event(f"taken as they are: {together is not None}")
    if together is not None:
        assert [[each] for each in together] == [
            [message.lines for message in decoded(format, document, options)] for document in some
        ]


def test_documents_that_are_taken_together() -> None:
    taken = [document for document in TAKEN if document.endswith(b"\n")] * 2
    assert document_lines(N_QUADS, taken, DecoderOptions()) == taken
    for document in DECODED:
        assert document_lines(N_QUADS, [*taken, document, *taken], DecoderOptions()) is None


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


# --- logs whose messages keep their lines ---------------------------------------------------------------------------


def log_outcome(
    pieces: Iterable[bytes], format: Format, syntax: Syntax | None, **given: Any
) -> tuple[Outcome, int, int]:
    """What is read of a log: the messages and the error, the last delimiter, and the number of the open message."""
    decoder = LinesDecoder(format, syntax, DecoderOptions(labels=Labels("x"), **given))

    def read() -> Iterator[Message]:
        for piece in pieces:
            yield from decoder.feed(piece)
        yield from decoder.close()

    return outcome(read()), decoder.delimiter, decoder._number


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@settings(max_examples=settings().max_examples // 4)
@given(
    some=st.lists(documents(), max_size=6),
    syntax=st.sampled_from([*VARIANTS, None]),
    delimiter=st.sampled_from(["# @message\n", "MESSAGE\n", "\n#@message\n"]),
    announced=st.sampled_from(["", 'VERSION "1.2-messages"\n']),
    message_bytes=st.sampled_from([10, 60, 1000]),
    data=st.data(),
)
@example(
    some=[LINE] * 4,
    syntax=VARIANTS[0],
    delimiter=VARIANTS[0].delimiter,
    announced="",
    message_bytes=1000,
    data=None,
)
def test_logs_are_read_alike(
    format: Format,
    some: list[bytes],
    syntax: Syntax | None,
    delimiter: str,
    announced: str,
    message_bytes: int,
    data: st.DataObject | None,
) -> None:
    log = announced.encode() + b"".join(delimiter.encode() + each for each in some)
    places = data.draw(st.lists(st.integers(0, len(log)), max_size=3)) if data is not None else []
    pieces = list(cut(log, places))
    kept, taken_apart = (
        log_outcome(pieces, format, syntax, message_bytes=message_bytes, keep_lines=keep_lines)
        for keep_lines in (True, False)
    )
    assert kept == taken_apart


def test_messages_of_a_log_keep_their_lines() -> None:
    decoder = LinesDecoder(N_QUADS, VARIANTS[0], DecoderOptions(keep_lines=True))
    delimiter = VARIANTS[0].delimiter.encode()
    read = [*decoder.feed(delimiter + (LINE + delimiter) * 4), *decoder.close()]
    assert [message.lines for message in read] == [LINE] * 4 + [b""]
    assert [message._held for message in read] == [None, LINE, LINE, LINE, None]

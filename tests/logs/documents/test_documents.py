"""One message is one document in every format, and back; what is no document is an error."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import Message, Quad, iri, literal
from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.documents import (
    DocumentReader,
    document_format,
    document_syntax,
    document_writer,
)
from construct_messages.rdf.formats import FORMATS, VARIANTS, Format, Syntax, content_type
from tests.support.strategies import messages
from tests.support.streams import numbered

OPTIONS = DecoderOptions(comments=False)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(drawn=messages())
def test_documents_are_read_as_they_were_written(format: Format, drawn: list[Message]) -> None:
    write, reader = document_writer(format), DocumentReader(format, OPTIONS)
    for number, message in enumerate(drawn, 1):
        try:
            document = write(message)
        except UnsupportedByFormat:
            continue
        assert reader.read(document, number).isomorphic(message)
        assert write(message) == document  # it depends on its message alone


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_no_bytes_are_the_empty_message(format: Format) -> None:
    """Brokers carry values of no bytes, and so do frames and events."""
    assert DocumentReader(format, OPTIONS).read(b"") == Message()


@pytest.mark.parametrize(
    "media_type",
    [name for format in FORMATS for name in (*format.document_types, *format.media_types)],
)
def test_media_types_of_documents(media_type: str) -> None:
    format = document_format(f"{media_type}; charset=utf-8")
    assert media_type in (*format.document_types, *format.media_types)
    document = document_writer(format)(numbered(1))
    assert DocumentReader(format, OPTIONS).read(document) == numbered(1)


@pytest.mark.parametrize("content_type", ["", "text/html", "application/pdf; a=b", ";", "turtle"])
def test_other_media_types(content_type: str) -> None:
    with pytest.raises(UsageError, match="which is not read"):
        document_format(content_type)


def test_two_messages_are_no_document() -> None:
    log = b'VERSION "1.2-messages"\n<urn:s> <urn:p> 1 .\nMESSAGE\n<urn:s> <urn:p> 2 .\n'
    with pytest.raises(LogError, match="message 7: the document holds 2 messages"):
        DocumentReader(document_format("text/turtle"), OPTIONS).read(log, 7)


DELIMITED = [format for format in FORMATS if format.own is None]
"""The formats whose media types say how messages are delimited."""


@pytest.mark.parametrize("format", DELIMITED, ids=lambda format: format.name)
@given(syntax=st.sampled_from(VARIANTS), numbers=st.lists(st.integers(0, 9), max_size=3))
def test_a_media_type_that_declares_messages(
    format: Format, syntax: Syntax, numbers: list[int]
) -> None:
    """A document holds one message, whatever delimits the next one; the engine wrote the statements."""
    serialization = ox.RdfFormat.from_media_type(format.media_type)
    assert serialization is not None
    node = ox.NamedNode("urn:s")
    parts = [
        ox.serialize([ox.Triple(node, node, ox.Literal(str(number)))], format=serialization)
        for number in numbers
    ]
    delimiter = b"# @message\n" if syntax.label == "rdfm" else b"MESSAGE\n"
    document = delimiter.join(parts)
    declared = document_syntax(content_type(format, syntax), format)
    reader = DocumentReader(format, OPTIONS, declared)
    assert reader.lines([document]) is None
    if len(parts) > 1:
        with pytest.raises(LogError, match="message 4: the document holds 2 messages or more"):
            reader.read(document, 4)
    else:
        assert reader.read(document) == Message(
            Quad(iri("urn:s"), iri("urn:s"), literal(str(number))) for number in numbers
        )
    with pytest.raises(LogError, match="the document holds no message"):
        reader.read(b"# nothing\n")
    if syntax.label == "rdfm":  # a plain document's comments delimit nothing
        assert len(DocumentReader(format, OPTIONS).read(document)) == len(set(numbers))


@pytest.mark.parametrize("parameter", ["messages=other", "version=9-messages", "messages=1.2"])
def test_messages_of_an_unknown_syntax(parameter: str) -> None:
    for format in DELIMITED:
        with pytest.raises(UsageError, match="which is not read"):
            document_syntax(f"{format.media_type}; {parameter}", format)

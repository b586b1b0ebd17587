"""One message is one document in every format, and back; what is no document is an error."""

from __future__ import annotations

import pytest
from hypothesis import given

from construct_messages import Message
from construct_messages.documents import DocumentReader, document_format, document_writer
from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.formats import FORMATS, Format
from construct_messages.logs import DecoderOptions
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

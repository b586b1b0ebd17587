"""Converts one message to one document, and back: the value of a record, a frame, an event or the body of a request.

RDF Messages, section 3: the same blank node label in two documents is two nodes. Each format's record in `formats`
names its codec, so that a new format needs no change here. No I/O: no JSON-LD context is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from construct_messages.logs import (
    DecoderOptions,
    EncoderOptions,
    document_lines,
    encoder_for,
    read_document,
)
from construct_messages.rdf.errors import LogError, UsageError, shown
from construct_messages.rdf.formats import FORMATS, LABELLED, RDFM, Format, Syntax
from construct_messages.rdf.formats.lookup import asks_for_messages, syntax_of
from construct_messages.rdf.formats.media_types import read_media_type
from construct_messages.rdf.message import Message


def document_format(content_type: str) -> Format:
    """Returns the format of a document by its media type, whose parameters are ignored.

    Raises:
        UsageError: an unknown media type.

    >>> document_format("application/ld+json; charset=utf-8").name
    'NDJSON-LD'
    """
    media_type, _ = read_media_type(content_type) or ("", {})
    for format in FORMATS:
        if media_type in (*format.document_types, *format.media_types):
            return format
    raise UsageError(
        f"the media type of a document is {shown(content_type)!a}, which is not read",
        hint="ask for one of " + ", ".join(format.document_type for format in FORMATS),
    )


def document_syntax(content_type: str, format: Format) -> Syntax | None:
    """Returns the syntax of messages that the media type of a document declares; other parameters are ignored.

    Args:
        content_type: the media type.
        format: its format.

    Returns:
        None: the media type declares none, or the format delimits messages by itself.

    Raises:
        UsageError: an unknown syntax.

    >>> from construct_messages.rdf.formats import TRIG
    >>> document_syntax("application/trig; messages=rdfm", TRIG) is RDFM, document_syntax("application/trig", TRIG)
    (True, None)
    """
    media_type, parameters = read_media_type(content_type) or ("", {})
    if format.own is not None:
        return None
    syntax = syntax_of(parameters)
    if syntax is None and asks_for_messages(media_type, parameters):
        raise UsageError(
            f"the messages of a document are declared by {shown(content_type)!a}, which is not read",
            hint="choose messages=rdfm (with version=1.2, 1.2-basic or 1.1), or one of "
            + ", ".join(f"version={syntax.label}" for syntax in LABELLED),
        )
    return syntax


def document_writer(format: Format) -> Callable[[Message], bytes]:
    r"""Returns the function that writes documents of a format; see `Encoder.encode_document`.

    >>> from construct_messages.rdf.formats import TURTLE
    >>> document_writer(TURTLE)(Message())
    b''
    """
    encoder = encoder_for(format, format.own or RDFM, EncoderOptions(triple_terms=True))
    return encoder.encode_document


@dataclass(frozen=True)
class DocumentReader:
    """Reads the documents of one format.

    Args:
        format: the format of the documents.
        options: see `DecoderOptions`; comments delimit messages only if the syntax says so.
        syntax: the syntax of messages that their media type declares; None: none, see `document_syntax`.

    >>> from construct_messages.rdf.formats import NDJSON_LD
    >>> options = DecoderOptions(contexts={"urn:c": {"p": "urn:p"}}, context="urn:c", comments=False)
    >>> DocumentReader(NDJSON_LD, options).read(b'{"@id": "urn:s", "p": "x"}')
    <Message of 1 quad: <urn:s> <urn:p> "x" .>
    """

    format: Format
    options: DecoderOptions
    syntax: Syntax | None = None

    def read(self, document: bytes, number: int = 1) -> Message:
        """Returns the message of a document. In every format, an empty document is a message without statements.

        Args:
            document: the bytes.
            number: the number of the message, from 1, for errors.

        Raises:
            LogError: the document is malformed, or does not hold exactly one message.
            LimitExceeded: the message is too large.
        """
        if not document:
            return Message()
        try:
            messages = self.messages(document)
            message = next(messages, None)
            another = next(messages, None)
        except LogError as error:
            error.number = number
            raise
        if another is not None or (message is None and self.syntax is not None):
            count = "no message" if message is None else "2 messages or more"
            raise LogError(
                f"the document holds {count}", number=number, hint="send one message in each"
            )
        return Message() if message is None else message

    def lines(self, documents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Returns canonical N-Quads lines for the message of each document; None: read them one by one, by `read`.

        Args:
            documents: at least one.
        """
        if self.syntax is not None:
            return None
        return document_lines(self.format, documents, self.options)

    def messages(self, document: bytes) -> Iterator[Message]:
        """Yields the messages of a document that may be a log, by its media type or because it begins with a version
        label.

        Raises:
            LogError, LimitExceeded: see `read`.
        """
        return read_document(self.format, document, self.options, self.syntax)

"""Reads what a stream sends as elements: a document of its own each, or a log. No HTTP.

RDF Messages, section 3: the same label in two documents is two nodes. No JSON-LD context is fetched.
"""

from __future__ import annotations

import time
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyoxigraph as ox

from construct_messages.errors import LogError, SourceError, shown
from construct_messages.formats import (
    FORMATS,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    TRIG,
    TURTLE,
    Format,
)
from construct_messages.formats.media_types import ACTIVITY_JSON, JSON, read_media_type
from construct_messages.labels import Labels
from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.lines.texts import to_text
from construct_messages.logs.rdfxml.decoder import read_document
from construct_messages.message import Message, Quad
from construct_messages.streams.contexts import implied_context
from construct_messages.streams.element import GENERATED_AT, Element, generated_at
from construct_messages.streams.vocabulary import PROFILE

_PARSED: Final = {
    N_QUADS: ox.RdfFormat.N_QUADS,
    TRIG: ox.RdfFormat.TRIG,
    N_TRIPLES: ox.RdfFormat.N_TRIPLES,
    TURTLE: ox.RdfFormat.TURTLE,
}
_GENERATED: Final = f"<{GENERATED_AT}>".encode()
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


def format_of_documents(content_type: str) -> Format:
    """The format that the media type of a document names.

    Raises:
        SourceError: none is known by that name.

    >>> format_of_documents("application/ld+json; charset=utf-8").name
    'NDJSON-LD'
    """
    media_type, _ = read_media_type(content_type) or ("", {})
    if media_type in (JSON, ACTIVITY_JSON):
        return NDJSON_LD
    for format in FORMATS:
        if media_type in (format.document_type, *format.media_types):
            return format
    raise SourceError(
        f"the stream sends {shown(content_type)!a}, which is not read",
        hint="choose another transport, or ask for one of "
        + ", ".join(format.document_type for format in FORMATS),
    )


_PROFILE: Final = f'; profile="{PROFILE}"'
FETCHED: Final = (N_QUADS, TRIG, TURTLE, N_TRIPLES, NDJSON_LD, RDF_XML)
"""The formats of pages and notifications, best first."""

ACCEPT_PAGES: Final = ", ".join(
    f"{format.document_type}{_PROFILE if format in _PARSED else ''};q={1 - place / 10:.1f}"
    for place, format in enumerate(FETCHED)
)
"""Asks for pages of Linked Data Event Streams, in the TREE profile where a server keeps to it."""


def document_of(
    headers: Mapping[str, str],
    context: str | None,
    base: str,
    contexts: Mapping[str, Any],
    most: int,
) -> Documents:
    """Returns the reader for the document of a response.

    Args:
        headers: of the response.
        context: the IRI of the JSON-LD context that its header Link names; None: there is none.
        base: its URL.
        contexts: JSON-LD contexts by their IRI.
        most: how large it may be.

    Raises:
        SourceError: its format is not known.
    """
    said = headers.get("Content-Type", "")
    media_type, parameters = read_media_type(said) or ("", {})
    # JSON-LD 1.1, section 6.1: a document that is JSON-LD says its context itself
    context = context if media_type == JSON else implied_context(media_type, parameters)
    return Documents(format_of_documents(said), base, contexts, context, most)


def element_of(stream: str, sequence: int, message: Message) -> Element:
    """A message that was received now as an element.

    >>> element_of("https://example.org/streams/a", 7, Message()).sequence
    7
    """
    nquads = to_text(message).encode()
    generated = generated_at(message) if _GENERATED in nquads else None
    return Element(stream, sequence, time.time_ns() // 1000, nquads, generated)


@dataclass(frozen=True)
class Documents:
    """The options for reading documents of a stream.

    Args:
        format: of the documents.
        base: the IRI that relative IRIs resolve against.
        contexts: JSON-LD contexts by their IRI, as parsed JSON.
        context: the IRI of the context that holds for all of them, as a Link header names it; None: there is none.
        message_bytes: how large one may be.

    >>> documents = Documents(NDJSON_LD, "https://example.org/", {"urn:c": {"p": "urn:p"}}, "urn:c", 1000)
    >>> documents.read(b'{"@id": "urn:s", "p": "x"}', 1)
    <Message of 1 quad: <urn:s> <urn:p> "x" .>
    """

    format: Format
    base: str
    contexts: Mapping[str, Any]
    context: str | None
    message_bytes: int

    def read(self, document: bytes, sequence: int) -> Message:
        """The message that a document is.

        Args:
            document: the bytes.
            sequence: of its element, for errors.

        Raises:
            LogError: it is malformed, or more than one message.
            LimitExceeded: it is too large.
        """
        try:
            messages = self._messages(document)
        except LogError as error:
            error.number = sequence
            raise
        if len(messages) > 1:
            raise LogError(f"a document holds {len(messages)} messages", number=sequence)
        return (
            messages[0] if messages else Message()
        )  # a document without a statement may be no bytes

    def quads(self, document: bytes, *, in_order: bool) -> list[Quad]:
        """Returns the quads of a document with any number of messages.

        Args:
            document: the bytes.
            in_order: whether a statement that stands in it twice is to come twice, where it has no messages.

        Raises:
            LogError: it is malformed.
            LimitExceeded: it is too large.
        """
        messages = self._messages(document)
        if in_order and len(messages) == 1 and self.format in _PARSED:
            return self._parsed(document)
        return [quad for message in messages for quad in message]

    def _parsed(self, document: bytes) -> list[Quad]:
        """The statements of a document that was read before, so that it is known to be well-formed."""
        labels = Labels()
        parsed = ox.parse(document, format=_PARSED[self.format], base_iri=self.base)
        return [read for quad in parsed for read in to_message([quad], labels.in_log)]

    def _messages(self, document: bytes) -> list[Message]:
        if self.format == RDF_XML and document:
            return [read_document(document, base=self.base, message_bytes=self.message_bytes)]
        options = DecoderOptions(
            base=self.base,
            contexts=self.contexts,
            context=self.context,
            message_bytes=self.message_bytes,
            labels=Labels(),
            comments=False,
        )
        decoder = decoder_for(self.format, options=options)
        if self.format == NDJSON_LD:
            # between the tokens of JSON a line end is a blank, and within them there is none
            document = document.removeprefix(BOM_UTF8).translate(_LINE_ENDS).strip()
            if document.startswith(b"["):
                document = b'{"@included":' + document + b"}"
        return [*decoder.feed(document), *decoder.close()]

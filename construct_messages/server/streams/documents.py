"""Serializes elements: one as a document; several as a message log, or as JSON-LD of LDN for RDF streams."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from construct_messages.errors import NotAcceptable, UnsupportedByFormat
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.documents import document_writer
from construct_messages.rdf.formats import N_QUADS, NDJSON_LD, RDFM, TRIG, Format, Syntax
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import XSD
from construct_messages.rdf.vocabulary import PROV
from construct_messages.streams.element import Element, messages_of
from construct_messages.streams.reading import ElementLines


class ElementDocuments:
    """Elements as documents of one format."""

    def __init__(self, format: Format) -> None:
        self.format, self._write = format, document_writer(format)

    def encode(self, elements: Sequence[Element]) -> Iterator[bytes]:
        """Returns the documents of elements, in order."""
        if self.format == N_QUADS:  # a row of the store is already such a document
            return (element.nquads + b"\n" if element.nquads else b"" for element in elements)
        return map(self._write, messages_of(elements))


_CARRY_ALL: Final = (N_QUADS.document_type, TRIG.document_type)
_NUMBER: Final = re.compile(r"message \d+: ")


def not_carried(error: UnsupportedByFormat) -> NotAcceptable:
    """Returns the error for a format that cannot carry a message, with the formats that carry every message.

    >>> print(not_carried(UnsupportedByFormat("message 1: Turtle has no named graphs")))
    Turtle has no named graphs
      hint: ask for application/n-quads or application/trig, which carry every message
    """
    # the number of messages that an encoder has written is meaningless to a client
    text, hint = (
        _NUMBER.sub("", error.message, count=1),
        f"ask for {' or '.join(_CARRY_ALL)}, which carry every message",
    )
    return NotAcceptable(text, hint=hint, offered=_CARRY_ALL)


def negotiate_document(
    element: Element,
    accept: str | None,
    formats: Mapping[str, Format],
    documents: Callable[[Format], ElementDocuments],
) -> tuple[str, bytes]:
    """Returns an element with its media type: the client's preferred one of the formats, best first, that carry it."""
    offered, refused = list(formats), None
    while True:
        try:
            media_type = prefer(accept, offered)
            (document,) = documents(formats[media_type]).encode([element])
            return media_type, document
        except UnsupportedByFormat as error:
            refused = refused or error
            offered.remove(media_type)
        except NotAcceptable:
            if refused is None:
                raise
            raise not_carried(refused) from refused


async def log(
    elements: AsyncGenerator[list[Element]], format: Format, syntax: Syntax
) -> AsyncGenerator[bytes]:
    """Returns elements as a message log."""
    encoder = _encoder(format, syntax)
    held = encoder.start()
    async for page in elements:
        yield held + b"".join(map(encoder.encode, messages_of(page)))
        held = b""
    yield held + encoder.finish()


def is_log_as_stored(format: Format, syntax: Syntax) -> bool:
    """Returns whether rows of a store form a log without being parsed: N-Quads of a version that allows every
    message.
    """
    return format == N_QUADS and syntax.triple_terms and syntax.directions


async def stored_log(lines: AsyncGenerator[ElementLines], syntax: Syntax) -> AsyncGenerator[bytes]:
    """Returns the same log as `log`, if `is_log_as_stored`. Between the lines of the elements is the delimiter of the
    syntax.
    """
    encoder = _encoder(N_QUADS, syntax)
    delimiter = syntax.delimiter.encode()
    before, after = (delimiter, b"") if syntax.delimiter_first else (b"", delimiter)
    held = encoder.start()
    async with aclosing(lines):
        async for block in lines:
            yield b"".join((held, before, block.nquads, after))
            held = b""
    yield held + encoder.finish()


def _encoder(format: Format, syntax: Syntax) -> Encoder:
    # the version label of later messages is unknown
    return encoder_for(format, syntax, EncoderOptions(triple_terms=True))


async def json_ld(
    elements: AsyncGenerator[list[Element]], iri_of: Callable[[Element], str]
) -> AsyncGenerator[bytes]:
    """Returns elements as the JSON-LD document of LDN for RDF streams: a named graph for each, with its storage time.

    A message with named graphs cannot be distinguished from others in the document; a log can carry it.
    """
    encoder = encoder_for(NDJSON_LD, NDJSON_LD.own or RDFM)
    context = {"prov": PROV, "xsd": XSD}
    held = b'{"@context": %s,\n "@graph": [\n  ' % _json(context)
    async for page in elements:
        nodes = []
        for element, message in zip(page, messages_of(page), strict=True):
            time = {
                "@type": "xsd:dateTime",
                "@value": element.generated or element.time.isoformat(),
            }
            graph = _nodes(encoder.encode_document(message))
            nodes.append(
                b'{"@id": %s, "prov:generatedAtTime": %s, "@graph": [%s]}'
                % (_json(iri_of(element)), _json(time), graph)
            )
        yield held + b",\n  ".join(nodes)
        held = b",\n  "
    yield b"\n ]}\n" if held.startswith(b",") else held.rstrip() + b"]}\n"


class JsonLdDocument:
    """Writes the quads of messages as one JSON-LD document: a log encoder without message delimiters.

    >>> from construct_messages.rdf.message import Message, Quad
    >>> from construct_messages.rdf.terms import iri
    >>> document, message = JsonLdDocument(), Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))])
    >>> print((document.start() + document.encode(message) + document.finish()).decode(), end="")
    {"@graph": [
      {"@id":"urn:s","urn:p":{"@id":"urn:o"}}
     ]}
    """

    def __init__(self) -> None:
        self._encoder = encoder_for(NDJSON_LD, NDJSON_LD.own or RDFM)
        self._between = b"\n  "

    def start(self) -> bytes:
        """Returns the bytes before the first message."""
        return b'{"@graph": ['

    def encode(self, message: Message) -> bytes:
        """Returns the nodes of one message."""
        nodes = _nodes(self._encoder.encode_document(message))
        if not nodes:
            return b""
        between, self._between = self._between, b",\n  "
        return between + nodes

    def finish(self) -> bytes:
        """Returns the bytes after the last message."""
        return b"\n ]}\n"


def _nodes(document: bytes) -> bytes:
    """Returns the node objects of a message that is written without a context: one, several under `@included`, or
    none.
    """
    if document == b"{}":
        return b""
    return document[len(_INCLUDED) : -2] if document.startswith(_INCLUDED) else document


_INCLUDED: Final = b'{"@included":['


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()

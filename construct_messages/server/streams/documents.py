"""Elements as bytes: one as a document of its own; several as a message log, or as JSON-LD of LDN for RDF streams."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from typing import Final

from construct_messages.formats import N_QUADS, NDJSON_LD, RDFM, Format, Syntax
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.message import Message
from construct_messages.streams.element import Element
from construct_messages.streams.vocabulary import PROV
from construct_messages.terms import XSD

_REMEMBERED_BYTES: Final = 1 << 24


class Documents:
    """Elements as documents of one format; what many followers get at once is encoded once.

    Args:
        format: of the documents.
        prefixes: for the formats that have them.

    Attributes:
        is_text: whether they are UTF-8.
    """

    def __init__(self, format: Format, prefixes: dict[str, str] | None = None) -> None:
        self._encoder = encoder_for(format, format.own or RDFM, EncoderOptions(prefixes, triple_terms=True))
        # a row of the store is such a document already
        self._as_stored = format == N_QUADS
        self.is_text = not format.binary
        self._recent: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._bytes = 0

    def encode(self, element: Element) -> bytes:
        """One element.

        Raises:
            UnsupportedByFormat: the format cannot carry it.
        """
        if self._as_stored:
            return element.nquads + b"\n" if element.nquads else b""
        key = (element.stream, element.sequence, element.microseconds)
        if (known := self._recent.get(key)) is not None:
            return known
        document = self._encoder.encode_document(element.message)
        self._recent[key] = document
        self._bytes += len(document)
        while self._bytes > _REMEMBERED_BYTES:
            self._bytes -= len(self._recent.popitem(last=False)[1])
        return document


async def log(elements: AsyncGenerator[list[Element]], format: Format, syntax: Syntax) -> AsyncGenerator[bytes]:
    """Elements as a message log.

    Args:
        elements: pages of them, in order.
        format, syntax: of the log.

    Raises:
        UnsupportedByFormat: the format cannot carry one of them.
    """
    # nothing is known of messages to come
    encoder = encoder_for(format, syntax, EncoderOptions(triple_terms=True))
    encode = _stored_lines(syntax) if format == N_QUADS else _encoded(encoder)
    held = [encoder.start()]
    async for page in elements:
        held += map(encode, page)
        yield b"".join(held)
        held.clear()
    yield b"".join((*held, encoder.finish()))


def _encoded(encoder: Encoder) -> Callable[[Element], bytes]:
    return lambda element: encoder.encode(element.message)


def _stored_lines(syntax: Syntax) -> Callable[[Element], bytes]:
    """The plain encoder's lines of N-Quads, made of rows as they are; None where the version forbids some messages."""
    if not (syntax.triple_terms and syntax.directions):
        return _encoded(encoder_for(N_QUADS, syntax))
    delimiter = syntax.delimiter.encode()
    if syntax.delimiter_first:
        return lambda element: delimiter + (element.nquads + b"\n" if element.nquads else b"")
    return lambda element: (element.nquads + b"\n" if element.nquads else b"") + delimiter


async def json_ld(elements: AsyncGenerator[list[Element]], iri_of: Callable[[Element], str]) -> AsyncGenerator[bytes]:
    """Elements as the JSON-LD document of LDN for RDF streams: a named graph each, with the time when it was stored.

    A message with named graphs cannot be told apart from others in it; a log can carry it.

    Args:
        elements: pages of them, in order.
        iri_of: the IRI of an element.
    """
    encoder = encoder_for(NDJSON_LD, NDJSON_LD.own or RDFM)
    context = {"prov": PROV, "xsd": XSD}
    yield b'{"@context": %s,\n "@graph": [' % json.dumps(context).encode()
    between = b"\n  "
    async for page in elements:
        for element in page:
            time = element.generated or element.time.isoformat()
            node = {
                "@id": iri_of(element),
                "prov:generatedAtTime": {"@type": "xsd:dateTime", "@value": time},
                "@graph": _nodes(json.loads(encoder.encode_document(element.message))),
            }
            yield between + json.dumps(node, ensure_ascii=False).encode()
            between = b",\n  "
    yield b"\n ]}\n"


class JsonLdDocument:
    """Writes the quads of messages as one JSON-LD document: a log's encoder, whose messages cannot be told apart.

    >>> from construct_messages.message import Message, Quad
    >>> from construct_messages.terms import iri
    >>> document, message = JsonLdDocument(), Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))])
    >>> print((document.start() + document.encode(message) + document.finish()).decode(), end="")
    {"@graph": [
      {"@id": "urn:s", "urn:p": {"@id": "urn:o"}}
     ]}
    """

    def __init__(self) -> None:
        self._encoder = encoder_for(NDJSON_LD, NDJSON_LD.own or RDFM)
        self._between = b"\n  "

    def start(self) -> bytes:
        """What stands before the first message."""
        return b'{"@graph": ['

    def encode(self, message: Message) -> bytes:
        """The nodes of one message.

        Raises:
            UnsupportedByFormat: JSON-LD cannot carry it.
        """
        parts = []
        for node in _nodes(json.loads(self._encoder.encode_document(message))):
            parts += [self._between, json.dumps(node, ensure_ascii=False).encode()]
            self._between = b",\n  "
        return b"".join(parts)

    def finish(self) -> bytes:
        """What stands after the last message."""
        return b"\n ]}\n"


def _nodes(document: dict[str, object]) -> list[object]:
    included = document.get("@included")
    if isinstance(included, list) and document.keys() == {"@included"}:
        return included
    return [document] if document else []

"""Serializes descriptions in the negotiated format: JSON-LD unchanged, the others from its RDF."""

from __future__ import annotations

import json
from typing import Final

import pyoxigraph as ox

from construct_messages.logs import decoder_for
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.formats.documents import JSON_LD, TRIPLES
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.vocabulary import PREFIXES
from construct_messages.server.streams.resources import Document

_SERIALIZED: Final = {
    format.media_type: format.parsed_as for format in TRIPLES if format != JSON_LD
}
OFFERED: Final = (JSON_LD.media_type, *_SERIALIZED, JSON)
"""The media types of descriptions, best first."""


def serialize(document: Document, accept: str | None) -> tuple[str, bytes]:
    """Returns a description in the serialization that a client prefers.

    Args:
        document: the description as JSON-LD.
        accept: the value of the header; None: the request has none.

    Returns:
        The media type and the bytes.

    Raises:
        NotAcceptable: the client accepts none of `OFFERED`.

    >>> print(serialize({"@id": "urn:a", "urn:p": "x"}, "application/n-triples")[1].decode(), end="")
    <urn:a> <urn:p> "x" .
    """
    media_type = prefer(accept, OFFERED)
    if media_type not in _SERIALIZED:
        return media_type, json.dumps(document, ensure_ascii=False, indent=1).encode()
    decoder = decoder_for(NDJSON_LD)
    messages = [*decoder.feed(json.dumps(document).encode()), *decoder.close()]
    quads = [quad for message in messages for quad in message.to_pyoxigraph()]
    body = ox.serialize(quads, format=_SERIALIZED[media_type], prefixes=PREFIXES)
    assert body is not None  # without a file, `serialize` returns the text
    return media_type, body

"""RDF descriptions of the stream list and of streams, as JSON-LD. No I/O.

LDN for RDF streams (discovery). The list of a stream's elements is in `output_view.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyoxigraph as ox

from construct_messages.logs import decoder_for
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.formats.documents import JSON_LD, TRIPLES
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.vocabulary import CONTEXT, PREFIXES
from construct_messages.rdf.wire import ENDPOINTS, Property
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.streams.element import State

# --- rdf ------------------------------------------------------------------------------------------
# Serializes descriptions in the negotiated format: JSON-LD unchanged, the others from its RDF.

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


# --- resources ------------------------------------------------------------------------------------

Document = dict[str, Any]


def streams_document(iri: str, streams: Iterable[str]) -> Document:
    """Returns the list of all streams.

    Args:
        iri: the IRI of the list.
        streams: the IRIs of the streams.
    """
    return {"@context": CONTEXT, "@id": iri, "@type": "ldp:Container", "contains": list(streams)}


def stream_document(iris: StreamIris, state: State) -> Document:
    """Returns the description of a stream.

    Args:
        iris: the IRIs of the stream.
        state: the state of the stream.
    """
    retention = state.description.retention
    document: Document = {
        "@context": CONTEXT,
        "@id": iris.stream,
        "@type": ["rsp:Stream", "rsp:InputStream", "rsp:OutputStream"],
        "label": state.description.label or state.name,
        **iris.endpoints,
        Property.FIRST_SEQUENCE: state.first,
        Property.LAST_SEQUENCE: state.last,
    }
    kept = {
        "retainedElements": retention.count,
        "retainedSeconds": retention.seconds,
        "retainedBytes": retention.bytes,
    }
    return document | {name: bound for name, bound in kept.items() if bound is not None}


def published_document(iris: StreamIris, sequences: Sequence[int]) -> dict[str, object]:
    """Returns the answer to a publisher, about the elements of its messages.

    Args:
        iris: the IRIs of the stream.
        sequences: the sequences of the elements.
    """
    return {
        "first": iris.element(sequences[0]),
        "last": iris.element(sequences[-1]),
        "elements": len(sequences),
    }


@lru_cache
def published_text(iris: StreamIris) -> Callable[[int], str]:
    """Returns a function that writes `published_document` for one element; publishers are sent many of them.

    >>> published_text(StreamIris("urn:s"))(7)
    '{"first": "urn:s/output/7", "last": "urn:s/output/7", "elements": 1}'
    """
    element = json.dumps(iris.element(""))[:-1]
    return lambda sequence: (
        f'{{"first": {element}{sequence}", "last": {element}{sequence}", "elements": 1}}'
    )


def links(iris: StreamIris) -> dict[str, str]:
    """Returns the targets of the Link header of a stream, by their relation types.

    Relation types are IRIs unless they are registered (RFC 8288, section 2.1.2).
    """
    return {f"{PREFIXES[ENDPOINTS[name]]}{name}": iri for name, iri in iris.endpoints.items()}

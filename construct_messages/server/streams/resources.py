"""RDF descriptions of the stream list and of streams, as JSON-LD. No I/O.

LDN for RDF streams (discovery). The list of a stream's elements is in `output_view.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pyoxigraph as ox

from construct_messages.logs import decoder_for
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.formats.media_types import JSON, JSON_LD, TRIPLES
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.vocabulary import CONTEXT, PREFIXES
from construct_messages.rdf.wire import ENDPOINTS, Parameter, Property
from construct_messages.streams.element import State

# --- addresses ------------------------------------------------------------------------------------
# The IRIs of streams and of their resources, whose paths are below that of the stream.

ROOT = "/streams"
"""The path of the stream list."""


class StreamIris(NamedTuple):
    """The IRIs of one stream; `service` is the URL of the gRPC service, if it is started and its URL is known.

    >>> StreamIris("https://example.org/streams/a").element(7)
    'https://example.org/streams/a/output/7'
    >>> StreamIris("https://example.org/streams/a").socket
    'wss://example.org/streams/a/socket'
    >>> StreamIris("https://example.org/streams/a", "grpcs://example.org").grpc
    'grpcs://example.org/a'
    """

    stream: str
    service: str | None = None

    @property
    def input(self) -> str:
        """The IRI of the inbox, which accepts elements."""
        return f"{self.stream}/input"

    @property
    def output(self) -> str:
        """The IRI of the output, the list of elements."""
        return f"{self.stream}/output"

    @property
    def inbox(self) -> str:
        """The IRI of the inbox of Linked Data Notifications, which accepts and lists elements."""
        return f"{self.stream}/inbox"

    @property
    def events(self) -> str:
        """The IRI of server-sent events."""
        return f"{self.stream}/events"

    @property
    def socket(self) -> str:
        """The IRI of the WebSocket, which pushes and accepts elements."""
        return f"ws{self.stream.removeprefix('http')}/socket"

    @property
    def grpc(self) -> str | None:
        """The URL of the stream as a topic of the gRPC service, in the form that clients of this package use."""
        return None if self.service is None else f"{self.service}/{self.stream.rpartition('/')[2]}"

    @property
    def ldes(self) -> str:
        """The root of the Linked Data Event Stream."""
        return f"{self.stream}/ldes"

    @property
    def query(self) -> str:
        """The IRI at which queries over the stream are registered."""
        return f"{self.stream}/query"

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The IRIs of the endpoints, by their properties in descriptions."""
        named: dict[str, str] = {
            Property.INBOX: self.inbox,
            Property.INPUT: self.input,
            Property.LOG_INPUT: self.input,
            Property.OUTPUT: self.output,
            Property.EVENTS: self.events,
            Property.SOCKET: self.socket,
            Property.LDES: self.ldes,
            Property.QUERY: self.query,
        }
        return named if self.grpc is None else named | {str(Property.GRPC): self.grpc}

    @property
    def event_stream(self) -> str:
        """The Linked Data Event Stream itself, which its root describes."""
        return f"{self.ldes}#stream"

    def ldes_page(self, name: str) -> str:
        """Returns the IRI of a page of the Linked Data Event Stream."""
        return f"{self.ldes}/{name}"

    def element(self, sequence: int | str) -> str:
        """Returns the IRI of one element."""
        return f"{self.output}/{sequence}"

    def elements(self, sequences: Sequence[int]) -> str:
        """Returns the IRI of a log of consecutive elements, which never change.

        >>> StreamIris("https://example.org/streams/a").elements(range(12, 14))
        'https://example.org/streams/a/output?after=11&before=14'
        """
        bounds = (Parameter.AFTER, sequences[0] - 1), (Parameter.BEFORE, sequences[-1] + 1)
        return f"{self.output}?{urlencode(bounds)}"


# --- rdf ------------------------------------------------------------------------------------------
# Serializes descriptions in the negotiated format: JSON-LD unchanged, the others from its RDF.

_SERIALIZED: Final = {
    format.media_type: format.parsed_as for format in TRIPLES if format != JSON_LD
}
OFFERED: Final = (JSON_LD.media_type, *_SERIALIZED, JSON)
"""The media types of descriptions, best first."""


def serialize(document: Document, accept: str | None) -> tuple[str, bytes]:
    """Returns a description in the serialization that a client prefers.

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
    """Returns the list of all streams."""
    return {"@context": CONTEXT, "@id": iri, "@type": "ldp:Container", "contains": list(streams)}


def stream_document(iris: StreamIris, state: State) -> Document:
    """Returns the description of a stream."""
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
    """Returns the answer to a publisher, about the elements of its messages."""
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

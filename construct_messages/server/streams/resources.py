"""RDF descriptions of the stream list and of streams, as JSON-LD. No I/O.

LDN for RDF streams (discovery). The list of a stream's elements is in `listing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from construct_messages.rdf.vocabulary import CONTEXT, PREFIXES
from construct_messages.rdf.wire import ENDPOINTS, Property
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.streams.element import State

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

"""RDF descriptions of streams: their list, a stream, the list of its elements. As JSON-LD, without I/O.

Linked Data Notifications, section 3.3.2 (listing); LDN for RDF streams (discovery).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from construct_messages.server.streams.addresses import StreamIris
from construct_messages.streams.element import State
from construct_messages.streams.vocabulary import CM, CONTEXT, LDP, RSP

Document = dict[str, Any]

LISTED: Final = 1000
"""How many elements a page of the list has."""


def streams_document(iri: str, streams: Iterable[str]) -> Document:
    """The list of all streams.

    Args:
        iri: of the list.
        streams: their IRIs.
    """
    return {"@context": CONTEXT, "@id": iri, "@type": "ldp:Container", "contains": list(streams)}


def stream_document(iris: StreamIris, state: State) -> Document:
    """The description of a stream.

    Args:
        iris: of the stream.
        state: where it stands.
    """
    retention = state.description.retention
    document: Document = {
        "@context": CONTEXT,
        "@id": iris.stream,
        "@type": ["rsp:Stream", "rsp:InputStream", "rsp:OutputStream"],
        "label": state.description.label or state.name,
        "inbox": iris.inbox,
        "input": iris.input,
        "output": iris.output,
        "push": iris.events,
        "websocket": iris.socket,
        "ldes": iris.ldes,
        "query": iris.query,
        "firstSequence": state.first,
        "lastSequence": state.last,
    }
    kept = {"retainedElements": retention.count, "retainedSeconds": retention.seconds, "retainedBytes": retention.bytes}
    return document | {name: bound for name, bound in kept.items() if bound is not None}


def list_document(iris: StreamIris, iri: str, state: State, sequences: Sequence[int]) -> Document:
    """One page of the list of a stream's elements, the oldest first.

    Args:
        iris: of the stream.
        iri: of what is listed: the output or the inbox.
        state: where the stream stands.
        sequences: of the elements on the page.
    """
    document: Document = {
        "@context": CONTEXT,
        "@id": iri,
        "@type": "ldp:Container",
        "stream": iris.stream,
        "contains": [iris.element(sequence) for sequence in sequences],
    }
    if sequences and sequences[-1] < state.last:
        document["next"] = f"{iri}?list={sequences[-1] + 1}"
    if sequences and sequences[0] > state.first:
        document["previous"] = f"{iri}?list={sequences[0] - 1}"
    return document


def published_document(iris: StreamIris, sequences: Sequence[int]) -> dict[str, object]:
    """What a publisher is told of the elements that its messages have become.

    Args:
        iris: of the stream.
        sequences: of the elements.
    """
    return {"first": iris.element(sequences[0]), "last": iris.element(sequences[-1]), "elements": len(sequences)}


def page_with(state: State, sequence: int) -> range:
    """The page of the list that has an element; pages begin at fixed sequences.

    >>> from construct_messages.streams.element import Description
    >>> page_with(State("a", Description(), first=700, next=2501, bytes=0), 999)
    range(700, 1001)
    """
    start = max(0, sequence - 1) // LISTED * LISTED + 1
    return range(max(start, state.first), min(start + LISTED, state.next))


def links(iris: StreamIris) -> dict[str, str]:
    """The targets of the Link header of a stream, by their relation types.

    Relation types are IRIs where none is registered (RFC 8288, section 2.1.2).
    """
    return {
        f"{LDP}inbox": iris.inbox,
        f"{RSP}input": iris.input,
        f"{RSP}output": iris.output,
        f"{CM}push": iris.events,
        f"{CM}websocket": iris.socket,
        f"{CM}ldes": iris.ldes,
        f"{CM}query": iris.query,
    }

"""Jelly logs as pyjelly reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as peer
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.integrations.generic.serialize import grouped_stream_to_file
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.streams import SerializerOptions

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    Term,
    iri,
    is_blank,
    is_literal,
    is_triple,
    literal,
    literal_parts,
    triple,
    triple_parts,
)

# --- pyjelly --------------------------------------------------------------------------------------------------------


def from_peer(term: Any) -> Term | None:
    if isinstance(term, peer.IRI):
        return iri(term._iri)
    if isinstance(term, peer.Literal):
        return literal(term._lex, language=term._langtag, datatype=term._datatype)
    if isinstance(term, peer.BlankNode):
        return Term(f"_:{term._identifier}")
    if isinstance(term, peer.Triple):
        return triple(*map(from_peer, term), generalized=True)
    return None


def to_peer(term: Term | None) -> Any:
    if term is None:
        return peer.DefaultGraph
    if is_literal(term):
        value, datatype, language, _ = literal_parts(term)
        return peer.Literal(value, language, datatype)
    if is_blank(term):
        return peer.BlankNode(term[2:])
    if is_triple(term):
        return peer.Triple(*map(to_peer, triple_parts(term)))
    return peer.IRI(term[1:-1])


def read_by_peer(data: bytes) -> list[Message]:
    return [
        Message(Quad(*map(from_peer, statement)) for statement in sink)
        for sink in parse_jelly_grouped(BytesIO(data))
    ]


def write_by_peer(log: Sequence[Message], graphs: bool, preset: LookupPreset) -> bytes:
    def sinks() -> Iterator[peer.GenericStatementSink]:
        for one in log:
            sink = peer.GenericStatementSink()
            for quad in one:
                terms = map(to_peer, quad if graphs else quad[:3])
                sink.add(peer.Quad(*terms) if graphs else peer.Triple(*terms))
            yield sink

    out = BytesIO()
    kind = jelly.LOGICAL_STREAM_TYPE_DATASETS if graphs else jelly.LOGICAL_STREAM_TYPE_GRAPHS
    params = StreamParameters(rdf_star=True)
    options = SerializerOptions(logical_type=kind, params=params, lookup_preset=preset)
    grouped_stream_to_file(sinks(), out, options=options)
    return out.getvalue()

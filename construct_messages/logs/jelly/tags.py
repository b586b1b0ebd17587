"""Encodes rows of Jelly frames and their fields: tags, lengths, and IRIs as table ids.

`frames.py` has the lookup tables, and statements that repeat terms.

Jelly 1.1, serialization (rdf.proto).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.wire import delimited

_MOST_IRIS: Final = 1 << 14


class PositionTags(NamedTuple):
    """The tags of the fields for one position of a statement, by the kind of the term."""

    iri: bytes
    blank: bytes
    literal: bytes
    triple: bytes


SUBJECT: Final = PositionTags(b"\x0a", b"\x12", b"\x1a", b"\x22")
PREDICATE: Final = PositionTags(b"\x2a", b"\x32", b"\x3a", b"\x42")
OBJECT: Final = PositionTags(b"\x4a", b"\x52", b"\x5a", b"\x62")
TRIPLE_POSITIONS: Final = (SUBJECT, PREDICATE, OBJECT)
# a triple cannot name a graph in RDF and in rdf.proto
GRAPH: Final = PositionTags(b"\x6a", b"\x72", b"\x82\x01", b"")
STARTED_GRAPH: Final = PositionTags(b"\x0a", b"\x12", b"\x22", b"")
DEFAULT_GRAPH: Final = b"\x7a\x00"
STARTED_DEFAULT_GRAPH: Final = b"\x1a\x00"

TRIPLE, QUAD, GRAPH_START, GRAPH_END, NAMESPACE = b"\x12", b"\x1a", b"\x22", b"\x2a", b"\x32"


def row(kind: bytes, body: bytes) -> bytes:
    """Encodes a row of a frame.

    >>> row(GRAPH_END, b"").hex()
    '0a022a00'
    """
    return b"\x0a" + delimited(kind + delimited(body))


def options_row(options: JellyOptions) -> bytes:
    """Encodes the row that opens a stream."""
    return b"\x0a" + delimited(b"\x0a" + delimited(options.encode()))

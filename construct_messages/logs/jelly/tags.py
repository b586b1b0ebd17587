"""Encodes rows of Jelly frames and their fields: tags, lengths, and IRIs as table ids.

`frames.py` has the lookup tables, and statements that repeat terms.

Jelly 1.1, serialization (rdf.proto).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final, NamedTuple

from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.wire import delimited, varint

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

LEXICAL_HEADS: Final = tuple(bytes((0x0A, size)) for size in range(128))
"""The bytes before the lexical form of a literal, by its length."""
HEADS: Final = {
    kind: tuple(bytes((0x0A, size + 2, kind[0], size)) for size in range(126))
    for kind in (TRIPLE, QUAD, GRAPH_START, GRAPH_END, NAMESPACE)
}
"""The bytes before the body of a row, by its kind and length."""
_NEITHER: Final = b"\x00"  # the RdfIri without ids


def row(kind: bytes, body: bytes) -> bytes:
    """Encodes a row of a frame.

    >>> row(GRAPH_END, b"").hex()
    '0a022a00'
    """
    size = len(body)
    if size < 126:
        return HEADS[kind][size] + body
    return b"\x0a" + delimited(kind + varint(size) + body)


def options_row(options: JellyOptions) -> bytes:
    """Encodes the row that opens a stream."""
    return b"\x0a" + delimited(b"\x0a" + delimited(options.encode()))


class Iri(NamedTuple):
    """An IRI as the ids of its prefix and its name.

    `forms` are its encodings as an RdfIri, in which ids that the previous IRI implies are left out: none, the prefix
    (if it is the same), the name (if it is the next one), or both.
    """

    prefix: int
    name: int
    forms: tuple[bytes, bytes, bytes, bytes]


@lru_cache(_MOST_IRIS)  # names are replaced, and their ids are reused
def iri_of(prefix: int, name: int) -> Iri:
    """Encodes an IRI in all forms."""
    next_name, same_prefix = _form(0x08, prefix), _form(0x10, name)
    full = delimited(next_name[1:] + same_prefix[1:])
    return Iri(prefix, name, (full, same_prefix, next_name, _NEITHER))


@cache
def _form(tag: int, number: int) -> bytes:
    """Encodes an RdfIri of one id."""
    return delimited(bytes((tag,)) + varint(number))

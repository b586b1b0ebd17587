"""Jelly logs from rows of Protocol Buffers, and reading and writing them: what the tests of Jelly share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import pytest
from google.protobuf.proto import serialize_length_prefixed
from pyjelly import jelly

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import DecoderOptions, EncoderOptions, decoder_for, encoder_for
from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.logs.jelly.wire import delimited
from construct_messages.rdf.formats import JELLY
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    XSD,
    Term,
    iri,
)

S, P, Q, O, G = (iri(f"http://example.org/{name}") for name in "spqog")  # noqa: E741 - the usual letter for an object
A, B = Term("_:a"), Term("_:b")
INTEGER = f"{XSD}integer"
TRIPLES = JellyOptions(PhysicalType.TRIPLES, LogicalType.GRAPHS, rdf_star=True, version=1)
QUADS = JellyOptions(PhysicalType.QUADS, LogicalType.DATASETS, rdf_star=True, version=1)
GRAPHS = JellyOptions(PhysicalType.GRAPHS, LogicalType.DATASETS, rdf_star=True, version=1)
KEPT: dict[str, Any] = {"shared_labels": True, "labels": Labels("x", keep=True)}
SIZES = pytest.mark.parametrize("size", [1, 7, 1 << 30], ids=["byte by byte", "in sevens", "whole"])


def message(*quads: tuple[Term | None, ...]) -> Message:
    return Message(Quad(*quad) for quad in quads)


def write(log: Sequence[Message], options: JellyOptions | None = None, **known: Any) -> bytes:
    encoder = encoder_for(
        JELLY, JELLY.own, EncoderOptions(own=options or JellyOptions(rdf_star=True), **known)
    )
    return b"".join([encoder.start(), *map(encoder.encode, log), encoder.finish()])


def read(
    data: bytes, size: int = 1 << 30, limit: int = 1 << 28, **options: Any
) -> Iterator[Message]:
    decoder = decoder_for(
        JELLY, options=DecoderOptions(message_bytes=limit, **{"labels": Labels("x"), **options})
    )
    for start in range(0, len(data), size):
        yield from decoder.feed(data[start : start + size])
    yield from decoder.close()


def read_on(
    data: bytes, size: int = 1 << 30, **options: Any
) -> tuple[list[Message], LogError | LimitExceeded | None]:
    """The messages, and the error that ended them."""
    decoded = []
    try:
        for each in read(data, size, **options):
            decoded.append(each)
    except (LogError, LimitExceeded) as error:
        return decoded, error
    return decoded, None


def isomorphic(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a.isomorphic(b) for a, b in zip(one, other, strict=True))


def entry(datatype: str) -> str:
    value = b"\x08\x01\x12" + delimited(datatype.encode())
    return (b"\x0a" + delimited(b"\x5a" + delimited(value))).hex()


# --- what is malformed ----------------------------------------------------------------------------------------------

IRI = jelly.RdfIri(prefix_id=1, name_id=1)


def row(**field: Any) -> jelly.RdfStreamRow:
    return jelly.RdfStreamRow(**field)


def options_row(options: JellyOptions, **others: Any) -> jelly.RdfStreamRow:
    message = jelly.RdfStreamOptions.FromString(options.encode())
    for name, value in others.items():
        setattr(message, name, value)
    return row(options=message)


ENTRIES = [
    row(prefix=jelly.RdfPrefixEntry(value="http://example.org/")),
    row(name=jelly.RdfNameEntry(value="s")),
]
FIRST = row(
    triple=jelly.RdfTriple(s_iri=IRI, p_iri=jelly.RdfIri(name_id=1), o_iri=jelly.RdfIri(name_id=1))
)


def log_of(
    *frames: Sequence[jelly.RdfStreamRow], metadata: dict[str, bytes] | None = None
) -> bytes:
    out = BytesIO()
    for rows in frames:
        serialize_length_prefixed(jelly.RdfStreamFrame(rows=rows, metadata=metadata), out)
    return out.getvalue()


TRIPLE = jelly.RdfTriple

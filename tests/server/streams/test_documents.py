"""Elements as logs and as JSON-LD, made of stored rows and of text: the same as what the encoders make of messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Sequence
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import given

from construct_messages import Message, Quad, iri, triple
from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.lines.decoder import to_text
from construct_messages.rdf.formats import N_QUADS, NDJSON_LD, RDFM, VARIANTS, Syntax
from construct_messages.server.streams.documents import (
    JsonLdDocument,
    is_log_as_stored,
    json_ld,
    log,
    stored_log,
)
from construct_messages.streams import StreamStore, open_store, reading
from construct_messages.streams.element import Element
from tests.support.strategies import messages

TIME = 1_800_000_000_000_000


def stored(drawn: Sequence[Message]) -> list[Element]:
    return [
        Element("a", number, TIME, to_text(message).encode())
        for number, message in enumerate(drawn, 1)
    ]


async def in_pages(elements: Sequence[Element]) -> AsyncGenerator[list[Element]]:
    for start in range(0, len(elements), 2):
        yield list(elements[start : start + 2])


def joined(pieces: AsyncIterable[bytes]) -> bytes:
    async def join() -> bytes:
        return b"".join([piece async for piece in pieces])

    return asyncio.run(join())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamStore]:
    with open_store(tmp_path_factory.mktemp("documents") / "streams.db") as store:
        yield store


NAMES = map("s{}".format, count())


@pytest.mark.slow
@pytest.mark.parametrize("syntax", VARIANTS, ids=lambda syntax: f"{syntax.label}-{syntax.version}")
@given(messages())
def test_a_log_is_that_of_the_encoder(
    store: StreamStore, syntax: Syntax, drawn: list[Message]
) -> None:
    encoder = encoder_for(N_QUADS, syntax, EncoderOptions(triple_terms=True))
    elements = stored(drawn)
    try:
        plain = (
            encoder.start()
            + b"".join(encoder.encode(each.message) for each in elements)
            + encoder.finish()
        )
    except UnsupportedByFormat:
        with pytest.raises(UnsupportedByFormat):
            joined(log(in_pages(elements), N_QUADS, syntax))
    else:
        assert joined(log(in_pages(elements), N_QUADS, syntax)) == plain
    if is_log_as_stored(N_QUADS, syntax):
        name = next(NAMES)
        store.create(name)
        last = store.append_all(name, drawn).stop - 1
        with patch.object(reading, "PAGE_ELEMENTS", 2):
            assert (
                joined(stored_log(store.alines(name, 0, last, syntax.delimiter), syntax)) == plain
            )


def nodes(message: Message) -> list[object]:
    """The node objects of a message, by way of JSON."""
    document = json.loads(encoder_for(NDJSON_LD, NDJSON_LD.own or RDFM).encode_document(message))
    return document.get("@included") or ([document] if document else [])


@given(messages(triple_terms=False))
def test_nodes_are_those_of_the_encoder(drawn: list[Message]) -> None:
    try:
        expected = [nodes(message) for message in drawn]
    except UnsupportedByFormat:
        return
    sequence = json.loads(
        joined(json_ld(in_pages(stored(drawn)), lambda each: f"urn:{each.sequence}"))
    )
    assert [(node["@id"], node["@graph"]) for node in sequence["@graph"]] == [
        (f"urn:{number}", graph) for number, graph in enumerate(expected, 1)
    ]
    document = JsonLdDocument()
    written = json.loads(
        document.start() + b"".join(map(document.encode, drawn)) + document.finish()
    )
    assert written["@graph"] == [node for graph in expected for node in graph]


def test_what_json_ld_cannot_carry_is_refused_before_a_byte() -> None:
    element = Element(
        "a",
        1,
        TIME,
        to_text(
            Message(
                [Quad(iri("urn:s"), iri("urn:p"), triple(iri("urn:s"), iri("urn:p"), iri("urn:o")))]
            )
        ).encode(),
    )
    with pytest.raises(UnsupportedByFormat):
        joined(json_ld(in_pages([element]), lambda each: f"urn:{each.sequence}"))

"""The transport cases of the specification, as given, and with other formats, messages and documents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.errors import LogError, SourceError
from construct_messages.feeds import subscribe
from construct_messages.logs import DecoderOptions, encoder_for
from construct_messages.logs.documents import DocumentReader
from construct_messages.rdf.formats import (
    FORMATS,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDFM,
    YAML_LD,
    Format,
)
from tests.support.http.feeds import answering, first, handling, numbers
from tests.support.http.streams import read
from tests.support.logs.kinds import isomorphic
from tests.support.places import shared_path
from tests.support.streams import numbered

TEXTS = [format for format in FORMATS if not format.binary]
NODE = Message([Quad(blank("b0"), iri("urn:p"), literal("data: \n\r\n\u2028é😀"))])
SENT = [numbered(1), Message(), NODE, NODE]


def documents(format: Format) -> list[bytes]:
    """Each message as a document of its own."""
    encoder = encoder_for(format, format.own or RDFM)
    return [encoder.encode_document(message) for message in SENT]


def event(document: bytes, number: int) -> bytes:
    """A document as a server-sent event."""
    lines = document.removesuffix(b"\n").replace(b"\r\n", b"\n").split(b"\n")
    return b"event: rdf-message\nid: %d\n%s\n\n" % (
        number,
        b"\n".join(b"data: " + line for line in lines),
    )


def case(number: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case of the specification's tests, and its contexts."""
    cases = json.loads(
        (shared_path("suites/rdf-messages") / "cases.json").read_text(encoding="utf-8")
    )
    return next(case for case in cases["cases"] if case["id"] == number), cases["contexts"]


async def test_events_whose_context_is_in_a_header() -> None:
    """Case 1.1.1 as given; its events have no ids, so that nothing can be resumed behind them."""
    given, contexts = case("1.1.1")
    async with answering(given["headers"], given["input"].encode()) as (url, _):
        elements = subscribe(url, contexts=contexts)
        taken = [await anext(elements) for _ in given["messages"]]
        with pytest.raises(SourceError, match="no ids"):
            await anext(elements)
        assert numbers(taken) == [1, 2]
        assert [each.message for each in taken] == [
            read("\n".join(lines), N_QUADS) for lines in given["messages"]
        ]
        with pytest.raises(LogError, match=r"context\.jsonld"):  # which is not fetched
            await first(subscribe(url), 1)


async def test_binary_events() -> None:
    """Case 1.1.7 as given."""
    given, _ = case("1.1.7")
    async with answering(given["headers"], b"event: rdf-message\ndata: x\n\n") as (url, requests):
        with pytest.raises(SourceError, match="binary") as raised:
            await first(subscribe(url), 1)
        assert "websocket" in (raised.value.hint or "")
        assert len(requests) == 2, "it is not tried again"


# --- 1.1.1: server-sent events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", TEXTS, ids=lambda format: format.extension)
@pytest.mark.parametrize("said", ["{}", "{}; charset=utf-8", " {} ;version=1.2"])
async def test_events_of_every_format(format: Format, said: str) -> None:
    body = b": comment\n\n" + b"".join(
        event(document, n) for n, document in enumerate(documents(format), 1)
    )
    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    headers["RDF-Message-Content-Type"] = said.format(format.document_type)
    async with answering(headers, body) as (url, _):
        taken = await first(subscribe(url), 4)
    assert numbers(taken) == [1, 2, 3, 4]
    assert isomorphic([element.message for element in taken], SENT), (
        "the same label in two events is two nodes"
    )


@pytest.mark.parametrize("media_type", ["application/n-quads", "application/trig"])
async def test_two_messages_in_one_event(media_type: str) -> None:
    headers = {"Content-Type": "text/event-stream"}
    headers["RDF-Message-Content-Type"] = f"{media_type}; messages=rdfm"
    document = b"<urn:s> <urn:p> <urn:o> .\n"
    body = event(document, 1) + event(document + b"# @message\n" + document, 2)
    async with answering(headers, body) as (url, _), aclosing(subscribe(url, after=0)) as elements:
        assert len((await anext(elements)).message) == 1
        with pytest.raises(LogError, match="message 2: the document holds 2 messages"):
            await anext(elements)


CONTEXTS = {
    "urn:c": {"@context": {"p": "urn:p", "ex": "urn:ex:"}},
    "urn:d": {"p": {"@id": "urn:d", "@type": "@id"}},
}


@pytest.mark.parametrize(
    ("format", "document", "expected"),
    [
        (NDJSON_LD, '{"@id": "urn:s", "p": "x"}', '<urn:s> <urn:p> "x" .'),
        (NDJSON_LD, '\ufeff{"@id":\r\n "urn:s",\n "p": "x"}\n', '<urn:s> <urn:p> "x" .'),
        (
            NDJSON_LD,
            '[{"@id": "urn:s", "p": "x"}, {"@id": "ex:t", "p": 1.5e0}]',
            '<urn:s> <urn:p> "x" .\n<urn:ex:t> <urn:p> "1.5E0"^^<http://www.w3.org/2001/XMLSchema#double> .',
        ),
        (NDJSON_LD, '{"@graph": [{"@id": "urn:s", "p": "x"}]}', '<urn:s> <urn:p> "x" .'),
        (
            NDJSON_LD,
            '{"@context": {"q": "urn:q"}, "@graph": [{"@id": "urn:s", "p": "x", "q": "y"}]}',
            '<urn:s> <urn:p> "x" .\n<urn:s> <urn:q> "y" .',
        ),
        (
            NDJSON_LD,
            '{"@id": "urn:g", "@graph": {"@id": "urn:s", "p": "x"}}',
            '<urn:s> <urn:p> "x" <urn:g> .',
        ),
        (
            NDJSON_LD,
            '{"@context": "urn:d", "@id": "urn:s", "p": "urn:o"}',
            "<urn:s> <urn:d> <urn:o> .",
        ),
        (
            NDJSON_LD,
            '{"@context": ["urn:d", {"q": "urn:q"}], "@id": "ex:s", "q": "y"}',
            '<urn:ex:s> <urn:q> "y" .',
        ),
        (
            NDJSON_LD,
            '{"@context": null, "@id": "urn:s", "p": "x", "urn:q": "y"}',
            '<urn:s> <urn:q> "y" .',
        ),
        (NDJSON_LD, '{"@id": "#s", "p": "x"}', '<http://example.org/#s> <urn:p> "x" .'),
        (NDJSON_LD, "{}", ""),
        (NDJSON_LD, "[]", ""),
        (NDJSON_LD, "", ""),
        (YAML_LD, '"@id": urn:s\np: x\n', '<urn:s> <urn:p> "x" .'),
        (YAML_LD, "", ""),
        (N_TRIPLES, '<urn:s> <urn:p> "x" .', '<urn:s> <urn:p> "x" .'),
    ],
    ids=lambda value: str(value)[:60],
)
def test_documents_whose_context_is_in_a_header(
    format: Format, document: str, expected: str
) -> None:
    """The context is active before the document's own, as if it stood in the document itself."""
    assert (
        reader_with_context(format).read(document.encode(), 1).isomorphic(read(expected, N_QUADS))
    )


def reader_with_context(format: Format) -> DocumentReader:
    options = DecoderOptions(base="http://example.org/", contexts=CONTEXTS, context="urn:c")
    return DocumentReader(format, options)


@pytest.mark.parametrize(
    "document",
    ["{", '{"p": 1} {"p": 2}', '"x"', '{"@context": "urn:none"}x', '{"@id": "urn:s" "p": 1}'],
)
def test_documents_that_are_none(document: str) -> None:
    with pytest.raises(LogError, match="message 7"):
        reader_with_context(NDJSON_LD).read(document.encode(), 7)


# --- 1.1.2: WebSocket -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def speaking(
    protocol: str, frames: Sequence[bytes | str]
) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that picks a subprotocol and sends frames, and then waits; and the subprotocols that it was offered."""
    offered: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        offered.append(request.headers.get("Sec-WebSocket-Protocol", ""))
        socket = web.WebSocketResponse(protocols=(protocol,))
        if not socket.can_prepare(request):
            return web.Response(status=426)
        await socket.prepare(request)
        for frame in frames:
            await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
        await socket.receive()
        return socket

    async with handling(answer) as url:
        yield url, offered


def listed(header: str) -> list[str]:
    return [each.strip() for each in header.split(",")]


async def test_frames_as_given() -> None:
    """Case 1.1.2 as given."""
    given, _ = case("1.1.2")
    async with speaking(given["response_headers"]["Sec-WebSocket-Protocol"], given["frames"]) as (
        url,
        offered,
    ):
        taken = await first(subscribe(url, after=0), 2)
        assert set(listed(given["request_headers"]["Sec-WebSocket-Protocol"])) <= set(
            listed(offered[-1])
        )
    messages = [element.message for element in taken]
    assert isomorphic(messages, [read("\n".join(lines), N_QUADS) for lines in given["messages"]])
    (first_node, second_node) = ({quad.subject for quad in message} for message in messages)
    assert first_node != second_node, "the same label in two frames is two nodes"


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
@pytest.mark.parametrize("binary", [True, False], ids=["binary frames", "text frames"])
async def test_frames_of_every_format(format: Format, binary: bool) -> None:
    frames = [
        document if binary or format.binary else document.decode() for document in documents(format)
    ]
    async with speaking(format.subprotocol, frames) as (url, _):
        taken = await first(subscribe(url.replace("http", "ws"), after=0), 4)
    assert numbers(taken) == [1, 2, 3, 4]
    assert isomorphic([element.message for element in taken], SENT)


async def test_no_subprotocol_of_messages() -> None:
    async with speaking("graphql-ws", []) as (url, _):
        with pytest.raises(SourceError, match="subprotocols"):
            await first(subscribe(url, after=0, retries=0), 1)


# --- 1.1.7: binary events ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", ["application/x-jelly-rdf", "Application/X-Jelly-RDF", "application/x-jelly-rdf; a=b"]
)
async def test_no_binary_format(said: str) -> None:
    headers = {"Content-Type": "text/event-stream", "RDF-Message-Content-Type": said}
    async with answering(headers, event(b"x", 1)) as (url, _), aclosing(subscribe(url)) as elements:
        with pytest.raises(SourceError, match="binary"):
            await anext(elements)

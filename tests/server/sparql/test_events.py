"""Answers as server-sent events: whole, resumed, failed, silent and refused, for clients that are not ours."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages import Message
from construct_messages.errors import ProtocolError
from construct_messages.feeds.http.sse import EventParser, ServerSentEvent
from construct_messages.logs import DecoderOptions
from construct_messages.logs.documents import DocumentReader, document_format
from construct_messages.server.config import Limits
from construct_messages.server.sparql.messages import OVER, ResultPosition
from tests.support.http.fault_server import HOLD, FaultServer, response
from tests.support.http.serving import UNHURRIED, Served, serving
from tests.support.places import absent
from tests.support.waiting import eventually

PROBLEM = "application/problem+json; charset=utf-8"
EVENTS = {"Accept": "text/event-stream"}
QUERY = "PREFIX : <http://example.org/> CONSTRUCT { ?s :is ?o ; :node [ :of ?s ] } WHERE { ?s :is ?o } ORDER BY ?o"
COUNT = 300  # more than are made at once
DATA = "\n".join(
    f'<http://example.org/{i}> <http://example.org/is> "{i:03}\\r\\ndata: x" .'
    for i in range(COUNT)
)
SOLUTION = b'{"s":{"type":"uri","value":"urn:%d"},"o":{"type":"literal","value":"%d"}}'
HEAD = b'{"head":{"vars":["s","o"]},"results":{"bindings":['


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder: Path = tmp_path_factory.mktemp("events")
    store = ox.Store(str(folder / "store"))
    store.load(DATA, format=ox.RdfFormat.N_TRIPLES)
    store.flush()
    del store
    async with serving(str(folder / "store")) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


def solutions(*numbers: int, end: bytes = b"]}}") -> bytes:
    return HEAD + b",".join(SOLUTION % (number, number) for number in numbers) + end


def events_of(body: bytes) -> list[ServerSentEvent]:
    return list(EventParser(1 << 20).feed(body))


def read(events: list[ServerSentEvent], media_type: str) -> list[Message]:
    format = document_format(media_type)
    reader = DocumentReader(format, DecoderOptions(comments=False))
    return [reader.read(event.data) for event in events if event.type == "rdf-message"]


async def ask(
    session: aiohttp.ClientSession,
    url: str,
    headers: Mapping[str, str] = EVENTS,
    method: str = "POST",
    **parameters: str,
) -> tuple[int, Mapping[str, str], list[ServerSentEvent]]:
    asked = {"query": QUERY, **parameters}
    sent: dict[str, Any] = {"params" if method == "GET" else "data": asked}
    async with session.request(method, url, headers={**EVENTS, **headers}, **sent) as answer:
        return answer.status, answer.headers, events_of(await answer.read())


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("format", "media_type"),
    [
        ("", "application/n-quads"),
        ("ttl", "text/turtle"),
        ("application/trig", "application/trig"),
        ("ndjsonld", "application/ld+json"),
        ("rdfxml", "application/rdf+xml"),
    ],
)
async def test_an_event_for_each_message(
    served: Served, session: aiohttp.ClientSession, method: str, format: str, media_type: str
) -> None:
    status, headers, events = await ask(session, served.sparql, method=method, format=format)
    assert (status, headers["Content-Type"]) == (200, "text/event-stream")
    assert (headers["RDF-Message-Content-Type"], headers["Cache-Control"]) == (
        media_type,
        "no-store",
    )
    assert events[-1] == ServerSentEvent("end", "end", b"%d" % COUNT)
    assert [event.id.partition("-")[0] for event in events[:-1]] == [
        str(number) for number in range(1, COUNT + 1)
    ]
    body = {"query": QUERY, "messages": "rdfm"}
    async with session.post(served.sparql, data=body) as answer:
        log = await answer.read()
    expected = read(
        [ServerSentEvent("rdf-message", "", each) for each in log.split(b"# @message\n")[1:]],
        "application/n-quads",
    )
    messages = read(events, media_type)
    assert len(messages) == len(expected)
    assert all(a.isomorphic(b) for a, b in zip(messages, expected, strict=True))


@pytest.mark.asyncio(loop_scope="module")
async def test_json_documents(served: Served, session: aiohttp.ClientSession) -> None:
    frame = json.dumps(
        {"@context": {"@vocab": "http://example.org/", "id": "@id"}, "is": {}, "@explicit": True}
    )
    for parameters in ({"format": "json"}, {"frame": frame}):
        status, headers, events = await ask(session, served.sparql, **parameters)
        assert (status, headers["RDF-Message-Content-Type"]) == (200, "application/json")
        first = json.loads(events[0].data)
        assert (first["id"], first["is"]) == ("http://example.org/0", "000\r\ndata: x")
        assert ("node" in first) == ("format" in parameters)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_client_resumes_after_any_event(
    served: Served, session: aiohttp.ClientSession
) -> None:
    _, _, whole = await ask(session, served.sparql)
    for number in (1, 2, 128, 129, COUNT - 1, COUNT):
        last = {"Last-Event-ID": whole[number - 1].id}
        status, _, rest = await ask(session, served.sparql, last)
        assert (status, rest) == (200, whole[number:])
    # an id of the beginning is none
    assert (await ask(session, served.sparql, {"Last-Event-ID": ""}))[2] == whole


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("id", "query", "status"),
    [
        ("abc", QUERY, 400),
        ("0-0000000000000000", QUERY, 400),
        ("1-0000000000000000", QUERY, 409),
        ("{first}", QUERY.replace("ORDER BY ?o", "ORDER BY DESC(?o)"), 409),
        ("{last}", f"{QUERY} LIMIT 3", 409),
        ("{last}", f"{QUERY} LIMIT 0", 409),
    ],
)
async def test_another_result_is_not_resumed(
    served: Served, session: aiohttp.ClientSession, id: str, query: str, status: int
) -> None:
    _, _, whole = await ask(session, served.sparql)
    id = id.format(first=whole[0].id, last=whole[-2].id)
    given, _, events = await ask(session, served.sparql, {"Last-Event-ID": id}, query=query)
    assert (given, events) == (status, [])


async def test_who_has_got_all_asks_no_source(upstream: FaultServer) -> None:
    upstream.play(response(solutions(1)))
    async with serving(upstream.url) as server, aiohttp.ClientSession() as session:
        for id in OVER:
            status, _, events = await ask(session, server.sparql, {"Last-Event-ID": id})
            assert (status, events, upstream.asked) == (204, [], [])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("accept", "parameters", "status", "content_type"),
    [
        ("text/event-stream, */*", {}, 200, "text/event-stream"),
        ("text/event-stream, text/turtle", {}, 200, "text/turtle; charset=utf-8"),
        ("text/event-stream;q=0.5, text/turtle", {}, 200, "text/turtle; charset=utf-8"),
        ("text/event-stream;q=0.5, */*", {}, 200, "text/turtle; charset=utf-8"),
        (
            "text/event-stream",
            {"messages": "rdfm"},
            200,
            "application/n-quads; version=1.2; messages=rdfm",
        ),
        ("text/event-stream", {"format": "jelly"}, 406, PROBLEM),
        ("text/event-stream", {"format": "nothing"}, 400, PROBLEM),
        ("text/event-stream", {"query": "SELECT * { ?s ?p ?o }"}, 406, PROBLEM),
        ("text/event-stream", {"query": "CONSTRUCT {"}, 400, PROBLEM),
    ],
)
async def test_what_a_client_gets(
    served: Served,
    session: aiohttp.ClientSession,
    accept: str,
    parameters: dict[str, str],
    status: int,
    content_type: str,
) -> None:
    given, headers, _ = await ask(session, served.sparql, {"Accept": accept}, **parameters)
    assert (given, headers["Content-Type"]) == (status, content_type)


@pytest.mark.asyncio(loop_scope="module")
async def test_head(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.head(served.sparql, params={"query": QUERY}, headers=EVENTS) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")


@pytest.mark.asyncio(loop_scope="module")
async def test_solutions_are_grouped(served: Served, session: aiohttp.ClientSession) -> None:
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    _, _, events = await ask(session, served.sparql, query=query, **{"group-by": "p"})
    assert [(event.type, len(read([event], "application/n-quads"))) for event in events] == [
        ("rdf-message", 1),
        ("end", 0),
    ]
    assert [len(message) for message in read(events, "application/n-quads")] == [COUNT]


async def failed(url: str) -> tuple[list[ServerSentEvent], bool]:
    """The events of an answer, and whether its body was cut short."""
    body = bytearray()
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data={"query": QUERY}, headers=EVENTS) as answer,
    ):
        assert answer.status == 200, await answer.text()
        try:
            async for chunk in answer.content.iter_any():
                body += chunk
        except aiohttp.ClientPayloadError:
            return events_of(bytes(body)), True
    return events_of(bytes(body)), False


FAILURES: Mapping[str, tuple[bytes, Limits, bytes]] = {
    "cut results": (response(solutions(1, 2, end=b",")), UNHURRIED, b"ends before its end"),
    "messages": (
        response(solutions(1, 2, 3)),
        replace(UNHURRIED, messages=2),
        b"more than 2 messages",
    ),
    "a large message": (
        response(solutions(1, 2, 10**200)),
        replace(UNHURRIED, message_bytes=400),
        b"where 400 are allowed",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_failure_is_an_event_and_no_end(upstream: FaultServer, case: str) -> None:
    answer, limits, reason = FAILURES[case]
    upstream.play(answer)
    async with serving(upstream.url, retries=0, limits=limits) as server:
        events, cut = await failed(server.sparql)
        assert [event.type for event in events] == ["rdf-message", "rdf-message", "error"]
        assert (events[-1].id, cut) == ("failed", True)
        assert reason in events[-1].data
        await eventually(
            lambda: (
                '"aborted"' in server.request_log.getvalue()
                or "aborted" in server.request_log.getvalue()
            )
        )


async def test_a_failure_before_the_first_message_is_a_status(upstream: FaultServer) -> None:
    upstream.play(response(b"no", status="500 Broken"))
    async with serving(upstream.url, retries=0) as server, aiohttp.ClientSession() as session:
        status, headers, events = await ask(session, server.sparql)
        assert (status, headers["Content-Type"], events) == (502, PROBLEM, [])


async def test_silence_has_comments_and_then_a_failure_is_an_event(upstream: FaultServer) -> None:
    upstream.play([HOLD, response(b"no", status="500 Broken")])
    async with (
        serving(upstream.url, retries=0, heartbeat_seconds=0.01) as server,
        aiohttp.ClientSession() as session,
        session.post(server.sparql, data={"query": QUERY}, headers=EVENTS) as answer,
    ):
        lines = [await answer.content.readline() for _ in range(5)]
        assert lines == [b"retry: 2000\n", b"\n", b": still here\n", b"\n", b": still here\n"]
        upstream.go_on.set()
        rest = bytearray()
        with suppress(aiohttp.ClientPayloadError):
            async for chunk in answer.content.iter_any():
                rest += chunk
        assert [(event.type, event.id) for event in events_of(bytes(rest))] == [("error", "failed")]


async def test_a_client_that_leaves_ends_the_query(upstream: FaultServer) -> None:
    wire = response(solutions(1, 2))
    upstream.play([wire[:-20], HOLD, wire[-20:]])
    async with serving(upstream.url) as server, aiohttp.ClientSession() as session:
        answer = await session.post(server.sparql, data={"query": QUERY}, headers=EVENTS)
        while b"rdf-message" not in await answer.content.readline():
            pass  # the first message is there while the source is at work
        answer.close()
        log = server.request_log
        await eventually(lambda: "client" in log.getvalue() and "left" in log.getvalue())
        upstream.go_on.set()


@pytest.mark.engine
@pytest.mark.parametrize(
    ("answer", "options", "code", "last"),
    [
        (response(solutions(1, 2)), (), 0, "end"),
        (response(solutions(1, 2)), ("--compressed",), 0, "end"),
        (response(solutions(1, 2, end=b",")), (), 18, "error"),
        (response(solutions(1, 2, end=b",")), ("--http1.0",), 0, "error"),
    ],
    ids=["whole", "compressed", "incomplete", "incomplete, HTTP/1.0"],
)
async def test_curl(
    upstream: FaultServer, answer: bytes, options: tuple[str, ...], code: int, last: str
) -> None:
    """Over HTTP/1.0 the end of a connection ends a body, and only the last event tells."""
    program = shutil.which("curl")
    if program is None:
        absent("curl is absent")
    upstream.play(answer)
    async with serving(upstream.url, retries=0) as server:
        process = await asyncio.create_subprocess_exec(
            *(
                program,
                "--silent",
                "--no-buffer",
                *options,
                "--header",
                "Accept: text/event-stream",
            ),
            *("--data-urlencode", f"query={QUERY}", server.sparql),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        assert process.returncode == code
    assert [event.type for event in events_of(out)] == ["rdf-message", "rdf-message", last]


@pytest.mark.parametrize(
    "text",
    ["", "1", "1-", "-1", "1-0123456789abcdeF", "1-0123456789abcdef\n", "٣-0123456789abcdef"],
)
def test_ids(text: str) -> None:
    with pytest.raises(ProtocolError, match="is not one of this answer"):
        ResultPosition.of(text)
    assert str(ResultPosition.of("12-0123456789abcdef")) == "12-0123456789abcdef"

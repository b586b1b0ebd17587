"""What docs/explanation/security.md promises about bounds."""

import asyncio
import contextlib
import gc
import gzip
import json
import time
from pathlib import Path

import aiohttp
import pytest

from construct_messages.errors import ConstructMessagesError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.server.config import EndpointSettings, Limits
from construct_messages.server.http import app
from tests.support.http.fault_server import JSON, STALL, XML, FaultServer, response
from tests.support.http.security import CONSTRUCT, EMPTY, FORM, IN_MODULE, RDFM, over_socket
from tests.support.http.serving import Served, serving
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.slow


# --- bounds ---------------------------------------------------------------------------------------------------------


@IN_MODULE
async def test_a_request_body_must_arrive_in_time(store: Path) -> None:
    head = f"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM}\r\nContent-Length: 1000\r\n\r\n".encode()
    async with serving(store, limits=Limits(idle_seconds=0.5)) as server, asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(
            *server.url.removeprefix("http://").split(":")
        )
        answered = asyncio.create_task(reader.readline())
        writer.write(head)
        while not answered.done():
            writer.write(b"a")
            await asyncio.sleep(0.1)
        writer.close()
    assert answered.result().startswith(b"HTTP/1.1 408 ")


@IN_MODULE
async def test_request_heads_must_arrive_in_time(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte by byte or not at all: the time runs from the connection, or the last response, to the whole head."""
    monkeypatch.setattr(app, "_KEEP_ALIVE_SECONDS", 0.5)
    async with serving(store) as server:
        for request, pieces in (
            (b"", ()),
            (b"GET /sparql HTTP/1.1\r\nHost: x\r\n", [b"X-%d: y\r\n" % n for n in range(15)]),
        ):
            assert await over_socket(server.url, request, *pieces) == b""


@IN_MODULE
async def test_large_request_heads_are_refused(files: Served) -> None:
    for line in (
        b"X-A: " + b"y" * 70_000,
        b"\r\n".join(b"X-%d: y" % number for number in range(200)),
    ):
        received = await over_socket(
            files.url, b"GET /sparql HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n" % line
        )
        assert received.startswith(b"HTTP/1.0 400 ")
    received = await over_socket(
        files.url, b"GET /sparql?%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"y" * 140_000)
    )
    assert received.startswith(b"HTTP/1.0 400 ")


@IN_MODULE
async def test_compressed_request_bodies_are_bounded(
    files: Served, session: aiohttp.ClientSession
) -> None:
    bomb = gzip.compress(b"query=" + b"a" * 100_000_000, 9)
    assert len(bomb) < 200_000
    for coding, status in (("gzip", 413), ("deflate", 415), ("br", 415), ("gzip, gzip", 415)):
        headers = {"Content-Type": FORM, "Content-Encoding": coding}
        async with session.post(files.sparql, data=bomb, headers=headers) as answer:
            assert answer.status == status


@IN_MODULE
async def test_busy_is_said_at_once(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    upstream.play([response(EMPTY, cut=0), STALL])
    async with serving(upstream.url, concurrency=1, queue_length=0) as server:

        async def ask() -> tuple[int, str | None]:
            async with session.get(server.sparql, params={"query": "ASK {}"}) as answer:
                return answer.status, answer.headers.get("Retry-After")

        first = asyncio.create_task(ask())
        await eventually(lambda: upstream.asked)
        async with asyncio.timeout(SECONDS):
            assert await ask() == (503, "10")
        first.cancel()


@IN_MODULE
async def test_a_compressed_answer_takes_bounded_memory(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    """One solution that never ends, a thousand times as large as what is sent: refused, whatever comes behind."""
    packed = gzip.compress(
        b'{"results":{"bindings":[{"s":{"type":"literal","value":"' + b"a" * (64 << 20), 6
    )
    assert len(packed) < 1 << 17
    upstream.play(response(packed, headers={"Content-Encoding": "gzip"}, framing="length"))
    async with (
        serving(upstream.url, retries=0) as server,
        session.get(server.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}) as answer,
    ):
        document = json.loads(await answer.read())
    assert answer.status == 502
    assert "without one whole solution" in document["detail"]


DEEP = {
    "json": (b'{"results":{"bindings":[{"s":' + b'{"a":' * 100_000, JSON),
    "json head": (b'{"head":' + b"[" * 100_000, JSON),
    "json triples": (
        b'{"results":{"bindings":[{"s":'
        + b'{"type":"triple","value":{"subject":' * 5000
        + b"1"
        + b"}}" * 5000
        + b"}]}}",
        JSON,
    ),
    "xml": (
        b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><results><result><binding name="s">'
        + b"<triple><subject>" * 20_000,
        "application/sparql-results+xml",
    ),
    "entities": (
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><sparql>&b;</sparql>',
        "application/sparql-results+xml",
    ),
}


FREEZING = {
    "brackets in the head": (
        lambda size: b'{"head":{"link":[' + b'{"bindings":[]},' * (size >> 4),
        JSON,
    ),
    "empty solutions": (lambda size: b'{"results":{"bindings":[' + b"{}," * (size // 3), JSON),
    "one solution": (
        lambda size: (
            b'{"results":{"bindings":[{"s":{"type":"literal","value":"' + rb"\n" * (2 * size)
        ),
        JSON,
    ),
    "a long IRI": (
        lambda size: (
            b'{"results":{"bindings":[{"s":{"type":"uri","value":"a:' + b" " * (size >> 2) + b'"}},'
        ),
        JSON,
    ),
    "empty elements": (
        lambda size: (
            b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><results>'
            + b"<result/>" * (size >> 3)
        ),
        XML,
    ),
    "a long attribute": (
        lambda size: (
            b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><results a="'
            + b"a" * (8 * size)
        ),
        XML,
    ),
}


@pytest.mark.parametrize("name", DEEP)
@IN_MODULE
async def test_hostile_results_are_errors(
    upstream: FaultServer, session: aiohttp.ClientSession, name: str
) -> None:
    body, content_type = DEEP[name]
    upstream.play(response(body, content_type, framing="length"))
    async with serving(upstream.url, retries=0) as server:
        async with session.get(
            server.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}
        ) as answer:
            assert (answer.status, answer.content_type) == (502, "application/problem+json")
        upstream.play(response(EMPTY))
        async with session.get(
            server.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}
        ) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("name", FREEZING)
@IN_MODULE
async def test_a_hostile_result_holds_up_nobody_else(
    upstream: FaultServer, session: aiohttp.ClientSession, store: Path, name: str
) -> None:
    """Issue 13, 20: while it is read, other endpoints answer, and so do checks of health.

    Where the machine had time for little else, more of it is read: nobody would be answered while the loop is held up.
    """
    make, content_type = FREEZING[name]
    endpoints = {
        "hostile": EndpointSettings(source=(upstream.url,), allow_private=True, retries=0),
        "files": EndpointSettings(source=(str(store),)),
    }
    async with serving(endpoints=endpoints) as server:
        parameters = {"params": {"query": CONSTRUCT}, "headers": {"Accept": RDFM}}

        async def read(url: str) -> int:
            async with session.get(url, **parameters) as answer:
                with contextlib.suppress(aiohttp.ClientPayloadError):
                    await answer.read()
                return answer.status

        assert (
            await read(f"{server.url}/files/sparql") == 200
        )  # what the first request makes ready is ready

        async def answered_meanwhile(size: int) -> int:
            upstream.play(response(make(size), content_type, framing="length"))
            hostile = asyncio.create_task(read(f"{server.url}/hostile/sparql"))
            answered = 0
            while not hostile.done():
                async with session.get(f"{server.url}/health/live") as answer:
                    assert answer.status == 200
                answered += 1
                if answered % 10 == 1:
                    assert await read(f"{server.url}/files/sparql") == 200
            assert await hostile in (200, 502)
            return answered

        for size in (1 << 20, 1 << 22, 1 << 24):
            if await answered_meanwhile(size) > 3:
                return
    raise AssertionError("nobody else was answered meanwhile")


NESTED = {
    "braces": "CONSTRUCT WHERE " + "{" * 45_000 + "}" * 45_000,
    "braces of a SELECT": "SELECT * " + "{" * 45_000 + "}" * 45_000,
    "brackets": "SELECT * { FILTER(" + "(" * 45_000 + "1" + ")" * 45_000 + ") }",
    "template": "CONSTRUCT { <urn:s> <urn:p> " + "[ <urn:p> " * 8000 + "]" * 8000 + " } WHERE {}",
    "collections": "CONSTRUCT { <urn:s> <urn:p> " + "(" * 45_000 + ")" * 45_000 + " } WHERE {}",
    "triple terms": "CONSTRUCT { <urn:s> <urn:p> " + "<<(" * 30_000 + " } WHERE {}",
    "negations": "ASK { FILTER(" + "!" * 90_000 + "true) }",
    "paths": "ASK { ?s " + "^" * 90_000 + "<urn:p> ?o }",
    "a long number": CONSTRUCT + " LIMIT " + "9" * 90_000,
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("accept", [RDFM, "*/*"])
@pytest.mark.parametrize("name", NESTED)
@IN_MODULE
async def test_deep_queries_harm_nobody_else(
    files: Served, session: aiohttp.ClientSession, name: str, accept: str
) -> None:
    async with session.post(
        files.sparql, data={"query": NESTED[name]}, headers={"Accept": accept}
    ) as answer:
        await answer.read()
        assert answer.status in (200, 400, 406, 502)
    async with session.get(
        files.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}
    ) as answer:
        assert (await answer.read()).count(b"# @message") == 1


REPEATED = (
    *(
        "[ ?p ",
        "( ",
        "<<( ?s ?p ",
        "?s ?p ?o . ",
        "PREFIX a: <urn:> ",
        "BASE <b> ",
        "'\\",
        '"""',
        "<",
        "\\u0041",
        "GROUP BY ",
    ),
    *(
        "LIMIT ",
        "GRAPH ?g { ?s ?p ?o } ",
        "{| ?p ?o ",
        "(?s) ",
        "#",
        "@a-",
        "_:a.",
        "a.b:c.",
        "1.",
        "?",
    ),
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("part", REPEATED)
@pytest.mark.parametrize(
    "place",
    [
        "CONSTRUCT { ?s ?p ?o } WHERE { {} }",
        "CONSTRUCT {{ {} }} WHERE {{}}",
        "{}CONSTRUCT WHERE {{}}",
    ],
)
def test_queries_are_read_in_linear_time(part: str, place: str) -> None:
    def seconds(characters: int) -> float:
        before, _, after = place.replace("{{", "\1").replace("}}", "\2").partition("{}")
        text = f"{before}{part * (characters // len(part))}{after}".replace("\1", "{").replace(
            "\2", "}"
        )
        began = time.thread_time()
        with contextlib.suppress(ConstructMessagesError):
            ConstructQuery.parse(text)
        return time.thread_time() - began

    gc.disable()  # its own time is that of all objects of all tests
    try:
        # nine times the text; a quadratic reader would take eighty times as long
        small = max(min(seconds(10_000) for _ in range(3)), 0.01)
        assert any(seconds(90_000) < 30 * small for _ in range(3))
    finally:
        gc.enable()

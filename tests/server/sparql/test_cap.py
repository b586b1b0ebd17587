"""A CONSTRUCT of the endpoint's own that meets its cap: told in the log, or an error; its bytes are never changed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages.server.sparql.endpoint import COUNTED_BYTES
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import Served, serving
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CAP: Final = 100
JSON_LOG: Final = {"log_format": "json"}
NUMBERS: Final = count()
CONSTRUCT: Final = {"query": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"}
FORMATS: Final = {
    "text/turtle; charset=UTF-8": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "text/plain": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/trig": ox.RdfFormat.TRIG,
}
CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


def document(size: int, format: ox.RdfFormat) -> bytes:
    """So many triples, as another program writes them."""
    triples = [
        ox.Triple(
            ox.NamedNode(f"http://example.org/{n // 7}"),
            ox.NamedNode("http://example.org/p"),
            ox.Literal(f"a;.,{n}"),
        )
        for n in range(size)
    ]
    written = ox.serialize(triples, format=format)
    assert written is not None
    return written


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def telling(upstream: FaultServer) -> AsyncIterator[Served]:
    async with serving(upstream.url, settings=JSON_LOG, row_cap=CAP, retries=0) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def refusing(upstream: FaultServer) -> AsyncIterator[Served]:
    async with serving(
        upstream.url, settings=JSON_LOG, row_cap=CAP, refuse_capped=True, retries=0
    ) as server:
        yield server


async def ask(
    session: aiohttp.ClientSession,
    served: Served,
    form: Mapping[str, str] = CONSTRUCT,
    **headers: str,
) -> tuple[int, bytes, Any]:
    """Status, body (or what broke it off), and how the server logged the request."""
    id = f"request-{next(NUMBERS)}"
    asked = {"X-Request-ID": id, "Accept-Encoding": "gzip, deflate, br, zstd", **headers}
    async with session.post(served.sparql, data=form, headers=asked) as answer:
        try:
            body = await answer.read()
        except aiohttp.ClientError:
            body = b"broken"
    await eventually(lambda: outcomes(served, id), 60)
    return answer.status, body, outcomes(served, id)[0]


def lines(served: Served) -> list[dict[str, Any]]:
    return list(map(json.loads, served.request_log.getvalue().splitlines()))


def outcomes(served: Served, id: str) -> list[Any]:
    return [
        line["outcome"]
        for line in lines(served)
        if line.get("request_id") == id and "outcome" in line
    ]


def told(served: Served, event: str = "possibly partial answer") -> list[dict[str, Any]]:
    return [line for line in lines(served) if line["event"] == event]


@pytest.mark.slow
@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("content_type", FORMATS)
async def test_an_answer_that_meets_the_cap(
    session: aiohttp.ClientSession,
    upstream: FaultServer,
    telling: Served,
    refusing: Served,
    content_type: str,
    coding: str,
    framing: str,
) -> None:
    """Issue 26, 0."""
    for size, meets in ((CAP - 1, False), (CAP, True), (CAP + 1, True), (CAP + 2, False)):
        sent = CODINGS[coding](document(size, FORMATS[content_type]))
        headers = {} if coding == "identity" else {"Content-Encoding": coding}
        upstream.play(response(sent, content_type, headers=headers, framing=framing, chunk=1000))
        before = len(told(telling))
        status, body, outcome = await ask(session, telling)
        assert (status, body, outcome) == (200, sent, "complete")
        assert [line["triples"] for line in told(telling)[before:]] == ([size] if meets else [])
        assert upstream.asked[-1].headers["accept-encoding"] == "gzip, deflate"
        status, body, outcome = await ask(session, refusing)
        if not meets:
            assert (status, body, outcome) == (200, sent, "complete")
        elif status == 502:  # nothing was sent yet
            assert "sends no more than 100" in json.loads(body)["detail"]
        else:
            assert (status, body, outcome) == (200, b"broken", "aborted:incomplete")


async def test_what_is_not_counted(
    session: aiohttp.ClientSession, upstream: FaultServer, telling: Served
) -> None:
    """It passes as it is: another format, damage, another coding, HEAD."""
    turtle = document(CAP, ox.RdfFormat.TURTLE)
    for content_type, sent, headers in (
        ("application/x-other", turtle, {}),
        ("text/turtle", turtle[:-20] + b"<", {}),
        ("text/turtle", turtle, {"Content-Encoding": "br"}),
        ("text/turtle", turtle, {"Content-Encoding": "gzip"}),  # which it is not
        ("text/turtle", gzip.compress(turtle) + b"rest", {"Content-Encoding": "gzip"}),
    ):
        upstream.play(response(sent, content_type, headers=headers))
        before = len(told(telling))
        assert await ask(session, telling) == (200, sent, "complete")
        assert len(told(telling)) == before


async def test_many_lines_are_counted_and_not_kept(
    session: aiohttp.ClientSession, upstream: FaultServer, telling: Served
) -> None:
    line = b'<http://example.org/s> <http://example.org/p> "%b" .\n'
    sent = b"".join(line % (b"%d" % number * (COUNTED_BYTES // 50)) for number in range(CAP))
    assert len(sent) > 2 * COUNTED_BYTES
    upstream.play(response(sent, "application/n-triples", framing="length"))
    before = len(told(telling))
    assert (await ask(session, telling))[0] == 200
    assert [line["triples"] for line in told(telling)[before:]] == [CAP]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        ("206 Partial Content", {}),
        ("200 OK", {"X-SQL-State": "S1TAT", "X-SQL-Message": "Returning incomplete results"}),
        ("200 OK", {"Content-Range": "bytes 0-99/2000"}),
    ],
    ids=["206", "anytime", "range"],
)
async def test_an_answer_that_says_that_it_is_a_part(
    session: aiohttp.ClientSession,
    upstream: FaultServer,
    telling: Served,
    refusing: Served,
    status: str,
    headers: dict[str, str],
) -> None:
    sent = document(3, ox.RdfFormat.TURTLE)
    upstream.play(response(sent, "text/turtle", status=status, headers=headers))
    before = len(told(telling, "partial answer"))
    came = await ask(session, telling)
    assert came == (int(status[:3]), sent, "complete")
    assert len(told(telling, "partial answer")) == before + 1
    came = await ask(session, refusing)
    assert (came[0], came[2]) == (502, "refused")
    assert b"a part of the answer only" in came[1]


async def test_head_and_other_forms(
    session: aiohttp.ClientSession, upstream: FaultServer, telling: Served
) -> None:
    upstream.play(response(document(CAP, ox.RdfFormat.TURTLE), "text/turtle"))
    before = len(told(telling))
    async with session.head(telling.sparql, params=CONSTRUCT) as answer:
        assert answer.status == 200
    headers = {"Accept-Encoding": "br, gzip"}
    async with session.get(
        telling.sparql, params={"query": "SELECT * { ?s ?p ?o }"}, headers=headers
    ) as answer:
        assert answer.status == 200
    assert upstream.asked[-1].headers["accept-encoding"] == "br, gzip"
    assert len(told(telling)) == before


@pytest.mark.engine
@pytest.mark.slow
async def test_a_real_virtuoso(
    session: aiohttp.ClientSession,
    tmp_path_factory: pytest.TempPathFactory,
    serve_with: Callable[[str, Path], str],
) -> None:
    """Which gives 10,001 triples of 10,500, and says nothing of it; in each of its formats."""
    file = tmp_path_factory.mktemp("capped") / "data.nt"
    file.write_text("".join(f'<urn:s{n}> <urn:n> "{n}" .\n' for n in range(10_500)))
    url = serve_with("virtuoso", file)
    query = "CONSTRUCT { ?s <urn:is> ?n } WHERE { ?s <urn:n> ?n }"
    options = {"settings": JSON_LOG, "profile": "virtuoso"}
    async with (
        serving(url, **options) as tells,
        serving(url, **options, refuse_capped=True) as refuses,
    ):
        for accept in (
            "text/turtle",
            "application/n-triples",
            "application/rdf+xml",
            "application/ld+json",
        ):
            for limit, meets in (("", True), (" LIMIT 9000", False)):
                before = len(told(tells))
                form, headers = (
                    {"query": query + limit},
                    {"Accept": accept, "Accept-Encoding": "gzip"},
                )
                status, _, outcome = await ask(session, tells, form, **headers)
                assert (status, outcome) == (200, "complete")
                assert [line["triples"] for line in told(tells)[before:]] == (
                    [10_001] if meets else []
                )
                came = await ask(session, refuses, form, **headers)
                assert came[2] == (
                    ("refused" if came[0] == 502 else "aborted:incomplete") if meets else "complete"
                )

"""An endpoint behind a server: what is relayed, what is not, and what becomes of its connections."""

from __future__ import annotations

import asyncio
import gzip
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from construct_messages.errors import IncompleteResult, SourceError, SourceTimeout, UsageError
from construct_messages.sources import UNION, Request
from construct_messages.sources.http.upstream import Upstream
from construct_messages.sources.operations import Answer, Backend, Operation
from construct_messages.terms import Term
from tests.support.engines.servers import Serve
from tests.support.http.clients import JSON_BODY, SELECT, TABLE, VARIABLES
from tests.support.http.fault_server import JSON, PAUSE, RESET, STALL, TSV, XML, Asked, FaultServer, response
from tests.support.http.pauses import no_pauses, own_pauses
from tests.support.results.documents import json_document

TEXT = "SELECT ?é { ?é ?p 'a+b & c' }"
ASK = Operation(TEXT, headers={"Accept": "text/csv"}, timeout=10)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest.fixture
async def upstream(server: FaultServer) -> AsyncIterator[Upstream]:
    async with aclosing(Upstream(server.url, retries=2)) as upstream:
        yield upstream


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Without pauses between retries."""
    with no_pauses():
        yield


async def body_of(answer: Answer) -> bytes:
    async with aclosing(answer.body) as body:
        return b"".join([chunk async for chunk in body])


async def solutions(upstream: Upstream, request: Request | None = None) -> list[tuple[Term, ...]]:
    async with aclosing(upstream.asolutions(request or Request(SELECT, timeout=10))) as batches:
        return [solution async for batch in batches for solution in batch]


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 the server has threads, and no event of the loop
            await asyncio.sleep(0.01)


def test_it_is_a_backend(server: FaultServer) -> None:
    backend: Backend = Upstream(server.url, profile="virtuoso", prefixes={"ex": "http://example.org/", "dbo": "urn:"})
    assert backend.predefined["ex"] == "http://example.org/"
    assert backend.predefined["dbo"] == "urn:"
    assert backend.predefined["dbr"] == "http://dbpedia.org/resource/"
    assert backend.stable_blank_nodes
    with pytest.raises(UsageError, match="asyncio only"):
        backend.solutions(Request(SELECT))


# --- what is asked ---------------------------------------------------------------------------------------------------


def pairs(asked: Asked) -> list[tuple[str, str]]:
    return parse_qsl(asked.body.decode() or urlsplit(asked.target).query, keep_blank_values=True)


OPERATIONS: dict[str, tuple[Operation, str, list[tuple[str, str]]]] = {
    "a query": (Operation(TEXT), "POST", [("query", TEXT)]),
    "its dataset and parameters, in order": (
        Operation(
            TEXT,
            default_graphs=("urn:d1", "urn:d2"),
            named_graphs=("urn:n1",),
            parameters=(("timeout", "3"), ("b", ""), ("a", "ü"), ("b", "2")),
        ),
        "POST",
        [
            *(("query", TEXT), ("default-graph-uri", "urn:d1"), ("default-graph-uri", "urn:d2")),
            *(("named-graph-uri", "urn:n1"), ("timeout", "3"), ("b", ""), ("a", "ü"), ("b", "2")),
        ],
    ),
    "an update": (
        Operation("CLEAR ALL", update=True, default_graphs=("urn:d",), named_graphs=("urn:n",)),
        "POST",
        [("update", "CLEAR ALL"), ("using-graph-uri", "urn:d"), ("using-named-graph-uri", "urn:n")],
    ),
    "only the head": (Operation(TEXT, head=True), "POST", [("query", TEXT)]),
    "the service description": (Operation(None), "GET", []),
    "only the head of it": (Operation(None, head=True), "GET", []),
    "the service description, in a format": (
        Operation(None, parameters=(("format", "ttl"),)),
        "GET",
        [("format", "ttl")],
    ),
}


@pytest.mark.parametrize("method", ["post", "get"])
@pytest.mark.parametrize(("operation", "verb", "expected"), OPERATIONS.values(), ids=OPERATIONS)
async def test_operations(
    server: FaultServer, method: str, operation: Operation, verb: str, expected: list[tuple[str, str]]
) -> None:
    server.play(response(b"", "text/plain", framing="length"))
    async with aclosing(Upstream(server.url, method=method)) as upstream:
        await body_of(await upstream.answer(operation))
    (asked,) = server.asked
    assert asked.method == ("GET" if (method, verb) == ("get", "POST") and not operation.update else verb)
    assert pairs(asked) == expected
    if asked.method == "POST":
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
        assert asked.headers["content-length"] == str(len(asked.body))
        assert "transfer-encoding" not in asked.headers
        assert asked.target == "/sparql"
    else:
        assert asked.body == b""


async def test_parameters_of_the_url_stay(server: FaultServer) -> None:
    server.play(response(b"", "text/plain"))
    async with aclosing(Upstream(f"{server.url}?key=k", method="get")) as upstream:
        await body_of(await upstream.answer(ASK))
        await body_of(await upstream.answer(Operation(None)))
    assert pairs(server.asked[0]) == [("key", "k"), ("query", TEXT)]
    assert server.asked[1].target == "/sparql?key=k"


async def test_request_headers(server: FaultServer) -> None:
    server.play(response(JSON_BODY))
    own = {"X-Key": "k"}
    sent = {"Accept": "text/csv;q=0.5", "Accept-Encoding": "zstd", "Accept-Language": "fr", "X-Trace": "1"}
    connections_own = {"Connection": "upgrade", "Host": "elsewhere", "Content-Length": "9", "User-Agent": "curl"}
    async with aclosing(Upstream(server.url, headers=own, contact="mailto:me@example.org")) as upstream:
        await body_of(await upstream.answer(Operation(TEXT, headers=sent | connections_own)))
        await body_of(await upstream.answer(Operation(TEXT)))
        forwarded = (("X-Trace", "1"), ("Accept", "text/html"), ("Accept-Encoding", "br"), ("Range", "bytes=0-9"))
        await solutions(upstream, Request(SELECT, parameters=(("timeout", "3"), ("format", "html")), headers=forwarded))
    relayed, plain, select = server.asked
    for name, value in sent.items():
        assert relayed.headers[name.lower()] == value
    assert relayed.headers["host"] == f"127.0.0.1:{server.port}"
    assert "connection" not in relayed.headers
    assert (plain.headers["accept"], plain.headers["accept-encoding"]) == ("*/*", "identity")
    assert select.headers["accept"].startswith(JSON)
    assert (select.headers["accept-encoding"], select.headers["x-trace"]) == ("identity", "1")
    assert "range" not in select.headers
    assert select.parameters == {"query": [str(SELECT)], "timeout": ["3"]}
    for asked in server.asked:
        assert asked.headers["x-key"] == "k"
        assert "; mailto:me@example.org)" in asked.headers["user-agent"]


@pytest.mark.parametrize(
    ("options", "client", "sent"),
    [
        ({}, {}, None),
        ({"user": "me", "password": "s:ü"}, {}, "Basic bWU6czrDvA=="),
        ({"token": "t0"}, {}, "Bearer t0"),
        ({"token": "t0"}, {"Authorization": "Bearer client"}, "Bearer client"),
        ({}, {"Authorization": "Bearer client"}, "Bearer client"),
    ],
    ids=["none", "basic", "bearer", "the client's", "only the client's"],
)
async def test_credentials(
    server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    client: dict[str, str],
    sent: str | None,
) -> None:
    monkeypatch.setenv("CONSTRUCT_MESSAGES_TOKEN", "of the command line, not of a server")
    server.play(response(JSON_BODY))
    async with aclosing(Upstream(server.url, **options)) as upstream:  # type: ignore[arg-type] # all are texts
        await body_of(await upstream.answer(Operation(TEXT, headers=client)))
        await solutions(upstream, Request(SELECT, headers=tuple(client.items())))
    assert [asked.headers.get("authorization") for asked in server.asked] == [sent, sent]


async def test_the_environment_names_no_proxy(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    server.play(response(b"direct", "text/plain"))
    async with aclosing(Upstream(server.url)) as upstream:
        assert await body_of(await upstream.answer(ASK)) == b"direct"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://example.org/"}, "is not the URL of an endpoint"),
        ({"method": "put"}, "no method 'put'"),
        ({"profile": "mine"}, "no endpoint profile"),
        ({"results": "csv"}, "no results in 'csv'"),
        ({"retries": -1}, "retries=-1"),
        ({"rate": 0}, "rate=0"),
        ({"contact": "me\r\nX: y"}, "value that HTTP cannot send"),
        ({"headers": {"X Y": "z"}}, "not the name of an HTTP header"),
    ],
)
def test_refused_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Upstream(**{"url": "http://example.org/", **options})


# --- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 206, 300, 400, 403, 404, 406, 410, 418, 422, 500, 501])
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_an_answer_is_relayed_as_it_is(
    server: FaultServer, upstream: Upstream, status: int, framing: str
) -> None:
    body = bytes(range(256)) * 500
    server.play(response(body, "text/x-anything; a=b", status=f"{status} Well", framing=framing))
    answer = await upstream.answer(ASK)
    assert answer.status == status
    assert dict(answer.headers)["Content-Type"] == "text/x-anything; a=b"
    assert await body_of(answer) == body
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_a_body(server: FaultServer, upstream: Upstream, status: int) -> None:
    server.play(f"HTTP/1.1 {status} Well\r\nAge: 3\r\nConnection: close\r\n\r\n".encode())
    answer = await upstream.answer(ASK)
    assert (answer.status, answer.headers, await body_of(answer)) == (status, (("Age", "3"),), b"")


async def test_a_coded_body_stays_coded(server: FaultServer, upstream: Upstream) -> None:
    packed = gzip.compress(JSON_BODY)
    server.play(response(packed, headers={"Content-Encoding": "gzip"}, framing="length"))
    answer = await upstream.answer(Operation(TEXT, headers={"Accept-Encoding": "gzip"}))
    assert await body_of(answer) == packed
    assert dict(answer.headers) == {
        "Content-Type": JSON,
        "Content-Encoding": "gzip",
        "Content-Length": str(len(packed)),
    }


async def test_response_headers(server: FaultServer, upstream: Upstream) -> None:
    kept = {
        "ETag": '"1"',
        "Last-Modified": "Sat, 01 Jan 2000 00:00:00 GMT",
        "Cache-Control": "max-age=3",
        "Vary": "Accept",
        "Content-Language": "fr",
        "X-SPARQL-MaxRows": "10000",
        "X-SQL-State": "S1TAT",
        "Link": '<urn:x>; rel="y"',
    }
    dropped = {
        "Set-Cookie": "a=b",
        "Server": "Virtuoso",
        "Content-Security-Policy": "default-src *",
        "Strict-Transport-Security": "max-age=1",
        "Access-Control-Allow-Origin": "*",
        "Keep-Alive": "timeout=5",
        "X-Powered-By": "x",
        "Location": "http://127.0.0.1/",
        "Proxy-Authenticate": "Basic",
    }
    server.play(response(JSON_BODY, headers=kept | dropped))
    answer = await upstream.answer(ASK)
    await body_of(answer)
    assert dict(answer.headers) == kept | {"Content-Type": JSON}


async def test_headers_that_come_more_than_once(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY, headers={"Vary": "Accept", "vary": "Cookie", "VARY": "Origin"}))
    answer = await upstream.answer(ASK)
    assert [value for name, value in answer.headers if name == "Vary"] == ["Accept, Cookie, Origin"]
    await body_of(answer)
    server.play(response(PAGE, "text/plain", headers={"content-type": "text/html"}))
    with pytest.raises(SourceError, match="page for browsers"):
        await upstream.answer(ASK)


@pytest.mark.parametrize("status", ["101 Switching Protocols", "099 Odd", "999 Odd"])
async def test_a_status_that_is_no_answer(server: FaultServer, upstream: Upstream, status: str) -> None:
    server.play(response(JSON_BODY, status=status))
    with pytest.raises(SourceError) as caught:
        await upstream.answer(ASK)
    assert caught.value.status == 502


async def test_only_the_head(server: FaultServer, upstream: Upstream) -> None:
    server.play([response(JSON_BODY, framing="length", cut=10), STALL])
    answer = await upstream.answer(Operation(TEXT, head=True))
    assert dict(answer.headers)["Content-Length"] == str(len(JSON_BODY))
    await answer.body.aclose()
    assert await asyncio.to_thread(server.left.wait, 5)


@pytest.mark.parametrize("cut", [0, 1, 100, len(JSON_BODY) - 1])
@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_body_that_is_cut_is_an_error(server: FaultServer, upstream: Upstream, framing: str, cut: int) -> None:
    server.play(response(JSON_BODY, framing=framing, cut=cut))
    answer = await upstream.answer(ASK)
    with pytest.raises(IncompleteResult, match="was cut"):
        await body_of(answer)
    server.play([response(JSON_BODY, framing=framing, cut=cut), RESET])
    with pytest.raises(SourceError):
        await body_of(await upstream.answer(ASK))


PAGE = b"<!DOCTYPE html><title>secret page</title>"


@pytest.mark.parametrize(
    ("status", "accept", "parameters", "headers", "expected"),
    [
        pytest.param(200, "text/html", (), {}, None, id="asked for"),
        pytest.param(404, "application/json, text/HTML;q=0.1", (), {}, None, id="asked for among others"),
        pytest.param(200, "*/*", (("format", "text/html"),), {}, None, id="by the format"),
        pytest.param(200, "*/*", (), {}, 502, id="not asked for"),
        pytest.param(200, "application/json", (("format", "json"),), {}, 502, id="another format"),
        pytest.param(404, "application/json", (), {}, 502, id="not there"),
        pytest.param(400, "application/json", (), {}, 400, id="bad request"),
        pytest.param(500, "text/html", (), {}, 502, id="a failure"),
        pytest.param(503, "text/html", (), {"Retry-After": "90"}, 503, id="busy"),
        pytest.param(504, "application/json", (), {}, 504, id="too slow"),
    ],
)
async def test_pages_for_browsers(
    server: FaultServer,
    upstream: Upstream,
    status: int,
    accept: str,
    parameters: tuple[tuple[str, str], ...],
    headers: dict[str, str],
    expected: int | None,
) -> None:
    server.play(response(PAGE, "text/html; charset=utf-8", status=f"{status} Well", headers=headers))
    operation = Operation(TEXT, headers={"Accept": accept}, parameters=parameters, timeout=10)
    if expected is None:
        answer = await upstream.answer(operation)
        assert (answer.status, await body_of(answer)) == (status, PAGE)
        return
    with pytest.raises(SourceError) as caught:
        await upstream.answer(operation)
    assert caught.value.status == expected
    assert "secret page" not in str(caught.value)
    assert caught.value.retry_after == (90 if headers else None)


@pytest.mark.parametrize(
    ("token", "client", "status", "relayed", "for_messages"),
    [
        (None, {}, 401, 401, 502),
        (None, {}, 403, 403, 502),
        ("ours", {}, 401, None, 502),
        ("ours", {}, 403, 403, 502),
        (None, {"Authorization": "Bearer client"}, 401, 401, 403),
        ("ours", {"Authorization": "Bearer client"}, 401, 401, 403),
    ],
)
async def test_credentials_that_are_refused(
    server: FaultServer,
    token: str | None,
    client: dict[str, str],
    status: int,
    relayed: int | None,
    for_messages: int,
) -> None:
    challenge = {"WWW-Authenticate": "Bearer"}
    server.play(response(b"no", "text/plain", status=f"{status} No", headers=challenge))
    async with aclosing(Upstream(server.url, token=token)) as upstream:
        if relayed is None:
            with pytest.raises(SourceError) as caught:
                await upstream.answer(Operation(TEXT, headers=client))
            assert caught.value.status == 502
        else:
            answer = await upstream.answer(Operation(TEXT, headers=client))
            assert (answer.status, await body_of(answer)) == (relayed, b"no")
            assert dict(answer.headers)["WWW-Authenticate"] == "Bearer"
        with pytest.raises(SourceError) as caught:
            await solutions(upstream, Request(SELECT, headers=tuple(client.items())))
        assert caught.value.status == for_messages


@pytest.mark.parametrize(
    "location",
    [
        *("http://169.254.169.254/latest", "http://localhost:1/", "file:///etc/passwd", "//elsewhere.example/"),
        *("http://[", "//h:99999/", "/a\x01b"),
    ],
)
async def test_redirects_to_elsewhere(server: FaultServer, upstream: Upstream, location: str) -> None:
    server.play(response(b"", status="307 Temporary Redirect", headers={"Location": location}))
    for failing in (upstream.answer(ASK), solutions(upstream)):
        with pytest.raises(SourceError, match=r"was not followed|is no URL|could not be reached") as caught:
            await failing
        assert caught.value.status == 502


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n"],
    ids=["nothing", "not HTTP", "no number", "control character"],
)
async def test_what_is_no_answer(server: FaultServer, upstream: Upstream, answer: bytes) -> None:
    server.play(answer)
    for failing in (upstream.answer(ASK), solutions(upstream)):
        with pytest.raises(SourceError, match="could not be reached") as caught:
            await failing
        assert caught.value.status == 502
        assert TEXT not in str(caught.value)


async def test_headers_that_cannot_be_sent_on(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY))
    for value in ("\udcff", "a\r\nX: b", "ü"):
        for failing in (
            upstream.answer(Operation(TEXT, headers={"Accept-Language": value})),
            solutions(upstream, Request(SELECT, headers=(("Accept-Language", value),))),
        ):
            with pytest.raises(UsageError, match="Accept-Language has a value that HTTP cannot send"):
                await failing
    assert server.asked == []


async def test_errors_never_show_the_query(server: FaultServer) -> None:
    server.play(b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n")
    async with aclosing(Upstream(f"{server.url}?key=secret", method="get", retries=0)) as upstream:
        with pytest.raises(SourceError) as caught:
            await upstream.answer(Operation("SELECT * { ?private ?p ?o }"))
    assert "private" not in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_the_union_of_all_graphs_is_refused(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY))
    with pytest.raises(UsageError, match="union"):
        await solutions(upstream, Request(SELECT, (UNION,)))
    assert server.asked == []


# --- a real engine ---------------------------------------------------------------------------------------------------

DATA = "<urn:s> <urn:p> 'é\"'@fr, 1, <urn:o> .\n<< <urn:s> <urn:p> 1 >> <urn:q> _:b .\n"
QUERIES = {
    "select": "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o",
    "ask": "ASK { ?s ?p ?o }",
    "construct": "CONSTRUCT WHERE { <urn:s> ?p ?o }",
    "refused": "SELECT * {",
}


@pytest.mark.parametrize("accept", [JSON, XML, TSV, "text/csv", "text/turtle", "application/n-triples", "image/png"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
async def test_an_engines_answers_are_its_own(
    oxigraph_server: Serve, tmp_path_factory: pytest.TempPathFactory, query: str, accept: str
) -> None:
    data = tmp_path_factory.getbasetemp() / "upstream.ttl"
    data.write_text(DATA, encoding="utf-8")
    url = oxigraph_server(data)
    form = urlencode({"query": query}).encode()
    direct = urllib.request.Request(url, form, {"Accept": accept})

    def ask() -> tuple[int, str | None, bytes]:
        try:
            with urllib.request.urlopen(direct) as response:
                return response.status, response.headers["Content-Type"], response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read()

    async with aclosing(Upstream(url)) as upstream:
        answer = await upstream.answer(Operation(query, headers={"Accept": accept}))
        relayed = answer.status, dict(answer.headers).get("Content-Type"), await body_of(answer)
        assert relayed == await asyncio.to_thread(ask)
        await upstream.check()


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", response(JSON_BODY)[:20], response(JSON_BODY)[:300]], ids=["", "head", "body"])
@pytest.mark.parametrize("bound", ["total", "read"])
async def test_a_stall(server: FaultServer, sent: bytes, bound: str) -> None:
    server.play([sent, STALL])
    read_seconds, timeout = (60.0, 0.2) if bound == "total" else (0.2, None)
    async with aclosing(Upstream(server.url, read_seconds=read_seconds)) as upstream:
        with pytest.raises(SourceTimeout) as caught:
            await body_of(await upstream.answer(Operation(TEXT, timeout=timeout)))
        assert caught.value.status == 504
        assert await asyncio.to_thread(server.left.wait, 5)
        server.left.clear()
        with pytest.raises(SourceTimeout):
            await solutions(upstream, Request(SELECT, timeout=timeout))
        assert await asyncio.to_thread(server.left.wait, 5)


# --- retries ---------------------------------------------------------------------------------------------------------


def busy(status: int, **headers: str) -> bytes:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return response(b"busy", "text/plain", status=f"{status} Busy", headers=given)


@pytest.mark.parametrize("failure", [busy(429), busy(502), busy(503, Retry_After="1"), busy(504), b"", [RESET]])
async def test_an_operation_is_sent_again(server: FaultServer, upstream: Upstream, failure: Any) -> None:
    server.play(failure, failure, response(b"ok", "text/plain"))
    answer = await upstream.answer(ASK)
    assert (answer.status, await body_of(answer)) == (200, b"ok")
    assert len({(asked.method, asked.body) for asked in server.asked}) == 1
    assert len(server.asked) == 3


async def test_the_last_refusal_is_relayed(server: FaultServer, upstream: Upstream) -> None:
    server.play(busy(503), busy(429), busy(503, Retry_After="3"), busy(429))
    answer = await upstream.answer(ASK)
    assert (answer.status, await body_of(answer)) == (503, b"busy")
    assert dict(answer.headers)["Retry-After"] == "3"
    assert len(server.asked) == 3


async def test_a_failure_behind_a_refusal_is_the_failure(server: FaultServer, upstream: Upstream) -> None:
    server.play(busy(503), busy(503), response(b"", status="302 Found", headers={"Location": "http://other.example/"}))
    with pytest.raises(SourceError, match="was not followed"):
        await upstream.answer(ASK)


async def test_a_refusal_for_longer_is_relayed_at_once(server: FaultServer, upstream: Upstream) -> None:
    server.play(busy(429, Retry_After="11"))
    answer = await upstream.answer(ASK)
    assert (answer.status, await body_of(answer)) == (429, b"busy")
    assert len(server.asked) == 1


UPDATE = Operation("CLEAR ALL", update=True, timeout=10)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_an_update_that_is_refused_is_not_sent_again(
    server: FaultServer, upstream: Upstream, status: int
) -> None:
    server.play(busy(status, Retry_After="1"))
    answer = await upstream.answer(UPDATE)
    assert (answer.status, await body_of(answer)) == (status, b"busy")
    assert len(server.asked) == 1


@pytest.mark.parametrize("failure", [b"", [RESET], [busy(200)[:20], RESET]], ids=["nothing", "reset", "half a head"])
async def test_an_update_that_may_have_been_done_is_not_sent_again(
    server: FaultServer, upstream: Upstream, failure: Any
) -> None:
    server.play(failure)
    with pytest.raises(SourceError, match="could not be reached"):
        await upstream.answer(UPDATE)
    assert len(server.asked) == 1


async def test_an_update_that_was_never_sent_is_sent_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        async with aclosing(Upstream(f"http://127.0.0.1:{taken.getsockname()[1]}/", retries=3)) as upstream:
            with own_pauses():
                answering = asyncio.create_task(upstream.answer(UPDATE))
                await asyncio.sleep(0.1)
                taken.listen()
                connection, _ = await asyncio.to_thread(taken.accept)
                with connection:
                    assert b"update=CLEAR" in await asyncio.to_thread(_all_of, connection)
                    connection.sendall(busy(200))
                    assert (await answering).status == 200


def _all_of(connection: socket.socket) -> bytes:
    request = b""
    while not request.endswith(b"ALL"):
        request += connection.recv(1 << 16)
    return request


async def test_a_relayed_answer_that_has_begun_is_not_sent_again(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY, cut=0), response(JSON_BODY))
    with pytest.raises(IncompleteResult):
        await body_of(await upstream.answer(ASK))
    assert len(server.asked) == 1


# --- connections -----------------------------------------------------------------------------------------------------


async def test_a_complete_answer_gives_its_connection_back(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    for _ in range(3):
        assert await body_of(await upstream.answer(ASK)) == JSON_BODY
        assert await solutions(upstream) == TABLE
    assert (len(server.asked), server.connections) == (6, 1)


async def test_pages_share_a_connection(server: FaultServer, upstream: Upstream) -> None:
    parts = [json_document(VARIABLES, TABLE[start : start + 5]) for start in (0, 5, 10, 15)]
    server.play(*(response(part, keep_alive=True) for part in parts))
    assert await solutions(upstream, Request(SELECT, page_size=5)) == TABLE
    assert (len(server.asked), server.connections) == (4, 1)


@pytest.mark.parametrize("at_once", [True, False])
async def test_chunks_of_http_1_0_are_the_last_of_their_connection(
    server: FaultServer, upstream: Upstream, at_once: bool
) -> None:
    """Issue 13, 23: the framing counts as faulty (RFC 9112, section 6.1)."""
    whole = response(JSON_BODY, keep_alive=True).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    server.play([whole] if at_once else [whole[:300], PAUSE, whole[300:]])
    for _ in range(3):
        assert await solutions(upstream) == TABLE
    assert (len(server.asked), server.connections) == (3, 3)


@pytest.mark.parametrize("read_first", [False, True])
async def test_closing_the_body_ends_the_request(server: FaultServer, upstream: Upstream, read_first: bool) -> None:
    server.play([response(JSON_BODY, keep_alive=True)[:-200], STALL])
    answer = await upstream.answer(ASK)
    if read_first:
        assert await anext(answer.body)
    await answer.body.aclose()
    assert await asyncio.to_thread(server.left.wait, 5)


async def test_closing_the_solutions_ends_the_request(server: FaultServer, upstream: Upstream) -> None:
    server.play([response(JSON_BODY, keep_alive=True)[:-200], STALL])
    batches = upstream.asolutions(Request(SELECT))
    assert await anext(batches)
    await batches.aclose()
    assert await asyncio.to_thread(server.left.wait, 5)


async def cancel_once_asked(server: FaultServer, task: asyncio.Task[Any]) -> None:
    """Cancels what waits for the endpoint, which must notice."""
    await until(lambda: server.asked)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, 5)


@pytest.mark.parametrize("sent", [b"", response(JSON_BODY)[:300]], ids=["before the answer", "within it"])
@pytest.mark.parametrize("what", ["answer", "solutions"])
async def test_a_task_that_is_cancelled_ends_the_request(
    server: FaultServer, upstream: Upstream, sent: bytes, what: str
) -> None:
    server.play([sent, STALL])

    async def answer() -> None:
        await body_of(await upstream.answer(ASK))

    async def read() -> None:
        await solutions(upstream)

    task = asyncio.create_task(answer() if what == "answer" else read())
    await cancel_once_asked(server, task)


async def test_cancelled_while_it_waits_for_a_busy_endpoint(server: FaultServer, upstream: Upstream) -> None:
    server.play([busy(503, Retry_After="30")[:-3], STALL])
    with own_pauses():
        task = asyncio.create_task(upstream.answer(Operation(TEXT)))
        await cancel_once_asked(server, task)


async def test_many_at_once(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    answers = await asyncio.gather(*(solutions(upstream) for _ in range(40)))
    assert answers == [TABLE] * 40


async def test_no_more_connections_than_allowed(server: FaultServer) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    async with aclosing(Upstream(server.url, connections=3)) as upstream:
        assert await asyncio.gather(*(solutions(upstream) for _ in range(20))) == [TABLE] * 20
    assert server.connections <= 3


async def test_clients_that_leave_keep_no_connection(server: FaultServer) -> None:
    """Cancelled at many moments over a pool of two, whose connections all come back."""
    whole = response(JSON_BODY, keep_alive=True)
    drip = [whole[start : start + 40] for start in range(0, len(whole), 40)]
    server.play(drip)

    async def relay(upstream: Upstream) -> None:
        await body_of(await upstream.answer(Operation(TEXT)))

    async def read(upstream: Upstream) -> None:
        await solutions(upstream, Request(SELECT))

    async with aclosing(Upstream(server.url, connections=2)) as upstream:
        for moment in range(60):
            task = asyncio.create_task((relay if moment % 2 else read)(upstream))
            await asyncio.sleep(moment / 20_000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.gather(*(solutions(upstream) for _ in range(6))) == [TABLE] * 6


async def test_closing_ends_what_is_under_way(server: FaultServer) -> None:
    server.play([response(JSON_BODY)[:300], STALL])
    upstream = Upstream(server.url)
    answer = await upstream.answer(ASK)
    await upstream.aclose()
    with pytest.raises(IncompleteResult):
        await body_of(answer)
    assert await asyncio.to_thread(server.left.wait, 5)
    for failing in (upstream.answer(ASK), solutions(upstream)):
        with pytest.raises(SourceError, match="are closed") as caught:
            await failing
        assert caught.value.status == 503


async def test_a_rate_makes_requests_wait_their_turn(server: FaultServer) -> None:
    """At two a second, the third page waits for half a second; it does not fail."""
    parts = [json_document(VARIABLES, TABLE[start : start + 5]) for start in (0, 5, 10, 15)]
    server.play(*(response(part, keep_alive=True) for part in parts))
    loop = asyncio.get_running_loop()
    async with aclosing(Upstream(server.url, rate=2)) as upstream:
        started = loop.time()
        assert await solutions(upstream, Request(SELECT, page_size=5, timeout=10)) == TABLE
        assert loop.time() - started >= 0.4  # never less, however slow the machine


# --- check -----------------------------------------------------------------------------------------------------------


async def test_check(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(b'{"head":{},"boolean":true}'))
    await upstream.check()
    assert server.asked[0].parameters["query"] == ["ASK {}"]
    for failure in (
        busy(503),
        busy(500),
        b"",
        *(response(PAGE, "text/html", status=f"{code} X") for code in (200, 404)),
    ):
        server.play(failure)
        with pytest.raises(SourceError):
            await upstream.check()
        assert len(server.asked) == 1

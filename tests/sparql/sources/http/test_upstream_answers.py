"""An endpoint behind a server: what of its answers is relayed, and what is not."""

from __future__ import annotations

import asyncio
import gzip
import urllib.error
import urllib.request
from contextlib import aclosing
from urllib.parse import urlencode

import pytest

from construct_messages.errors import IncompleteResult, SourceError, UsageError
from construct_messages.rdf.options import UNION
from construct_messages.sparql.sources import Operation, Request
from construct_messages.sparql.sources.http.upstream import Upstream
from tests.support.engines.servers import Serve
from tests.support.http.clients import JSON_BODY, SELECT
from tests.support.http.fault_server import JSON, RESET, STALL, TSV, XML, FaultServer, response
from tests.support.http.upstream import ASK, PAGE, TEXT, body_of, solutions

pytestmark = pytest.mark.usefixtures("at_once")

# --- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", [200, 201, 206, 300, 400, 403, 404, 406, 410, 418, 422, 500, 501]
)
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
async def test_an_answer_without_a_body(
    server: FaultServer, upstream: Upstream, status: int
) -> None:
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
async def test_a_status_that_is_no_answer(
    server: FaultServer, upstream: Upstream, status: str
) -> None:
    server.play(response(JSON_BODY, status=status))
    with pytest.raises(SourceError) as caught:
        await upstream.answer(ASK)
    assert caught.value.status == 502


async def test_only_the_head(server: FaultServer, upstream: Upstream) -> None:
    server.play([response(JSON_BODY, framing="length", cut=10), STALL])
    answer = await upstream.answer(Operation(TEXT, head=True))
    assert dict(answer.headers)["Content-Length"] == str(len(JSON_BODY))
    await answer.body.aclose()
    assert await asyncio.to_thread(server.left.wait, 60)


@pytest.mark.parametrize("cut", [0, 1, 100, len(JSON_BODY) - 1])
@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_body_that_is_cut_is_an_error(
    server: FaultServer, upstream: Upstream, framing: str, cut: int
) -> None:
    server.play(response(JSON_BODY, framing=framing, cut=cut))
    answer = await upstream.answer(ASK)
    with pytest.raises(IncompleteResult, match="was cut"):
        await body_of(answer)
    server.play([response(JSON_BODY, framing=framing, cut=cut), RESET])
    with pytest.raises(SourceError):
        await body_of(await upstream.answer(ASK))


@pytest.mark.parametrize(
    ("status", "accept", "parameters", "headers", "expected"),
    [
        pytest.param(200, "text/html", (), {}, None, id="asked for"),
        pytest.param(
            404, "application/json, text/HTML;q=0.1", (), {}, None, id="asked for among others"
        ),
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
    server.play(
        response(PAGE, "text/html; charset=utf-8", status=f"{status} Well", headers=headers)
    )
    operation = Operation(TEXT, headers={"Accept": accept}, parameters=parameters, timeout=120)
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
        assert (caught.value.status, caught.value.response_status) == (for_messages, status)


@pytest.mark.parametrize(
    "location",
    [
        *(
            "http://169.254.169.254/latest",
            "http://localhost:1/",
            "file:///etc/passwd",
            "//elsewhere.example/",
        ),
        *("http://[", "//h:99999/", "/a\x01b"),
    ],
)
async def test_redirects_to_elsewhere(
    server: FaultServer, upstream: Upstream, location: str
) -> None:
    server.play(response(b"", status="307 Temporary Redirect", headers={"Location": location}))
    for failing in (upstream.answer(ASK), solutions(upstream)):
        with pytest.raises(
            SourceError, match=r"was not followed|is not a URL|could not be reached"
        ) as caught:
            await failing
        assert caught.value.status == 502


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n",
    ],
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
            with pytest.raises(
                UsageError, match="Accept-Language has a value that HTTP cannot send"
            ):
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


@pytest.mark.parametrize(
    "accept", [JSON, XML, TSV, "text/csv", "text/turtle", "application/n-triples", "image/png"]
)
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

"""What docs/security.md promises: each of its promises names the tests that keep it, here or elsewhere."""

import asyncio
import contextlib
import gc
import gzip
import io
import json
import logging
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio

from construct_messages.errors import ConstructMessagesError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.server.config import Config, EndpointSettings, Limits
from construct_messages.server.http import app
from construct_messages.server.http.request_log import RequestLog
from tests.support.http.fault_server import JSON, STALL, XML, FaultServer, response
from tests.support.http.serving import Served, serving
from tests.support.places import ROOT
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

IN_MODULE = pytest.mark.asyncio(loop_scope="module")
CONSTRUCT = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p ?o }"
RDFM = "application/n-quads; messages=rdfm"
EMPTY = b'{"head":{"vars":["s","o"]},"results":{"bindings":[]}}'
FORM = "application/x-www-form-urlencoded"
SECRET = "s3cr3t-t0ken"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyoxigraph as ox

    directory = tmp_path_factory.mktemp("security") / "store"
    written = ox.Store(str(directory))
    written.load(b"<urn:a> <urn:p> <urn:b> .", format=ox.RdfFormat.N_TRIPLES)
    written.flush()
    return directory


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    server = FaultServer()
    server.play(response(EMPTY))
    yield server
    server.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files(store: Path) -> AsyncIterator[Served]:
    async with serving(store, limits=Limits(seconds=10)) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as session:
        yield session


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, Callable[[], None]]]:
    """A URL of the server's own network, and what fails if anybody has connected there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)

        def untouched() -> None:
            with pytest.raises(BlockingIOError):
                listener.accept()

        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", untouched


async def over_socket(url: str, request: bytes, *pieces: bytes, seconds: float = 10) -> bytes:
    """All that the server sends until it closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    received = b""
    try:
        async with asyncio.timeout(seconds):
            for piece in pieces:
                await asyncio.sleep(0.05)
                writer.write(piece)
            with contextlib.suppress(ConnectionError):
                while chunk := await reader.read(1 << 16):
                    received += chunk
    finally:
        writer.close()
    return received


# --- whom the server talks to ---------------------------------------------------------------------------------------

REACHING_OUT = {
    "SERVICE": "SELECT * { SERVICE <URL> { ?s ?p ?o } }",
    "SILENT": "SELECT * { SERVICE SILENT <URL> { ?s ?p ?o } }",
    "a variable": "SELECT * { VALUES ?e { <URL> } SERVICE ?e { ?s ?p ?o } }",
    "bound": "SELECT * { BIND(IRI('URL') AS ?e) SERVICE ?e { ?s ?p ?o } }",
    "nested": "SELECT * { { OPTIONAL { { SERVICE <URL> { ?s ?p ?o } } } } }",
    "in a sub-query": "SELECT * { { SELECT * { SERVICE <URL> { ?s ?p ?o } } } }",
    "in EXISTS": "ASK { FILTER EXISTS { SERVICE <URL> { ?s ?p ?o } } }",
    "by a prefix": "PREFIX e: <URL> SELECT * { SERVICE e: { ?s ?p ?o } }",
    "by BASE": "BASE <URL> SELECT * { SERVICE <> { ?s ?p ?o } }",
    "escaped": "SELECT * { \\u0053ERVICE <URL> { ?s ?p ?o } }",
    "in small letters": "SELECT * { service\n#\n<URL> { ?s ?p ?o } }",
    "in a CONSTRUCT": "CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <URL> { ?s ?p ?o } }",
    "FROM": "SELECT * FROM <URL> { ?s ?p ?o }",
    "FROM NAMED": "SELECT * FROM NAMED <URL> { GRAPH ?g { ?s ?p ?o } }",
    "GRAPH": "SELECT * { GRAPH <URL> { ?s ?p ?o } }",
    "DEFINE": "DEFINE get:soft 'replace' SELECT * FROM <URL> { ?s ?p ?o }",
    "LOAD": "LOAD <URL>",
    "LOAD SILENT": "LOAD SILENT <URL> INTO GRAPH <urn:g>",
}
NAMING_URLS = (
    *("endpoint", "service", "default-graph-uri", "named-graph-uri", "using-graph-uri", "query-uri", "xslt-uri"),
    *("source", "url", "get:uri", "stylesheet", "callback", "save"),
)


@pytest.mark.parametrize("accept", [RDFM, "*/*"])
@pytest.mark.parametrize("name", REACHING_OUT)
@IN_MODULE
async def test_no_query_makes_files_reach_out(
    files: Served, session: aiohttp.ClientSession, elsewhere: Any, name: str, accept: str
) -> None:
    url, untouched = elsewhere
    text = REACHING_OUT[name].replace("URL", url)
    for data in ({"query": text}, {"update": text}):
        async with session.post(files.sparql, data=data, headers={"Accept": accept}) as answer:
            await answer.read()
            assert answer.status in (200, 400, 403, 406)
    untouched()


@pytest.mark.parametrize("kind", ["files", "endpoint"])
@IN_MODULE
async def test_no_parameter_or_header_names_a_source(
    store: Path, upstream: FaultServer, session: aiohttp.ClientSession, elsewhere: Any, kind: str
) -> None:
    url, untouched = elsewhere
    async with serving(store if kind == "files" else upstream.url) as server:
        for accept in (RDFM, "*/*"):
            parameters = {"query": CONSTRUCT, "should-sponge": "grab-all", **dict.fromkeys(NAMING_URLS, url)}
            async with session.get(server.sparql, params=parameters, headers={"Accept": accept}) as answer:
                assert answer.status in (200, 400)
        authority = url.removeprefix("http://").rstrip("/")
        target = f"/sparql?query={quote(CONSTRUCT)}"
        for line, host in ((f"{url}{target[1:]}", "localhost"), (target, authority), (f"//{authority}{target}", "x")):
            head = f"GET {line} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-Host: {authority}\r\nConnection: close\r\n\r\n"
            assert (await over_socket(server.url, head.encode())).startswith(b"HTTP/1.1 ")
    untouched()
    fetching = {"should-sponge", "query-uri", "xslt-uri", "get:uri", "save"}
    for asked in upstream.asked:
        assert asked.target.partition("?")[0] == "/sparql"
        assert not fetching & set(asked.parameters)


@IN_MODULE
async def test_a_pragma_that_fetches_is_refused_before_an_upstream(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    async with serving(upstream.url) as server:
        for text in ("DEFINE get:soft 'soft' SELECT * {}", "DEFINE input:grab-all 'yes' SELECT * {}"):
            for query in (text, text.replace("g", "\\u0067", 1)):
                async with session.post(server.sparql, data={"query": query}) as answer:
                    assert answer.status == 403
    assert upstream.asked == []


@IN_MODULE
async def test_a_list_of_services_binds_an_upstream_too(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    allowed = "https://example.org/sparql"
    async with serving(upstream.url, service=(allowed,)) as server:
        for name in ("SERVICE", "SILENT", "a variable", "nested", "in a sub-query", "escaped", "in a CONSTRUCT"):
            query = REACHING_OUT[name].replace("URL", "http://127.0.0.1:1/")
            for accept in (RDFM, "*/*"):
                async with session.post(server.sparql, data={"query": query}, headers={"Accept": accept}) as answer:
                    assert answer.status in (403, 406)
        assert upstream.asked == []
        query = REACHING_OUT["SERVICE"].replace("URL", allowed)
        async with session.post(server.sparql, data={"query": query}) as answer:
            assert answer.status == 200


UPDATES = {
    "a parameter": ("POST", {}, {"update": "CLEAR ALL"}),
    "the body": ("POST", {}, b"CLEAR ALL"),
    "by GET": ("GET", {"update": "CLEAR ALL"}, None),
    "in the URL of a POST": ("POST", {"update": "CLEAR ALL"}, {}),
    "beside a query": ("POST", {}, {"query": "ASK {}", "update": "CLEAR ALL"}),
    "as a query": ("POST", {}, {"query": "INSERT DATA { <urn:s> <urn:p> 1 }"}),
    "as a query by GET": ("GET", {"query": "DROP ALL"}, None),
    "in small letters": ("POST", {}, {"query": "prefix : <urn:> delete where { ?s ?p ?o }"}),
    "behind a comment": ("POST", {}, {"query": "# ASK {}\rCLEAR ALL"}),
    "escaped": ("POST", {}, {"query": "\\u0043LEAR ALL"}),
    "an unknown keyword": ("POST", {}, {"query": "MODIFY <urn:g> DELETE { ?s ?p ?o } INSERT {} WHERE { ?s ?p ?o }"}),
    "another unknown keyword": ("POST", {}, {"query": "SPARUL CLEAR GRAPH <urn:g>"}),
    "WITH": ("POST", {}, {"query": "WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }"}),
    "a byte order mark": ("POST", {}, {"query": "\ufeffCLEAR ALL"}),
}


@pytest.mark.parametrize("kind", ["files", "endpoint"])
@pytest.mark.parametrize("name", UPDATES)
@IN_MODULE
async def test_updates_are_refused(
    store: Path, upstream: FaultServer, session: aiohttp.ClientSession, name: str, kind: str
) -> None:
    method, parameters, data = UPDATES[name]
    headers = {"Content-Type": "application/sparql-update"} if isinstance(data, bytes) else {}
    async with (
        serving(store if kind == "files" else upstream.url) as server,
        session.request(method, server.sparql, params=parameters, data=data, headers=headers) as answer,
    ):
        assert answer.status in (400, 403)
    assert upstream.asked == []


@IN_MODULE
async def test_percent_signs_hide_no_update(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    """A parameter is decoded once, and what goes on is what was read."""
    async with serving(upstream.url) as server:
        for body in (b"%75pdate=CLEAR+ALL", b"query=%43LEAR+ALL", b"query=CLEAR%00ALL"):
            async with session.post(server.sparql, data=body, headers={"Content-Type": FORM}) as answer:
                assert answer.status in (400, 403)
        assert upstream.asked == []
        hiding = b"query=ASK+%7B%7D&%2575pdate=x&Update=CLEAR+ALL&UPDATE=CLEAR+ALL&a%26update=CLEAR+ALL"
        async with session.post(server.sparql, data=hiding, headers={"Content-Type": FORM}) as answer:
            assert answer.status == 200
    (asked,) = upstream.asked
    assert asked.parameters["query"] == ["ASK {}"]
    assert "update" not in {name.lower() for name in asked.parameters}


# --- headers and secrets --------------------------------------------------------------------------------------------

PRIVATE = {
    "Authorization": "Bearer of-the-client",
    "Cookie": "session=of-the-client",
    "Proxy-Authorization": "Basic of-the-client",
    "X-Forwarded-For": "192.0.2.1",
    "X-Forwarded-Host": "evil.example",
    "Forwarded": "for=192.0.2.1",
    "Origin": "https://of-the-client.example",
    "Referer": "https://of-the-client.example/",
    "Host": "of-the-client.example",
    "User-Agent": "of-the-client",
    "X-Anything": "of-the-client",
    "X-HTTP-Method-Override": "DELETE",
    "Range": "bytes=0-1",
}


@pytest.mark.parametrize("accept", [RDFM, "*/*"])
@IN_MODULE
async def test_client_headers_stay_here(upstream: FaultServer, session: aiohttp.ClientSession, accept: str) -> None:
    headers = {**PRIVATE, "Accept": accept, "Accept-Language": "fr"}
    async with (
        serving(upstream.url) as server,
        session.get(server.sparql, params={"query": CONSTRUCT}, headers=headers) as answer,
    ):
        assert answer.status == 200
    (asked,) = upstream.asked
    assert asked.headers["accept-language"] == "fr"
    assert asked.headers["host"] == f"127.0.0.1:{upstream.port}"
    assert "of-the-client" not in str(asked.headers)
    assert not {"authorization", "cookie", "x-forwarded-for", "forwarded", "origin", "range"} & set(asked.headers)


@IN_MODULE
async def test_headers_go_on_where_that_is_configured(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    for accept in (RDFM, "*/*"):
        async with (
            serving(upstream.url, forward_headers=("Authorization",)) as server,
            session.get(server.sparql, params={"query": CONSTRUCT}, headers={**PRIVATE, "Accept": accept}) as answer,
        ):
            assert answer.status == 200
        assert upstream.asked[-1].headers["authorization"] == PRIVATE["Authorization"]
        assert "cookie" not in upstream.asked[-1].headers


@IN_MODULE
async def test_upstream_headers_stay_there(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    hostile = {
        "Set-Cookie": "a=b; Domain=example.org",
        "Server": "hostile",
        "Content-Security-Policy": "default-src *",
        "Content-Security-Policy-Report-Only": "default-src *",
        "Access-Control-Allow-Origin": "https://evil.example",
        "Access-Control-Allow-Credentials": "true",
        "Location": "https://evil.example/",
        "Refresh": "0; url=https://evil.example/",
        "Strict-Transport-Security": "max-age=31536000",
        "Clear-Site-Data": "*",
        "Service-Worker-Allowed": "/",
        "X-Content-Type-Options": "sniff",
        "X-Request-ID": "hostile",
        "Alt-Svc": 'h2="evil.example:443"',
    }
    upstream.play(response(EMPTY, headers={**hostile, "ETag": '"kept"'}))
    async with (
        serving(upstream.url) as server,
        session.get(server.sparql, params={"query": "SELECT * {}"}) as answer,
    ):
        assert await answer.read() == EMPTY
    assert answer.headers["ETag"] == '"kept"'
    for name, value in hostile.items():
        assert value not in answer.headers.getall(name, [])


@IN_MODULE
async def test_pages_for_browsers_cannot_act(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    page = b"<script>alert(1)</script>"
    for content_type in ("text/html", "TEXT/HTML;charset=x", "application/xhtml+xml", "text/plain, text/html"):
        upstream.play(response(page, content_type))
        async with serving(upstream.url) as server:
            for accept in (RDFM, "*/*"):
                parameters = {"query": CONSTRUCT}
                async with session.get(server.sparql, params=parameters, headers={"Accept": accept}) as answer:
                    assert (answer.status, answer.content_type) == (502, "application/problem+json")
                    assert b"script" not in await answer.read()
    # whoever asks for a page gets it, without any right to run
    upstream.play(response(page, "text/html"))
    async with (
        serving(upstream.url) as server,
        session.get(server.sparql, params={"query": CONSTRUCT}, headers={"Accept": "text/html"}) as answer,
    ):
        assert await answer.read() == page
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "sandbox" in answer.headers["Content-Security-Policy"]


@IN_MODULE
async def test_credentials_go_to_the_upstream_only(
    upstream: FaultServer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, elsewhere: Any
) -> None:
    monkeypatch.setenv("EXAMPLE_TOKEN", SECRET)
    url, untouched = elsewhere
    answers = (
        response(EMPTY),
        response(b"no", status="401 No", headers={"WWW-Authenticate": "Bearer"}),
        response(b"", status="307 Elsewhere", headers={"Location": url}),
        response(EMPTY, cut=20),
        response(b"x", status="500 No"),
        b"garbage",
    )
    shown = ""
    async with serving(upstream.url, token_variable="EXAMPLE_TOKEN", retries=0) as server:
        for answer in answers:
            for accept in (RDFM, "*/*"):
                upstream.play(answer)
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(
                        server.sparql, params={"query": CONSTRUCT}, headers={"Accept": accept}
                    ) as shown_to_client:
                        shown += f"{shown_to_client.headers} {await shown_to_client.text()}"
                assert upstream.asked[0].headers["authorization"] == f"Bearer {SECRET}"
        for path in ("/sparql", "/metrics", "/health/ready", "/elsewhere"):
            async with session.get(f"{server.url}{path}") as shown_to_client:
                shown += f"{shown_to_client.headers} {await shown_to_client.text()}"
    untouched()
    assert server.request_log.getvalue().count("event=request") >= 2 * len(answers)
    assert SECRET not in shown + server.request_log.getvalue()


# --- what every response says ---------------------------------------------------------------------------------------


@IN_MODULE
async def test_security_headers_are_on_every_response(files: Served, session: aiohttp.ClientSession) -> None:
    asked = [
        *[("GET", path) for path in ("/sparql", "/health/live", "/health/ready", "/metrics", "/elsewhere")],
        *[("GET", f"/sparql?query={quote(query)}") for query in (CONSTRUCT, "ASK {}", "CLEAR ALL", "nonsense")],
        *[(method, "/sparql") for method in ("POST", "HEAD", "OPTIONS", "DELETE", "PROPFIND")],
        ("GET", f"/sparql?messages=rdfm&query={quote(CONSTRUCT)}"),
        ("POST", "/metrics"),
    ]
    statuses = set()
    for method, path in asked:
        body = b"[]" if method == "POST" else None
        async with session.request(method, f"{files.url}{path}", data=body, headers={"Expect": ""}) as answer:
            statuses.add(answer.status)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert answer.headers["Server"] == "construct-messages"
    assert statuses == {200, 204, 400, 403, 404, 405, 415}


@IN_MODULE
async def test_other_origins_never_get_credentials(store: Path, session: aiohttp.ClientSession) -> None:
    for cors in (("*",), ("https://example.org",)):
        async with serving(store, settings={"cors": cors}) as server:
            for origin in ("https://example.org", "https://evil.example", "null"):
                for method in ("GET", "OPTIONS"):
                    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                    async with session.request(method, server.sparql, headers=headers) as answer:
                        allowed = answer.headers.get("Access-Control-Allow-Origin")
                        assert allowed == ("*" if cors == ("*",) else origin if origin in cors else None)
                        assert "Access-Control-Allow-Credentials" not in answer.headers


@IN_MODULE
async def test_no_header_of_a_client_is_echoed_raw(files: Served) -> None:
    """Those that are echoed at all: plain text in, plain text out."""
    for name in ("X-Request-ID", "Origin", "Access-Control-Request-Headers", "Accept", "Content-Type", "Host"):
        value = b"a\xff\xfe\xc3\xa9"
        fields = {b"Host": b"x", b"Access-Control-Request-Method": b"POST", name.encode(): value}
        head = b"".join(b"%b: %b\r\n" % field for field in fields.items())
        for line in (b"OPTIONS /sparql", b"POST /sparql", b"GET /sparql", b"GET /metrics"):
            received = await over_socket(files.url, b"%b HTTP/1.1\r\n%bConnection: close\r\n\r\n" % (line, head))
            received_head, _, body = received.partition(b"\r\n\r\n")
            assert not received.startswith(b"HTTP/1.1 5")
            received_head.decode()
            body.decode()


# --- the log --------------------------------------------------------------------------------------------------------


@IN_MODULE
async def test_query_texts_are_not_logged(store: Path, upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    word = "Zq7secretword"
    lines = io.StringIO()
    handler = RequestLog(Config(endpoints={}, log_level="debug"), lines).handler()
    logging.getLogger().addHandler(handler)
    try:
        for source in (store, upstream.url):
            async with serving(source, retries=0) as server:
                for text in (f"ASK {{}} # {word}", f"CONSTRUCT {{ ?{word} }}", f"{word}", f"CLEAR GRAPH <urn:{word}>"):
                    for accept in (RDFM, "*/*"):
                        data = {"query": text}
                        async with session.post(server.sparql, data=data, headers={"Accept": accept}) as answer:
                            await answer.read()
                # what aiohttp itself refuses: its own log line would hold the request
                for request in (
                    f"GET /sparql?query={word} HTTP/1.1\r\nHost: x\r\nContent-Length: {word}\r\n\r\n",
                    f"GET /sparql?query={word}\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
                    f"POST /sparql HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{word}\r\n",
                ):
                    received = await over_socket(server.url, request.encode())
                    assert received.startswith(b"HTTP/1.0 400 ")
                assert server.request_log.getvalue().count("event=request") >= 8
                assert word not in server.request_log.getvalue()
    finally:
        logging.getLogger().removeHandler(handler)
    assert word not in lines.getvalue()


@IN_MODULE
async def test_no_request_writes_a_line_of_its_own(files: Served, session: aiohttp.ClientSession) -> None:
    forged = "level=error event=forged"
    before = files.request_log.getvalue().count("\n")
    async with session.get(
        files.sparql, params={"query": f"nonsense\n{forged}"}, headers={"User-Agent": forged, "X-Request-ID": forged}
    ) as answer:
        await answer.read()
    async with session.get(f"{files.url}/%0A{quote(forged)}") as answer:
        await answer.read()
    written = files.request_log.getvalue()
    assert written.count("\n") == before + 2
    assert "forged" not in written


# --- bounds ---------------------------------------------------------------------------------------------------------


@IN_MODULE
async def test_a_request_body_must_arrive_in_time(store: Path) -> None:
    head = f"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM}\r\nContent-Length: 1000\r\n\r\n".encode()
    async with serving(store, limits=Limits(idle_seconds=0.5)) as server, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(*server.url.removeprefix("http://").split(":"))
        answered = asyncio.create_task(reader.readline())
        writer.write(head)
        while not answered.done():
            writer.write(b"a")
            await asyncio.sleep(0.1)
        writer.close()
    assert answered.result().startswith(b"HTTP/1.1 408 ")


@IN_MODULE
async def test_request_heads_must_arrive_in_time(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte or not at all: the time runs from the connection, or the last response, to the whole head."""
    monkeypatch.setattr(app, "_KEEP_ALIVE_SECONDS", 0.5)
    async with serving(store) as server:
        for request, pieces in (
            (b"", ()),
            (b"GET /sparql HTTP/1.1\r\nHost: x\r\n", [b"X-%d: y\r\n" % n for n in range(15)]),
        ):
            began = time.monotonic()
            assert await over_socket(server.url, request, *pieces) == b""
            assert time.monotonic() - began < 5


@IN_MODULE
async def test_large_request_heads_are_refused(files: Served) -> None:
    for line in (b"X-A: " + b"y" * 70_000, b"\r\n".join(b"X-%d: y" % number for number in range(200))):
        received = await over_socket(files.url, b"GET /sparql HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n" % line)
        assert received.startswith(b"HTTP/1.0 400 ")
    received = await over_socket(files.url, b"GET /sparql?%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"y" * 140_000))
    assert received.startswith(b"HTTP/1.0 400 ")


@IN_MODULE
async def test_coded_request_bodies_are_refused(files: Served, session: aiohttp.ClientSession) -> None:
    bomb = gzip.compress(b"query=" + b"a" * 100_000_000, 9)
    assert len(bomb) < 200_000
    for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        headers = {"Content-Type": FORM, "Content-Encoding": coding}
        async with session.post(files.sparql, data=bomb, headers=headers) as answer:
            assert answer.status == 415


@IN_MODULE
async def test_busy_is_said_at_once(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    upstream.play([response(EMPTY, cut=0), STALL])
    async with serving(upstream.url, concurrency=1, queue_length=0) as server:

        async def ask() -> tuple[int, str | None]:
            async with session.get(server.sparql, params={"query": "ASK {}"}) as answer:
                return answer.status, answer.headers.get("Retry-After")

        first = asyncio.create_task(ask())
        await eventually(lambda: upstream.asked)
        async with asyncio.timeout(5):
            assert await ask() == (503, "10")
        first.cancel()


@IN_MODULE
async def test_a_compressed_answer_takes_bounded_memory(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    """One solution that never ends, a thousand times as large as what is sent: refused, whatever comes behind."""
    packed = gzip.compress(b'{"results":{"bindings":[{"s":{"type":"literal","value":"' + b"a" * (64 << 20), 6)
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
    "brackets in the head": (lambda size: b'{"head":{"link":[' + b'{"bindings":[]},' * (size >> 4), JSON),
    "empty solutions": (lambda size: b'{"results":{"bindings":[' + b"{}," * (size // 3), JSON),
    "one solution": (
        lambda size: b'{"results":{"bindings":[{"s":{"type":"literal","value":"' + rb"\n" * (2 * size),
        JSON,
    ),
    "a long IRI": (
        lambda size: b'{"results":{"bindings":[{"s":{"type":"uri","value":"a:' + b" " * (size >> 2) + b'"}},',
        JSON,
    ),
    "empty elements": (
        lambda size: b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><results>' + b"<result/>" * (size >> 3),
        XML,
    ),
    "a long attribute": (
        lambda size: b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><results a="' + b"a" * (8 * size),
        XML,
    ),
}


@pytest.mark.parametrize("name", DEEP)
@IN_MODULE
async def test_hostile_results_are_errors(upstream: FaultServer, session: aiohttp.ClientSession, name: str) -> None:
    body, content_type = DEEP[name]
    upstream.play(response(body, content_type, framing="length"))
    async with serving(upstream.url, retries=0) as server:
        async with session.get(server.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}) as answer:
            assert (answer.status, answer.content_type) == (502, "application/problem+json")
        upstream.play(response(EMPTY))
        async with session.get(server.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("name", FREEZING)
@IN_MODULE
async def test_a_hostile_result_holds_up_nobody_else(
    upstream: FaultServer, session: aiohttp.ClientSession, store: Path, name: str
) -> None:
    """Issue 13, 20: while it is read, other endpoints answer, and so do checks of health."""
    make, content_type = FREEZING[name]
    upstream.play(response(make(1 << 20), content_type, framing="length"))
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

        assert await read(f"{server.url}/files/sparql") == 200  # what the first request makes ready is ready
        hostile = asyncio.create_task(read(f"{server.url}/hostile/sparql"))
        answered = 0
        while not hostile.done():
            async with session.get(f"{server.url}/health/live") as answer:
                assert answer.status == 200
            answered += 1
            if answered % 10 == 1:
                assert await read(f"{server.url}/files/sparql") == 200
        assert await hostile in (200, 502)
        assert answered > 3


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


@pytest.mark.parametrize("accept", [RDFM, "*/*"])
@pytest.mark.parametrize("name", NESTED)
@IN_MODULE
async def test_deep_queries_harm_nobody_else(
    files: Served, session: aiohttp.ClientSession, name: str, accept: str
) -> None:
    async with session.post(files.sparql, data={"query": NESTED[name]}, headers={"Accept": accept}) as answer:
        await answer.read()
        assert answer.status in (200, 400, 406, 502)
    async with session.get(files.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}) as answer:
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
    *("LIMIT ", "GRAPH ?g { ?s ?p ?o } ", "{| ?p ?o ", "(?s) ", "#", "@a-", "_:a.", "a.b:c.", "1.", "?"),
)


@pytest.mark.parametrize("part", REPEATED)
@pytest.mark.parametrize(
    "place", ["CONSTRUCT { ?s ?p ?o } WHERE { {} }", "CONSTRUCT {{ {} }} WHERE {{}}", "{}CONSTRUCT WHERE {{}}"]
)
def test_queries_are_read_in_linear_time(part: str, place: str) -> None:
    def seconds(characters: int) -> float:
        before, _, after = place.replace("{{", "\1").replace("}}", "\2").partition("{}")
        text = f"{before}{part * (characters // len(part))}{after}".replace("\1", "{").replace("\2", "}")
        began = time.process_time()
        with contextlib.suppress(ConstructMessagesError):
            ConstructQuery.parse(text)
        return time.process_time() - began

    gc.disable()  # its own time is that of all objects of all tests
    try:
        # nine times the text; a quadratic reader would take eighty times as long
        assert seconds(90_000) < 30 * max(min(seconds(10_000) for _ in range(3)), 0.01)
    finally:
        gc.enable()


# --- HTTP -----------------------------------------------------------------------------------------------------------

SMUGGLED = {
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "the same length twice": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": b"Content-Length: 5, 5\r\n\r\nhello",
    "a signed length": b"Content-Length: +5\r\n\r\nhello",
    "a length with an underscore": b"Content-Length: 0_5\r\n\r\nhello",
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "another transfer coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"X-A: b\r\n Content-Length: 5\r\n\r\nhello",
    "a bare carriage return": b"X-A: b\rContent-Length: 5\r\n\r\nhello",
    "a null": b"X-A: b\0c\r\n\r\n",
    "no number of a chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "a chunk without end": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "two hosts": b"Host: y\r\n\r\n",
}
NO_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "line feeds alone": b"GET /sparql HTTP/1.1\nHost: x\n\n",
    "no host": b"GET /sparql HTTP/1.1\r\n\r\n",
    "garbage": b"\xff\x00\xfe garbage\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
@IN_MODULE
async def test_no_second_request_hides_in_a_first(files: Served, name: str) -> None:
    """Where the end of a request could be told in two ways there is one answer, 400, and the connection is closed."""
    hidden = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    request = b"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\n"
    received = await over_socket(files.url, request + SMUGGLED[name] + hidden)
    assert received.startswith(b"HTTP/1.0 400 ")
    assert received.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("name", NO_HTTP)
@IN_MODULE
async def test_what_is_no_http_is_refused(files: Served, name: str) -> None:
    received = await over_socket(files.url, NO_HTTP[name])
    assert received.startswith(b"HTTP/1.0 400 ")
    assert b"text/plain" in received


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_names_the_tests() -> None:
    """Each test that it names exists, and it names each test here."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    here = "server/test_security"
    named = {(module or here, test) for module, test in re.findall(r"`(?:([\w/]+)::)?(test_\w+)`", page)}
    defined = {
        (module, test)
        for module in {module for module, _ in named}
        for test in re.findall(r"^(?:async )?def (test_\w+)", (ROOT / f"tests/{module}.py").read_text(), re.MULTILINE)
    }
    assert named <= defined
    assert {test for test in defined if test[0] == here} - named == {(here, "test_the_page_names_the_tests")}
    promises = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "|--"))
    ]
    assert len(promises) > 20
    assert all("test_" in line for line in promises)

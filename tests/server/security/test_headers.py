"""What docs/explanation/security.md promises about headers, secrets and the log."""

import contextlib
import io
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from construct_messages.server.config import Config
from construct_messages.server.http.request_log import RequestLog
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.security import CONSTRUCT, EMPTY, IN_MODULE, RDFM, SECRET, over_socket
from tests.support.http.serving import Served, serving

pytestmark = pytest.mark.slow


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
async def test_client_headers_stay_here(
    upstream: FaultServer, session: aiohttp.ClientSession, accept: str
) -> None:
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
    assert not {"authorization", "cookie", "x-forwarded-for", "forwarded", "origin", "range"} & set(
        asked.headers
    )


@IN_MODULE
async def test_headers_go_on_where_that_is_configured(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    for accept in (RDFM, "*/*"):
        async with (
            serving(upstream.url, forward_headers=("Authorization",)) as server,
            session.get(
                server.sparql, params={"query": CONSTRUCT}, headers={**PRIVATE, "Accept": accept}
            ) as answer,
        ):
            assert answer.status == 200
        assert upstream.asked[-1].headers["authorization"] == PRIVATE["Authorization"]
        assert "cookie" not in upstream.asked[-1].headers


@IN_MODULE
async def test_upstream_headers_stay_there(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
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
async def test_pages_for_browsers_cannot_act(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    page = b"<script>alert(1)</script>"
    for content_type in (
        "text/html",
        "TEXT/HTML;charset=x",
        "application/xhtml+xml",
        "text/plain, text/html",
    ):
        upstream.play(response(page, content_type))
        async with serving(upstream.url) as server:
            for accept in (RDFM, "*/*"):
                parameters = {"query": CONSTRUCT}
                async with session.get(
                    server.sparql, params=parameters, headers={"Accept": accept}
                ) as answer:
                    assert (answer.status, answer.content_type) == (502, "application/problem+json")
                    assert b"script" not in await answer.read()
    # whoever asks for its page gets it, without any right to run
    upstream.play(response(page, "text/html"))
    async with (
        serving(upstream.url) as server,
        session.post(
            server.sparql, data={"query": CONSTRUCT}, headers={"Accept": "text/html"}
        ) as answer,
    ):
        assert await answer.read() == page
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "sandbox" in answer.headers["Content-Security-Policy"]


@IN_MODULE
async def test_credentials_go_to_the_upstream_only(
    upstream: FaultServer,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Any,
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
async def test_security_headers_are_on_every_response(
    files: Served, session: aiohttp.ClientSession
) -> None:
    asked = [
        *[
            ("GET", path)
            for path in ("/sparql", "/health/live", "/health/ready", "/metrics", "/elsewhere")
        ],
        *[
            ("GET", f"/sparql?query={quote(query)}")
            for query in (CONSTRUCT, "ASK {}", "CLEAR ALL", "nonsense")
        ],
        *[(method, "/sparql") for method in ("POST", "HEAD", "OPTIONS", "DELETE", "PROPFIND")],
        ("GET", f"/sparql?messages=rdfm&query={quote(CONSTRUCT)}"),
        ("POST", "/metrics"),
    ]
    statuses = set()
    for method, path in asked:
        body = b"[]" if method == "POST" else None
        async with session.request(
            method, f"{files.url}{path}", data=body, headers={"Expect": ""}
        ) as answer:
            statuses.add(answer.status)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert answer.headers["Server"] == "construct-messages"
    assert statuses == {200, 204, 400, 403, 404, 405, 415}


@IN_MODULE
async def test_other_origins_never_get_credentials(
    store: Path, session: aiohttp.ClientSession
) -> None:
    for cors in (("*",), ("https://example.org",)):
        async with serving(store, settings={"cors": cors}) as server:
            for origin in ("https://example.org", "https://evil.example", "null"):
                for method in ("GET", "OPTIONS"):
                    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                    async with session.request(method, server.sparql, headers=headers) as answer:
                        allowed = answer.headers.get("Access-Control-Allow-Origin")
                        assert allowed == (
                            "*" if cors == ("*",) else origin if origin in cors else None
                        )
                        assert "Access-Control-Allow-Credentials" not in answer.headers


@IN_MODULE
async def test_no_header_of_a_client_is_echoed_raw(files: Served) -> None:
    """Those that are echoed at all: plain text in, plain text out."""
    for name in (
        "X-Request-ID",
        "Origin",
        "Access-Control-Request-Headers",
        "Accept",
        "Content-Type",
        "Host",
    ):
        value = b"a\xff\xfe\xc3\xa9"
        fields = {b"Host": b"x", b"Access-Control-Request-Method": b"POST", name.encode(): value}
        head = b"".join(b"%b: %b\r\n" % field for field in fields.items())
        for line in (b"OPTIONS /sparql", b"POST /sparql", b"GET /sparql", b"GET /metrics"):
            received = await over_socket(
                files.url, b"%b HTTP/1.1\r\n%bConnection: close\r\n\r\n" % (line, head)
            )
            received_head, _, body = received.partition(b"\r\n\r\n")
            assert not received.startswith(b"HTTP/1.1 5")
            received_head.decode()
            body.decode()


# --- the log --------------------------------------------------------------------------------------------------------


@IN_MODULE
async def test_query_texts_are_not_logged(
    store: Path, upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    word = "Zq7secretword"
    lines = io.StringIO()
    handler = RequestLog(Config(endpoints={}, log_level="debug"), lines).handler()
    logging.getLogger().addHandler(handler)
    try:
        for source in (store, upstream.url):
            async with serving(source, retries=0) as server:
                for text in (
                    f"ASK {{}} # {word}",
                    f"CONSTRUCT {{ ?{word} }}",
                    f"{word}",
                    f"CLEAR GRAPH <urn:{word}>",
                ):
                    for accept in (RDFM, "*/*"):
                        data = {"query": text}
                        async with session.post(
                            server.sparql, data=data, headers={"Accept": accept}
                        ) as answer:
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
async def test_no_request_writes_a_line_of_its_own(
    files: Served, session: aiohttp.ClientSession
) -> None:
    forged = "level=error event=forged"
    before = files.request_log.getvalue().count("\n")
    async with session.get(
        files.sparql,
        params={"query": f"nonsense\n{forged}"},
        headers={"User-Agent": forged, "X-Request-ID": forged},
    ) as answer:
        await answer.read()
    async with session.get(f"{files.url}/%0A{quote(forged)}") as answer:
        await answer.read()
    written = files.request_log.getvalue()
    assert written.count("\n") == before + 2
    assert "forged" not in written

"""An endpoint behind a server: what it is asked, and what is refused."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from construct_messages.errors import SourceError, UsageError
from construct_messages.sparql.sources import Backend, Operation, Request
from construct_messages.sparql.sources.http.upstream import Upstream
from tests.support.http.clients import JSON_BODY, SELECT
from tests.support.http.fault_server import JSON, Asked, FaultServer, response
from tests.support.http.upstream import ASK, PAGE, TEXT, body_of, busy, solutions

pytestmark = pytest.mark.usefixtures("at_once")


def test_it_is_a_backend(server: FaultServer) -> None:
    backend: Backend = Upstream(
        server.url, profile="virtuoso", prefixes={"ex": "http://example.org/", "dbo": "urn:"}
    )
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
    server: FaultServer,
    method: str,
    operation: Operation,
    verb: str,
    expected: list[tuple[str, str]],
) -> None:
    server.play(response(b"", "text/plain", framing="length"))
    async with aclosing(Upstream(server.url, method=method)) as upstream:
        await body_of(await upstream.answer(operation))
    (asked,) = server.asked
    assert asked.method == (
        "GET" if (method, verb) == ("get", "POST") and not operation.update else verb
    )
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
    sent = {
        "Accept": "text/csv;q=0.5",
        "Accept-Encoding": "zstd",
        "Accept-Language": "fr",
        "X-Trace": "1",
    }
    connections_own = {
        "Connection": "upgrade",
        "Host": "elsewhere",
        "Content-Length": "9",
        "User-Agent": "curl",
    }
    async with aclosing(
        Upstream(server.url, headers=own, contact="mailto:me@example.org")
    ) as upstream:
        await body_of(await upstream.answer(Operation(TEXT, headers=sent | connections_own)))
        await body_of(await upstream.answer(Operation(TEXT)))
        forwarded = (
            ("X-Trace", "1"),
            ("Accept", "text/html"),
            ("Accept-Encoding", "br"),
            ("Range", "bytes=0-9"),
        )
        await solutions(
            upstream,
            Request(SELECT, parameters=(("timeout", "3"), ("format", "html")), headers=forwarded),
        )
    relayed, plain, select = server.asked
    for name, value in sent.items():
        assert relayed.headers[name.lower()] == value
    assert relayed.headers["host"] == f"127.0.0.1:{server.port}"
    assert "connection" not in relayed.headers
    assert (plain.headers["accept"], plain.headers["accept-encoding"]) == ("*/*", "identity")
    assert select.headers["accept"].startswith(JSON)
    assert (select.headers["accept-encoding"], select.headers["x-trace"]) == ("gzip, zstd", "1")
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


async def test_the_environment_names_no_proxy(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    server.play(response(b"direct", "text/plain"))
    async with aclosing(Upstream(server.url)) as upstream:
        assert await body_of(await upstream.answer(ASK)) == b"direct"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://example.org/"}, "not one of http or https"),
        ({"method": "put"}, "unknown method 'put'"),
        ({"profile": "mine"}, "no endpoint profile"),
        ({"results": "csv"}, "unknown results format 'csv'"),
        ({"retries": -1}, "retries=-1"),
        ({"rate": 0}, "rate=0"),
        ({"contact": "me\r\nX: y"}, "value that HTTP cannot send"),
        ({"headers": {"X Y": "z"}}, "not the name of an HTTP header"),
    ],
)
def test_refused_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Upstream(**{"url": "http://example.org/", **options})


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

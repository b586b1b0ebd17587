"""What an endpoint is asked, by both HTTP clients, and what is refused before anything is sent."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any
from urllib.request import parse_http_list, parse_keqv_list

import pytest
from SPARQLWrapper import BASIC, DIGEST, POST, SPARQLWrapper

from construct_messages.errors import (
    SourceError,
    UsageError,
)
from construct_messages.query.select import Select
from construct_messages.rdf.options import UNION
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource
from construct_messages.sparql.sources.open import open_source
from tests.support.http.clients import JSON_BODY, SELECT, TABLE, VARIABLES, read
from tests.support.http.fault_server import JSON, FaultServer, response

pytestmark = pytest.mark.usefixtures("once")

# --- what is asked ---------------------------------------------------------------------------------------------------


def test_the_form(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    request = Request(SELECT, ("urn:g1", "urn:g2"), ("urn:g3",), timeout=120)
    assert (
        read(
            client,
            EndpointSource(Endpoint.at(server.url, headers={"x-key": "ä".encode().hex()})),
            request,
        )[1]
        is None
    )
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", "/sparql")
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.headers["content-length"] == str(len(asked.body))
    assert "transfer-encoding" not in asked.headers
    assert (
        asked.headers["accept"]
        == "application/sparql-results+json, application/x-sparqlstar-results+json, "
        "application/sparql-results+xml;q=0.5"
    )
    assert asked.headers["accept-encoding"] == "gzip, zstd"
    assert asked.headers["user-agent"].startswith("construct-messages/")
    assert asked.headers["x-key"] == "c3a4"
    assert asked.parameters == {
        "query": [str(SELECT)],
        "default-graph-uri": ["urn:g1", "urn:g2"],
        "named-graph-uri": ["urn:g3"],
    }


def test_get(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    select = Select("", "SELECT ?s ?o ", VARIABLES, "", '{ ?s ?p "a+b & ü" . ?s ?p ?o }')
    source = EndpointSource(Endpoint.at(f"{server.url}?key=k%20e", method="get"))
    assert read(client, source, Request(select, timeout=120))[1] is None
    (asked,) = server.asked
    assert (asked.method, asked.body) == ("GET", b"")
    assert asked.target.count("?") == 1
    assert asked.parameters == {"query": [str(select)], "key": ["k e"]}


def test_post_keeps_the_urls_parameters(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    assert read(client, EndpointSource(f"{server.url}?key=k%20e"))[1] is None
    assert server.asked[0].target == "/sparql?key=k%20e"


@pytest.mark.parametrize("method", ["get", "post"])
def test_redirects_within_the_origin(server: FaultServer, client: str, method: str) -> None:
    server.play(
        response(
            b"", status="308 Permanent Redirect", headers={"Location": f"{server.url}/?moved=1"}
        ),
        response(JSON_BODY),
    )
    came, error = read(client, EndpointSource(Endpoint.at(server.url, method=method)))
    assert error is None
    assert came == TABLE
    first, second = server.asked
    assert second.target == "/sparql/?moved=1"
    assert (second.method, second.body) == (first.method, first.body)
    assert second.headers["accept"] == first.headers["accept"]


def test_a_compressed_answer(server: FaultServer, client: str) -> None:
    server.play(
        response(gzip.compress(JSON_BODY), headers={"Content-Encoding": "gzip"}, framing="length")
    )
    came, error = read(
        client, EndpointSource(Endpoint.at(server.url, headers={"Accept-Encoding": "gzip"}))
    )
    assert error is None
    assert came == TABLE
    assert server.asked[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("environment", "headers", "sent"),
    [
        ({}, {}, None),
        ({"USER": "me", "PASSWORD": "s:ü"}, {}, "Basic bWU6czrDvA=="),
        ({"TOKEN": "t0"}, {}, "Bearer t0"),
        ({"TOKEN": "t0"}, {"authorization": "Bearer other"}, "Bearer other"),
    ],
    ids=["none", "basic", "bearer", "header"],
)
def test_credentials(
    server: FaultServer,
    client: str,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    headers: dict[str, str],
    sent: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"CONSTRUCT_MESSAGES_{name}", value)
    server.play(response(JSON_BODY))
    assert read(client, open_source(server.url, headers=headers))[1] is None
    assert server.asked[0].headers.get("authorization") == sent


def test_a_callers_wrapper(server: FaultServer, client: str) -> None:
    wrapper = SPARQLWrapper(server.url, agent="mine/1 (me@example.org)", defaultGraph="urn:g0")
    wrapper.setMethod(POST)
    wrapper.setHTTPAuth(BASIC)
    wrapper.setCredentials("me", "secret")
    wrapper.addCustomHttpHeader("X-Key", "k")
    wrapper.addParameter("timeout", "1000")
    wrapper.addParameter("format", "text/turtle")
    wrapper.setQuery("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")
    before = {name: repr(value) for name, value in vars(wrapper).items()}
    server.play(response(JSON_BODY))
    source = EndpointSource(Endpoint.of_wrapper(wrapper))
    came, error = read(client, source, Request(SELECT, ("urn:g1",), timeout=120))
    assert error is None
    assert came == TABLE
    assert {name: repr(value) for name, value in vars(wrapper).items()} == before
    (asked,) = server.asked
    assert asked.method == "POST"
    assert asked.headers["user-agent"] == "mine/1 (me@example.org)"
    assert asked.headers["authorization"] == "Basic bWU6c2VjcmV0"
    assert asked.headers["x-key"] == "k"
    assert asked.headers["accept"].startswith(JSON)
    assert asked.parameters == {
        "query": [str(SELECT)],
        "default-graph-uri": ["urn:g0", "urn:g1"],
        "timeout": ["1000"],
    }


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_digest_authentication(server: FaultServer, client: str, algorithm: str) -> None:
    wrapper = SPARQLWrapper(server.url)
    wrapper.setHTTPAuth(DIGEST)
    wrapper.setCredentials("me", "secret, of ä")
    challenge = f'Digest realm="r", nonce="n", qop="auth", algorithm={algorithm}'
    refusal = response(
        b"", "text/plain", status="401 Unauthorized", headers={"WWW-Authenticate": challenge}
    )
    server.play(refusal, response(JSON_BODY), response(JSON_BODY))
    source = EndpointSource(Endpoint.of_wrapper(wrapper))
    for _ in range(2):
        came, error = read(client, source)
        assert error is None
        assert came == TABLE
    first, second = (
        parse_keqv_list(parse_http_list(asked.headers["authorization"].removeprefix("Digest ")))
        for asked in server.asked[1:]
    )
    assert (first["nc"], second["nc"]) == ("00000001", "00000002"), "the challenge is used again"

    def hashed(*parts: str) -> str:
        return hashlib.new(algorithm.replace("-", ""), ":".join(parts).encode()).hexdigest()

    key = hashed("me", "r", "secret, of ä")
    parts = (first[name] for name in ("nonce", "nc", "cnonce", "qop"))
    assert first["response"] == hashed(key, *parts, hashed("GET", first["uri"]))
    server.play(refusal)
    _, error = read(client, EndpointSource(Endpoint.of_wrapper(wrapper)))
    assert isinstance(error, SourceError)
    assert error.status == 502
    assert "HTTP status 401" in error.message


# --- what is refused before anything is sent -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("ftp://example.org/", {}, "not one of http or https"),
        ("file:///etc/passwd", {}, "not one of http or https"),
        ("example.org/sparql", {}, "not one of http or https"),
        ("http://", {}, "not one of http or https"),
        ("http://example.org:port/", {}, "not one of http or https"),
        ("http://me:secret@example.org/", {}, "holds credentials"),
        ("http://example.org/ü", {}, "percent-encode"),
        ("http://example.org/\r\nX: y", {}, "percent-encode"),
        ("http://example.org/", {"method": "put"}, "unknown method 'put'"),
        ("http://example.org/", {"results": "csv"}, "unknown results format 'csv'"),
        ("http://example.org/", {"profile": "mine"}, "no endpoint profile 'mine'"),
        ("http://example.org/", {"headers": {"X Y": "z"}}, "is not the name of an HTTP header"),
        ("http://example.org/", {"headers": {"X": "y\r\nZ: 1"}}, "value that HTTP cannot send"),
        ("http://example.org/?query=x", {"method": "get"}, "holds the parameter 'query'"),
    ],
)
def test_refused_options(url: str, options: dict[str, Any], words: str) -> None:
    def opened() -> EndpointSource:
        given = dict(options)
        endpoint = {name: given.pop(name) for name in ("method", "headers") if name in given}
        return EndpointSource(Endpoint.at(url, **endpoint), **given)

    with pytest.raises(UsageError) as caught:
        opened()
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "names", [["USER"], ["PASSWORD"], ["USER", "PASSWORD", "TOKEN"]], ids="+".join
)
def test_refused_credentials(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    for name in names:
        monkeypatch.setenv(f"CONSTRUCT_MESSAGES_{name}", "secret")
    with pytest.raises(UsageError, match="credentials in the environment are incomplete"):
        open_source("http://example.org/")


def test_the_union_of_all_graphs_is_refused(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    _, error = read(client, EndpointSource(server.url), Request(SELECT, (UNION,)))
    assert isinstance(error, UsageError)
    assert server.asked == []


@pytest.mark.parametrize("profile", ["virtuoso", "rdf4j", "graphdb", "blazegraph", "ontop"])
def test_inexact_tsv_is_refused(profile: str) -> None:
    with pytest.raises(UsageError, match="does not tell all texts and numbers apart"):
        EndpointSource("http://127.0.0.1:1/", profile=profile, results="tsv")

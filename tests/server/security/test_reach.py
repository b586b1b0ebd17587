"""What docs/explanation/security.md promises about whom the server talks to, and about updates."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from tests.support.http.fault_server import FaultServer
from tests.support.http.security import CONSTRUCT, FORM, IN_MODULE, RDFM, over_socket
from tests.support.http.serving import Served, serving

pytestmark = pytest.mark.slow


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
    *(
        "endpoint",
        "service",
        "default-graph-uri",
        "named-graph-uri",
        "using-graph-uri",
        "query-uri",
        "xslt-uri",
    ),
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
            parameters = {
                "query": CONSTRUCT,
                "should-sponge": "grab-all",
                **dict.fromkeys(NAMING_URLS, url),
            }
            async with session.get(
                server.sparql, params=parameters, headers={"Accept": accept}
            ) as answer:
                assert answer.status in (200, 400)
        authority = url.removeprefix("http://").rstrip("/")
        target = f"/sparql?query={quote(CONSTRUCT)}"
        for line, host in (
            (f"{url}{target[1:]}", "localhost"),
            (target, authority),
            (f"//{authority}{target}", "x"),
        ):
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
        for text in (
            "DEFINE get:soft 'soft' SELECT * {}",
            "DEFINE input:grab-all 'yes' SELECT * {}",
        ):
            for query in (text, text.replace("g", "\\u0067", 1)):
                async with session.post(server.sparql, data={"query": query}) as answer:
                    assert answer.status == 403
    assert upstream.asked == []


@IN_MODULE
async def test_a_list_of_services_binds_an_upstream_too(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    allowed = "https://example.org/sparql"
    async with serving(upstream.url, service=(allowed,)) as server:
        for name in (
            "SERVICE",
            "SILENT",
            "a variable",
            "nested",
            "in a sub-query",
            "escaped",
            "in a CONSTRUCT",
        ):
            query = REACHING_OUT[name].replace("URL", "http://127.0.0.1:1/")
            for accept in (RDFM, "*/*"):
                async with session.post(
                    server.sparql, data={"query": query}, headers={"Accept": accept}
                ) as answer:
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
    "an unknown keyword": (
        "POST",
        {},
        {"query": "MODIFY <urn:g> DELETE { ?s ?p ?o } INSERT {} WHERE { ?s ?p ?o }"},
    ),
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
        session.request(
            method, server.sparql, params=parameters, data=data, headers=headers
        ) as answer,
    ):
        assert answer.status in (400, 403)
    assert upstream.asked == []


@IN_MODULE
async def test_percent_signs_hide_no_update(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    """A parameter is decoded once, and what goes on is what was read."""
    async with serving(upstream.url) as server:
        for body in (b"%75pdate=CLEAR+ALL", b"query=%43LEAR+ALL", b"query=CLEAR%00ALL"):
            async with session.post(
                server.sparql, data=body, headers={"Content-Type": FORM}
            ) as answer:
                assert answer.status in (400, 403)
        assert upstream.asked == []
        hiding = (
            b"query=ASK+%7B%7D&%2575pdate=x&Update=CLEAR+ALL&UPDATE=CLEAR+ALL&a%26update=CLEAR+ALL"
        )
        async with session.post(
            server.sparql, data=hiding, headers={"Content-Type": FORM}
        ) as answer:
            assert answer.status == 200
    (asked,) = upstream.asked
    assert asked.parameters["query"] == ["ASK {}"]
    assert "update" not in {name.lower() for name in asked.parameters}

"""The page over HTTP: where it is, its policy and validators, and that nobody else gets anything new."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings, ExampleSettings, StreamsSettings
from construct_messages.server.pages.endpoint import POLICY, static_files
from tests.support.http.serving import Served, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
}
# what Comunica's actors for media types offer together
COMUNICA = (
    "application/n-quads,application/trig;q=0.95,application/ld+json;q=0.9,application/n-triples;q=0.8,"
    "text/turtle;q=0.6,application/rdf+xml;q=0.5,application/json;q=0.45,text/n3;q=0.35,application/xml;q=0.3,"
    "image/svg+xml;q=0.3,text/xml;q=0.3,text/html;q=0.2,application/xhtml+xml;q=0.18"
)
SPARQLWRAPPER = "application/rdf+xml,application/turtle,text/turtle,text/n3,application/ld+json"
EXAMPLE = ExampleSettings(name="all", query="ASK {}", sentence="Anything.", group_by=("s",))
PATHS = ("/", "/a/", "/sparql", "/a/sparql", "/a/sparql?query=ASK%7B%7D&default-graph-uri=urn:g")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    store = ox.Store(path)
    store.load(b"<urn:s> <urn:p> <urn:o> .", format=ox.RdfFormat.TURTLE)
    store.flush()
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_page(store: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    endpoints = {
        "": EndpointSettings(source=(str(store),)),
        "a": EndpointSettings(
            source=(str(store),),
            prefixes={"ex": "http://example.org/"},
            examples=(EXAMPLE,),
        ),
    }
    streams = StreamsSettings(file=str(tmp_path_factory.mktemp("streams") / "streams.db"))
    async with serving(endpoints=endpoints, settings={"streams": streams}) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def without_page(store: Path) -> AsyncIterator[Served]:
    async with serving(store, settings={"page": False}) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize("path", PATHS)
async def test_a_browser_gets_the_page(
    with_page: Served, session: aiohttp.ClientSession, path: str
) -> None:
    async with session.get(with_page.url + path, headers=BROWSER) as answer:
        page = await answer.text()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Accept" in answer.headers["Vary"]
        base = answer.url
    linked = re.findall(r'(?:href|src)="([^"#]+)"', page)
    assert len(linked) >= 3
    for reference in linked:
        assert reference.startswith("."), "it would not hold behind a prefix"
        async with session.get(base.join(aiohttp.client.URL(reference))) as answer:
            assert answer.status == 200, reference
    async with session.head(with_page.url + path, headers=BROWSER) as head:
        assert (head.status, head.headers["Content-Length"], await head.read()) == (
            200,
            str(len(page.encode())),
            b"",
        )


async def test_the_policy_is_strict() -> None:
    assert "unsafe" not in POLICY
    assert not re.search(r"https?:|data:|\*", POLICY)
    assert POLICY.startswith("default-src 'none'; script-src 'self';")


@pytest.mark.parametrize("path", ["/", "/-/static/main.js", "/-/server.json"])
async def test_what_a_browser_has_is_not_sent_again(
    with_page: Served, session: aiohttp.ClientSession, path: str
) -> None:
    async with session.get(with_page.url + path) as answer:
        tag, body = answer.headers["ETag"], await answer.read()
        assert (answer.status, answer.headers["Cache-Control"], bool(body)) == (
            200,
            "no-cache",
            True,
        )
    for known, status in ((tag, 304), (f'"x", W/{tag}', 304), ("*", 304), ('"x"', 200)):
        async with session.get(with_page.url + path, headers={"If-None-Match": known}) as answer:
            assert (answer.status, answer.headers["ETag"]) == (status, tag)
            assert await answer.read() == (b"" if status == 304 else body)
    async with session.get(with_page.url + path, headers={"If-Match": '"x"'}) as answer:
        assert (answer.status, answer.content_type) == (412, "application/problem+json")


async def test_files_are_what_they_are_sent_as(
    with_page: Served, session: aiohttp.ClientSession
) -> None:
    assert {"index.html", "page.css", "main.js", "terms.js"} <= set(static_files())
    for name, file in static_files().items():
        async with session.get(f"{with_page.url}/-/static/{name}") as answer:
            assert (answer.status, answer.headers["Content-Type"]) == (200, file.content_type)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert await answer.read() == file.body
    for name in ("nothing.js", "__init__.py", "..%2Ffiles.py", "%2e%2e%2ffiles.py"):
        async with session.get(
            aiohttp.client.URL(f"{with_page.url}/-/static/{name}", encoded=True)
        ) as answer:
            assert (answer.status, answer.content_type) == (404, "application/problem+json")


async def test_nothing_in_the_files_names_another_host_or_reads_html() -> None:
    for name, file in static_files().items():
        text = file.body.decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval", text
        ), name
        assert not re.search(
            r"""(?:src|href|from|import|url)\s*[=(]?\s*["'](?:https?:)?//""", text
        ), name
        if name.endswith(".html"):
            assert not re.search(r"\bon\w+=|<style|style=|<script>", text)


async def test_what_the_page_knows_of_the_server(
    with_page: Served, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{with_page.url}/-/server.json") as answer:
        server = await answer.json()
    assert server["endpoints"] == [
        {"name": "", "path": "sparql", "prefixes": {}, "examples": []},
        {
            "name": "a",
            "path": "a/sparql",
            "prefixes": {"ex": "http://example.org/"},
            "examples": [
                {"name": "all", "query": "ASK {}", "sentence": "Anything.", "group_by": ["s"]}
            ],
        },
    ]
    assert server["streams"] == "streams"
    assert {"application/n-quads; version=1.2-messages", "application/x-jelly-rdf"} <= {
        log["type"] for log in server["logs"]
    }


OTHERS: Mapping[str, Mapping[str, str]] = {
    "no Accept": {"Accept": ""},
    "curl": {"Accept": "*/*"},
    "Comunica": {"Accept": COMUNICA},
    "SPARQLWrapper": {"Accept": SPARQLWRAPPER},
    "rather Turtle": {"Accept": "text/turtle, text/html;q=0.9"},
    "no HTML": {"Accept": "text/html;q=0, */*"},
    "unreadable": {"Accept": "html"},
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize(
    "target", ["/sparql", "/sparql?format=html", "/sparql?query=ASK{}", "/sparql?query=A", "/no"]
)
async def test_others_get_what_they_always_got(
    with_page: Served,
    without_page: Served,
    session: aiohttp.ClientSession,
    headers: Mapping[str, str],
    target: str,
) -> None:
    got = []
    for server in (without_page, with_page):
        skipped = ("Accept",) if headers["Accept"] == "" else ()
        sent = {name: value for name, value in headers.items() if value}
        async with session.get(
            server.url + target, headers=sent, skip_auto_headers=skipped
        ) as answer:
            body = (await answer.text()).replace(server.url, "http://server")
            kept = {
                name: value
                for name, value in answer.headers.items()
                if name not in ("Date", "X-Request-ID")
            }
            kept.pop("Content-Length", None)  # of an answer that has the server's port in it
            got.append(
                (
                    answer.status,
                    kept,
                    sorted(re.sub(r'"request_id": "[^"]*"|_:\w+', "", body).splitlines()),
                )
            )
    assert got[0][:2] == got[1][:2]
    if target != "/no":  # the problem document lists the endpoints that there are
        assert got[0] == got[1]


@pytest.mark.parametrize(
    "parameters",
    [
        {"format": "ttl"},
        {"query": "ASK {}", "format": "json"},
        {"query": "CONSTRUCT WHERE { ?s ?p ?o }", "messages": "rdfm"},
    ],
    ids=["description", "ASK", "messages"],
)
async def test_a_format_in_the_url_is_for_files(
    with_page: Served, session: aiohttp.ClientSession, parameters: Mapping[str, str]
) -> None:
    url = f"{with_page.url}/sparql"
    async with session.get(url, params=parameters, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type != "text/html") == (200, True)


async def test_a_posted_query_of_a_browser_is_answered(
    with_page: Served, session: aiohttp.ClientSession
) -> None:
    """The form of the page without JavaScript."""
    data = {"query": "ASK {}"}
    async with session.post(f"{with_page.url}/sparql", data=data, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type != "text/html") == (200, True)


@pytest.mark.parametrize("path", PATHS)
async def test_switched_off(
    without_page: Served, session: aiohttp.ClientSession, path: str
) -> None:
    async with session.get(without_page.url + path, headers=BROWSER) as answer:
        if "?query" in path:
            assert answer.content_type == "application/problem+json"  # there is no endpoint `a`
        elif path == "/sparql":
            assert (answer.status, answer.content_type) == (200, "text/turtle")
        else:
            assert (answer.status, answer.content_type) == (404, "application/problem+json")


async def test_other_methods_are_refused(with_page: Served, session: aiohttp.ClientSession) -> None:
    async with session.post(f"{with_page.url}/", data="x") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


async def test_readiness_is_of_sources_only(session: aiohttp.ClientSession) -> None:
    """The page answers always, which says nothing of the source."""
    async with (
        serving("http://127.0.0.1:1/sparql", retries=0) as server,
        session.get(f"{server.url}/health/ready") as answer,
    ):
        assert answer.status == 503
        assert '"/"' not in await answer.text()

"""The server before a real Virtuoso: what a query cannot make it fetch, and its form for browsers."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.engines.servers import Serve
from tests.support.http.serving import Served, serving
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}
RDFM = {"Accept": "application/n-quads; messages=rdfm"}
# each of these was seen to connect
FETCHING = {
    "SELECT": "SELECT (bif:http_get('URL') AS ?x) {}",
    "an IRI": "SELECT (<bif:http_get>('URL') AS ?x) {}",
    "in capitals": "SELECT (bif:HTTP_GET('URL') AS ?x) {}",
    "a prefix of one's own": "PREFIX x: <bif:> SELECT (x:http_get('URL') AS ?x) {}",
    "FILTER": "SELECT * { ?s ?p ?o FILTER(bif:http_get('URL') != 1) }",
    "CONSTRUCT": "CONSTRUCT { ?s ?p ?x } WHERE { ?s ?p ?o BIND(bif:http_get('URL') AS ?x) }",
}


@pytest.fixture(scope="module")
def virtuoso(
    tmp_path_factory: pytest.TempPathFactory, serve_with: Callable[[str, Path], str]
) -> str:
    data = tmp_path_factory.mktemp("data") / "one.ttl"
    data.write_text('<urn:a> <urn:p> "c" .\n')
    return serve_with("virtuoso", data)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, socket.socket]]:
    """A URL, and the socket that listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", listener


@pytest.mark.parametrize("profile", ["generic", "virtuoso"])
@pytest.mark.parametrize("case", FETCHING)
async def test_deny_keeps_it_from_fetching(
    virtuoso: str,
    session: aiohttp.ClientSession,
    elsewhere: tuple[str, socket.socket],
    case: str,
    profile: str,
) -> None:
    """Issue 13, 21."""
    url, listener = elsewhere
    listener.setblocking(False)
    async with serving(virtuoso, profile=profile, service="deny") as server:
        for headers in (RDFM, {"Accept": "*/*"}):
            form = {"query": FETCHING[case].replace("URL", url)}
            async with session.post(server.sparql, data=form, headers=headers) as answer:
                problem = await answer.json(content_type=None)
                assert answer.status in (403, 406), problem
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("case", FETCHING)
async def test_it_would_fetch(
    virtuoso: str, session: aiohttp.ClientSession, elsewhere: tuple[str, socket.socket], case: str
) -> None:
    """What the test above refuses is not harmless."""
    url, listener = elsewhere
    listener.setblocking(False)
    async with serving(virtuoso, profile="virtuoso", retries=0) as server:
        form = {"query": FETCHING[case].replace("URL", url)}
        asking = asyncio.create_task(session.post(server.sparql, data=form).__aenter__())
        async with asyncio.timeout(SECONDS):
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        connection.close()
        (await asking).release()


async def test_safe_functions_pass(virtuoso: str, session: aiohttp.ClientSession) -> None:
    query = "CONSTRUCT { ?s <urn:upper> ?x } WHERE { ?s ?p ?o BIND(bif:upper(?o) AS ?x) }"
    async with (
        serving(virtuoso, profile="virtuoso", service="deny") as server,
        session.post(server.sparql, data={"query": query}, headers=RDFM) as answer,
    ):
        assert await answer.text() == '# @message\n<urn:a> <urn:upper> "C" .\n'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(virtuoso: str) -> AsyncIterator[Served]:
    async with serving(virtuoso, profile="virtuoso", settings={"page": False}) as server:
        yield server


async def test_a_browser_gets_the_form(served: Served, session: aiohttp.ClientSession) -> None:
    """Issue 13, 24: it got a description in Turtle."""
    async with session.get(served.sparql, headers=BROWSER) as answer:
        page = await answer.text()
        assert (answer.status, answer.content_type) == (200, "text/html")
        policy = answer.headers["Content-Security-Policy"]
    assert re.search(r'<form action=""|<form action="/sparql"', page)
    assert 'name="query"' in page
    # it may be sent to here, and nothing may run
    assert "sandbox allow-forms" in policy
    assert "form-action 'self'" in policy
    assert "script" not in policy
    async with session.head(served.sparql, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
    asked = {
        "default-graph-uri": "",
        "query": "SELECT ?o { ?s ?p ?o }",
        "format": "text/html",
        "timeout": "0",
    }
    async with session.get(served.sparql, params=asked, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "<th>o</th>" in await answer.text()


@pytest.mark.parametrize(
    "accept", [None, "*/*", "text/turtle, text/html;q=0.9", "text/html;q=0, */*"]
)
async def test_others_get_the_description(
    served: Served, session: aiohttp.ClientSession, accept: str | None
) -> None:
    async with session.get(
        served.sparql, headers={} if accept is None else {"Accept": accept}
    ) as answer:
        assert (answer.status, answer.content_type) == (200, "text/turtle")


async def test_no_form_is_made_up(
    session: aiohttp.ClientSession, tmp_path: Path, oxigraph_server: Serve
) -> None:
    (tmp_path / "one.ttl").write_text("<urn:a> <urn:p> <urn:b> .")
    async with (
        serving(oxigraph_server(tmp_path / "one.ttl"), settings={"page": False}) as server,
        session.get(server.sparql, headers=BROWSER) as answer,
    ):
        assert (answer.status, answer.content_type) == (200, "text/turtle")

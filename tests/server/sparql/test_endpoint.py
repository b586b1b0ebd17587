"""What a request to a SPARQL endpoint costs: its text is tokenised once, its media type read once."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import aiohttp
import pytest

from construct_messages.query import tokens
from construct_messages.rdf.formats import lookup
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import serving

SERVICE = "http://example.org/sparql"
# what each of the checks looks at: SERVICE, functions of the engine, pragmas, prefixes
WHERE = (
    f"WHERE {{ SERVICE <{SERVICE}> {{ ?s ?p ?o }} FILTER(bif:lower(?o) = 'get:' && ?o = ex:o) }}"
)
RESULT = b'{"head":{"vars":["s","o"]},"results":{"bindings":[]}}'


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        server.play(response(RESULT))
        yield server


@pytest.mark.parametrize(
    ("query", "parameters", "options"),
    [
        (f"SELECT * {WHERE}", {}, {}),
        (f"SELECT * {WHERE}", {}, {"service": (SERVICE,)}),
        (f"SELECT * {WHERE} # {'long ' * 2000}", {}, {"service": (SERVICE,)}),
        (f"CONSTRUCT {{ ?s ex:p ?o }} {WHERE}", {"messages": "rdfm"}, {}),
        (f"CONSTRUCT {{ ?s ex:p ?o }} {WHERE}", {"messages": "rdfm"}, {"service": (SERVICE,)}),
        (
            f"CONSTRUCT {{ ?s ex:p ?o }} {WHERE}",
            {"messages": "rdfm", "group-by": "s"},
            {"page_size": 1000},
        ),
        (
            f"CONSTRUCT {{ ?s ex:p ?o }} {WHERE} # {'long ' * 2000}",
            {"messages": "rdfm"},
            {"service": (SERVICE,)},
        ),
    ],
    ids=[
        "plain",
        "plain, checked",
        "plain, long",
        "messages",
        "messages, checked",
        "messages, paged",
        "messages, long",
    ],
)
async def test_a_query_is_tokenised_once(
    query: str,
    parameters: dict[str, str],
    options: dict[str, Any],
    upstream: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenised: list[str] = []
    find = tokens._tokens

    def count(text: str) -> Iterator[tokens.Token]:
        tokenised.append(text)
        return find(text)

    monkeypatch.setattr(tokens, "_tokens", count)
    prefixes = {"ex": "http://example.org/"}
    async with (
        serving(upstream.url, profile="virtuoso", prefixes=prefixes, **options) as server,
        aiohttp.ClientSession() as session,
        session.post(server.sparql, data={"query": query, **parameters}) as answer,
    ):
        assert (answer.status, upstream.asked != []) == (200, True)
        await answer.read()
    assert [text for text in tokenised if "SERVICE" in text] == [query]


async def test_a_media_type_is_not_printed_and_read_again(
    upstream: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> None:
        raise AssertionError(text)

    async with (
        serving(upstream.url) as server,
        aiohttp.ClientSession(
            headers={"Accept": "application/trig; version=1.1; messages=rdfm"}
        ) as session,
    ):
        monkeypatch.setattr(lookup, "find_format", read)
        async with session.post(
            server.sparql, data={"query": "CONSTRUCT WHERE { ?s <urn:p> ?o }"}
        ) as answer:
            assert answer.headers["Content-Type"] == "application/trig; version=1.1; messages=rdfm"

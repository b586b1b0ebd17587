"""The description of the server is that of its routes, and its routes answer as described."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from construct_messages.rdf.formats.media_types import PROBLEM, read_media_type
from construct_messages.server.config import StreamsSettings
from tests.support.http.serving import Served, serving
from tests.support.places import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 3"
QUADS = "application/n-quads; messages=rdfm"
S = "/streams/{stream}"
STREAM = "/streams/a"


class Ask(NamedTuple):
    """A request, and the status of its answer."""

    status: int
    path: str
    headers: Mapping[str, str] = {}
    body: str | None = None


def typed(media_type: str, **headers: str) -> dict[str, str]:
    return {"Content-Type": media_type, **headers}


PUBLISHED = [
    Ask(201, f"{STREAM}/input", typed(QUADS), "# @message\n<urn:a> <urn:b> <urn:c> .\n"),
    Ask(201, f"{STREAM}/input", typed("text/turtle"), "<urn:a> <urn:b> 1 ."),
    Ask(200, f"{STREAM}/input?check", typed("text/turtle"), "<urn:a> <urn:b> 1 ."),
    Ask(
        200,
        f"{STREAM}/input",
        typed(QUADS, Accept="application/x-ndjson"),
        "# @message\n<urn:a> <urn:b> <urn:d> .\n",
    ),
    Ask(422, f"{STREAM}/input", typed("text/turtle"), "<urn:a> "),
    Ask(415, f"{STREAM}/input", typed("text/html"), "<p>"),
]
HOT = "CONSTRUCT { ?s <urn:hot> ?o } WHERE { ?s <urn:b> ?o }"

ASKED: dict[tuple[str, str], list[Ask]] = {
    ("put", S): [
        Ask(201, STREAM),
        Ask(204, STREAM, typed("application/json"), '{"label": "A"}'),
        Ask(422, STREAM, typed("application/json"), '{"retainedElements": -1}'),
    ],
    ("post", f"{S}/input"): PUBLISHED,
    ("post", f"{S}/inbox"): [
        each._replace(path=each.path.replace("input", "inbox")) for each in PUBLISHED
    ],
    ("get", "/sparql"): [
        Ask(200, "/sparql"),
        Ask(200, "/sparql", {"Accept": "text/html"}),
        Ask(200, f"/sparql?query={QUERY}&messages=rdfm"),
        Ask(200, f"/sparql?query={QUERY}&group-by=s&distinct=true&max-messages=1&messages=rdfm"),
        Ask(200, f"/sparql?query={QUERY}", {"Accept": "text/event-stream"}),
        Ask(200, f"/sparql?query={QUERY}&frame={{}}"),
        Ask(200, f"/sparql?query={QUERY}&frame={{}}&format=json"),
        Ask(200, "/sparql?query=SELECT * {?s ?p ?o}"),
        Ask(200, "/sparql?query=ASK {}", {"Accept": "application/sparql-results+xml"}),
        Ask(204, f"/sparql?query={QUERY}", {"Accept": "text/event-stream", "Last-Event-ID": "end"}),
        Ask(400, f"/sparql?query={QUERY}&messages=rdfm&max-messages=-1"),
        Ask(400, "/sparql?query=SELECT"),
    ],
    ("post", "/sparql"): [
        Ask(200, "/sparql", typed("application/sparql-query"), QUERY),
        Ask(200, "/sparql", typed("application/x-www-form-urlencoded"), f"query={QUERY}"),
        Ask(403, "/sparql", typed("application/sparql-update"), "DROP ALL"),
        Ask(415, "/sparql", typed("text/plain"), QUERY),
    ],
    ("get", "/streams"): [
        Ask(200, "/streams"),
        Ask(200, "/streams", {"Accept": "text/html"}),
        Ask(200, "/streams?format=ttl"),
    ],
    ("post", "/streams"): [
        Ask(201, "/streams", {"Slug": "b"}),
        Ask(200, "/streams?preview=2&stream=a", typed("application/sparql-query"), HOT),
        Ask(201, "/streams?stream=a", typed("application/sparql-query", Slug="hot"), HOT),
        Ask(400, "/streams?stream=a", typed("application/sparql-query"), "CONSTRUCT"),
    ],
    ("get", S): [
        Ask(200, STREAM),
        Ask(404, "/streams/none"),
        Ask(406, STREAM, {"Accept": "image/png"}),
    ],
    ("get", f"{S}/inbox"): [Ask(200, f"{STREAM}/inbox"), Ask(200, f"{STREAM}/inbox?list=1")],
    ("get", f"{S}/output"): [
        Ask(200, f"{STREAM}/output"),
        Ask(200, f"{STREAM}/output?last=1", {"Accept": "text/turtle"}),
        Ask(200, f"{STREAM}/output?after=0&format=jelly"),
        Ask(200, f"{STREAM}/output?since=2026-01-01T00:00:00Z", {"Accept": QUADS}),
        Ask(200, f"{STREAM}/output", {"Accept": "text/html"}),
        Ask(400, f"{STREAM}/output?last=x"),
    ],
    ("get", f"{S}/output/{{sequence}}"): [
        Ask(200, f"{STREAM}/output/1"),
        Ask(200, f"{STREAM}/output/1", {"Accept": "application/x-jelly-rdf"}),
        Ask(404, f"{STREAM}/output/999"),
    ],
    ("get", f"{S}/events"): [Ask(200, f"{STREAM}/events"), Ask(400, f"{STREAM}/events?before=3")],
    ("get", f"{S}/socket"): [Ask(426, f"{STREAM}/socket")],
    ("post", f"{S}/query"): [
        Ask(200, f"{STREAM}/query?preview=2", typed("application/sparql-query"), HOT),
        Ask(201, f"{STREAM}/query", typed("application/sparql-query", Slug="hot-2"), HOT),
        Ask(415, f"{STREAM}/query", typed("text/plain"), HOT),
    ],
    ("get", f"{S}/ldes"): [
        Ask(200, f"{STREAM}/ldes"),
        Ask(200, f"{STREAM}/ldes", {"Accept": "text/html"}),
    ],
    ("get", f"{S}/ldes/{{page}}"): [
        Ask(200, f"{STREAM}/ldes/1-1000", {"Accept": "application/trig"}),
        Ask(200, f"{STREAM}/ldes/1-1000", {"Accept": "application/json"}),
    ],
    ("patch", S): [
        Ask(204, "/streams/hot", typed("application/json"), '{"status": "paused"}'),
        Ask(422, "/streams/hot", typed("application/json"), "{}"),
    ],
    ("delete", S): [Ask(204, "/streams/hot"), Ask(204, "/streams/hot-2"), Ask(404, "/streams/hot")],
    ("get", "/"): [Ask(200, "/")],
    ("get", "/-/server.json"): [Ask(200, "/-/server.json")],
    ("get", "/-/static/{file}"): [Ask(200, "/-/static/page.css"), Ask(404, "/-/static/none")],
    ("get", "/health/live"): [Ask(200, "/health/live")],
    ("get", "/health/ready"): [Ask(200, "/health/ready")],
    ("get", "/metrics"): [Ask(200, "/metrics")],
    ("get", "/openapi.json"): [Ask(200, "/openapi.json")],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    place: Path = tmp_path_factory.mktemp("openapi")
    store = ox.Store(str(place / "store"))
    store.load(path=str(ROOT / "queries" / "data" / "companies.ttl"))
    store.flush()
    del store
    streams = StreamsSettings(file=str(place / "streams.db"))
    async with serving(place / "store", settings={"streams": streams}) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def described(served: Served, client: aiohttp.ClientSession) -> dict[str, Any]:
    async with client.get(f"{served.url}/openapi.json") as response:
        document: dict[str, Any] = await response.json()
    return document


async def test_every_route_is_described(served: Served, described: dict[str, Any]) -> None:
    routed = {
        (method.lower(), route.path)
        for endpoint in served.endpoints
        for route in endpoint.routes()
        for method in route.methods
    }
    own = ("/health/live", "/health/ready", "/metrics", "/openapi.json")
    routed |= {(method, path) for path in own for method in ("get", "head")}
    methods = {
        (method, path)
        for path, item in described["paths"].items()
        for method in item
        if method != "parameters"
    }
    assert methods == routed
    assert {each for each in methods if each[0] != "head"} == set(ASKED)


async def test_the_description_is_of_openapi_3_1(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1.")
    for path, item in described["paths"].items():
        in_path = {each["name"] for each in item.pop("parameters", [])}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))
        for operation in item.values():
            assert operation["summary"]
            places = [(each["in"], each["name"]) for each in operation.get("parameters", [])]
            assert len(places) == len(set(places))
            for parameter in operation.get("parameters", []):
                assert parameter["description"]
                Draft202012Validator.check_schema(parameter["schema"])
            for status, answer in operation["responses"].items():
                assert status == "default" or answer["description"]


@pytest.mark.parametrize(("method", "path"), ASKED)
async def test_a_route_answers_as_described(
    method: str, path: str, served: Served, client: aiohttp.ClientSession, described: dict[str, Any]
) -> None:
    """In the order of the table: the stream is created first."""
    operation = described["paths"][path][method]
    for ask in ASKED[method, path]:
        async with client.request(
            method, served.url + ask.path, headers=ask.headers, data=ask.body
        ) as response:
            assert response.status == ask.status, await response.text()
            problem = described["components"]["responses"]["Problem"]
            answer = operation["responses"].get(str(response.status), problem)
            assert (answer is problem) == (response.status >= 400)
            content = answer.get("content", {})
            given = response.headers.get("Content-Type")
            if response.status == 204 or not content:
                assert not content or response.status == 204
                assert given in (None, "application/octet-stream")
                continue
            assert given is not None
            matching = [each for each in content if matches(given, each)]
            assert matching, f"{given} is not among {list(content)}"
            if given.startswith(PROBLEM):
                schema = described["components"]["schemas"]["Problem"]
                Draft202012Validator(schema).validate(json.loads(await response.text()))


def matches(given: str, range: str) -> bool:
    """Whether a media type is of a range, which may have parameters."""
    if range == "*/*":
        return True
    found, named = read_media_type(given), read_media_type(range)
    assert found is not None
    assert named is not None
    return found[0] == named[0] and named[1].items() <= found[1].items()


async def test_other_methods_are_refused(
    served: Served, client: aiohttp.ClientSession, described: dict[str, Any]
) -> None:
    for path, item in described["paths"].items():
        for method in {"get", "post", "put", "patch", "delete"} - set(item):
            url = served.url + re.sub(r"\{\w+\}", "1", path)
            async with client.request(method, url) as response:
                assert response.status == 405, (method, path)

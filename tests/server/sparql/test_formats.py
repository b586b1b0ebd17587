"""Every format over a real socket: what `serve` answers is what `run` writes, and reads as the same messages."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio
import zstandard

from construct_messages import construct_messages
from construct_messages.cli import main
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.reading import read_log
from construct_messages.rdf.formats import FORMATS, JELLY, NDJSON_LD, RDF_XML, content_type
from construct_messages.rdf.formats.negotiation import OFFERED
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import Served, serving, unlabelled
from tests.support.logs.kinds import KINDS, Kind, isomorphic, read

# starting the processes takes longer than what is tested here
pytestmark = pytest.mark.asyncio(loop_scope="module")

PREFIX = "PREFIX : <http://example.org/> "
TRIPLES = (
    f"""{PREFIX}CONSTRUCT {{ ?s :label ?o ; :is [ a :Thing ; :of ?s ] }} """
    f"""WHERE {{ ?s :label ?o }} ORDER BY ?s ?o"""
)
QUADS = f"""{PREFIX}CONSTRUCT {{ ?s :in ?g . GRAPH ?g {{ ?s :label ?o ; :is [ a :Thing ] }} }}
WHERE {{ GRAPH ?g {{ ?s :label ?o }} }} ORDER BY ?g ?s ?o"""
DATA = f"""{PREFIX}
:a :label "Anna"@en, "A\\nMESSAGE\\n# @message\\n", 1, 1.50, true . :b :label "" . :c :label "<é&\\u0085>"@fr-be, :a .
{"".join(f":n{number} :label {number} . " for number in range(300))}
:g {{ :a :label "Anna", 1 . :b :label "Bert"@de }} :h {{ :a :label :b }}
"""
JELLY_TYPE, NDJSON_TYPE = JELLY.media_type, NDJSON_LD.media_type


def query_for(kind: Kind) -> str:
    return QUADS if kind.format.graphs else TRIPLES


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "things.trig"
    path.write_text(DATA, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    directory = tmp_path_factory.mktemp("things") / "store"
    written = ox.Store(str(directory))
    written.bulk_load(path=str(data))
    written.flush()
    return directory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(store: Path) -> AsyncIterator[Served]:
    async with serving(store) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(headers=headers, auto_decompress=False) as session:
        yield session


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_serve_answers_what_run_writes(
    kind: Kind, served: Served, session: aiohttp.ClientSession, data: Path, tmp_path: Path
) -> None:
    media_type, query, target = content_type(*kind), query_for(kind), tmp_path / "log"
    arguments = [
        "run",
        "--query",
        query,
        "--source",
        str(data),
        "--format",
        media_type,
        "--output",
        str(target),
    ]
    assert await asyncio.to_thread(main, arguments) == 0
    log = target.read_bytes()

    came = read([log], kind)
    assert came.error is None
    assert isomorphic(came.messages, list(construct_messages(query, data)))

    for parameters, accept in (
        ({}, media_type),
        ({"format": media_type}, "text/html"),
        ({"format": media_type, "messages": kind.syntax.label or "rdfm"}, "*/*"),
    ):
        asked = {"query": query, **parameters}
        async with session.get(served.sparql, params=asked, headers={"Accept": accept}) as answer:
            assert (answer.status, answer.headers["Content-Type"]) == (200, media_type)
            assert unlabelled(await answer.read()) == unlabelled(log)
    async with session.head(
        served.sparql, params={"query": query}, headers={"Accept": media_type}
    ) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, media_type)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_packed(format, coding: str, served: Served, session: aiohttp.ClientSession) -> None:
    asked = {"query": TRIPLES, "format": format.extension, "messages": "rdfm"}
    bodies = []
    for accepted in ("identity", coding):
        async with session.get(
            served.sparql, params=asked, headers={"Accept-Encoding": accepted}
        ) as answer:
            assert answer.headers.get("Content-Encoding", "identity") == accepted
            bodies.append(await answer.read())
    plain, packed = bodies
    unpack = (
        gzip.decompress
        if coding == "gzip"
        else zstandard.ZstdDecompressor().decompressobj().decompress
    )
    assert unlabelled(unpack(packed)) == unlabelled(plain)
    assert len(packed) < len(plain)


@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_no_message(kind: Kind, served: Served, session: aiohttp.ClientSession) -> None:
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(false) }"
    async with session.get(
        served.sparql, params={"query": query}, headers={"Accept": content_type(*kind)}
    ) as answer:
        assert answer.status == 200
        came = read([await answer.read()], kind)
    assert (came.messages, came.error) == ([], None)


async def test_a_format_that_cannot(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.get(
        served.sparql, params={"query": QUADS}, headers={"Accept": RDF_XML.media_type}
    ) as answer:
        assert answer.status == 422
        problem = json.loads(await answer.read())
    assert "RDF/XML has no named graphs" in problem["detail"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (
            "CONSTRUCT { ?s ?p <<( ?s ?p ?o )>> } WHERE { BIND(<urn:s> AS ?s) BIND(<urn:p> AS ?p) BIND(1 AS ?o) }",
            200,
        ),
        (
            "CONSTRUCT { ?s ?p ?o } WHERE { BIND(<urn:s> AS ?s) BIND(<urn:p> AS ?p) BIND(TRIPLE(?s, ?p, 1) AS ?o) }",
            422,
        ),
    ],
    ids=["of the template", "of the data"],
)
async def test_triple_terms_in_jelly(
    query: str, status: int, served: Served, session: aiohttp.ClientSession
) -> None:
    """Issue 13, 10: announced where the template has them; a client cannot ask for options, but for another format."""
    async with session.get(
        served.sparql, params={"query": query}, headers={"Accept": JELLY_TYPE}
    ) as answer:
        body = await answer.read()
    assert answer.status == status
    if status == 200:
        reader = read_log(body, "jelly")
        assert len(list(reader)) == 1
        assert reader.options is not None
        assert reader.options.rdf_star
    else:
        problem = json.loads(body)
        assert "allow no triple terms" in problem["detail"]
        assert "N-Quads" in problem["hint"]
    async with session.get(
        served.sparql, params={"query": query, "format": "nq", "messages": "rdfm"}
    ) as answer:
        assert (answer.status, (await answer.read()).count(b"<<(")) == (200, 1)


async def test_406_says_how_to_ask(served: Served, session: aiohttp.ClientSession) -> None:
    headers = {"Accept": f"{JELLY_TYPE}; version=1.1-messages"}
    async with session.get(served.sparql, params={"query": TRIPLES}, headers=headers) as answer:
        assert answer.status == 406
        problem = json.loads(await answer.read())
    assert problem["offered"] == list(OFFERED)
    assert len(problem["hint"]) < 400


# --- what is not about messages goes on untouched ---


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """An endpoint that answers Jelly and NDJSON-LD itself."""
    with closing(FaultServer()) as server:
        yield server


@pytest.mark.parametrize(
    ("query", "accept"),
    [
        ("SELECT * { ?s ?p ?o }", "application/x-ndjson"),
        ("ASK { ?s ?p ?o }", f"{NDJSON_TYPE}, */*;q=0.1"),
        ("DESCRIBE <urn:s>", JELLY_TYPE),
        (TRIPLES, f"{JELLY_TYPE}, text/turtle"),
        (TRIPLES, f"{NDJSON_TYPE};q=0.9, application/ld+json, */*;q=0.1"),
        (TRIPLES, f"{JELLY_TYPE}, {JELLY_TYPE};messages=rdfm;q=0"),
    ],
)
async def test_the_endpoint_s_own(
    upstream: FaultServer, session: aiohttp.ClientSession, query: str, accept: str
) -> None:
    upstream.play(response(b"\x00", JELLY_TYPE))
    async with (
        serving(upstream.url, allow_private=True) as server,
        session.get(server.sparql, params={"query": query}, headers={"Accept": accept}) as answer,
    ):
        assert (answer.status, answer.headers["Content-Type"]) == (200, JELLY_TYPE)
        assert await answer.read() == b"\x00"
    (asked,) = upstream.asked
    assert asked.headers["accept"] == accept.removesuffix(f", {JELLY_TYPE};messages=rdfm;q=0")
    assert asked.parameters["query"] == [query]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (f"{JELLY_TYPE}, text/turtle", "text/turtle; charset=utf-8"),
        (f"{JELLY_TYPE};q=0.9, {NDJSON_TYPE}, application/ld+json;q=0.9", NDJSON_TYPE),
        (f"{JELLY_TYPE}, */*;q=0.1", JELLY_TYPE),
        ("application/x-ndjson", "application/x-ndjson"),
    ],
)
async def test_types_that_logs_share(
    served: Served, session: aiohttp.ClientSession, accept: str, content_type: str
) -> None:
    async with session.get(
        served.sparql, params={"query": TRIPLES}, headers={"Accept": accept}
    ) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, content_type)


async def test_each_line_of_ndjson_ld_stands_by_itself(
    served: Served, session: aiohttp.ClientSession, data: Path
) -> None:
    """Ordinary readers know nothing of a context on a line before."""
    async with session.get(
        served.sparql, params={"query": QUADS}, headers={"Accept": NDJSON_TYPE}
    ) as answer:
        lines = (await answer.read()).splitlines()
    by_line = [to_message(ox.parse(line, format=ox.RdfFormat.JSON_LD)) for line in lines]
    assert isomorphic(by_line, list(construct_messages(QUADS, data)))

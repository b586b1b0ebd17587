"""The served endpoint over real sockets: what each request gets, in front of files and in front of an endpoint."""

import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio
import zstandard

from construct_messages.server.config import EndpointSettings, Limits
from tests.support.engines.servers import Serve
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import Served, serving
from tests.support.waiting import eventually

# starting the processes takes longer than what is tested here
pytestmark = pytest.mark.asyncio(loop_scope="module")

DATA = """
@prefix : <urn:> .
:a :knows :b, :c ; :name "Anna"@en .
:b :knows :c ; :name "Bert" .
"""
CONSTRUCT = "CONSTRUCT { ?x <urn:knownBy> ?y } WHERE { ?y <urn:knows> ?x } ORDER BY ?y ?x"
SELECT = "SELECT ?x WHERE { <urn:a> <urn:knows> ?x } ORDER BY ?x"
LOG = b"""# @message
<urn:b> <urn:knownBy> <urn:a> .
# @message
<urn:c> <urn:knownBy> <urn:a> .
# @message
<urn:c> <urn:knownBy> <urn:b> .
"""
RDFM = "application/n-quads; messages=rdfm"


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.ttl"
    path.write_text(DATA)
    return path


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    import pyoxigraph as ox

    directory = tmp_path_factory.mktemp("people") / "store"
    written = ox.Store(str(directory))
    written.bulk_load(path=str(data))
    written.flush()
    return directory


@pytest_asyncio.fixture(params=["files", "endpoint"], scope="module", loop_scope="module")
async def served(request: pytest.FixtureRequest, store: Path, data: Path) -> AsyncIterator[Served]:
    """A server over each kind of source with the same data."""
    source: Any = (
        store if request.param == "files" else request.getfixturevalue("oxigraph_server")(data)
    )
    async with serving(source) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(headers=headers, auto_decompress=False) as session:
        yield session


def in_parts(**fields: str) -> aiohttp.FormData:
    """A form as `multipart/form-data`."""
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value)
    return form


async def test_three_ways_to_ask(served: Served, session: aiohttp.ClientSession) -> None:
    accept = {"Accept": RDFM}
    asked = [
        session.get(served.sparql, params={"query": CONSTRUCT}, headers=accept),
        session.post(served.sparql, data={"query": CONSTRUCT}, headers=accept),
        session.post(
            served.sparql,
            data=CONSTRUCT.encode(),
            headers=accept | {"Content-Type": "application/sparql-query"},
        ),
        session.get(served.sparql, params={"query": CONSTRUCT, "messages": "rdfm"}),
        session.get(served.sparql, params={"query": CONSTRUCT, "messages": "rdfm", "format": "nq"}),
        # clients of Virtuoso (issue 13, 24)
        session.post(served.sparql, params={"query": CONSTRUCT}, headers=accept),
        session.post(served.sparql, data=in_parts(query=CONSTRUCT), headers=accept),
    ]
    for sent in asked:
        async with sent as response:
            assert response.status == 200
            assert (
                response.headers["Content-Type"]
                == "application/n-quads; version=1.2; messages=rdfm"
            )
            assert await response.read() == LOG


@pytest.mark.parametrize(
    ("accept", "content_type", "begins"),
    [
        (
            "text/turtle; version=1.2-messages",
            "text/turtle; version=1.2-messages",
            b'VERSION "1.2-messages"\n',
        ),
        (
            "application/trig; messages=rdfm",
            "application/trig; version=1.2; messages=rdfm",
            b"# @message\n",
        ),
        ("text/turtle;q=0.5, application/n-triples;messages=RDFM", None, b"# @message\n"),
    ],
)
async def test_formats_of_messages(
    served: Served,
    session: aiohttp.ClientSession,
    accept: str,
    content_type: str | None,
    begins: bytes,
) -> None:
    async with session.get(
        served.sparql, params={"query": CONSTRUCT}, headers={"Accept": accept}
    ) as response:
        assert response.status == 200
        assert content_type is None or response.headers["Content-Type"] == content_type
        assert (await response.read()).startswith(begins)


@pytest.mark.parametrize(
    "accept", [None, "*/*", "text/turtle", "application/n-triples, text/turtle;messages=rdfm;q=0.5"]
)
async def test_plain_construct(
    served: Served, session: aiohttp.ClientSession, accept: str | None
) -> None:
    headers = {} if accept is None else {"Accept": accept}
    async with session.get(served.sparql, params={"query": CONSTRUCT}, headers=headers) as response:
        assert response.status == 200
        assert "messages" not in response.headers["Content-Type"]
        assert b"@message" not in await response.read()
        assert "Accept" in response.headers["Vary"]


@pytest.mark.parametrize(
    "accept",
    ["application/sparql-results+json", "application/sparql-results+xml", "text/csv", None],
)
async def test_the_endpoint_s_own_answer_is_untouched(
    oxigraph_server: Serve, data: Path, session: aiohttp.ClientSession, accept: str | None
) -> None:
    upstream = oxigraph_server(data)
    headers = {} if accept is None else {"Accept": accept}
    async with serving(upstream) as server:
        for query in (SELECT, "ASK { ?s ?p ?o }", "DESCRIBE <urn:a>", "SELECT nonsense"):
            async with (
                session.post(upstream, data={"query": query}, headers=headers) as direct,
                session.post(server.sparql, data={"query": query}, headers=headers) as relayed,
            ):
                assert relayed.status == direct.status
                assert relayed.headers.get("Content-Type") == direct.headers.get("Content-Type")
                assert await relayed.read() == await direct.read()


async def test_select_over_files(store: Path, session: aiohttp.ClientSession) -> None:
    async with (
        serving(store) as server,
        session.get(
            server.sparql,
            params={"query": SELECT},
            headers={"Accept": "application/sparql-results+json"},
        ) as response,
    ):
        results = await response.json(content_type=None)
        assert [binding["x"]["value"] for binding in results["results"]["bindings"]] == [
            "urn:b",
            "urn:c",
        ]


def form(**parameters: str) -> tuple[bytes, str]:
    return urlencode(parameters).encode(), "application/x-www-form-urlencoded"


REFUSED: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "syntax": ("GET", {"params": {"query": "CONSTRUCT { ?s } WHERE { ?s ?p ?o }"}}, 400, "line"),
    "no operation": ("POST", {"data": {"text": "SELECT"}}, 400, "query"),
    "an update": ("POST", {"data": {"update": "CLEAR ALL"}}, 403, "update"),
    "an update as a query": (
        "POST",
        {"data": {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}},
        403,
        "update",
    ),
    "an update by GET": ("GET", {"params": {"update": "CLEAR ALL"}}, 400, "update"),
    "messages of a SELECT": ("GET", {"params": {"query": SELECT}}, 406, "CONSTRUCT"),
    "another media type": (
        "POST",
        {"data": b"{}", "headers": {"Content-Type": "application/json"}},
        415,
        "json",
    ),
    "another method": ("DELETE", {}, 405, "DELETE"),
    "too long a query": (
        "POST",
        {"data": {"query": f"{CONSTRUCT} #{'x' * 500_000}"}},
        413,
        "500000",
    ),
}


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("coding", PACKERS)
async def test_compressed_requests(
    served: Served, session: aiohttp.ClientSession, coding: str
) -> None:
    packed = PACKERS[coding](CONSTRUCT.encode())
    headers = {"Content-Type": "application/sparql-query", "Content-Encoding": coding}
    for body, status in (
        (packed, 200),
        (packed[:-1], 400),
        (b"not compressed", 400),
        (PACKERS[coding](bytes(1 << 26)), 413),  # a small body of large content
    ):
        url = f"{served.sparql}?messages=rdfm"
        async with session.post(url, data=body, headers=headers) as response:
            assert response.status == status, await response.text()
    async with session.post(
        served.sparql, data=packed, headers=headers | {"Content-Encoding": "br"}
    ) as response:
        assert response.status == 415
        assert "gzip" in (await response.json(content_type=None))["hint"]


@pytest.mark.parametrize("name", ["timeout", "limit", "offset", "maxrows", "LIMIT"])
async def test_parameters_that_would_cut_a_log_short(
    served: Served, session: aiohttp.ClientSession, name: str
) -> None:
    for value, status in (("5", 400), ("0", 200), ("", 200)):
        parameters = {"query": CONSTRUCT, "messages": "rdfm", name: value}
        async with session.get(served.sparql, params=parameters) as response:
            assert response.status == status


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_refused(served: Served, session: aiohttp.ClientSession, name: str) -> None:
    method, options, status, word = REFUSED[name]
    headers = {"Accept": RDFM, **options.get("headers", {})}
    async with session.request(
        method, served.sparql, **{**options, "headers": headers}
    ) as response:
        assert response.status == status
        assert response.headers["Content-Type"].startswith("application/problem+json")
        document = json.loads(await response.read())
        assert document["status"] == status
        assert document["request_id"] == response.headers["X-Request-ID"]
        assert word in json.dumps(document)
        assert ("Allow" in response.headers) == (status == 405)


async def test_406_lists_what_there_is(served: Served, session: aiohttp.ClientSession) -> None:
    headers = {"Accept": "application/trig; messages=unheard-of"}
    async with session.get(served.sparql, params={"query": CONSTRUCT}, headers=headers) as response:
        assert response.status == 406
        assert (
            "application/trig; version=1.2-messages" in json.loads(await response.read())["offered"]
        )


async def test_a_place_in_the_query(served: Served, session: aiohttp.ClientSession) -> None:
    query = "CONSTRUCT {\n  ?s ex:p ?o\n} WHERE { ?s ?p ?o }"
    async with session.get(served.sparql, params={"query": query, "messages": "rdfm"}) as response:
        document = json.loads(await response.read())
        assert (document["line"], document["column"]) == (2, 6)
        assert "PREFIX ex:" in document["hint"]


async def test_another_path(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{served.url}/elsewhere") as response:
        assert response.status == 404
        assert response.content_type == "application/problem+json"
        assert "/sparql" in (await response.text())


async def test_head(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.head(
        served.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}
    ) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "application/n-quads; version=1.2; messages=rdfm"
        assert await response.read() == b""
    async with session.head(served.sparql, params={"query": SELECT}) as response:
        assert await response.read() == b""


async def test_cross_origin(store: Path, session: aiohttp.ClientSession) -> None:
    async with serving(store, settings={"cors": ("*",)}) as server:
        await check_cross_origin(server, session)


async def check_cross_origin(served: Served, session: aiohttp.ClientSession) -> None:
    preflight = {
        "Origin": "https://example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    async with session.options(served.sparql, headers=preflight) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
        assert response.headers["Access-Control-Allow-Headers"] == "content-type"
        assert response.headers["Allow"] == "GET, HEAD, POST, OPTIONS"
    async with session.get(
        served.sparql, params={"query": SELECT}, headers={"Origin": "https://x.org"}
    ) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "X-Request-ID" in response.headers["Access-Control-Expose-Headers"]


async def test_only_some_origins(store: Path, session: aiohttp.ClientSession) -> None:
    async with serving(store, settings={"cors": ("https://example.org",)}) as server:
        for origin, allowed in (
            ("https://example.org", "https://example.org"),
            ("https://evil.example", None),
        ):
            async with session.get(
                server.sparql, params={"query": SELECT}, headers={"Origin": origin}
            ) as response:
                assert response.headers.get("Access-Control-Allow-Origin") == allowed
                assert "Origin" in response.headers["Vary"]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_compressed(served: Served, session: aiohttp.ClientSession, coding: str) -> None:
    headers = {"Accept": RDFM, "Accept-Encoding": coding}
    async with session.get(served.sparql, params={"query": CONSTRUCT}, headers=headers) as response:
        assert response.headers["Content-Encoding"] == coding
        body = await response.read()
        decoder = zstandard.ZstdDecompressor().decompressobj()
        assert (gzip.decompress(body) if coding == "gzip" else decoder.decompress(body)) == LOG


async def test_held_back(store: Path, session: aiohttp.ClientSession) -> None:
    async with (
        serving(store, buffer_bytes=10_000) as server,
        session.get(
            server.sparql, params={"query": CONSTRUCT}, headers={"Accept": RDFM}
        ) as response,
    ):
        assert response.headers["Content-Length"] == str(len(LOG))
        assert await response.read() == LOG


async def test_grouping(served: Served, session: aiohttp.ClientSession) -> None:
    parameters = {"query": CONSTRUCT, "messages": "rdfm", "group-by": "?y"}
    async with session.get(served.sparql, params=parameters) as response:
        assert (await response.read()).count(b"# @message") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("union", "parameters", "count"),
    [
        (False, {}, 0),
        (False, {"default-graph-uri": "urn:g"}, 1),
        (False, {"default-graph-uri": "urn:h"}, 0),
        (True, {}, 1),
        (True, {"default-graph-uri": "urn:h"}, 0),
        (True, {"named-graph-uri": "urn:g"}, 0),
    ],
)
async def test_the_dataset(
    tmp_path: Path,
    session: aiohttp.ClientSession,
    union: bool,
    parameters: dict[str, str],
    count: int,
) -> None:
    import pyoxigraph as ox

    stored = ox.Store(str(tmp_path / "store"))
    stored.bulk_load(b"<urn:s> <urn:knows> <urn:o> <urn:g> .", format=ox.RdfFormat.N_QUADS)
    stored.flush()
    del stored
    async with serving(tmp_path / "store", union_default_graph=union) as server:
        asked = {"query": CONSTRUCT} | parameters
        async with session.get(server.sparql, params=asked | {"messages": "rdfm"}) as response:
            assert (await response.read()).count(b"# @message") == count
        async with session.get(
            server.sparql, params=asked, headers={"Accept": "application/n-triples"}
        ) as response:
            assert (await response.read()).count(b"\n") == count


@pytest.mark.parametrize(
    ("limits", "status", "word"),
    [
        (Limits(solutions=2), 413, "2 solutions"),
        (Limits(messages=2), 413, "2 messages"),
        (Limits(message_bytes=20), 413, "20 are allowed"),
        (Limits(query_characters=20), 414, "20"),
        (Limits(seconds=0.3), 504, "time"),
    ],
)
async def test_limits(
    store: Path, session: aiohttp.ClientSession, limits: Limits, status: int, word: str
) -> None:
    query = CONSTRUCT
    if limits.seconds and limits.seconds < 1:
        everything = " . ".join(f"?s{number} ?p{number} ?o{number}" for number in range(12))
        query = f"CONSTRUCT {{ <urn:s> <urn:p> ?n }} WHERE {{ {{ SELECT (COUNT(*) AS ?n) {{ {everything} }} }} }}"
    async with (
        serving(store, limits=limits, buffer_bytes=1000) as server,
        session.get(server.sparql, params={"query": query, "messages": "rdfm"}) as response,
    ):
        assert response.status == status
        assert word in await response.text()


async def test_a_body_that_is_too_long(store: Path, session: aiohttp.ClientSession) -> None:
    async with (
        serving(store, limits=Limits(request_bytes=1000)) as server,
        session.post(server.sparql, data={"query": f"ASK {{}} #{'x' * 1000}"}) as response,
    ):
        assert response.status == 413
        assert "1000 bytes" in await response.text()


@pytest.mark.slow
async def test_a_query_of_many_values(served: Served, session: aiohttp.ClientSession) -> None:
    """Issue 13, 24: 200 kB were refused."""
    values = " ".join(f"<urn:x{number}>" for number in range(20_000))
    query = CONSTRUCT.replace("} ORDER", f"VALUES ?x {{ <urn:b> <urn:c> {values} }} }} ORDER")
    assert len(query) > 200_000
    for data in ({"query": query}, in_parts(query=query)):
        async with session.post(served.sparql, data=data, headers={"Accept": RDFM}) as response:
            assert await response.read() == LOG


async def test_updates_go_to_a_url_of_their_own(session: aiohttp.ClientSession) -> None:
    """Issue 13, 24: one URL only was served."""
    queries, updates = FaultServer(), FaultServer()
    try:
        queries.play(response(b'{"head":{},"boolean":true}'))
        updates.play(response(b"done", "text/plain"))
        async with serving(queries.url, update=True, update_source=updates.url) as server:
            async with session.post(server.sparql, data={"query": "ASK {}"}) as answer:
                assert await answer.read() == b'{"head":{},"boolean":true}'
            async with session.post(server.sparql, data={"update": "CLEAR ALL"}) as answer:
                assert await answer.read() == b"done"
        assert [asked.parameters for asked in queries.asked] == [{"query": ["ASK {}"]}]
        assert [asked.parameters for asked in updates.asked] == [{"update": ["CLEAR ALL"]}]
    finally:
        queries.close()
        updates.close()


@pytest.mark.parametrize("lenient", [False, True])
async def test_malformed_iris(session: aiohttp.ClientSession, lenient: bool) -> None:
    """A sibling of issue 13, 9: public endpoints hold such IRIs."""
    solution = '{"x":{"type":"uri","value":"http://e/100%"},"y":{"type":"uri","value":"urn:y"}}'
    upstream = FaultServer()
    try:
        upstream.play(
            response(
                f'{{"head":{{"vars":["x","y"]}},"results":{{"bindings":[{solution}]}}}}'.encode()
            )
        )
        query = {
            "query": "CONSTRUCT { ?x <urn:knownBy> ?y } WHERE { ?y <urn:knows> ?x }",
            "messages": "rdfm",
        }
        async with (
            serving(upstream.url, lenient=lenient) as server,
            session.get(server.sparql, params=query) as answer,
        ):
            text = await answer.text()
            if lenient:
                assert text == "# @message\n<http://e/100%> <urn:knownBy> <urn:y> .\n"
            else:
                assert answer.status == 502
                assert "http://e/100%" in text
    finally:
        upstream.close()


async def test_several_endpoints(
    store: Path, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    import pyoxigraph as ox

    empty = ox.Store(str(tmp_path / "empty"))
    empty.flush()
    del empty
    endpoints = {
        "people": EndpointSettings(source=(str(store),)),
        "nobody": EndpointSettings(source=(str(tmp_path / "empty"),)),
    }
    async with serving(endpoints=endpoints) as server:
        for name, count in (("people", 3), ("nobody", 0)):
            async with session.get(
                f"{server.url}/{name}/sparql", params={"query": CONSTRUCT, "messages": "rdfm"}
            ) as response:
                assert (await response.read()).count(b"# @message") == count
        async with session.get(server.sparql, params={"query": CONSTRUCT}) as response:
            assert response.status == 404


async def test_health_and_metrics(store: Path, session: aiohttp.ClientSession) -> None:
    async with serving(store) as server:
        for path in ("live", "ready"):
            async with session.get(f"{server.url}/health/{path}") as response:
                assert response.status == 200
        async with session.get(
            server.sparql, params={"query": CONSTRUCT, "messages": "rdfm"}
        ) as response:
            await response.read()
        async with session.get(f"{server.url}/metrics") as response:
            text = await response.text()
    assert 'construct_messages_messages_total{endpoint="/sparql"} 3.0' in text
    assert 'form="CONSTRUCT"' in text


async def test_the_request_s_identifier(served: Served, session: aiohttp.ClientSession) -> None:
    headers = {"X-Request-ID": "abc-123"}
    async with session.get(
        served.sparql, params={"query": CONSTRUCT, "messages": "rdfm"}, headers=headers
    ) as response:
        assert response.headers["X-Request-ID"] == "abc-123"
        await response.read()
    await eventually(lambda: "outcome=complete" in served.request_log.getvalue())
    assert "abc-123" in served.request_log.getvalue()
    assert "knownBy" not in served.request_log.getvalue()


async def test_the_service_description(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.get(served.sparql, headers={"Accept": "text/turtle"}) as response:
        assert response.status == 200
        text = await response.text()
    assert "sparql-service-description#" in text
    assert "messages=rdfm" in text

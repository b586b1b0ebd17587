"""Queries that are registered over HTTP: what they give out is a stream like others, and says what fills it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pyoxigraph as ox
import pytest

from construct_messages import Message
from construct_messages.rdf.vocabulary import CM
from construct_messages.server.config import EndpointSettings, StreamsSettings
from tests.support.http.serving import serving
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.registered import ECHO, RSP_QL, SPARQL, described, location_of, until, until_true
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually

JSON = "application/json"
UNFINISHED = b"CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }"
REACHING = b"CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <http://x.example/sparql> { ?s ?p ?o } }"
ROWS = b"SELECT ?n WHERE { ?s <urn:number> ?n }"


async def test_over_the_endpoint_of_a_stream(served: StreamsServer) -> None:
    """Row 13 of the checklist: a query is posted, and the answer says where its output is."""
    query = (await described(served, f"{served.url}/streams/a"))["query"]
    assert query == f"{served.url}/streams/a/query"
    head = await served.ask("HEAD", "/streams/a")
    assert f'<{query}>; rel="{CM}query"' in head.headers["Link"]
    location = location_of(await served.ask("POST", query, ECHO, SPARQL, Slug="seen"))
    assert location == f"{served.url}/streams/seen"
    await served.publish([numbered(1), Message(), numbered(2)])
    assert await until(served, location, 2) == [
        '<urn:s> <urn:saw> "x1" .',
        '<urn:s> <urn:saw> "x2" .',
    ]
    said: Any = {}

    async def has_taken() -> bool:
        said.update(await described(served, location))
        return bool(said["taken"] == 3)

    await until_true(has_taken)
    assert {
        name: said[name]
        for name in ("queryText", "inputs", "status", "taken", "given", "lag", "label")
    } == {
        "queryText": ECHO.decode(),
        "inputs": [f"{served.url}/streams/a"],
        "status": "running",
        "taken": 3,
        "given": 2,
        "lag": 0,
        "label": "seen",
    }
    assert "error" not in said
    assert said["evaluations"] >= 1
    assert 0 < said["slowestSeconds"] <= said["evaluationSeconds"] < SECONDS
    assert 10_000_000 < said["memoryBytes"] < 1 << 30
    assert said["restarts"] == 0


async def test_windows_name_their_streams_and_their_output(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams", RSP_QL, SPARQL))
    assert location == f"{served.url}/streams/pairs"
    await served.publish([numbered(1), numbered(2)])
    first = f"<{served.url}/streams/a/output/"
    assert sorted(await until(served, location, 2)) == [
        f'{first}1> <urn:holds> "x1" .',
        f'{first}2> <urn:holds> "x2" .',
    ]
    assert (await described(served, location))["plan"].startswith("maintained: join of ")


async def test_a_query_that_is_asked_as_a_whole(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams?maintain=false", RSP_QL, SPARQL))
    await served.publish([numbered(1), numbered(2)])
    assert len(await until(served, location, 2)) == 2
    plan = (await described(served, location))["plan"]
    assert plan == "evaluated as a whole each time: as requested"


@pytest.mark.parametrize(("parameter", "whole"), [("", True), ("?maintain=true", False)])
async def test_the_setting_for_queries_asked_as_a_whole(
    tmp_path: Path, parameter: str, *, whole: bool
) -> None:
    file = tmp_path / "streams.db"
    async with serving_streams(file, query_maintain=False) as served:
        assert (await served.ask("PUT", "/streams/a")).status == 201
        answer = await served.ask("POST", f"/streams{parameter}", RSP_QL, SPARQL)
        plan = (await described(served, location_of(answer)))["plan"]
        assert plan.startswith("evaluated as a whole" if whole else "maintained")


async def test_windows_that_hold_more_than_their_stream_keeps(served: StreamsServer) -> None:
    keeps, query = b'{"retainedElements": 3}', RSP_QL
    location = location_of(await served.ask("POST", "/streams", query, SPARQL))
    refused = await served.ask("PUT", "/streams/a", keeps, JSON)
    assert refused.status == 409
    assert b"the last 4 messages of a, which keeps 3 messages: the query could" in refused.body
    assert (await served.ask("DELETE", location)).status == 204
    assert (await served.ask("PUT", "/streams/a", keeps, JSON)).status == 204
    refused = await served.ask("POST", "/streams", query, SPARQL)
    assert refused.status == 409
    assert location not in (await described(served, f"{served.url}/streams"))["contains"]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [b"<http://example.org/any>", b"?any"], ids=["iri", "variable"])
async def test_windows_on_any_iri_at_the_endpoint_of_a_stream(
    served: StreamsServer, stream: bytes
) -> None:
    query = RSP_QL.replace(b"ON <a>", b"ON " + stream).replace(b"ISTREAM", b"RSTREAM")
    location = location_of(
        await served.ask("POST", "/streams/a/query?operator=istream", query, SPARQL)
    )
    await served.publish([numbered(1), numbered(2)])
    assert len(await until(served, location, 2)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("type", "body"),
    [
        (
            "text/turtle",
            '@prefix s: <http://w3id.org/rsp/streams#> . <#q> s:query """%s""" ; '
            '<http://www.w3.org/2000/01/rdf-schema#label> "seen" .',
        ),
        (JSON, '{"queryText": "%s", "label": "seen"}'),
    ],
    ids=["turtle", "json"],
)
async def test_the_body_of_the_prototype(served: StreamsServer, type: str, body: str) -> None:
    answer = await served.ask("POST", "/streams?stream=a", (body % ECHO.decode()).encode(), type)
    assert location_of(answer) == f"{served.url}/streams/seen"


@pytest.mark.slow
async def test_rows_of_select_are_messages(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ROWS, SPARQL))
    await served.publish([numbered(1)])
    (row,) = await until(served, location, 1)
    assert '<http://www.w3.org/2001/sw/DataAccess/tests/result-set#value> "x1" .' in row


@pytest.mark.slow
async def test_a_query_over_the_output_of_a_query(served: StreamsServer) -> None:
    location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL, Slug="seen"))
    again = ECHO.replace(b"number", b"saw").replace(b"?s <urn:saw> ?n }", b"?s <urn:again> ?n }", 1)
    location = location_of(await served.ask("POST", "/streams/seen/query", again, SPARQL))
    await served.publish([numbered(1)])
    assert await until(served, location, 1) == ['<urn:s> <urn:again> "x1" .']


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "numbers"),
    [("now", "45"), ("3", "345"), ("2020-01-01T00:00:00Z", "12345")],
)
async def test_where_it_begins(served: StreamsServer, start: str, numbers: str) -> None:
    await served.publish(map(numbered, (1, 2, 3)))
    location = location_of(await served.ask("POST", f"/streams/a/query?from={start}", ECHO, SPARQL))
    await served.publish(map(numbered, (4, 5)))
    lines = await until(served, location, len(numbers))
    assert lines == [f'<urn:s> <urn:saw> "x{number}" .' for number in numbers]


@pytest.mark.slow
async def test_the_output_is_a_stream_like_others(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL))
    await served.publish([numbered(1)])
    await until(served, location, 1)
    said = await described(served, location)
    assert (
        b"x1"
        in (await served.ask("GET", f"{said['output']}?last=1", Accept="application/n-quads")).body
    )
    assert (await served.ask("GET", said["ldes"])).status == 200
    async with served.client.ws_connect(
        f"{said['websocket']}?after=0", protocols=("rdfm.nq",)
    ) as socket:
        assert "x1" in str((await socket.receive()).data)
    for _ in range(2):
        refused = await served.ask("POST", said["input"], b"<urn:s> <urn:p> 1 .", "text/turtle")
        assert refused.status == 403
        assert (await served.ask("PUT", location, b'{"publish": "allow"}', JSON)).status == 204
    assert location in (await described(served, f"{served.url}/streams"))["contains"]


@pytest.mark.slow
async def test_paused_resumed_removed(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL))
    assert (await served.ask("PATCH", location, b'{"status": "paused"}', JSON)).status == 204
    await served.publish([numbered(1)])
    said = await described(served, location)
    assert (said["status"], said["lag"], said["lastSequence"]) == ("paused", 1, 0)
    assert (
        await served.ask(
            "PATCH", location, b'{"status": "running"}', "application/merge-patch+json"
        )
    ).status == 204
    await until(served, location, 1)
    assert (await served.ask("DELETE", location)).status == 204
    assert (await served.ask("GET", location)).status == 404
    await served.publish([numbered(2)])


@pytest.mark.slow
async def test_other_patches_are_refused(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL))
    for body, type, status in (
        (b'{"status": "failed"}', JSON, 422),
        (b"[]", JSON, 422),
        (b"status=paused", "text/plain", 415),
    ):
        assert (await served.ask("PATCH", location, body, type)).status == status
    assert (await served.ask("PATCH", "/streams/a", b'{"status": "paused"}', JSON)).status == 404


@pytest.mark.slow
async def test_changes_at_once(served: StreamsServer) -> None:
    """Whatever the order in which they are heard, none breaks the server, and the name is free afterwards."""
    for _ in range(2):
        registered = await asyncio.gather(
            *(served.ask("POST", "/streams/a/query", ECHO, SPARQL, Slug="seen") for _ in range(3))
        )
        assert sorted(answer.status for answer in registered) == [201, 409, 409]
        changes = [
            ("PATCH", b'{"status": "paused"}'),
            ("PATCH", b'{"status": "running"}'),
            ("DELETE", b""),
        ] * 2
        changed = await asyncio.gather(
            *(served.ask(method, "/streams/seen", body, JSON) for method, body in changes)
        )
        statuses = [answer.status for answer in changed]
        assert set(statuses) <= {204, 404}, statuses
        assert (await served.ask("GET", "/streams/seen")).status == 404


@pytest.mark.slow
async def test_a_failure_is_in_the_description(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL))
    assert (await served.ask("DELETE", "/streams/a")).status == 204
    failed: Any = {}

    async def has_failed() -> bool:
        failed.update(await described(served, location))
        return bool(failed["status"] == "failed")

    await until_true(has_failed)
    assert "there is no stream a" in failed["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "query", "status", "said"),
    [
        pytest.param(
            "/streams/a/query", b"CONSTRUCT { ?s ?p }", 400, "expected a variable", id="malformed"
        ),
        pytest.param(
            "/streams/a/query",
            UNFINISHED,
            400,
            "the embedded engine refuses",
            id="refused-by-engine",
        ),
        pytest.param("/streams", b"ASK { ?s ?p ?o }", 400, "ASK", id="ask"),
        pytest.param("/streams", ECHO, 422, "reads no stream", id="no-stream"),
        pytest.param("/streams?every=PT1S", ECHO, 422, "not an endpoint", id="nothing-to-watch"),
        pytest.param("/streams/b/query", ECHO, 404, "no stream b", id="stream"),
        pytest.param("/streams?stream=b", ECHO, 404, "no stream b", id="stream-of-parameter"),
        pytest.param(
            "/streams",
            RSP_QL.replace(b"<a>", b"<http://x.example/a>"),
            422,
            "not of this",
            id="elsewhere",
        ),
        pytest.param(
            "/streams",
            RSP_QL.replace(b"<a>", b"?s"),
            422,
            "does not name the stream ?s",
            id="variable",
        ),
        pytest.param(
            "/streams", RSP_QL.replace(b"<a>", b"<b>"), 404, "no stream b", id="stream-of-window"
        ),
        pytest.param(
            "/streams",
            RSP_QL.replace(b"<pairs>", b"<a>"),
            409,
            "stream a exists already",
            id="name-taken",
        ),
        pytest.param("/streams/a/query?operator=dstream", ECHO, 400, "ISTREAM", id="operator"),
        pytest.param(
            "/streams/a/query?lateness=PT1S", ECHO, 400, "for windows", id="option-of-windows"
        ),
        pytest.param("/streams/a/query?from=9", ECHO, 404, "no element 8", id="from-the-future"),
        pytest.param("/streams/a/query?from=soon", ECHO, 400, "from=soon", id="from"),
        pytest.param("/streams?report=never", RSP_QL, 400, "report=NEVER", id="report"),
        pytest.param("/streams?report=periodic", RSP_QL, 400, "no period", id="no-period"),
        pytest.param(
            "/streams?lateness=long", RSP_QL, 400, "lateness=long is no duration", id="lateness"
        ),
        pytest.param(
            "/streams?max_ahead=soon", RSP_QL, 400, "max_ahead=soon is no duration", id="max_ahead"
        ),
        pytest.param("/streams?maintain=no", RSP_QL, 400, "true or false", id="maintain"),
        pytest.param(
            "/streams?skip_after=0", RSP_QL, 400, "skip_after=0 is not a number", id="skip_after"
        ),
        pytest.param(
            "/streams?every=PT1S&skip_after=2",
            ECHO,
            422,
            "not an endpoint",
            id="skip_after-of-a-watch",
        ),
        pytest.param("/streams?every=60", ECHO, 400, "every=60 is no duration", id="no-unit"),
        pytest.param("/streams?x=1", RSP_QL, 400, "no parameter", id="parameter"),
        pytest.param("/streams?from=1&from=2", RSP_QL, 400, "twice", id="twice"),
        pytest.param("/streams/a/query", REACHING, 403, "SERVICE", id="service"),
        pytest.param(
            "/streams",
            RSP_QL.replace(b"?s <urn:number>", b"SERVICE ?n {} ?s ?p"),
            403,
            "SERVICE",
            id="deep",
        ),
    ],
)
async def test_what_is_refused(
    served: StreamsServer, path: str, query: bytes, status: int, said: str
) -> None:
    answer = await served.ask("POST", path, query, SPARQL)
    assert (answer.status, said in str(answer.json)) == (status, True), answer.json
    assert (await described(served, f"{served.url}/streams"))["contains"] == [
        f"{served.url}/streams/a"
    ]


async def test_another_type_is_refused(served: StreamsServer) -> None:
    answer = await served.ask("POST", "/streams/a/query", ECHO, "text/plain")
    assert answer.status == 415
    assert (await served.ask("OPTIONS", "/streams/a/query")).headers["Accept-Post"] == SPARQL


# --- who may, and how many ---


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://127.0.0.1:3000", True),
        ("http://localhost", True),
        ("http://[::1]:3000", True),
        ("https://example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("null", False),
        ("http://[", False),
    ],
)
async def test_pages_of_other_sites_change_nothing_on_loopback(
    served: StreamsServer, origin: str, allowed: bool
) -> None:
    """A browser on this machine sends what they tell it to; that the server listens on loopback keeps nobody out."""
    query = {"Content-Type": "application/sparql-query"}
    for method, path, body, headers in (
        ("PUT", "/streams/b", None, {}),
        ("POST", "/streams/a/input", "<urn:a> <urn:p> 1 .", {"Content-Type": "text/turtle"}),
        ("POST", "/streams/a/query", ECHO, query | {"Slug": "echo"}),
        ("PATCH", "/streams/echo", '{"status": "paused"}', {"Content-Type": "application/json"}),
        ("DELETE", "/streams/a", None, {}),
    ):
        url = f"{served.url}{path}"
        async with served.client.request(
            method, url, data=body, headers={**headers, "Origin": origin}
        ) as response:
            assert (response.status != 403) is allowed, path
            assert response.status < 300 or not allowed
    async with served.client.get(f"{served.url}/streams", headers={"Origin": origin}) as response:
        assert response.status == 200


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["deny", "REGISTER_TOKEN"])
async def test_registering_needs_its_own_permission(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTER_TOKEN", "secret")
    rdf = b'[] <http://w3id.org/rsp/streams#query> """' + ECHO + b'""" .'
    async with serving_streams(tmp_path / "streams.db", publish="allow", register=policy) as served:
        await served.ask("PUT", "/streams/a")
        status = 403 if policy == "deny" else 401
        for path, body, type in (
            ("/streams/a/query", ECHO, SPARQL),
            ("/streams", RSP_QL, SPARQL),
            ("/streams?stream=a", rdf, "text/turtle"),
        ):
            assert (await served.ask("POST", path, body, type)).status == status
        if policy == "deny":
            return
        allowed = {"Authorization": "Bearer secret"}
        location = location_of(
            await served.ask("POST", "/streams/a/query", ECHO, SPARQL, **allowed)
        )
        for method, body in (("DELETE", b""), ("PATCH", b'{"status": "paused"}')):
            assert (await served.ask(method, location, body, JSON)).status == 401
            assert (
                await served.ask(method, location, body, JSON, Authorization="Bearer wrong")
            ).status == 401
        assert (await served.ask("DELETE", location, **allowed)).status == 204


@pytest.mark.slow
async def test_who_may_register_need_not_publish(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db") as served:
        await served.ask("PUT", "/streams/a")
    async with serving_streams(tmp_path / "streams.db", publish="deny", register="allow") as served:
        rdf = b'[] <http://w3id.org/rsp/streams#query> """' + ECHO + b'""" .'
        assert (await served.ask("POST", "/streams?stream=a", rdf, "text/turtle")).status == 201
        assert (
            await served.ask("POST", "/streams", b"[] a <urn:x> .", "text/turtle")
        ).status == 403


@pytest.mark.slow
async def test_bounds_of_queries(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", queries=1, query_characters=100) as served:
        await served.ask("PUT", "/streams/a")
        long = await served.ask("POST", "/streams/a/query", ECHO + b"#" * 100, SPARQL)
        assert (long.status, "100 are allowed" in str(long.json)) == (413, True)
        location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL))
        many = await served.ask("POST", "/streams/a/query", ECHO, SPARQL)
        assert (many.status, "no more are allowed" in str(many.json)) == (507, True)
        await served.ask("DELETE", location)
        location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL))


# --- the end, and what is logged ---


@pytest.mark.slow
async def test_it_goes_on_when_the_server_starts_again(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db") as served:
        await served.ask("PUT", "/streams/a")
        location = location_of(
            await served.ask("POST", "/streams/a/query", ECHO, SPARQL, Slug="seen")
        )
        await served.publish([numbered(1)])
        await until(served, location, 1)
    async with serving_streams(tmp_path / "streams.db") as served:
        await served.publish([numbered(2)])
        lines = await until(served, f"{served.url}/streams/seen", 2)
        assert lines == [f'<urn:s> <urn:saw> "x{number}" .' for number in (1, 2)]


@pytest.mark.slow
async def test_the_log_tells_what_was_done(served: StreamsServer) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL, Slug="seen"))
    await served.ask("PATCH", location, b'{"status": "paused"}', JSON)
    await served.ask("PATCH", location, b'{"status": "running"}', JSON)
    log = served.served.request_log
    await eventually(lambda: "action=resume" in log.getvalue())
    lines = [line for line in log.getvalue().splitlines() if "stream=seen" in line]
    assert [line.partition("action=")[2].partition(" ")[0] for line in lines] == [
        "register",
        "pause",
        "resume",
    ]
    assert "CONSTRUCT" not in log.getvalue()


# --- watching the server's own endpoint ---


@asynccontextmanager
async def with_endpoint(tmp_path: Path, **settings: Any) -> AsyncIterator[StreamsServer]:
    """A server with streams, and `/sparql` over a store directory of one triple."""
    directory = tmp_path / "store"
    store = ox.Store(directory)
    store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal("there")))
    store.flush()
    del store
    streams = StreamsSettings(file=str(tmp_path / "streams.db"))
    endpoint = EndpointSettings(source=(str(directory),), **settings)
    async with (
        serving(endpoints={"": endpoint}, settings={"streams": streams}) as served,
        aiohttp.ClientSession() as client,
    ):
        yield StreamsServer(served, client)


WATCHED = b"CONSTRUCT { ?s <urn:has> ?o } WHERE { ?s <urn:p> ?o }"


@pytest.mark.slow
async def test_watching_the_endpoint_of_the_server(tmp_path: Path) -> None:
    async with with_endpoint(tmp_path) as served:
        location = location_of(
            await served.ask("POST", "/streams?every=PT0.1S", WATCHED, SPARQL, Slug="seen")
        )
        assert await until(served, location, 1) == ['<urn:s> <urn:has> "there" .']
        said = await described(served, location)
        assert (said["inputs"], said["status"]) == ([f"{served.url}/sparql"], "running")
        refused = await served.ask("POST", "/streams?every=PT1S", ROWS, SPARQL)
        assert (refused.status, "SELECT" in str(refused.json)) == (400, True)
        registered = b"REGISTER ISTREAM <again> AS " + WATCHED
        location = location_of(
            await served.ask("POST", "/streams?every=PT0.1S", registered, SPARQL)
        )
        assert location == f"{served.url}/streams/again"
        assert await until(served, location, 1) == ['<urn:s> <urn:has> "there" .']
        for name in ("other", "seen"):
            answer = await served.ask(
                "POST", f"/streams?every=PT1S&source=/{name}", WATCHED, SPARQL
            )
            assert answer.status == 422


@pytest.mark.slow
async def test_services_of_a_watch_are_those_of_its_endpoint(tmp_path: Path) -> None:
    async with with_endpoint(tmp_path) as served:
        assert (await served.ask("POST", "/streams?every=PT1S", REACHING, SPARQL)).status == 403


JOINED = b"""REGISTER ISTREAM <joined> AS CONSTRUCT { ?s <urn:is> ?o }
FROM NAMED WINDOW <urn:w> ON <a> [ELEMENTS 1] WHERE { ?s <urn:p> ?o . WINDOW <urn:w> { ?s <urn:number> ?n } }"""


@pytest.mark.slow
async def test_data_of_an_endpoint_beside_windows(tmp_path: Path) -> None:
    async with with_endpoint(tmp_path) as served:
        await served.ask("PUT", "/streams/a")
        location = location_of(await served.ask("POST", "/streams?static=/sparql", JOINED, SPARQL))
        await served.publish([numbered(1)])
        assert await until(served, location, 1) == ['<urn:s> <urn:is> "there" .']
        for path in ("/streams?static=/other", "/streams/a/query?static=/sparql"):
            assert (
                await served.ask("POST", path, JOINED if "other" in path else ECHO, SPARQL)
            ).status in (400, 422)

"""The application serves endpoints of any kind: here one of live elements, beside one of SPARQL."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import ClassVar

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from construct_messages.errors import SourceError, UsageError
from construct_messages.server.config import Config, EndpointSettings
from construct_messages.server.http.app import make_app, runner_of
from construct_messages.server.http.endpoint import Endpoint, Measure, Observe, Route
from construct_messages.server.http.metrics import Metrics
from construct_messages.server.http.request_log import RECORD, RequestLog, RequestRecord
from construct_messages.server.runtime.endpoints import open_endpoints
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(kw_only=True)
class FeedRecord(RequestRecord):
    LABELS: ClassVar[Mapping[str, frozenset[str]]] = {"transport": frozenset(("sse", "websocket"))}
    COUNTERS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.COUNTERS,
        "elements": "Elements received.",
    }

    transport: str | None = None
    elements: int = 0

    def fields(self) -> dict[str, object]:
        return super().fields() | {"transport": self.transport}

    def labels(self) -> Mapping[str, str]:
        return {"transport": self.transport or ""}

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), "elements": self.elements}


class Feed:
    """Takes elements, and gives two of them as server-sent events or over a WebSocket."""

    path = "/streams/{name}"
    record = FeedRecord
    gauges: Mapping[str, Sequence[Measure]] = MappingProxyType({})
    reported: Mapping[str, object] = MappingProxyType({})
    has_source = True
    exposed_headers = ("RDF-Message-Content-Type",)

    def __init__(self) -> None:
        self.life: list[str] = []

    def routes(self) -> Iterable[Route]:
        return (
            Route("/streams/{name}", ("POST",), self._take),
            Route("/streams/{name}/sse", ("GET",), self._events),
            Route("/streams/{name}/websocket", ("GET",), self._websocket),
        )

    async def start(self, observe: Observe) -> None:  # noqa: ARG002 - the protocol's
        self.life.append("started")

    async def check(self) -> None:
        if self.life != ["started"]:
            raise SourceError("not started")

    async def stop(self) -> None:
        self.life.append("stopped")

    async def aclose(self) -> None:
        self.life.append("closed")

    async def _take(self, request: web.Request) -> web.StreamResponse:
        if not await request.read():
            raise UsageError("there is no element", hint="send one")
        record = request[RECORD]
        assert isinstance(record, FeedRecord)
        record.elements += 1
        return web.Response(status=202)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        record = request[RECORD]
        assert isinstance(record, FeedRecord)
        record.transport = "sse"
        record.messages = sent = SimpleNamespace(message_count=0)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in (b"event: rdf-message\ndata:\n\n",) * 2:
            sent.message_count += 1
            record.sent(len(event))
            await response.write(event)
        return response

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        record = request[RECORD]
        assert isinstance(record, FeedRecord)
        record.transport = request.query.get("as", "websocket")
        response = web.WebSocketResponse()
        await response.prepare(request)
        await response.send_bytes(b"")
        await response.close()
        return response


class Served:
    def __init__(self, url: str, feed: Feed, lines: io.StringIO) -> None:
        self.url, self.feed, self._lines = url, feed, lines

    async def line(self, identifier: str) -> dict[str, object]:
        """The line of a request in the log, which is written a moment after the client has the answer."""
        async with asyncio.timeout(SECONDS):
            while True:
                for line in map(json.loads, self._lines.getvalue().splitlines()):
                    if line["event"] == "request" and line["request_id"] == identifier:
                        return dict(line)
                await asyncio.sleep(0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[Served]:
    sparql = EndpointSettings(source=("http://127.0.0.1:9/sparql",), retries=0)
    config = Config(endpoints={"": sparql}, log_format="json", cors=("*",))
    lines, feed = io.StringIO(), Feed()
    request_log = RequestLog(config, lines)
    with ThreadPoolExecutor(1) as executor:
        endpoints: list[Endpoint] = [feed, *open_endpoints(config, {}, request_log, executor)]
        runner = runner_of(make_app(config, endpoints, request_log=request_log))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield Served(site.name, feed, lines)
        await runner.cleanup()
    assert feed.life == ["started", "stopped", "closed"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_an_endpoint_adds_its_fields_and_counts(
    served: Served, session: aiohttp.ClientSession
) -> None:
    async with session.get(
        f"{served.url}/streams/a/sse", headers={"X-Request-ID": "events"}
    ) as response:
        assert await response.read() == b"event: rdf-message\ndata:\n\n" * 2
    line = await served.line("events")
    assert (line["endpoint"], line["transport"], line["messages"]) == ("/streams/{name}", "sse", 2)
    assert "form" not in line
    async with session.post(
        f"{served.url}/streams/a", data=b"<urn:a> <urn:b> <urn:c> ."
    ) as response:
        assert response.status == 202
    async with session.get(f"{served.url}/metrics") as response:
        exposition = await response.text()
    request = 'answer="messages",endpoint="/streams/{name}",form="",status="200",transport="sse"'
    assert f"construct_messages_requests_total{{{request}}} 1.0" in exposition
    assert 'construct_messages_elements_total{endpoint="/streams/{name}"} 1.0' in exposition
    assert 'construct_messages_messages_total{endpoint="/streams/{name}"} 2.0' in exposition
    assert 'construct_messages_solutions_total{endpoint="/sparql"} 0.0' in exposition
    assert 'construct_messages_solutions_total{endpoint="/streams/{name}"}' not in exposition
    assert 'construct_messages_elements_total{endpoint="/sparql"}' not in exposition


async def test_labels_are_closed_sets(served: Served, session: aiohttp.ClientSession) -> None:
    """Also where an endpoint gives what a client sent."""
    async with session.ws_connect(
        f"{served.url}/streams/a/websocket?as=owned", autoclose=True
    ) as websocket:
        assert (await websocket.receive()).data == b""
        await websocket.receive()
    async with session.get(f"{served.url}/metrics") as response:
        assert 'transport="owned"' not in await response.text()


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/streams/a", "POST, OPTIONS"),
        ("/streams/a/sse", "GET, OPTIONS"),
        ("/sparql", "GET, HEAD, POST, OPTIONS"),
    ],
)
async def test_each_route_has_its_methods(
    served: Served, session: aiohttp.ClientSession, path: str, allow: str
) -> None:
    async with session.options(served.url + path) as response:
        assert (response.status, response.headers["Allow"]) == (204, allow)
    async with session.delete(
        served.url + path, headers={"X-Request-ID": f"delete{path}"}
    ) as response:
        assert response.status == 405
        assert set(response.headers["Allow"].split(", ")) == set(allow.split(", "))
        assert (await response.json(content_type=None))[
            "detail"
        ] == "DELETE is not a method of this path"
    assert (await served.line(f"delete{path}"))["outcome"] == "refused"


@pytest.mark.parametrize(
    ("path", "header"),
    [("/streams/a", "RDF-Message-Content-Type"), ("/sparql", "X-SPARQL-MaxRows")],
)
async def test_each_endpoint_exposes_its_headers(
    served: Served, session: aiohttp.ClientSession, path: str, header: str
) -> None:
    async with session.post(
        served.url + path, headers={"Origin": "https://example.org"}
    ) as response:
        assert response.status == 400
        exposed = response.headers["Access-Control-Expose-Headers"].split(", ")
        assert {header, "X-Request-ID"} <= set(exposed)
        assert ("X-SPARQL-MaxRows" in exposed) == (path == "/sparql")


async def test_health_is_of_all_endpoints(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.get(
        f"{served.url}/health/ready", headers={"X-Request-ID": "probe"}
    ) as response:
        assert await response.json() == {
            "status": "ready",
            "endpoints": {"/streams/{name}": "answers", "/sparql": "fails"},
        }


async def test_another_path_names_what_there_is(
    served: Served, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{served.url}/elsewhere") as response:
        assert (response.status, (await response.json(content_type=None))["hint"]) == (
            404,
            "there is /streams/{name}, /sparql",
        )


async def test_two_kinds_may_share_a_counter() -> None:
    metrics = Metrics({"/a": FeedRecord, "/b": RequestRecord})
    with metrics.watch(FeedRecord(id="1", method="GET", endpoint="/a", elements=1)):
        pass
    assert b'construct_messages_elements_total{endpoint="/a"} 1.0' in metrics.exposition(None)[0]

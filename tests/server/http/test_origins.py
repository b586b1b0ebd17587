"""What pages of other origins may do: by default nothing, and what is allowed is told at start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages.server.config import Config
from tests.support.http.command import DATA, Running, eventually
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import serving
from tests.support.http.streams import serving_streams

pytestmark = pytest.mark.asyncio(loop_scope="module")

ELSEWHERE = "https://evil.example"
QUERY = {"query": "SELECT * { ?s ?p ?o }"}
UPDATE = {"update": "INSERT DATA { <urn:a> <urn:b> <urn:c> }"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("origins") / "store"
    written = ox.Store(str(directory))
    written.load(b"<urn:a> <urn:b> <urn:c> .", ox.RdfFormat.TURTLE)
    written.flush()
    return directory


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_no_other_origin_by_default(store: Path, session: aiohttp.ClientSession) -> None:
    """Issue 26, 24."""
    assert Config(endpoints={}).cors == ()
    async with serving(store) as server:
        for origin in (ELSEWHERE, "null", "http://localhost:3000", "http://["):
            headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            for method in ("GET", "HEAD", "OPTIONS"):
                async with session.request(
                    method, server.sparql, params=QUERY, headers=headers
                ) as answer:
                    assert answer.status in (200, 204)
                    assert "Access-Control-Allow-Origin" not in answer.headers
                    assert "Origin" in answer.headers["Vary"]


async def test_no_other_origin_reads_streams_by_default(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        for path in ("/streams", "/streams/a", "/streams/a/output"):
            async with server.client.get(
                server.url + path, headers={"Origin": ELSEWHERE}
            ) as answer:
                assert answer.status == 200
                assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("cors", "public_url", "origin", "status"),
    [
        ((), None, ELSEWHERE, 403),
        ((), None, "null", 403),
        ((), None, "http://localhost:3000", 403),
        (("https://app.example",), None, ELSEWHERE, 403),
        (("https://app.example",), None, "https://app.example", 200),
        (("*",), None, ELSEWHERE, 200),
        ((), "https://data.example/sparql/", "https://data.example", 200),
        ((), None, "{own}", 200),
        ((), None, None, 200),
    ],
)
async def test_pages_of_other_origins_send_no_updates(
    session: aiohttp.ClientSession,
    cors: tuple[str, ...],
    public_url: str | None,
    origin: str | None,
    status: int,
    upstream: FaultServer,
) -> None:
    """A form of any site can be sent to a server on loopback, whether or not the answer can be read."""
    upstream.play(response(b"", "text/plain", framing="length"))
    settings = {"cors": cors, "public_url": public_url}
    async with serving(upstream.url, settings=settings, update=True) as server:
        headers = {} if origin is None else {"Origin": origin.format(own=server.url)}
        async with session.post(server.sparql, data=UPDATE, headers=headers) as answer:
            assert answer.status == status
            if status == 403:
                assert "may not send updates" in await answer.text()
        assert len(upstream.asked) == (0 if status == 403 else 1)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("flags", "told"), [(("--cors", "*"), True), ((), False)], ids=["all", "none"]
)
async def test_all_origins_are_told_at_start(
    tmp_path: Path, flags: tuple[str, ...], told: bool
) -> None:
    running = Running(tmp_path, "--source", DATA, *flags)
    try:
        eventually(lambda: running.events("listening on"), running)
        assert [line["level"] for line in running.events("pages of every website")] == [
            "warning"
        ] * told
    finally:
        running.kill()

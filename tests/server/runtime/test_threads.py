"""A server's own threads: long queries wait for nobody else's blocking calls, and nobody waits for long queries."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing

import aiohttp
import pytest

from construct_messages.server.runtime.process import THREAD_NAMES, THREADS
from construct_messages.server.sparql import endpoint
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import serving
from tests.support.waiting import SECONDS, eventually

LONG = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }} #{'x' * 5000}"
RESULT = b'{"head":{"vars":["s","p","o"]},"results":{"bindings":[]}}'


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        server.play(response(RESULT))
        yield server


@asynccontextmanager
async def occupied() -> AsyncIterator[None]:
    """All threads of the event loop wait."""
    released = threading.Event()
    loop = asyncio.get_running_loop()
    waits = [
        loop.run_in_executor(None, released.wait)
        for _ in range(min(32, (os.cpu_count() or 1) + 4) + 1)
    ]
    try:
        yield
    finally:
        released.set()
        await asyncio.gather(*waits)


@pytest.fixture
def own_threads() -> Callable[[], set[threading.Thread]]:
    """The threads of the server of a test; servers of the session may have some, too."""

    def named() -> set[threading.Thread]:
        return {
            thread for thread in threading.enumerate() if thread.name.startswith(THREAD_NAMES + "_")
        }

    before = named()
    return lambda: named() - before


async def test_long_queries_do_not_wait_for_name_look_up(
    upstream: FaultServer, own_threads: Callable[[], set[threading.Thread]]
) -> None:
    async with (
        serving(upstream.url) as server,
        aiohttp.ClientSession() as session,
        occupied(),
        session.post(server.sparql, data={"query": LONG, "messages": "rdfm"}) as answer,
    ):
        assert (answer.status, await answer.read()) == (200, b"")
    assert own_threads() == set()


async def test_name_look_up_does_not_wait_for_long_queries(
    upstream: FaultServer,
    own_threads: Callable[[], set[threading.Thread]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released, entered = threading.Event(), list[str]()
    form = endpoint.query_form

    def slow(text: str) -> str:
        entered.append(text)
        assert released.wait(SECONDS)
        return form(text)

    monkeypatch.setattr(endpoint, "query_form", slow)
    async with serving(upstream.url) as server, aiohttp.ClientSession() as session:
        data = {"query": LONG, "messages": "rdfm"}
        posts = [
            asyncio.create_task(session.post(server.sparql, data=data)) for _ in range(2 * THREADS)
        ]
        await eventually(lambda: len(entered) == THREADS)
        assert len(own_threads()) == THREADS
        assert await asyncio.get_running_loop().getaddrinfo(
            "localhost", 80, type=socket.SOCK_STREAM
        )
        released.set()
        for answer in await asyncio.gather(*posts):
            assert answer.status == 200
            await answer.read()
    assert own_threads() == set()

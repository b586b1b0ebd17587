"""The server over files, an upstream, and a place that nobody may connect to."""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from construct_messages.server.config import Limits
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.security import EMPTY
from tests.support.http.serving import Served, serving
from tests.support.waiting import SECONDS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyoxigraph as ox

    directory = tmp_path_factory.mktemp("security") / "store"
    written = ox.Store(str(directory))
    written.load(b"<urn:a> <urn:p> <urn:b> .", format=ox.RdfFormat.N_TRIPLES)
    written.flush()
    return directory


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    server = FaultServer()
    server.play(response(EMPTY))
    yield server
    server.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files(store: Path) -> AsyncIterator[Served]:
    async with serving(store, limits=Limits(seconds=SECONDS)) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as session:
        yield session


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, Callable[[], None]]]:
    """A URL of the server's own network, and what fails if anybody has connected there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)

        def untouched() -> None:
            with pytest.raises(BlockingIOError):
                listener.accept()

        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", untouched

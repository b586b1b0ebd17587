"""A scripted endpoint, an upstream over it, both HTTP clients; no retries, or no pauses between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing

import pytest

from construct_messages.sparql.sources.http.upstream import Upstream
from tests.support.http.fault_server import FaultServer
from tests.support.http.pauses import no_pauses, no_retries


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest.fixture
def once() -> Iterator[None]:
    """No retries: they are tested in `test_retries.py`."""
    with no_retries():
        yield


@pytest.fixture(params=["blocking", "asyncio"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def upstream(server: FaultServer) -> AsyncIterator[Upstream]:
    async with aclosing(Upstream(server.url, retries=2)) as upstream:
        yield upstream


@pytest.fixture
def at_once() -> Iterator[None]:
    """Without pauses between retries."""
    with no_pauses():
        yield

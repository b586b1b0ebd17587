"""A server with a store of streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.support.http.streams import StreamsServer, serving_streams


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`."""
    async with serving_streams(tmp_path / "streams.db") as server:
        async with server.client.put(f"{server.url}/streams/a") as response:
            assert response.status == 201
        yield server


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client of HTTP."""
    async with aiohttp.ClientSession() as session:
        yield session

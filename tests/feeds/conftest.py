"""A server with a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.http.streams import StreamsServer, serving_streams


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`, whose clients need not wait long before they come back."""
    monkeypatch.setattr("construct_messages.server.http.event_stream._RETRY_MILLISECONDS", 1)
    async with serving_streams(tmp_path / "streams.db") as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


@pytest.fixture
async def small_pages(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`, whose event stream has pages of ten members."""
    async with serving_streams(tmp_path / "streams.db", ldes_page=10) as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server

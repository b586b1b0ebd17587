"""A NATS server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest
from nats.js.client import JetStreamContext

from tests.support.engines.brokers import NatsServer
from tests.support.engines.servers import Missing
from tests.support.places import absent


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server without streams; skips the test where it is not installed."""
    try:
        with NatsServer(tmp_path / "nats") as server:
            yield server
    except Missing as missing:
        absent(str(missing))


@pytest.fixture
async def streams(server: NatsServer) -> AsyncIterator[JetStreamContext]:
    """The library's own interface to its streams."""
    client = await nats.connect(f"nats://127.0.0.1:{server.port}")
    yield client.jetstream()
    await client.close()

"""A store with a stream for output, and an endpoint that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from construct_messages.streams import StreamStore, open_store
from tests.support.http.fault_server import FaultServer


@pytest.fixture
def out(tmp_path: Path) -> Iterator[StreamStore]:
    """A store with the stream `out`."""
    with open_store(tmp_path / "out.db") as store:
        store.create("out")
        yield store


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server

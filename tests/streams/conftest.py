"""A store for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from construct_messages.streams import StreamStore, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


@pytest.fixture
def store(path: Path) -> Iterator[StreamStore]:
    with open_store(path) as opened:
        yield opened

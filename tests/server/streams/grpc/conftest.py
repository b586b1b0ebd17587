"""A server with a gRPC service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.grpc.serving import GrpcServer, serving_grpc


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[GrpcServer]:
    """A server with one stream, `a`."""
    async with serving_grpc(tmp_path) as server:
        yield server

"""A store, and processes that evaluate over it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from tests.support.engines.evaluators import COUNT, EX, _others, aclosing_pool, children


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with numbers in its default graph, and two named graphs."""
    path = tmp_path_factory.mktemp("evaluators") / "store"
    p = ox.NamedNode(f"{EX}p")
    store = ox.Store(str(path))
    store.bulk_extend(ox.Quad(ox.NamedNode(f"{EX}s{n}"), p, ox.Literal(n)) for n in range(COUNT))
    store.extend(
        ox.Quad(ox.NamedNode(EX + g), p, ox.Literal(g, language="en"), ox.NamedNode(EX + g))
        for g in "gh"
    )
    del store
    return path


@pytest.fixture(autouse=True)
def _only_processes_of_this_test_count() -> None:
    """Engines that other tests started go on."""
    _others.clear()
    _others.update(children())


@pytest_asyncio.fixture
async def pool(directory: Path) -> AsyncIterator[EvaluatorPool]:
    """Two processes; at the end of a test nothing is left of them."""
    processes, descriptors = set(children()), len(os.listdir("/proc/self/fd"))
    async with aclosing_pool(directory, size=2) as opened:
        await opened.start()
        yield opened
    assert set(children()) <= processes
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def steady(directory: Path) -> AsyncIterator[EvaluatorPool]:
    """For tests that leave the processes alone."""
    async with aclosing_pool(directory, size=2) as opened:
        yield opened

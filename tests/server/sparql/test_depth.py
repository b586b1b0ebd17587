"""Queries that are too deep for the embedded engine, sent to a server: refused, and its processes go on."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest

from tests.support.http.serving import serving

RDFM = "application/n-quads; messages=rdfm"


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(f"FILTER({10_000 * '('}1{10_000 * ')'})", id="parentheses"),
        pytest.param(
            " UNION ".join(20_000 * ["{ ?s ?p ?o }"]), id="unions", marks=pytest.mark.slow
        ),
    ],
)
async def test_too_deep_queries(tmp_path: Path, where: str) -> None:
    """Issue 26, 16: each ended a process of the engine, and was answered with 502."""
    ox.Store(str(tmp_path / "store")).flush()
    async with serving(tmp_path / "store") as server, aiohttp.ClientSession() as session:
        for query, accept in (
            (f"SELECT * {{ ?s ?p ?o {{ {where} }} }}", "*/*"),
            (f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o {{ {where} }} }}", RDFM),
        ):
            async with session.post(
                server.sparql, data={"query": query}, headers={"Accept": accept}
            ) as response:
                assert response.status == 400
                problem = await response.json(content_type=None)
                assert problem["line"] == 1
                assert "the query" in problem["detail"]

"""Through HTTP from an Oxigraph server, against downloading the same SELECT directly.

`python -m benchmarks micro endpoint`. The server runs on loopback and shares the machine's cores with the client, in
both cases alike.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import aiohttp

from benchmarks.harness import Figure, alternate, check_log, report
from benchmarks.micro import data
from benchmarks.micro.engine import oxigraph_server
from construct_messages import ConstructQuery, QueryMessages, construct_messages
from construct_messages.rdf.options import Requests

MEDIA_TYPES = {"tsv": "text/tab-separated-values", "json": "application/sparql-results+json"}
GOALS = {"tsv": "≤ 1.2", "json": "≤ 1.5"}


def main() -> None:
    """Measures TSV and JSON, with the sync and the async client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=130_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data.store(arguments.companies, Path(folder) / "store")
        with oxigraph_server(Path(folder) / "store") as url:
            figures = [
                figure
                for results in MEDIA_TYPES
                for figure in _measure(results, url, arguments.rounds)
            ]
    report("endpoint", f"Oxigraph server over HTTP, {arguments.companies} companies", figures)


def _measure(results: str, url: str, rounds: int) -> list[Figure]:
    query = data.SPECIFICATION
    select = ConstructQuery.parse(query).select

    def stream() -> QueryMessages:
        return construct_messages(
            query, url, requests=Requests(results=results, profile="oxigraph")
        )

    slow = list(stream())
    check_log(stream().serialize("nq"), len(slow), sum(map(len, slow)))

    async def download() -> int:
        body = {"query": select}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers={"Accept": MEDIA_TYPES[results]}) as response,
        ):
            return sum([len(chunk) async for chunk in response.content.iter_any()])

    async def alog() -> int:
        return sum([len(chunk) async for chunk in stream().aserialize("nq")])

    direct, through_async, through_sync = alternate(
        rounds,
        [
            lambda: asyncio.run(download()),
            lambda: asyncio.run(alog()),
            lambda: sum(map(len, stream().serialize("nq"))),
        ],
    )
    return [
        Figure(f"{results.upper()} downloaded directly, {len(slow)} solutions", direct),
        Figure(
            f"{results.upper()} → N-Quads log, asyncio",
            through_async,
            through_async / direct,
            GOALS[results],
        ),
        Figure(
            f"{results.upper()} → N-Quads log, SPARQLWrapper",
            through_sync,
            through_sync / direct,
            GOALS[results],
        ),
    ]

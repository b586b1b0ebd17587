"""A Virtuoso limited as DBpedia's is: its own CONSTRUCT against messages in pages.

`python -m benchmarks micro virtuoso`. The specification's query has more solutions than the endpoint gives at once.
Virtuoso's CONSTRUCT then holds less than it should and says nothing; read in pages of its cap, by the package or
through the server, nothing is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pyoxigraph as ox
from rich.console import Console

from benchmarks.harness import Figure, check_log, report
from benchmarks.micro import data
from construct_messages import construct_messages
from construct_messages.rdf.options import Requests
from tests.support.engines.servers import virtuoso
from tests.support.http.serving import serving

CAP = 10_000
GOAL = "≤ 0.5 s"
SECONDS = 600.0


class Wanted(NamedTuple):
    """What the whole answer holds, as Oxigraph's solutions tell."""

    messages: int
    quads: int
    triples: int


class Log(NamedTuple):
    """What came, and the seconds until its first byte and its last."""

    chunks: list[bytes]
    first: float
    last: float


def main() -> None:
    """Measures the endpoint's own CONSTRUCT, the package and the server, once each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=110_000)
    companies = parser.parse_args().companies
    wanted = _wanted(companies)
    with tempfile.TemporaryDirectory() as folder:
        file, place = Path(folder) / "data.nt", Path(folder) / "virtuoso"
        place.mkdir()
        ox.serialize(data.generate(companies), file, ox.RdfFormat.N_TRIPLES)
        with virtuoso(file, place) as url:
            native, status, cap = asyncio.run(_construct(url))
            logs = {
                "the package": asyncio.run(_read(_by_package(url))),
                "the server": asyncio.run(_read(_by_server(url))),
            }
    for log in logs.values():
        check_log(log.chunks, wanted.messages, wanted.quads)
    said = "no word of it" if cap is None else f"X-SPARQL-MaxRows: {cap}"
    lost = f"HTTP {status}, {said}"
    Console(width=120).print(
        f"Virtuoso's own CONSTRUCT: {native} of {wanted.triples} triples, with {lost}"
    )
    report(
        "virtuoso",
        f"All {wanted.messages} messages of a Virtuoso with a cap of {CAP}, in pages",
        [
            figure
            for what, log in logs.items()
            for figure in (
                Figure(f"first message from {what}", log.first, goal=GOAL),
                Figure(f"last message from {what}", log.last),
            )
        ],
    )


def _wanted(companies: int) -> Wanted:
    messages = list(construct_messages(data.SPECIFICATION, data.store(companies)))
    return Wanted(
        len(messages),
        sum(map(len, messages)),
        len({quad for message in messages for quad in message}),
    )


async def _construct(url: str) -> tuple[int, int, str | None]:
    """How many triples the endpoint's own CONSTRUCT gives, with which status, and what it says of a cap."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            url, data={"query": data.SPECIFICATION}, headers={"Accept": "application/n-triples"}
        ) as response,
    ):
        body = await response.read()
        triples = {quad.triple for quad in ox.parse(body, ox.RdfFormat.N_TRIPLES)}
        return len(triples), response.status, response.headers.get("X-SPARQL-MaxRows")


async def _by_package(url: str) -> AsyncGenerator[bytes]:
    stream = construct_messages(
        data.SPECIFICATION,
        url,
        requests=Requests(profile="virtuoso", page_size=CAP, timeout=SECONDS),
    )
    async with aclosing(stream.aserialize("nq")) as chunks:
        async for chunk in chunks:
            yield chunk


async def _by_server(url: str) -> AsyncGenerator[bytes]:
    accept = {"Accept": "application/n-quads; messages=rdfm"}
    async with (
        serving(url, profile="virtuoso", page_size=CAP, allow_private=True) as server,
        aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=SECONDS), raise_for_status=True
        ) as session,
        session.post(server.sparql, data={"query": data.SPECIFICATION}, headers=accept) as response,
    ):
        async for chunk in response.content.iter_any():
            yield chunk


async def _read(chunks: AsyncGenerator[bytes]) -> Log:
    started, first, came = time.perf_counter(), 0.0, []
    async with aclosing(chunks):
        async for chunk in chunks:
            first = first or time.perf_counter() - started
            came.append(chunk)
    return Log(came, first, time.perf_counter() - started)

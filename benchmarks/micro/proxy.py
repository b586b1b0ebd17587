"""Through the server, against downloading the same SELECT from Oxigraph directly: `python -m benchmarks micro proxy`.

Server, engine and client share the machine's cores; the client asks for no compression. Latency: from the engine's
first byte to the first message of the server, and from there to the first event of an answer as server-sent events,
as differences of medians. Memory: the server's peak after 100,000 and after 1,000,000 solutions, in processes of their
own.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from benchmarks.harness import Figure, alternate, check_log, report
from benchmarks.micro import data
from benchmarks.micro.engine import oxigraph_server
from benchmarks.micro.serving import server
from construct_messages import ConstructQuery

MEDIA_TYPES = {"tsv": "text/tab-separated-values", "json": "application/sparql-results+json"}
GOALS = {"tsv": "≤ 1.2", "json": "≤ 1.5"}
RDFM = "application/n-quads; messages=rdfm"
EVENTS = "text/event-stream"
SIZES = (100_000, 1_000_000)


def main() -> None:
    """Measures throughput, first message and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=130_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--without-memory", action="store_true", help="leave out the runs over a million solutions"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data.store(arguments.companies, Path(folder) / "store")
        with oxigraph_server(Path(folder) / "store") as url:
            figures = [
                figure
                for results in MEDIA_TYPES
                for figure in _measure(results, url, arguments.rounds)
            ]
        if not arguments.without_memory:
            data.store(max(SIZES), Path(folder) / "large")
            with oxigraph_server(Path(folder) / "large") as url:
                figures += _memory(url)
    report("proxy", f"through the server, {arguments.companies} companies", figures)


def _measure(results: str, url: str, rounds: int) -> list[Figure]:
    select = ConstructQuery.parse(data.SPECIFICATION).select
    with server(url, profile="oxigraph", results=results) as proxy:
        log = asyncio.run(_read(proxy.url, data.SPECIFICATION, RDFM))
        solutions = log.count(b"# @message\n")
        check_log([log], solutions, log.count(b" .\n"))

        def direct() -> object:
            return asyncio.run(_download(url, select, MEDIA_TYPES[results]))

        def through() -> object:
            return asyncio.run(_download(proxy.url, data.SPECIFICATION, RDFM))

        def events() -> object:
            return asyncio.run(_download(proxy.url, data.SPECIFICATION, EVENTS))

        read = asyncio.run(_read(proxy.url, data.SPECIFICATION, EVENTS))
        assert read.count(b"event: rdf-message\n") == solutions
        assert read.endswith(b"event: end\nid: end\ndata: %d\n\n" % solutions)
        down, up, pushed = alternate(rounds, [direct, through, events])
        # in turn, as the machine may be busy for a while
        firsts = [
            [
                asyncio.run(_first(*asked))
                for asked in (
                    (url, select, MEDIA_TYPES[results]),
                    (proxy.url, data.SPECIFICATION, RDFM),
                    (proxy.url, data.SPECIFICATION, EVENTS),
                )
            ]
            for _ in range(4 * rounds)
        ]
    byte, message, event = map(statistics.median, zip(*firsts, strict=True))
    return [
        Figure(f"{results.upper()} downloaded directly, {solutions} solutions", down),
        Figure(
            f"{results.upper()} → N-Quads log through the server", up, up / down, GOALS[results]
        ),
        Figure(f"{results.upper()} → events through the server", pushed, pushed / up),
        Figure(
            f"{results.upper()}: first message after the engine's first byte",
            message - byte,
            goal="≤ 0.020 s",
        ),
        Figure(
            f"{results.upper()}: first event after the first message",
            event - message,
            goal="≤ 0.005 s",
        ),
    ]


def _memory(url: str) -> list[Figure]:
    figures, peaks = [], []
    for size in SIZES:
        with server(url, profile="oxigraph", results="json") as proxy:
            started = time.perf_counter()
            asyncio.run(_download(proxy.url, f"{data.SPECIFICATION} LIMIT {size}", RDFM))
            seconds = time.perf_counter() - started
            peaks.append(proxy.peak_mib)
        ratio = peaks[-1] / peaks[0]
        what = f"the server's memory after {size} solutions: {peaks[-1]:.0f} MiB"
        figures.append(Figure(what, seconds, ratio, "≤ 1.2" if len(peaks) > 1 else ""))
    return figures


@asynccontextmanager
async def _answer(url: str, query: str, accept: str) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data={"query": query}, headers=headers) as response,
    ):
        if response.status != 200:
            raise SystemExit(f"{url} answered {response.status}: {await response.text()}")
        yield response


async def _download(url: str, query: str, accept: str) -> int:
    async with _answer(url, query, accept) as response:
        return sum([len(chunk) async for chunk in response.content.iter_any()])


async def _read(url: str, query: str, accept: str) -> bytes:
    async with _answer(url, query, accept) as response:
        return await response.read()


async def _first(url: str, query: str, accept: str) -> float:
    """Seconds until the first bytes of the body."""
    started = time.perf_counter()
    async with _answer(url, query, accept) as response:
        assert await response.content.readany()
        return time.perf_counter() - started

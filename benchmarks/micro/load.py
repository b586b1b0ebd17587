"""Many clients at once, and clients that leave: `python -m benchmarks micro load`.

Three runs against a server process: clients that ask an embedded store in turn for a minute, with one that reads slowly
among them; the same against an upstream that answers slowly; and clients that connect, ask and leave. Each answer is
compared byte for byte with what it has to be, so that no message can be lost or doubled unseen.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.table import Table

from benchmarks.micro import data
from benchmarks.micro.serving import Server, server
from construct_messages import construct_messages
from tests.support.http.load import RDFM, Drip, dripping, leave

_QUERIES = 20
_SOLUTIONS = 500  # of one answer, at most
_QUERY = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <urn:q> ?o }"
_DRIPPED = 200  # solutions of the slow upstream, which take half a second
_LEAVING = 20  # clients at once: fewer than a server of one process keeps up with, so that most are answered


@dataclass
class Tally:
    """What came of many requests."""

    seconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    messages: int = 0

    def percentile(self, percent: int) -> float:
        """Of the seconds that requests took."""
        return statistics.quantiles(self.seconds, n=100)[percent - 1]


def main() -> None:
    """Runs the three and prints a table; exits with 1 where anything was not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--leavers", type=int, default=10_000)
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.clients} clients for {arguments.seconds:g} s")
    for column in (
        "",
        "answers",
        "messages",
        "errors",
        "median",
        "99 %",
        "server's memory, start → peak",
    ):
        table.add_column(column, justify="left" if not column else "right")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        data.store(20_000, store)
        failed = asyncio.run(
            _run(store, arguments.clients, arguments.seconds, arguments.leavers, table)
        )
    Console(width=140).print(table)
    raise SystemExit(1 if failed else 0)


async def _run(store: Path, clients: int, seconds: float, leavers: int, table: Table) -> bool:
    queries = [
        f"{data.SPECIFICATION} LIMIT {random.randint(1, _SOLUTIONS)} OFFSET {random.randint(0, 5000)}"
        for _ in range(_QUERIES)
    ]
    expected = {
        query: b"".join(construct_messages(query, str(store)).serialize("nq")) for query in queries
    }
    slow = data.SPECIFICATION
    with server(str(store), queue_seconds=60, queue_length=2 * clients) as embedded:
        failed = await _crowd("embedded store", embedded, expected, clients, seconds, table, slow)
    async with dripping(_DRIPPED, at_once=20, pause=0.05) as upstream:
        log = "".join(f'# @message\n<urn:s{number}> <urn:p> "x" .\n' for number in range(_DRIPPED))
        with server(upstream.url, concurrency=clients, queue_seconds=60) as remote:
            failed |= await _crowd(
                "slow upstream", remote, {_QUERY: log.encode()}, clients, seconds, table
            )
            failed |= await _leavers(remote, upstream, leavers, table)
    return failed


# --- clients that stay ---


async def _crowd(
    what: str,
    proxy: Server,
    expected: dict[str, bytes],
    clients: int,
    seconds: float,
    table: Table,
    slow: str | None = None,
) -> bool:
    before = proxy.resident_mib
    tally = Tally()
    until = time.monotonic() + seconds
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=timeout
    ) as session:
        slow_reader = (
            None if slow is None else asyncio.create_task(_read_slowly(session, proxy.url, slow))
        )
        await asyncio.gather(
            *(_ask_in_turn(session, proxy.url, expected, until, tally) for _ in range(clients))
        )
        if slow_reader is not None:
            slow_reader.cancel()
            state = (await asyncio.gather(slow_reader, return_exceptions=True))[0]
            if not isinstance(state, asyncio.CancelledError):
                tally.errors[f"the slow reader ended: {state!r}"] += 1
    table.add_row(
        what,
        f"{len(tally.seconds)}",
        f"{tally.messages}",
        str(sum(tally.errors.values())),
        f"{statistics.median(tally.seconds):.3f} s",
        f"{tally.percentile(99):.3f} s",
        f"{before:.0f} → {proxy.peak_mib:.0f} MiB",
    )
    for error, count in tally.errors.items():
        table.add_row(f"  {count} × {error}")
    return bool(tally.errors)


async def _ask_in_turn(
    session: aiohttp.ClientSession, url: str, expected: dict[str, bytes], until: float, tally: Tally
) -> None:
    queries = list(expected)
    while time.monotonic() < until:
        query = random.choice(queries)
        started = time.perf_counter()
        try:
            async with session.post(
                url, data={"query": query}, headers={"Accept": RDFM, "Accept-Encoding": "identity"}
            ) as response:
                body = await response.read()
                if response.status != 200:
                    tally.errors[f"{response.status}: {body.decode()[:200]}"] += 1
                elif body != expected[query]:
                    tally.errors["another log than it has to be"] += 1
                else:
                    tally.messages += body.count(b"# @message\n")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            tally.errors[repr(error)] += 1
        tally.seconds.append(time.perf_counter() - started)


async def _read_slowly(session: aiohttp.ClientSession, url: str, query: str) -> None:
    """Takes 4 KiB twice a second, of an answer of many MiB: it cannot end before it is cancelled."""
    async with session.post(url, data={"query": query}, headers={"Accept": RDFM}) as response:
        async for _ in response.content.iter_chunked(4096):
            await asyncio.sleep(0.5)


# --- clients that leave ---


async def _leavers(proxy: Server, upstream: Drip, count: int, table: Table) -> bool:
    before, asked, started = proxy.descriptors, upstream.asked, time.perf_counter()
    places = asyncio.Semaphore(_LEAVING)

    async def ask_and_leave() -> None:
        async with places:
            await leave(proxy.url, _QUERY, random.random() * 0.25)

    await asyncio.gather(*(ask_and_leave() for _ in range(count)))
    seconds = time.perf_counter() - started
    in_flight = await _metric(proxy, "construct_messages_in_flight")
    for _ in range(50):
        if upstream.running == 0 and in_flight == 0 and proxy.descriptors <= before:
            break
        await asyncio.sleep(0.1)
        in_flight = await _metric(proxy, "construct_messages_in_flight")
    table.add_section()
    table.add_row(
        f"{count} clients that leave, in {seconds:.0f} s: {upstream.asked - asked} reached the upstream"
    )
    table.add_row(f"  still running upstream: {upstream.running}; in flight: {in_flight:g}")
    table.add_row(f"  descriptors of the server: {before} before, {proxy.descriptors} after")
    return upstream.running > 0 or in_flight > 0 or proxy.descriptors > before


async def _metric(proxy: Server, name: str) -> float:
    async with (
        aiohttp.ClientSession() as session,
        session.get(proxy.url.replace("/sparql", "/metrics")) as response,
    ):
        lines = (await response.text()).splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith(f'{name}{{endpoint="/sparql"')
    )

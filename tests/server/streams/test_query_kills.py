"""A server with registered queries that is killed again and again: what they give out is there once.

`make kill-queries` does it fifty times.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from construct_messages.streams import open_store
from tests.support.http.command import Running
from tests.support.processes import below, command_line
from tests.support.waiting import SECONDS, eventually

SPARQL = {"Content-Type": "application/sparql-query"}
LOG = "application/n-quads; messages=rdfm"
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError)
WINDOWED = """REGISTER {operator} <{name}> AS CONSTRUCT {{ <urn:w> <urn:has> ?n }}
FROM NAMED WINDOW <urn:w> ON <a> [{window}] WHERE {{ WINDOW <urn:w> {{ ?s <urn:number> ?n }} }}"""
QUERIES = {
    "each": "CONSTRUCT { ?s <urn:saw> ?n } WHERE { ?s <urn:number> ?n }",
    "last": WINDOWED.format(operator="RSTREAM", name="last", window="ELEMENTS 10 STEP 5"),
    "new": WINDOWED.format(operator="ISTREAM", name="new", window="RANGE PT0.5S STEP PT0.2S"),
}


class Publisher:
    """Publishes logs of five numbered messages, each under a key, again and again until it hears that they are there.

    Attributes:
        url: of the server; None while there is none.
        published: how many messages it has heard of.
    """

    def __init__(self) -> None:
        self.url: str | None = None
        self.published = 0
        self.ending = False

    async def run(self) -> None:
        async with aiohttp.ClientSession() as session:
            for number in count():
                while not await self._publish(session, number):
                    await eventually(lambda: self.url is not None, SECONDS)
                self.published += 5
                if self.ending:
                    return

    async def _publish(self, session: aiohttp.ClientSession, number: int) -> bool:
        numbers = range(5 * number, 5 * number + 5)
        body = "".join(f'# @message\n<urn:s> <urn:number> "{each}" .\n' for each in numbers)
        headers = {"Content-Type": LOG, "Idempotency-Key": str(number)}
        try:
            async with session.post(
                f"{self.url}/streams/a/input", data=body, headers=headers
            ) as response:
                assert response.status == 201, await response.text()
        except (*BROKEN, ValueError):  # there is no server now
            return False
        return True


@asynccontextmanager
async def running(temporary: Path, store: Path, publisher: Publisher) -> AsyncIterator[Running]:
    """A server, which is killed in the end; then those that evaluate for it end, too."""
    server = Running(
        temporary,
        "--streams",
        str(store),
        CONSTRUCT_MESSAGES_SERVER_STREAMS__QUERY_SECONDS=str(SECONDS),
    )
    evaluating = list[psutil.Process]()
    try:
        publisher.url = await asyncio.to_thread(lambda: server.url)
        yield server
        if server.process.poll() is None:
            evaluating = below(server.process.pid)
            assert len(evaluating) == len(QUERIES)
    finally:
        publisher.url = None
        await asyncio.to_thread(server.kill)
    await eventually(lambda: not any(map(command_line, evaluating)), SECONDS)


async def register(session: aiohttp.ClientSession, url: str) -> None:
    for name, text in QUERIES.items():
        path = "/streams/a/query" if name == "each" else "/streams"
        async with session.post(
            f"{url}{path}?from=first", data=text, headers={**SPARQL, "Slug": name}
        ) as response:
            assert response.status == 201, await response.text()


async def described(session: aiohttp.ClientSession, url: str, name: str) -> Any:
    async with session.get(f"{url}/streams/{name}") as response:
        assert response.status == 200, await response.text()
        return await response.json(content_type=None)


async def grown(session: aiohttp.ClientSession, url: str, name: str, more: int) -> None:
    """Waits until a query has given out so many more."""
    last = (await described(session, url, name))["lastSequence"]
    async with asyncio.timeout(SECONDS):
        while (said := await described(session, url, name))["lastSequence"] < last + more:
            assert said["status"] == "running", said
            await asyncio.sleep(0.005)


@pytest.mark.slow
@pytest.mark.process
async def test_kills_repeat_and_lose_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills, seed = request.config.getoption("--kills"), random.randrange(1 << 32)
    print(f"seed {seed}")
    points, store = random.Random(seed), tmp_path / "streams.db"
    with open_store(store) as prepared:
        prepared.create("a")
    publisher = Publisher()
    publishing = asyncio.create_task(publisher.run())
    async with aiohttp.ClientSession() as session:
        for kill in range(kills):
            async with running(tmp_path, store, publisher) as server:
                if kill == 0:
                    await register(session, server.url)
                for name in QUERIES:
                    await grown(session, server.url, name, points.randrange(1, 40))
                await asyncio.sleep(points.random() * 0.05)
        async with running(tmp_path, store, publisher) as server:
            publisher.ending = True
            await publishing
            new = partial(described, session, server.url, "new")
            async with asyncio.timeout(SECONDS):
                for name in QUERIES:
                    while (await described(session, server.url, name))["lag"]:  # noqa: ASYNC110 # of another process
                        await asyncio.sleep(0.01)
                while (await new())["lastSequence"] < publisher.published:  # noqa: ASYNC110 # so is this
                    await asyncio.sleep(0.01)
            server.process.terminate()
            assert await asyncio.to_thread(server.wait) == 0
    with open_store(store) as after:
        given = {
            name: [int(element.nquads.decode().split('"')[1]) for element in after.read(name)]
            for name in ("each", "last", "new")
        }
        numbers = [int(element.nquads.decode().split('"')[1]) for element in after.read("a")]
    assert numbers == list(range(publisher.published))
    assert given["each"] == numbers
    assert sorted(given["new"]) == numbers
    firings = [
        given["last"][:5],
        *(given["last"][start : start + 10] for start in range(5, len(given["last"]), 10)),
    ]
    assert [sorted(firing) for firing in firings] == [
        numbers[max(0, end - 10) : end] for end in range(5, len(numbers) + 1, 5)
    ]
    print(
        f"{kills} kills, {publisher.published} messages, {sum(map(len, given.values()))} given out"
    )

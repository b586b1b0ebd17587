"""A server of streams that is killed again and again, under publishers and followers that come back each time.

`make kill-streams` does it a hundred times.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import aiohttp
import pytest

from construct_messages.streams import open_store
from tests.support.http.command import Running, eventually
from tests.support.http.streams import events

PUBLISHERS = 20
FOLLOWERS = 20  # a third by each transport
LOG = "application/n-quads; messages=rdfm"
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError)
MOST_SECONDS = 300  # for what takes one: a server that hangs fails the test instead of the lane


class Place:
    """Where the server is now: clients that lost it wait for the next one."""

    def __init__(self) -> None:
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def url(self) -> str:
        return await asyncio.shield(self._url)

    def found(self, url: str) -> None:
        self._url.set_result(url)

    def lost(self) -> None:
        self._url = asyncio.get_running_loop().create_future()


class Ledger:
    """What publishers heard, and what followers got."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, str] = {}
        self.unheard = 0
        self.received: list[list[str]] = [[] for _ in range(FOLLOWERS)]
        self.grew = asyncio.Event()
        self.ending = False  # publishers begin nothing more
        self.published = False
        self.complete = asyncio.Event()

    def acknowledge(self, first: int, texts: list[str]) -> None:
        for sequence, text in enumerate(texts, first):
            assert self.acknowledged.setdefault(sequence, text) == text, (
                "a sequence was given twice"
            )
        self.grew.set()
        self.grew = asyncio.Event()

    async def reach(self, total: int) -> None:
        while len(self.acknowledged) < total:
            await self.grew.wait()

    def check(self) -> None:
        """Whether all is published, and every follower has it."""
        if self.published and all(len(got) >= len(self.acknowledged) for got in self.received):
            self.complete.set()


async def publish(place: Place, ledger: Ledger, name: int) -> None:
    """Publishes messages, and logs of three, each under a key; again and again until it hears that it is there."""
    async with aiohttp.ClientSession() as session:
        for number in count():
            if ledger.ending:
                return
            texts = [f"{name} {number} {part}" for part in range(3 if number % 5 == 0 else 1)]
            body = "".join(f'# @message\n<urn:s> <urn:p> "{text}" .\n' for text in texts)
            headers = {"Content-Type": LOG, "Idempotency-Key": f"{name} {number}"}
            while True:
                url = await place.url()
                try:
                    async with session.post(
                        f"{url}/streams/a/input", data=body, headers=headers
                    ) as response:
                        answer = await response.json()
                        assert (response.status, answer.get("elements")) == (201, len(texts)), (
                            answer
                        )
                except BROKEN:
                    ledger.unheard += 1
                    continue
                ledger.acknowledge(int(answer["first"].rpartition("/")[2]), texts)
                break


Follower = Callable[[aiohttp.ClientSession, str, int], AsyncIterator[tuple[int, str]]]


async def by_events(
    session: aiohttp.ClientSession, stream: str, after: int
) -> AsyncIterator[tuple[int, str]]:
    headers = {"Last-Event-ID": str(after)}
    async with session.get(f"{stream}/events", headers=headers) as response:
        assert response.status == 200, await response.text()
        async for event in events(response):
            yield int(event.id), event.data


async def by_socket(
    session: aiohttp.ClientSession, stream: str, after: int
) -> AsyncIterator[tuple[int, str]]:
    async with session.ws_connect(f"{stream}/socket?after={after}") as socket:
        sequence = after
        async for frame in socket:
            assert frame.type == aiohttp.WSMsgType.TEXT, frame
            yield (sequence := sequence + 1), frame.data
        assert socket.close_code in (None, 1006), "only the kill ends it"


async def by_pull(
    session: aiohttp.ClientSession, stream: str, after: int
) -> AsyncIterator[tuple[int, str]]:
    async with session.get(f"{stream}/output?after={after}", headers={"Accept": LOG}) as response:
        assert response.status == 200, await response.text()
        messages = (await response.text()).split("# @message\n")[1:]
    for sequence, message in enumerate(messages, after + 1):
        yield sequence, message


async def follow(place: Place, ledger: Ledger, how: Follower, got: list[str]) -> None:
    """Follows from the first element, and goes on behind the last one after each break."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            url, grew = await place.url(), ledger.grew
            try:
                async for sequence, document in how(session, f"{url}/streams/a", len(got)):
                    assert sequence == len(got) + 1, (
                        f"{how.__name__} got {sequence} behind {len(got)}"
                    )
                    got.append(document.split('"')[1])
                    ledger.check()
            except BROKEN:
                continue
            if how is by_pull and len(got) == len(ledger.acknowledged):
                await grew.wait()


def started(server: Running) -> None:
    """Waits until it listens: a hundred starts meet the machine at its busiest, too."""
    eventually(
        lambda: server.events("listening on ") or server.process.poll() is not None,
        server,
        MOST_SECONDS,
    )


@asynccontextmanager
async def running(temporary: Path, store: Path, place: Place) -> AsyncIterator[Running]:
    server = Running(
        temporary,
        "--streams",
        str(store),
    )
    try:
        await asyncio.to_thread(started, server)
        place.found(server.url)
        yield server
    finally:
        place.lost()
        await asyncio.to_thread(server.kill)


async def within(doing: Awaitable[object], *others: asyncio.Future[None]) -> None:
    """Waits for something; what fails meanwhile fails the test at once."""
    waited = asyncio.ensure_future(doing)
    async with asyncio.timeout(MOST_SECONDS):
        await asyncio.wait([waited, *others], return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        if other.done():
            other.result()
    await waited


@pytest.mark.slow
@pytest.mark.process
async def test_kills_lose_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every acknowledged message is there once, and in every follower once and in order, wherever the server died."""
    kills, seed = request.config.getoption("--kills"), random.randrange(1 << 32)
    print(f"seed {seed}")
    points, store = random.Random(seed), tmp_path / "streams.db"
    with open_store(store) as prepared:
        prepared.create("a")
    place, ledger = Place(), Ledger()
    hows: list[Follower] = [by_events, by_socket, by_pull]
    publishing = asyncio.gather(*(publish(place, ledger, name) for name in range(PUBLISHERS)))
    following = asyncio.gather(
        *(
            follow(place, ledger, hows[number % len(hows)], got)
            for number, got in enumerate(ledger.received)
        )
    )
    try:
        for _ in range(kills):
            async with running(tmp_path, store, place):
                # anywhere between the first request after a start and the hundredth answer, and a moment later
                await within(
                    ledger.reach(len(ledger.acknowledged) + points.randrange(150)),
                    publishing,
                    following,
                )
                await asyncio.sleep(points.random() * 0.03)
        async with running(tmp_path, store, place) as last:
            await within(ledger.reach(len(ledger.acknowledged) + 1), publishing, following)
            ledger.ending = True
            await within(publishing, following)
            ledger.published = True
            ledger.check()
            await within(ledger.complete.wait(), following)
            following.cancel()
            last.process.terminate()
            assert await asyncio.to_thread(last.wait) == 0
    finally:
        for task in (publishing, following):
            task.cancel()
        await asyncio.gather(publishing, following, return_exceptions=True)
    expected = [
        ledger.acknowledged[sequence] for sequence in range(1, len(ledger.acknowledged) + 1)
    ]
    with open_store(store) as after:
        assert [element.nquads.decode().split('"')[1] for element in after.read("a")] == expected
    assert [len(got) for got in ledger.received] == [len(expected)] * FOLLOWERS
    assert all(got == expected for got in ledger.received)
    assert Counter(expected).most_common(1)[0][1] == 1, "none twice"
    for name in range(PUBLISHERS):
        own = [tuple(map(int, text.split())) for text in expected if text.startswith(f"{name} ")]
        assert own == sorted(own), "each publisher's in order"
    with sqlite3.connect(store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    print(
        f"{kills} kills, {len(expected)} acknowledged messages, {ledger.unheard} answers that were never heard"
    )

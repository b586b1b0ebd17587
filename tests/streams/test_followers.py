"""Followers of a store: history, then live; nothing missed and nothing twice, however slow they are."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from construct_messages.errors import (
    ConstructMessagesError,
    Gone,
    NotFound,
    StoreError,
)
from construct_messages.streams import Description, Retention, StreamStore, open_store
from construct_messages.streams.writer import Change
from tests.support.streams import numbered, sequences
from tests.support.waiting import SECONDS


def test_history_then_live(store: StreamStore) -> None:
    store.create("a")
    store.append_all("a", map(numbered, range(1, 2501)))
    with ThreadPoolExecutor() as threads:
        following = threads.submit(
            lambda: list(islice(store.read("a", after=100, follow=True), 2900))
        )
        for number in range(2501, 3001):
            store.append("a", numbered(number))
        elements = following.result(SECONDS)
    assert sequences(elements) == list(range(101, 3001))
    assert elements[-1].message == numbered(3000)


def test_many_followers_miss_nothing(store: StreamStore) -> None:
    """Some begin in history, some live; some stop for a while, until what they miss is no longer at hand."""
    total, followers = 3000, 40
    big = numbered(0, size=5000)  # 3,000 of them are more than is at hand

    async def follow(number: int) -> list[int]:
        after = number * 10 if number % 2 else 0
        taken = []
        async for element in store.aread("a", after=after, follow=True):
            taken.append(element.sequence)
            if number % 5 == 0 and element.sequence in (50, 700):
                await slow.wait()
            if element.sequence == total:
                return taken
        return taken

    async def publish() -> None:
        for _ in range(400, total, 20):
            await store.aappend_all("a", [big] * 20)
        slow.set()

    async def main() -> list[list[int]]:
        following = [asyncio.create_task(follow(number)) for number in range(followers)]
        await publish()
        return await asyncio.gather(*following)

    slow = asyncio.Event()
    store.create("a")
    store.append_all("a", [big] * 400)
    for number, taken in enumerate(asyncio.run(main())):
        assert taken == list(range(number * 10 + 1 if number % 2 else 1, total + 1))


def test_what_followers_hold_is_bounded(store: StreamStore) -> None:
    store.create("a")
    for _ in range(50):
        store.append_all("a", [numbered(0, size=10_000)] * 100)
    recent = store._broadcast._recent["a"].elements
    assert sum(len(element.nquads) for element in recent) < 1 << 22
    assert sequences(list(store.read("a", after=1))) == list(range(2, 5001)), (
        "the rest is in the store"
    )


@pytest.mark.parametrize("end", ["close", "delete", "retention"])
def test_followers_are_told(path: Path, end: str) -> None:
    async def follow(store: StreamStore, started: asyncio.Event) -> ConstructMessagesError:
        try:
            async for _ in store.aread("a", follow=True):
                started.set()
        except ConstructMessagesError as error:
            return error
        raise AssertionError("it ended as if nothing more could come")

    async def main() -> ConstructMessagesError:
        store = open_store(path)
        store.create("a")
        store.append("a", numbered(1))
        started = asyncio.Event()
        following = asyncio.create_task(follow(store, started))
        await started.wait()
        if end == "delete":
            await store.adelete("a")
        elif end == "retention":
            # more than is at hand, of which only the newest is kept
            await store.adescribe("a", Description(retention=Retention(count=1)))
            await asyncio.to_thread(
                store.append_all, "a", [numbered(n, size=10_000) for n in range(600)]
            )
        else:
            await asyncio.to_thread(store.close)
        error = await following
        await asyncio.to_thread(store.close)
        return error

    expected = {"close": StoreError, "delete": NotFound, "retention": Gone}[end]
    assert isinstance(asyncio.run(main()), expected)


def test_a_follower_that_leaves_is_forgotten(store: StreamStore) -> None:
    async def main() -> None:
        store.append("a", numbered(1))
        elements = store.aread("a", follow=True)
        assert (await anext(elements)).sequence == 1
        assert len(store._broadcast._waiting) == 1
        await elements.aclose()  # type: ignore[attr-defined] # it is an async generator
        assert not store._broadcast._waiting

    store.create("a")
    asyncio.run(main())


def test_nothing_wakes_followers_but_elements_and_the_end_of_streams(store: StreamStore) -> None:
    """A follower that commits something whenever it is woken would never rest."""

    async def main() -> list[bool]:
        store.create("a")
        woken = []
        assert store._writer is not None
        with store.changes() as changed:
            for change in (
                lambda: store.anow(),
                lambda: store.acommit("query", {"state": b"1"}),
                lambda: store.acreate("b"),
                lambda: store.aappend("b", numbered(1)),
                lambda: store.adelete("b"),
            ):
                changed.clear()
                await change()
                # what the change has left for the loop is there before the end of the next one
                await asyncio.to_thread(store._writer.write, Change(lambda _: None))
                woken.append(changed.is_set())
        return woken

    assert asyncio.run(main()) == [False, False, False, True, True]

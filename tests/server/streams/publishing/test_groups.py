"""Items that wait together."""

from __future__ import annotations

import asyncio

import pytest

from construct_messages.server.streams.publishing import Groups


async def test_the_reader_takes_all_that_waits() -> None:
    groups = Groups[int](3)

    async def write() -> None:
        for number in range(10):
            await groups.put(number)
        groups.end(ValueError("the end"))

    writing = asyncio.create_task(write())
    await asyncio.sleep(0)
    taken = [await groups.take()]
    assert taken == [[0, 1, 2]], "no more wait than may"
    while 9 not in taken[-1]:
        taken.append(await groups.take())
    assert [number for group in taken for number in group] == list(range(10))
    with pytest.raises(ValueError, match="the end"):
        await groups.take()
    await writing


async def test_who_stops_waiting_loses_nothing() -> None:
    groups = Groups[int](3)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await groups.take()
    await groups.put(1)
    groups.end()
    groups.end(ValueError("another end"))
    assert [await groups.take(), await groups.take()] == [[1], []]

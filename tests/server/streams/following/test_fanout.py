"""Followers that are written to together: none misses an element or gets one twice, whatever the others do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from tests.support.http.streams import StreamsServer, events, serving_streams
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually


async def by_events(response: aiohttp.ClientResponse, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(SECONDS):
        async for event in events(response):
            found.append(int(event.id))
            if len(found) == count:
                break
    return found


async def by_socket(socket: aiohttp.ClientWebSocketResponse, count: int) -> list[str]:
    return [(await socket.receive(SECONDS)).data for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("pauses", [False, True])
async def test_followers_share_what_is_written(tmp_path: Path, pauses: bool) -> None:
    """Also where they leave the others for a moment to hear that the server is there."""
    total, sockets_count = 60, 0 if pauses else 20  # a busy client answers no ping in time
    beat = {"heartbeat_seconds": 0.1} if pauses else {}
    async with serving_streams(tmp_path / "streams.db", **beat) as served:
        await served.ask("PUT", "/streams/a")
        await follow(served, total, sockets_count, pauses=pauses)
        await eventually(lambda: served.followers() == 0)


async def follow(served: StreamsServer, total: int, sockets_count: int, *, pauses: bool) -> None:
    url = f"{served.url}/streams/a"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        responses = [await session.get(f"{url}/events?after=0") for _ in range(20)]
        sockets = [await session.ws_connect(f"{url}/socket?after=0") for _ in range(sockets_count)]
        reading = [asyncio.create_task(by_events(response, total)) for response in responses]
        framed = [asyncio.create_task(by_socket(socket, total)) for socket in sockets]
        for number in range(total):
            await served.publish([numbered(number)])
            if pauses and number % 10 == 0:
                await asyncio.sleep(0.25)
            if number == total // 2:  # one that is at another place, and then at the same
                responses.append(await session.get(f"{url}/events?after=10"))
                reading.append(asyncio.create_task(by_events(responses[-1], total - 10)))
        *first, late = await asyncio.gather(*reading)
        assert first == [list(range(1, total + 1))] * 20
        assert late == list(range(11, total + 1))
        frames = [numbered(number).lines.decode() for number in range(total)]
        assert await asyncio.gather(*framed) == [frames] * sockets_count
        for response in responses:
            response.close()


async def test_one_that_does_not_read_holds_up_no_other(served: StreamsServer) -> None:
    url, total, size = f"{served.url}/streams/a", 300, 40_000
    async with aiohttp.ClientSession(read_bufsize=1 << 16) as session:
        slow = await session.get(f"{url}/events?after=0")
        quick = await session.get(f"{url}/events?after=0")
        reading = asyncio.create_task(by_events(quick, total))
        for number in range(total):
            await served.publish([numbered(number, size)])
        assert await reading == list(range(1, total + 1))
        assert await by_events(slow, total) == list(range(1, total + 1))
        quick.close()
        slow.close()


async def test_what_is_sent_is_counted(served: StreamsServer) -> None:
    async with aiohttp.ClientSession() as session:
        response = await session.get(f"{served.url}/streams/a/events?after=0")
        reading = asyncio.create_task(by_events(response, 5))
        for number in range(5):
            await served.publish([numbered(number)])
        await reading
        response.close()
    await eventually(lambda: served.followers() == 0)
    text = (await served.ask("GET", "/metrics")).body.decode()
    (delivered,) = (
        line.rpartition(" ")[2]
        for line in text.splitlines()
        if line.startswith('construct_messages_delivered_total{endpoint="/streams"}')
    )
    assert float(delivered) == 5
    assert json.loads((await served.ask("GET", "/streams/a")).body)["lastSequence"] == 5

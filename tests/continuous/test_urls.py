"""A continuous query over streams by their URLs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from construct_messages.continuous import continuous
from construct_messages.feeds import subscribe
from tests.support.http.streams import serving_streams
from tests.support.streams import numbered
from tests.support.waiting import eventually

# over messages, and without their times, so that the same messages have the same results at any speed
QUERY = """REGISTER RSTREAM <urn:out> AS CONSTRUCT { ?s <urn:seen> ?n }
FROM NAMED WINDOW <urn:w> ON <urn:in> [ELEMENTS 2] WHERE { WINDOW <urn:w> { ?s <urn:number> ?n } } ORDER BY ?n"""


async def test_a_url_is_followed(tmp_path: Path) -> None:
    """It is the same as what `subscribe` yields for it."""
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        await server.publish([numbered(1)])
        url = f"{server.url}/streams/a"

        async def first(stream: object) -> list[bytes]:
            async with aclosing(continuous(QUERY, {"urn:in": stream})) as results:  # type: ignore[dict-item] # both kinds
                return [(await anext(results)).nquads for _ in range(4)]

        followed = asyncio.ensure_future(first(url))
        await eventually(lambda: server.followers() == 1)
        await server.publish([numbered(number) for number in (2, 3, 4)])
        assert await followed == await first(subscribe(url, after=1))

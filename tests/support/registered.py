"""Registered queries of a server under test: what they say of themselves, and what they give out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.support.http.streams import Answer, StreamsServer, take
from tests.support.waiting import SECONDS

SPARQL: Final = "application/sparql-query"
ECHO: Final = b"CONSTRUCT { ?s <urn:saw> ?n } WHERE { ?s <urn:number> ?n }"
RSP_QL: Final = b"""REGISTER ISTREAM <pairs> AS CONSTRUCT { ?m <urn:holds> ?n }
FROM NAMED WINDOW <urn:w> ON <a> [ELEMENTS 2 STEP 2] WHERE { WINDOW <urn:w> { GRAPH ?m { ?s <urn:number> ?n } } }"""


async def described(served: StreamsServer, location: str) -> Any:
    return (await served.ask("GET", location)).json


async def until(served: StreamsServer, location: str, count: int) -> list[str]:
    """The first elements of a stream, as they are pushed."""
    return [
        event.data
        for event in await take(
            served, f"{location.removeprefix(served.url)}/events?after=0", count
        )
    ]


def location_of(answer: Answer) -> str:
    assert answer.status == 201, answer.body
    return answer.headers["Location"]


async def until_true(holds: Callable[[], Awaitable[bool]], seconds: float = SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():
            pass

"""What the load test and the load benchmark share: an upstream that drips, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from aiohttp import web

RDFM = "application/n-quads; messages=rdfm"

# aiohttp would report every client that left
_QUIET = logging.getLogger("quiet")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


@dataclass
class Drip:
    """An upstream that gives its solutions a few at a time, to whoever goes on listening."""

    url: str = ""
    asked: int = 0
    running: int = 0


@asynccontextmanager
async def dripping(solutions: int, *, at_once: int = 1, pause: float = 0.01) -> AsyncIterator[Drip]:
    """Answers every SELECT of ?s and ?o with `<urn:s0> "x"` and so on, `pause` seconds behind so many `at_once`."""
    drip = Drip()

    async def answer(request: web.Request) -> web.StreamResponse:
        drip.asked += 1
        drip.running += 1
        try:
            response = web.StreamResponse(
                headers={"Content-Type": "application/sparql-results+json"}
            )
            await response.prepare(request)
            await response.write(b'{"head":{"vars":["s","o"]},"results":{"bindings":[')
            for start in range(0, solutions, at_once):
                piece = ",".join(map(_binding, range(start, min(start + at_once, solutions))))
                await response.write((b"," if start else b"") + piece.encode())
                await asyncio.sleep(pause)
            await response.write(b"]}}")
            return response
        finally:
            drip.running -= 1

    app = web.Application()
    app.router.add_post("/sparql", answer)
    runner = web.AppRunner(
        app, handler_cancellation=True, access_log=None, logger=_QUIET, shutdown_timeout=0.1
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    drip.url = f"{site.name}/sparql"
    try:
        yield drip
    finally:
        await runner.cleanup()


def _binding(number: int) -> str:
    return json.dumps(
        {"s": {"type": "uri", "value": f"urn:s{number}"}, "o": {"type": "literal", "value": "x"}}
    )


async def leave(url: str, query: str, seconds: float, *, abrupt: bool = True) -> None:
    """Asks for messages, and closes the connection after so long, or resets it."""
    parts = urlsplit(url)
    body = urlencode({"query": query}).encode()
    head = f"POST {parts.path} HTTP/1.1\r\nHost: x\r\nAccept: {RDFM}\r\nContent-Length: {len(body)}\r\n"
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode() + body)
    await asyncio.sleep(seconds)
    if abrupt:
        writer.transport.abort()
    else:
        writer.close()

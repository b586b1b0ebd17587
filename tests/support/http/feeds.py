"""What tests of subscriptions share: the first elements of one, and servers that give one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

from aiohttp import web

from construct_messages.feeds import Subscription
from construct_messages.streams.element import Element


async def first(elements: Subscription, count: int) -> list[Element]:
    """The first elements of a subscription, which is closed then."""
    taken: list[Element] = []
    async with aclosing(elements):
        async for element in elements:
            taken.append(element)
            if len(taken) == count:
                break
    return taken


def numbers(elements: list[Element]) -> list[int]:
    return [element.sequence for element in elements]


@asynccontextmanager
async def handling(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """The URL of a server that has each request handled."""
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield site.name
    finally:
        await runner.cleanup()


@asynccontextmanager
async def answering(
    headers: dict[str, str], body: bytes
) -> AsyncIterator[tuple[str, list[web.BaseRequest]]]:
    """A server that gives one answer to all requests, and those that it got."""
    requests: list[web.BaseRequest] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        requests.append(request)
        return web.Response(body=body, headers=headers)

    async with handling(answer) as url:
        yield url, requests

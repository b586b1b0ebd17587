"""Sends the request for a page and feeds the page's reader with the response; blocking, and for asyncio.

`sparql/client/` has both HTTP clients. `response.py` reads the bytes, and `paging.py` decides which requests to send.
"""

from __future__ import annotations

import urllib.request
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from typing import TYPE_CHECKING, Final

from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.client.timeouts import Timeouts
from construct_messages.sparql.client.urllib_client import receive, send
from construct_messages.sparql.sources.http.paging import ResultPage

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import aiohttp

_AT_ONCE: Final = 1 << 14
"""The number of bytes that are decoded between two turns of the event loop; see `ResponseReader.pieces`."""
# bytes of a solution; if all of them must be percent-encoded, this takes some 20 ms
_LONG: Final = 1 << 14


def read(
    request: urllib.request.Request,
    page: ResultPage,
    timeouts: Timeouts,
    *handlers: urllib.request.BaseHandler,
) -> Generator[Solutions]:
    """Sends a request, and reads the answer; closing the generator closes the connection.

    Args:
        request: the request to send.
        page: creates the reader for the response.
        timeouts: the maximal times to wait.
        handlers: further handlers, such as one for digest authentication.
    """
    with closing(send(request, page.url, timeouts, *handlers)) as response:
        reader = page.open(response.status, response.headers.get)
        while chunk := receive(response, timeouts, reader.cut):
            for piece in reader.pieces(chunk):
                yield from reader.feed(piece)
        yield from reader.rest()
        reader.close()


async def aread(
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    page: ResultPage,
    timeouts: Timeouts,
    executor: Executor | None = None,
) -> AsyncGenerator[Solutions]:
    """The same as `read`, for asyncio; long solutions are decoded in the threads of `executor`."""
    import asyncio

    from construct_messages.sparql.client.aiohttp_client import areceive, asend, is_followed

    loop = asyncio.get_running_loop()
    response = await asend(session, request, page.url, timeouts)
    try:
        reader = page.open(response.status, response.headers.get)
        while chunk := await areceive(response, timeouts, reader.cut):
            for piece in reader.pieces(chunk, _AT_ONCE):
                batches = reader.feed(piece)
                if reader.held > _LONG:  # a long solution is decoded at its end
                    batches = iter(await loop.run_in_executor(executor, list, batches))
                for batch in batches:
                    yield batch
                await asyncio.sleep(0)
        if await is_followed(response):
            raise reader.exceeded()
        for batch in (
            reader.rest()
            if reader.held <= _LONG
            else await loop.run_in_executor(executor, reader.rest)
        ):
            yield batch
        reader.close()
    finally:
        response.close()  # its connection is back in the pool, if the body has ended

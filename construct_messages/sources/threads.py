"""A blocking source's batches for asyncio, each fetched in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_threads(blocking: Generator[T]) -> AsyncGenerator[T]:
    """The items of a blocking generator; closing this closes that, once the item under way is there.

    >>> async def squares():
    ...     return [item async for item in in_threads(n * n for n in range(4))]
    >>> asyncio.run(squares())
    [0, 1, 4, 9]
    """
    end = object()
    running: asyncio.Future[object] | None = None
    try:
        while True:
            running = asyncio.ensure_future(asyncio.to_thread(next, blocking, end))
            item = await asyncio.shield(running)
            if item is end:
                return
            yield item  # type: ignore[misc] # it is no end, so it is a T
    finally:
        if running is not None and not running.done():
            # a generator cannot be closed while its thread is in it
            running.add_done_callback(partial(_close, blocking))
        else:
            blocking.close()


def _close(blocking: Generator[T], future: asyncio.Future[object]) -> None:
    future.exception()  # nobody waits for it any more
    blocking.close()

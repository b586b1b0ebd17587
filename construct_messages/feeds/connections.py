"""Reading over one connection to the other side after the other, for all transports that keep one open.

Each connection begins where the one before ended; what it brings is in the room of its transport. WHATWG HTML, section
9.2 (reconnection).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, TypeVar

from construct_messages.errors import SourceError
from construct_messages.feeds.transport import Settings
from construct_messages.net.retries import Attempts
from construct_messages.net.timeouts import Timeouts

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.5
"""How long to wait before the next connection, after one that has brought something."""


def attempts_of(settings: Settings) -> Attempts:
    """Returns the attempts at what may fail in a way that passes; see `net.retries`."""
    return Attempts(settings.retries, Timeouts(None), lambda _: True)


async def over_connections(
    connection: Callable[[], AsyncGenerator[T]],
    settings: Settings,
    *,
    follow: bool = False,
    pause: Callable[[], float] = lambda: _PAUSE_SECONDS,
) -> AsyncGenerator[T]:
    """The items of one connection after the other, until one ends by itself.

    A connection that fails is made again. It has not failed in a row if it brought an item, or was kept for long, as
    that of a quiet stream.

    Args:
        connection: connects, and yields what comes after the last item that was yielded. None is no item: it may be
            yielded when the other side has answered.
        settings: how often in a row connecting may fail. A connection was kept for long after `idle_seconds`.
        follow: whether to connect again also after a connection that ended by itself.
        pause: returns the seconds until the next connection; called after one that was no failure, and may raise.

    Raises:
        SourceError: a failure that does not pass, or too many in a row.
    """
    clock = asyncio.get_running_loop().time
    while True:
        async for attempt in attempts_of(settings):
            began, moved = clock(), False
            with attempt:
                try:
                    async with aclosing(connection()) as items:
                        async for item in items:
                            moved = moved or item is not None
                            yield item
                    if not follow:
                        return
                except SourceError as error:
                    lasted = clock() - began > settings.idle_seconds
                    if not ((moved or lasted) and error.transient):
                        raise
        await asyncio.sleep(pause())

"""Groups items that wait for earlier ones to be stored, so that they are stored together.

A commit takes as long for one message as for many. A publisher that does not wait for each answer therefore gets all
messages that arrived meanwhile into one commit. No messages, no store and no HTTP here.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Groups(Generic[T]):
    """A queue whose reader takes all waiting items.

    Args:
        most: the maximal number of waiting items.
        most_bytes: the size of waiting items, in bytes, at which no more are accepted.

    >>> async def three_items():
    ...     groups = Groups[int](10)
    ...     for item in (1, 2, 3):
    ...         await groups.put(item)
    ...     groups.end()
    ...     return await groups.take(), await groups.take()
    >>> asyncio.run(three_items())
    ([1, 2, 3], [])
    """

    def __init__(self, most: int, most_bytes: int = 1 << 20) -> None:
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0
        self._waiting: list[T] = []
        self._error: Exception | None = None
        self._ended = False
        self._changed, self._taken = asyncio.Event(), asyncio.Event()

    async def put(self, item: T, size: int = 0) -> None:
        """Adds an item with its size in bytes; waits while the queue is full."""
        while len(self._waiting) >= self._most or self._bytes >= self._most_bytes:
            self._taken.clear()
            await self._taken.wait()
        self._waiting.append(item)
        self._bytes += size
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """Accepts no more items; raises an error after the waiting ones."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    async def take(self) -> list[T]:
        """Returns all waiting items, at least one; empty: the queue has ended."""
        while not self._waiting:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return []
            self._changed.clear()
            await self._changed.wait()
        taken, self._waiting, self._bytes = self._waiting, [], 0
        self._taken.set()
        return taken

"""Items that wait for those before them to be stored, and are stored together then.

A commit takes as long for one message as for many, so whoever publishes without waiting for each answer gets as many
into a commit as came meanwhile. No messages, no store and no HTTP here.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Groups(Generic[T]):
    """A queue whose reader takes all that waits.

    Args:
        most: how many items may wait.
        most_bytes: how many bytes they may have before no more are taken.

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
        """Adds an item of so many bytes; waits while there are too many."""
        while len(self._waiting) >= self._most or self._bytes >= self._most_bytes:
            self._taken.clear()
            await self._taken.wait()
        self._waiting.append(item)
        self._bytes += size
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """Takes no more items; an error is raised after those that wait."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    async def take(self) -> list[T]:
        """All items that wait, at least one; none: there are no more."""
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

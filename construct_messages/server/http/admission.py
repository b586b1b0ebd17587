"""Limits how many requests of one endpoint are answered at once, and how many wait.

Further requests are refused with 503 and Retry-After (RFC 9110, sections 10.2.3 and 15.6.4). Knows no HTTP requests.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from construct_messages.errors import SourceError


class Admission:
    """The limit of one endpoint's concurrent requests.

    Args:
        concurrency: requests that are let in at once, at least 1.
        queue_seconds: how long a request waits for its turn; 0: it is refused if there is no place.
        queue_length: requests that may wait; one more is refused at once.

    >>> async def two_at_a_time():
    ...     admission = Admission(2, queue_seconds=0)
    ...     async with admission.enter(), admission.enter():
    ...         async with admission.enter():
    ...             pass
    >>> asyncio.run(two_at_a_time())
    Traceback (most recent call last):
    construct_messages.errors.SourceError: 2 requests are being answered, and 0 wait
      hint: try again in 1 s
    """

    def __init__(
        self, concurrency: int, *, queue_seconds: float = 10.0, queue_length: int = 100
    ) -> None:
        self._concurrency, self._queue_seconds, self._queue_length = (
            concurrency,
            queue_seconds,
            queue_length,
        )
        self._places = asyncio.Semaphore(concurrency)
        self.waiting = 0
        """Requests that wait for their turn now."""

    def enter(self) -> AbstractAsyncContextManager[None]:
        """Waits for a place, in the order of arrival, and releases it at the end.

        Raises:
            SourceError: 503 with `retry_after`; no place became free in time, or too many requests are waiting.
        """
        return _Place(self)

    async def acquire(self) -> None:
        """Waits for a place; see `enter`."""
        if self._places.locked():
            await self._wait()
        else:
            await self._places.acquire()  # there is a place, so no other task runs here

    def release(self) -> None:
        """Releases a place."""
        self._places.release()

    async def _wait(self) -> None:
        if self._queue_seconds <= 0 or self.waiting >= self._queue_length:
            raise self._busy()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._places.acquire()
        except TimeoutError:
            raise self._busy() from None
        finally:
            self.waiting -= 1

    def _busy(self) -> SourceError:
        seconds = max(1, round(self._queue_seconds))
        return SourceError(
            f"{self._concurrency} requests are being answered, and {self.waiting} wait",
            status=503,
            hint=f"try again in {seconds} s",
            retry_after=seconds,
        )


class _Place:
    """See `Admission.enter`."""

    __slots__ = ("_admission",)

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def __aenter__(self) -> None:
        await self._admission.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._admission.release()

"""Limits the numbers of concurrent and of waiting requests of one endpoint.

Further requests are rejected with 503 and Retry-After (RFC 9110, sections 10.2.3 and 15.6.4). No HTTP here.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from construct_messages.rdf.errors import SourceError


class Admission:
    """The limit of one endpoint's concurrent requests.

    Args:
        concurrency: the maximal number of concurrent requests, at least 1.
        queue_seconds: the maximal time that a request waits for a slot; 0: it does not wait.
        queue_length: the maximal number of waiting requests.

    >>> async def two_at_a_time():
    ...     admission = Admission(2, queue_seconds=0)
    ...     async with admission.enter(), admission.enter():
    ...         async with admission.enter():
    ...             pass
    >>> asyncio.run(two_at_a_time())
    Traceback (most recent call last):
    construct_messages.rdf.errors.SourceError: 2 requests are being answered, and 0 wait
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
        self._slots = asyncio.Semaphore(concurrency)
        self.waiting = 0
        """The number of waiting requests."""

    def enter(self) -> AbstractAsyncContextManager[None]:
        """Waits for a slot, in the order of arrival, and releases it at the end.

        Raises:
            SourceError: 503 with `retry_after`; no slot became free in time, or too many requests are waiting.
        """
        return _AdmittedRequest(self)

    async def acquire(self) -> None:
        """Waits for a slot; see `enter`."""
        if self._slots.locked():
            await self._wait()
        else:
            await self._slots.acquire()  # does not block, so no other task runs meanwhile

    def release(self) -> None:
        """Releases a slot."""
        self._slots.release()

    async def _wait(self) -> None:
        if self._queue_seconds <= 0 or self.waiting >= self._queue_length:
            raise self._busy()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._slots.acquire()
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


class _AdmittedRequest:
    """A request that waits for a slot and releases it at its end; see `Admission.enter`."""

    __slots__ = ("_admission",)

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def __aenter__(self) -> None:
        await self._admission.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._admission.release()

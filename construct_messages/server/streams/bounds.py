"""Limits of a server of streams: concurrent answers, publications, bytes of their bodies, followers.

Beyond a limit, a request waits for its turn, or is rejected with 503 and Retry-After. No streams and no store here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final, Self

from aiohttp import web

from construct_messages.rdf.errors import SourceError
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Permit
from construct_messages.server.http.admission import Admission
from construct_messages.server.http.body import read_body

_RETRY_SECONDS: Final = 5.0

CLOSE_SECONDS: Final = 0.5
"""The maximal time for closing a WebSocket, and for a follower to end when the server stops."""


class StreamLimits:
    """The limits of one endpoint.

    Readers and publishers have separate places, so slow readers do not block publishers.

    Args:
        settings: the limits.

    Attributes:
        body_bytes: the current size of all request bodies in memory.
    """

    def __init__(self, settings: StreamsSettings) -> None:
        self._settings = settings
        self.reading, self._publishing = (
            Admission(
                settings.concurrency,
                queue_seconds=settings.queue_seconds,
                queue_length=settings.queue_length,
            )
            for _ in range(2)
        )
        # the stream of resumable followers
        self._following: dict[asyncio.Task[Any], str | None] = {}
        self.body_bytes = 0

    @property
    def followers(self) -> int:
        """The current number of followers and of publishers over WebSockets."""
        return len(self._following)

    def followers_of(self, stream: str) -> int:
        """Returns the current number of followers of a stream."""
        return list(self._following.values()).count(stream)

    def publishing(
        self, request: web.Request, permit: Permit
    ) -> AbstractAsyncContextManager[bytes]:
        """Reads the body of an unsafe request, which counts until the block ends.

        A request takes a slot when its body has arrived, so a slow body does not block others.

        Raises:
            Forbidden: the token of the permit expired meanwhile (401).
            SourceError: no slot is free, or the bodies of all requests together are too large (503).
            ConstructMessagesError: see `read_body`.
        """
        return _PublishingPlace(request, permit, self._settings, self.holding(), self._publishing)

    def holding(self) -> Holding:
        """Counts bytes in memory until the block ends; call the result with the size of each piece.

        Raises:
            SourceError: all bodies together are too large (503).
        """
        return Holding(self, self._settings.bodies_bytes)

    @contextmanager
    def following(self, stream: str | None = None) -> Iterator[None]:
        """Counts the running task as a follower.

        Args:
            stream: the followed stream. Such a client may be disconnected, as it resumes after its last element. None:
                the client publishes.

        Raises:
            SourceError: there are too many (503).
        """
        if self.followers >= self._settings.followers:
            raise _busy(f"{self.followers} follow already")
        task = asyncio.current_task()
        assert task is not None  # a handler runs in a task
        self._following[task] = stream
        try:
            yield
        finally:
            del self._following[task]

    async def end_followers(self) -> None:
        """Waits until all resumable followers have ended, and cancels slow ones, whose clients do not read."""
        ending = [task for task, stream in self._following.items() if stream is not None]
        if ending:
            _, late = await asyncio.wait(ending, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel("the server stops")


class Holding:
    """See `StreamLimits.holding`."""

    __slots__ = ("_bounds", "_held", "_most")

    def __init__(self, bounds: StreamLimits, most: int) -> None:
        self._bounds, self._most, self._held = bounds, most, 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, size: int) -> None:
        """Counts the bytes of a piece."""
        if self._bounds.body_bytes + size > self._most:
            raise _busy("the bodies of other requests take all the memory that there is for them")
        self._bounds.body_bytes += size
        self._held += size

    def release(self, size: int | None = None) -> None:
        """Subtracts a number of bytes; None: all."""
        size = self._held if size is None else size
        self._bounds.body_bytes -= size
        self._held -= size

    def __exit__(self, *_: object) -> None:
        self.release()


class _PublishingPlace:
    """See `StreamLimits.publishing`."""

    __slots__ = ("_admission", "_holding", "_permit", "_request", "_settings")

    def __init__(
        self,
        request: web.Request,
        permit: Permit,
        settings: StreamsSettings,
        holding: Holding,
        admission: Admission,
    ) -> None:
        self._request, self._permit, self._settings = request, permit, settings
        self._holding, self._admission = holding, admission

    async def __aenter__(self) -> bytes:
        settings = self._settings
        try:
            async with self._permit.limit():
                body = await read_body(
                    self._request, settings.body_bytes, settings.idle_seconds, self._holding
                )
                await self._admission.acquire()
        except BaseException:
            self._holding.release()
            raise
        return body

    async def __aexit__(self, *_: object) -> None:
        self._admission.release()
        self._holding.release()


def _busy(message: str) -> SourceError:
    return SourceError(message, status=503, hint="try again later", retry_after=_RETRY_SECONDS)

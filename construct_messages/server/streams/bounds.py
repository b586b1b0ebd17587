"""Limits of a server of streams: concurrent answers, publications, bytes of their bodies, followers.

Past a bound a request waits for its turn, or is refused with 503 and Retry-After. Knows no stream and no store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final, Self

from aiohttp import web

from construct_messages.errors import SourceError
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.admission import Admission
from construct_messages.server.http.body import read_body
from construct_messages.server.http.endpoint import Handler

_RETRY_SECONDS: Final = 5.0

CLOSE_SECONDS: Final = 0.5
"""How long a client may take for the end of a socket, and a follower for its end when the server stops."""


class StreamLimits:
    """The bounds of one endpoint.

    Readers and publishers have separate places, so slow readers do not block publishers.

    Args:
        settings: how much of each there may be.

    Attributes:
        body_bytes: how many bytes the bodies have together that are held now.
    """

    def __init__(self, settings: StreamsSettings) -> None:
        self._settings = settings
        self._reading, self._publishing = (
            Admission(
                settings.concurrency,
                queue_seconds=settings.queue_seconds,
                queue_length=settings.queue_length,
            )
            for _ in range(2)
        )
        self._following: dict[asyncio.Task[Any], str | None] = {}  # the stream, of who resumes
        self.body_bytes = 0

    @property
    def followers(self) -> int:
        """How many get elements pushed, or publish over a WebSocket, now."""
        return len(self._following)

    def followers_of(self, stream: str) -> int:
        """Returns how many get the elements of a stream pushed now."""
        return list(self._following.values()).count(stream)

    def answering(self, handler: Handler) -> Handler:
        """The handler, which reads (GET and HEAD) when it is its turn."""

        async def handle(request: web.Request) -> web.StreamResponse:
            if request.method not in ("GET", "HEAD"):
                return await handler(request)
            async with self._reading.enter():
                return await handler(request)

        return handle

    def publishing(self, request: web.Request) -> AbstractAsyncContextManager[bytes]:
        """The body of a request that changes something, until the block ends.

        A request takes a place when its body has arrived, so a slow body blocks no others.

        Raises:
            SourceError: there is no place, or the bodies of all requests together are too large (503).
            ConstructMessagesError: see `read_body`.
        """
        return _PublishingPlace(request, self._settings, self.holding(), self._publishing)

    def holding(self) -> Holding:
        """Counts bytes that are held, until the block ends; call it with the size of each piece.

        Raises:
            SourceError: together with those of all others they are too many (503).
        """
        return Holding(self, self._settings.bodies_bytes)

    @contextmanager
    def following(self, stream: str | None = None) -> Iterator[None]:
        """Counts the running task as a follower.

        Args:
            stream: whose elements the client gets; it misses nothing when it is cut off, as it resumes after what it
                got. None: the client publishes.

        Raises:
            SourceError: it is one too many (503).
        """
        if self.followers >= self._settings.followers:
            raise _busy(f"{self.followers} follow already")
        task = asyncio.current_task()
        assert task is not None  # a handler runs in one
        self._following[task] = stream
        try:
            yield
        finally:
            del self._following[task]

    async def end_followers(self) -> None:
        """Waits until all that are resumable have ended, and cancels those that take long: clients that do not read."""
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
        """Counts so many of them no longer; None: all."""
        size = self._held if size is None else size
        self._bounds.body_bytes -= size
        self._held -= size

    def __exit__(self, *_: object) -> None:
        self.release()


class _PublishingPlace:
    """See `StreamLimits.publishing`."""

    __slots__ = ("_admission", "_holding", "_request", "_settings")

    def __init__(
        self,
        request: web.Request,
        settings: StreamsSettings,
        holding: Holding,
        admission: Admission,
    ) -> None:
        self._request, self._settings = request, settings
        self._holding, self._admission = holding, admission

    async def __aenter__(self) -> bytes:
        settings = self._settings
        try:
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

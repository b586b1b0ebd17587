"""Limits of a server of streams: concurrent answers, publications, bytes of their bodies, followers.

Past a bound a request waits for its turn, or is refused with 503 and Retry-After. Knows no stream and no store.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from aiohttp import web

from construct_messages.errors import SourceError
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.admission import Admission
from construct_messages.server.http.body import read_body
from construct_messages.server.http.endpoint import Handler

_RETRY_SECONDS: Final = 5.0


class Bounds:
    """The bounds of one endpoint.

    Readers and publishers have places of their own: slow readers keep nobody from publishing.

    Args:
        settings: how much of each there may be.

    Attributes:
        followers: how many get elements pushed, or publish over a WebSocket, now.
        body_bytes: how many bytes the bodies have together that are held now.
    """

    def __init__(self, settings: StreamsSettings) -> None:
        self._settings = settings
        self._reading, self._publishing = (
            Admission(settings.concurrency, queue_seconds=settings.queue_seconds, queue_length=settings.queue_length)
            for _ in range(2)
        )
        self.followers = 0
        self.body_bytes = 0

    def answering(self, handler: Handler) -> Handler:
        """The handler, which reads (GET and HEAD) when it is its turn."""

        async def handle(request: web.Request) -> web.StreamResponse:
            if request.method not in ("GET", "HEAD"):
                return await handler(request)
            async with self._reading.enter():
                return await handler(request)

        return handle

    @asynccontextmanager
    async def publishing(self, request: web.Request) -> AsyncGenerator[bytes]:
        """The body of a request that changes something, until the block ends.

        The place of the request is that of a body which has arrived: one that trickles in holds up nobody.

        Raises:
            SourceError: there is no place, or the bodies of all requests together are too large (503).
            ConstructMessagesError: see `read_body`.
        """
        with self.holding() as hold:
            body = await read_body(request, self._settings.body_bytes, self._settings.idle_seconds, hold)
            async with self._publishing.enter():
                yield body

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """Counts bytes that are held, until the block ends; the value is told the size of each piece.

        Raises:
            SourceError: together with those of all others they are too many (503).
        """
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if self.body_bytes + size > self._settings.bodies_bytes:
                raise _busy("the bodies of other requests take all the memory that there is for them")
            self.body_bytes += size
            held += size

        try:
            yield hold
        finally:
            self.body_bytes -= held

    @contextmanager
    def following(self) -> Iterator[None]:
        """Counts a follower.

        Raises:
            SourceError: it is one too many (503).
        """
        if self.followers >= self._settings.followers:
            raise _busy(f"{self.followers} follow already")
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1


def _busy(message: str) -> SourceError:
    return SourceError(message, status=503, hint="try again later", retry_after=_RETRY_SECONDS)

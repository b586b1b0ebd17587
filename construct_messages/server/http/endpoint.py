"""The interface of endpoints: their routes, records of requests, and lifecycle.

`app.py` puts endpoints of all kinds into one application: SPARQL, live streams, pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from aiohttp import web

from construct_messages.errors import SourceError
from construct_messages.server.http.request_log import RequestRecord

# --- admission ------------------------------------------------------------------------------------
# Limits the numbers of concurrent and of waiting requests of one endpoint.
#
# Further requests are rejected with 503 and Retry-After (RFC 9110, sections 10.2.3 and 15.6.4). No HTTP here.


class Admission:
    """The limit of one endpoint's concurrent requests; with `queue_seconds=0`, none waits for a slot.

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
        self._slots = asyncio.Semaphore(concurrency)
        self.waiting = 0
        """The number of waiting requests."""

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Waits for a slot, in the order of arrival, and releases it at the end. Without one: 503 and Retry-After."""
        await self.acquire()
        try:
            yield
        finally:
            self.release()

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


# --- endpoint -------------------------------------------------------------------------------------

Observe: TypeAlias = Callable[[RequestRecord], AbstractContextManager[None]]
"""Logs and counts the answer while a context is open, and writes the request's line at its end."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestParameter(NamedTuple):
    """A parameter of requests, for the description of the server; `schema` is JSON Schema, `place` a term of OpenAPI.
    A list occurs several times, once for each value.
    """

    name: str
    meaning: str
    schema: Mapping[str, object] = MappingProxyType({"type": "string"})
    place: str = "query"


class Method(NamedTuple):
    """One method of a route, for the description of the server.

    `answers` are media types by status, without those of errors. `bodies` are the media types of requests; forms have
    the parameters in their bodies, too.
    """

    summary: str
    answers: Mapping[int, Sequence[str]]
    parameters: Sequence[RequestParameter] = ()
    bodies: Sequence[str] = ()


class Route(NamedTuple):
    """A path and its handlers.

    `path` has aiohttp's syntax, such as `/streams/{name}`; the application itself answers OPTIONS. The handler raises
    `ConstructMessagesError` before the first byte is sent. `options` are headers of answers to OPTIONS and of those
    with 415. `socket` answers GET requests for a WebSocket. `described` has the methods; HEAD is as GET.
    """

    path: str
    methods: Sequence[str]
    handler: Handler
    options: Mapping[str, str] = MappingProxyType({})
    socket: Handler | None = None
    described: Mapping[str, Method] = MappingProxyType({})


def foreign_origin(request: web.Request, allowed: Collection[str]) -> str | None:
    """Returns the origin of the page that sent a request (RFC 6454, section 7) if it is neither this server's own nor
    allowed. Otherwise, and for clients other than browsers, returns None. `*` allows all origins.
    """
    origin = request.headers.get("Origin")
    if (
        origin is None
        or "*" in allowed
        or origin in allowed
        or origin.partition("://")[2] == request.host
    ):
        return None
    return origin


class Measure(NamedTuple):
    """A gauge of an endpoint, for the metrics: `ask` returns its value. `labels` are added to that of the endpoint."""

    help: str
    ask: Callable[[], float]
    labels: Mapping[str, str] = MappingProxyType({})


class Endpoint:
    """An endpoint of a server; kinds of endpoints override what they need."""

    path: str
    """The endpoint's name in the request log, the metrics and the health report."""
    record: type[RequestRecord] = RequestRecord
    """The class of its records. `request[RECORD]` is the record of a request."""
    gauges: Mapping[str, Sequence[Measure]] = MappingProxyType({})
    """Gauges for the metrics, by name; those with the same name have the same labels."""
    has_source = True
    """Whether `check` affects the server's readiness."""
    exposed_headers: Iterable[str] = ()
    """Response headers that scripts of other origins may read (Fetch, section 2.2.2)."""

    @property
    def reported(self) -> Mapping[str, object]:
        """Additional members of the health report, by name."""
        return {}

    def routes(self) -> Iterable[Route]:
        """Returns the routes of the endpoint."""
        return ()

    async def start(self, observe: Observe) -> None:
        """Prepares the endpoint, for its first answer not to wait.

        `observe` logs and counts answers to requests that do not use the routes, such as gRPC calls.
        """

    async def check(self) -> None:
        """Raises an error of this package if the endpoint cannot answer."""

    async def stop(self) -> None:
        """Ends endless answers, because the server stops and accepts no more requests. May be called repeatedly."""

    async def aclose(self) -> None:
        """Cancels running tasks and closes the endpoint's resources."""

"""The interface of endpoints: their routes, records of requests, and lifecycle.

`app.py` puts endpoints of all kinds into one application: SPARQL, live streams, pages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from aiohttp import web

from construct_messages.server.http.request_log import RequestRecord

Observe: TypeAlias = Callable[[RequestRecord], AbstractContextManager[None]]
"""Logs and counts the answer while a context is open, and writes the request's line at its end."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """A path and its handlers.

    Args:
        path: in aiohttp's syntax, such as `/streams/{name}`.
        methods: the allowed methods, without OPTIONS, which the application answers.
        handler: answers a request; raises `ConstructMessagesError` before the first byte is sent.
        options: additional headers of the answer to OPTIONS.
        socket: answers a GET request for a WebSocket, independently of `methods`.
    """

    path: str
    methods: Sequence[str]
    handler: Handler
    options: Mapping[str, str] = MappingProxyType({})
    socket: Handler | None = None


def foreign_origin(request: web.Request, allowed: Collection[str]) -> str | None:
    """Returns the origin of the page that sent a request (RFC 6454, section 7) if it is neither this server's own nor
    allowed. Otherwise, and for clients other than browsers, returns None.

    Args:
        request: the request.
        allowed: the allowed origins, or `*` for all.
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
    """A gauge of an endpoint, for the metrics.

    Args:
        help: the description.
        ask: returns the current value.
        labels: additional labels, apart from that of the endpoint.
    """

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

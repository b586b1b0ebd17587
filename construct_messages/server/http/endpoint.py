"""The interface of what a server serves: an endpoint brings its routes, its record of a request, and its life.

`app.py` puts endpoints of all kinds into one application: SPARQL, live streams, pages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from aiohttp import web

from construct_messages.server.http.record import RequestRecord

Observe: TypeAlias = Callable[[RequestRecord], AbstractContextManager[None]]
"""Logs and counts what is answered while a context is open, and writes the line of the request at its end."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """A path and what answers it.

    Args:
        path: of aiohttp's form, as `/streams/{name}`.
        methods: those that it takes, except OPTIONS, which the application answers.
        handler: answers a request; raises `ConstructMessagesError` where nothing was sent yet.
        options: further headers of the answer to OPTIONS.
        socket: answers a GET that asks for a WebSocket, for any methods.
    """

    path: str
    methods: Sequence[str]
    handler: Handler
    options: Mapping[str, str] = MappingProxyType({})
    socket: Handler | None = None


def foreign_origin(request: web.Request, allowed: Collection[str]) -> str | None:
    """Returns the origin of the page that sent a request (RFC 6454, section 7), where it is neither this server's own
    nor allowed; None for programs that are no browsers.

    Args:
        request: the request.
        allowed: origins, or `*` for all.
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
    """A figure of an endpoint that goes up and down.

    Args:
        help: what it is.
        ask: tells it.
        labels: further labels of the figure, besides that of the endpoint.
    """

    help: str
    ask: Callable[[], float]
    labels: Mapping[str, str] = MappingProxyType({})


class Endpoint(Protocol):
    """Something that a server serves.

    Attributes:
        path: names the endpoint in the request log, the metrics and the report of health.
        record: the class of its records. A handler finds the one of its request under `request[RECORD]`.
        gauges: figures for the metrics, by name; those of one name have the same labels.
        reported: what else the report of health has, by name.
        has_source: whether `check` matters for the server's readiness; it does not for endpoints that need no source.
        exposed_headers: response headers that scripts of other origins may read (Fetch, section 2.2.2).
    """

    @property
    def path(self) -> str: ...

    @property
    def record(self) -> type[RequestRecord]: ...

    @property
    def gauges(self) -> Mapping[str, Sequence[Measure]]: ...

    @property
    def reported(self) -> Mapping[str, object]: ...

    @property
    def has_source(self) -> bool: ...

    @property
    def exposed_headers(self) -> Iterable[str]: ...

    def routes(self) -> Iterable[Route]:
        """The paths that it answers."""
        ...

    async def start(self, observe: Observe) -> None:
        """Prepares what the first answer would otherwise wait for.

        Args:
            observe: logs and counts what the endpoint answers beside the requests to its routes.

        Raises:
            ConstructMessagesError: that failed.
        """
        ...

    async def check(self) -> None:
        """Checks that it can answer.

        Raises:
            SourceError: it cannot.
        """
        ...

    async def stop(self) -> None:
        """Ends answers that would go on without end, at once: the server stops, and no more requests come.

        Other answers go on. May be called again.
        """
        ...

    async def aclose(self) -> None:
        """Cancels what is running and closes what it opened."""
        ...

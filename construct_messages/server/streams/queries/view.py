"""Registers, pauses, resumes and removes queries of clients over HTTP; their outputs are streams.

LDN for RDF streams (registration of queries): a text as `application/sparql-query`, or the RDF of its prototype.
`continuous/registered/` runs queries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import web

from construct_messages.continuous.registered.preview import preview
from construct_messages.continuous.registered.process import QueryLimits
from construct_messages.continuous.registered.registry import Registry
from construct_messages.rdf.errors import LimitExceeded, ProtocolError
from construct_messages.rdf.formats.media_types import (
    JSON,
    MERGE_PATCH,
    SPARQL_QUERY,
    read_media_type,
)
from construct_messages.rdf.wire import Header
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Access, Permit
from construct_messages.server.http.admission import Admission
from construct_messages.server.http.endpoint import Measure
from construct_messages.server.http.forms import read_query_string
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.queries.parameters import (
    Read,
    WatchedEndpoint,
    read_registration,
)
from construct_messages.server.streams.requests import record_of, unstored
from construct_messages.server.streams.selection import sequence_parameter
from construct_messages.streams.element import Description
from construct_messages.streams.store import StreamStore, is_name

PREVIEW: Final = "preview"
"""The parameter for a preview of a query: the number of elements to evaluate."""

_PATCHES: Final = (MERGE_PATCH, JSON)

_PREVIEWS: Final = 2  # concurrent processes, in addition to those of registered queries
_PREVIEW_ELEMENTS: Final = 1000
_PREVIEW_MESSAGES: Final = 100
_PREVIEW_SECONDS: Final = 10.0


class QueriesView:
    """The registered queries of one endpoint of streams.

    Args:
        settings: the limits.
        store: the store of the streams.
        access: the authorizer for registering.
        watched: the SPARQL endpoints that queries may watch, by path.
        in_thread: calls a function in a thread, for parsing long queries.
        iris_of: returns the IRIs of a stream for a request.

    Attributes:
        registry: the running queries.
        gauges: see `Endpoint`.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        access: Access,
        watched: Mapping[str, WatchedEndpoint],
        in_thread: Callable[[Callable[[], Read]], Awaitable[Read]],
        iris_of: Callable[[web.Request, str], StreamIris],
    ) -> None:
        self._settings, self._store, self._access = settings, store, access
        self._watched, self._in_thread, self._iris_of = watched, in_thread, iris_of
        self._limits = limits = QueryLimits(
            settings.query_seconds, settings.query_bytes, settings.query_output_bytes
        )
        self.registry = registry = Registry(store, limits, watched)
        self._previews = Admission(_PREVIEWS)
        queries = registry.queries
        self.gauges = {
            "queries_running": Measure(
                "Registered queries that run.", partial(registry.count, "running")
            ),
            "queries_paused": Measure(
                "Registered queries that are paused.", partial(registry.count, "paused")
            ),
            "queries_failed": Measure(
                "Registered queries paused by an error.", partial(registry.count, "failed")
            ),
            "queries_lag": Measure(
                "Elements that running queries have not read yet.", registry.lag
            ),
            "queries_restarts": Measure(
                "How often processes of queries were started again after a failure.",
                lambda: sum(query.restarts for query in queries()),
            ),
            "queries_memory_bytes": Measure(
                "Memory of the processes of all queries.",
                lambda: sum(query.memory_bytes for query in queries()),
            ),
            "queries_largest_bytes": Measure(
                "Memory of the largest of these processes.",
                lambda: max((query.memory_bytes for query in queries()), default=0),
            ),
            "queries_evaluations": Measure(
                "Evaluations over streams since the server started.",
                lambda: sum(query.evaluations for query in queries()),
            ),
            "queries_evaluation_seconds": Measure(
                "What these evaluations took together.",
                lambda: sum(query.seconds for query in queries()),
            ),
            "queries_slowest_seconds": Measure(
                "What the slowest of these evaluations took.",
                lambda: max((query.slowest for query in queries()), default=0.0),
            ),
        }

    async def admit(self, request: web.Request) -> Permit:
        """Rejects clients that may not register, pause and remove queries.

        Raises:
            Forbidden: also with 401.
        """
        return await self._access.of("register").admit(request, "register")

    async def register(
        self,
        request: web.Request,
        text: str,
        *,
        description: Description | None = None,
        bound: str | None = None,
    ) -> web.Response:
        """Registers a query.

        Args:
            request: an authorized request; its URL may have parameters.
            text: the text of the query.
            description: the description of its output stream.
            bound: the stream at whose query endpoint it is registered.

        Raises:
            ConstructMessagesError: the query is rejected, and not registered.
        """
        record = record_of(request)
        record.action = "register"
        settings = self._settings
        parameters = read_query_string(request.rel_url.raw_query_string)
        registration, output = await self._read(request, text, bound, list(parameters))
        # no await from here until the registry has counted the query
        if len(self.registry) >= settings.queries:
            raise LimitExceeded(
                f"there are {len(self.registry)} queries, and no more are allowed", status=507
            )
        if len(self._store.streams()) >= settings.streams:
            raise LimitExceeded(
                f"there are {settings.streams} streams, and no more are allowed", status=507
            )
        given = description or Description()
        names = (output, request.headers.get("Slug"), given.label)
        name = next((name for name in names if name and is_name(name)), os.urandom(8).hex())
        record.stream = name
        await self.registry.register(
            name, registration, replace(given, label=given.label or name, publish="deny")
        )
        return web.Response(status=201, headers={"Location": self._iris_of(request, name).stream})

    async def preview(
        self, request: web.Request, text: str, elements: str, *, bound: str | None = None
    ) -> web.Response:
        """Answers with the messages of a query for the newest elements; registers nothing.

        Args:
            request: an authorized request; its URL may have the parameters of a registration.
            text: the text of the query.
            elements: the parameter `preview`.
            bound: the stream at whose query endpoint it was sent.

        Raises:
            ConstructMessagesError: the query is rejected, or cannot be evaluated.
        """
        record_of(request).action = "preview"
        count = sequence_parameter(PREVIEW, elements)
        if not 0 < count <= _PREVIEW_ELEMENTS:
            raise ProtocolError(
                f"{PREVIEW}={count} is no number of elements",
                hint=f"write 1 to {_PREVIEW_ELEMENTS:,}",
            )
        parameters = read_query_string(request.rel_url.raw_query_string)
        rest = [each for each in parameters if each[0] != PREVIEW]
        registration, _ = await self._read(request, text, bound, rest)
        if registration.source is not None:
            raise ProtocolError(
                "only queries over streams have a preview",
                status=422,
                hint="run the query at its endpoint",
            )
        static = None
        if registration.static is not None:
            static = str(self._watched[registration.static].directory)
        async with self._previews.enter():
            messages, taken = await preview(
                self._store,
                registration,
                replace(self._limits, seconds=min(self._limits.seconds, _PREVIEW_SECONDS)),
                static=static,
                elements=count,
                messages=_PREVIEW_MESSAGES,
                seconds=_PREVIEW_SECONDS,
            )
        return await unstored(request, messages, {Header.TAKEN: str(taken)})

    async def _read(
        self,
        request: web.Request,
        text: str,
        bound: str | None,
        parameters: Sequence[tuple[str, str]],
    ) -> Read:
        """Returns the requested registration.

        Raises:
            ConstructMessagesError: see `read_registration`; or the text is too long.
        """
        most = self._settings.query_characters
        if len(text) > most:
            raise LimitExceeded(
                f"the query has {len(text)} characters, where {most} are allowed",
                hint="send a shorter one",
            )
        return await self._in_thread(
            partial(
                read_registration,
                text,
                parameters,
                streams=self._iris_of(request, "").stream,
                bound=bound,
                store=self._store,
                endpoints=self._watched,
                maintain=self._settings.query_maintain,
            )
        )

    def description(self, request: web.Request, name: str) -> dict[str, object]:
        """Returns the part of a stream's description about its query; empty if there is none."""
        query = self.registry.get(name)
        if query is None:
            return {}
        registration = query.registration
        described: dict[str, object] = {
            "@type": ["rsp:Stream", "rsp:OutputStream"],
            "queryText": registration.text,
            "inputs": [self._iris_of(request, each).stream for each in query.positions],
            "status": registration.status,
            "taken": query.taken,
            "given": query.given,
            "lag": query.lag,
        }
        if registration.source is not None:
            described["inputs"] = [
                f"{self._iris_of(request, '').stream.removesuffix('/streams/')}{registration.source}"
            ]
        if query.dropped:
            described["dropped"] = sum(query.dropped.values())
            described |= {
                f"dropped{reason.title()}": count for reason, count in query.dropped.items()
            }
        if registration.source is None:
            described["evaluations"] = query.evaluations
            described["evaluationSeconds"] = round(query.seconds, 6)
            described["slowestSeconds"] = round(query.slowest, 6)
            described["memoryBytes"] = query.memory_bytes
            described["restarts"] = query.restarts
            if query.plan:
                described["plan"] = query.plan
        if query.error is not None:
            described["error"] = query.error
        return described

    async def patch(self, request: web.Request, name: str, body: bytes) -> web.Response:
        """Pauses or resumes a query: `{"status": "paused"}` or `{"status": "running"}`.

        Raises:
            NotFound: the stream is not the output of a query.
            ProtocolError: another body.
        """
        content_type = request.headers.get("Content-Type", "")
        if (read_media_type(content_type) or ("", {}))[0] not in _PATCHES:
            refused = f"{content_type or 'a body without type'} is no patch here"
            raise ProtocolError(refused, status=415, hint=f"send {JSON}")
        try:
            status = json.loads(body)["status"]
        except (ValueError, TypeError, KeyError):
            status = None
        if status not in ("paused", "running"):
            raise ProtocolError(
                "only the status can be changed", status=422, hint='send {"status": "paused"}'
            )
        record_of(request).action = "pause" if status == "paused" else "resume"
        await (self.registry.pause(name) if status == "paused" else self.registry.resume(name))
        return web.Response(status=204)


def is_query(content_type: str | None) -> bool:
    """Returns whether a body is the text of a query.

    >>> is_query("application/sparql-query; charset=utf-8"), is_query(None)
    (True, False)
    """
    return (read_media_type(content_type or "") or ("", {}))[0] == SPARQL_QUERY


def check_query(content_type: str | None) -> None:
    """Checks that a body is the text of a query.

    Raises:
        ProtocolError: it has another media type (415).
    """
    if not is_query(content_type):
        refused = f"{content_type or 'a body without type'} is no query here"
        raise ProtocolError(refused, status=415, hint=f"send {SPARQL_QUERY}")

"""Fetches a remote source's documents about itself: its page for browsers, and its RDF description.

SPARQL 1.1 Service Description, section 2: a GET without a query. `description.py` writes the description of this
server, which repeats that of the source.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import Final

from aiohttp import web

from construct_messages.rdf.errors import SourceError
from construct_messages.rdf.formats.documents import JSON_LD, N_TRIPLES, RDF_XML, TURTLE
from construct_messages.server.config import EndpointSettings
from construct_messages.server.http.accept import accept_header
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.http.sending import send
from construct_messages.server.sparql.record import SparqlRecord
from construct_messages.sparql.sources.operations import Backend, Operation

# headers that are forwarded to a remote endpoint, in addition to those of the endpoint's settings
_SENT_ON: Final = (
    "Accept-Language",
    "Cache-Control",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "Pragma",
)
_RDF: Final = (
    f"{TURTLE.media_type}, {RDF_XML.media_type};q=0.9, "
    f"{N_TRIPLES.media_type};q=0.9, {JSON_LD.media_type};q=0.5"
)
# forms may be submitted to this server; scripts and other resources are blocked
_FORM_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; sandbox allow-forms"
)
_DESCRIPTION_SECONDS: Final = 10.0
_DESCRIPTION_BYTES: Final = 1 << 20
_KNOWN_SECONDS: Final = 3600.0


def forwarded_headers(request: web.Request, settings: EndpointSettings) -> dict[str, str]:
    """Returns the headers of a request that the endpoint forwards to the source."""
    names = (*_SENT_ON, *settings.forward_headers)
    return {name: request.headers[name] for name in names if name in request.headers}


class SelfDescription:
    """The page and the description of a remote source.

    Args:
        settings: the settings of the endpoint.
        backend: the source.
        request_log: the log for details that clients do not see.
    """

    def __init__(
        self, settings: EndpointSettings, backend: Backend, request_log: RequestLog
    ) -> None:
        self._settings, self._backend, self._request_log = settings, backend, request_log
        self._known: tuple[float, tuple[str, bytes] | None] | None = None

    async def page(self, request: web.Request, record: SparqlRecord) -> web.StreamResponse | None:
        """Sends the source's own page with a form for queries; None: it has none."""
        accept = accept_header(request) or ""
        headers = forwarded_headers(request, self._settings) | {"Accept": accept}
        operation = Operation(None, headers=headers, timeout=_DESCRIPTION_SECONDS)
        try:
            answer = await self._backend.answer(operation)
        except SourceError as error:
            self._request_log.log("warning", "no page", reason=error.message)
            return None
        headers = dict(answer.headers)
        async with aclosing(answer.body):
            if answer.status != 200 or "html" not in headers.get("Content-Type", "").lower():
                return None
            headers["Content-Security-Policy"] = _FORM_POLICY
            record.format = headers["Content-Type"]
            if request.method == "HEAD":
                return web.StreamResponse(status=answer.status, headers=headers)
            idle_seconds = self._settings.limits.idle_seconds
            return await send(
                request, answer.body, headers, idle_seconds=idle_seconds, sent=record.sent
            )

    async def description(self) -> tuple[str, bytes] | None:
        """Returns the media type and bytes of its RDF description; None: it has none. Fetched once an hour."""
        if self._known is None or time.monotonic() - self._known[0] > _KNOWN_SECONDS:
            self._known = time.monotonic(), await self._fetch_description()
        return self._known[1]

    async def _fetch_description(self) -> tuple[str, bytes] | None:
        asked = Operation(None, headers={"Accept": _RDF}, timeout=_DESCRIPTION_SECONDS)
        try:
            answer = await self._backend.answer(asked)
            body = bytearray()
            async with aclosing(answer.body):
                async for chunk in answer.body:
                    body += chunk
                    if len(body) > _DESCRIPTION_BYTES:
                        return None
        except SourceError as error:
            self._request_log.log("warning", "no description", reason=error.message)
            return None
        return (
            (dict(answer.headers).get("Content-Type", ""), bytes(body))
            if answer.status == 200
            else None
        )

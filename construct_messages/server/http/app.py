"""The web application: paths, what every response carries, and what becomes of errors.

Endpoints are answered in `sparql.py`; settings come from `config.py`; sockets and processes are the supervisor's. One
task a request, which ends when the client leaves: so the server must run with `handler_cancellation`, see `runner_of`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.http import HttpProcessingError

from construct_messages.errors import ConstructMessagesError
from construct_messages.server.config import Config
from construct_messages.server.http.admission import Admission
from construct_messages.server.http.health import Health
from construct_messages.server.http.metrics import Metrics
from construct_messages.server.http.problems import METHODS, problem, refused
from construct_messages.server.http.request_log import Record, RequestLog, client_address, reason_of, request_id
from construct_messages.server.http.sending import Aborted, ClientLeft
from construct_messages.server.runtime.memory import bounded
from construct_messages.server.sparql.backends import open_backend
from construct_messages.server.sparql.endpoint import RECORD, SparqlEndpoint

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LINE_BYTES: Final = 1 << 17  # of a request line: a query by GET, percent-encoded
_FIELD_BYTES: Final = 1 << 16
_KEEP_ALIVE_SECONDS: Final = 75.0
_PREFLIGHT_SECONDS: Final = 86_400
# what scripts of other origins may read beside the few headers that they always may (Fetch, section 2.2.2)
_EXPOSED: Final = "Retry-After, X-Request-ID, X-SPARQL-MaxRows, X-SQL-Message, X-SQL-State"
_SECURITY: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def path_of(name: str) -> str:
    """The path of an endpoint.

    >>> path_of("dbpedia"), path_of("")
    ('/dbpedia/sparql', '/sparql')
    """
    return f"/{name}/sparql" if name else "/sparql"


def make_app(
    config: Config,
    *,
    directories: Mapping[str, Path] | None = None,
    request_log: RequestLog | None = None,
    metrics: Metrics | None = None,
) -> web.Application:
    """The application of a configuration.

    Args:
        config: the settings.
        directories: by endpoint name: the store directories of those that have files for a source.
        request_log: where it logs; None: standard error.
        metrics: what it counts; None: new ones.

    Raises:
        ConstructMessagesError: an endpoint cannot be opened.
    """
    return _Server(bounded(config), directories or {}, request_log or RequestLog(config), metrics or Metrics()).app


class _NotOfClients(logging.Filter):
    """Leaves out what clients did wrong: anybody could fill the log with it, and it holds the text of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.addFilter(_NotOfClients())


def runner_of(app: web.Application, *, shutdown_seconds: float = 30.0) -> web.AppRunner:
    """What runs the application, with each of aiohttp's defaults that matters set on purpose."""
    return web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,  # the request_log has a line for each request
        logger=_LOGGER,
        auto_decompress=False,  # a small body must not become a large one
        keepalive_timeout=_KEEP_ALIVE_SECONDS,
        max_line_size=_LINE_BYTES,
        max_field_size=_FIELD_BYTES,
        shutdown_timeout=shutdown_seconds,
    )


class _Server:
    def __init__(
        self, config: Config, directories: Mapping[str, Path], request_log: RequestLog, metrics: Metrics
    ) -> None:
        self._config, self._request_log, self._metrics = config, request_log, metrics
        self._stopping = False
        metrics.begin(map(path_of, config.endpoints))
        self._backends = {
            name: open_backend(endpoint, directories.get(name)) for name, endpoint in config.endpoints.items()
        }
        self._health = Health({path_of(name): backend for name, backend in self._backends.items()})
        self.app = app = web.Application(middlewares=[self._observe])
        app.on_response_prepare.append(self._add_headers)
        app.on_startup.append(self._start)
        app.on_shutdown.append(self._stop)
        app.on_cleanup.append(self._close)
        for name, endpoint in config.endpoints.items():
            admission = Admission(
                endpoint.concurrency, queue_seconds=endpoint.queue_seconds, queue_length=endpoint.queue_length
            )
            url = None if config.public_url is None else f"{config.public_url.rstrip('/')}{path_of(name)}"
            handler = SparqlEndpoint(endpoint, self._backends[name], admission, request_log, url)
            app.router.add_route("OPTIONS", path_of(name), self._options)
            app.router.add_route("*", path_of(name), handler.handle)
        app.router.add_get("/health/live", self._health.live)
        app.router.add_get("/health/ready", self._health.ready)
        app.router.add_get("/metrics", self._expose)

    # --- its life ---

    async def _start(self, _: web.Application) -> None:
        await asyncio.gather(*(backend.start() for backend in self._backends.values()))

    async def _stop(self, _: web.Application) -> None:
        self._stopping = True

    async def _close(self, _: web.Application) -> None:
        await asyncio.gather(*(backend.aclose() for backend in self._backends.values()))

    # --- every request ---

    @web.middleware
    async def _observe(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        record = Record(
            id=request_id(request.headers.get("X-Request-ID")),
            method=request.method,
            endpoint=None if resource is None else resource.canonical,
            client=client_address(
                request.remote,
                ",".join(request.headers.getall("X-Forwarded-For", [])) or None,
                trust_forwarded=self._config.trust_forwarded,
            ),
        )
        request[RECORD] = record
        with self._request_log.bound(record), self._metrics.watch(record):
            try:
                return await self._answer(request, handler, record)
            finally:
                if record.endpoint is None or record.endpoint.endswith("/sparql"):
                    self._request_log.write(record)

    async def _answer(self, request: web.Request, handler: _Handler, record: Record) -> web.StreamResponse:
        try:
            response = await handler(request)
        except ConstructMessagesError as error:
            response = problem(error, record.id)
            record.refused(response.status)
        except web.HTTPException as error:
            response = refused(error, record.id, paths=[path_of(name) for name in self._config.endpoints])
            record.refused(response.status)
        except ClientLeft as error:
            if error.reason == "idle":
                record.aborted("idle")
            else:
                record.client_left()
            return web.Response()  # to nobody
        except Aborted as error:
            record.aborted(reason_of(error.__cause__))
            # an engine's own words may hold the query
            cause = str(error.__cause__) if self._config.log_queries else type(error.__cause__).__name__
            self._request_log.log("warning", "reset", cause=cause)
            return web.Response()
        except asyncio.CancelledError:
            if self._stopping:
                record.aborted("shutdown")
            else:
                record.client_left()
            raise
        except Exception as error:  # noqa: BLE001 - a fault of this package, which must still be a response
            self._request_log.exception("fault", error)
            if record.bytes:
                record.aborted("internal")
                return web.Response()
            response = problem(ConstructMessagesError("the server failed"), record.id)
            record.refused(response.status)
        return response

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        headers = response.headers
        headers["Server"] = "construct-messages"
        for name, value in _SECURITY.items():
            headers.setdefault(name, value)
        record: Record | None = request.get(RECORD)
        if record is not None:
            headers["X-Request-ID"] = record.id
            record.status = response.status
        vary = {name.strip() for name in headers.get("Vary", "").split(",") if name.strip()}
        vary |= {"Accept", "Accept-Encoding"}
        origin = request.headers.get("Origin")
        allowed = self._config.cors
        if "*" not in allowed:
            vary.add("Origin")
        if origin is not None and ("*" in allowed or origin in allowed):
            headers["Access-Control-Allow-Origin"] = "*" if "*" in allowed else origin
            headers["Access-Control-Expose-Headers"] = _EXPOSED
        headers["Vary"] = ", ".join(sorted(vary))

    async def _options(self, request: web.Request) -> web.Response:
        headers = {"Allow": ", ".join(METHODS)}
        if "Access-Control-Request-Method" in request.headers:
            headers |= {
                "Access-Control-Allow-Methods": ", ".join(METHODS),
                "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
            }
            asked = request.headers.get("Access-Control-Request-Headers")
            if asked and asked.isascii():  # other bytes are no header's name, and may not be sent
                headers["Access-Control-Allow-Headers"] = asked
        return web.Response(status=204, headers=headers)

    async def _expose(self, request: web.Request) -> web.Response:
        body, content_type = self._metrics.exposition(request.headers.get("Accept"))
        return web.Response(body=body, headers={"Content-Type": content_type})

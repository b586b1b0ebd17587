"""The web application: endpoints under their paths, headers of every response, and errors as responses.

Independent of individual endpoints: `endpoint.py` defines their interface, `config.py` their settings; sockets and
processes are in `server/runtime`. Each request is one task, which is cancelled when the client leaves: the server must
run with `handler_cancellation`, see `runner_of`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.http import HttpProcessingError

from construct_messages.errors import ConstructMessagesError, Forbidden
from construct_messages.rdf.formats.media_types import JSON, PROBLEM
from construct_messages.server.config import Config
from construct_messages.server.http.endpoint import (
    Endpoint,
    Handler,
    Method,
    Route,
    foreign_origin,
)
from construct_messages.server.http.metrics import Metrics
from construct_messages.server.http.openapi import PATH, describe
from construct_messages.server.http.request_log import (
    RECORD,
    RequestLog,
    RequestRecord,
    client_address,
    reason_of,
    request_id,
)
from construct_messages.server.http.sending import Aborted, ClientLeft, problem, router_problem

# --- accept ---------------------------------------------------------------------------------------
# The header Accept as one value. `rdf/formats/negotiation.py` negotiates the media type.


def accept_header(request: web.Request) -> str | None:
    """Returns the values of all Accept headers of a request as one list; None: the request has none and accepts any
    media type.

    RFC 9110, section 5.3 (repeated fields) and section 12.5.1.
    """
    return ", ".join(request.headers.getall("Accept", [])) or None


# --- health ---------------------------------------------------------------------------------------
# Liveness and readiness, for load balancers and orchestrators.
#
# Live: the process answers. Ready: at least one endpoint's source answers, so that one broken source does not take
# the others off the network. Each source is checked at most once in some seconds, independently of the rate of
# probes.

_KEPT_SECONDS: Final = 5.0
_CHECK_SECONDS: Final = 5.0


class Health:
    """The handlers of the two probes.

    A result is valid for `kept_seconds`, and a source has `check_seconds` to answer. `reported` returns further members
    of the report, which do not affect readiness.
    """

    def __init__(
        self,
        backends: Mapping[str, Endpoint],
        reported: Callable[[], Mapping[str, object]] = dict,
        *,
        kept_seconds: float = _KEPT_SECONDS,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self._reported = reported
        self._checks = {
            name: _Check(backend, kept_seconds=kept_seconds, check_seconds=check_seconds)
            for name, backend in backends.items()
        }

    async def live(self, _: web.Request) -> web.Response:
        """Answers 200: the process is alive."""
        return _report(200, {"status": "live"})

    async def ready(self, _: web.Request) -> web.Response:
        """Answers 200 if at least one source answers, else 503; the body lists the sources that answer."""
        names, answers = (
            list(self._checks),
            await asyncio.gather(*(check.passes() for check in self._checks.values())),
        )
        ready = any(answers)
        return _report(
            200 if ready else 503,
            {
                "status": "ready" if ready else "not ready",
                "endpoints": {
                    name: "answers" if ok else "fails"
                    for name, ok in zip(names, answers, strict=True)
                },
                **self._reported(),
            },
        )


class _Check:
    """The last result of one check, which is repeated after its time; concurrent probes wait for the same check."""

    def __init__(self, backend: Endpoint, *, kept_seconds: float, check_seconds: float) -> None:
        self._backend, self._kept_seconds, self._check_seconds = (
            backend,
            kept_seconds,
            check_seconds,
        )
        self._asking = asyncio.Lock()
        self._asked: float | None = None
        self._passed = False

    async def passes(self) -> bool:
        async with self._asking:
            if self._asked is None or time.monotonic() - self._asked >= self._kept_seconds:
                self._passed = await self._ask()
                self._asked = time.monotonic()
            return self._passed

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(self._check_seconds):
                await self._backend.check()
        except (ConstructMessagesError, TimeoutError):
            return False
        return True


def _report(status: int, document: dict[str, object]) -> web.Response:
    return web.json_response(document, status=status, headers={"Cache-Control": "no-store"})


# --- app ------------------------------------------------------------------------------------------

ProblemPage: TypeAlias = Callable[[web.Request, web.Response], web.Response]
"""Returns the answer to a request for a problem document: a page with its content, or the document itself."""

REQUEST_TASK: Final = "request"
"""The name of each task that answers a request, until its last byte is written."""

# the maximal length of a request line: a query by GET, percent-encoded
_LINE_BYTES: Final = 1 << 17
_FIELD_BYTES: Final = 1 << 16
_KEEP_ALIVE_SECONDS: Final = 75.0
_PREFLIGHT_SECONDS: Final = 86_400
# headers that scripts of other origins may read, in addition to the safelisted ones (Fetch, section 2.2.2)
_EXPOSED: Final = ("Retry-After", "X-Request-ID")
_SECURITY: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def make_app(
    config: Config,
    endpoints: Sequence[Endpoint],
    *,
    request_log: RequestLog | None = None,
    metrics: Metrics | None = None,
    problem_page: ProblemPage | None = None,
) -> web.Application:
    """Returns the application that serves endpoints; it starts and closes them."""
    counted = metrics or Metrics({endpoint.path: endpoint.record for endpoint in endpoints})
    return _Server(config, endpoints, request_log or RequestLog(config), counted, problem_page).app


class _NoClientErrors(logging.Filter):
    """Leaves out malformed requests: any client could fill the log with them, and they contain the text of queries."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.addFilter(_NoClientErrors())


def runner_of(app: web.Application, *, shutdown_seconds: float = 30.0) -> web.AppRunner:
    """Returns the runner of an application, with the relevant defaults of aiohttp set explicitly."""
    return web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,  # the request log has a line for each request
        logger=_LOGGER,
        auto_decompress=False,  # decompression would turn a small body into a large one
        keepalive_timeout=_KEEP_ALIVE_SECONDS,
        max_line_size=_LINE_BYTES,
        max_field_size=_FIELD_BYTES,
        shutdown_timeout=shutdown_seconds,
    )


class _Server:
    def __init__(
        self,
        config: Config,
        endpoints: Sequence[Endpoint],
        request_log: RequestLog,
        metrics: Metrics,
        problem_page: ProblemPage | None,
    ) -> None:
        self._config, self._endpoints, self._request_log, self._metrics = (
            config,
            endpoints,
            request_log,
            metrics,
        )
        self._problem_page = problem_page
        self._stopping = False
        self._by_route: dict[str, tuple[Endpoint, Route]] = {}
        self.app = app = web.Application(middlewares=[self._observe])
        app.on_response_prepare.append(self._add_headers)
        app.on_startup.append(self._start)
        app.on_shutdown.append(self._stop)
        app.on_cleanup.append(self._close)
        for endpoint in endpoints:
            metrics.show(endpoint.path, endpoint.gauges)
            for route in endpoint.routes():
                resource = app.router.add_resource(route.path)
                resource.add_route("*", _with_options(route))
                self._by_route[resource.canonical] = endpoint, route
        with_source = {endpoint.path: endpoint for endpoint in endpoints if endpoint.has_source}
        self._paths = tuple(with_source)
        health = Health(
            with_source,
            lambda: {name: each.reported[name] for each in endpoints for name in each.reported},
        )
        reports = {200: (JSON,)}
        own = [
            _own("/health/live", health.live, "Whether the process answers", reports),
            _own(
                "/health/ready",
                health.ready,
                "Whether at least one source answers",
                {**reports, 503: (JSON,)},
            ),
            _own("/metrics", self._expose, "Metrics for Prometheus", {200: ("*/*",)}),
            _own(PATH, self._describe, "This description", reports),
        ]
        for route in own:
            app.router.add_get(route.path, route.handler)
        routes = [route for _, route in self._by_route.values()]
        self._description = describe([*routes, *own], config.public_url)

    # --- its life ---

    async def _start(self, _: web.Application) -> None:
        await asyncio.gather(*(endpoint.start(self._observed) for endpoint in self._endpoints))

    async def _stop(self, _: web.Application) -> None:
        self._stopping = True
        await asyncio.gather(*(endpoint.stop() for endpoint in self._endpoints))

    async def _close(self, _: web.Application) -> None:
        await asyncio.gather(*(endpoint.aclose() for endpoint in self._endpoints))

    # --- every request ---

    @contextmanager
    def _observed(self, record: RequestRecord) -> Iterator[None]:
        with self._request_log.bound(record), self._metrics.watch(record):
            try:
                yield
            finally:
                self._request_log.write(record)

    @web.middleware
    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        path, endpoint, _ = self._found(request)
        record = (endpoint.record if endpoint else RequestRecord)(
            id=request_id(request.headers.get("X-Request-ID")),
            method=request.method,
            endpoint=endpoint.path if endpoint else path,
            client=client_address(
                request.remote,
                ",".join(request.headers.getall("X-Forwarded-For", [])) or None
                if self._config.trust_forwarded
                else None,
                trust_forwarded=self._config.trust_forwarded,
            ),
        )
        request[RECORD] = record
        if (task := asyncio.current_task()) is not None:
            task.set_name(REQUEST_TASK)
        with self._request_log.bound(record), self._metrics.watch(record):
            try:
                return await self._answer(request, handler, record)
            finally:
                if endpoint or path is None:  # without the requests of load balancers and scrapers
                    self._request_log.write(record)

    def _found(self, request: web.Request) -> tuple[str | None, Endpoint | None, Route | None]:
        """Returns the path, the endpoint and the route that match; None without a match."""
        resource = request.match_info.route.resource
        path = None if resource is None else resource.canonical
        return path, *self._by_route.get(path or "", (None, None))

    async def _answer(
        self, request: web.Request, handler: Handler, record: RequestRecord
    ) -> web.StreamResponse:
        try:
            self._check_origin(request)
            response = await handler(request)
        except ConstructMessagesError as error:
            if record.status is not None:  # the connection was reset in the middle of the answer
                record.aborted(reason_of(error))
                return web.Response()
            response = problem(error, record.id)
            record.refused(response.status)
            _, _, route = self._found(request)
            if error.status == 415 and route is not None:
                response.headers.update(route.options)
        except web.HTTPException as error:
            response = router_problem(error, record.id, paths=self._paths)
            record.refused(response.status)
        except ClientLeft as error:
            if error.reason == "idle":
                record.aborted("idle")
            else:
                record.client_left()
            return web.Response()  # not sent: the client has disconnected
        except Aborted as error:
            record.aborted(reason_of(error.__cause__))
            # the messages of an engine may contain the query
            cause = (
                str(error.__cause__) if self._config.log_queries else type(error.__cause__).__name__
            )
            self._request_log.log("warning", "reset", cause=cause)
            return web.Response()
        except asyncio.CancelledError as error:
            # cancellations by this package have a reason; aiohttp cancels when the client disconnects, and at the end
            if error.args or (self._stopping and request.transport is not None):
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
        if (
            response.status >= 400
            and self._problem_page is not None
            and response.content_type == PROBLEM
            and isinstance(response, web.Response)
        ):
            return self._problem_page(request, response)
        return response

    def _check_origin(self, request: web.Request) -> None:
        """Rejects WebSockets from pages of other origins: browsers connect without a preflight request (RFC 6455,
        section 10.2).
        """
        if (
            _is_websocket(request)
            and (origin := foreign_origin(request, self._config.trusted_origins)) is not None
        ):
            raise Forbidden(
                f"pages of {origin} may not connect",
                hint="allow their origin in the settings: cors",
            )

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        asked, headers = request.headers, response.headers
        headers["Server"] = "construct-messages"
        for name, value in _SECURITY.items():
            headers.setdefault(name, value)
        record: RequestRecord | None = request.get(RECORD)
        if record is not None:
            headers["X-Request-ID"] = record.id
            record.status = response.status
        if "Authorization" in asked and (cached := headers.get("Cache-Control")):
            # a shared cache must not reuse an authorized client's answer for others (RFC 9111, section 3.5)
            headers["Cache-Control"] = cached.replace("public", "private")
        origin = asked.get("Origin")
        allowed = self._config.cors
        if origin is not None and ("*" in allowed or origin in allowed):
            headers["Access-Control-Allow-Origin"] = "*" if "*" in allowed else origin
            _, endpoint, _ = self._found(request)
            exposed = (*_EXPOSED, *(endpoint.exposed_headers if endpoint else ()))
            headers["Access-Control-Expose-Headers"] = ", ".join(exposed)
        headers["Vary"] = _vary(headers.get("Vary", ""), "*" not in allowed)

    async def _describe(self, _: web.Request) -> web.Response:
        return web.json_response(self._description, headers={"Cache-Control": "no-cache"})

    async def _expose(self, request: web.Request) -> web.Response:
        body, content_type = self._metrics.exposition(request.headers.get("Accept"))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _own(path: str, handler: Handler, summary: str, answers: Mapping[int, Sequence[str]]) -> Route:
    """Returns a route of the application itself."""
    described = {"GET": Method(summary, answers)}
    return Route(path, ("GET", "HEAD"), handler, described=described)


@cache  # few distinct values: endpoints define them
def _vary(named: str, by_origin: bool) -> str:
    """Returns the value of `Vary`, with the request headers that affect every answer.

    >>> _vary("Prefer", True)
    'Accept, Accept-Encoding, Origin, Prefer'
    """
    names = {name.strip() for name in named.split(",") if name.strip()}
    names |= {"Accept", "Accept-Encoding"} | ({"Origin"} if by_origin else set())
    return ", ".join(sorted(names))


def _is_websocket(request: web.Request) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


def _with_options(route: Route) -> Handler:
    """Returns the handler of a route, which also answers OPTIONS and rejects other methods."""
    allow = ", ".join((*route.methods, "OPTIONS"))

    async def handle(request: web.Request) -> web.StreamResponse:
        if route.socket is not None and request.method == "GET" and _is_websocket(request):
            return await route.socket(request)
        if request.method in route.methods:
            return await route.handler(request)
        if request.method != "OPTIONS":
            raise web.HTTPMethodNotAllowed(request.method, (*route.methods, "OPTIONS"))
        headers = {"Allow": allow, **route.options}
        if "Access-Control-Request-Method" in request.headers:
            headers |= {
                "Access-Control-Allow-Methods": allow,
                "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
            }
            requested = request.headers.get("Access-Control-Request-Headers")
            if (
                requested and requested.isascii()
            ):  # other bytes are not a valid header name, and must not be sent
                headers["Access-Control-Allow-Headers"] = requested
        return web.Response(status=204, headers=headers)

    return handle

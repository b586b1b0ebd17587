"""A server's upstream endpoint: returns solutions and relays answers, over one pool of connections.

SPARQL 1.1 Protocol, section 2. SELECTs are sent as by any endpoint source (`endpoint.py`). Other operations are
relayed: the text as a form, the answer byte for byte. With `response.py`, it decides which failures the server reports.
"""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncGenerator, Generator, Mapping
from concurrent.futures import Executor
from contextlib import aclosing
from typing import Final

import aiohttp

from construct_messages.errors import IncompleteResult, SourceError, UsageError
from construct_messages.rdf.formats.results import JSON
from construct_messages.rdf.options import RETRIES
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.client.aiohttp_client import (
    Addresses,
    CheckedResolver,
    areceive,
    asend,
    new_session,
)
from construct_messages.sparql.client.oauth import AccessTokens
from construct_messages.sparql.client.responses import (
    OK,
    TRANSIENT,
    authorization,
    check_header,
    rejected,
)
from construct_messages.sparql.client.retries import Attempts, Timeouts
from construct_messages.sparql.sources import Answer, Operation, Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource
from construct_messages.sparql.sources.http.response import answer_status

# other statuses, such as 101, would apply to a hop between here and the client
_STATUSES: Final = range(200, 600)
# content negotiation by the client, in addition to Accept
_FORMAT_PARAMETERS: Final = ("format", "output", "results")
_DATASET: Final = ("default-graph-uri", "named-graph-uri")
_CHECK_SECONDS: Final = 5.0
_KEEP_ALIVE_SECONDS: Final = 15.0  # less than in most servers, which would close it first
# headers of the connection, and headers that the relayed form sets
_NOT_SENT_ON: Final = frozenset(
    (
        *(
            "connection",
            "keep-alive",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ),
        *("host", "content-length", "content-type", "content-encoding", "user-agent", "expect"),
    )
)
# The headers of an answer that describe its content. Headers of the connection or the server (Server, Date,
# Strict-Transport-Security, Alt-Svc) are left out, and so are headers that would affect the server's own origin in a
# browser (Set-Cookie, Content-Security-Policy, Access-Control-*, Location).
_RELAYED: Final = (
    *(
        "Content-Type",
        "Content-Encoding",
        "Content-Length",
        "Content-Language",
        "Content-Disposition",
        "Content-Range",
    ),
    *("ETag", "Last-Modified", "Cache-Control", "Expires", "Age", "Vary"),
    *("Retry-After", "WWW-Authenticate", "Allow", "Link", "Warning"),
    *("X-SPARQL-MaxRows", "X-SPARQL-Default-Graph", "X-SQL-State", "X-SQL-Message"),
)


class Upstream:
    """A server's upstream endpoint, for asyncio.

    `read_seconds` includes the wait for a turn or a connection; `rate` is in requests per second, on average. Requests
    beyond `connections` wait. `allow_private` lets the host's name resolve to a private address; `updates` is the
    endpoint for updates, if the engine has a separate one, and closed with this one. See `EndpointSource` for the
    others.
    """

    def __init__(
        self,
        url: str,
        *,
        profile: str = "generic",
        results: str = "auto",
        method: str = "post",
        headers: Mapping[str, str] | None = None,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        tokens: AccessTokens | None = None,
        contact: str | None = None,
        prefixes: Mapping[str, str] | None = None,
        retries: int = RETRIES,
        connect_seconds: float = 10.0,
        read_seconds: float = 120.0,
        rate: float | None = None,
        connections: int = 100,
        allow_private: bool = False,
        updates: Upstream | None = None,
        executor: Executor | None = None,
    ) -> None:
        own = authorization(user, password, token) | dict(headers or {})
        self._endpoint = Endpoint.at(
            url, method=method, headers=own, contact=contact, tokens=tokens
        )
        self._source = EndpointSource(
            self._endpoint,
            results=results,
            profile=profile,
            retries=retries,
            connect_seconds=connect_seconds,
            read_seconds=read_seconds,
        )
        if rate is not None and rate <= 0:
            raise UsageError(f"rate={rate} must be more than 0", hint="leave it out for no limit")
        self._prefixes = {**self._source.predefined, **(prefixes or {})}
        self._retries, self._connect_seconds, self._read_seconds = (
            retries,
            connect_seconds,
            read_seconds,
        )
        self._rate, self._connections = rate, connections
        self._addresses = Addresses(url, allow_private=allow_private)
        self._updates, self._executor = updates, executor
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    @property
    def predefined(self) -> Mapping[str, str]:
        return self._prefixes

    @property
    def stable_blank_nodes(self) -> bool:
        return self._source.stable_blank_nodes

    def solutions(self, request: Request) -> Generator[Solutions]:  # noqa: ARG002 the protocol's
        """Always raises `UsageError`: the connections belong to an event loop."""
        raise UsageError(
            "an upstream returns solutions to asyncio only",
            hint="use asolutions, or an EndpointSource",
        )

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        async with aclosing(
            self._source.asolutions_over(self._opened(), request, self._executor)
        ) as batches:
            async for batch in batches:
                yield batch

    async def answer(self, operation: Operation) -> Answer:
        """See `Backend.answer`.

        The endpoint's answer is sent to the client with any status, except for redirects to other hosts, and for pages
        for browsers, which are only sent to clients that accept them.
        """
        if operation.update and self._updates is not None:
            return await self._updates.answer(operation)
        timeouts = Timeouts(operation.timeout, self._read_seconds, self._connect_seconds)
        response = await self._response(operation, timeouts, self._retries)
        try:
            self._check_answer(operation, response)
        except SourceError:
            response.close()
            raise
        headers = tuple(
            (name, _joined(response, name)) for name in _RELAYED if name in response.headers
        )
        body = self._body(response, timeouts)
        await anext(body)  # started, so that closing it ends the request even if it is not read
        return Answer(response.status, headers, body)

    async def start(self) -> None:
        """See `Backend.start`: connections are made when they are needed."""

    async def check(self) -> None:
        """See `Backend.check`: sends `ASK {}` once, with a timeout of some seconds; its result does not matter."""
        operation = Operation("ASK {}", headers={"Accept": JSON.media_type})
        timeouts = Timeouts(_CHECK_SECONDS, connect=self._connect_seconds)
        response = await self._response(operation, timeouts, retries=0)
        response.close()
        self._check_answer(operation, response)
        if response.status not in OK:
            raise self._refusal(operation, response)

    def close(self) -> None:
        """Does nothing: `aclose` releases the connections."""

    async def aclose(self) -> None:
        self._closed = True
        if self._updates is not None:
            await self._updates.aclose()
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """The session; it belongs to the event loop that uses it first."""
        if self._closed:
            raise SourceError(f"connections to {self._endpoint.name} are closed", status=503)
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._connections,
                keepalive_timeout=_KEEP_ALIVE_SECONDS,
                resolver=CheckedResolver(self._addresses, aiohttp.DefaultResolver()),
                socket_factory=self._addresses.open_socket,
            )
            self._session = new_session(
                *(() if self._rate is None else (_in_turn(self._rate),)),
                connector=connector,
                connect_seconds=self._connect_seconds,
                trust_env=False,  # a proxy would connect without the check of addresses
            )
        return self._session

    async def _response(
        self, operation: Operation, timeouts: Timeouts, retries: int
    ) -> aiohttp.ClientResponse:
        """The response, before its body is read; the last one if the endpoint is busy each time."""
        request = self._http_request(operation)
        busy: aiohttp.ClientResponse | None = None

        def may_retry(error: SourceError) -> bool:
            # an update is only retried if it was not sent
            return not operation.update or isinstance(error.__cause__, aiohttp.ClientConnectorError)

        try:
            async for attempt in Attempts(retries, timeouts, may_retry):
                with attempt:
                    if busy is not None:
                        busy.close()
                        busy = None
                    response = await asend(
                        self._opened(),
                        request,
                        self._endpoint.name,
                        timeouts,
                        self._endpoint.credentials,
                        is_safe=not operation.update,
                    )
                    if response.status in TRANSIENT:
                        busy = response
                        raise self._refusal(operation, response)
        except SourceError:
            if busy is None:
                raise
            return busy
        except asyncio.CancelledError:
            if busy is not None:
                busy.close()
            raise
        return response

    def _http_request(self, operation: Operation) -> urllib.request.Request:
        default, named = (
            ("using-graph-uri", "using-named-graph-uri") if operation.update else _DATASET
        )
        pairs = [(default, graph) for graph in operation.default_graphs]
        pairs += [(named, graph) for graph in operation.named_graphs]
        pairs += operation.parameters
        headers = {
            name: value
            for name, value in operation.headers.items()
            if name.lower() not in _NOT_SENT_ON
        }
        for name, value in headers.items():
            check_header(name, value)
        # HEAD is sent as GET, and the body is ignored: some engines send a body for HEAD
        return self._endpoint.request(operation.text, pairs, headers, update=operation.update)

    def _check_answer(self, operation: Operation, response: aiohttp.ClientResponse) -> None:
        if (
            response.status == 401
            and (
                "Authorization" in self._endpoint.headers or self._endpoint.credentials is not None
            )
            and not _authenticates(operation)
        ):
            # the credentials are not the client's, which cannot correct them
            raise self._refusal(operation, response)
        if _is_for_browsers(response) and (response.status >= 500 or not _asks_for_html(operation)):
            raise self._refusal(operation, response)
        if response.status not in _STATUSES:
            raise self._refusal(operation, response)

    def _refusal(self, operation: Operation, response: aiohttp.ClientResponse) -> SourceError:
        page = " and a page for browsers" if _is_for_browsers(response) else ""
        return rejected(
            f"{self._endpoint.name} answered with HTTP status {response.status}{page}",
            response.status,
            response.headers.get,
            answer=answer_status(response.status, client_authenticates=_authenticates(operation)),
        )

    async def _body(
        self, response: aiohttp.ClientResponse, timeouts: Timeouts
    ) -> AsyncGenerator[bytes]:
        try:
            yield b""
            while chunk := await areceive(response, timeouts, self._cut):
                yield chunk
            response.release()
        finally:
            response.close()  # its connection is back in the pool, if the body has ended

    def _cut(self, reason: object) -> SourceError:
        return IncompleteResult(f"the answer of {self._endpoint.name} was cut: {reason}")


def _authenticates(operation: Operation) -> bool:
    return any(name.lower() == "authorization" for name in operation.headers)


def _is_for_browsers(response: aiohttp.ClientResponse) -> bool:
    # of several Content-Types, browsers use a different one than aiohttp
    return any(
        "html" in content_type.lower()
        for content_type in response.headers.getall("Content-Type", ())
    )


def _joined(response: aiohttp.ClientResponse, name: str) -> str:
    # a repeated equal length is one length
    value = ", ".join(dict.fromkeys(response.headers.getall(name)))
    # a byte that is not UTF-8 cannot be sent
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _asks_for_html(operation: Operation) -> bool:
    accept = next(
        (value for name, value in operation.headers.items() if name.lower() == "accept"), ""
    )
    wanted = [
        accept,
        *(value for name, value in operation.parameters if name in _FORMAT_PARAMETERS),
    ]
    return any("html" in value.lower() for value in wanted)


def _in_turn(rate: float) -> aiohttp.ClientMiddlewareType:
    from aiolimiter import AsyncLimiter  # of the extra `server`

    limiter = AsyncLimiter(max(rate, 1.0), max(1.0, 1.0 / rate))

    async def in_turn(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        async with limiter:
            return await handler(request)

    return in_turn

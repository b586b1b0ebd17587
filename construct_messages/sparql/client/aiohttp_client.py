"""The HTTP client for asyncio: sends one request by aiohttp, and receives the bytes of the response.

Follows no redirect to another origin, keeps no cookies, decompresses nothing, and limits every wait by `Timeouts`.
`urllib_client.py` does the same for blocking callers.
"""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from io import BytesIO
from typing import Any, Final, TypeVar

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

from construct_messages.rdf.errors import SourceError
from construct_messages.sparql.client import responses
from construct_messages.sparql.client.responses import Credentials, Exchange, ends_by_length
from construct_messages.sparql.client.timeouts import CONNECT_SECONDS, Timeouts, keep_alive
from construct_messages.sparql.client.urls import without_query

T = TypeVar("T")

_LARGE_BYTES: Final = 1 << 20
_CHUNK: Final = 1 << 16
_CLOSE_SECONDS: Final = 5.0  # until a connection closes that the endpoint has announced to close
_HEAD_LINE: Final = 1 << 16  # bytes, as in http.client


def new_session(
    *middlewares: aiohttp.ClientMiddlewareType,
    connector: aiohttp.TCPConnector | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    trust_env: bool = True,
) -> aiohttp.ClientSession:
    """Returns a session without aiohttp's defaults that would change requests or responses.

    `trust_env`: whether to use the proxies of the environment, as urllib does.
    """
    return aiohttp.ClientSession(
        connector=connector or aiohttp.TCPConnector(socket_factory=_open_socket),
        response_class=_ClientResponse,
        trust_env=trust_env,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        # `Timeouts` limits the rest
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        middlewares=middlewares,
        skip_auto_headers=(
            "Accept",
            "Accept-Encoding",
            "User-Agent",
        ),  # only the request's headers are sent
        read_bufsize=_CHUNK,
        max_line_size=_HEAD_LINE,
        max_field_size=_HEAD_LINE,
    )


def _open_socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = info
    return keep_alive(socket.socket(family, kind, protocol))


class _ClientResponse(aiohttp.ClientResponse):
    """A response that closes a connection whose framing is faulty, instead of reusing it (RFC 9112, section 6.1).

    It keeps the connection after a body that is only delimited by its length, so that `is_followed` can check it.
    """

    _connected: ResponseHandler | None = None
    _has_ended = False
    _keeps_connection = True

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        self._connected = protocol = connection.protocol
        await super().start(connection)
        if (
            protocol is not None
            and self.version == aiohttp.HttpVersion10
            and "Transfer-Encoding" in self.headers
        ):
            protocol.force_close()
        self._keeps_connection = ends_by_length(self.headers.get)
        if self._has_ended:
            self._response_eof()
        return self

    def _response_eof(self) -> None:
        # aiohttp calls it at the end of the body, which may be before `start` has the headers
        self._has_ended = True
        if not self._keeps_connection:
            super()._response_eof()

    async def is_followed(self) -> bool:
        """Whether the endpoint sends more than the announced length of the body.

        If the connection stays open after the body, only data that has already arrived counts.
        """
        protocol = self._connected
        if protocol is None:
            return False
        for _ in range(2):  # the event loop checks the socket
            await asyncio.sleep(0)
        if protocol.should_close and (closed := protocol.closed) is not None:
            await asyncio.wait([closed], timeout=_CLOSE_SECONDS)
        return isinstance(protocol.exception(), HttpProcessingError)


async def is_followed(response: aiohttp.ClientResponse) -> bool:
    """Whether more than the body arrives, if it is only delimited by its length; called at the end of the body."""
    if not isinstance(response, _ClientResponse) or not ends_by_length(response.headers.get):
        return False
    followed = await response.is_followed()
    response.release()
    return followed


async def areceive(
    response: aiohttp.ClientResponse, timeouts: Timeouts, cut: Callable[[object], SourceError]
) -> bytes:
    """The next bytes of a body, empty at its end. `cut` returns the error for one that cannot be read to its end."""
    left = timeouts.remaining()
    try:
        async with asyncio.timeout(left):
            data = await response.content.readany()
        if not data and (error := response.content.exception()) is not None:
            raise error  # it arrived with the end
        return data
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (
        OSError,
        aiohttp.ClientError,
        RuntimeError,
    ) as error:  # aiohttp's RuntimeError: the session was closed
        raise cut(_reason(error)) from error


async def asend(
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    url: str,
    timeouts: Timeouts,
    credentials: Credentials | None = None,
) -> aiohttp.ClientResponse:
    """The response to a request, whose body is still to be read; the caller closes it. `url` is for errors."""
    run = _runner(credentials)
    exchange: Exchange = await run(Exchange, request, url, credentials)
    while True:
        response = await _aopen(session, exchange.request, url, timeouts)
        try:
            is_answer = await run(exchange.ends, response.status, response.headers.get)
        except BaseException:
            response.close()
            raise
        if is_answer:
            return response
        response.close()


async def aconnect(
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    credentials: Credentials | None,
    *,
    protocols: Sequence[str],
    heartbeat: float,
    max_msg_size: int,
) -> aiohttp.ClientWebSocketResponse:
    """The WebSocket at the URL of a request; the caller closes it. Options and errors: `ClientSession.ws_connect`."""
    run = _runner(credentials)
    exchange: Exchange = await run(Exchange, request, without_query(request.full_url), credentials)
    while True:
        sent = exchange.request
        try:
            return await session.ws_connect(
                sent.full_url,
                headers=sent.headers,
                protocols=protocols,
                heartbeat=heartbeat,
                max_msg_size=max_msg_size,
            )
        except aiohttp.WSServerHandshakeError as error:
            if await run(exchange.ends, error.status, (error.headers or {}).get):
                raise


def _runner(credentials: Credentials | None) -> Callable[..., Awaitable[Any]]:
    """Runs what may block: only credentials do."""
    return _at_once if credentials is None else asyncio.to_thread


async def _at_once(function: Callable[..., T], *arguments: object) -> T:
    return function(*arguments)


async def _aopen(
    session: aiohttp.ClientSession, request: urllib.request.Request, url: str, timeouts: Timeouts
) -> aiohttp.ClientResponse:
    left = timeouts.remaining()
    try:
        async with asyncio.timeout(left):
            response = await session.request(
                request.get_method(),
                yarl.URL(request.full_url, encoded=True),
                data=_body(request.data),
                headers=dict(request.header_items()),
                allow_redirects=False,
            )
    except aiohttp.ConnectionTimeoutError as error:
        raise timeouts.unconnected() from error
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (OSError, aiohttp.ClientError) as error:
        raise unreachable(url, error) from error
    _watch(response)
    return response


def unreachable(url: str, error: BaseException) -> SourceError:
    cause: BaseException = error
    match error:
        case aiohttp.ClientConnectorError():
            cause = error.os_error
        case aiohttp.ServerDisconnectedError():
            cause = ConnectionError()
        case aiohttp.ClientConnectionError() if error.__cause__ is not None:
            cause = error.__cause__  # the body of the request could not be sent
    return responses.unreachable(url, cause, _reason(error))


def _reason(error: BaseException) -> str:
    """The message of an exception, without the URL of the request, which may contain the query."""
    match error:
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return responses.reason(error.message)
        case aiohttp.ServerDisconnectedError():  # aiohttp may show the head of an answer
            return "the connection was closed before an answer"
        case aiohttp.ClientConnectorError():
            pass
        case aiohttp.ClientConnectionError() if error.__cause__ is not None:
            return responses.reason(error.__cause__)
    return responses.reason(error)


def _watch(response: aiohttp.ClientResponse) -> None:
    """Raises an error of the body for lost connections that aiohttp ignores.

    aiohttp would wait forever after a chunk with damaged framing, and treat a reset as the end of a body that ends with
    the connection.
    """
    content = response.content
    protocol = None if response.connection is None else response.connection.protocol
    closed = None if protocol is None else protocol.closed
    if protocol is None or closed is None:
        return  # the whole body has arrived
    is_delimited = "Content-Length" in response.headers or "Transfer-Encoding" in response.headers

    def end(closed: asyncio.Future[None]) -> None:
        cause = closed.exception() or (protocol.exception() if is_delimited else None)
        if (
            cause is not None
            and content.exception() is None
            and not (is_delimited and content.is_eof())
        ):
            content.set_exception(aiohttp.ClientPayloadError(_reason(cause)))

    def forget() -> None:
        closed.remove_done_callback(end)

    closed.remove_done_callback(_notice)  # of the last response
    closed.add_done_callback(_notice)
    closed.add_done_callback(end)
    if is_delimited:  # the connection may then be reused, and must not refer to this response
        content.on_eof(forget)


def _notice(closed: asyncio.Future[None]) -> None:
    """Retrieves the exception of a connection that is lost while it waits for a request."""
    closed.exception()


def _body(data: object) -> object:
    """The body of a request; aiohttp writes a large one in pieces if it is a file, and warns otherwise."""
    return BytesIO(data) if isinstance(data, bytes) and len(data) > _LARGE_BYTES else data

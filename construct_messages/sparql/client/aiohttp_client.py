"""The HTTP client for asyncio: sends one request by aiohttp, and receives the bytes of the response.

Follows no redirect to another origin, keeps no cookies, decompresses nothing, and limits every wait by `Timeouts`.
`urllib_client.py` does the same for blocking callers.
"""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import Callable
from io import BytesIO
from typing import Final

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

from construct_messages.rdf.errors import SourceError
from construct_messages.sparql.client.responses import ends_by_length, redirected
from construct_messages.sparql.client.retries import (
    REDIRECTS,
    reason,
    too_many_redirects,
    unreachable,
)
from construct_messages.sparql.client.timeouts import CONNECT_SECONDS, Timeouts, keep_alive

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

    Args:
        middlewares: around each request, such as one for digest authentication.
        connector: the pool of connections; None: a new one.
        connect_seconds: the maximal time to connect.
        trust_env: whether to use the proxies of the environment, as urllib does.
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
    """The next bytes of a body, empty at its end.

    Args:
        response: the response.
        timeouts: the maximal times to wait.
        cut: returns the error for a body that cannot be read to its end.
    """
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
        raise cut(reason(error)) from error


async def asend(
    session: aiohttp.ClientSession, request: urllib.request.Request, url: str, timeouts: Timeouts
) -> aiohttp.ClientResponse:
    """The response to a request, whose body is still to be read; the caller closes it.

    Args:
        session: sends the request.
        request: the request to send.
        url: the endpoint, for errors.
        timeouts: the maximal times to wait.

    Raises:
        SourceError: no response, or a redirect that is not followed.
        SourceTimeout: no response in time.
    """
    target: str | None = request.full_url
    for _ in range(REDIRECTS):
        assert target is not None
        sent_to = target
        response = await _aopen(session, request, sent_to, url, timeouts)
        try:
            target = redirected(sent_to, response.status, response.headers.get)
        except SourceError:
            response.close()
            raise
        if target is None:
            return response
        response.close()
    raise too_many_redirects(url)


async def _aopen(
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    target: str,
    url: str,
    timeouts: Timeouts,
) -> aiohttp.ClientResponse:
    left = timeouts.remaining()
    try:
        async with asyncio.timeout(left):
            response = await session.request(
                request.get_method(),
                yarl.URL(target, encoded=True),
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
            content.set_exception(aiohttp.ClientPayloadError(reason(cause)))

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

"""The HTTP client for asyncio: sends one request by aiohttp, and receives the bytes of the response.

Follows no redirect to another origin, keeps no cookies, decompresses nothing, and limits every wait by `Timeouts`.
`urllib_client.py` does the same for blocking callers.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from io import BytesIO
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

from construct_messages.errors import SourceError
from construct_messages.sparql.client import responses
from construct_messages.sparql.client.responses import BodyFraming, Credentials, Exchange
from construct_messages.sparql.client.retries import CONNECT_SECONDS, Timeouts, keep_alive
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
    traces = aiohttp.TraceConfig()
    traces.on_connection_reuseconn.append(_note_kept)
    return aiohttp.ClientSession(
        trace_configs=[traces],
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

    It keeps the connection after a body that is only delimited by its length, so that `has_trailing_data` can check it.
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
        self._keeps_connection = BodyFraming.of(self.headers.get).is_only_length
        if self._has_ended:
            self._response_eof()
        return self

    def _response_eof(self) -> None:
        # aiohttp calls it at the end of the body, which may be before `start` has the headers
        self._has_ended = True
        if not self._keeps_connection:
            super()._response_eof()

    async def has_trailing_data(self) -> bool:
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


async def has_trailing_data(response: aiohttp.ClientResponse) -> bool:
    """Whether more than the body arrives, if it is only delimited by its length; called at the end of the body."""
    if not isinstance(response, _ClientResponse) or not response._keeps_connection:
        return False
    followed = await response.has_trailing_data()
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
    *,
    is_safe: bool = False,
) -> aiohttp.ClientResponse:
    """The response to a request, whose body is still to be read; the caller closes it. `url` is for errors.

    `is_safe`: whether the request changes nothing, also if it is a POST.
    """
    run = _runner(credentials)
    exchange: Exchange = await run(Exchange, request, url, credentials)
    while True:
        response = await _aopen(session, exchange.request, url, timeouts, is_safe=is_safe)
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
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    url: str,
    timeouts: Timeouts,
    *,
    is_safe: bool,
) -> aiohttp.ClientResponse:
    left = timeouts.remaining()
    try:
        async with asyncio.timeout(left):
            while True:
                way = _Way()
                try:
                    response = await session.request(
                        request.get_method(),
                        yarl.URL(request.full_url, encoded=True),
                        data=_body(request.data),
                        headers=dict(request.header_items()),
                        allow_redirects=False,
                        trace_request_ctx=way,
                    )
                    break
                except aiohttp.ClientConnectionError as error:
                    # aiohttp itself sends only other methods than POST again
                    if not (is_safe and way.was_kept and _is_unheard(error)):
                        raise
    except aiohttp.ConnectionTimeoutError as error:
        raise timeouts.unconnected() from error
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (OSError, aiohttp.ClientError) as error:
        raise unreachable(url, error) from error
    _watch(response)
    return response


class _Way:
    """How a request is sent: whether over a connection that was kept."""

    was_kept = False


async def _note_kept(
    _session: aiohttp.ClientSession,
    context: SimpleNamespace,
    _: aiohttp.TraceConnectionReuseconnParams,
) -> None:
    if isinstance(context.trace_request_ctx, _Way):
        context.trace_request_ctx.was_kept = True


def _is_unheard(error: aiohttp.ClientConnectionError) -> bool:
    """Whether the connection was closed before anything of an answer came; see `is_lost`."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)  # else it is the head of an answer
    return responses.is_lost(error) or (
        isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE)
    )


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


# --- addresses ------------------------------------------------------------------------------------
# Restricts the addresses that a server may connect to: public ones, and those that its operator configured.
#
# Otherwise a name that an attacker controls, or a redirect, could make the server send requests to its own machine or
# network. The check is part of connecting, so that a name cannot resolve to one address for the check and to another
# for the connection. The IANA special-purpose registries (RFC 6890) define public addresses.

Address: TypeAlias = IPv4Address | IPv6Address

_UNICAST: Final = IPv6Network("2000::/3")
_SIX_TO_FOUR_RELAYS: Final = IPv4Network("192.88.99.0/24")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether an address, and any IPv4 address embedded in it, is public.

    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "10.0.0.1", "::ffff:127.0.0.1", "2002:a00:1::")]
    [True, False, False, False]
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _SIX_TO_FOUR_RELAYS
    held = address.ipv4_mapped or address.sixtofour
    if held is None and address in _NAT64:
        held = IPv4Address(int(address) & 0xFFFF_FFFF)
    if held is not None:
        return is_public(held)
    return address in _UNICAST and address.is_global


class Addresses:
    """The allowed addresses for one URL; with `allow_private`, all.

    A URL whose host is an address, or `localhost`, allows only this address, because its author chose it. Any other
    name must resolve to public addresses only.

    >>> Addresses("http://10.0.0.1:8890/sparql").check(ipaddress.ip_address("10.0.0.1"))
    >>> Addresses("https://example.org/sparql").check(ipaddress.ip_address("10.0.0.1"))
    Traceback (most recent call last):
    construct_messages.errors.SourceError: example.org is at 10.0.0.1, which is not a public address
      hint: set allow_private, if you trust the operator of example.org
    """

    def __init__(self, url: str, *, allow_private: bool = False) -> None:
        self._host = (urlsplit(url).hostname or "").lower()
        self._all = allow_private
        self._named: Address | None = None
        try:
            self._named = ipaddress.ip_address(self._host)
        except ValueError:  # a name
            self._all = allow_private or self._host == "localhost"

    def check(self, address: Address) -> None:
        """Checks that an address may be connected to."""
        if not (self._all or address == self._named or is_public(address)):
            raise SourceError(
                f"{self._host} is at {address}, which is not a public address",
                hint=f"set allow_private, if you trust the operator of {self._host}",
            )

    def open_socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """A socket to connect to an address, for an aiohttp connector."""
        family, kind, protocol, _, address = info
        self.check(ipaddress.ip_address(address[0]))
        return keep_alive(socket.socket(family, kind, protocol))


class CheckedResolver(AbstractResolver):
    """A resolver that rejects a name if any of its addresses is not allowed."""

    def __init__(self, addresses: Addresses, resolver: AbstractResolver) -> None:
        self._addresses, self._resolver = addresses, resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for result in found:
            self._addresses.check(ipaddress.ip_address(result["host"]))
        return found

    async def close(self) -> None:
        await self._resolver.close()

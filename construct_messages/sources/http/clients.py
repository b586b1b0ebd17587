"""The two HTTP clients: each sends one request and feeds one reader, urllib's blocking, aiohttp's not.

No redirect to another origin, no cookies, no decompression behind our back, every wait bounded by `Timeouts`. What the
response means is for `response.py` to say.
"""

from __future__ import annotations

import asyncio
import errno
import http.client
import io
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Executor
from functools import partial
from typing import IO, Any, Final, cast

import aiohttp
import yarl
from aiohttp.connector import Connection

from construct_messages.errors import SourceError, SourceTimeout, shown
from construct_messages.solutions import Solutions
from construct_messages.sources.http.paging import Page
from construct_messages.sources.http.response import ResponseReader, redirected
from construct_messages.sources.http.timeouts import CONNECT_SECONDS, Timeouts

_CHUNK: Final = 1 << 16
_AT_ONCE: Final = 1 << 14
"""How much is decoded before others of the event loop have their turn: see `ResponseReader.pieces`."""
# behind some data of a chunk: more of it; or its end, a next size that is not 0, and data (RFC 9112, section 7.1)
_CHUNK_BEGINS: Final = re.compile(rb"[^\r]|\r\n0*[1-9A-Fa-f][0-9A-Fa-f]*[^\r\n]*\r\n.", re.DOTALL)
_LONG: Final = 1 << 14  # bytes of a solution; where each is to be percent-encoded, they take some 20 ms
_REDIRECTS: Final = 5
_HEAD_LINE: Final = 1 << 16  # bytes, as in http.client


# --- urllib ---------------------------------------------------------------------------------------------------------


def read(
    request: urllib.request.Request, page: Page, timeouts: Timeouts, *handlers: urllib.request.BaseHandler
) -> Generator[Solutions]:
    """Sends a request that SPARQLWrapper made, and reads the answer; closing the generator closes the connection.

    Args:
        request: what to send.
        page: gives the reader for what comes back.
        timeouts: how long to wait.
        handlers: further handlers, such as one that knows digest authentication.
    """
    opener = urllib.request.build_opener(_NoRedirects, _Http(timeouts), _Https(timeouts), *handlers)
    with _follow(opener, request, page.url, timeouts) as response:
        reader = page.open(response.status, response.headers.get)
        while chunk := _receive(response, reader, timeouts):
            for piece in reader.pieces(chunk):
                yield from reader.feed(piece)
        reader.close()


def _receive(response: http.client.HTTPResponse, reader: ResponseReader, timeouts: Timeouts) -> bytes:
    """What came, at once if anything came: small chunks that are here already are taken together."""
    try:
        came = bytearray(response.read1(_CHUNK))
        if isinstance(response, _Response):  # and no refusal
            # what follows a body of some length is not of the body: there `read1` gives nothing
            while came and len(came) < _CHUNK and response.holds_more() and (more := response.read1(_CHUNK)):
                came += more
            if not came:
                response.check_end()
        return bytes(came)
    except SourceTimeout:
        raise
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (OSError, http.client.HTTPException) as error:
        raise reader.cut(reason(error)) from error


def _follow(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, url: str, timeouts: Timeouts
) -> http.client.HTTPResponse:
    for _ in range(_REDIRECTS):
        response = _open(opener, request, url, timeouts)
        try:
            target = redirected(request.full_url, response.status, response.headers.get)
        except SourceError:
            response.close()
            raise
        if target is None:
            return response
        response.close()
        request = urllib.request.Request(target, request.data, request.headers, method=request.get_method())
    raise _too_many_redirects(url)


def _open(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, url: str, timeouts: Timeouts
) -> http.client.HTTPResponse:
    try:
        return cast(http.client.HTTPResponse, opener.open(request, timeout=timeouts.to_connect()))
    except urllib.error.HTTPError as error:
        return cast(http.client.HTTPResponse, error)  # it is a response as well, and the reader's business
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise timeouts.unconnected() from error
        raise _unreachable(url, error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(url, error) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, *_: object) -> None:
        """`_follow` does it."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment] # takes any


class _Incoming(io.RawIOBase):
    """What a socket receives: each wait is bounded by what is left of the caller's timeouts, head and body alike."""

    def __init__(self, source: socket.socket, timeouts: Timeouts) -> None:
        self._socket, self._timeouts = source, timeouts
        self._open = source.makefile("rb", buffering=0)  # keeps the socket open when the connection closes it
        self.waits = True
        self.has_ended = False  # the other end has closed the connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._timeouts.remaining() if self.waits else 0)
        try:
            count = self._socket.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        self.has_ended = count == 0
        return count

    def close(self) -> None:
        self._open.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """http.client's, but for what it takes for a whole answer and for which answers it takes (RFC 9112)."""

    def __init__(self, timeouts: Timeouts, source: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(source, *args, **options)
        self.fp.close()
        self._incoming = _Incoming(source, timeouts)
        self.fp = io.BufferedReader(self._incoming)

    def begin(self) -> None:
        """Reads the head of the answer, past those of interim answers (RFC 9110, section 15.2)."""
        super().begin()
        while 100 <= self.status < 200 and self.status != http.HTTPStatus.SWITCHING_PROTOCOLS:
            self.headers = self.msg = None  # type: ignore[assignment] # as before the first
            super().begin()
        if self._incoming.has_ended:
            raise http.client.RemoteDisconnected("the connection was closed within the head of the answer")
        lengths = set(self.headers.get_all("Content-Length", ()))
        if len(lengths) + ("Transfer-Encoding" in self.headers) > 1:
            raise http.client.HTTPException("the answer says in two ways how long it is")

    def holds_more(self) -> bool:
        """Whether `read1` would give more of the body without waiting for it."""
        body: io.BufferedReader | None = self.fp
        if body is None:
            return False  # closed at its end
        self._incoming.waits = False
        try:
            ahead = body.peek()
        finally:
            self._incoming.waits = True
        return bool(_CHUNK_BEGINS.match(ahead) if self.chunked else ahead)

    def check_end(self) -> None:
        """Nothing, where the framing says that the body is at its end.

        Raises:
            HTTPException: the connection was closed within the last chunk, which http.client takes for its end.
        """
        if self.chunked and self._incoming.has_ended:
            raise http.client.HTTPException("the connection was closed within the last chunk")


class _Connection(http.client.HTTPConnection):
    def __init__(self, timeouts: Timeouts, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._timeouts = timeouts
        self.response_class = partial(_Response, timeouts)  # type: ignore[assignment] # it makes one

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._timeouts.remaining())


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS: `connect` goes on to HTTPSConnection's."""


class _Http(urllib.request.HTTPHandler):
    def __init__(self, timeouts: Timeouts) -> None:
        super().__init__()
        self._connection = partial(_Connection, timeouts)

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, timeouts: Timeouts) -> None:
        super().__init__()
        self._connection = partial(_SecureConnection, timeouts)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)


class Digest(urllib.request.HTTPDigestAuthHandler):
    """Digest authentication that closes the answers it asks again for, where urllib's leaves them open."""

    def __init__(self, url: str, user: str, password: str) -> None:
        passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        passwords.add_password(None, url, user, password)
        super().__init__(passwords)

    def http_error_401(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage
    ) -> http.client.HTTPResponse | None:
        fp.close()
        return cast(http.client.HTTPResponse | None, super().http_error_401(req, fp, code, msg, headers))


# --- aiohttp --------------------------------------------------------------------------------------------------------


def new_session(
    *middlewares: aiohttp.ClientMiddlewareType,
    connector: aiohttp.TCPConnector | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    trust_env: bool = True,
) -> aiohttp.ClientSession:
    """A session with none of aiohttp's defaults that would change what is sent or received.

    Args:
        middlewares: around each request, such as one that knows digest authentication.
        connector: the pool of connections; None: a new one.
        connect_seconds: how long a connection may take.
        trust_env: whether the environment names proxies, as urllib takes them.
    """
    return aiohttp.ClientSession(
        connector=connector,
        response_class=_ClientResponse,
        trust_env=trust_env,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        # `Timeouts` bounds the rest
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        middlewares=middlewares,
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),  # what is sent is the request's
        read_bufsize=_CHUNK,
        max_line_size=_HEAD_LINE,
        max_field_size=_HEAD_LINE,
    )


class _ClientResponse(aiohttp.ClientResponse):
    """aiohttp's, but that no connection is used again whose framing is faulty (RFC 9112, section 6.1)."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        protocol = connection.protocol
        await super().start(connection)
        if protocol is not None and self.version == aiohttp.HttpVersion10 and "Transfer-Encoding" in self.headers:
            protocol.force_close()
            if self.connection is None:  # the answer was whole at once, and its connection is back in the pool
                protocol.close()
        return self


async def aread(
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    page: Page,
    timeouts: Timeouts,
    executor: Executor | None = None,
) -> AsyncGenerator[Solutions]:
    """The same as `read`, for asyncio; long solutions are decoded in the threads of `executor`."""
    loop = asyncio.get_running_loop()
    response = await asend(session, request, page.url, timeouts)
    try:
        reader = page.open(response.status, response.headers.get)
        while chunk := await areceive(response, timeouts, reader.cut):
            for piece in reader.pieces(chunk, _AT_ONCE):
                batches = reader.feed(piece)
                if reader.held > _LONG:  # what a long solution takes, it takes at its end
                    batches = iter(await loop.run_in_executor(executor, list, batches))
                for batch in batches:
                    yield batch
                await asyncio.sleep(0)
        reader.close()
    finally:
        response.close()  # whose connection is back in the pool, if this was its end


async def areceive(response: aiohttp.ClientResponse, timeouts: Timeouts, cut: Callable[[object], SourceError]) -> bytes:
    """What came of a body, empty at its end.

    Args:
        response: the response.
        timeouts: how long to wait.
        cut: makes the error for a body that cannot be read to its end.
    """
    left = timeouts.remaining()
    try:
        async with asyncio.timeout(left):
            data = await response.content.readany()
        if not data and (error := response.content.exception()) is not None:
            raise error  # it came with the end
        return data
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (OSError, aiohttp.ClientError, RuntimeError) as error:  # aiohttp's RuntimeError: the session was closed
        raise cut(reason(error)) from error


async def asend(
    session: aiohttp.ClientSession, request: urllib.request.Request, url: str, timeouts: Timeouts
) -> aiohttp.ClientResponse:
    """The response to a request, whose body is still to be read; the caller closes it.

    Args:
        session: what sends it.
        request: what to send.
        url: the endpoint, as errors name it.
        timeouts: how long to wait.

    Raises:
        SourceError: no response, or a redirect that is not followed.
        SourceTimeout: no response in time.
    """
    target: str | None = request.full_url
    for _ in range(_REDIRECTS):
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
    raise _too_many_redirects(url)


async def _aopen(
    session: aiohttp.ClientSession, request: urllib.request.Request, target: str, url: str, timeouts: Timeouts
) -> aiohttp.ClientResponse:
    left = timeouts.remaining()
    try:
        async with asyncio.timeout(left):
            response = await session.request(
                request.get_method(),
                yarl.URL(target, encoded=True),
                data=request.data,
                headers=dict(request.header_items()),
                allow_redirects=False,
            )
    except aiohttp.ConnectionTimeoutError as error:
        raise timeouts.unconnected() from error
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (OSError, aiohttp.ClientError) as error:
        raise _unreachable(url, error) from error
    _watch(response)
    return response


def _watch(response: aiohttp.ClientResponse) -> None:
    """Makes the loss of the connection an error of the body where aiohttp does not.

    It would wait for ever behind a chunk whose framing is damaged, and take a reset for the end of a body that ends
    with the connection.
    """
    content = response.content
    protocol = None if response.connection is None else response.connection.protocol
    closed = None if protocol is None else protocol.closed
    if protocol is None or closed is None:
        return  # the whole body is here
    is_delimited = "Content-Length" in response.headers or "Transfer-Encoding" in response.headers

    def end(closed: asyncio.Future[None]) -> None:
        cause = closed.exception() or (protocol.exception() if is_delimited else None)
        if cause is not None and content.exception() is None and not (is_delimited and content.is_eof()):
            content.set_exception(aiohttp.ClientPayloadError(reason(cause)))

    def forget() -> None:
        closed.remove_done_callback(end)

    closed.remove_done_callback(_notice)  # of the last response
    closed.add_done_callback(_notice)
    closed.add_done_callback(end)
    if is_delimited:  # then the connection may serve further requests, and must not keep this response
        content.on_eof(forget)


def _notice(closed: asyncio.Future[None]) -> None:
    """Takes an exception that is nobody's: a connection that is lost while it waits for a request."""
    closed.exception()


# --- errors both have -----------------------------------------------------------------------------------------------

# those of a server that is restarting, overloaded, or behind a network that is
_PASSING: Final = frozenset(
    (errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ENETUNREACH, errno.EHOSTUNREACH)
)


def _unreachable(url: str, cause: BaseException | str) -> SourceError:
    return SourceError(
        f"{url} could not be reached: {reason(cause)}",
        hint="check the URL, and that the endpoint runs",
        transient=_passes(cause),
    )


def _passes(cause: object) -> bool:
    match cause:
        case aiohttp.ClientConnectorError():
            return _passes(cause.os_error)
        case socket.gaierror():
            return cause.errno == socket.EAI_AGAIN
        case ssl.SSLError():
            return False
        case ConnectionError() | aiohttp.ServerDisconnectedError():
            return True
    return isinstance(cause, OSError) and cause.errno in _PASSING


def _too_many_redirects(url: str) -> SourceError:
    return SourceError(f"{url} redirected more than {_REDIRECTS} times")


def reason(cause: object) -> str:
    """What a library's exception says, or its kind where it says nothing; never the URL, which may hold the query."""
    match cause:
        case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
            cause = cause.message
        case aiohttp.ServerDisconnectedError():
            cause = "the connection was closed before an answer"  # aiohttp may show the head of one
    return shown(str(cause)) or type(cause).__name__

"""The blocking HTTP client: sends one request by urllib, and receives the bytes of the response.

Follows no redirect to another origin, keeps no cookies, decompresses nothing, and limits every wait by `Timeouts`.
`aiohttp_client.py` does the same for asyncio, but takes longer to import (180 ms) than a short
answer, and a loop that is driven from blocking code needs a thread in every notebook.

urllib closes each connection after its response. `Connections` keeps it for the next request, as http.client can.
"""

from __future__ import annotations

import http.client
import io
import os
import re
import selectors
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, cast

from construct_messages.errors import SourceError, SourceTimeout
from construct_messages.sparql.client.responses import (
    BodyFraming,
    Credentials,
    Exchange,
    check_lengths,
    is_lost,
    reason,
    unreachable,
)
from construct_messages.sparql.client.retries import Timeouts, keep_alive

_CHUNK: Final = 1 << 16
_CLOSE_SECONDS: Final = 5.0  # until a connection closes after the endpoint announced its end
_IDLE_SECONDS: Final = 15.0  # less than in most servers, which would close a connection first
_IDLE_MOST: Final = 4  # connections
# after some data of a chunk: more of it; or its end, a next size that is not 0, and data (RFC 9112, section 7.1)
_CHUNK_BEGINS: Final = re.compile(rb"[^\r]|\r\n0*[1-9A-Fa-f][0-9A-Fa-f]*[^\r\n]*\r\n.", re.DOTALL)


_Key: TypeAlias = tuple[type["_Connection"], str, str | None, int]
"""The class of a connection, its host and port, those behind a proxy, and the process: a fork must not use it, too."""


class Connections:
    """Connections whose response was read to its end, for the next requests; usable by several threads."""

    def __init__(self) -> None:
        self._idle: list[tuple[_Key, _Connection, float]] = []

    def take(self, key: _Key) -> _Connection | None:
        """Returns a connection on which the server waits for a request, or None."""
        kept = []
        found: _Connection | None = None
        while self._idle and found is None:
            entry = self._idle.pop()
            of, connection, since = entry
            if of != key:
                kept.append(entry)
            elif time.monotonic() - since < _IDLE_SECONDS and connection.is_silent():
                found = connection
            else:
                connection.close()
        self._idle += kept
        return found

    def keep(self, key: _Key, connection: _Connection) -> None:
        """Takes a connection back."""
        self._idle.append((key, connection, time.monotonic()))
        while len(self._idle) > _IDLE_MOST:
            self._idle.pop(0)[1].close()

    def close(self) -> None:
        """Closes all that are not in use."""
        while self._idle:
            self._idle.pop()[1].close()

    __del__ = close


def receive(response: Response, timeouts: Timeouts, cut: Callable[[object], SourceError]) -> bytes:
    """Returns the next bytes of a body as soon as there are any; empty at its end. Small available chunks are joined.

    `cut` returns the error for a body that cannot be read to its end.
    """
    try:
        came = bytearray(response.read1(_CHUNK))
        # data after the announced length is not part of the body: `read1` returns nothing there
        while (
            came
            and len(came) < _CHUNK
            and response.holds_more()
            and (more := response.read1(_CHUNK))
        ):
            came += more
        if not came:
            response.end()
        return bytes(came)
    except SourceTimeout:
        raise
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except (OSError, http.client.HTTPException) as error:
        raise cut(reason(error)) from error


def send(
    request: urllib.request.Request,
    url: str,
    timeouts: Timeouts,
    credentials: Credentials | None = None,
    connections: Connections | None = None,
) -> Response:
    """Returns the response to a request that changes nothing, with its unread body; the caller closes it.

    `url` is for errors. The connection is one of `connections` if possible, and kept there when the response is closed
    after the end of its body. Data after a body that is only delimited by its length is read as part of it.
    """
    opener = (
        urllib.request.OpenerDirector()
    )  # without the handlers for statuses: `Exchange` has the rules
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        _Http(timeouts, connections),
        _Https(timeouts, connections),
    ):
        opener.add_handler(handler)
    exchange = Exchange(request, url, credentials)
    while True:
        response = _open(opener, exchange.request, url, timeouts)
        try:
            is_answer = exchange.ends(response.status, response.headers.get)
        except SourceError:
            response.close()
            raise
        if is_answer:
            if BodyFraming.of(response.headers.get).is_only_length:
                response.read_past_length()
            return response
        response.close()


def fetch(
    request: urllib.request.Request, name: str, *, seconds: float, most: int
) -> tuple[int, bytes]:
    """Returns the status and the body of a response of at most `most` bytes. `name` is the URL for errors."""
    timeouts, body = Timeouts(seconds), bytearray()
    try:
        response = send(request, name, timeouts)
        try:
            while chunk := receive(
                response,
                timeouts,
                lambda cut: SourceError(f"the response of {name} was interrupted: {cut}"),
            ):
                body += chunk
                if len(body) > most:
                    raise SourceError(f"{name} sent more than {most} bytes")
        finally:
            response.close()
    except SourceTimeout as error:
        raise SourceTimeout(f"{name} did not answer within {seconds:g} seconds") from error
    return response.status, bytes(body)


def _open(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    url: str,
    timeouts: Timeouts,
) -> Response:
    try:
        return cast(Response, opener.open(request, timeout=timeouts.to_connect()))
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise timeouts.unconnected() from error
        raise unreachable(url, error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(url, error) from error


class _Incoming(io.RawIOBase):
    """The input of a socket; the caller's timeouts limit each wait for head and body."""

    def __init__(self, source: socket.socket, connection: _Connection) -> None:
        self._socket, self._connection = source, connection
        # keeps the socket open when the connection closes it
        self._open = source.makefile("rb", buffering=0)
        self.waits = True
        self.patience: float | None = (
            None  # seconds to wait for further data; None: by the timeouts
        )
        self.has_ended = False  # the other end has closed the connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining = self._connection.timeouts.remaining() if self.waits else 0
        if self.patience is not None:
            remaining = self.patience if remaining is None else min(remaining, self.patience)
        self._socket.settimeout(remaining)
        try:
            count = self._socket.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None if self.patience is None else 0
        except TimeoutError:
            if self.patience is None:
                raise
            return 0
        self.has_ended = count == 0
        self._connection.was_answered = self._connection.was_answered or not self.has_ended
        return count

    def close(self) -> None:
        self._open.close()
        super().close()


class Response(http.client.HTTPResponse):
    """A response that rejects ambiguous and truncated framing (RFC 9112), where http.client does not.

    `on_close`: is called once when it is closed, with whether the connection can have another request.
    """

    def __init__(
        self, connection: _Connection, source: socket.socket, *args: Any, **options: Any
    ) -> None:
        super().__init__(source, *args, **options)
        self.fp.close()
        self._incoming = _Incoming(source, connection)
        self.fp = io.BufferedReader(self._incoming)
        self._missing: int | None = None  # bytes of the body, if data after it counts as well
        self._is_whole = False
        self.on_close: Callable[[bool], None] | None = None

    def begin(self) -> None:
        """Reads the head of the response, after interim responses (RFC 9110, section 15.2)."""
        super().begin()
        while 100 <= self.status < 200 and self.status != http.HTTPStatus.SWITCHING_PROTOCOLS:
            self.headers = self.msg = None  # type: ignore[assignment] # as before the first
            super().begin()
        if self._incoming.has_ended:
            raise http.client.RemoteDisconnected(
                "the connection was closed within the head of the answer"
            )
        try:
            lengths = self.headers.get_all("Content-Length", ())
            check_lengths(lengths, has_coding="Transfer-Encoding" in self.headers)
        except ValueError as error:
            raise http.client.HTTPException(str(error)) from error

    def read_past_length(self) -> None:
        """Makes data after the body part of it, up to the end of the connection, so that the reader detects it.

        If the connection stays open after the body, only data that has already arrived counts.
        """
        self._missing, self.length = self.length, None

    def read1(self, n: int = -1) -> bytes:
        """See `http.client.HTTPResponse.read1`."""
        data = super().read1(n)
        if self._missing is not None:
            self._missing -= len(data)
            if self._missing <= 0:
                self._incoming.patience = _CLOSE_SECONDS if self.will_close else 0
        return data

    def holds_more(self) -> bool:
        """Whether `read1` would return more of the body without waiting."""
        body: io.BufferedReader | None = self.fp
        if body is None:
            return False  # closed at its end
        self._incoming.waits = False
        try:
            ahead = body.peek()
        finally:
            self._incoming.waits = True
        return bool(_CHUNK_BEGINS.match(ahead) if self.chunked else ahead)

    def end(self) -> None:
        """Ends a body that has no more data. Raises `HTTPException` if the connection was closed within the last chunk,
        which http.client accepts as its end.
        """
        if self.chunked and self._incoming.has_ended:
            raise http.client.HTTPException("the connection was closed within the last chunk")
        length = self.length if self._missing is None else self._missing
        self._is_whole = bool(self.chunked) or length == 0

    def _close_conn(self) -> None:
        # http.client calls it at the end of the body; data after it would begin the next response
        if self.will_close is False and not self._incoming.has_ended:
            self._incoming.waits, self._incoming.patience = False, None
            try:
                self.will_close = bool(self.fp.peek()) or self._incoming.has_ended
            except OSError:
                self.will_close = True
            self._incoming.has_ended = False  # not within the body
        super()._close_conn()  # type: ignore[misc] # it is not in its interface

    def close(self) -> None:
        """Closes the response, and its connection unless it can have another request."""
        super().close()
        if self.on_close is not None:
            on_close, self.on_close = self.on_close, None
            on_close(self._is_whole and not self.will_close)


class _Connection(http.client.HTTPConnection):
    """`timeouts`: those of the request. `was_answered`: whether anything came since the request."""

    def __init__(self, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self.timeouts = Timeouts(None)
        self.was_answered = False
        self.response_class = partial(Response, self)  # type: ignore[assignment] # it makes one

    def connect(self) -> None:
        super().connect()
        keep_alive(self.sock).settimeout(self.timeouts.remaining())

    def begin(self, timeouts: Timeouts) -> None:
        """Prepares the connection for the next request."""
        self.timeouts, self.was_answered = timeouts, False
        if self.sock is not None:
            self.sock.settimeout(timeouts.remaining())

    def is_silent(self) -> bool:
        """Whether the server has neither closed the connection nor sent anything."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            return not selector.select(0)


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS: `connect` calls HTTPSConnection's."""


class _Handler(urllib.request.AbstractHTTPHandler):
    """Sends requests over kept connections, and keeps them; urllib's own handler closes each."""

    def __init__(self, timeouts: Timeouts, connections: Connections | None) -> None:
        super().__init__()
        self._timeouts, self._connections = timeouts, connections

    def answer(self, kind: type[_Connection], request: urllib.request.Request) -> Response:
        """Sends a request; a second time if a kept connection turns out to be closed."""
        headers = {**request.headers, **request.unredirected_hdrs}
        headers = {name.title(): value for name, value in headers.items()}
        tunnel: str | None = request._tunnel_host  # type: ignore[attr-defined] # urllib's own handler reads it, too
        to_proxy = {}
        if tunnel is not None and _TO_PROXY in headers:
            to_proxy[_TO_PROXY] = headers.pop(_TO_PROXY)
        if self._connections is None:
            headers["Connection"] = "close"
        key = kind, request.host, tunnel, os.getpid()
        while True:
            connection = None if self._connections is None else self._connections.take(key)
            is_kept = connection is not None
            if connection is None:
                connection = kind(request.host, timeout=request.timeout)
                if tunnel is not None:
                    connection.set_tunnel(tunnel, headers=to_proxy)
            connection.begin(self._timeouts)
            try:
                response = _answer(connection, request, headers)
            except BaseException as error:
                connection.close()
                if not (is_kept and is_lost(error)) or connection.was_answered:
                    raise
            else:
                response.on_close = partial(self._end, key, connection)
                return response

    def _end(self, key: _Key, connection: _Connection, can_be_used: bool) -> None:
        if can_be_used and self._connections is not None:
            self._connections.keep(key, connection)
        else:
            connection.close()


_TO_PROXY: Final = "Proxy-Authorization"


def _answer(
    connection: _Connection, request: urllib.request.Request, headers: dict[str, str]
) -> Response:
    try:
        connection.request(request.get_method(), request.selector, request.data, headers)
    except TimeoutError as error:
        raise urllib.error.URLError(error) from error
    return cast(Response, connection.getresponse())


class _Http(_Handler):
    http_request = urllib.request.AbstractHTTPHandler.do_request_

    def http_open(self, req: urllib.request.Request) -> Response:
        return self.answer(_Connection, req)


class _Https(_Handler):
    https_request = urllib.request.AbstractHTTPHandler.do_request_

    def https_open(self, req: urllib.request.Request) -> Response:
        return self.answer(_SecureConnection, req)

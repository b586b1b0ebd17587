"""The blocking HTTP client: sends one request by urllib, and receives the bytes of the response.

Follows no redirect to another origin, keeps no cookies, decompresses nothing, and limits every wait by `Timeouts`.
`aiohttp_client.py` does the same for asyncio, but takes longer to import (180 ms) than a short
answer, and a loop that is driven from blocking code needs a thread in every notebook.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from construct_messages.errors import SourceError, SourceTimeout
from construct_messages.sparql.client.responses import (
    BodyFraming,
    Credentials,
    Exchange,
    check_lengths,
    reason,
    unreachable,
)
from construct_messages.sparql.client.retries import Timeouts, keep_alive

_CHUNK: Final = 1 << 16
_CLOSE_SECONDS: Final = 5.0  # until a connection closes after the endpoint announced its end
# after some data of a chunk: more of it; or its end, a next size that is not 0, and data (RFC 9112, section 7.1)
_CHUNK_BEGINS: Final = re.compile(rb"[^\r]|\r\n0*[1-9A-Fa-f][0-9A-Fa-f]*[^\r\n]*\r\n.", re.DOTALL)


def receive(
    response: http.client.HTTPResponse, timeouts: Timeouts, cut: Callable[[object], SourceError]
) -> bytes:
    """Returns the next bytes of a body as soon as there are any; empty at its end. Small available chunks are joined.

    `cut` returns the error for a body that cannot be read to its end.
    """
    try:
        came = bytearray(response.read1(_CHUNK))
        if isinstance(response, _Response):  # and not an error response
            # data after the announced length is not part of the body: `read1` returns nothing there
            while (
                came
                and len(came) < _CHUNK
                and response.holds_more()
                and (more := response.read1(_CHUNK))
            ):
                came += more
            if not came:
                response.check_end()
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
) -> http.client.HTTPResponse:
    """Returns the response to a request with its unread body; the caller closes it. `url` is for errors.

    Data after a body that is only delimited by its length is read as part of it.
    """
    opener = urllib.request.build_opener(_NoRedirects, _Http(timeouts), _Https(timeouts))
    exchange = Exchange(request, url, credentials)
    while True:
        response = _open(opener, exchange.request, url, timeouts)
        try:
            is_answer = exchange.ends(response.status, response.headers.get)
        except SourceError:
            response.close()
            raise
        if is_answer:
            if (
                isinstance(response, _Response)
                and BodyFraming.of(response.headers.get).is_only_length
            ):
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
) -> http.client.HTTPResponse:
    try:
        return cast(http.client.HTTPResponse, opener.open(request, timeout=timeouts.to_connect()))
    except urllib.error.HTTPError as error:
        # it is a response as well, which the caller reads
        return cast(http.client.HTTPResponse, error)
    except TimeoutError as error:
        raise timeouts.exhausted() from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise timeouts.unconnected() from error
        raise unreachable(url, error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(url, error) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, *_: object) -> None:
        """Does nothing: `send` handles redirects."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment] # takes any


class _Incoming(io.RawIOBase):
    """The input of a socket; the caller's timeouts limit each wait for head and body."""

    def __init__(self, source: socket.socket, timeouts: Timeouts) -> None:
        self._socket, self._timeouts = source, timeouts
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
        remaining = self._timeouts.remaining() if self.waits else 0
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
        return count

    def close(self) -> None:
        self._open.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response that rejects ambiguous and truncated framing (RFC 9112), where http.client does not."""

    def __init__(
        self, timeouts: Timeouts, source: socket.socket, *args: Any, **options: Any
    ) -> None:
        super().__init__(source, *args, **options)
        self.fp.close()
        self._incoming = _Incoming(source, timeouts)
        self.fp = io.BufferedReader(self._incoming)
        self._missing: int | None = None  # bytes of the body, if data after it counts as well

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

    def check_end(self) -> None:
        """Raises `HTTPException` if the connection was closed within the last chunk, which http.client accepts as its
        end.
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
        keep_alive(self.sock).settimeout(self._timeouts.remaining())


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS: `connect` calls HTTPSConnection's."""


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

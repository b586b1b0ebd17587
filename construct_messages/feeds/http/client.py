"""Requests of subscribers and publishers: sent again where a failure may pass; refusals as errors.

RFC 9110 (status codes, Retry-After), RFC 9457 (the content of a refusal), RFC 6455 (WebSocket). Nothing about streams.
"""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Container,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Final, Self
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import Request

import aiohttp

from construct_messages.errors import LimitExceeded, SourceError, SourceTimeout, UsageError, shown
from construct_messages.net.aiohttp_client import areceive, asend, new_session
from construct_messages.net.failures import unreachable
from construct_messages.net.oauth import BearerToken, ClientCredentials, tokens_for
from construct_messages.net.responses import seconds
from construct_messages.net.retries import Attempts
from construct_messages.net.timeouts import Timeouts
from construct_messages.net.urls import check_url, without_query

_GONE: Final = 410
_PASSING: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Status codes of what may be otherwise in a moment."""
_BODY_BYTES: Final = 1 << 20  # of refusals and acknowledgements
_PING_SECONDS: Final = 20.0


def check_stream_url(url: str) -> None:
    """Checks that requests can be sent to a URL; also one of ws or wss.

    Raises:
        UsageError: they cannot, or it holds credentials or a fragment.
    """
    try:
        credentials = "@" in urlsplit(url).netloc
    except ValueError:  # brackets that are none
        credentials = False
    if credentials:
        raise UsageError("the URL holds credentials", hint="give a token")
    check_url(as_http(url))


def target_of(url: str, said: str, origins: Container[str] = ()) -> str:
    """The absolute URL of what an answer names, without a fragment.

    Args:
        url: of the request.
        said: what is named there.
        origins: other ones that are trusted, as `origin_of` writes them.

    Raises:
        UsageError: no request can be sent there.
        SourceError: it is at another origin.

    >>> target_of("http://example.org/streams/a", "a/events")
    'http://example.org/streams/a/events'
    """
    try:
        found = urldefrag(urljoin(url, said)).url
    except ValueError:
        found = said
    check_stream_url(found)
    if origin_of(found) != origin_of(url) and origin_of(found) not in origins:
        raise SourceError(
            f"{without_query(url)} names {without_query(found)}, which is at another origin",
            hint="give that URL itself, or --allow-origin, if you trust it; a server behind a proxy needs public_url",
        )
    return found


_PORTS: Final = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """The origin of a URL that requests can be sent to (RFC 6454, section 4).

    >>> origin_of("WSS://Example.org/streams/a/socket"), origin_of("http://[::1]:8080/")
    ('https://example.org:443', 'http://[::1]:8080')
    """
    parts = urlsplit(as_http(url))
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port or _PORTS.get(parts.scheme)}"


def as_http(url: str) -> str:
    """A URL of ws or wss as one of http or https.

    >>> as_http("wss://example.org/streams/a/socket"), as_http("http://example.org/")
    ('https://example.org/streams/a/socket', 'http://example.org/')
    """
    return f"http{url[2:]}" if url.lower().startswith(("ws:", "wss:")) else url


class Client:
    """A session with one server, as an async context manager.

    Args:
        origin: of the server, as `origin_of` writes it.
        token: sent as `Authorization: Bearer` to that server, and to no other; or the credentials that tokens are
            fetched with; None: none.
        retries: how often a request is sent again.
        idle_seconds: how long the server may be silent.
    """

    def __init__(
        self, origin: str, token: BearerToken | None, retries: int, idle_seconds: float
    ) -> None:
        self._origin, self._token = origin, token
        self._retries = retries
        self._timeouts = Timeouts(None, stall=idle_seconds)

    async def __aenter__(self) -> Self:
        self._session = new_session(*([] if self._token is None else [self._authorized]))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    def attempts(self) -> Attempts:
        """The attempts at what may fail in a way that passes, to iterate with `async for`; the last error is raised."""
        return Attempts(self._retries, self._timeouts, lambda _: True)

    async def _authorized(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Sends a request of aiohttp, with a token if it is to the server: a client middleware."""
        if origin_of(str(request.url)) != self._origin:
            return await handler(request)
        if isinstance(self._token, ClientCredentials):
            return await tokens_for(self._token)(request, handler)
        request.headers["Authorization"] = f"Bearer {self._token}"
        return await handler(request)

    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterable[bytes] | None = None,
        accepted: Container[int] = (),
    ) -> aiohttp.ClientResponse:
        """The response to a request, whose body is still to be read; the caller closes it.

        Args:
            method, url, headers, body: of the request; a body that is sent as it comes is sent once.
            accepted: status codes that are no refusals here.

        Raises:
            SourceError: none, or a refusal, whose status is `response_status`.
        """
        request = Request(url, data=body, headers=dict(headers), method=method)  # type: ignore[arg-type] # aiohttp sends it
        with _timed():
            response = await asend(self._session, request, without_query(url), self._timeouts)
        if response.status < 300 or response.status in accepted:
            return response
        said = await self.body(response, url)
        raise refusal(url, response.status, said, response.headers.get("Retry-After"))

    async def fetch(
        self, url: str, headers: Mapping[str, str], most: int, accepted: Container[int] = ()
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """The response to a GET, which is repeated according to `attempts`, and its body; see `open` and `body`."""
        async for attempt in self.attempts():
            with attempt:
                response = await self.open("GET", url, headers, accepted=accepted)
                body = await self.body(response, url, most)
        return response, body

    async def chunks(self, response: aiohttp.ClientResponse, url: str) -> AsyncGenerator[bytes]:
        """The body of a response as it comes; the response is closed at the end.

        Raises:
            SourceError: it breaks off.
            SourceTimeout: nothing comes for too long.
        """
        try:
            while True:
                with _timed():
                    chunk = await areceive(response, self._timeouts, _cut(url))
                if not chunk:
                    return
                yield chunk
        finally:
            response.close()

    @asynccontextmanager
    async def reading(
        self, response: aiohttp.ClientResponse, url: str
    ) -> AsyncGenerator[AsyncGenerator[bytes]]:
        """`chunks`, closed with the response at the end of the block, also where nothing was read."""
        try:
            async with aclosing(self.chunks(response, url)) as chunks:
                yield chunks
        finally:
            response.close()

    async def body(
        self, response: aiohttp.ClientResponse, url: str, most: int = _BODY_BYTES
    ) -> bytes:
        """The body of a response; the response is closed.

        Args:
            response: the response.
            url: of the request.
            most: how many bytes it may have.

        Raises:
            SourceError: it breaks off.
            LimitExceeded: it is too long.
        """
        body = bytearray()
        async with aclosing(self.chunks(response, url)) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise LimitExceeded(f"{without_query(url)} answers with more than {most} bytes")
        return bytes(body)

    async def connect(
        self, url: str, subprotocols: Sequence[str], most: int
    ) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket that was opened; the caller closes it.

        Args:
            url: of ws, wss, http or https.
            subprotocols: that are offered, best first.
            most: how many bytes a message may have.

        Raises:
            SourceError: the server refuses; `response_status` is that of its answer.
        """
        try:
            return await self._session.ws_connect(
                as_http(url),
                protocols=subprotocols,
                heartbeat=_PING_SECONDS,
                max_msg_size=most,
            )
        except aiohttp.WSServerHandshakeError as error:
            retry_after = error.headers.get("Retry-After") if error.headers else None
            raise refusal(url, error.status, b"", retry_after) from error
        except (OSError, aiohttp.ClientError) as error:
            raise unreachable(without_query(url), error) from error


def link(response: aiohttp.ClientResponse, relation: str) -> str | None:
    """The absolute target of a link in the headers of a response (RFC 8288); None: there is none."""
    links: Mapping[str, Mapping[str, object]] = response.links
    return str(links[relation]["url"]) if relation in links else None


def refusal(url: str, status: int, said: bytes, retry_after: str | None = None) -> SourceError:
    """The error for an answer that is none.

    Args:
        url: of the request.
        status: of the answer.
        said: its body.
        retry_after: the header.

    >>> refusal("https://example.org/streams/a?after=9", 404, b'{"detail": "there is no stream a"}').message
    'https://example.org/streams/a answered with status 404: there is no stream a'
    """
    try:
        document = json.loads(said)
    except ValueError:
        document = None
    problem = document if isinstance(document, dict) else {}
    detail, hint = problem.get("detail"), problem.get("hint")
    return SourceError(
        f"{without_query(url)} answered with status {status}"
        + (f": {shown(detail)}" if isinstance(detail, str) else ""),
        status=status if status == _GONE else None,
        response_status=status,
        hint=shown(hint) if isinstance(hint, str) else None,
        retry_after=seconds(retry_after),
        transient=status in _PASSING,
    )


@contextmanager
def _timed() -> Iterator[None]:
    """Silence is a failure that may pass: the connection may have been lost without a word."""
    try:
        yield
    except SourceTimeout as error:
        error.transient = True
        raise


def _cut(url: str) -> Callable[[object], SourceError]:
    return lambda reason: SourceError(f"{without_query(url)} broke off: {reason}", transient=True)

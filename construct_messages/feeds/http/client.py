"""Requests of subscribers and publishers: retries temporary failures, and raises errors for rejections.

RFC 9110 (status codes, Retry-After), RFC 9457 (the content of a rejection), RFC 6455 (WebSocket). No streams here.
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
from typing import Final, Self
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import Request

import aiohttp
from multidict import CIMultiDict

from construct_messages.errors import (
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UsageError,
    shown,
)
from construct_messages.feeds.connections import check_port
from construct_messages.feeds.table import address_of
from construct_messages.sparql.client.aiohttp_client import (
    aconnect,
    areceive,
    asend,
    new_session,
    unreachable,
)
from construct_messages.sparql.client.oauth import BearerToken, ClientCredentials, tokens_for
from construct_messages.sparql.client.responses import (
    Credentials,
    Header,
    authorization,
    rejected,
)
from construct_messages.sparql.client.retries import Attempts, Timeouts
from construct_messages.sparql.client.urls import check_url, without_query

_UNAUTHORIZED: Final = 401
_GONE: Final = 410
_BODY_BYTES: Final = 1 << 20  # of rejections and acknowledgements
_PING_SECONDS: Final = 20.0


def check_stream_url(url: str) -> None:
    """Raises `UsageError` if requests cannot be sent to a URL, which may be one of ws or wss."""
    try:
        credentials = "@" in urlsplit(url).netloc
    except ValueError:  # invalid brackets
        credentials = False
    if credentials:
        raise UsageError("the URL holds credentials", hint="give a token")
    check_url(as_http(url))


def target_of(url: str, reference: str, origins: Container[str] = ()) -> str:
    """Returns the absolute URL of a reference in an answer, without a fragment.

    Raises `SourceError` for one at another origin that is not among the trusted `origins` (see `origin_of`).

    >>> target_of("http://example.org/streams/a", "a/events")
    'http://example.org/streams/a/events'
    """
    try:
        found = urldefrag(urljoin(url, reference)).url
    except ValueError:
        found = reference
    check_stream_url(found)
    if origin_of(found) != origin_of(url) and origin_of(found) not in origins:
        raise SourceError(
            f"{without_query(url)} names {without_query(found)}, which is at another origin",
            hint="give that URL itself, or --allow-origin, if you trust it; a server behind a proxy needs public_url",
        )
    return found


def origin_of(url: str) -> str:
    """Returns the origin of a URL that requests can be sent to (RFC 6454, section 4).

    >>> origin_of("WSS://Example.org/streams/a/socket"), origin_of("http://[::1]:8080/")
    ('https://example.org:443', 'http://[::1]:8080')
    """
    host, port = address_of(as_http(url))
    scheme = urlsplit(as_http(url)).scheme
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def as_http(url: str) -> str:
    """Returns a URL of ws or wss as one of http or https.

    >>> as_http("wss://example.org/streams/a/socket"), as_http("http://example.org/")
    ('https://example.org/streams/a/socket', 'http://example.org/')
    """
    return f"http{url[2:]}" if url.lower().startswith(("ws:", "wss:")) else url


class Client:
    """A session with one server, as an async context manager.

    Only requests to `origin`, see `origin_of`, have the token. `idle_seconds`: the maximal time without data.
    """

    def __init__(
        self, origin: str, token: BearerToken | None, retries: int, idle_seconds: float
    ) -> None:
        self._origin = origin
        self._authorization = authorization(None, None, token if isinstance(token, str) else None)
        self._credentials = tokens_for(token) if isinstance(token, ClientCredentials) else None
        self._retries = retries
        self._timeouts = Timeouts(None, stall=idle_seconds)

    async def __aenter__(self) -> Self:
        self._session = new_session()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    def attempts(self) -> Attempts:
        """Returns the attempts at an operation that may fail temporarily, for `async for`; the last error is raised."""
        return Attempts(self._retries, self._timeouts, lambda _: True)

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: object = None
    ) -> tuple[Request, Credentials | None]:
        """A request, with its credentials if it goes to the server."""
        is_own = origin_of(url) == self._origin
        given = {**headers, **(self._authorization if is_own else {})}
        request = Request(as_http(url), data=body, headers=given, method=method)  # type: ignore[arg-type] # aiohttp sends it
        return request, self._credentials if is_own else None

    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterable[bytes] | None = None,
        accepted: Container[int] = (),
    ) -> aiohttp.ClientResponse:
        """Returns the response to a request, with an unread body; the caller closes it. A body that is an iterator is
        sent once.

        Raises `SourceError` for a rejection, with its status as `response_status`, unless that is accepted.
        """
        request, credentials = self._request(method, url, headers, body)
        try:
            with _timed():
                response = await asend(
                    self._session, request, without_query(url), self._timeouts, credentials
                )
        except SourceError as error:
            if error.transient:
                await check_port(url, is_secure=origin_of(url).startswith("https:"))
            raise
        if response.status < 300 or response.status in accepted:
            return response
        content = await self.body(response, url)
        raise refusal(url, response.status, content, response.headers.get)

    async def fetch(
        self, url: str, headers: Mapping[str, str], most: int, accepted: Container[int] = ()
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Returns the response to a GET, which is repeated according to `attempts`, and its body; see `open` and
        `body`.
        """
        async for attempt in self.attempts():
            with attempt:
                response = await self.open("GET", url, headers, accepted=accepted)
                body = await self.body(response, url, most)
        return response, body

    async def chunks(self, response: aiohttp.ClientResponse, url: str) -> AsyncGenerator[bytes]:
        """Yields the body of a response; the response is closed at the end.

        Raises `SourceError` if it is truncated, and a temporary `SourceTimeout`.
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
        """Yields `chunks`, and closes them and the response at the end of the block, even if nothing was read."""
        try:
            async with aclosing(self.chunks(response, url)) as chunks:
                yield chunks
        finally:
            response.close()

    async def body(
        self, response: aiohttp.ClientResponse, url: str, most: int = _BODY_BYTES
    ) -> bytes:
        """Returns the body of a response of at most `most` bytes, and closes the response."""
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
        """Opens a WebSocket at a URL of ws, wss, http or https; the caller closes it. Subprotocols are offered best
        first.
        """
        request, credentials = self._request("GET", url, {})
        try:
            return await aconnect(
                self._session,
                request,
                credentials,
                protocols=subprotocols,
                heartbeat=_PING_SECONDS,
                max_msg_size=most,
            )
        except aiohttp.WSServerHandshakeError as error:
            headers = CIMultiDict(error.headers or {})
            raise refusal(url, error.status, b"", headers.get) from error
        except (OSError, aiohttp.ClientError) as error:
            failure = unreachable(without_query(url), error)
            if failure.transient:
                await check_port(url, is_secure=origin_of(url).startswith("https:"))
            raise failure from error


def link(response: aiohttp.ClientResponse, relation: str) -> str | None:
    """Returns the absolute target of a link in the headers of a response (RFC 8288); None: there is none."""
    links: Mapping[str, Mapping[str, object]] = response.links
    return str(links[relation]["url"]) if relation in links else None


def refusal(url: str, status: int, content: bytes, header: Header = lambda _: None) -> SourceError:
    """Returns the error for a failed request, by the status and the body of its answer.

    >>> refusal("https://example.org/streams/a?after=9", 404, b'{"detail": "there is no stream a"}').message
    'https://example.org/streams/a answered with status 404: there is no stream a'
    """
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    problem = document if isinstance(document, dict) else {}
    detail, hint = problem.get("detail"), problem.get("hint")
    error = rejected(
        f"{without_query(url)} answered with status {status}"
        + (f": {shown(detail)}" if isinstance(detail, str) else ""),
        status,
        header,
        hint=shown(hint) if isinstance(hint, str) else None,
        answer=status if status == _GONE else None,
    )
    error.transient |= status == 500
    return error


def ended(url: str, status: int, content: bytes) -> SourceError:
    """Returns the error for a request that was accepted, and ended with a status.

    With 401 its token has expired; a new request may have another one.
    """
    error = refusal(url, status, content)
    error.transient |= status == _UNAUTHORIZED
    return error


@contextmanager
def _timed() -> Iterator[None]:
    """Converts a timeout to a temporary failure: the connection may be lost without notice."""
    try:
        yield
    except SourceTimeout as error:
        error.transient = True
        raise


def _cut(url: str) -> Callable[[object], SourceError]:
    return lambda reason: SourceError(f"{without_query(url)} broke off: {reason}", transient=True)

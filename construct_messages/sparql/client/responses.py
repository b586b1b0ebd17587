"""What requests and responses of HTTP mean, without I/O: the one reader of heads under both HTTP clients (RFC 9110).

The clients open sockets and move bytes. This module decides which headers can be sent, what a response leads to (a
redirect, an answered challenge), how its body is delimited, and which failures are temporary.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, Protocol, Self, TypeAlias
from urllib.error import URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import (
    AbstractDigestAuthHandler,
    HTTPPasswordMgr,
    Request,
    getproxies_environment,
    parse_http_list,
    parse_keqv_list,
    proxy_bypass,
)

from construct_messages.errors import SourceError, UsageError, shown
from construct_messages.rdf.formats.media_types import OCTET_STREAM
from construct_messages.rdf.formats.results import find_results
from construct_messages.sparql.client.urls import without_query

# --- headers --------------------------------------------------------------------------------------
# Headers of requests: checks whether HTTP can send them, and writes credentials.

HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~\-]+")
"""The syntax of names of headers (RFC 9110, section 5.6.2)."""

TOKEN_URL: Final = "CONSTRUCT_MESSAGES_TOKEN_URL"
"""The environment variable with the token endpoint of the client in the environment; see `sparql/client/oauth.py`."""

_NOT_IN_HEADER: Final = re.compile(r"[^\t\x20-\x7e]")


def check_header(name: str, value: str) -> None:
    """Raises `UsageError` for a header that HTTP cannot send (RFC 9110, section 5)."""
    if not HEADER_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of an HTTP header", hint="write it as in 'X-Key: value'"
        )
    if _NOT_IN_HEADER.search(value):
        # not shown: it may be a secret
        raise UsageError(f"the header {name} has a value that HTTP cannot send")


def authorization(user: str | None, password: str | None, token: str | None) -> dict[str, str]:
    """The header for credentials: Basic (RFC 7617) for user and password, or Bearer (RFC 6750).

    >>> authorization(None, None, "t0")
    {'Authorization': 'Bearer t0'}
    """
    if token is not None:
        return {"Authorization": f"Bearer {token}"}
    if user is not None:
        pair = f"{user}:{password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def authorization_of_environment() -> dict[str, str]:
    """Returns the header for the credentials in the environment.

    They are `CONSTRUCT_MESSAGES_USER` and `CONSTRUCT_MESSAGES_PASSWORD` (Basic), or `CONSTRUCT_MESSAGES_TOKEN`
    (Bearer).
    """
    user, password, token = (
        os.environ.get(f"CONSTRUCT_MESSAGES_{name}") for name in ("USER", "PASSWORD", "TOKEN")
    )
    if (user is None) != (password is None) or (user is not None and token is not None):
        raise UsageError(
            "the credentials in the environment are incomplete, or there are two",
            hint="set both CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or only "
            "CONSTRUCT_MESSAGES_TOKEN",
        )
    return authorization(user, password, token)


# --- responses ------------------------------------------------------------------------------------

Header: TypeAlias = Callable[[str], str | None]
"""Returns the value of a response header, whose name may be in any case, or None."""

OK: Final = (200, 203)
"""The statuses of an answer; 203: a proxy changed it on its way (RFC 9110, section 15.3.4)."""
_DIGITS: Final = 20  # a number with more digits is not a length
_LENGTH_DIGITS: Final = 19  # those of 2⁶³
_FOREVER: Final = 1e9  # seconds; the sent number may be too large for a float


def content_type(header: Header) -> Message:
    """Returns the media type and its parameters, as a message that has only this header."""
    message = Message()
    message["Content-Type"] = header("Content-Type") or OCTET_STREAM
    return message


class BodyFraming(NamedTuple):
    """What marks the end of a body (RFC 9112, section 6.3)."""

    length: int | None  # the effective `Content-Length`
    coding: str  # the transfer coding
    # whether only the length marks the end of a result, because its format does not. Data after that length is not part
    # of the response, but a length that is too small would truncate the result, so clients check for further data
    is_only_length: bool

    @property
    def is_delimited(self) -> bool:
        """Whether the end is marked; otherwise it is the end of the connection."""
        return self.length is not None or self.coding == "chunked"

    @classmethod
    def of(cls, header: Header) -> Self:
        """
        >>> BodyFraming.of({"Content-Type": "text/tab-separated-values", "Content-Length": "10"}.get)
        BodyFraming(length=10, coding='identity', is_only_length=True)
        """
        coding, text = header("Transfer-Encoding"), header("Content-Length")
        length = None
        if coding is None and text is not None and text.isascii() and text.isdigit():
            # int() refuses thousands of digits; the first ones are more than any body has
            length = int(text.lstrip("0")[:_DIGITS] or "0")
        found = find_results(content_type(header).get_content_type())
        is_only_length = length is not None and found is not None and not found.tells_end
        return cls(length, (coding or "identity").strip().lower(), is_only_length)


def check_lengths(lengths: Sequence[str], *, has_coding: bool) -> None:
    """Raises `ValueError` for a head that declares no length that a body can have, or several."""
    distinct = set(lengths)
    if len(distinct) + has_coding > 1:
        raise ValueError("the answer declares its length in two ways")
    if any(len(length.lstrip("0")) > _LENGTH_DIGITS for length in distinct):
        raise ValueError("the answer declares an impossible length")


def date(value: str | None) -> datetime | None:
    """Returns the time in a header (RFC 9110, section 5.6.7), or None if there is none."""
    try:
        found = parsedate_to_datetime(value or "")
    except (ValueError, OverflowError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)


def seconds(retry_after: str | None) -> float | None:
    """Returns the seconds to wait by `Retry-After` (RFC 9110, section 10.2.3): a number, or until a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return min(float(retry_after), _FOREVER)
    found = date(retry_after)
    return None if found is None else max(0.0, (found - datetime.now(UTC)).total_seconds())


# --- failures -------------------------------------------------------------------------------------

TRANSIENT: Final = frozenset((408, 425, 429, 502, 503, 504))
"""Statuses of temporary failures, after which the same request may succeed."""


def rejected(
    message: str, status: int, header: Header, *, hint: str | None = None, answer: int | None = None
) -> SourceError:
    """The error for a response that is no answer; `answer` is the status of a server in front of that one."""
    return SourceError(
        message,
        status=answer,
        response_status=status,
        hint=hint,
        retry_after=seconds(header("Retry-After")),
        transient=status in TRANSIENT,
    )


# errors while a server or its network is restarting or overloaded
_PASSING: Final = frozenset(
    (
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.EPIPE,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
    )
)
# the errors of OpenSSL for an answer without TLS, in its versions
_PLAIN: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")


def unreachable(url: str, cause: BaseException | str, text: str = "") -> SourceError:
    """The error for a request without a response; `text` is for a cause whose own message may contain the query."""
    text = text or reason(cause)
    hint = "check the URL, and that the endpoint runs"
    if any(sign in text for sign in _PLAIN):
        hint = "name the port that has TLS, or write the URL of this one without TLS"
    elif (variable := _proxy_variable(url)) is not None:
        hint = f"check the URL, that the endpoint runs, and the proxy that {variable} of the environment names"
    return SourceError(f"{url} could not be reached: {text}", hint=hint, transient=_passes(cause))


def _proxy_variable(url: str) -> str | None:
    """The variable of the environment with the proxy for a URL, if there is one."""
    parts = urlsplit(url)
    if parts.scheme not in getproxies_environment() or proxy_bypass(parts.netloc):
        return None
    return f"{parts.scheme}_proxy"


def _passes(cause: object) -> bool:
    match cause:
        case socket.gaierror():
            return cause.errno == socket.EAI_AGAIN
        case ssl.SSLError():
            return False
        case ConnectionError():
            return True
    return isinstance(cause, OSError) and cause.errno in _PASSING


def is_lost(cause: BaseException) -> bool:
    """Whether an error means that a connection was closed.

    If it was kept, and nothing came since the request, then the server closed it before, and has not read the request:
    one that changes nothing is sent again at once, and is no retry (RFC 9112, section 9.3.1).
    """
    return isinstance(cause, (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError))


def reason(cause: object) -> str:
    """The message of an exception, or its class if it has none."""
    return shown(str(cause)) or type(cause).__name__


# --- exchange -------------------------------------------------------------------------------------

REDIRECTS: Final = 5  # the maximal number of redirects


def redirected(url: str, status: int, header: Header) -> str | None:
    """Returns the URL to which a response redirects the same request, or None.

    Raises `SourceError` for a redirect to another origin, or to a resource that does not answer this request (303).

    >>> redirected("http://example.org/sparql", 308, {"Location": "/sparql/"}.get)
    'http://example.org/sparql/'
    """
    location = header("Location")
    if not 300 <= status < 400 or location is None:
        return None
    try:
        target = urljoin(url, location)
        follow = (
            status in (301, 302, 307, 308)
            and _origin(target) == _origin(url)
            and target.isprintable()
        )
    except ValueError as error:
        raise SourceError(
            f"{without_query(url)} redirects to {shown(location)!a}, which is not a URL"
        ) from error
    if not follow:
        raise SourceError(
            f"{without_query(url)} redirects to {shown(without_query(target))}, which was not followed",
            hint="use the new URL as the source, if you trust it",
        )
    return target


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


class Credentials(Protocol):
    """Credentials whose header depends on the request, or changes over time."""

    def authorization(self, request: Request, challenge: str | None) -> str | None:
        """The value of `Authorization` for a request; may block while it is fetched.

        `challenge` is the `WWW-Authenticate` of a response that rejected the header of this request. None: the
        credentials cannot answer it, or need a challenge first.
        """


class Exchange:
    """A request, and those that its responses lead to: to another URL of the origin, or with other credentials.

    `request` is the next one to send. Creating an exchange and `ends` may block while credentials are fetched. A
    request that has an `Authorization` keeps it: it is that of a client of this server.
    """

    def __init__(self, request: Request, url: str, credentials: Credentials | None = None) -> None:
        self._url = url  # for errors
        self._credentials = None if request.has_header("Authorization") else credentials
        self._redirects = 0
        self._is_rejected = False
        self.request = request
        self._follow(request.full_url)

    def ends(self, status: int, header: Header) -> bool:
        """Whether a response is the answer; otherwise it is closed, and `request` is sent next.

        Raises `SourceError` for a redirect that is not followed, if no credentials can be fetched, and for a request
        that would be sent again, but whose body can be read only once.
        """
        is_streamed = not isinstance(self.request.data, bytes | None)
        # once for the whole exchange: credentials that are new and rejected, too, are wrong
        if status == 401 and self._credentials is not None and not self._is_rejected:
            self._is_rejected = True
            is_renewed = self._authorize(header("WWW-Authenticate") or "")
            if is_renewed and is_streamed:
                raise SourceError(
                    f"{self._url} answered with HTTP status 401: its credentials were renewed meanwhile",
                    response_status=status,
                    transient=True,
                )
            return not is_renewed
        target = redirected(self.request.full_url, status, header)
        if target is None:
            return True
        if is_streamed:
            raise SourceError(
                f"{self._url} redirects to {shown(without_query(target))}, where a body that is already sent cannot go",
                hint="use the new URL",
            )
        self._redirects += 1
        if self._redirects == REDIRECTS:
            raise SourceError(f"{self._url} redirected more than {REDIRECTS} times")
        self._follow(target)
        return False

    def _follow(self, target: str) -> None:
        sent = self.request  # a copy of it is sent: the caller may begin another exchange with it
        self.request = Request(target, sent.data, sent.headers, method=sent.get_method())
        self._authorize(None)

    def _authorize(self, challenge: str | None) -> bool:
        if self._credentials is None:
            return False
        value = self._credentials.authorization(self.request, challenge)
        if value is not None:
            self.request.add_header("Authorization", value)
        return value is not None


_HASHES: Final = {
    "MD5": hashlib.md5,
    "SHA": hashlib.sha1,
    "SHA-256": hashlib.sha256,
    "SHA-512": hashlib.sha512,
}


class _OnePassword(HTTPPasswordMgr):
    """One pair for each realm: requests do not leave the origin."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__()
        self._pair = user, password

    def find_user_password(self, _realm: str, _url: str) -> tuple[str, str]:
        return self._pair


class Digest(AbstractDigestAuthHandler):
    """Digest authentication (RFC 7616): the header for a challenge, and for later requests by the last challenge."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__(_OnePassword(user, password))
        self._challenge: dict[str, str] = {}

    def get_algorithm_impls(
        self, algorithm: str
    ) -> tuple[Callable[[str], str], Callable[[str, str], str]]:
        """More hash functions than urllib has, and of any text."""
        if algorithm.upper() not in _HASHES:
            raise URLError(f"the algorithm {shown(algorithm)} is not supported")
        new = _HASHES[algorithm.upper()]

        def hashed(text: str) -> str:
            return new(text.encode()).hexdigest()

        return hashed, lambda secret, data: hashed(f"{secret}:{data}")

    def authorization(self, request: Request, challenge: str | None) -> str | None:
        if challenge is not None:
            scheme, _, parameters = challenge.partition(" ")
            if scheme.lower() != "digest":
                return None
            self._challenge = parse_keqv_list(
                [each for each in parse_http_list(parameters) if each]
            )
        try:
            value = self.get_authorization(request, self._challenge)
        except URLError as error:
            raise unreachable(without_query(request.full_url), str(error.reason)) from error
        return None if value is None else f"Digest {value}"

"""Failures of requests, the same for both HTTP clients: their messages, and whether a retry may succeed."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Final

from construct_messages.rdf.errors import SourceError, shown

REDIRECTS: Final = 5
"""The maximal number of redirects."""

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

_PLAIN: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""The errors of OpenSSL for an answer without TLS, in its versions."""


def unreachable(url: str, cause: BaseException | str) -> SourceError:
    """The error for a request without a response.

    Args:
        url: the endpoint, without the query.
        cause: the exception of the library.
    """
    text = reason(cause)
    return SourceError(
        f"{url} could not be reached: {text}",
        hint="name the port that has TLS, or write the URL of this one without TLS"
        if any(sign in text for sign in _PLAIN)
        else "check the URL, and that the endpoint runs",
        transient=_passes(cause),
    )


def _passes(cause: object) -> bool:
    match cause:
        case socket.gaierror():
            return cause.errno == socket.EAI_AGAIN
        case ssl.SSLError():
            return False
        case ConnectionError():
            return True
    if _is_of_aiohttp(cause):
        import aiohttp

        match cause:
            case aiohttp.ClientConnectorError():
                return _passes(cause.os_error)
            case aiohttp.ServerDisconnectedError():
                return True
            case aiohttp.ClientConnectionError() if cause.__cause__ is not None:
                return _passes(cause.__cause__)  # the body of the request could not be sent
    return isinstance(cause, OSError) and cause.errno in _PASSING


def _is_of_aiohttp(cause: object) -> bool:
    # imported here because the other client does not need it, and it takes longer than a short answer
    return any(each.__module__.partition(".")[0] == "aiohttp" for each in type(cause).__mro__)


def too_many_redirects(url: str) -> SourceError:
    """The error for an endpoint that redirects more than `REDIRECTS` times."""
    return SourceError(f"{url} redirected more than {REDIRECTS} times")


def reason(cause: object) -> str:
    """The message of a library's exception, or its class if it has none; never the URL, which may contain the query."""
    if _is_of_aiohttp(cause):
        import aiohttp

        match cause:
            case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
                cause = cause.message
            case aiohttp.ServerDisconnectedError():
                cause = (
                    "the connection was closed before an answer"  # aiohttp may show the head of one
                )
            case aiohttp.ClientConnectorError():
                pass
            case aiohttp.ClientConnectionError() if cause.__cause__ is not None:
                # aiohttp shows the URL of a request whose body it cannot send
                cause = cause.__cause__
    return shown(str(cause)) or type(cause).__name__

"""Decides whether and when to retry a failed request; the same for both HTTP clients.

Only transient failures are retried (`SourceError.transient`), and only if no solution or byte would be delivered twice,
which the caller decides. `Retry-After` (RFC 9110, section 10.2.3) takes precedence over exponential pauses with jitter.
Each retry is logged at INFO, without the text of the failure, which may contain the query. Sends nothing.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Final

from construct_messages.rdf.errors import SourceError, shown
from construct_messages.sparql.client.timeouts import Timeouts

# --- failures -------------------------------------------------------------------------------------
# Failures of requests, the same for both HTTP clients: their messages, and whether a retry may succeed.

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


# --- retries --------------------------------------------------------------------------------------

_INITIAL: Final = 0.5  # seconds
_LONGEST: Final = 8.0
_JITTER: Final = 0.5
_LONGEST_RETRY_AFTER: Final = 60.0  # the caller decides about a longer wait


class Attempts:
    """The attempts at a request, to be iterated with `for` or `async for`; each is a context manager.

    An error after which no attempt follows leaves its `with` block. `may_retry` decides whether the request may be sent
    again after an error; a pause that would exceed the `timeouts` is not begun.

    >>> for attempt in Attempts(0, Timeouts(None), lambda error: True):
    ...     with attempt:
    ...         raise SourceError("busy", transient=True)
    Traceback (most recent call last):
    construct_messages.rdf.errors.SourceError: busy
    """

    def __init__(
        self, retries: int, timeouts: Timeouts, may_retry: Callable[[SourceError], bool]
    ) -> None:
        self._retries, self._timeouts, self._may_retry = retries, timeouts, may_retry

    def __iter__(self) -> Iterator[Attempt]:
        for number in count(1):
            yield (attempt := Attempt(self, number))
            if attempt.pause is None:
                return
            time.sleep(attempt.pause)

    async def __aiter__(self) -> AsyncIterator[Attempt]:
        import asyncio  # imported here because blocking callers do not need it

        for number in count(1):
            yield (attempt := Attempt(self, number))
            if attempt.pause is None:
                return
            await asyncio.sleep(attempt.pause)

    def allows(self, error: SourceError, number: int) -> bool:
        """Whether another attempt may follow the attempt of this number, which failed."""
        if number > self._retries or not error.transient or not self._may_retry(error):
            return False
        longest = error.retry_after
        if longest is None:
            longest = _exponential(number) + _JITTER
        elif longest > _LONGEST_RETRY_AFTER:
            return False
        return self._timeouts.allows(longest)


class Attempt:
    """One attempt; suppresses an error after which another one follows, and has then the seconds until that."""

    def __init__(self, attempts: Attempts, number: int) -> None:
        self._attempts, self._number = attempts, number
        self.pause: float | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, SourceError) or not self._attempts.allows(error, self._number):
            return False
        self.pause = pause(error, self._number)
        import logging  # imported here because few requests are sent again

        logging.getLogger(__name__).info(
            "%s: asked again in %.1f seconds, attempt %d",
            type(error).__name__,
            self.pause,
            self._number + 1,
        )
        return True


def pause(error: SourceError, number: int) -> float:
    """The seconds to wait after the attempt of this number."""
    if error.retry_after is not None:
        return error.retry_after
    import random  # imported here because few requests are sent again

    # clients that failed together do not ask again together
    return _exponential(number) + random.uniform(0, _JITTER)


def _exponential(number: int) -> float:
    return min(_LONGEST, _INITIAL * 2.0 ** (number - 1))

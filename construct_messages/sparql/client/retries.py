"""Decides whether and when to retry a failed request; the same for both HTTP clients.

Only transient failures are retried (`SourceError.transient`), and only if no solution or byte would be delivered twice,
which the caller decides. `Retry-After` (RFC 9110, section 10.2.3) takes precedence over exponential pauses with jitter.
Each retry is logged at INFO, without the text of the failure, which may contain the query. Sends nothing.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from construct_messages.rdf.errors import SourceError, shown
from construct_messages.sparql.client.timeouts import Timeouts

if TYPE_CHECKING:
    from tenacity import AttemptManager, RetryCallState


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

    The error of the last attempt is raised.

    Args:
        retries: the maximal number of attempts after the first.
        timeouts: if a pause would exceed them, the error is raised at once.
        may_retry: returns whether the request may be sent again after an error.

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

    def __iter__(self) -> Iterator[AbstractContextManager[None]]:
        first = _FirstAttempt()
        yield first
        if first.error is None:
            return
        from tenacity import Retrying

        for attempt in Retrying(**self._rules()):
            if attempt.retry_state.attempt_number == 1:
                first.fail(attempt)
            else:
                yield attempt

    async def __aiter__(self) -> AsyncIterator[AbstractContextManager[None]]:
        first = _FirstAttempt()
        yield first
        if first.error is None:
            return
        import asyncio

        from tenacity import AsyncRetrying

        async for attempt in AsyncRetrying(sleep=asyncio.sleep, **self._rules()):
            if attempt.retry_state.attempt_number == 1:
                first.fail(attempt)
            else:
                yield attempt

    def _rules(self) -> dict[str, Any]:
        """The arguments of tenacity's classes."""
        from tenacity import stop_after_attempt

        return {
            "retry": self._may_follow,
            "stop": stop_after_attempt(self._retries + 1),
            "wait": pause,
            "before_sleep": _log,
            "reraise": True,
        }

    def _may_follow(self, state: RetryCallState) -> bool:
        """Whether another attempt may follow the last one."""
        error = _error(state)
        if not isinstance(error, SourceError) or not error.transient or not self._may_retry(error):
            return False
        longest = error.retry_after
        if longest is None:
            longest = min(_LONGEST, _INITIAL * 2 ** (state.attempt_number - 1)) + _JITTER
        elif longest > _LONGEST_RETRY_AFTER:
            return False
        return self._timeouts.allows(longest)


class _FirstAttempt:
    """The first attempt, which most requests are done with: holds the error that it ends with."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return error is not None

    def fail(self, attempt: AttemptManager) -> None:
        """Ends an attempt of tenacity with the same error."""
        assert self.error is not None
        attempt.__exit__(type(self.error), self.error, self.error.__traceback__)


def pause(state: RetryCallState) -> float:
    """Seconds until the next attempt."""
    error = _error(state)
    retry_after = error.retry_after if isinstance(error, SourceError) else None
    if retry_after is not None:
        return retry_after
    from tenacity.wait import wait_exponential, wait_random

    return (wait_exponential(multiplier=_INITIAL, max=_LONGEST) + wait_random(0, _JITTER))(state)


def _log(state: RetryCallState) -> None:
    import logging  # imported here because few requests are sent again

    cause = type(_error(state)).__name__
    logging.getLogger(__name__).info(
        "%s: asked again in %.1f seconds, attempt %d",
        cause,
        state.upcoming_sleep,
        state.attempt_number + 1,
    )


def _error(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()

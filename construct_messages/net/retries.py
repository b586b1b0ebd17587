"""Decides whether and when to retry a failed request; the same for both HTTP clients.

Only transient failures are retried (`SourceError.transient`), and only if no solution or byte would be delivered twice,
which the caller decides. `Retry-After` (RFC 9110, section 10.2.3) takes precedence over exponential pauses with jitter.
Each retry is logged at INFO, without the text of the failure, which may contain the query. Sends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tenacity import AsyncRetrying, AttemptManager, RetryCallState, Retrying, stop_after_attempt
from tenacity.wait import wait_exponential, wait_random

from construct_messages.errors import SourceError
from construct_messages.net.timeouts import Timeouts

_INITIAL: Final = 0.5  # seconds
_LONGEST: Final = 8.0
_JITTER: Final = 0.5
_LONGEST_RETRY_AFTER: Final = 60.0  # the caller decides about a longer wait

_LOGGER: Final = logging.getLogger(__name__)
_GROWING: Final = wait_exponential(multiplier=_INITIAL, max=_LONGEST) + wait_random(0, _JITTER)


@dataclass(frozen=True)
class Attempts:
    """The attempts at a request, to be iterated with `for` or `async for`; each is a context manager.

    Args:
        rules: the arguments of `tenacity.Retrying` and `tenacity.AsyncRetrying`.
    """

    rules: Mapping[str, Any]

    def __iter__(self) -> Iterator[AttemptManager]:
        return iter(Retrying(**self.rules))

    def __aiter__(self) -> AsyncIterator[AttemptManager]:
        import asyncio

        return aiter(AsyncRetrying(sleep=asyncio.sleep, **self.rules))


def attempts(
    retries: int, timeouts: Timeouts, may_retry: Callable[[SourceError], bool]
) -> Attempts:
    """Returns the attempts at one request; the error of the last one is raised.

    Args:
        retries: the maximal number of attempts after the first.
        timeouts: if a pause would exceed them, the error is raised at once.
        may_retry: returns whether the request may be sent again after an error.

    >>> for attempt in attempts(0, Timeouts(None), lambda error: True):
    ...     with attempt:
    ...         raise SourceError("busy", transient=True)
    Traceback (most recent call last):
    construct_messages.errors.SourceError: busy
    """

    def again(state: RetryCallState) -> bool:
        error = _error(state)
        if not isinstance(error, SourceError) or not error.transient or not may_retry(error):
            return False
        longest = error.retry_after
        if longest is None:
            longest = min(_LONGEST, _INITIAL * 2 ** (state.attempt_number - 1)) + _JITTER
        elif longest > _LONGEST_RETRY_AFTER:
            return False
        return timeouts.allows(longest)

    return Attempts(
        {
            "retry": again,
            "stop": stop_after_attempt(retries + 1),
            "wait": pause,
            "before_sleep": _log,
            "reraise": True,
        }
    )


def pause(state: RetryCallState) -> float:
    """Seconds until the next attempt."""
    error = _error(state)
    retry_after = error.retry_after if isinstance(error, SourceError) else None
    return _GROWING(state) if retry_after is None else retry_after


def _log(state: RetryCallState) -> None:
    cause = type(_error(state)).__name__
    _LOGGER.info(
        "%s: asked again in %.1f seconds, attempt %d",
        cause,
        state.upcoming_sleep,
        state.attempt_number + 1,
    )


def _error(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()

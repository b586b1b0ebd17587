"""When a request that failed is sent again, and after how long: the same rules for both HTTP clients.

Only what passes by itself is tried again (`SourceError.transient`), and only while no solution or byte would be handed
on twice; the caller says so. An endpoint's `Retry-After` (RFC 9110, section 10.2.3) goes before growing, jittered
pauses. Each is told to `logging`, at INFO, without the words of the failure, which may hold the query. Nothing here
sends anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tenacity import AsyncRetrying, AttemptManager, RetryCallState, Retrying, stop_after_attempt
from tenacity.wait import wait_exponential, wait_random

from construct_messages.errors import SourceError
from construct_messages.sources.http.timeouts import Timeouts

_INITIAL: Final = 0.5  # seconds
_LONGEST: Final = 8.0
_JITTER: Final = 0.5
_BIDDEN: Final = 60.0  # how long to wait because the endpoint asks for it; a longer wait is the caller's to decide

_LOGGER: Final = logging.getLogger(__name__)
_GROWING: Final = wait_exponential(multiplier=_INITIAL, max=_LONGEST) + wait_random(0, _JITTER)


@dataclass(frozen=True)
class Attempts:
    """To iterate, blocking or not, with each attempt as a context manager.

    Args:
        rules: what `tenacity.Retrying` and `tenacity.AsyncRetrying` take.
    """

    rules: Mapping[str, Any]

    def __iter__(self) -> Iterator[AttemptManager]:
        return iter(Retrying(**self.rules))

    def __aiter__(self) -> AsyncIterator[AttemptManager]:
        return aiter(AsyncRetrying(sleep=asyncio.sleep, **self.rules))


def attempts(retries: int, timeouts: Timeouts, may_retry: Callable[[SourceError], bool]) -> Attempts:
    """The attempts at one request; the error of the last is raised.

    Args:
        retries: how many may follow the first.
        timeouts: no wait goes beyond it: the error is raised at once instead.
        may_retry: whether an error leaves the request in a state to be sent again.

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
        elif longest > _BIDDEN:
            return False
        return timeouts.allows(longest)

    return Attempts(
        {
            "retry": again,
            "stop": stop_after_attempt(retries + 1),
            "wait": pause,
            "before_sleep": _tell,
            "reraise": True,
        }
    )


def pause(state: RetryCallState) -> float:
    """Seconds until the next attempt."""
    error = _error(state)
    bidden = error.retry_after if isinstance(error, SourceError) else None
    return _GROWING(state) if bidden is None else bidden


def _tell(state: RetryCallState) -> None:
    cause = type(_error(state)).__name__
    _LOGGER.info("%s: asked again in %.1f seconds, attempt %d", cause, state.upcoming_sleep, state.attempt_number + 1)


def _error(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()

"""Decides whether and when to retry a failed request; the same for both HTTP clients.

Only transient failures are retried (`SourceError.transient`), and only if no solution or byte would be delivered twice,
which the caller decides. `Retry-After` (RFC 9110, section 10.2.3) takes precedence over exponential pauses with jitter.
Each retry is logged at INFO, without the text of the failure, which may contain the query. Sends nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from construct_messages.rdf.errors import SourceError
from construct_messages.sparql.client.timeouts import Timeouts

if TYPE_CHECKING:  # tenacity takes longer to import than a request to an endpoint near by
    from tenacity import AttemptManager, RetryCallState

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

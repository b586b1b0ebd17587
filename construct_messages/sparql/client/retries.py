"""Decides whether and when to retry a failed request; the same for both HTTP clients.

Only transient failures are retried (`SourceError.transient`), and only if no solution or byte would be delivered twice,
which the caller decides. `Retry-After` (RFC 9110, section 10.2.3) takes precedence over exponential pauses with jitter.
Each retry is logged at INFO, without the text of the failure, which may contain the query. Sends nothing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Final

from construct_messages.rdf.errors import SourceError
from construct_messages.sparql.client.timeouts import Timeouts

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

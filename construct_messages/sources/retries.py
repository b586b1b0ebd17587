"""When a request that failed is sent again, and after how long: the same rules for both HTTP clients.

Only what passes by itself is tried again (`SourceError.transient`), and only while no solution or byte would be handed
on twice; the caller says so. An endpoint's `Retry-After` (RFC 9110, section 10.2.3) goes before the growing, jittered
waits of `stamina`. Nothing here sends anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from itertools import count
from typing import Final, Protocol

import stamina

from construct_messages.errors import SourceError
from construct_messages.sources.patience import Patience

_INITIAL: Final = 0.5  # seconds
_LONGEST: Final = 8.0
_JITTER: Final = 0.5
_BIDDEN: Final = 60.0  # how long to wait because the endpoint asks for it; a longer wait is the caller's to decide


class Attempts(Iterable[stamina.Attempt], AsyncIterable[stamina.Attempt], Protocol):
    """To iterate, blocking or not, with each attempt as a context manager: see `stamina.retry_context`."""


def attempts(retries: int, patience: Patience, may_retry: Callable[[SourceError], bool]) -> Attempts:
    """The attempts at one request; the error of the last is raised.

    Args:
        retries: how many may follow the first.
        patience: no wait goes beyond it: the error is raised at once instead.
        may_retry: whether an error leaves the request in a state to be sent again.

    >>> for attempt in attempts(0, Patience(None), lambda error: True):
    ...     with attempt:
    ...         raise SourceError("busy", transient=True)
    Traceback (most recent call last):
    construct_messages.errors.SourceError: busy
    """
    failures = count()

    def wait(error: Exception) -> bool | float:
        if not isinstance(error, SourceError) or not error.transient or not may_retry(error):
            return False
        longest = min(_LONGEST, _INITIAL * 2 ** next(failures) + _JITTER)
        if error.retry_after is not None:
            longest = error.retry_after
            if longest > _BIDDEN:
                return False
        if not patience.allows(longest):
            return False
        return True if error.retry_after is None else error.retry_after

    return stamina.retry_context(
        wait,
        attempts=retries + 1,
        timeout=None,  # `wait` heeds the patience
        wait_initial=_INITIAL,
        wait_max=_LONGEST,
        wait_jitter=_JITTER,
    )

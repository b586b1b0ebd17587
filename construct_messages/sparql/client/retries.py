"""The time limits of requests, and whether and when a failed one is sent again; the same for both HTTP clients.

Only transient failures are retried (`SourceError.transient`), and only if no solution or byte would be delivered twice,
which the caller decides. `Retry-After` (RFC 9110, section 10.2.3) takes precedence over exponential pauses with jitter.
Each retry is logged at INFO, without the text of the failure, which may contain the query. Sends nothing.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Final

from construct_messages.errors import SourceError, SourceTimeout

# --- timeouts -------------------------------------------------------------------------------------
# Time limits of requests: one deadline for an answer and all its requests.
#
# Imports no HTTP client, so that modules can use it before one is imported.

CONNECT_SECONDS: Final = 30.0  # the default of the maximal time to connect, in seconds

_PROBE_SECONDS: Final = 60
_PROBES: Final = 4


def keep_alive(connection: socket.socket) -> socket.socket:
    """Lets the system probe a silent connection: it ends if the peer is gone, and routers on the way do not forget it.

    A slow endpoint sends nothing while it evaluates, which looks the same as one that was switched off.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # elsewhere, the system has settings of its own
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    return connection


class Timeouts:
    """The time limits of one answer, in seconds: for all of it, between two of its bytes, and to connect; None: no
    limit.
    """

    def __init__(
        self, total: float | None, stall: float | None = None, connect: float = CONNECT_SECONDS
    ) -> None:
        self._total = total
        self._stall = None if stall == math.inf else stall  # no clock can wait that long
        self._connect = connect
        self._deadline = None if total is None else time.monotonic() + total

    def remaining(self) -> float | None:
        """Seconds to wait for the next bytes; None: no limit. Raises `SourceTimeout` if there are none."""
        if self._deadline is None:
            return self._stall
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise self.exhausted()
        return remaining if self._stall is None else min(remaining, self._stall)

    def to_connect(self) -> float:
        """Seconds to wait for a connection."""
        remaining = self.remaining()
        return self._connect if remaining is None else min(remaining, self._connect)

    def allows(self, seconds: float) -> bool:
        """Whether time is left after a pause of this many seconds.

        >>> Timeouts(10).allows(3), Timeouts(10).allows(11), Timeouts(None, stall=1).allows(3600)
        (True, False, True)
        """
        return self._deadline is None or time.monotonic() + seconds < self._deadline

    def unconnected(self) -> SourceTimeout:
        """The error if connecting took too long."""
        if not self.allows(0):
            return self.exhausted()
        return SourceTimeout(
            f"the endpoint accepted no connection within {self._connect:g} seconds",
            hint="check the URL, and that the endpoint runs",
        )

    def exhausted(self) -> SourceTimeout:
        """The error if waiting took too long."""
        bounds = [] if self._total is None else [f"{self._total:g} seconds in all"]
        bounds += [] if self._stall is None else [f"{self._stall:g} seconds between two bytes"]
        return SourceTimeout(
            f"the endpoint did not answer in time ({', '.join(bounds) or f'{self._connect:g} seconds to connect'})",
            hint="raise timeout or read_seconds, or add a LIMIT",
        )


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
    construct_messages.errors.SourceError: busy
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
        # `may_retry` comes last: it may have to compare what has arrived
        if number > self._retries or not error.transient or not self._may_retry(error):
            return False
        longest = error.retry_after
        if longest is None:
            longest = _exponential(number) + _JITTER
        elif longest > _LONGEST_RETRY_AFTER:
            return False
        # a pause beyond the time that is left would only delay the error
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

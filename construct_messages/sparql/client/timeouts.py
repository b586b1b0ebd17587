"""Time limits of requests: one deadline for an answer and all its requests.

Imports no HTTP client, so that modules can use it before one is imported.
"""

from __future__ import annotations

import math
import socket
import time
from typing import Final

from construct_messages.rdf.errors import SourceTimeout

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

"""A connection of HTTP/2 as both sides of gRPC have it: pings, the size of frames, and what is ignored.

HTTP/2 is grpclib's: docs/decisions/087-grpc.md. Calls are the business of each side. RFC 9113.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from grpclib.config import Configuration
from grpclib.protocol import AbstractHandler, H2Protocol
from h2.config import H2Configuration
from h2.events import (
    AlternativeServiceAvailable,
    InformationalResponseReceived,
    UnknownFrameReceived,
)
from h2.settings import SettingCodes

# a receiver ignores frames of types that it does not know (section 4.1)
_IGNORED: Final = (
    AlternativeServiceAvailable,
    InformationalResponseReceived,
    UnknownFrameReceived,
)


def configuration(ping_seconds: float, silent_seconds: float, **windows: int) -> Configuration:
    """Returns how a connection is kept; `__for_client__` or `__for_server__` completes it.

    Args:
        ping_seconds: how often the other side is pinged, also while there is no call.
        silent_seconds: how long it may take to answer a ping before the connection is closed.
        windows: how many bytes may be on the way, as grpclib calls them.
    """
    given: dict[str, Any] = dict(windows)
    return Configuration(
        _keepalive_time=ping_seconds,
        _keepalive_timeout=silent_seconds,
        _keepalive_permit_without_calls=True,
        _http2_max_pings_without_data=0,
        _http2_min_sent_ping_interval_without_data=ping_seconds / 2,
        **given,
    )


class GrpcProtocol(H2Protocol):
    """A connection of HTTP/2.

    Args:
        calls: called with what becomes of calls.
        kept: how the connection is kept.
        http: which side this is.
        frame_bytes: how many bytes the other side may send in one frame of HTTP/2. Nothing of a frame can be read
            before all of it has come.
    """

    def __init__(
        self, calls: AbstractHandler, kept: Configuration, http: H2Configuration, frame_bytes: int
    ) -> None:
        super().__init__(calls, kept, http)
        self._frame_bytes = frame_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the connection."""
        super().connection_made(transport)
        # each frame of HTTP/2 costs as much as several messages; grpclib has no option for their size
        http = self.connection._connection
        http.update_settings({SettingCodes.MAX_FRAME_SIZE: self._frame_bytes})
        http.max_inbound_frame_size = (
            self._frame_bytes
        )  # at once: h2 applies it only to later reads
        self.connection.flush()
        for event in _IGNORED:
            self.processor.processors[event] = lambda _: None

"""A connection of HTTP/2 for either side of gRPC: pings, the size of frames, and ignored frames.

grpclib implements HTTP/2: docs/decisions/087-grpc.md. Each side implements its calls. RFC 9113.
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

# a receiver ignores frames of unknown types (section 4.1)
_IGNORED: Final = (
    AlternativeServiceAvailable,
    InformationalResponseReceived,
    UnknownFrameReceived,
)


def configuration(ping_seconds: float, silent_seconds: float, **windows: int) -> Configuration:
    """Returns the settings of a connection; `__for_client__` or `__for_server__` completes them.

    Args:
        ping_seconds: the time between pings to the other side, also without a call.
        silent_seconds: the maximal time for the answer to a ping, after which the connection is closed.
        windows: the maximal numbers of bytes in transit, by grpclib's names.
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
        calls: called with the events of calls.
        kept: the settings of the connection.
        http: the configuration of h2, for client or server.
        frame_bytes: the maximal number of bytes in one frame of HTTP/2 from the other side. A frame can only be read
            after it has arrived completely.
    """

    def __init__(
        self, calls: AbstractHandler, kept: Configuration, http: H2Configuration, frame_bytes: int
    ) -> None:
        super().__init__(calls, kept, http)
        self._frame_bytes = frame_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the connection."""
        super().connection_made(transport)
        # each frame of HTTP/2 takes as long as several messages; grpclib has no option for their size
        http = self.connection._connection
        http.update_settings({SettingCodes.MAX_FRAME_SIZE: self._frame_bytes})
        http.max_inbound_frame_size = (
            self._frame_bytes
        )  # at once: h2 applies it only to later reads
        self.connection.flush()
        for event in _IGNORED:
            self.processor.processors[event] = lambda _: None

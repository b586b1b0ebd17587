"""The bridges of a server's streams. They have no routes, but appear in the health report and the metrics.

`feeds/bridging.py` moves the elements. The settings of a bridge are `BridgeSettings`.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from construct_messages.feeds.bridging import Bridge, BridgeStatus, feed, forward_on
from construct_messages.feeds.delivery import StreamTarget
from construct_messages.feeds.subscription import reading
from construct_messages.feeds.table import kinds_for
from construct_messages.feeds.transport import Settings, Start
from construct_messages.server.config import BridgeSettings, StreamsSettings
from construct_messages.server.http.endpoint import Endpoint, Measure, Observe
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.streams.publishing import known_contexts
from construct_messages.server.streams.requests import StreamRecord
from construct_messages.server.streams.resources import ROOT
from construct_messages.server.streams.served import StreamShapes
from construct_messages.sparql.client.oauth import BearerToken, ClientCredentials, read_secret
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams.store import StreamStore

_FIGURES: Final[Mapping[str, str]] = {
    "connected": "Whether the bridge of a stream reads or writes; otherwise it is tried again.",
    "elements": "Elements that went over the bridge since the server started.",
    "in_flight": "Elements that are being stored or written.",
    "behind": "Elements that are known to wait; NaN where the source does not tell.",
    "idle_seconds": "Seconds since the last element; NaN before the first.",
    "removed": "Elements that retention removed before they were forwarded.",
}


class _Side(NamedTuple):
    """One direction of a bridge."""

    stream: str
    direction: str
    url: str
    bridge: Bridge

    def figures(self) -> dict[str, float | None]:
        status = self.bridge.status
        return {
            "connected": float(status.is_connected),
            "elements": status.elements,
            "in_flight": status.in_flight,
            "behind": status.behind(),
            "idle_seconds": status.idle_seconds,
            "removed": status.removed,
        }

    def measure(self, name: str) -> float:
        value = self.figures()[name]
        return math.nan if value is None else value

    def report(self) -> dict[str, object]:
        status = self.bridge.status
        figures = {name: value for name, value in self.figures().items() if name != "connected"}
        return {
            "stream": self.stream,
            self.direction: without_query(self.url),
            "status": "connected" if status.is_connected else "retrying",
            "error": status.error,
            **figures,
        }


class BridgesEndpoint(Endpoint):
    """The bridges; see `server.http.endpoint.Endpoint`."""

    record = StreamRecord
    path = ROOT
    has_source = False

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        request_log: RequestLog,
        shapes: StreamShapes,
    ) -> None:
        self._settings, self._store, self._request_log = settings, store, request_log
        self._shapes = shapes
        self._sides = [
            side
            for name, bridge in settings.bridges.items()
            for side in self._sides_of(name, bridge)
        ]
        self.gauges = {
            f"bridge_{name}": [
                Measure(
                    help,
                    partial(side.measure, name),
                    {"stream": side.stream, "direction": side.direction},
                )
                for side in self._sides
            ]
            for name, help in _FIGURES.items()
        }

    @property
    def reported(self) -> Mapping[str, object]:
        return {"bridges": [side.report() for side in self._sides]}

    async def start(self, observe: Observe) -> None:  # noqa: ARG002 - it answers no requests
        """Starts the bridges; the other sides may be unavailable. See `Endpoint.start`."""
        for side in self._sides:
            side.bridge.start()

    async def stop(self) -> None:
        """Stops the bridges after finishing and acknowledging elements in flight; see `Endpoint.stop`."""
        await asyncio.gather(*(side.bridge.stop() for side in self._sides))

    async def aclose(self) -> None:
        await self.stop()

    def _sides_of(self, name: str, bridge: BridgeSettings) -> Iterable[_Side]:
        if bridge.source is not None:
            yield self._fed(name, bridge, bridge.source)
        if bridge.target is not None:
            yield self._forwarded(name, bridge, bridge.target)

    def _fed(self, name: str, bridge: BridgeSettings, url: str) -> _Side:
        settings = Settings(
            contexts=known_contexts(self._settings.contexts),
            message_bytes=self._settings.message_bytes,
            token=_token(bridge, "from"),
            retries=0,  # the bridge itself retries
            media_type=bridge.from_media_type,
            options=bridge.from_options,
        )
        # if nothing is replayed, reading starts at the position of the session at the broker
        replays = any(kind.capabilities.replays for kind in kinds_for(url))
        start = Start(last=0) if bridge.start == "next" else Start(after=0 if replays else None)
        status = BridgeStatus()

        async def work() -> None:
            opening = reading(
                url, settings, via=bridge.via, follow=True, dead_letters=bridge.dead_letters
            )
            await feed(
                self._store,
                name,
                f"bridge from {name}",
                url,
                opening,
                start,
                status,
                batch=bridge.batch,
                conforming=partial(self._shapes.conforming_elements, name),
            )

        return self._side(name, "from", url, work, status)

    def _forwarded(self, name: str, bridge: BridgeSettings, url: str) -> _Side:
        settings = Settings(
            token=_token(bridge, "to"),
            retries=0,
            create=bridge.create,
            media_type=bridge.to_media_type,
            options=bridge.to_options,
        )
        target, status = StreamTarget(url, settings), BridgeStatus()

        async def work() -> None:
            await forward_on(
                self._store,
                name,
                f"bridge to {name}",
                target,
                status,
                from_first=bridge.start == "first",
                batch=bridge.batch,
            )

        return self._side(name, "to", url, work, status)

    def _side(
        self,
        name: str,
        direction: str,
        url: str,
        work: Callable[[], Awaitable[None]],
        status: BridgeStatus,
    ) -> _Side:
        def report(reason: str) -> None:
            self._request_log.log(
                "warning", "bridge failed", stream=name, direction=direction, reason=reason
            )

        return _Side(name, direction, url, Bridge(work, status, report))


def _token(bridge: BridgeSettings, side: str) -> BearerToken | None:
    """Returns the token for one side of a bridge, or the credentials for fetching tokens; None: neither is set."""

    def setting(name: str) -> str | None:
        value: str | None = getattr(bridge, f"{side}_{name}")
        return value

    url, client = setting("token_url"), setting("client_id")
    if url is not None and client is not None:
        variable = setting("client_secret_variable")
        secret = None if variable is None else os.environ.get(variable)
        found = read_secret(secret, setting("client_secret_file"))
        return ClientCredentials(url, client, found, setting("scope"))
    variable = setting("token_variable")
    return None if variable is None else os.environ.get(variable)

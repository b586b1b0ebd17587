"""SubscribeRdf: the elements of a stream as frames, from a position on.

Jelly 1.1, gRPC streaming protocol, "Subscribing to a stream". Where to begin, and the metadata of frames, are our own:
see `net/wire.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from construct_messages.errors import ProtocolError, SourceError
from construct_messages.logs.jelly.service import RdfStreamSubscribe, negotiated
from construct_messages.net.grpc.framing import FRAME_BYTES, GZIP, IDENTITY
from construct_messages.net.wire import CallMetadata, Parameter
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.sending import ClientLeft
from construct_messages.server.streams.bounds import StreamLimits
from construct_messages.server.streams.grpc.calls import ServerCall
from construct_messages.server.streams.grpc.frames import ElementFrames
from construct_messages.server.streams.push import Live
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import InThread
from construct_messages.server.streams.selection import (
    Selection,
    select,
    selected,
    sequence_parameter,
)
from construct_messages.streams.element import Element
from construct_messages.streams.store import StreamStore

_REQUEST_BYTES: Final = 1 << 16
_PARAMETERS: Final = {
    CallMetadata.AFTER: Parameter.AFTER,
    CallMetadata.LAST: Parameter.LAST,
    CallMetadata.SINCE: Parameter.SINCE,
}


class Subscribing:
    """Answers subscribers.

    Args:
        settings: the limits.
        store: where the streams are.
        bounds: how many subscribers there may be.
        live: elements as they come.
        in_thread: calls a function where it does not hold up the event loop.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        live: Live,
        in_thread: InThread,
    ) -> None:
        self._settings, self._store, self._bounds = settings, store, bounds
        self._live, self._in_thread = live, in_thread

    async def answer(self, call: ServerCall, record: StreamRecord) -> None:
        """Sends the elements of a stream until they end, the client leaves, or the server stops.

        Raises:
            UsageError, ProtocolError: a request that makes no sense (INVALID_ARGUMENT).
            NotFound: there is no such stream (NOT_FOUND).
            SourceError: too many follow, or the server stops (UNAVAILABLE).
            LimitExceeded: a frame that is too large (RESOURCE_EXHAUSTED).
        """
        record.action = "subscribe"
        request = await call.messages(_REQUEST_BYTES).read()
        if request is None:
            raise ProtocolError("the request has no message", hint="send an RdfStreamSubscribe")
        topic, requested = RdfStreamSubscribe.decode(request)
        record.stream = topic[:128]
        state = self._store.state(topic)
        options = negotiated(requested)
        follow, most = _follow(call), _frame_bytes(call, self._settings.message_bytes)
        with self._bounds.following(topic):
            selection = await self._selection(call, topic)
            coding = GZIP if call.compresses else IDENTITY
            record.format = f"jelly {coding}"
            await call.begin(
                {
                    CallMetadata.AFTER: str(selection.after),
                    CallMetadata.IDENTITY: str(state.id),
                },
                coding,
            )
            record.status = 200
            pages = (
                self._live.pages(topic, selection.after)
                if follow
                else selected(self._store, topic, selection)
            )
            await self._send(call, pages, ElementFrames(options, coding, most), record)
        if follow:
            raise SourceError(
                "the server stops", status=503, hint="come back after the last element"
            )

    async def _selection(self, call: ServerCall, stream: str) -> Selection:
        """The elements to send: those that are asked for, or those that are new."""
        parameters: dict[str, str] = {
            parameter: call.headers[name]
            for name, parameter in _PARAMETERS.items()
            if name in call.headers
        }
        state = self._store.state(stream)
        if not parameters:
            return Selection(state.last if _follow(call) else state.first - 1, state.last)
        if Parameter.AFTER in parameters:
            after = sequence_parameter(CallMetadata.AFTER, parameters[Parameter.AFTER])
            self._store.check_position(stream, after)
        return await self._in_thread(select, self._store, state, parameters)

    async def _send(
        self,
        call: ServerCall,
        pages: AsyncGenerator[list[Element]],
        frames: ElementFrames,
        record: StreamRecord,
    ) -> None:
        async with aclosing(pages):
            async for page in pages:
                for piece, count in frames.pieces(page):
                    record.sent(len(piece))
                    try:
                        async with asyncio.timeout(self._settings.idle_seconds):
                            await call.send(piece)
                    except TimeoutError:
                        raise ClientLeft("idle") from None
                    record.deliver(count)


def _follow(call: ServerCall) -> bool:
    said = call.headers.get(CallMetadata.FOLLOW, "true").lower()
    if said not in ("true", "false"):
        raise ProtocolError(f"{CallMetadata.FOLLOW}: {said[:40]} is neither true nor false")
    return said == "true"


def _frame_bytes(call: ServerCall, most: int) -> int:
    """How large a frame may be: as clients take them by default, or as the client says, but not more than `most` twice.

    A frame can be a little larger than the message that was sent, as it may have to bring the entries of tables.
    """
    said = call.headers.get(CallMetadata.FRAME_BYTES)
    if said is None:
        return FRAME_BYTES
    return min(sequence_parameter(CallMetadata.FRAME_BYTES, said), max(FRAME_BYTES, 2 * most))

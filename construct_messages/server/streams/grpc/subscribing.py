"""SubscribeRdf: sends the elements of a stream from a position on, as frames.

Jelly 1.1, gRPC streaming protocol, "Subscribing to a stream". The start position and the metadata of frames are
extensions of this package: see `rdf/wire.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from construct_messages.logs.jelly.service import RdfStreamSubscribe, negotiated
from construct_messages.rdf.errors import ProtocolError, SourceError, UsageError
from construct_messages.rdf.wire import CallMetadata, Parameter
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
from construct_messages.sparql.client.grpc.framing import FRAME_BYTES, GZIP, IDENTITY
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
        store: the store of the streams.
        bounds: the maximal number of subscribers.
        live: new elements.
        in_thread: calls a function in a thread, so that it does not block the event loop.
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
            UsageError, ProtocolError: an invalid request (INVALID_ARGUMENT), or none in time (DEADLINE_EXCEEDED).
            NotFound: the stream does not exist (NOT_FOUND).
            SourceError: too many followers, or the server stops (UNAVAILABLE).
            LimitExceeded: a frame that is too large (RESOURCE_EXHAUSTED).
        """
        record.action = "subscribe"
        try:
            async with asyncio.timeout(self._settings.idle_seconds):
                request = await call.messages(_REQUEST_BYTES).read()
        except TimeoutError as error:
            raise UsageError("the request did not arrive in time", status=408) from error
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
        """Returns the selection of elements to send: the requested range, or new ones."""
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
    value = call.headers.get(CallMetadata.FOLLOW, "true").lower()
    if value not in ("true", "false"):
        raise ProtocolError(f"{CallMetadata.FOLLOW}: {value[:40]} is neither true nor false")
    return value == "true"


def _frame_bytes(call: ServerCall, most: int) -> int:
    """Returns the maximal size of a frame: the default of clients, or the client's own limit up to twice `most`.

    A frame can be a little larger than the published message, as it may contain entries of lookup tables.
    """
    value = call.headers.get(CallMetadata.FRAME_BYTES)
    if value is None:
        return FRAME_BYTES
    return min(sequence_parameter(CallMetadata.FRAME_BYTES, value), max(FRAME_BYTES, 2 * most))

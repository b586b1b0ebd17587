"""Following a stream: its elements from a position on, as server-sent events or frames of a WebSocket.

RDF Messages, section 3 (SSE, WebSocket). `push.py` serializes the elements; `bounds.py` limits the number of followers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import WSCloseCode, web

from construct_messages.rdf.errors import ConstructMessagesError, ProtocolError
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import EVENT_STREAM
from construct_messages.rdf.wire import SUBPROTOCOLS, Header, Parameter
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Permit
from construct_messages.server.http.event_stream import check_text
from construct_messages.server.http.sending import ClientLeft, reset, send
from construct_messages.server.streams.bounds import CLOSE_SECONDS, StreamLimits
from construct_messages.server.streams.following.fanout import Fanout, SharedPlace
from construct_messages.server.streams.output_view import OutputView
from construct_messages.server.streams.push import (
    Live,
    ServerSocket,
    close,
    event_stream,
    push_frames,
    refuse,
)
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import InThread, record_of
from construct_messages.server.streams.selection import (
    UPPER_BOUNDS,
    select,
    selecting,
    sequence_parameter,
)
from construct_messages.streams.store import StreamStore

_BYTES: Final = 1 << 12  # the maximal size of a follower's frames, which are only pings and a close


class FollowingView:
    """The followers of the streams of a store.

    Args:
        settings: the maximal idle time of followers.
        store: the store of the streams.
        bounds: the maximal number of followers.
        output: serializes elements as events and frames.
        in_thread: calls a function in a thread, so that it does not block the event loop.
        admit: rejects requests for a WebSocket that may not read.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        output: OutputView,
        in_thread: InThread,
        admit: Callable[[web.Request], Awaitable[Permit]],
    ) -> None:
        self._settings, self._store, self._bounds, self._output = settings, store, bounds, output
        self._in_thread, self._admit = in_thread, admit
        self._live, self._fanout = Live(store, settings.heartbeat_seconds), Fanout(store)

    def stop(self) -> None:
        """Ends all event streams and WebSockets with the reason; followers resume after their last element."""
        self._live.stop()
        self._fanout.stop()

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Answers with server-sent events."""
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "events", name
        format = find_format(request.query.get("format", "nq"))[0]
        check_text(format)
        media_type = format.document_type
        headers = {
            "Content-Type": EVENT_STREAM,
            "Cache-Control": "no-store",
            Header.CONTENT_TYPE: media_type,
            "X-Accel-Buffering": "no",
        }
        record.format = media_type
        parameters = selecting(request.query)
        if Header.LAST_EVENT_ID in request.headers:
            parameters[Parameter.AFTER] = request.headers[Header.LAST_EVENT_ID]
        with self._bounds.following(name):
            after = await self._after(name, parameters)
            await self._output.check_next(name, after, format)
            headers |= {Header.AFTER: str(after), Header.IDENTITY: str(self._store.state(name).id)}
            if request.method == "HEAD":
                return web.Response(headers=headers)
            pushing = self._output.events(format)
            place = SharedPlace(self._fanout, pushing, request, record)
            body = event_stream(self._live.pages(name, after, place), pushing, record.deliver)
            return await send(
                request, body, headers, idle_seconds=self._settings.idle_seconds, sent=record.sent
            )

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """Answers with a WebSocket whose frames are elements."""
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "websocket", name
        permit = await self._admit(request)
        socket = ServerSocket(
            protocols=tuple(SUBPROTOCOLS),
            timeout=CLOSE_SECONDS,
            heartbeat=self._settings.heartbeat_seconds,
            max_msg_size=_BYTES,
            compress=False,  # otherwise each frame would be compressed separately for each follower
        )
        if not socket.can_prepare(request):
            raise ProtocolError("this is a WebSocket", status=426, hint="connect by ws: or wss:")
        with self._bounds.following(name):
            after = await self._after(name, selecting(request.query))
            try:
                await socket.prepare(request)
                await self._push(request, socket, name, after, record, permit)
            except ConnectionError as error:
                raise ClientLeft("left") from error
        return socket

    async def _push(
        self,
        request: web.Request,
        socket: web.WebSocketResponse,
        name: str,
        after: int,
        record: StreamRecord,
        permit: Permit,
    ) -> None:
        protocol = socket.ws_protocol or N_QUADS.subprotocol
        record.format = protocol
        pushing = self._output.frames(SUBPROTOCOLS[protocol])
        live = self._live.pages(
            name, after, SharedPlace(self._fanout, pushing, request, record, socket)
        )
        code, reason = WSCloseCode.INTERNAL_ERROR, "the server failed"
        idle_seconds = self._settings.idle_seconds
        try:
            async with permit.limit():
                await push_frames(request, socket, live, pushing, record.deliver, idle_seconds)
            code, reason = WSCloseCode.GOING_AWAY, "the server stops"
        except ClientLeft:
            reset(request)
            raise
        except ConstructMessagesError as error:
            await refuse(request, socket, error)
        finally:
            if not socket.closed:
                await close(request, socket, code, reason)

    async def _after(self, name: str, parameters: Mapping[str, str]) -> int:
        """Returns the sequence after which a follower begins: the requested one, or that of the newest element."""
        state = self._store.state(name)
        after = state.last
        for bound in UPPER_BOUNDS:
            if bound in parameters:
                raise ProtocolError(
                    f"a follower has no {bound}", hint="pull the output of the stream"
                )
        if Parameter.AFTER in parameters:
            after = sequence_parameter(Parameter.AFTER, parameters[Parameter.AFTER])
            self._store.check_position(name, after)
        elif parameters:
            after = (await self._in_thread(select, self._store, state, parameters)).after
        return after

"""Following a stream: its elements from a position on, as server-sent events or frames of a WebSocket.

RDF Messages, section 3 (SSE, WebSocket). `push.py` serializes the elements; `bounds.py` limits the number of followers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from aiohttp import HttpVersion11, WSCloseCode, web

from construct_messages.rdf.errors import ConstructMessagesError, ProtocolError
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import EVENT_STREAM
from construct_messages.rdf.wire import SUBPROTOCOLS, Header, Parameter
from construct_messages.server.http.access import Permit
from construct_messages.server.http.event_stream import check_text
from construct_messages.server.http.sending import ClientLeft, reset, send
from construct_messages.server.streams.bounds import CLOSE_SECONDS
from construct_messages.server.streams.output_view import OutputView
from construct_messages.server.streams.push import (
    Live,
    Pushed,
    Pushing,
    ServerSocket,
    close,
    event_stream,
    push_frames,
    refuse,
)
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import record_of
from construct_messages.server.streams.selection import (
    UPPER_BOUNDS,
    select,
    selecting,
    sequence_parameter,
)
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.store import StreamStore

# --- fanout ---------------------------------------------------------------------------------------
# Writes new elements from one task to all followers of a stream that have every earlier element.
#
# Waking a task for each follower costs more than sending an element. A follower whose connection does not accept an
# element immediately continues in its own task, from its own position, and so does one at another position. The only
# part of HTTP here is the chunked coding (RFC 9112, section 7.1).

_IN_A_ROW: Final = 200  # followers that are written to before other tasks run
_COUNTING_SECONDS: Final = 1.0  # interval of updates of the metrics
_SHARED_BYTES: Final = 1 << 16  # of elements that are written to all; larger pages are old elements

_Key: TypeAlias = tuple[str, int, Pushing]


class _Page(NamedTuple):
    """Elements that are written to all followers.

    Args:
        plain, chunk: their bytes, alone and as a chunk of a body.
        elements: the number of elements.
        last: the sequence of the last one.
        now: the time of the event loop.
    """

    plain: bytes
    chunk: bytes
    elements: int
    last: int
    now: float

    @classmethod
    def of(cls, pushed: Pushed, last: int) -> _Page:
        """Returns the elements of a page."""
        plain = b"".join(pushed.pieces)
        chunk = b"%x\r\n%s\r\n" % (len(plain), plain)
        return cls(plain, chunk, pushed.elements, last, asyncio.get_running_loop().time())


class SharedPlace:
    """The place of one follower; see `SharedWriting`.

    Args:
        fanout: the fanout of the store.
        pushing: serializes the elements.
        request: the request, whose connection is written to.
        record: counts sent elements and bytes.
        socket: the WebSocket of the request; None: it is answered with a body.
    """

    def __init__(
        self,
        fanout: Fanout,
        pushing: Pushing,
        request: web.Request,
        record: StreamRecord,
        socket: web.WebSocketResponse | None = None,
    ) -> None:
        self._fanout, self._pushing, self._request = fanout, pushing, request
        self.record, self._socket = record, socket
        self._chunked = socket is None and request.version >= HttpVersion11
        self._position = 0
        self._left: asyncio.Future[int] | None = None
        self._wrote: Callable[[float], None] = lambda _: None

    async def wait(
        self, stream: str, identity: int, position: int, wrote: Callable[[float], None]
    ) -> int | None:
        """Waits in a group of followers; see `SharedWriting.wait`."""
        if self._fanout.is_stopped:
            return None
        group = self._fanout.group((stream, identity, self._pushing), position)
        if group.position != position:
            return None
        self._position = position
        self._left, self._wrote = asyncio.get_running_loop().create_future(), wrote
        group.places[self] = None
        try:
            return await self._left
        finally:
            self._left = None
            group.places.pop(self, None)

    def leave(self) -> None:
        """Leaves the group; see `SharedWriting.leave`."""
        if self._left is not None and not self._left.done():
            self._left.set_result(self._position)

    def write(self, page: _Page) -> bool:
        """Writes elements if the connection accepts them immediately; returns whether it did."""
        request, socket = self._request, self._socket
        transport = request.transport
        if (
            self._left is None
            or self._left.done()
            or (socket is not None and socket.closed)
            or transport is None
            or transport.is_closing()
            or request.protocol.writing_paused
            or transport.get_write_buffer_size()
        ):
            return False
        transport.write(page.chunk if self._chunked else page.plain)
        self.record.bytes += len(page.plain)
        self.record.delivered += page.elements
        self._position = page.last
        self._wrote(page.now)
        return True


class _Group:
    """The followers of one stream at one position, with one format and transport."""

    def __init__(self, store: StreamStore, key: _Key, position: int) -> None:
        self._store, self._key = store, key
        self.position = position
        self.places: dict[SharedPlace, None] = {}
        self._counted = 0.0

    async def run(self) -> None:
        """Writes to all followers until none is left."""
        stream, identity, pushing = self._key
        # each follower gets the error of the store itself
        with suppress(ConstructMessagesError), self._store.changes() as changed:
            while self.places:
                changed.clear()
                page = await self._store.apage(stream, self.position)
                if self._store.state(stream).id != identity:
                    return
                if not page:
                    await changed.wait()
                    continue
                pushed = pushing.push(page)
                if pushed.refused is not None or sum(map(len, pushed.pieces)) > _SHARED_BYTES:
                    return
                self.position = page[-1].sequence
                await self._write(_Page.of(pushed, self.position))

    async def _write(self, page: _Page) -> None:
        counting = page.now - self._counted >= _COUNTING_SECONDS
        for number, place in enumerate(list(self.places), 1):
            if place not in self.places:
                continue
            if not place.write(page):
                del self.places[place]
                place.leave()
            elif counting:
                place.record.observer(place.record)
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
        if counting:
            self._counted = page.now


class Fanout:
    """The groups of followers of a store.

    Args:
        store: the store of the streams.
    """

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._groups: dict[_Key, tuple[_Group, asyncio.Task[None]]] = {}
        self.is_stopped = False

    def group(self, key: _Key, position: int) -> _Group:
        """Returns the group of followers, creating it if necessary."""
        if (known := self._groups.get(key)) is not None:
            return known[0]
        group = _Group(self._store, key, position)
        task = asyncio.create_task(group.run())
        self._groups[key] = group, task

        def ended(_: asyncio.Task[None]) -> None:  # also if the task was cancelled before it began
            del self._groups[key]
            for place in group.places:
                place.leave()

        task.add_done_callback(ended)
        return group

    def stop(self) -> None:
        """Ends all groups and creates no others; each follower continues in its own task."""
        self.is_stopped = True
        for _, task in self._groups.values():
            task.cancel()


# --- view -----------------------------------------------------------------------------------------

_BYTES: Final = 1 << 12  # the maximal size of a follower's frames, which are only pings and a close


class FollowingView:
    """The followers of the streams of a store."""

    def __init__(self, served: ServedStreams, output: OutputView) -> None:
        self._served, self._output, self._bounds = served, output, served.limits
        self._settings, self._store = served.settings, served.store
        self._live = Live(served.store, served.settings.heartbeat_seconds)
        self._fanout = Fanout(served.store)

    def stop(self) -> None:
        """Ends all event streams and WebSockets with the reason; followers resume after their last element."""
        self._live.stop()
        self._fanout.stop()

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Answers with server-sent events."""
        async with (await self._served.admit_reader(request)).limit():
            return await self._events(request)

    async def _events(self, request: web.Request) -> web.StreamResponse:
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
        permit = await self._served.admit_reader(request)
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
            after = (await self._served.in_thread(select, self._store, state, parameters)).after
        return after

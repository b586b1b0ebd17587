"""Following a stream: its elements from a position on, as server-sent events or frames of a WebSocket.

RDF Messages, section 3 (SSE, WebSocket); WHATWG HTML, section 9.2 (server-sent events); RFC 6455. Both begin after an
element that the follower names, so that followers miss nothing when they reconnect. Elements for many followers are
serialized once.
"""

from __future__ import annotations

import asyncio
import struct
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Final, NamedTuple, TypeAlias

from aiohttp import HttpVersion11, WebSocketError, WSCloseCode, WSMsgType, web
from aiohttp.http import WebSocketReader, WebSocketWriter

from construct_messages.errors import (
    ConstructMessagesError,
    NotFound,
    ProtocolError,
    UnsupportedByFormat,
)
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import EVENT_STREAM
from construct_messages.rdf.wire import SUBPROTOCOLS, Event, Header, Parameter, close_code
from construct_messages.server.http.access import Permit
from construct_messages.server.http.sending import (
    HEARTBEAT,
    ClientLeft,
    check_text,
    error_event,
    event,
    reset,
    retry,
    send,
    sending,
)
from construct_messages.server.streams.documents import ElementDocuments, not_carried
from construct_messages.server.streams.output_view import OutputView
from construct_messages.server.streams.requests import (
    UPPER_BOUNDS,
    StreamRecord,
    record_of,
    select,
    selecting,
    sequence_parameter,
)
from construct_messages.server.streams.served import CLOSE_SECONDS, ServedStreams
from construct_messages.streams.element import Element
from construct_messages.streams.store import StreamStore

# --- push -----------------------------------------------------------------------------------------
# Pushes new elements: as server-sent events, and as frames of WebSockets.
#
# RDF Messages, section 3 (SSE, WebSocket); WHATWG HTML, section 9.2 (server-sent events); RFC 6455. Both begin after
# an element that the follower names, so that followers miss nothing when they reconnect. Elements for many followers
# are serialized once.

_FINAL: Final = 0x80  # the FIN bit: the last frame of a message
_CLOSE_REASON: Final = 120  # bytes; a close frame has 125
_CLOSING_SECONDS: Final = 3.0  # for a client that does not read
_PIECE_BYTES: Final = 1 << 16  # that are written at once
_REMEMBERED_BYTES: Final = 1 << 20


def frame(document: bytes, *, text: bool) -> bytes:
    """Returns a message as a server's frame of a WebSocket (RFC 6455, section 5.2).

    >>> frame(b"abc", text=True), frame(b"", text=False), frame(bytes(300), text=True)[:4]
    (b'\\x81\\x03abc', b'\\x82\\x00', b'\\x81~\\x01,')
    """
    first, size = (_FINAL | (WSMsgType.TEXT if text else WSMsgType.BINARY)), len(document)
    if size < 126:
        return struct.pack("!BB", first, size) + document
    if size < 1 << 16:
        return struct.pack("!BBH", first, 126, size) + document
    return struct.pack("!BBQ", first, 127, size) + document


class ServerSocket(web.WebSocketResponse):
    """A WebSocket that closes with 1002 at a frame that is not masked (RFC 6455, section 5.1).

    The reader of aiohttp accepts such frames. The names with an underscore are all that it takes to be asked before it.
    """

    def _post_start(
        self, request: web.BaseRequest, protocol: str | None, writer: WebSocketWriter
    ) -> None:
        handler = request.protocol
        early, handler._message_tail = handler._message_tail, b""  # came with the request
        super()._post_start(request, protocol, writer)
        handler._payload_parser = masked = _MaskedFrames(handler._payload_parser, self._refuse)
        masked.feed_data(early)

    def _refuse(self, error: WebSocketError) -> None:
        if self._reader is not None:
            self._reader.set_exception(error)


class _MaskedFrames:
    """Passes bytes on to a reader of frames, up to the first frame that is not masked."""

    def __init__(self, reader: WebSocketReader, refuse: Callable[[WebSocketError], None]) -> None:
        self._reader, self._refuse = reader, refuse
        self._refused = False
        self._header = b""  # what has come of a header whose rest is missing
        self._skipped = 0  # bytes until the next header

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._refused:
            return True, b""
        known = len(self._header)
        data, start = (self._header + data if known else data), self._skipped
        end = len(data)
        while start + 1 < end:
            size = data[start + 1] - 0x80
            if size < 0:
                self._refused = True
                self._reader.feed_data(data[known:start])
                reason = "a client's frames are masked"
                self._refuse(WebSocketError(WSCloseCode.PROTOCOL_ERROR, reason))
                return True, b""
            if size < 126:
                start += 6 + size  # 2 bytes, and the mask
                continue
            extended = 2 if size == 126 else 8
            if start + 2 + extended > end:
                break
            size = int.from_bytes(data[start + 2 : start + 2 + extended])
            start += 6 + extended + size
        self._header, self._skipped = data[start:], max(0, start - end)
        return self._reader.feed_data(data[known:] if known else data)


class Pushed(NamedTuple):
    """Elements as complete events or frames, in groups; `refused` says why the next one cannot be sent, and later ones
    are not.
    """

    pieces: tuple[bytes, ...]
    elements: int
    refused: UnsupportedByFormat | None = None


class Pushing:
    """Serializes pages of elements for a transport and a format. Followers at the same position share them."""

    def __init__(
        self, documents: ElementDocuments, wrapped: Callable[[Element, bytes], bytes]
    ) -> None:
        self._documents, self._wrapped = documents, wrapped
        self._known: OrderedDict[tuple[str, int, int, int], Pushed] = OrderedDict()
        self._bytes = 0

    @classmethod
    def events(cls, documents: ElementDocuments) -> Pushing:
        """Returns the serializer of server-sent events."""
        return cls(
            documents, lambda element, document: event(Event.MESSAGE, document, element.sequence)
        )

    @classmethod
    def frames(cls, documents: ElementDocuments) -> Pushing:
        """Returns the serializer of frames of WebSockets."""
        return cls(documents, lambda _, document: frame(document, text=not documents.format.binary))

    def push(self, page: Sequence[Element]) -> Pushed:
        """Returns a page of consecutive elements, at least one, as bytes."""
        newest = page[-1]
        # a stream that was deleted and created again has other times
        key = (newest.stream, page[0].sequence, newest.sequence, newest.microseconds)
        if (known := self._known.get(key)) is not None:
            return known
        pushed = self._made(page)
        size = sum(map(len, pushed.pieces))
        if (
            size <= _PIECE_BYTES
        ):  # longer pages are old elements, which few followers read at the same time
            self._known[key] = pushed
            self._bytes += size
            while self._bytes > _REMEMBERED_BYTES:
                _, old = self._known.popitem(last=False)
                self._bytes -= sum(map(len, old.pieces))
        return pushed

    def _made(self, page: Sequence[Element]) -> Pushed:
        pieces: list[bytes] = []
        held: list[bytes] = []
        size = 0
        refused = None
        count = 0
        try:
            for element, document in zip(page, self._documents.encode(page), strict=True):
                held.append(self._wrapped(element, document))
                count += 1
                size += len(held[-1])
                if size > _PIECE_BYTES:
                    pieces.append(b"".join(held))
                    held, size = [], 0
        except UnsupportedByFormat as error:
            refused = error
        if held:
            pieces.append(b"".join(held))
        return Pushed(tuple(pieces), count, refused)


class Live:
    """New elements of the streams of a store, until the server stops. Followers get an empty page after `seconds`
    without elements.
    """

    def __init__(self, store: StreamStore, seconds: float) -> None:
        self._store, self._seconds = store, seconds
        self._following: set[Callable[[], None]] = set()
        self._stopped = False

    def stop(self) -> None:
        """Ends the pages of all followers."""
        self._stopped = True
        for wake in self._following:
            wake()

    async def pages(
        self, stream: str, after: int, place: SharedPlace | None = None
    ) -> AsyncGenerator[list[Element]]:
        """Yields pages of elements after a sequence.

        `place` writes elements to the follower together with other followers; these are not in the pages. A stream that
        was deleted is not found, even if another one has its name, whose elements must not follow.
        """
        position, followed = after, self._store.state(stream).id
        with self._store.changes() as changed:

            def wake() -> None:
                changed.set()
                if place is not None:
                    place.leave()

            self._following.add(wake)
            pause = _Pause(self._seconds, wake)
            try:
                while not self._stopped:
                    changed.clear()
                    page = await self._store.apage(stream, position)
                    if self._store.state(stream).id != followed:
                        raise NotFound(
                            f"the stream {stream} was deleted, and another one has its name"
                        )
                    if page:
                        position = page[-1].sequence
                    elif not pause.is_over:
                        reached = None
                        if place is not None:
                            reached = await place.wait(stream, followed, position, pause.begin)
                        if reached is None:
                            await changed.wait()
                        else:
                            position = reached
                        continue
                    pause.begin()
                    yield page
            finally:
                pause.cancel()
                self._following.discard(wake)


class _Pause:
    """Wakes a follower after a time without elements.

    Its timer is only reset when it fires: resetting it for each element would cost as much as sending the element.
    """

    def __init__(self, seconds: float, wake: Callable[[], None]) -> None:
        self._seconds, self._wake = seconds, wake
        self._loop = asyncio.get_running_loop()
        self.begin()
        self._timer = self._loop.call_later(seconds, self._ring)

    def begin(self, now: float | None = None) -> None:
        """Starts or restarts the pause."""
        if now is None:
            now = self._loop.time()
        self.is_over, self._end = False, now + self._seconds

    def cancel(self) -> None:
        """Cancels the timer."""
        self._timer.cancel()

    def _ring(self) -> None:
        left = self._end - self._loop.time()
        if left <= 0:
            self.is_over = True
            self._wake()
        self._timer = self._loop.call_later(left if left > 0 else self._seconds, self._ring)


async def event_stream(
    live: AsyncGenerator[list[Element]], pushing: Pushing, delivered: Callable[[int], None]
) -> AsyncGenerator[bytes]:
    """Yields server-sent events, and a comment for each pause, which keeps the connection open.

    `delivered` is called with the number of sent elements.

    An element that the format cannot represent ends them with an event `error`; a stop of the server ends them with a
    comment.
    """
    yield retry()
    async with aclosing(live):
        async for page in live:
            if not page:
                yield HEARTBEAT
                continue
            pushed = pushing.push(page)
            for piece in pushed.pieces:
                yield piece
            delivered(pushed.elements)
            if pushed.refused is not None:
                yield error_event(not_carried(pushed.refused))
                return
    yield b": the server stops; come back after the last event\n\n"


async def push_frames(
    request: web.Request,
    socket: web.WebSocketResponse,
    live: AsyncGenerator[list[Element]],
    pushing: Pushing,
    delivered: Callable[[int], None],
    idle_seconds: float,
) -> None:
    """Sends each element as a frame, until the client disconnects or the elements end. It closes `live`; a client that
    does not read for `idle_seconds` has left.
    """

    async def send() -> None:
        async with aclosing(live):
            async for page in live:
                if not page:
                    continue  # pings keep the WebSocket open
                pushed = pushing.push(page)
                for piece in pushed.pieces:
                    await write_frames(request, socket, piece, idle_seconds)
                delivered(pushed.elements)
                if pushed.refused is not None:
                    raise pushed.refused

    sends, leaves = asyncio.ensure_future(send()), asyncio.ensure_future(_until_closed(socket))
    try:
        await asyncio.wait([sends, leaves], return_when=asyncio.FIRST_COMPLETED)
        if sends.done():
            sends.result()
        else:
            drop_unread(request)
    finally:
        for task in (sends, leaves):
            task.cancel()
        await asyncio.gather(sends, leaves, return_exceptions=True)


async def write_frames(
    request: web.Request, socket: web.WebSocketResponse, frames: bytes, idle_seconds: float
) -> None:
    """Sends frames in one write; the WebSocket itself would write each one separately. A client that does not read for
    `idle_seconds` has left; the caller resets the connection.
    """
    transport = request.transport
    if socket.closed or transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    transport.write(frames)
    if request.protocol.writing_paused:
        try:
            async with asyncio.timeout(idle_seconds):
                await request.writer.drain()
        except TimeoutError:
            raise ClientLeft("idle") from None


async def _until_closed(socket: web.WebSocketResponse) -> None:
    """Reads frames, in order to answer pings and notice the close; elements are published elsewhere."""
    async for frame in socket:
        if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            await socket.close(
                code=WSCloseCode.UNSUPPORTED_DATA, message=b"publish to the input of the stream"
            )


def drop_unread(request: web.Request) -> None:
    """Resets the connection of a client that has left, or answers no pings, if it has not read everything.

    Otherwise the connection stays open until it does.
    """
    transport = request.transport
    if transport is not None and transport.is_closing() and transport.get_write_buffer_size():
        reset(request)


async def refuse(
    request: web.Request, socket: web.WebSocketResponse, error: ConstructMessagesError
) -> None:
    """Closes a WebSocket with the code for an error's status, and the error's message; see `close`."""
    await close(request, socket, close_code(error.status), error.message)


async def close(
    request: web.Request, socket: web.WebSocketResponse, code: int, reason: str
) -> None:
    """Closes a WebSocket with a code and a reason, which is truncated if necessary. The connection of a client that
    does not read is reset.
    """
    message = reason.encode()[:_CLOSE_REASON].decode(errors="ignore").encode()
    await sending(request, socket.close(code=code, message=message), _CLOSING_SECONDS)


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
    """Elements that are written to all followers: their bytes alone and as a chunk of a body, and the time of the event
    loop.
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
    """The place of one follower among those that are written to together; without a socket, it is answered with a
    body."""

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
        """Waits while elements after a position are written, until `leave` or until the follower must write itself.

        `wrote` is called after each write with the time of the event loop. Returns the sequence of the last written
        element; None: the follower cannot be served from this position.
        """
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
        """Ends `wait`."""
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
    """The groups of followers of a store."""

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
        # all followers share the serializer of a format
        self._event_pushing: dict[str, Pushing] = {}
        self._frame_pushing: dict[str, Pushing] = {}

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
            documents = self._output.documents(format)
            pushing = self._event_pushing.setdefault(format.name, Pushing.events(documents))
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
        format = SUBPROTOCOLS[protocol]
        documents = self._output.documents(format)
        pushing = self._frame_pushing.setdefault(format.name, Pushing.frames(documents))
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

"""Pushes new elements: as server-sent events, and as frames of WebSockets.

RDF Messages, section 3 (SSE, WebSocket); WHATWG HTML, section 9.2 (server-sent events); RFC 6455. Both begin after an
element that the follower names, so that followers miss nothing when they reconnect. Elements for many followers are
serialized once.
"""

from __future__ import annotations

import asyncio
import struct
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from aiohttp import WebSocketError, WSCloseCode, WSMsgType, web
from aiohttp.http import WebSocketReader, WebSocketWriter

from construct_messages.rdf.errors import (
    ConstructMessagesError,
    NotFound,
    UnsupportedByFormat,
)
from construct_messages.rdf.wire import Event, close_code
from construct_messages.server.http.event_stream import STILL_HERE, error_event, event, retry
from construct_messages.server.http.sending import ClientLeft, reset, sending
from construct_messages.server.streams.documents import ElementDocuments, not_carried
from construct_messages.streams.element import Element
from construct_messages.streams.store import StreamStore

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
    """Passes bytes on to a reader of frames, up to the first frame that is not masked.

    Args:
        reader: gets the bytes; it reads the frames.
        refuse: called once, at the first frame without a mask.
    """

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
    """Elements as the bytes of a transport.

    Args:
        pieces: complete events or frames, in groups.
        elements: the number of elements.
        refused: why the next element cannot be sent; later ones are not sent either. None: all were sent.
    """

    pieces: tuple[bytes, ...]
    elements: int
    refused: UnsupportedByFormat | None = None


class Pushing:
    """Serializes pages of elements for a transport and a format. Followers at the same position share them.

    Args:
        documents: the documents of elements in the format.
        wrapped: returns an element and its document as an event or a frame.
    """

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


class SharedWriting(Protocol):
    """Writes to a follower together with others."""

    async def wait(
        self, stream: str, identity: int, position: int, wrote: Callable[[float], None]
    ) -> int | None:
        """Waits while elements after a position are written, until `leave` or until the follower must write by itself.

        Args:
            stream, identity: the name and the number of the stream.
            position: the sequence of the last element that the follower has, the newest one.
            wrote: called after each write with the time of the event loop.

        Returns:
            The sequence of the last written element; None: the follower cannot be served from this position.
        """
        ...

    def leave(self) -> None:
        """Ends `wait`."""
        ...


class Live:
    """New elements of the streams of a store, until the server stops.

    Args:
        store: the store of the streams.
        seconds: the time without elements after which followers get an empty page.
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
        self, stream: str, after: int, place: SharedWriting | None = None
    ) -> AsyncGenerator[list[Element]]:
        """Yields pages of elements after a sequence.

        Args:
            stream: the name of the stream.
            after: the sequence.
            place: writes elements to the follower together with other followers; these are not in the pages. None: all
                elements are in the pages.

        Raises:
            NotFound: see `StreamStore.read`; also if the stream was deleted and another one with its name was created,
                whose elements must not follow.
            Gone, StoreError: see `StreamStore.read`.
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

    Args:
        seconds: the length of the pause.
        wake: called when the pause is over.

    Attributes:
        is_over: whether the pause is over.
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

    An element that the format cannot represent ends them with an event `error`; a stop of the server ends them with a
    comment.

    Args:
        live: pages of elements, see `Live`; closed at the end.
        pushing: the serializer of events.
        delivered: called with the number of sent elements.
    """
    yield retry()
    async with aclosing(live):
        async for page in live:
            if not page:
                yield STILL_HERE
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
    """Sends each element as a frame, until the client disconnects or the elements end.

    Args:
        request: the request of the WebSocket.
        socket: the prepared WebSocket, without compression.
        live: pages of elements, see `Live`; closed at the end.
        pushing: the serializer of frames.
        delivered: called with the number of sent elements.
        idle_seconds: the maximal time for which the client does not read.

    Raises:
        UnsupportedByFormat: an element cannot be sent.
        ClientLeft: the client read nothing for too long.
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
    """Sends frames in one write; the WebSocket itself would write each one separately.

    Args:
        request: the request of the WebSocket.
        socket: the prepared WebSocket.
        frames: see `frame`.
        idle_seconds: the maximal time for which the client does not read.

    Raises:
        ConnectionResetError: the client has left.
        ClientLeft: the client read nothing for too long; the caller resets the connection.
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
    """Closes a WebSocket with a code and a reason, which is truncated if necessary.

    Raises:
        ClientLeft: the client does not read, and the connection was reset.
    """
    message = reason.encode()[:_CLOSE_REASON].decode(errors="ignore").encode()
    await sending(request, socket.close(code=code, message=message), _CLOSING_SECONDS)

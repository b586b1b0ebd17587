"""Elements pushed as they come: server-sent events, and frames of WebSockets.

RDF Messages, section 3 (SSE, WebSocket); WHATWG HTML, section 9.2 (server-sent events); RFC 6455. Both begin after an
element that the follower names, so that one that connects again misses nothing. What many followers get at once is made
ready once.
"""

from __future__ import annotations

import asyncio
import struct
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.errors import (
    ConstructMessagesError,
    NotFound,
    UnsupportedByFormat,
)
from construct_messages.net.wire import Event, close_code
from construct_messages.server.http.event_stream import STILL_HERE, error_event, event, retry
from construct_messages.server.streams.documents import ElementDocuments, not_carried
from construct_messages.streams.element import Element
from construct_messages.streams.store import StreamStore

_FINAL: Final = 0x80  # the bit of the last frame of a message
_CLOSE_REASON: Final = 120  # bytes; a close frame has 125
_PIECE_BYTES: Final = 1 << 16  # that are written at once
_REMEMBERED_BYTES: Final = 1 << 20


def frame(document: bytes, *, text: bool) -> bytes:
    """A message as a frame of a WebSocket, as servers send them (RFC 6455, section 5.2).

    >>> frame(b"abc", text=True), frame(b"", text=False), frame(bytes(300), text=True)[:4]
    (b'\\x81\\x03abc', b'\\x82\\x00', b'\\x81~\\x01,')
    """
    first, size = (_FINAL | (WSMsgType.TEXT if text else WSMsgType.BINARY)), len(document)
    if size < 126:
        return struct.pack("!BB", first, size) + document
    if size < 1 << 16:
        return struct.pack("!BBH", first, 126, size) + document
    return struct.pack("!BBQ", first, 127, size) + document


class Pushed(NamedTuple):
    """Elements as the bytes of a transport.

    Args:
        pieces: whole events or frames, some of them together.
        elements: how many there are.
        refused: why the next element cannot be sent, and none after it; None: all were sent.
    """

    pieces: tuple[bytes, ...]
    elements: int
    refused: UnsupportedByFormat | None = None


class Pushing:
    """Pages of elements in the bytes of a transport and format. Followers that are at the same place share them.

    Args:
        documents: in the format.
        wrapped: an element and its document as an event or a frame.
    """

    def __init__(
        self, documents: ElementDocuments, wrapped: Callable[[Element, bytes], bytes]
    ) -> None:
        self._documents, self._wrapped = documents, wrapped
        self._known: OrderedDict[tuple[str, int, int, int], Pushed] = OrderedDict()
        self._bytes = 0

    @classmethod
    def events(cls, documents: ElementDocuments) -> Pushing:
        """As server-sent events."""
        return cls(
            documents, lambda element, document: event(Event.MESSAGE, document, element.sequence)
        )

    @classmethod
    def frames(cls, documents: ElementDocuments) -> Pushing:
        """As frames of WebSockets."""
        return cls(documents, lambda _, document: frame(document, text=not documents.format.binary))

    def push(self, page: Sequence[Element]) -> Pushed:
        """A page of elements that follow each other; at least one."""
        newest = page[-1]
        # a stream that was deleted and made again has other times
        key = (newest.stream, page[0].sequence, newest.sequence, newest.microseconds)
        if (known := self._known.get(key)) is not None:
            return known
        pushed = self._made(page)
        size = sum(map(len, pushed.pieces))
        if (
            size <= _PIECE_BYTES
        ):  # what is longer is history, where hardly two are at the same place
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
        """Has what follows a position written, until `leave`, or until the follower has to go on by itself.

        Args:
            stream, identity: of which stream; its name and its number.
            position: the sequence of the last element that the follower has; there is no newer one yet.
            wrote: called with the time of the event loop when something was written.

        Returns:
            The sequence of the last element that was written; None: nothing can be written from this position.
        """
        ...

    def leave(self) -> None:
        """Ends `wait`."""
        ...


class Live:
    """Elements of the streams of a store as they come, until the server stops.

    Args:
        store: where the streams are.
        seconds: where no element comes for so long, followers get an empty page.
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
        """Pages of elements after a sequence.

        Args:
            stream: its name.
            after: the sequence.
            place: where elements are written to the follower together with others, and do not come in a page; None:
                nowhere.

        Raises:
            NotFound: see `StreamStore.read`; also where another stream has got the name, whose elements would follow on
                those of the one that was deleted.
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
    """Wakes a follower for whom nothing came for a while.

    Its timer is set again when it rings, and not for each element, which would cost as much as sending it.

    Args:
        seconds: how long a pause is.
        wake: called when it is over.

    Attributes:
        is_over: whether it is.
    """

    def __init__(self, seconds: float, wake: Callable[[], None]) -> None:
        self._seconds, self._wake = seconds, wake
        self._loop = asyncio.get_running_loop()
        self.begin()
        self._timer = self._loop.call_later(seconds, self._ring)

    def begin(self, now: float | None = None) -> None:
        """Begins the pause, or begins it again."""
        if now is None:
            now = self._loop.time()
        self.is_over, self._end = False, now + self._seconds

    def cancel(self) -> None:
        """Ends it for good."""
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
    """Server-sent events, and a comment for each pause, which keeps the connection open.

    An element that the format cannot represent ends them, with an event `error`; a server that stops ends them with a
    comment.

    Args:
        live: pages of elements, see `Live`; closed at the end.
        pushing: as events.
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
) -> None:
    """Sends each element as a frame, until the client leaves or nothing more can come.

    Args:
        request: that became the socket.
        socket: prepared, without compression; closed where an element cannot be sent.
        live: pages of elements, see `Live`; closed at the end.
        pushing: as frames.
        delivered: called with the number of sent elements.
    """
    sending = asyncio.ensure_future(_send_frames(request, socket, live, pushing, delivered))
    leaving = asyncio.ensure_future(_until_closed(socket))
    try:
        await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
        if leaving.done() and not sending.done():
            return
        try:
            sending.result()
        except ConstructMessagesError as error:
            await close(socket, error)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _send_frames(
    request: web.Request,
    socket: web.WebSocketResponse,
    pages: AsyncGenerator[list[Element]],
    pushing: Pushing,
    delivered: Callable[[int], None],
) -> None:
    async with aclosing(pages):
        async for page in pages:
            if not page:
                continue  # pings of the socket keep it open
            pushed = pushing.push(page)
            for piece in pushed.pieces:
                await write_frames(request, socket, piece)
            delivered(pushed.elements)
            if pushed.refused is not None:
                raise pushed.refused


async def write_frames(request: web.Request, socket: web.WebSocketResponse, frames: bytes) -> None:
    """Sends frames in one write, and not each in one of its own, as the socket would.

    Args:
        request: that became the socket.
        socket: prepared.
        frames: see `frame`.

    Raises:
        ConnectionResetError: the client has left.
    """
    transport = request.transport
    if socket.closed or transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    transport.write(frames)
    if request.protocol.writing_paused:
        await request.writer.drain()


async def _until_closed(socket: web.WebSocketResponse) -> None:
    """Reads what comes, which answers pings and sees the close; elements are published elsewhere."""
    async for frame in socket:
        if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            await socket.close(
                code=WSCloseCode.UNSUPPORTED_DATA, message=b"publish to the input of the stream"
            )


async def close(socket: web.WebSocketResponse, error: ConstructMessagesError) -> None:
    """Closes a socket with the code of an error's status, and its message as far as it fits."""
    reason = error.message.encode()[:_CLOSE_REASON].decode(errors="ignore").encode()
    await socket.close(code=close_code(error.status), message=reason)

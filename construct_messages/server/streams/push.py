"""Elements pushed as they come: server-sent events, and frames of WebSockets.

RDF Messages, section 3 (SSE, WebSocket); WHATWG HTML, section 9.2 (server-sent events); RFC 6455. Both begin behind an
element that the follower names, so that one that comes back misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.errors import ConstructMessagesError, NotAcceptable
from construct_messages.formats import FORMATS, Format
from construct_messages.server.streams.documents import Documents
from construct_messages.streams.element import Element

SUBPROTOCOLS: Final = {format.subprotocol: format for format in FORMATS}
"""The subprotocols of WebSocket, and the formats of their frames."""

EVENT: Final = b"rdf-message"
_RETRY_MILLISECONDS: Final = 2000
_CLOSE_REASON: Final = 120  # bytes; a close frame has 125


def check_text(format: Format) -> None:
    """Refuses a binary format for server-sent events.

    Raises:
        NotAcceptable: it is one.
    """
    if format.binary:
        raise NotAcceptable(
            f"server-sent events cannot carry {format.name}, which is binary",
            hint="take a text format, or WebSocket",
        )


def event(sequence: int, document: bytes) -> bytes:
    r"""A message as a server-sent event.

    >>> event(3, b"<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:o2> .\n").decode().splitlines()
    ['event: rdf-message', 'id: 3', 'data: <urn:s> <urn:p> <urn:o> .', 'data: <urn:s> <urn:p> <urn:o2> .', '']
    """
    lines = b"\ndata: ".join(document.removesuffix(b"\n").splitlines() or [b""])
    return b"event: %s\nid: %d\ndata: %s\n\n" % (EVENT, sequence, lines)


async def event_stream(
    live: AsyncGenerator[list[Element]], documents: Documents, delivered: Callable[[int], None]
) -> AsyncGenerator[bytes]:
    """Server-sent events, and a comment for each pause, which keeps the connection open.

    Args:
        live: pages of elements, see `with_pauses`; closed at the end.
        documents: in the format of the events.
        delivered: told how many elements are sent.
    """
    yield b"retry: %d\n\n" % _RETRY_MILLISECONDS
    async with aclosing(live):
        async for page in live:
            yield b"".join([event(each.sequence, documents.encode(each)) for each in page]) or b": still here\n\n"
            delivered(len(page))


async def with_pauses(
    pages: AsyncGenerator[list[Element]], stopping: asyncio.Event, seconds: float
) -> AsyncGenerator[list[Element]]:
    """Pages of elements as they come, until the server stops.

    Args:
        pages: closed at the end.
        stopping: set when the server stops.
        seconds: where none comes for so long, an empty page does.
    """
    stop = asyncio.ensure_future(stopping.wait())
    coming: asyncio.Future[list[Element]] | None = None
    async with aclosing(pages):
        try:
            while True:
                coming = asyncio.ensure_future(anext(pages))
                while not coming.done():
                    done, _ = await asyncio.wait([coming, stop], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                    if stop in done:
                        return
                    if not done:
                        yield []
                yield coming.result()
        finally:
            stop.cancel()
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)


async def push_frames(
    socket: web.WebSocketResponse,
    live: AsyncGenerator[list[Element]],
    documents: Documents,
    delivered: Callable[[int], None],
) -> None:
    """Sends each element as a frame, until the client leaves or nothing more can come.

    Args:
        socket: prepared; closed where an element cannot be sent.
        live: pages of elements, see `with_pauses`; closed at the end.
        documents: in the format of the frames.
        delivered: told how many elements are sent.
    """
    sending = asyncio.ensure_future(_send_frames(socket, live, documents, delivered))
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
    socket: web.WebSocketResponse,
    pages: AsyncGenerator[list[Element]],
    documents: Documents,
    delivered: Callable[[int], None],
) -> None:
    async with aclosing(pages):
        async for page in pages:
            for element in page:
                document = documents.encode(element)
                if documents.is_text:
                    await socket.send_str(document.decode())
                else:
                    await socket.send_bytes(document)
            delivered(len(page))


async def _until_closed(socket: web.WebSocketResponse) -> None:
    """Reads what comes, which answers pings and sees the close; elements are published elsewhere."""
    async for frame in socket:
        if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"publish to the input of the stream")


async def close(socket: web.WebSocketResponse, error: ConstructMessagesError) -> None:
    """Closes a socket with what went wrong: 4000 and the HTTP status, with the message as far as it fits."""
    reason = error.message.encode()[:_CLOSE_REASON].decode(errors="ignore").encode()
    await socket.close(code=4000 + error.status, message=reason)

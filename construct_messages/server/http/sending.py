"""Sends response bodies, so that a failure never looks like a complete body.

Nothing is sent before the first bytes exist, so that an error can still set the status. Later, an error resets the
connection, which every HTTP client reports, even where the end of the connection ends the body (RFC 9112, section 6.3).
A body that can contain the error is truncated after it instead: a reset may discard bytes that the client has not read.
In browsers, so may the end of the connection; it therefore follows a moment later. A slow client holds back its own
source only.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, nullcontext

from aiohttp import web

from construct_messages.rdf.errors import ConstructMessagesError
from construct_messages.server.http.coding import Coder, coder_for

_PIECE = 1 << 16
"""Bytes that a client must take within its idle time."""
_FRAMING = 1 << 14
"""An upper bound for the headers, which are held until the first piece, and the length of a chunk."""
_LAST_READ_SECONDS = 0.5
"""The maximal time for reading the last part of a truncated body."""


class Aborted(Exception):
    """The connection was reset in the middle of a body. The cause is for the server's own log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ClientLeft(Aborted):
    """The client closed the connection, or read nothing for too long."""


async def send(
    request: web.Request,
    chunks: AsyncGenerator[bytes],
    headers: Mapping[str, str],
    *,
    status: int = 200,
    idle_seconds: float,
    buffer_bytes: int = 0,
    coding: str | None = None,
    sent: Callable[[int], None] = lambda _: None,
    failure: Callable[[ConstructMessagesError], bytes] | None = None,
) -> web.StreamResponse:
    """Sends a body chunk by chunk.

    Args:
        request: the request.
        chunks: the body; closed when this function returns or raises.
        headers: the response headers.
        status: the response status.
        idle_seconds: the maximal time without progress of the client.
        buffer_bytes: a body up to this size is held back until it is complete, and sent with its length.
        coding: the content coding to apply and declare.
        sent: called with the size of each piece before it is sent.
        failure: returns the last part of a body that can contain an error; None: it cannot.

    Raises:
        ConstructMessagesError: no byte was sent.
        Aborted: bytes were sent, and the connection was reset, or closed before the end of the body.
    """
    if coding is not None:
        headers = {**headers, "Content-Encoding": coding}
    async with aclosing(chunks):
        coder = coder_for(coding)
        held, ended = await _first(chunks, buffer_bytes)
        if ended:
            body = coder.code(held) + coder.finish()
            sent(len(body))
            whole = web.Response(status=status, body=body, headers=headers)
            await sending(request, whole.prepare(request), idle_seconds)
            await sending(request, whole.write_eof(), idle_seconds)
            return whole
        response = web.StreamResponse(status=status, headers=headers)
        try:
            await sending(request, response.prepare(request), idle_seconds)
            await _stream(request, response, held, chunks, coder, idle_seconds, sent)
        except ConstructMessagesError as error:
            if failure is None:
                reset(request)
            else:
                await _cut_short(request, response, coder.code(failure(error)), idle_seconds)
            raise Aborted(type(error).__name__) from error
        except BaseException:
            reset(request)
            raise
        return response


async def _cut_short(
    request: web.Request, response: web.StreamResponse, last: bytes, idle_seconds: float
) -> None:
    """Sends the last part of a truncated body, and closes the connection without the end of the body.

    Chromium discards unread data when a connection ends within a body.
    """
    await sending(request, response.write(last), idle_seconds)
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=0)  # to wait until all has been sent
        await sending(request, request.writer.drain(), idle_seconds)
        await asyncio.sleep(_LAST_READ_SECONDS)
    if request.transport is not None:  # the client has not left meanwhile
        request.transport.close()


def reset(request: web.Request) -> None:
    """Resets the connection, so that its reader gets an error: SO_LINGER 0 makes the close a reset.

    `transport.abort()` by itself is a clean end of file for a reader of HTTP/1.0.
    """
    transport = request.transport
    if transport is None:
        return  # the client has left
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _first(chunks: AsyncGenerator[bytes], buffer_bytes: int) -> tuple[bytes, bool]:
    """Returns the first bytes, and whether the body has ended."""
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        if held and len(held) > buffer_bytes:
            return bytes(held), False
    return bytes(held), True


async def _stream(
    request: web.Request,
    response: web.StreamResponse,
    first: bytes,
    chunks: AsyncGenerator[bytes],
    coder: Coder,
    idle_seconds: float,
    sent: Callable[[int], None],
) -> None:
    async def pieces(data: bytes) -> None:
        sent(len(data))
        view = memoryview(data)
        for start in range(0, len(data), _PIECE):
            piece = view[start : start + _PIECE]
            # no timer while the client reads: it costs more than sending a small piece
            seconds = None if _takes(request, len(piece)) else idle_seconds
            await sending(request, response.write(piece), seconds)

    await pieces(coder.code(first))
    async for chunk in chunks:
        await pieces(coder.code(chunk))
    await pieces(coder.finish())
    await sending(request, response.write_eof(), idle_seconds)


def _takes(request: web.Request, size: int) -> bool:
    """Returns whether the connection accepts this many body bytes at once, with nothing waiting for the client."""
    transport = request.transport
    if transport is None or request.protocol.writing_paused:
        return False
    return (
        transport.get_write_buffer_size() + size + _FRAMING
        <= transport.get_write_buffer_limits()[1]
    )


async def sending(
    request: web.Request, writing: Awaitable[object], idle_seconds: float | None
) -> None:
    """Awaits a write to the connection of a request.

    Raises:
        ClientLeft: the client did not read within this time, and its connection was reset; or it has disconnected.
    """
    try:
        async with nullcontext() if idle_seconds is None else asyncio.timeout(idle_seconds):
            await writing
    except TimeoutError as error:
        reset(request)
        raise ClientLeft("idle") from error
    except ConnectionError as error:
        raise ClientLeft("left") from error

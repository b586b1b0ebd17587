"""Sends response bodies, so that a failure never looks like a complete body.

Nothing is sent before the first bytes exist, so that an error can still set the status. Later, an error resets the
connection, which every HTTP client reports, even where the end of the connection ends the body (RFC 9112, section 6.3).
A body that can contain the error is truncated after it instead: a reset may discard bytes that the client has not read.
In browsers, so may the end of the connection; it therefore follows a moment later. A slow client holds back its own
source only.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
import sys
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, nullcontext, suppress
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final, Protocol

from aiohttp import web

from construct_messages.errors import (
    ConstructMessagesError,
    DoesNotConform,
    Forbidden,
    NotAcceptable,
    ProtocolError,
    SourceError,
)
from construct_messages.rdf.formats import Format
from construct_messages.rdf.formats.media_types import PROBLEM
from construct_messages.rdf.wire import Event

# --- event stream ---------------------------------------------------------------------------------
# Writes server-sent events, independently of their content. No I/O.
#
# WHATWG HTML, section 9.2.5 (parsing an event stream). `feeds/http/sse.py` reads them.

HEARTBEAT: Final = b": still here\n\n"
"""A comment that keeps a connection open; clients skip it."""

_RETRY_MILLISECONDS: Final = 2000


def retry() -> bytes:
    """Returns the field for the time that clients wait before they reconnect.

    >>> retry()
    b'retry: 2000\\n\\n'
    """
    return b"retry: %d\n\n" % _RETRY_MILLISECONDS


def event(type: Event, data: bytes, id: str | int | None = None) -> bytes:
    r"""Returns an event. `id` is what clients send when they reconnect; None: that of the previous event.

    >>> event(Event.MESSAGE, b"<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:o2> .\n", 3).decode().splitlines()
    ['event: rdf-message', 'id: 3', 'data: <urn:s> <urn:p> <urn:o> .', 'data: <urn:s> <urn:p> <urn:o2> .', '']
    """
    lines = b"\ndata: ".join(data.removesuffix(b"\n").splitlines() or [b""])
    named = b"" if id is None else b"id: %s\n" % str(id).encode()
    return b"event: %s\n%sdata: %s\n\n" % (type.encode(), named, lines)


def error_event(error: ConstructMessagesError, id: str | None = None) -> bytes:
    """Returns the event that ends an event stream, with the reason."""
    text = f"{error.message}: {error.hint}" if error.hint else error.message
    return event(Event.ERROR, text.encode(), id)


def check_text(format: Format) -> None:
    """Rejects binary formats, which server-sent events cannot carry."""
    if format.binary:
        raise NotAcceptable(
            f"server-sent events cannot carry {format.name}, which is binary",
            hint="take a text format, or WebSocket",
        )


# --- problems -------------------------------------------------------------------------------------
# Errors as problem documents (RFC 9457), for responses that have not begun.
#
# Maps `errors.py` to HTTP. `sending.py` handles errors after the first byte.


def problem_document(
    error: ConstructMessagesError, request_id: str | None = None
) -> dict[str, object]:
    """Returns the members of the problem document of an error; see `problem`."""
    document: dict[str, object] = {
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.message,
    }
    if error.hint is not None:
        document["hint"] = error.hint
    if error.position is not None:
        document |= {"line": error.position.line, "column": error.position.column}
    if isinstance(error, NotAcceptable) and error.offered:
        document["offered"] = error.offered
    if isinstance(error, DoesNotConform):
        document["report"] = error.report
    if request_id is not None:
        document["request_id"] = request_id
    return document


def problem(error: ConstructMessagesError, request_id: str | None = None) -> web.Response:
    """Returns the problem document of an error.

    Members in addition to those of RFC 9457: `hint`, the fix; `line` and `column` in the query, counted from 1;
    `offered`, the available media types; `report`, why a message does not conform to shapes; `request_id`, the
    identifier in the server's log.

    >>> from construct_messages.errors import Position, QueryError
    >>> response = problem(QueryError("prefix ex: is not declared", position=Position(2, 5)))
    >>> response.status, response.text
    (400, '{"title": "Bad Request", "status": 400, "detail": "prefix ex: is not declared", "line": 2, "column": 5}')
    """
    document = problem_document(error, request_id)
    # a message may quote a client's header, which may contain bytes that are not characters
    body = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    response = web.Response(status=error.status, body=body, content_type=PROBLEM, charset="utf-8")
    if isinstance(error, SourceError) and error.retry_after is not None:
        response.headers["Retry-After"] = str(math.ceil(error.retry_after))
    if isinstance(error, Forbidden) and error.challenge is not None:
        response.headers["WWW-Authenticate"] = error.challenge
    if error.status == HTTPStatus.UPGRADE_REQUIRED:
        response.headers.update({"Connection": "Upgrade", "Upgrade": "websocket"})
    return response


def router_problem(
    error: web.HTTPException, request_id: str | None = None, *, paths: Sequence[str] = ()
) -> web.Response:
    """Returns the problem document for an unknown path or method; `paths` are the existing paths.

    >>> response = router_problem(web.HTTPMethodNotAllowed("PUT", ["GET", "HEAD"]))
    >>> response.status, response.headers["Allow"]
    (405, 'GET, HEAD')
    """
    if isinstance(error, web.HTTPMethodNotAllowed):
        allow = ", ".join(sorted(error.allowed_methods))
        refused = ConstructMessagesError(
            f"{error.method} is not a method of this path", status=405, hint=f"use {allow}"
        )
        response = problem(refused, request_id)
        response.headers["Allow"] = allow
        return response
    hint = f"there is {', '.join(paths)}" if error.status == HTTPStatus.NOT_FOUND else None
    return problem(ConstructMessagesError(error.reason, status=error.status, hint=hint), request_id)


# --- coding ---------------------------------------------------------------------------------------
# Content codings of responses: gzip and zstd (RFC 9110, section 8.4), flushed at every chunk.
#
# A message must not wait in a compressor for the next one, so each chunk is flushed. Bodies that a source has already
# encoded are not touched.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CODINGS = ("zstd", "gzip")  # best first
_GZIP_LEVEL = 1
_ZSTD_LEVEL = 3


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self, mode: Any = ..., /) -> bytes: ...


class Coder:
    """An encoder of a body by zlib or zstd, with their flush modes after a part and at the end; without one, the body
    is unchanged.
    """

    def __init__(self, compressor: _Compressor | None = None, part: int = 0, end: int = 0) -> None:
        self._compressor, self._part, self._end = compressor, part, end

    def code(self, data: bytes) -> bytes:
        """Encodes a part, so that a reader can decode it completely."""
        if self._compressor is None:
            return data
        return self._compressor.compress(data) + self._compressor.flush(self._part)

    def finish(self) -> bytes:
        """Returns the last bytes."""
        return b"" if self._compressor is None else self._compressor.flush(self._end)


def negotiate_coding(request: web.Request) -> str | None:
    """Returns the coding to apply to the answer to a request, or None."""
    weights: dict[str, float] = {}
    for item in request.headers.get("Accept-Encoding", "").lower().split(","):
        name, _, parameter = (part.strip() for part in item.partition(";"))
        with suppress(ValueError):  # a coding with an invalid weight is ignored
            weights[name] = float(parameter.removeprefix("q=")) if parameter else 1.0
    best = max(_CODINGS, key=lambda coding: weights.get(coding, weights.get("*", 0.0)))
    weight = weights.get(best, weights.get("*", 0.0))
    # if the client does not mention it, the identity coding is preferred less than every coding that it names
    return best if weight > weights.get("identity", 0.0) else None


def coder_for(coding: str | None) -> Coder:
    """Returns the encoder for the result of `negotiate_coding`.

    >>> coder = coder_for("gzip")
    >>> zlib.decompress(coder.code(b"one") + coder.finish(), wbits=31)
    b'one'
    """
    match coding:
        case "gzip":
            gzip = zlib.compressobj(_GZIP_LEVEL, wbits=zlib.MAX_WBITS | 16)
            return Coder(gzip, zlib.Z_SYNC_FLUSH, zlib.Z_FINISH)
        case "zstd":
            # a client that stores the body unchanged can then detect damage, as with gzip
            compressor = zstd.ZstdCompressor(
                options={
                    zstd.CompressionParameter.compression_level: _ZSTD_LEVEL,
                    zstd.CompressionParameter.checksum_flag: 1,
                }
            )
            return Coder(compressor, compressor.FLUSH_BLOCK, compressor.FLUSH_FRAME)
    return Coder()


# --- conditions -----------------------------------------------------------------------------------
# Conditional requests (RFC 9110, section 13): entity tags and preconditions.


def entity_tag(*parts: object) -> str:
    """Returns the entity tag of a representation, from the values that distinguish it from all others of its URL.

    >>> entity_tag("a", 1) == entity_tag("a", 1), entity_tag("a", 1) == entity_tag("a", 2)
    (True, False)
    """
    return f'"{blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"'


def check_conditions(request: web.Request, tags: Collection[str], what: str) -> None:
    """Evaluates the preconditions of an unsafe request (RFC 9110, section 13). `tags` are those of the current
    representations; none if the resource does not exist.
    """
    for header, wanted in (("If-Match", True), ("If-None-Match", False)):
        if header not in request.headers:
            continue
        named = {tag.strip() for tag in request.headers[header].split(",")}
        if (("*" in named and bool(tags)) or not named.isdisjoint(tags)) != wanted:
            if not tags:
                raise ProtocolError(
                    f"{what} does not exist", status=412, hint="leave out If-Match to create it"
                )
            if not wanted:
                raise ProtocolError(
                    f"{what} exists already",
                    status=412,
                    hint="choose another name, or leave out If-None-Match to change the one that is there",
                )
            raise ProtocolError(
                f"{what} is not the one that If-Match names",
                status=412,
                hint="get it again, and send its ETag",
            )


def is_known(request: web.Request, etag: str) -> bool:
    """Returns whether the client already has the representation with an entity tag (RFC 9110, section 13.1.2). If-Match
    that names another one: 412 (section 13.1.1).
    """
    wanted = request.headers.get("If-Match")
    if wanted is not None and not {"*", etag} & {tag.strip() for tag in wanted.split(",")}:
        raise ProtocolError(
            f"If-Match does not hold: the entity tag is {etag}",
            status=412,
            hint="ask again without If-Match",
        )
    known = (
        tag.strip().removeprefix("W/")
        for tag in request.headers.get("If-None-Match", "").split(",")
    )
    return any(tag in (etag, "*") for tag in known)


def answer_whole(request: web.Request, body: bytes, headers: Mapping[str, str]) -> web.Response:
    """Answers with a body, or with 304 if the client already has it by the `ETag` of the headers."""
    if is_known(request, headers["ETag"]):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers)


# --- sending --------------------------------------------------------------------------------------

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

    `ConstructMessagesError`: no byte was sent. `Aborted`: bytes were sent, and the connection was reset, or closed
    before the end of the body.

    The client may make no progress for `idle_seconds`. A body of up to `buffer_bytes` is held back until it is
    complete, and sent with its length. `sent` is called with the size of each piece before it is sent. `failure`
    returns the last part of a body that can contain an error; without it, the connection is reset.
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
    """Awaits a write to the connection of a request; a client that does not read within this time is reset."""
    try:
        async with nullcontext() if idle_seconds is None else asyncio.timeout(idle_seconds):
            await writing
    except TimeoutError as error:
        reset(request)
        raise ClientLeft("idle") from error
    except ConnectionError as error:
        raise ClientLeft("left") from error

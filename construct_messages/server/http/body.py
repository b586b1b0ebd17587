"""Reads request bodies, with limits of size and time. Each kind of endpoint interprets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from aiohttp import web

from construct_messages.rdf.errors import LimitExceeded, ProtocolError, UsageError, shown
from construct_messages.rdf.files.unpacking import Unpacker, unpack_errors

_UNPACKED: Final = {"gzip": ".gz", "zstd": ".zst"}
"""The content codings that are read (RFC 9110, section 8.4), and the extensions of such files."""

_WINDOW_LOG: Final = 23  # 8 MiB: RFC 9659, section 3


async def read_body(
    request: web.Request, most: int, seconds: float, hold: Callable[[int], None] = lambda _: None
) -> bytes:
    """Reads the body of a request.

    Args:
        request: a request whose body was not read yet.
        most: the maximal size in bytes, also after decompression.
        seconds: the maximal time for the whole body.
        hold: called with the size of each piece before it is kept; may raise an error.

    Raises:
        ProtocolError: it has another content coding than gzip and zstd (415), a transfer coding other than chunked
            (501), or its compression or framing is damaged.
        LimitExceeded: it is too large.
        UsageError: it did not arrive in time (408).
    """
    unpacker = unpacker_of(request)
    if (request.content_length or 0) > most:
        raise _too_long(most)
    body = bytearray()
    try:
        # for the whole body: a client that sends byte by byte is never idle
        async with asyncio.timeout(seconds), aclosing(body_pieces(request, unpacker)) as pieces:
            async for piece in pieces:
                if len(body) + len(piece) > most:
                    raise _too_long(most)
                hold(len(piece))
                body += piece
    except TimeoutError as error:
        raise UsageError("the request did not arrive in time", status=408) from error
    return bytes(body)


async def body_pieces(request: web.Request, unpacker: Unpacker | None) -> AsyncGenerator[bytes]:
    """Yields the content of a body as it arrives; pieces are short, also after decompression.

    Args:
        request: a request whose body was not read yet.
        unpacker: see `unpacker_of`.

    Raises:
        ProtocolError: the compression or the framing is damaged.
    """
    try:
        async for chunk in request.content.iter_any():
            if unpacker is None:
                yield chunk
                continue
            for piece in unpacker.feed(chunk):
                yield piece
                await asyncio.sleep(0)  # few bytes may be many pieces: others have their turn
        if unpacker is not None:
            unpacker.close()
    except web.RequestPayloadError as error:
        raise damaged() from error
    except unpack_errors() as error:
        raise ProtocolError(
            f"the body cannot be decompressed: {error}",
            hint="send it again, without Content-Encoding, or with a window of zstd of at most 8 MiB",
        ) from error


def unpacker_of(request: web.Request) -> Unpacker | None:
    """Returns what decompresses the body of a request; None: it is not compressed.

    Raises:
        ProtocolError: it has another content coding than gzip and zstd (415), or a transfer coding other than chunked
            (501).
    """
    coding = request.headers.get("Content-Encoding", "identity").lower()
    if coding != "identity" and coding not in _UNPACKED:
        raise ProtocolError(
            f"Content-Encoding: {shown(coding)} is not read here",
            status=415,
            hint=" or ".join(("send the body as it is", *(f"in {name}" for name in _UNPACKED))),
        )
    transfer = request.headers.get("Transfer-Encoding", "chunked")
    if transfer.strip().lower() != "chunked":
        raise ProtocolError(
            f"Transfer-Encoding: {transfer} is not read here", status=501, hint="send it chunked"
        )
    return Unpacker(_UNPACKED[coding], _WINDOW_LOG) if coding in _UNPACKED else None


def damaged() -> ProtocolError:
    """Returns the error for a body whose framing is damaged."""
    return ProtocolError(
        "the body is damaged: its framing is not that of Transfer-Encoding: chunked"
    )


def _too_long(most: int) -> LimitExceeded:
    return LimitExceeded(f"the request is longer than {most} bytes", hint="send a shorter one")

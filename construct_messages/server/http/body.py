"""Reads request bodies completely, with limits of size and time. Each kind of endpoint interprets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from aiohttp import web

from construct_messages.errors import LimitExceeded, ProtocolError, UsageError, shown
from construct_messages.files.unpacking import Unpacker, unpack_errors

_UNPACKED: Final = {"gzip": ".gz", "zstd": ".zst"}
"""The content codings that are read (RFC 9110, section 8.4), and the extensions of such files."""


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
    unpacker = _check_codings(request, _UNPACKED)
    if (request.content_length or 0) > most:
        raise _too_long(most)
    body = bytearray()
    try:
        # for the whole body: a client that sends byte by byte is never idle
        async with asyncio.timeout(seconds):
            while chunk := await request.content.readany():
                for piece in (chunk,) if unpacker is None else _unpacked(unpacker, chunk):
                    if len(body) + len(piece) > most:
                        raise _too_long(most)
                    hold(len(piece))
                    body += piece
        if unpacker is not None:
            list(_unpacked(unpacker, None))
    except TimeoutError as error:
        raise UsageError("the request did not arrive in time", status=408) from error
    except web.RequestPayloadError as error:
        raise damaged() from error
    return bytes(body)


def check_codings(request: web.Request) -> None:
    """Checks that the body of a request is not compressed.

    Raises:
        ProtocolError: it is (415), or has a transfer coding other than chunked (501).
    """
    _check_codings(request, {})


def _check_codings(request: web.Request, codings: Mapping[str, str]) -> Unpacker | None:
    """Returns what decompresses the body; `codings` has the extension of each allowed coding."""
    coding = request.headers.get("Content-Encoding", "identity").lower()
    if coding != "identity" and coding not in codings:
        raise ProtocolError(
            f"Content-Encoding: {shown(coding)} is not read here",
            status=415,
            hint=" or ".join(("send the body as it is", *(f"in {name}" for name in codings))),
        )
    transfer = request.headers.get("Transfer-Encoding", "chunked")
    if transfer.strip().lower() != "chunked":
        raise ProtocolError(
            f"Transfer-Encoding: {transfer} is not read here", status=501, hint="send it chunked"
        )
    return Unpacker(codings[coding]) if coding in codings else None


def _unpacked(unpacker: Unpacker, chunk: bytes | None) -> Iterator[bytes]:
    """Yields what a chunk contains; None: the body ends."""
    try:
        if chunk is None:
            unpacker.close()
        else:
            yield from unpacker.feed(chunk)
    except unpack_errors() as error:
        raise ProtocolError(
            f"the compressed data of the body are damaged: {error}",
            hint="send it again, or without Content-Encoding",
        ) from error


def damaged() -> ProtocolError:
    """Returns the error for a body whose framing is damaged."""
    return ProtocolError(
        "the body is damaged: its framing is not that of Transfer-Encoding: chunked"
    )


def _too_long(most: int) -> LimitExceeded:
    return LimitExceeded(f"the request is longer than {most} bytes", hint="send a shorter one")

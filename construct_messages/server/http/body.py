"""Reads request bodies completely, with limits of size and time. Each kind of endpoint interprets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from construct_messages.errors import LimitExceeded, ProtocolError, UsageError


async def read_body(
    request: web.Request, most: int, seconds: float, hold: Callable[[int], None] = lambda _: None
) -> bytes:
    """Reads the body of a request.

    Args:
        request: a request whose body was not read yet.
        most: the maximal size in bytes.
        seconds: the maximal time for the whole body.
        hold: called with the size of each piece before it is kept; may raise an error.

    Raises:
        ProtocolError: it is compressed (415), has a transfer coding other than chunked (501), or its framing is
            damaged.
        LimitExceeded: it is too large.
        UsageError: it did not arrive in time (408).
    """
    check_codings(request)
    if (request.content_length or 0) > most:
        raise _too_long(most)
    body = bytearray()
    content = request.content
    try:
        if content.is_eof():  # the body arrived together with its headers
            whole = content.read_nowait()
            if len(whole) > most:
                raise _too_long(most)
            hold(len(whole))
            return whole
        # for the whole body: a client that sends byte by byte is never idle
        async with asyncio.timeout(seconds):
            while chunk := await content.readany():
                if len(body) + len(chunk) > most:
                    raise _too_long(most)
                hold(len(chunk))
                body += chunk
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
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise ProtocolError(
            f"Content-Encoding: {coding} is not read here",
            status=415,
            hint="send the body as it is",
        )
    transfer = request.headers.get("Transfer-Encoding", "chunked")
    if transfer.strip().lower() != "chunked":
        raise ProtocolError(
            f"Transfer-Encoding: {transfer} is not read here", status=501, hint="send it chunked"
        )


def damaged() -> ProtocolError:
    """Returns the error for a body whose framing is damaged."""
    return ProtocolError(
        "the body is damaged: its framing is not that of Transfer-Encoding: chunked"
    )


def _too_long(most: int) -> LimitExceeded:
    return LimitExceeded(f"the request is longer than {most} bytes", hint="send a shorter one")

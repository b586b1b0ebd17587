"""Reads request bodies, with limits of size and time. Each kind of endpoint interprets them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, nullcontext
from typing import Final
from urllib.parse import unquote_to_bytes

from aiohttp import web
from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from construct_messages.errors import LimitExceeded, ProtocolError, UsageError, shown
from construct_messages.rdf.files.unpacking import Unpacker, unpack_errors
from construct_messages.rdf.formats.media_types import MULTIPART_FORM

# --- forms ----------------------------------------------------------------------------------------
# Reads the parameters of a request: of its URL, of a form, and of a multipart form.
#
# Percent-encoding is that of the WHATWG URL Standard, section 5.1, but strict: invalid UTF-8 and invalid escapes are
# errors. `multipart/form-data` (RFC 7578) is read by the library `multipart`. `sparql/protocol.py` interprets the
# parameters.

_NOT_ESCAPED: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PARTS: Final = 1000
_UTF_8: Final = ("", "utf-8", "utf8")


def read_query_string(query_string: str) -> Iterator[tuple[str, str]]:
    """Returns the parameters of a URL. Bytes that are not UTF-8 are surrogates in it (PEP 383).

    >>> list(read_query_string("query=ASK%7B%7D&timeout=5"))
    [('query', 'ASK{}'), ('timeout', '5')]
    """
    try:
        encoded = query_string.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        found = query_string[error.start]
        raise ProtocolError(
            f"the URL holds {found!a}, which is not a character", hint="send UTF-8"
        ) from None
    return _pairs(encoded, "the URL")


def read_form(body: bytes) -> Iterator[tuple[str, str]]:
    """Returns the parameters of a form, `application/x-www-form-urlencoded`."""
    return _pairs(body, "the form")


def read_parts(content_type: str, body: bytes) -> Iterator[tuple[str, str]]:
    """Returns the parameters of a multipart form, `multipart/form-data`.

    >>> body = b'--x\\r\\nContent-Disposition: form-data; name="query"\\r\\n\\r\\nASK {}\\r\\n--x--\\r\\n'
    >>> list(read_parts("multipart/form-data; boundary=x", body))
    [('query', 'ASK {}')]
    """
    boundary = parse_options_header(content_type)[1].get("boundary")
    if not boundary:
        raise ProtocolError(
            f"Content-Type: {MULTIPART_FORM} has no boundary", status=400, hint="name it there"
        )
    name, value = "", bytearray()
    try:
        with PushMultipartParser(
            boundary, content_length=len(body), max_segment_count=_PARTS, strict=True
        ) as parser:
            for event in parser.parse(body):
                if isinstance(event, MultipartSegment):
                    name = _name_of(event)
                    value.clear()
                elif event is None:
                    yield name, decoded(bytes(value), f"{name[:40]!r} in the form")
                else:
                    value += event
    except MultipartError as error:
        raise ProtocolError(
            f"the form is no {MULTIPART_FORM}: {error}", hint="end it with --boundary--"
        ) from error


def decoded(text: bytes, what: str) -> str:
    """Decodes text in UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            f"{what}: byte 0x{text[error.start]:02X} at offset {error.start} is not UTF-8",
            hint="send UTF-8",
        ) from None


def _name_of(part: MultipartSegment) -> str:
    if not part.name:
        raise ProtocolError(
            "a part of the form has no name", hint='name it: form-data; name="query"'
        )
    if (charset := (part.charset or "").lower()) not in _UTF_8:
        raise ProtocolError(
            f"{part.name[:40]!r} in the form has charset={charset}", status=415, hint="send UTF-8"
        )
    return str(part.name)


def _pairs(encoded: bytes, where: str) -> Iterator[tuple[str, str]]:
    for pair in encoded.split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            read = _unescaped(name, f"a name in {where}")
            yield read, _unescaped(value, f"{read[:40]!r} in {where}")


def _unescaped(text: bytes, what: str) -> str:
    if wrong := _NOT_ESCAPED.search(text):
        found = text[wrong.start() : wrong.start() + 3].decode("ascii", "backslashreplace")
        raise ProtocolError(f"{what}: {found!r} is no escape", hint="write a percent sign as %25")
    return decoded(unquote_to_bytes(text.replace(b"+", b" ")), what)


# --- body -----------------------------------------------------------------------------------------

_UNPACKED: Final = {"gzip": ".gz", "zstd": ".zst"}
"""The content codings that are read (RFC 9110, section 8.4), and the extensions of such files."""

_WINDOW_LOG: Final = 23  # 8 MiB: RFC 9659, section 3


async def read_body(
    request: web.Request, most: int, seconds: float, hold: Callable[[int], None] = lambda _: None
) -> bytes:
    """Reads the body of a request.

    `most` bounds its bytes also after decompression, `seconds` the time for all of it. `hold` is called with the size
    of each piece before it is kept, and may raise an error.
    """
    unpacker = unpacker_of(request)
    if (request.content_length or 0) > most:
        raise _too_long(most)
    body = bytearray()
    # for the whole body: a client that sends byte by byte is never idle. Most bodies arrive with their heads
    in_time = nullcontext() if request.content.is_eof() else asyncio.timeout(seconds)
    try:
        async with in_time, aclosing(body_pieces(request, unpacker)) as pieces:
            async for piece in pieces:
                if len(body) + len(piece) > most:
                    raise _too_long(most)
                hold(len(piece))
                body += piece
    except TimeoutError as error:
        raise UsageError("the request did not arrive in time", status=408) from error
    return bytes(body)


async def body_pieces(request: web.Request, unpacker: Unpacker | None) -> AsyncGenerator[bytes]:
    """Yields the content of a body as it arrives; pieces are short, also after decompression."""
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
    """Returns what decompresses the body of a request; None: it is not compressed. Other content codings than gzip and
    zstd are refused with 415, other transfer codings than chunked with 501.
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

"""Reads the parameters of a request: of its URL, of a form, and of a multipart form.

Percent-encoding is that of the WHATWG URL Standard, section 5.1, but strict: invalid UTF-8 and invalid escapes are
errors. `multipart/form-data` (RFC 7578) is read by the library `multipart`. `sparql/protocol.py` interprets the
parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from construct_messages.rdf.errors import ProtocolError
from construct_messages.rdf.formats.media_types import MULTIPART_FORM

_NOT_ESCAPED: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PARTS: Final = 1000
_UTF_8: Final = ("", "utf-8", "utf8")


def read_query_string(query_string: str) -> Iterator[tuple[str, str]]:
    """Returns the parameters of a URL.

    Args:
        query_string: the percent-encoded query string; invalid UTF-8 bytes as surrogates (PEP 383).

    Raises:
        ProtocolError: invalid UTF-8, or an invalid escape.

    >>> list(read_query_string("query=ASK%7B%7D&timeout=5"))
    [('query', 'ASK{}'), ('timeout', '5')]
    """
    try:
        encoded = query_string.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        found = query_string[error.start]
        raise ProtocolError(
            f"the URL holds {found!a}, which is no character", hint="send UTF-8"
        ) from None
    return _pairs(encoded, "the URL")


def read_form(body: bytes) -> Iterator[tuple[str, str]]:
    """Returns the parameters of a form, `application/x-www-form-urlencoded`.

    Raises:
        ProtocolError: invalid UTF-8, or an invalid escape.
    """
    return _pairs(body, "the form")


def read_parts(content_type: str, body: bytes) -> Iterator[tuple[str, str]]:
    """Returns the parameters of a multipart form, `multipart/form-data`.

    Args:
        content_type: the header, with the boundary between the parts.
        body: the request body.

    Raises:
        ProtocolError: a truncated body, a part without a name, or a charset other than UTF-8.

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
    """Decodes text in UTF-8.

    Args:
        text: the bytes.
        what: their name, for the error.

    Raises:
        ProtocolError: the bytes are not UTF-8; the error has the position of the first invalid byte.
    """
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

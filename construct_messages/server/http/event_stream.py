"""Writes server-sent events, independently of their content. No I/O.

WHATWG HTML, section 9.2.5 (parsing an event stream). `feeds/http/event_stream.py` reads them.
"""

from __future__ import annotations

from typing import Final

from construct_messages.rdf.errors import ConstructMessagesError, NotAcceptable
from construct_messages.rdf.formats import Format
from construct_messages.rdf.wire import Event

STILL_HERE: Final = b": still here\n\n"
"""A comment that keeps a connection open; clients skip it."""

_RETRY_MILLISECONDS: Final = 2000


def retry() -> bytes:
    """Returns the field for the time that clients wait before they reconnect.

    >>> retry()
    b'retry: 2000\\n\\n'
    """
    return b"retry: %d\n\n" % _RETRY_MILLISECONDS


def event(type: Event, data: bytes, id: str | int | None = None) -> bytes:
    r"""Returns an event.

    Args:
        type: the name of the event.
        data: the lines; a final line end is left out.
        id: the identifier that clients send when they reconnect, without line ends; None: that of the previous event.

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
    """Rejects binary formats, which server-sent events cannot carry.

    Raises:
        NotAcceptable: the format is binary.
    """
    if format.binary:
        raise NotAcceptable(
            f"server-sent events cannot carry {format.name}, which is binary",
            hint="take a text format, or WebSocket",
        )

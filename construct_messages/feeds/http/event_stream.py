"""Reads server-sent events from bytes, independently of their content. No I/O.

WHATWG HTML, section 9.2.6 (interpreting an event stream).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from construct_messages.rdf.errors import LimitExceeded

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event."""

    type: str  # its name; `message` if it has none
    id: str  # the last id, of this event or an earlier one; empty: none yet
    data: bytes  # its lines, joined by LF, as bytes: the reader checks whether they are UTF-8


class EventParser:
    r"""Reads one event stream: `feed(data)` for each chunk, which may be split anywhere; an event has at most `most`
    bytes.

    The text after the last blank line is not an event, so the end needs no call. `retry` is the time before
    reconnecting, in milliseconds; `last_id` the id of the last event, or of a later block without data.

    >>> parser = EventParser(1000)
    >>> list(parser.feed(b"event: rdf-message\nid: 7\ndata: a\nda")), list(parser.feed(b"ta: b\n\n"))
    ([], [Event(type='rdf-message', id='7', data=b'a\nb')])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []  # of an incomplete line
        self._held = 0  # the size of the incomplete event, in bytes
        self._first, self._ended_by_cr = True, False
        self._type, self._id = "", ""
        self._data: list[bytes] = []
        self.retry: int | None = None
        self.last_id = ""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yields the events that are complete now; raises `LimitExceeded`."""
        if not data:
            return
        if self._ended_by_cr and data.startswith(b"\n"):  # the LF of a CR LF in two chunks
            data = data[1:]
            self._ended_by_cr = False
            if not data:
                return
        self._ended_by_cr = data.endswith(b"\r")
        *lines, rest = _LINE_END.split(data)
        for line in lines:
            if self._parts:
                line = b"".join((*self._parts, line))
                self._parts.clear()
            if self._first:
                line, self._first = line.removeprefix(_BOM), False
            if line:
                self._check(len(line))
                self._field(line)
            else:
                yield from self._dispatch()
        if rest:
            self._parts.append(rest)
            self._check(len(rest))

    def _check(self, more: int) -> None:
        self._held += more
        # a line that arrives in parts is counted twice, which is acceptable for a limit
        if self._held > 2 * self._most:
            raise LimitExceeded(
                f"an event has more than {self._most} bytes", hint="raise message_bytes"
            )

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._type = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry = int(value)

    def _dispatch(self) -> Iterator[Event]:
        self.last_id = self._id
        if self._data:
            yield Event(self._type or "message", self._id, b"\n".join(self._data))
        self._type, self._data, self._held = "", [], 0

"""The elements that an event stream pushes, and the parser of such a stream.

RDF Messages, section 3; WHATWG HTML, section 9.2 (server-sent events).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Container, Iterator
from typing import Final, NamedTuple

import aiohttp

from construct_messages.errors import LimitExceeded, SourceError, shown
from construct_messages.feeds.connections import reader_of
from construct_messages.feeds.http.client import link
from construct_messages.feeds.http.connections import ConnectedTransport, ConnectionState
from construct_messages.feeds.state import check_next, is_sequence
from construct_messages.logs.documents import DocumentReader
from construct_messages.rdf.formats.media_types import EVENT_STREAM
from construct_messages.rdf.wire import CONTEXT_RELATION, Event, Header, Property
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element
from construct_messages.streams.publication import received

# --- event stream ---------------------------------------------------------------------------------
# Reads server-sent events from bytes, independently of their content. No I/O.
#
# WHATWG HTML, section 9.2.6 (interpreting an event stream).

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "


class ServerSentEvent(NamedTuple):
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
    ([], [ServerSentEvent(type='rdf-message', id='7', data=b'a\nb')])
    """

    def __init__(self, most: int) -> None:
        # a line that arrives in parts is counted twice, which is acceptable for a limit
        self._bound = 2 * most
        self._parts: list[bytes] = []  # of an incomplete line
        self._held = 0  # the size of the incomplete event, in bytes
        self._first, self._ended_by_cr = True, False
        self._type, self._id = "", ""
        self._data: list[bytes] = []
        self.retry: int | None = None
        self.last_id = ""

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
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
                self._held += len(line)
                if self._held > self._bound:
                    raise self._too_long()
                if line.startswith(_DATA):  # most lines
                    self._data.append(line[len(_DATA) :])
                else:
                    self._field(line)
            elif (event := self._dispatch()) is not None:
                yield event
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
            if self._held > self._bound:
                raise self._too_long()

    def _too_long(self) -> LimitExceeded:
        message = f"an event has more than {self._bound // 2} bytes"
        return LimitExceeded(message, hint="raise message_bytes")

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

    def _dispatch(self) -> ServerSentEvent | None:
        """Returns the event that a blank line ends; None: it has no data."""
        type, data, self.last_id = self._type, self._data, self._id
        self._type, self._data, self._held = "", [], 0
        return ServerSentEvent(type or "message", self._id, b"\n".join(data)) if data else None


# --- sse ------------------------------------------------------------------------------------------

_DEFAULT_TYPE: Final = "message"
_PAUSES: Final = (0.1, 60.0)
"""The minimal and maximal seconds before reconnecting that a server may set."""


class EventsTransport(ConnectedTransport):
    """Reads server-sent events; see `Transport`."""

    endpoint = Property.EVENTS
    counts = False

    @property
    def _types(self) -> Container[str]:
        """The types of events that are messages: also the default one, if the caller names the format of the data."""
        if self._settings.media_type is None:
            return (Event.MESSAGE,)
        return (Event.MESSAGE, _DEFAULT_TYPE)

    async def connection(self, url: str, state: ConnectionState) -> AsyncGenerator[Element]:
        stream, most = self._stream.endpoints.stream, self._settings.message_bytes
        headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
        if state.event_id is not None:
            headers[Header.LAST_EVENT_ID] = state.event_id
        # the id alone says where to go on at servers of others, whose URLs have no such parameter
        is_other = state.event_id is not None and not state.identity
        asked = url if is_other else state.url(url)
        response = await self._client.open("GET", asked, headers)
        name, types = without_query(url), self._types
        async with self._client.reading(response, url) as chunks:
            reader = self._reader(response, asked)
            numbered = state.begins(response, url)
            parser = EventParser(2 * most)  # as text, a message may be longer than as N-Quads
            resumed = state.event_id
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    if event.type == Event.ERROR:
                        reason = shown(event.data.decode(errors="replace"))
                        raise SourceError(f"{name} ended with an error: {reason}")
                    if event.type not in types:
                        continue
                    last = state.sequence or 0
                    sequence = int(event.id) if is_sequence(event.id) else last + 1
                    if numbered:
                        if sequence <= last:
                            continue  # it was already read
                        check_next(name, last, sequence)
                    else:  # ids have no order, and may stay the same
                        if event.id and event.id == resumed:
                            continue  # the server sends the last one again
                        resumed = None
                        sequence = max(sequence, last + 1)
                    element = received(stream, sequence, reader.read(event.data, sequence))
                    state.sequence, state.resumable = sequence, bool(event.id)
                    state.event_id = event.id or None
                    yield element
                state.event_id = parser.last_id or state.event_id
                if parser.retry is not None:
                    state.retry_seconds = min(max(parser.retry / 1000, _PAUSES[0]), _PAUSES[1])

    def _reader(self, response: aiohttp.ClientResponse, url: str) -> DocumentReader:
        """Returns the reader of the data of events."""
        if response.content_type != EVENT_STREAM:
            raise SourceError(
                f"{without_query(url)} answers with {shown(response.content_type)}, and not {EVENT_STREAM}"
            )
        content_type = response.headers.get(Header.CONTENT_TYPE, self._settings.media_type)
        if content_type is None:
            raise SourceError(
                f"{without_query(url)} does not declare the format of its events:  {Header.CONTENT_TYPE} is missing",
                hint="give the media type of the data, if you know it: media_type=, or --media-type",
            )
        context = link(response, CONTEXT_RELATION)
        reader = reader_of(content_type, self._settings, base=without_query(url), context=context)
        if reader.format.binary:
            raise SourceError(
                f"{without_query(url)} sends {reader.format.name}, which is binary, as server-sent events",
                hint="subscribe via websocket, or ask for a text format",
            )
        return reader

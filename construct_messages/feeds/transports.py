"""The elements of one connection, by server-sent events, by WebSocket or as a log, from a position on.

RDF Messages, section 3 (SSE, WebSocket). Each transport reads until the connection ends or fails; what happens then is
said in `subscription.py`. No transport knows another.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp

from construct_messages.documents import DocumentReader
from construct_messages.errors import SourceError, UsageError, shown
from construct_messages.feeds.client import Client, link, refusal
from construct_messages.feeds.event_stream import EventParser
from construct_messages.feeds.pages import reader_of
from construct_messages.feeds.sequences import check_next, is_sequence
from construct_messages.feeds.state import Checkpoint
from construct_messages.formats import N_QUADS, RDFM, content_type, find_format
from construct_messages.formats.media_types import EVENT_STREAM
from construct_messages.labels import Labels
from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.message import Message
from construct_messages.net.urls import without_query
from construct_messages.streams import Element
from construct_messages.streams.publication import received
from construct_messages.streams.wire import (
    CONTEXT_RELATION,
    SUBPROTOCOLS,
    Event,
    Header,
    Parameter,
    refused_status,
)

_GONE: Final = 410

_PAUSES: Final = (0.1, 60.0)
"""The least and the most seconds that a server may ask a client to wait."""
_ENDS: Final = frozenset((aiohttp.WSCloseCode.OK, aiohttp.WSCloseCode.GOING_AWAY, 1012, 1013))
"""Close codes after which a client may come back (RFC 6455, section 7.4; 1012 and 1013 as registered)."""
_REFUSED: Final = frozenset((1002, 1003, 1007, 1008, 1009, 1010))
"""Close codes that the same client would get again."""


@dataclass
class Position:
    """The position of a subscription.

    Args:
        sequence: of the last element that is known; None: the server is to say.
        parameters: of the URL where `sequence` is not known: what is wished for.
        event_id: the last that an event had; None: none yet.
        retry_seconds: how long to wait before the next connection.
        resumable: whether the next connection can begin behind the last element.
        identity: of the stream; empty: it is not known.
    """

    sequence: int | None
    parameters: Mapping[str, str] = field(default_factory=dict)
    event_id: str | None = None
    retry_seconds: float = 0.5
    resumable: bool = True
    identity: str = ""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The position, as far as it can be kept."""
        return None if self.sequence is None else Checkpoint(self.sequence, identity=self.identity)

    def url(self, url: str) -> str:
        """The URL that asks for what comes behind the position.

        >>> Position(7).url("https://example.org/events?format=ttl&after=0")
        'https://example.org/events?format=ttl&after=7'
        """
        asked = (
            {Parameter.AFTER: str(self.sequence)} if self.sequence is not None else self.parameters
        )
        parts = urlsplit(url)
        kept = [
            pair
            for pair in parse_qsl(parts.query, keep_blank_values=True)
            if not asked or pair[0] not in _SELECTING
        ]
        return parts._replace(query=urlencode([*kept, *asked.items()])).geturl()


_SELECTING: Final = frozenset(Parameter)


@dataclass(frozen=True)
class Reading:
    """The options for reading elements.

    Args:
        stream: what they say that they are of.
        contexts: JSON-LD contexts by their IRI, as parsed JSON.
        message_bytes: how large a message may be.
    """

    stream: str
    contexts: Mapping[str, Any]
    message_bytes: int


Transport: TypeAlias = Callable[[Client, str, Position, Reading], AsyncGenerator[Element]]


async def events(
    client: Client, url: str, position: Position, reading: Reading
) -> AsyncGenerator[Element]:
    """The elements that an event stream pushes.

    Raises:
        SourceError: no such stream, a format that it cannot carry, or it breaks off.
        LogError, LimitExceeded: an event that is no message, or too large.
    """
    headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
    if position.event_id is not None:
        headers[Header.LAST_EVENT_ID] = position.event_id
    asked = position.url(url)
    response = await client.open("GET", asked, headers)
    async with client.reading(response, url) as chunks:
        reader = _reader(response, asked, reading)
        numbered = _begin(response, url, position)
        parser = EventParser(
            2 * reading.message_bytes
        )  # as text, a message may be longer than as N-Quads
        async for chunk in chunks:
            for event in parser.feed(chunk):
                if event.type == Event.ERROR:
                    raise SourceError(
                        f"{without_query(url)} ended with an error: {shown(event.data.decode(errors='replace'))}"
                    )
                if event.type != Event.MESSAGE:
                    continue
                last = position.sequence or 0
                is_number = is_sequence(event.id)
                sequence = int(event.id) if is_number else last + 1
                if is_number and position.sequence is not None:
                    if sequence <= last:
                        continue  # it came before
                    if numbered:
                        check_next(without_query(url), last, sequence)
                element = received(reading.stream, sequence, reader.read(event.data, sequence))
                position.sequence, position.resumable = sequence, bool(event.id)
                position.event_id = event.id or None
                yield element
            if parser.retry is not None:
                position.retry_seconds = min(max(parser.retry / 1000, _PAUSES[0]), _PAUSES[1])


def sequence_after(response: aiohttp.ClientResponse) -> int | None:
    """The sequence before the first element of an answer, as the server tells it; None: it does not."""
    said = response.headers.get(Header.AFTER, "")
    return int(said) if is_sequence(said) else None


def recognise(response: aiohttp.ClientResponse, url: str, position: Position) -> None:
    """Makes sure that an answer is of the stream that was read before.

    Raises:
        SourceError: it is of another one, whose sequences say nothing of the position (410).
    """
    said = response.headers.get(Header.IDENTITY, "")
    if said and position.identity and said != position.identity:
        raise SourceError(
            f"{without_query(url)} is another stream than the one that was read before",
            status=_GONE,
            hint="it was deleted and created again: begin anew, without the state",
        )
    position.identity = said or position.identity


def _begin(response: aiohttp.ClientResponse, url: str, position: Position) -> bool:
    """Takes the position at which an answer begins; returns whether the server names it.

    Raises:
        SourceError: it begins elsewhere than was asked for.
    """
    recognise(response, url, position)
    after = sequence_after(response)
    if after is None:
        return False
    if position.sequence is None:
        position.sequence = after
    check_next(without_query(url), position.sequence, after + 1)
    if after < position.sequence:
        raise SourceError(
            f"{without_query(url)} begins behind element {after}, and not behind {position.sequence}"
        )
    return True


def _reader(response: aiohttp.ClientResponse, url: str, reading: Reading) -> DocumentReader:
    if response.content_type != EVENT_STREAM:
        raise SourceError(
            f"{without_query(url)} answers with {shown(response.content_type)}, and not {EVENT_STREAM}"
        )
    said = response.headers.get(Header.CONTENT_TYPE)
    if said is None:
        raise SourceError(
            f"{without_query(url)} does not say what its events hold: {Header.CONTENT_TYPE} is missing",
            hint="check that it is a stream of RDF Messages",
        )
    reader = reader_of(
        said,
        base=without_query(url),
        contexts=reading.contexts,
        context=link(response, CONTEXT_RELATION),
        message_bytes=reading.message_bytes,
    )
    if reader.format.binary:
        raise SourceError(
            f"{without_query(url)} sends {reader.format.name}, which is binary, as server-sent events",
            hint="subscribe via websocket, or ask for a text format",
        )
    return reader


async def frames(
    client: Client, url: str, position: Position, reading: Reading
) -> AsyncGenerator[Element]:
    """The elements that a WebSocket pushes, one a frame; they have no number, and are counted from the position on.

    Raises:
        SourceError: the server refuses, or closes the socket with an error, or it breaks off.
        LogError, LimitExceeded: a frame that is no message, or too large.
    """
    assert position.sequence is not None
    socket = await client.connect(position.url(url), tuple(SUBPROTOCOLS), 2 * reading.message_bytes)
    async with socket:
        if socket.protocol is None:
            raise SourceError(
                f"{without_query(url)} takes none of the subprotocols {', '.join(SUBPROTOCOLS)}",
                hint="check that it is a stream of RDF Messages",
            )
        reader = reader_of(
            SUBPROTOCOLS[socket.protocol].document_type,
            base=without_query(url),
            contexts=reading.contexts,
            context=None,
            message_bytes=reading.message_bytes,
        )
        while (frame := await socket.receive()).type in (
            aiohttp.WSMsgType.TEXT,
            aiohttp.WSMsgType.BINARY,
        ):
            sequence = position.sequence + 1
            data = frame.data.encode() if isinstance(frame.data, str) else frame.data
            element = received(reading.stream, sequence, reader.read(data, sequence))
            position.sequence = sequence
            yield element
    reason = frame.extra if frame.type is aiohttp.WSMsgType.CLOSE else None
    _check_close(url, socket.close_code, reason or "")


def _check_close(url: str, code: int | None, reason: str) -> None:
    """Tells by the code with which a socket was closed whether that is an end, a failure that may pass, or an error."""
    if code in _ENDS:
        return
    if (status := refused_status(code)) is not None:
        raise refusal(url, status, json.dumps({"detail": reason}).encode() if reason else b"")
    said = f": {shown(reason)}" if reason else ""
    raise SourceError(
        f"{without_query(url)} was closed with code {code}{said}", transient=code not in _REFUSED
    )


async def log(
    client: Client, url: str, position: Position, reading: Reading
) -> AsyncGenerator[Element]:
    """The elements that there are now, as a log; they have no number in it, and are counted from the position on.

    Raises:
        SourceError: the server refuses, or the log breaks off.
        LogError, LimitExceeded: what is no log, or a message that is too large.
    """
    assert position.sequence is not None
    response = await client.open("GET", position.url(url), {"Accept": content_type(N_QUADS, RDFM)})
    async with client.reading(response, url) as chunks:
        said = response.headers.get("Content-Type", "")
        try:
            format, syntax = find_format(said)
        except UsageError as error:
            raise SourceError(
                f"{without_query(url)} answers with {shown(said)!a}, and no message log"
            ) from error
        if syntax is None:
            raise SourceError(
                f"{without_query(url)} answers with {shown(said)!a}, and no message log"
            )
        options = DecoderOptions(
            base=without_query(url),
            contexts=reading.contexts,
            message_bytes=reading.message_bytes,
            labels=Labels(),
        )
        decoder = decoder_for(format, syntax, options)
        _begin(response, url, position)
        last = response.headers.get(Header.LAST, "")
        async for chunk in chunks:
            for message in decoder.feed(chunk):
                yield _next(position, message, reading)
        for message in decoder.close():
            yield _next(position, message, reading)
        if is_sequence(last) and position.sequence < int(last):
            raise SourceError(
                f"{without_query(url)} broke off behind element {position.sequence}, before its last, {last}",
                transient=True,
            )


def _next(position: Position, message: Message, reading: Reading) -> Element:
    assert position.sequence is not None
    element = received(reading.stream, position.sequence + 1, message)
    position.sequence += 1
    return element

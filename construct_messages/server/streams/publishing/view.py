"""Publishing to a stream: a document or a log by POST, or a message in each frame of a WebSocket.

Linked Data Notifications, section 3.3.1. Relative IRIs resolve against the IRI of the new element (Linked Data
Platform, section 5.2.3.7; RFC 3986, section 5.1.2), which is only known when the message is appended.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.logs import Decoder, decoder_for
from construct_messages.rdf.errors import (
    ConstructMessagesError,
    LogError,
    NotAcceptable,
    ProtocolError,
)
from construct_messages.rdf.files.unpacking import Unpacker
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.media_types import JSON, NDJSON
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import SUBPROTOCOLS, Header
from construct_messages.server.http.access import Permit
from construct_messages.server.http.app import accept_header
from construct_messages.server.http.body import body_pieces, damaged, unpacker_of
from construct_messages.server.http.problems import problem_document
from construct_messages.server.http.sending import ClientLeft, reset, send
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.bounds import CLOSE_SECONDS, Holding
from construct_messages.server.streams.publishing.appending import (
    Appended,
    Appender,
    Groups,
    filling,
)
from construct_messages.server.streams.publishing.messages import (
    BodyType,
    body_type_of,
    known_contexts,
    options_of,
    read_documents,
    read_messages,
    refused_log,
)
from construct_messages.server.streams.push import (
    ServerSocket,
    close,
    drop_unread,
    frame,
    refuse,
    write_frames,
)
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import (
    end_of_publishing,
    idempotency_key,
    record_of,
    unstored,
)
from construct_messages.server.streams.resources import published_document, published_text
from construct_messages.server.streams.selection import sequence_parameter
from construct_messages.server.streams.served import ServedStreams
from construct_messages.server.streams.shapes import InThread
from construct_messages.streams import Publication

# --- intake ---------------------------------------------------------------------------------------
# Receives messages over a WebSocket: each frame is one, and is answered when it is stored durably.
#
# RDF Messages, section 3 (WebSocket); RFC 6455. `push.py` writes the frames for followers. No store here.


class Answers(NamedTuple):
    """The result of publishing frames.

    Args:
        texts: the answers to the published ones, in order.
        refused: why the next one and later ones were not published; None: all were.
    """

    texts: Sequence[str]
    refused: ConstructMessagesError | None = None


Publish: TypeAlias = Callable[[Sequence[bytes]], Awaitable[Answers]]
"""Publishes the content of frames."""

_WAITING_FRAMES: Final = 1000  # frames that are read before earlier ones are stored


async def take_frames(
    request: web.Request,
    socket: web.WebSocketResponse,
    publish: Publish,
    stopping: asyncio.Event,
    permit: Permit,
    hold: Holding,
    idle_seconds: float,
) -> None:
    """Publishes each frame, and answers in the order of the frames, until the client disconnects or must end.

    A rejected frame closes the WebSocket, and later frames are not accepted.

    Args:
        request: the request of the WebSocket.
        socket: the prepared WebSocket.
        publish: called with the frames that arrived while earlier ones were being published.
        stopping, permit: when the server stops, or the token expires, accepted frames are still answered.
        hold: counts the bytes of waiting frames.
        idle_seconds: the maximal time for which a client does not read its answers.
    """
    frames = Groups[bytes](_WAITING_FRAMES)
    try:
        end = end_of_publishing(stopping, permit)
        async with filling(frames, _read_frames(socket, frames, hold), end):
            while group := await frames.take():
                answers = await publish(group)
                hold.release(sum(map(len, group)))
                if answers.texts and not socket.closed:
                    sent = b"".join([frame(text.encode(), text=True) for text in answers.texts])
                    await write_frames(request, socket, sent, idle_seconds)
                if answers.refused is not None:
                    await refuse(request, socket, answers.refused)
                    return
    except ConstructMessagesError as error:
        if stopping.is_set():
            await close(request, socket, WSCloseCode.GOING_AWAY, "the server stops")
        else:
            await refuse(request, socket, error)
        return
    if socket.closed:
        drop_unread(request)


async def _read_frames(socket: web.WebSocketResponse, frames: Groups[bytes], hold: Holding) -> None:
    try:
        async for each in socket:
            if each.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                data = each.data.encode() if each.type is WSMsgType.TEXT else bytes(each.data)
                hold(len(data))
                await frames.put(data, len(data))
    except ConstructMessagesError as error:
        frames.end(error)
    finally:
        frames.end()


# --- acknowledging --------------------------------------------------------------------------------
# Acknowledges a log while it is being sent: each line of the answer is about messages that are stored durably.
#
# The answer begins before the request has ended, which HTTP allows (RFC 9110, section 7.5; RFC 9112, section 9.3).
# Its lines are JSON. docs/decisions/099-logs-acknowledged-on-the-way.md

_WAITING_PIECES: Final = 16  # pieces that are read before earlier ones are stored
_LARGE_PIECE: Final = 1 << 16  # size of a piece that takes long to read, in bytes


class _Piece(NamedTuple):
    messages: list[Message]
    size: int


class LogReader:
    """Reads the messages of a body while it arrives.

    Args:
        request: a request whose body was not read yet.
        unpacker: decompresses the body; None: it is not compressed.
        decoder: the decoder of the log.
        hold: counts the bytes of waiting messages.
        in_thread: calls a function in a thread, so that it does not block the event loop.
    """

    def __init__(
        self,
        request: web.Request,
        unpacker: Unpacker | None,
        decoder: Decoder,
        hold: Holding,
        in_thread: InThread,
    ) -> None:
        self._content, self._decoder, self._hold = body_pieces(request, unpacker), decoder, hold
        self._in_thread = in_thread
        self.pieces = Groups[_Piece](_WAITING_PIECES)
        self._size = 0

    async def take(self) -> list[Message]:
        """Returns all waiting messages, at least one; empty: the log has ended.

        Raises:
            ConstructMessagesError: no more can be read.
        """
        self._hold.release(self._size)
        self._size = 0
        pieces = await self.pieces.take()
        self._size = sum(piece.size for piece in pieces)
        return [message for piece in pieces for message in piece.messages]

    async def run(self) -> None:
        """Reads the whole body."""
        error: ConstructMessagesError | None = None
        try:
            async with aclosing(self._content) as pieces:
                async for piece in pieces:
                    self._hold(len(piece))
                    await self._put(partial(self._decoder.feed, piece), len(piece))
            await self._put(self._decoder.close, 0)
        except LogError as damage:
            error = refused_log(damage)
        except ConstructMessagesError as refused:
            error = refused
        except ConnectionError:
            error = damaged()
        self.pieces.end(error)

    async def _put(self, read: Callable[[], Iterator[Message]], size: int) -> None:
        messages, error = (
            await self._in_thread(_read_piece, read) if size > _LARGE_PIECE else _read_piece(read)
        )
        if messages:
            await self.pieces.put(_Piece(messages, size), size)
        else:
            self._hold.release(size)
        if error is not None:
            raise error


def _read_piece(
    read: Callable[[], Iterator[Message]],
) -> tuple[list[Message], ConstructMessagesError | None]:
    """Returns the messages up to the first rejected one, and its error."""
    messages: list[Message] = []
    try:
        for message in read():
            message.checked = True  # decoders only return RDF
            messages.append(message)
    except ConstructMessagesError as error:
        return messages, error
    return messages, None


async def acknowledged(
    reader: LogReader,
    appender: Appender,
    iris: StreamIris,
    *,
    end: Coroutine[Any, Any, ConstructMessagesError],
    pause_seconds: float,
) -> AsyncGenerator[bytes]:
    """Yields the lines of the answer: an empty one at the start and in each pause, one per group, and one for an error.

    Args:
        reader: reads the log.
        appender: appends its messages.
        iris: the IRIs of the stream.
        end: returns why the publisher must end, once it must: messages that were read until then are stored.
        pause_seconds: the length of a pause.
    """
    try:
        async with filling(reader.pieces, reader.run(), end):
            yield b"\n"
            while True:
                try:
                    async with asyncio.timeout(pause_seconds):
                        messages = await reader.take()
                except TimeoutError:
                    yield b"\n"
                    continue
                if not messages:
                    break
                appended = await appender.append(messages)
                if appended.places:
                    yield _line(iris, appended, appender.count)
                if appended.refused is not None:
                    raise appended.refused
        if not appender.count:
            raise ProtocolError("the log has no message", status=422, hint="send at least one")
    except ConstructMessagesError as error:
        document = problem_document(error) | {"message": appender.count + 1}
        yield json.dumps(document).encode() + b"\n"


def _line(iris: StreamIris, appended: Appended, count: int) -> bytes:
    document = published_document(iris, appended.sequences) if appended.sequences else {}
    if not all(appended.places):
        document["invalid"] = appended.places.count(False)
    document["messages"] = count
    return json.dumps(document).encode() + b"\n"


# --- view -----------------------------------------------------------------------------------------

_LARGE: Final = (
    1 << 16
)  # size, in bytes, from which reading a body would delay other requests too long

_JSON: Final = f"{JSON}; charset=utf-8"
_LINES: Final = {"Content-Type": NDJSON, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
CHECK: Final = "check"
"""The parameter for validating a body without storing it."""

_INVALID: Final = json.dumps({"elements": 0, "invalid": 1})


class PublishingView:
    """Publishes to the streams of a store."""

    def __init__(self, served: ServedStreams) -> None:
        self._served, self._settings, self._store = served, served.settings, served.store
        self._bounds, self._shapes, self._in_thread = served.limits, served.shapes, served.in_thread
        self._contexts = known_contexts(served.settings.contexts)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Accepts no further frames; accepted ones are answered."""
        self._stopping.set()

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Appends the request body durably: each message of a log becomes an element, all or none."""
        name, iris, record, permit = await self._published(request)
        content_type, key = request.headers.get("Content-Type"), idempotency_key(request)
        body_type = body_type_of(content_type)
        own = _own_token(body_type)
        base = iris.element(own or "")
        if CHECK in request.query:
            async with self._bounds.publishing(request, permit) as body:
                messages = await self._read(content_type, body, base, self._settings.batch_messages)
            return await self._checked(request, name, messages, own)
        if body_type.syntax is not None and _wants_lines(request):
            appender = Appender(
                self._store, self._shapes, name, own, record, key=key, after=_log_after(request)
            )
            options = options_of(body_type, base, self._settings.message_bytes, self._contexts)
            decoder = decoder_for(body_type.format, body_type.syntax, options)
            return await self._acknowledge(request, decoder, appender, iris, permit)
        async with self._bounds.publishing(request, permit) as body:
            messages = await self._read(content_type, body, base, self._settings.batch_messages)
            if not messages:
                raise ProtocolError("the log has no message", status=422, hint="send at least one")
            kept = await self._shapes.conforming(name, messages, key=key, own=own)
            if not kept:
                return web.json_response({"elements": 0, "invalid": len(messages)}, status=202)
            sequences = await self._store.aappend_all(name, kept, key=key, own=own)
        record.published = len(sequences)
        if len(messages) == 1:
            text = published_text(iris)(sequences[0])
        else:
            document = published_document(iris, sequences)
            if len(kept) < len(messages):
                document["invalid"] = len(messages) - len(kept)
            text = json.dumps(document)
        location = iris.element(sequences[0]) if len(sequences) == 1 else iris.elements(sequences)
        headers = {"Content-Type": _JSON, "Location": location}
        return web.Response(status=201, body=text.encode(), headers=headers)

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """Appends the frames of a WebSocket: each one is a message."""
        name, iris, record, permit = await self._published(request)
        settings = self._settings
        socket = ServerSocket(
            protocols=tuple(SUBPROTOCOLS),
            timeout=CLOSE_SECONDS,
            heartbeat=settings.heartbeat_seconds,
            max_msg_size=settings.message_bytes,
        )

        async def publish(frames: Sequence[bytes]) -> Answers:
            messages, refused = await self._documents(content_type, frames, base)
            appended = await appender.append(messages)
            numbers = iter(appended.sequences)
            answers = [answer_of(next(numbers)) if fits else _INVALID for fits in appended.places]
            return Answers(answers, appended.refused or refused)

        with self._bounds.following(), self._bounds.holding() as hold:
            try:
                await socket.prepare(request)
                record.format = protocol = socket.ws_protocol or N_QUADS.subprotocol
                content_type = SUBPROTOCOLS[protocol].document_type
                own = _own_token(body_type_of(content_type))
                base = iris.element(own or "")
                appender = Appender(self._store, self._shapes, name, own, record)
                answer_of = published_text(iris)
                await take_frames(
                    request, socket, publish, self._stopping, permit, hold, settings.idle_seconds
                )
            except ClientLeft:
                reset(request)
                raise
            except ConnectionError as error:
                raise ClientLeft("left") from error
        return socket

    async def _checked(
        self, request: web.Request, name: str, messages: Sequence[Message], own: str | None
    ) -> web.Response:
        """Answers with the messages that a body would add to a stream, without storing them."""
        record_of(request).action = "check"
        kept, letters = await self._shapes.sorted(name, messages)
        next = self._store.state(name).next
        publications = [Publication.of(message) for message in kept]
        if own is not None:
            publications = [
                each._replace(nquads=each.nquads.replace(own.encode(), str(sequence).encode()))
                for sequence, each in enumerate(publications, next)
            ]
        return await unstored(request, publications, {Header.INVALID: str(len(letters))})

    async def _acknowledge(
        self,
        request: web.Request,
        decoder: Decoder,
        appender: Appender,
        iris: StreamIris,
        permit: Permit,
    ) -> web.StreamResponse:
        """Appends a log while it arrives, and answers with a line for each part of it."""
        unpacker = unpacker_of(request)
        record, settings = record_of(request), self._settings
        record.format = NDJSON
        with self._bounds.following(), self._bounds.holding() as hold:
            lines = acknowledged(
                LogReader(request, unpacker, decoder, hold, self._in_thread),
                appender,
                iris,
                end=end_of_publishing(self._stopping, permit),
                pause_seconds=settings.heartbeat_seconds,
            )
            return await send(
                request, lines, _LINES, idle_seconds=settings.idle_seconds, sent=record.sent
            )

    async def _documents(
        self, content_type: str, frames: Sequence[bytes], base: str
    ) -> tuple[list[Message], ConstructMessagesError | None]:
        """Returns the messages of frames up to the first rejected one, and its error."""
        together = read_documents(
            content_type, frames, base=base, message_bytes=self._settings.message_bytes
        )
        if together is not None:
            return together, None
        messages: list[Message] = []
        try:
            for frame in frames:
                read = await self._read(content_type, frame, base, 2)
                if len(read) != 1:
                    raise ProtocolError(
                        "a frame has one message", status=422, hint="send logs by POST"
                    )
                messages += read
        except ConstructMessagesError as error:
            return messages, error
        return messages, None

    async def _published(
        self, request: web.Request
    ) -> tuple[str, StreamIris, StreamRecord, Permit]:
        """Returns the stream to publish to, and the permission.

        Raises:
            NotFound: the stream does not exist.
            Forbidden: the client may not publish.
        """
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "publish", name
        permit = await self._served.admit_publisher(request, name)
        return name, self._served.iris(request, name), record, permit

    async def _read(
        self, content_type: str | None, body: bytes, base: str, most: int
    ) -> list[Message]:
        read = partial(
            read_messages,
            content_type,
            body,
            base=base,
            message_bytes=self._settings.message_bytes,
            most=most,
            contexts=self._contexts,
        )
        return await self._in_thread(read) if len(body) > _LARGE else read()


def _wants_lines(request: web.Request) -> bool:
    """Returns whether a publisher prefers lines to the JSON document at the end."""
    accept = accept_header(request)
    if accept is None or "ndjson" not in accept.lower():
        return False
    with suppress(NotAcceptable):
        return prefer(accept, [JSON, NDJSON]) == NDJSON
    return False


def _log_after(request: web.Request) -> int:
    """Returns the number of messages at the start of the log that a request leaves out."""
    after = request.headers.get(Header.LOG_AFTER)
    if after is None:
        return 0
    if Header.KEY not in request.headers:
        raise ProtocolError(
            f"{Header.LOG_AFTER} is about the log of a key", hint=f"send {Header.KEY}, too"
        )
    return sequence_parameter(Header.LOG_AFTER, after)


def _own_token(body_type: BodyType) -> str | None:
    """Returns an unpredictable placeholder for the element's sequence in its own IRI until it has one. None: no message
    has a relative IRI.
    """
    return os.urandom(16).hex() if body_type.has_base else None

"""Publishing to a stream: a document or a log by POST, or a message in each frame of a WebSocket.

Linked Data Notifications, section 3.3.1. Relative IRIs resolve against the IRI of the new element (Linked Data
Platform, section 5.2.3.7; RFC 3986, section 5.1.2), which is only known when the message is appended.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from aiohttp import web

from construct_messages.logs import Decoder, decoder_for
from construct_messages.rdf.errors import ConstructMessagesError, NotAcceptable, ProtocolError
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.media_types import JSON, NDJSON
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import SUBPROTOCOLS, Header
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.accept import accept_header
from construct_messages.server.http.access import Permit
from construct_messages.server.http.body import unpacker_of
from construct_messages.server.http.sending import ClientLeft, reset, send
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.bounds import CLOSE_SECONDS, StreamLimits
from construct_messages.server.streams.publishing.acknowledging import LogReader, acknowledged
from construct_messages.server.streams.publishing.appending import Appender
from construct_messages.server.streams.publishing.intake import Answers, take_frames
from construct_messages.server.streams.publishing.messages import (
    BodyType,
    body_type_of,
    known_contexts,
    options_of,
    read_documents,
    read_messages,
)
from construct_messages.server.streams.push import ServerSocket
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import (
    InThread,
    end_of_publishing,
    idempotency_key,
    record_of,
    unstored,
)
from construct_messages.server.streams.resources import published_document, published_text
from construct_messages.server.streams.selection import sequence_parameter
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.streams import Publication
from construct_messages.streams.store import StreamStore

_LARGE: Final = (
    1 << 16
)  # size, in bytes, from which reading a body would delay other requests too long

_JSON: Final = f"{JSON}; charset=utf-8"
_LINES: Final = {"Content-Type": NDJSON, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
CHECK: Final = "check"
"""The parameter for validating a body without storing it."""

_INVALID: Final = json.dumps({"elements": 0, "invalid": 1})


class PublishingView:
    """Publishes to the streams of a store.

    Args:
        settings: the limits.
        store: the store of the streams.
        bounds: the limits of concurrency and memory.
        in_thread: calls a function in a thread, so that it does not block the event loop.
        iris_of: returns the IRIs of a stream for a request.
        admit: rejects requests that may not publish to a stream.
        shapes: the shapes of the streams.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        in_thread: InThread,
        iris_of: Callable[[web.Request, str], StreamIris],
        admit: Callable[[web.Request, str], Awaitable[Permit]],
        shapes: StreamShapes,
    ) -> None:
        self._settings, self._store, self._bounds, self._in_thread = (
            settings,
            store,
            bounds,
            in_thread,
        )
        self._iris_of, self._admit, self._shapes = iris_of, admit, shapes
        self._contexts = known_contexts(settings.contexts)
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
                end = end_of_publishing(self._stopping, permit)
                await take_frames(request, socket, publish, end, hold, settings.idle_seconds)
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
        permit = await self._admit(request, name)
        return name, self._iris_of(request, name), record, permit

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

"""Publishing to a stream: a document or a log by POST, or a message in each frame of a WebSocket.

Linked Data Notifications, section 3.3.1. Relative IRIs resolve against the IRI of the element that a message becomes
(Linked Data Platform, section 5.2.3.7; RFC 3986, section 5.1.2), which is known when it is appended.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

from aiohttp import web

from construct_messages.errors import ProtocolError
from construct_messages.formats import N_QUADS
from construct_messages.message import Message
from construct_messages.net.wire import SUBPROTOCOLS
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.sending import ClientLeft
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.bounds import CLOSE_SECONDS, StreamLimits
from construct_messages.server.streams.publishing.intake import take_frames
from construct_messages.server.streams.publishing.messages import (
    BodyType,
    body_type_of,
    read_messages,
)
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import InThread, idempotency_key, record_of
from construct_messages.server.streams.resources import published_document
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.streams.store import StreamStore

_LARGE: Final = (
    1 << 16
)  # bytes, from which on reading a body takes longer than other requests should wait

_JSON: Final = "application/json; charset=utf-8"


class PublishingView:
    """What is published to the streams of a store.

    Args:
        settings: the limits.
        store: where the streams are.
        bounds: how much is done at once.
        in_thread: calls a function where it does not hold up the event loop.
        iris_of: the IRIs of a stream, as the client of a request knows it.
        admit: refuses a request that may not publish to a stream.
        shapes: of the streams.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        in_thread: InThread,
        iris_of: Callable[[web.Request, str], StreamIris],
        admit: Callable[[web.Request, str], Awaitable[None]],
        shapes: StreamShapes,
    ) -> None:
        self._settings, self._store, self._bounds, self._in_thread = (
            settings,
            store,
            bounds,
            in_thread,
        )
        self._iris_of, self._admit, self._shapes = iris_of, admit, shapes
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Takes no further frames; those that were taken are answered."""
        self._stopping.set()

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Appends what is sent, durably: each message of a log is an element, all or none."""
        name, iris, record = await self._published(request)
        content_type, key = request.headers.get("Content-Type"), idempotency_key(request)
        own = _own_token(body_type_of(content_type))
        base = iris.element(own or "")
        async with self._bounds.publishing(request) as body:
            messages = await self._read(content_type, body, base, self._settings.batch_messages)
            if not messages:
                raise ProtocolError("the log has no message", status=422, hint="send at least one")
            kept = await self._shapes.conforming(name, messages, key=key, own=own)
            if not kept:
                return web.json_response({"elements": 0, "invalid": len(messages)}, status=202)
            sequences = await self._store.aappend_all(name, kept, key=key, own=own)
        record.published = len(sequences)
        document = published_document(iris, sequences)
        if len(kept) < len(messages):
            document["invalid"] = len(messages) - len(kept)
        location = iris.element(sequences[0]) if len(sequences) == 1 else iris.elements(sequences)
        headers = {"Content-Type": _JSON, "Location": location}
        return web.Response(status=201, body=json.dumps(document).encode(), headers=headers)

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """Appends what comes over a WebSocket: each frame is a message."""
        name, iris, record = await self._published(request)
        settings = self._settings
        socket = web.WebSocketResponse(
            protocols=tuple(SUBPROTOCOLS),
            timeout=CLOSE_SECONDS,
            heartbeat=settings.heartbeat_seconds,
            max_msg_size=settings.message_bytes,
        )

        async def publish(frame: bytes) -> Awaitable[str]:
            own = _own_token(body_type)
            messages = await self._read(content_type, frame, iris.element(own or ""), 2)
            if len(messages) != 1:
                raise ProtocolError("a frame has one message", status=422, hint="send logs by POST")
            holding = ExitStack()
            holding.enter_context(self._bounds.holding())(len(frame))
            return asyncio.ensure_future(append(messages, own, holding))

        async def append(messages: list[Message], own: str | None, holding: ExitStack) -> str:
            with holding:
                kept = await self._shapes.conforming(name, messages, own=own)
                if not kept:
                    return json.dumps({"elements": 0, "invalid": len(messages)})
                sequences = await self._store.aappend_all(name, kept, own=own)
            record.published += 1
            return json.dumps(published_document(iris, sequences))

        with self._bounds.following():
            try:
                await socket.prepare(request)
                record.format = protocol = socket.ws_protocol or N_QUADS.subprotocol
                content_type = SUBPROTOCOLS[protocol].document_type
                body_type = body_type_of(content_type)
                await take_frames(socket, publish, self._stopping)
            except ConnectionError as error:
                raise ClientLeft("left") from error
        return socket

    async def _published(self, request: web.Request) -> tuple[str, StreamIris, StreamRecord]:
        """The stream that is published to.

        Raises:
            NotFound: there is none.
            Forbidden: the client may not.
        """
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "publish", name
        await self._admit(request, name)
        return name, self._iris_of(request, name), record

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
        )
        return await self._in_thread(read) if len(body) > _LARGE else read()


def _own_token(body_type: BodyType) -> str | None:
    """What stands for an element's sequence in its own IRI until it has one; nobody can guess it. None: no message
    names its IRI by a relative one.
    """
    return os.urandom(16).hex() if body_type.has_base else None

"""Answers CONSTRUCT queries with the messages of their results: as a log, or as server-sent events.

`answers.py` chooses between them, and the format.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Self

from aiohttp import web

from construct_messages.construct.assembly import Options
from construct_messages.construct.messages import QueryMessages
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.errors import (
    Conflict,
    ConstructMessagesError,
    LimitExceeded,
    ProtocolError,
    shown,
)
from construct_messages.rdf.formats.media_types import EVENT_STREAM
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import GROUP_LIMIT
from construct_messages.rdf.wire import Event, Header
from construct_messages.server.config import EndpointSettings
from construct_messages.server.http.event_stream import (
    STILL_HERE,
    check_text,
    error_event,
    event,
    retry,
)
from construct_messages.server.http.sending import negotiate_coding, send
from construct_messages.server.sparql.answers import MessagesAnswer
from construct_messages.server.sparql.protocol import MessageParameters
from construct_messages.server.sparql.record import SparqlRecord
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.operations import Backend

# --- events ---------------------------------------------------------------------------------------
# The answer to a query as server-sent events: one for each message, then one for its end or its failure.
#
# WHATWG HTML, section 9.2; w3c/sparql-query issue 323. A client reconnects when the connection ends, with the id of
# its last event. Each id is therefore a position in the result, after which the next answer begins. A client that
# sends the id of the final event gets 204, because the result has ended.

_END: Final = "end"
_FAILED: Final = "failed"
OVER: Final = (_END, _FAILED)
"""The ids of final events: a client that sends one of them gets no further event."""

_AT_ONCE: Final = 128
"""The number of events that are created before they are sent and other tasks run."""
_DIGEST_BYTES: Final = 8
_ID: Final = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{16})")


@dataclass(frozen=True)
class ResultPosition:
    """A position in a result: after its first messages.

    Args:
        number: the number of messages.
        digest: the digest of their documents, so that a different result is detected.
    """

    number: int
    digest: str

    @classmethod
    def of(cls, id: str) -> Self:
        """Reads the id of an event.

        Raises:
            ProtocolError: it is not the id of an event of this server.

        >>> ResultPosition.of("3-00112233aabbccdd").number
        3
        """
        found = _ID.fullmatch(id)
        if found is None:
            raise ProtocolError(
                f"{Header.LAST_EVENT_ID}: {shown(id)} is no id of an event of this answer",
                hint="leave it out to get the whole result",
            )
        return cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}"


class _Written:
    """The messages of a result as events.

    Args:
        encode: returns the document of a message.
        after: the position to begin after; None: the beginning.
        message_bytes: the maximal size of a document.
    """

    def __init__(
        self,
        encode: Callable[[Message], bytes],
        after: ResultPosition | None,
        message_bytes: int | None,
    ) -> None:
        self._encode, self._after, self._message_bytes = encode, after, message_bytes
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self._number = 0

    def event(self, message: Message) -> bytes | None:
        """Returns the event of the next message; None: the client already has it.

        Raises:
            Conflict: the result up to here differs from that of the client.
            LimitExceeded: the message is too large.
        """
        document = self._encode(message)
        size = len(document)
        if self._message_bytes is not None and size > self._message_bytes:
            raise LimitExceeded(
                f"a message of {size} bytes, where {self._message_bytes} are allowed",
                hint="group less, or ask for smaller values",
            )
        self._number += 1
        self._digest.update(b"%d:%s" % (size, document))
        if self._after is None or self._number > self._after.number:
            position = ResultPosition(self._number, self._digest.hexdigest())
            return event(Event.MESSAGE, document, str(position))
        if self._number == self._after.number and self._digest.hexdigest() != self._after.digest:
            raise _changed()
        return None

    def end(self) -> bytes:
        """Returns the event after the last message.

        Raises:
            Conflict: the client has more messages than the result.
        """
        if self._after is not None and self._number < self._after.number:
            raise _changed()
        return event(Event.END, b"%d" % self._number, _END)


def _changed() -> Conflict:
    return Conflict(
        "the result is not the one that was begun: the data have changed, or came in another order",
        hint="ask for all of it again; ORDER BY sets the order",
    )


def failure(error: ConstructMessagesError) -> bytes:
    """Returns the last event of a failed answer."""
    return error_event(error, _FAILED)


async def answer_events(
    messages: QueryMessages,
    encode: Callable[[Message], bytes],
    *,
    after: ResultPosition | None,
    message_bytes: int | None,
    silent_seconds: float,
) -> AsyncGenerator[bytes]:
    """Yields the events of a result, with a comment in each pause.

    Args:
        messages: the messages; closed at the end.
        encode: returns the document of a message.
        after: the position to begin after; None: the beginning.
        message_bytes: the maximal size of a document.
        silent_seconds: the length of a pause.

    Raises:
        ConstructMessagesError: the result is incomplete; earlier events were yielded.
    """
    made: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_AT_ONCE)
    written = _Written(encode, after, message_bytes)
    # one task reads the whole result: time limits of sources belong to the task that sets them
    making = asyncio.create_task(_make(messages, written, made))
    start = retry()
    try:
        while True:
            try:
                async with asyncio.timeout(silent_seconds):
                    item = await made.get()
            except TimeoutError:
                yield start + STILL_HERE
                start = b""
                continue
            ready: list[bytes] = []
            while isinstance(item, bytes):
                ready.append(item)
                if made.empty():
                    break
                item = made.get_nowait()
            if ready:  # an error before the first event sets the status
                yield b"".join((start, *ready))
                start = b""
            if isinstance(item, Exception):
                raise item
            if item is None:
                return
    finally:
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)


async def _make(
    messages: QueryMessages, written: _Written, made: asyncio.Queue[bytes | Exception | None]
) -> None:
    number = 0
    try:
        async with messages:
            async for message in messages:
                if (next_event := written.event(message)) is not None:
                    await made.put(next_event)
                if number % _AT_ONCE == 0:  # the first event is sent before others are created
                    await asyncio.sleep(0)
                number += 1
        await made.put(written.end())
        await made.put(None)
    except Exception as error:  # noqa: BLE001 - it is raised where the events are read
        await made.put(error)


# --- messages -------------------------------------------------------------------------------------

# without it, nginx would buffer streamed answers
_STREAMED: Final = {"X-Accel-Buffering": "no"}
# the labels of an event's blank nodes: they have no meaning outside of it, and are the same in each answer
_LABEL_PREFIX: Final = "e"
# the maximal number of messages to compare; each takes about 100 bytes
_DISTINCT_LIMIT: Final = GROUP_LIMIT


class MessagesSender:
    """Sends the messages of a result to a client.

    Args:
        settings: the settings of the endpoint.
        backend: answers the SELECT.
        record: the record of the request.
    """

    def __init__(self, settings: EndpointSettings, backend: Backend, record: SparqlRecord) -> None:
        self._settings, self._backend, self._record = settings, backend, record

    async def send_log(
        self,
        request: web.Request,
        answer: MessagesAnswer,
        query: ConstructQuery,
        select: Request,
        asked: MessageParameters,
    ) -> web.StreamResponse:
        """Sends a message log."""
        headers = {"Content-Type": answer.content_type, **_STREAMED}
        if request.method == "HEAD":
            return web.Response(headers=headers)
        log = self._messages(query, select, asked)
        return await send(
            request,
            log.aserialize(answer.type, options=answer.options),
            headers,
            idle_seconds=self._settings.limits.idle_seconds,
            buffer_bytes=self._settings.buffer_bytes,
            coding=negotiate_coding(request.headers.get("Accept-Encoding")),
            sent=self._record.sent,
        )

    async def send_events(
        self,
        request: web.Request,
        answer: MessagesAnswer,
        query: ConstructQuery,
        select: Request,
        asked: MessageParameters,
    ) -> web.StreamResponse:
        """Sends server-sent events, from the beginning or after the client's last event.

        Raises:
            ProtocolError: the id of the last event is not one of this server.
            NotAcceptable: events cannot carry the format.
        """
        format, syntax = answer.type
        check_text(format)
        last = request.headers.get(Header.LAST_EVENT_ID, "")
        if last in OVER:
            return web.Response(status=204)  # clients do not reconnect after this event
        after = ResultPosition.of(last) if last else None
        headers = {
            "Content-Type": EVENT_STREAM,
            "Cache-Control": "no-store",
            Header.CONTENT_TYPE: answer.content_type,
            **_STREAMED,
        }
        if request.method == "HEAD":
            return web.Response(headers=headers)
        encoder = encoder_for(
            format,
            syntax,
            EncoderOptions(
                query.prefixes if format.log_prefixes else {},
                query.template.names_graphs,
                query.template.has_triple_terms,
                answer.options,
                query.template,
                frozenset(asked.grouping.by) or None,
            ),
        )
        events = answer_events(
            self._messages(query, replace(select, labels=Labels(_LABEL_PREFIX)), asked),
            encoder.encode_document,
            after=after,
            message_bytes=self._settings.limits.message_bytes,
            silent_seconds=self._settings.heartbeat_seconds,
        )
        return await send(
            request,
            events,
            headers,
            idle_seconds=self._settings.limits.idle_seconds,
            coding=negotiate_coding(request.headers.get("Accept-Encoding")),
            sent=self._record.sent,
            failure=failure,
        )

    def _messages(
        self, query: ConstructQuery, select: Request, asked: MessageParameters
    ) -> QueryMessages:
        limits = self._settings.limits
        options = Options(
            asked.distinct,
            GROUP_LIMIT,
            grouping=asked.grouping,
            max_messages=asked.max_messages,
            strict=self._settings.strict,
            solution_limit=limits.solutions,
            message_limit=limits.messages,
            message_bytes=limits.message_bytes,
        )
        self._record.source_asked()
        self._record.messages = messages = QueryMessages(
            query, self._backend, select, options, owns_source=False
        )
        return messages

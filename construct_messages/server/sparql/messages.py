"""Answers CONSTRUCT queries with the messages of their results: as a log, or as server-sent events.

`answers.py` chooses between them, and the format.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from construct_messages.construct.assembly import Options
from construct_messages.construct.messages import QueryMessages
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.formats.media_types import EVENT_STREAM
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.options import GROUP_LIMIT
from construct_messages.rdf.wire import Header
from construct_messages.server.config import EndpointSettings
from construct_messages.server.http.coding import negotiate_coding
from construct_messages.server.http.event_stream import check_text
from construct_messages.server.http.sending import send
from construct_messages.server.sparql.answers import MessagesAnswer
from construct_messages.server.sparql.events import OVER, ResultPosition, answer_events, failure
from construct_messages.server.sparql.protocol import MessageOptions
from construct_messages.server.sparql.record import SparqlRecord
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.operations import Backend

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
        asked: MessageOptions,
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
        asked: MessageOptions,
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
            self._messages(query, select.replace(labels=Labels(_LABEL_PREFIX)), asked),
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
        self, query: ConstructQuery, select: Request, asked: MessageOptions
    ) -> QueryMessages:
        limits = self._settings.limits
        options = Options(
            asked.grouping,
            asked.distinct,
            _DISTINCT_LIMIT,
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

"""Answers CONSTRUCT queries with the messages of their results: as a log, or as server-sent events.

`messages.py` chooses between them, and the format.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from aiohttp import web

from construct_messages.construct.assembly import Options
from construct_messages.construct.messages import QueryMessages
from construct_messages.errors import (
    Conflict,
    ConstructMessagesError,
    LimitExceeded,
    LogError,
    NotAcceptable,
    ProtocolError,
    UsageError,
    shown,
)
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.formats import JSON_DOCUMENTS, NDJSON_LD, RDFM, LogType, content_type
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import EVENT_STREAM, JSON, NDJSON
from construct_messages.rdf.formats.negotiation import Plain, media_ranges, negotiate, prefer
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import GROUP_LIMIT
from construct_messages.rdf.wire import Event, Header
from construct_messages.server.config import EndpointSettings
from construct_messages.server.http.request_log import RequestRecord
from construct_messages.server.http.sending import (
    HEARTBEAT,
    check_text,
    error_event,
    event,
    negotiate_coding,
    retry,
    send,
)
from construct_messages.server.sparql.protocol import MessageParameters
from construct_messages.sparql.sources import Backend, Request

if TYPE_CHECKING:
    from construct_messages.logs.json.options import JsonOptions


# --- answers --------------------------------------------------------------------------------------
# Chooses the answer to an operation: the source's own, a log, framed JSON documents, or server-sent events.
#
# `rdf/formats/negotiation.py` chooses between the first two. `Accept: text/event-stream` requests events. JSON
# documents are requested by a frame (the parameter `frame`, or a `Link` header of the relation that JSON-LD has for
# frames in its namespace), or by `Accept: application/x-ndjson`. No frame is fetched: it is in the request, or in the
# settings under its IRI.

FRAME_RELATION: Final = "http://www.w3.org/ns/json-ld#frame"
_MOST_CHARACTERS: Final = 1 << 16
"""The maximal size of a frame in a request: larger than hand-written ones, and still fast to parse."""
_OFFERED: Final = (NDJSON, JSON)
_FORMATS: Final = {"ndjson": NDJSON, NDJSON: NDJSON, "json": JSON, JSON: JSON}
# RFC 8288, section 3
_LINK: Final = re.compile(r'<([^<>]*)>\s*((?:;\s*[\w*]+(?:=(?:"[^"]*"|[^\s",;]*))?\s*)*)')
_PARAMETER: Final = re.compile(r';\s*([\w*]+)=(?:"([^"]*)"|([^\s",;]*))')


@dataclass(frozen=True)
class MessagesAnswer:
    """An answer of messages; `content_type` is that of the answer, or of the data of its events."""

    type: LogType
    content_type: str
    options: FormatOptions | None = None
    events: bool = False


class KnownFrames:
    """The frames and contexts of an endpoint, by their names or IRIs in requests."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._known: dict[str, Any] = {}
        for name, file in files.items():
            try:
                read = json.loads(Path(file).read_bytes())
            except OSError as error:
                raise UsageError(f"cannot read the frame {file}: {error.strerror}") from error
            except (ValueError, RecursionError) as error:
                raise UsageError(f"the frame {file} is not JSON: {error}") from error
            if not isinstance(read, dict):
                raise UsageError(f"the frame {file} is no JSON object")
            self._known[name] = read

    def options(self, frame: str, *, array: bool) -> JsonOptions:
        """Returns the options of documents with a frame.

        `frame` is JSON, or the name of one of the settings; empty: none. `array`: the documents are one array.
        """
        # loaded when a client requests documents
        from construct_messages.logs.json.options import JsonOptions

        if not frame:
            return JsonOptions(array=array)
        if not frame.lstrip().startswith("{"):
            if frame not in self._known:
                known = ", ".join(sorted(self._known)) or "none here"
                raise UsageError(
                    f"the frame {shown(frame)} is not known, and none is fetched",
                    hint=f"send it as JSON, or name one of the endpoint's: {known}",
                )
            return JsonOptions(self._known[frame], contexts=self._known, array=array)
        options = JsonOptions(_read(frame), contexts=self._known, array=array)
        _check(options)
        return options


def choose_answer(
    links: Sequence[str],
    accept: str | None,
    parameters: Mapping[str, str | None],
    frames: KnownFrames,
    *,
    construct: bool,
) -> Plain | MessagesAnswer:
    """Chooses the answer for a request, by its `Link` and `Accept` headers and the parameters `format`, `messages` and
    `frame`. A frame with another form of query, or with media types other than JSON, is an error.
    """
    frame = parameters["frame"] or frame_of(links)
    if construct and not parameters["messages"] and _wants_events(accept):
        return _events(parameters["format"] or "", frame, frames)
    if not frame and not (construct and _wants_documents(accept, parameters)):
        choice = negotiate(
            accept,
            format=parameters["format"],
            messages=parameters["messages"],
            construct=construct,
        )
        if isinstance(choice, Plain):
            return choice
        return MessagesAnswer(choice, content_type(*choice))
    if not construct:
        raise NotAcceptable(
            "JSON documents are asked for, and only CONSTRUCT queries return messages",
            hint="leave the frame out, or ask for another media type",
            offered=(),
        )
    media_type = _media_type(parameters["format"] or "", accept)
    assert JSON_DOCUMENTS.own is not None
    return MessagesAnswer(
        LogType(JSON_DOCUMENTS, JSON_DOCUMENTS.own),
        media_type,
        frames.options(frame or "", array=media_type == JSON),
    )


def _wants_events(accept: str | None) -> bool:
    """Returns whether a client prefers events to all other media types in its Accept header."""
    weights = dict(reversed(list(media_ranges(accept or ""))))
    events = weights.pop(EVENT_STREAM, 0)
    named = (weight for range, weight in weights.items() if "*" not in range)
    return events > max(named, default=0) and events >= max(weights.values(), default=0)


def _events(format: str, frame: str | None, frames: KnownFrames) -> MessagesAnswer:
    """Returns the answer of events with data in the format of the URL: framed documents, or documents of a log
    format.
    """
    if frame or format.lower() in ("json", JSON):
        _media_type(format, NDJSON)
        assert JSON_DOCUMENTS.own is not None
        documents = LogType(JSON_DOCUMENTS, JSON_DOCUMENTS.own)
        return MessagesAnswer(
            documents, JSON, frames.options(frame or "", array=False), events=True
        )
    found, syntax = find_format(format or "nq")
    type = LogType(found, syntax or found.own or RDFM)
    return MessagesAnswer(type, found.document_type, events=True)


def _media_type(format: str, accept: str | None) -> str:
    if not format:
        return prefer(accept, _OFFERED)
    if format.lower() not in _FORMATS:
        raise UsageError(
            f"format={format} is not a format of framed documents",
            hint="write format=json or ndjson",
        )
    return _FORMATS[format.lower()]


def frame_of(links: Sequence[str]) -> str | None:
    """Returns the frame in `Link` headers (RFC 8288); None: they have none.

    >>> frame_of(['<https://example.org/f>; rel="http://www.w3.org/ns/json-ld#frame"'])
    'https://example.org/f'
    """
    for link in links:
        for target, parameters in _LINK.findall(link):
            for name, quoted, token in _PARAMETER.findall(parameters):
                if name.lower() == "rel" and FRAME_RELATION in (quoted or token).split():
                    return str(target)
    return None


def _wants_documents(accept: str | None, parameters: Mapping[str, str | None]) -> bool:
    """Returns whether a client prefers NDJSON to all other media types, without a format in the URL."""
    if parameters["format"] or parameters["messages"]:
        return False
    weights = dict(reversed(list(media_ranges(accept or ""))))
    ndjson = weights.pop(NDJSON, 0)
    return ndjson > max(weights.values(), default=0)


def _read(text: str) -> Any:
    from construct_messages.logs.jsonld.json_text import JsonReader

    if len(text) > _MOST_CHARACTERS:
        raise LimitExceeded(
            f"the frame has {len(text)} characters, and {_MOST_CHARACTERS} are allowed"
        )
    try:
        return JsonReader().read(text, number=1, line=1)
    except LogError as error:
        raise UsageError(f"the frame is malformed: {error.message}", hint=error.hint) from error


def _check(options: JsonOptions) -> None:
    """Rejects a client's frame that takes long, or requires PyLD."""
    from construct_messages.logs.json.compiled import is_compiled
    from construct_messages.logs.jsonld.contexts import Weight

    weight = Weight()
    weight.add(options.frame, options.contexts)
    weight.check(1, _MOST_CHARACTERS << 4)
    if not is_compiled(options):
        raise UsageError(
            "the frame or its context has features that only frames of the settings may have, as @reverse or @nest",
            hint=f"ask for the messages in {NDJSON_LD.media_type}, and frame them",
        )


# --- record ---------------------------------------------------------------------------------------
# The record of a SPARQL request: the form of the operation, its text, solutions, and the time of the source.

FORMS: Final = frozenset(("SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "UPDATE", "description"))


@dataclass(kw_only=True)
class SparqlRecord(RequestRecord):
    """The record of a request to a SPARQL endpoint.

    `form` is one of `FORMS`; None: unknown. `query` is only logged if the settings allow it. `source_seconds` is the
    time from the request to the source to its first bytes.
    """

    LABELS: ClassVar[Mapping[str, frozenset[str]]] = {"form": FORMS}
    COUNTERS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.COUNTERS,
        "solutions": "Solutions read from sources for messages.",
    }
    DURATIONS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.DURATIONS,
        "source": "From the request to a source to the first bytes that follow from its answer.",
    }

    form: str | None = None
    query: str | None = None
    messages: QueryMessages | None = None
    source_seconds: float | None = None
    _source_asked: float | None = None

    def source_asked(self) -> None:
        """Records that the request to the source begins now."""
        self._source_asked = self.seconds

    def sent(self, size: int) -> None:
        if self._source_asked is not None and self.source_seconds is None:
            self.source_seconds = self.seconds - self._source_asked
        super().sent(size)

    def fields(self) -> dict[str, object]:
        return super().fields() | {
            "form": self.form,
            "source_seconds": self.source_seconds,
            "solutions": self.messages.solution_count if self.messages else None,
        }

    def texts(self) -> dict[str, object]:
        return {"query": self.query}

    def counts(self) -> Mapping[str, int]:
        return {
            **super().counts(),
            "solutions": self.messages.solution_count if self.messages else 0,
        }

    def durations(self) -> Mapping[str, float | None]:
        return {**super().durations(), "source": self.source_seconds}


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
    """A position in a result: after `number` messages. The digest of their documents shows whether the result is still
    the same.
    """

    number: int
    digest: str

    @classmethod
    def of(cls, id: str, name: str = Header.LAST_EVENT_ID) -> Self:
        """Reads the id of an event, or another position that a client sends under a name.

        >>> ResultPosition.of("3-00112233aabbccdd").number
        3
        """
        found = _ID.fullmatch(id)
        if found is None:
            raise ProtocolError(
                f"{name}: {shown(id)} is not one of this answer",
                hint="leave it out to get the whole result",
            )
        return cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}"


class ResultDocuments:
    """The messages of a result as documents with their positions; a reader already has those up to `after`."""

    def __init__(
        self,
        encode: Callable[[Message], bytes],
        after: ResultPosition | None,
        message_bytes: int | None,
    ) -> None:
        self._encode, self._after, self._message_bytes = encode, after, message_bytes
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self._number = 0

    def next(self, message: Message) -> tuple[bytes, ResultPosition] | None:
        """Returns the document of the next message and the position after it; None: the reader already has it.
        `Conflict`: the result up to here differs from that of the reader.
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
            return document, ResultPosition(self._number, self._digest.hexdigest())
        if self._number == self._after.number and self._digest.hexdigest() != self._after.digest:
            raise _changed()
        return None

    def end(self) -> int:
        """Returns the number of messages, after the last one."""
        if self._after is not None and self._number < self._after.number:
            raise _changed()
        return self._number


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
    """Yields the events of a result after a position, with a comment in each pause of `silent_seconds`."""
    made: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_AT_ONCE)
    documents = ResultDocuments(encode, after, message_bytes)
    # one task reads the whole result: time limits of sources belong to the task that sets them
    making = asyncio.create_task(_make(messages, documents, made))
    start = retry()
    try:
        while True:
            try:
                async with asyncio.timeout(silent_seconds):
                    item = await made.get()
            except TimeoutError:
                yield start + HEARTBEAT
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
    messages: QueryMessages,
    documents: ResultDocuments,
    made: asyncio.Queue[bytes | Exception | None],
) -> None:
    number = 0
    try:
        async with messages:
            async for message in messages:
                if (found := documents.next(message)) is not None:
                    document, position = found
                    await made.put(event(Event.MESSAGE, document, str(position)))
                if number % _AT_ONCE == 0:  # the first event is sent before others are created
                    await asyncio.sleep(0)
                number += 1
        await made.put(event(Event.END, b"%d" % documents.end(), _END))
        await made.put(None)
    except Exception as error:  # noqa: BLE001 - it is raised where the events are read
        await made.put(error)


# --- messages -------------------------------------------------------------------------------------

# without it, nginx would buffer streamed answers
_STREAMED: Final = {"X-Accel-Buffering": "no"}
# the labels of an event's blank nodes: they have no meaning outside of it, and are the same in each answer
_LABEL_PREFIX: Final = "e"


def messages_of(
    settings: EndpointSettings,
    backend: Backend,
    query: ConstructQuery,
    select: Request,
    asked: MessageParameters,
) -> QueryMessages:
    """Returns the messages of a query, within the limits of the endpoint."""
    limits = settings.limits
    options = Options(
        asked.distinct,
        GROUP_LIMIT,
        grouping=asked.grouping,
        max_messages=asked.max_messages,
        strict=settings.strict,
        solution_limit=limits.solutions,
        message_limit=limits.messages,
        message_bytes=limits.message_bytes,
    )
    return QueryMessages(query, backend, select, options, owns_source=False)


def document_labels() -> Labels:
    """Returns the labels of messages that are read by themselves, as documents: the same in each answer."""
    return Labels(_LABEL_PREFIX)


def document_encoder(
    type: LogType,
    query: ConstructQuery,
    group_by: Sequence[str] = (),
    options: FormatOptions | None = None,
) -> Callable[[Message], bytes]:
    """Returns a function that encodes each message of a query as a document."""
    format, syntax = type
    encoder = encoder_for(
        format,
        syntax,
        EncoderOptions(
            query.prefixes if format.log_prefixes else {},
            query.template.names_graphs,
            query.template.has_triple_terms,
            options,
            query.template,
            frozenset(group_by) or None,
        ),
    )
    return encoder.encode_document


class MessagesSender:
    """Sends the messages of a result to a client."""

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
            coding=negotiate_coding(request),
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
        """Sends server-sent events, from the beginning or after the client's last event."""
        check_text(answer.type.format)
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
        events = answer_events(
            self._messages(query, replace(select, labels=document_labels()), asked),
            document_encoder(answer.type, query, asked.grouping.by, answer.options),
            after=after,
            message_bytes=self._settings.limits.message_bytes,
            silent_seconds=self._settings.heartbeat_seconds,
        )
        return await send(
            request,
            events,
            headers,
            idle_seconds=self._settings.limits.idle_seconds,
            coding=negotiate_coding(request),
            sent=self._record.sent,
            failure=failure,
        )

    def _messages(
        self, query: ConstructQuery, select: Request, asked: MessageParameters
    ) -> QueryMessages:
        self._record.source_asked()
        messages = messages_of(self._settings, self._backend, query, select, asked)
        self._record.messages = messages
        return messages

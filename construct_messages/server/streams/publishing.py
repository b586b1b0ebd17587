"""Publishing to a stream: a document or a log by POST, or a message in each frame of a WebSocket.

Linked Data Notifications, section 3.3.1. Relative IRIs resolve against the IRI of the new element (Linked Data
Platform, section 5.2.3.7; RFC 3986, section 5.1.2), which is only known when the message is appended.
"""

from __future__ import annotations

import asyncio
import json
import os
from codecs import BOM_UTF8
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    LogError,
    NotAcceptable,
    ProtocolError,
    UsageError,
)
from construct_messages.logs import Decoder, DecoderOptions, decoder_for
from construct_messages.logs.documents import (
    CONTEXTS,
    DocumentReader,
    KnownContexts,
    document_format,
    implied_context,
)
from construct_messages.rdf.files.unpacking import Unpacker
from construct_messages.rdf.formats import FORMATS, N_QUADS, N_TRIPLES, Format, Syntax
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import JSON, NDJSON, read_media_type
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.message import Message, of_lines
from construct_messages.rdf.wire import SUBPROTOCOLS, Header
from construct_messages.server.http.access import Permit
from construct_messages.server.http.app import accept_header
from construct_messages.server.http.body import body_pieces, damaged, unpacker_of
from construct_messages.server.http.sending import ClientLeft, problem_document, reset, send
from construct_messages.server.streams.following import (
    ServerSocket,
    close,
    drop_unread,
    frame,
    refuse,
    write_frames,
)
from construct_messages.server.streams.requests import (
    StreamRecord,
    end_of_publishing,
    idempotency_key,
    record_of,
    sequence_parameter,
    unstored,
)
from construct_messages.server.streams.resources import (
    StreamIris,
    published_document,
    published_text,
)
from construct_messages.server.streams.served import (
    CLOSE_SECONDS,
    Holding,
    InThread,
    ServedStreams,
    StreamShapes,
)
from construct_messages.streams import Publication
from construct_messages.streams.publication import LogPart
from construct_messages.streams.store import StreamStore

# --- messages -------------------------------------------------------------------------------------
# Reads the messages in a request body: one document or a whole log, in every format of logs.
#
# Linked Data Notifications, section 3.3.1 (JSON-LD with a profile is JSON-LD); LDN for RDF streams (an element is an
# RDF document); Activity Streams 2.0, section 2.1, and ActivityPub, section 3.2 (the implied context).

ACCEPTED: Final = tuple(
    dict.fromkeys(
        media_type
        for format in FORMATS
        for media_type in (*format.media_types, *format.document_types)
    )
)
"""The media types that publishers may send."""
ACCEPT_POST: Final = {"Accept-Post": ", ".join(ACCEPTED)}


def read_messages(
    content_type: str | None,
    body: bytes,
    *,
    base: str,
    message_bytes: int,
    most: int,
    contexts: KnownContexts = CONTEXTS,
) -> list[Message]:
    """Returns the messages of a body: one for a document, all messages of a log.

    415: another media type or charset. 400: an empty body in a format without empty documents. 422: a body that is not
    valid in its format.

    >>> options = {"base": "urn:x", "message_bytes": 1000, "most": 10}
    >>> [len(message) for message in read_messages("text/turtle", b"<urn:s> <urn:p> 1, 2 .", **options)]
    [2]
    >>> document = b"<urn:s> <urn:p> 1 .\\n# @message me\\n<urn:s> <urn:p> 2 ."
    >>> [len(message) for message in read_messages("text/turtle", document, **options)]
    [2]
    >>> log = b"# @message\\n<urn:s> <urn:p> 1 .\\n# @message\\n"
    >>> [len(message) for message in read_messages("text/turtle; messages=rdfm", log, **options)]
    [1, 0]
    """
    body_type = body_type_of(content_type)
    options = options_of(body_type, base, message_bytes, contexts)
    messages = DocumentReader(body_type.format, options, body_type.syntax).messages(body)
    read: list[Message] = []
    try:
        for message in messages:
            message.checked = True  # decoders only return RDF
            read.append(message)
            if len(read) > most:
                raise LimitExceeded(
                    f"the log has more than {most} messages", hint="send it in parts"
                )
    except LogError as error:
        refused = refused_log(error)
        if not body.removeprefix(BOM_UTF8).strip():
            refused.status = 400
        raise refused from error
    # a document without statements is an empty message
    return read or ([Message()] if body_type.is_document else [])


def read_documents(
    content_type: str | None, documents: Sequence[bytes], *, base: str, message_bytes: int
) -> list[Message] | None:
    """Returns the messages of documents that are stored unchanged; None: use `read_messages` for each of them.

    Checking all documents together takes a third of the time.

    >>> options = {"base": "urn:x", "message_bytes": 1000}
    >>> documents = [b"<urn:s> <urn:p> <urn:o> .\\n", b"<urn:s> <urn:p> <urn:s> .\\n"]
    >>> list(map(len, read_documents("application/n-quads", documents, **options)))
    [1, 1]
    >>> read_documents("text/turtle", documents, **options)
    """
    body_type = body_type_of(content_type)
    options = options_of(body_type, base, message_bytes)
    lines = DocumentReader(body_type.format, options, body_type.syntax).lines(documents)
    return None if lines is None else list(map(of_lines, lines))


def refused_log(error: LogError) -> ProtocolError:
    """Returns the error for a body that is not valid in its format (422)."""
    refused = ProtocolError(str(error).partition("\n")[0], status=422, hint=error.hint)
    refused.position = error.position
    return refused


class BodyType(NamedTuple):
    """The meaning of a body's Content-Type.

    `syntax` is None if the body is one document. `context` is the IRI of the JSON-LD context that the media type
    implies.
    """

    format: Format
    syntax: Syntax | None
    context: str | None

    @property
    def is_document(self) -> bool:
        """Whether the body is one document, which may itself delimit messages."""
        return self.syntax is None

    @property
    def has_base(self) -> bool:
        """Whether its IRIs may be relative."""
        return self.format not in (N_QUADS, N_TRIPLES)


@lru_cache(maxsize=64)
def body_type_of(content_type: str | None) -> BodyType:
    """Interprets the Content-Type of a body.

    >>> body_type_of("text/turtle").is_document, body_type_of("text/turtle; messages=rdfm").is_document
    (True, False)
    """
    media_type, parameters = read_media_type(content_type or "") or ("", {})
    if not media_type:
        raise _refused(
            "the request has no Content-Type"
            if not content_type
            else f"Content-Type: {content_type}"
        )
    charset = parameters.pop("charset", "utf-8")
    if charset not in ("utf-8", "utf8"):
        raise ProtocolError(f"charset={charset} is not read here", status=415, hint="send UTF-8")
    context = implied_context(media_type, parameters)
    try:
        if any(media_type in format.documents for format in FORMATS):
            return BodyType(document_format(media_type), None, context)
        written = (f'{name}="{value}"' for name, value in parameters.items())
        return BodyType(*find_format("; ".join((media_type, *written))), context)
    except UsageError as error:
        raise _refused(error.message) from error


def known_contexts(files: Mapping[str, str]) -> KnownContexts:
    """Returns the JSON-LD contexts of this package and those in files, by IRI."""
    contexts: dict[str, Any] = {}
    for iri, file in files.items():
        try:
            contexts[iri] = json.loads(Path(file).read_bytes())
        except OSError as error:
            raise UsageError(f"cannot read the context {file}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the context {file} is not JSON: {error}") from error
    return KnownContexts(contexts)


def options_of(
    body_type: BodyType, base: str, message_bytes: int, contexts: KnownContexts = CONTEXTS
) -> DecoderOptions:
    """Returns the options of the decoder of a body; see `read_messages`."""
    if body_type.has_base:
        return _options_of(base, body_type.context, message_bytes, contexts)
    return _known_options_of(None, body_type.context, message_bytes)


def _options_of(
    base: str | None,
    context: str | None,
    message_bytes: int,
    contexts: KnownContexts = CONTEXTS,
) -> DecoderOptions:
    return DecoderOptions(
        base=base,
        contexts=contexts,
        context=context,
        message_bytes=message_bytes,
        comments=False,  # the media type decides whether comments delimit messages
        keep_lines=True,
    )


_known_options_of = lru_cache(_options_of)  # creating them takes as long as reading a small message


def _refused(message: str) -> ProtocolError:
    return ProtocolError(message, status=415, hint=f"send one of {', '.join(ACCEPTED)}")


# --- appending ------------------------------------------------------------------------------------
# Appends groups of messages of one publisher, in order, up to the first rejected one.
#
# For WebSockets, and for logs that are acknowledged while they are sent. No HTTP here.

# Groups items that wait for earlier ones to be stored, so that they are stored together.
#
# A commit takes as long for one message as for many. A publisher that does not wait for each answer therefore gets
# all messages that arrived meanwhile into one commit. No messages, no store and no HTTP here.

T = TypeVar("T")


class Groups(Generic[T]):
    """A queue whose reader takes all waiting items.

    At most `most` items wait; no more are accepted once they have `most_bytes`.

    >>> async def three_items():
    ...     groups = Groups[int](10)
    ...     for item in (1, 2, 3):
    ...         await groups.put(item)
    ...     groups.end()
    ...     return await groups.take(), await groups.take()
    >>> asyncio.run(three_items())
    ([1, 2, 3], [])
    """

    def __init__(self, most: int, most_bytes: int = 1 << 20) -> None:
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0
        self._waiting: list[T] = []
        self._error: Exception | None = None
        self._ended = False
        self._changed, self._taken = asyncio.Event(), asyncio.Event()

    async def put(self, item: T, size: int = 0) -> None:
        """Adds an item with its size in bytes; waits while the queue is full."""
        while len(self._waiting) >= self._most or self._bytes >= self._most_bytes:
            self._taken.clear()
            await self._taken.wait()
        self._waiting.append(item)
        self._bytes += size
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """Accepts no more items; raises an error after the waiting ones."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    async def take(self) -> list[T]:
        """Returns all waiting items, at least one; empty: the queue has ended."""
        while not self._waiting:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return []
            self._changed.clear()
            await self._changed.wait()
        taken, self._waiting, self._bytes = self._waiting, [], 0
        self._taken.set()
        return taken


@asynccontextmanager
async def filling(
    groups: Groups[T],
    fill: Coroutine[Any, Any, None],
    end: Coroutine[Any, Any, ConstructMessagesError],
) -> AsyncIterator[None]:
    """Fills groups in a task until the block ends, or until a publisher must end, for the reason that `end` returns.

    What was put into the groups before is still taken; then `take` raises the reason.
    """

    async def stop() -> None:
        groups.end(await end)
        filler.cancel()

    filler = asyncio.create_task(fill)
    stopping = asyncio.create_task(stop())
    try:
        yield
    finally:
        for task in (filler, stopping):
            task.cancel()
        await asyncio.gather(filler, stopping, return_exceptions=True)
    if not filler.cancelled() and (fault := filler.exception()) is not None:
        raise fault  # otherwise the end of what was read would look like the end of everything


# --- appending ------------------------------------------------------------------------------------


class Appended(NamedTuple):
    """The result of appending a group: for each processed message, whether it conforms to the shapes; the sequences of
    those that were appended now, which belong to the last ones that conform; and why the next message was rejected.
    """

    places: Sequence[bool]
    sequences: range
    refused: ConstructMessagesError | None


class Appender:
    """Appends the messages of one publisher.

    `own` is that of `StreamStore.append`. `key` is the idempotency key of their log, of which the first `after`
    messages were acknowledged before. `count` is the number of the last processed message.
    """

    def __init__(
        self,
        store: StreamStore,
        shapes: StreamShapes,
        stream: str,
        own: str | None,
        record: StreamRecord,
        *,
        key: str | None = None,
        after: int = 0,
    ) -> None:
        self._store, self._shapes, self._stream, self.own = store, shapes, stream, own
        self._record, self._key, self.count = record, key, after

    async def append(self, messages: Sequence[Message]) -> Appended:
        """Appends messages durably, up to the first rejected one."""
        kept, places, refused = await self._conforming(messages)
        sequences = range(0)
        try:
            if self._key is not None and places:
                last = self.count + len(places)
                numbers = [number for number, fits in enumerate(places, self.count + 1) if fits]
                part = LogPart(self._key, self.count, last, numbers)
                sequences = await self._store.aappend_part(self._stream, kept, part, own=self.own)
            elif kept:
                sequences = await self._store.aappend_all(self._stream, kept, own=self.own)
        except ConstructMessagesError as error:
            return Appended((), range(0), error)
        self.count += len(places)
        self._record.published += len(sequences)
        self._record.last = sequences[-1] if sequences else self._record.last
        self._record.observer(self._record)
        return Appended(places, sequences, refused)

    async def _conforming(
        self, messages: Sequence[Message]
    ) -> tuple[Sequence[Message], list[bool], ConstructMessagesError | None]:
        """Returns the messages that conform, for each processed message whether it conforms, and the error of the
        next one.
        """
        if not self._shapes.has(self._stream):
            return messages, [True] * len(messages), None
        kept: list[Message] = []
        places: list[bool] = []
        for number, message in enumerate(messages, self.count + 1):
            key = None if self._key is None else f"{self._key}/{number}"
            try:
                found = await self._shapes.conforming(
                    self._stream, [message], key=key, own=self.own
                )
            except ConstructMessagesError as error:
                return kept, places, error
            kept += found
            places.append(bool(found))
        return kept, places, None


# --- intake ---------------------------------------------------------------------------------------
# Receives messages over a WebSocket: each frame is one, and is answered when it is stored durably.
#
# RDF Messages, section 3 (WebSocket); RFC 6455.

_WAITING_FRAMES: Final = 1000  # frames that are read before earlier ones are stored


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
    """Reads the messages of a body while it arrives; `hold` counts the bytes of waiting ones."""

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
        """Returns all waiting messages, at least one; empty: the log has ended."""
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

    `end` returns why the publisher must end, once it must: messages that were read until then are stored.
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
        socket = ServerSocket(
            protocols=tuple(SUBPROTOCOLS),
            timeout=CLOSE_SECONDS,
            heartbeat=self._settings.heartbeat_seconds,
            max_msg_size=self._settings.message_bytes,
        )
        with self._bounds.following(), self._bounds.holding() as hold:
            try:
                await socket.prepare(request)
                record.format = protocol = socket.ws_protocol or N_QUADS.subprotocol
                content_type = SUBPROTOCOLS[protocol].document_type
                own = _own_token(body_type_of(content_type))
                appender = Appender(self._store, self._shapes, name, own, record)
                frames = Groups[bytes](_WAITING_FRAMES)
                end = end_of_publishing(self._stopping, permit)
                async with filling(frames, _read_frames(socket, frames, hold), end):
                    await self._take_frames(
                        request, socket, frames, hold, appender, iris, content_type
                    )
                if socket.closed:
                    drop_unread(request)
            except ClientLeft:
                reset(request)
                raise
            except ConnectionError as error:
                raise ClientLeft("left") from error
            except ConstructMessagesError as error:
                # later frames are not accepted; without an error of the client, it may come back
                if self._stopping.is_set():
                    await close(request, socket, WSCloseCode.GOING_AWAY, "the server stops")
                else:
                    await refuse(request, socket, error)
        return socket

    async def _take_frames(
        self,
        request: web.Request,
        socket: web.WebSocketResponse,
        frames: Groups[bytes],
        hold: Holding,
        appender: Appender,
        iris: StreamIris,
        content_type: str,
    ) -> None:
        """Publishes frames, those together that came while earlier ones were stored, and answers in their order."""
        base, answer_of = iris.element(appender.own or ""), published_text(iris)
        while group := await frames.take():
            messages, refused = await self._documents(content_type, group, base)
            appended = await appender.append(messages)
            hold.release(sum(map(len, group)))
            numbers = iter(appended.sequences)
            answers = [answer_of(next(numbers)) if fits else _INVALID for fits in appended.places]
            if answers and not socket.closed:
                sent = b"".join([frame(text.encode(), text=True) for text in answers])
                await write_frames(request, socket, sent, self._settings.idle_seconds)
            if (refusal := appended.refused or refused) is not None:
                raise refusal

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
        """Returns the stream to publish to, and the permission."""
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

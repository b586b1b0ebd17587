"""The gRPC service: authorization, dispatch to methods, logging and metrics. It has its own port.

Jelly 1.1, gRPC streaming protocol; grpc.health.v1 (the method Check).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, nullcontext
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.frames import FrameWriter
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.service import (
    PUBLISH,
    RECEIVED,
    SUBSCRIBE,
    FrameReader,
    RdfStreamSubscribe,
    metadata_fields,
    negotiated,
    refused_options,
)
from construct_messages.rdf.errors import (
    ConstructMessagesError,
    LimitExceeded,
    ProtocolError,
    SourceError,
    UnsupportedByFormat,
    UsageError,
)
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import CallMetadata, FrameMetadata, Parameter
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Permit
from construct_messages.server.http.endpoint import Observe
from construct_messages.server.http.request_log import reason_of, request_id
from construct_messages.server.http.sending import ClientLeft
from construct_messages.server.streams.addresses import ROOT
from construct_messages.server.streams.bounds import CLOSE_SECONDS, StreamLimits
from construct_messages.server.streams.grpc.calls import CallServer, ServerCall
from construct_messages.server.streams.push import Live
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import InThread, end_of_publishing, idempotency_key
from construct_messages.server.streams.selection import (
    Selection,
    select,
    selected,
    sequence_parameter,
)
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.sparql.client.grpc import (
    FRAME_BYTES,
    GZIP,
    IDENTITY,
    PIECE_BYTES,
    GrpcStatus,
    MessageReader,
    framed,
    status_of,
)
from construct_messages.sparql.client.tls import server_tls_context
from construct_messages.streams.element import Element, messages_of
from construct_messages.streams.store import StreamStore

# --- frames ---------------------------------------------------------------------------------------
# Serializes elements as consecutive Jelly frames, in the messages of a call. No connection here.

_METADATA_VERSION: Final = 2
_SEQUENCE, _TIME = (
    tuple(metadata_fields({name: bytes(size)})[: -size or None] for size in range(20))
    for name in FrameMetadata
)
"""The bytes before the digits of a number, by the number of digits."""


class ElementFrames:
    """Writes the elements of a stream for one subscriber, and keeps its lookup tables.

    Args:
        options: the options of the Jelly stream.
        coding: the coding of the messages.
        most: the maximal size of a frame, in bytes.
    """

    def __init__(self, options: JellyOptions, coding: str, most: int) -> None:
        self._options, self._coding, self._most = options, coding, most
        self._writer = FrameWriter(options, {})
        self._has_metadata = (options.version or 0) >= _METADATA_VERSION

    def pieces(self, page: Sequence[Element]) -> Iterator[tuple[bytes, int]]:
        """Yields groups of frames of elements, with the number of elements.

        Raises:
            UsageError: the options of the stream cannot carry the next element; earlier ones were yielded.
            LimitExceeded: its frame would be too large.
        """
        held: list[bytes] = []
        size = 0
        try:
            for element, message in zip(page, messages_of(page), strict=True):
                frame = self._writer.write(message)
                if self._has_metadata:
                    frame = _metadata(element) + frame
                if len(frame) > self._most:
                    raise LimitExceeded(
                        f"element {element.sequence} is a frame of {len(frame)} bytes, where {self._most} are allowed",
                        hint="allow larger frames by rdf-stream-frame-bytes, if your client takes them; or read on "
                        f"after {element.sequence}",
                    )
                held.append(framed(frame, self._coding))
                size += len(held[-1])
                if size > PIECE_BYTES:
                    yield b"".join(held), len(held)
                    held, size = [], 0
        except (UnsupportedByFormat, LimitExceeded) as error:
            if held:
                yield b"".join(held), len(held)
            raise self._refused(element, error) from error
        if held:
            yield b"".join(held), len(held)

    def _refused(
        self, element: Element, error: UnsupportedByFormat | LimitExceeded
    ) -> UsageError | LimitExceeded:
        if isinstance(error, LimitExceeded):
            return error
        # without the prefix with the number of the message in this answer
        reason = error.message.partition(": ")[2]
        return refused_options(f"element {element.sequence}: {reason}", self._options)


def _metadata(element: Element) -> bytes:
    sequence, time = b"%d" % element.sequence, b"%d" % element.microseconds
    return _SEQUENCE[len(sequence)] + sequence + _TIME[len(time)] + time


# --- subscribing ----------------------------------------------------------------------------------
# SubscribeRdf: sends the elements of a stream from a position on, as frames.
#
# Jelly 1.1, gRPC streaming protocol, "Subscribing to a stream". The start position and the metadata of frames are
# extensions of this package: see `rdf/wire.py`.

_REQUEST_BYTES: Final = 1 << 16
_PARAMETERS: Final = {
    CallMetadata.AFTER: Parameter.AFTER,
    CallMetadata.LAST: Parameter.LAST,
    CallMetadata.SINCE: Parameter.SINCE,
}


class Subscribing:
    """Answers subscribers.

    Args:
        settings: the limits.
        store: the store of the streams.
        bounds: the maximal number of subscribers.
        live: new elements.
        in_thread: calls a function in a thread, so that it does not block the event loop.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        live: Live,
        in_thread: InThread,
    ) -> None:
        self._settings, self._store, self._bounds = settings, store, bounds
        self._live, self._in_thread = live, in_thread

    async def answer(self, call: ServerCall, record: StreamRecord) -> None:
        """Sends the elements of a stream until they end, the client leaves, or the server stops.

        Raises:
            UsageError, ProtocolError: an invalid request (INVALID_ARGUMENT), or none in time (DEADLINE_EXCEEDED).
            NotFound: the stream does not exist (NOT_FOUND).
            SourceError: too many followers, or the server stops (UNAVAILABLE).
            LimitExceeded: a frame that is too large (RESOURCE_EXHAUSTED).
        """
        record.action = "subscribe"
        try:
            async with asyncio.timeout(self._settings.idle_seconds):
                request = await call.messages(_REQUEST_BYTES).read()
        except TimeoutError as error:
            raise UsageError("the request did not arrive in time", status=408) from error
        if request is None:
            raise ProtocolError("the request has no message", hint="send an RdfStreamSubscribe")
        topic, requested = RdfStreamSubscribe.decode(request)
        record.stream = topic[:128]
        state = self._store.state(topic)
        options = negotiated(requested)
        follow, most = _follow(call), _frame_bytes(call, self._settings.message_bytes)
        with self._bounds.following(topic):
            selection = await self._selection(call, topic)
            coding = GZIP if call.compresses else IDENTITY
            record.format = f"jelly {coding}"
            await call.begin(
                {
                    CallMetadata.AFTER: str(selection.after),
                    CallMetadata.IDENTITY: str(state.id),
                },
                coding,
            )
            record.status = 200
            pages = (
                self._live.pages(topic, selection.after)
                if follow
                else selected(self._store, topic, selection)
            )
            await self._send(call, pages, ElementFrames(options, coding, most), record)
        if follow:
            raise SourceError(
                "the server stops", status=503, hint="come back after the last element"
            )

    async def _selection(self, call: ServerCall, stream: str) -> Selection:
        """Returns the selection of elements to send: the requested range, or new ones."""
        parameters: dict[str, str] = {
            parameter: call.headers[name]
            for name, parameter in _PARAMETERS.items()
            if name in call.headers
        }
        state = self._store.state(stream)
        if not parameters:
            return Selection(state.last if _follow(call) else state.first - 1, state.last)
        if Parameter.AFTER in parameters:
            after = sequence_parameter(CallMetadata.AFTER, parameters[Parameter.AFTER])
            self._store.check_position(stream, after)
        return await self._in_thread(select, self._store, state, parameters)

    async def _send(
        self,
        call: ServerCall,
        pages: AsyncGenerator[list[Element]],
        frames: ElementFrames,
        record: StreamRecord,
    ) -> None:
        async with aclosing(pages):
            async for page in pages:
                for piece, count in frames.pieces(page):
                    record.sent(len(piece))
                    try:
                        async with asyncio.timeout(self._settings.idle_seconds):
                            await call.send(piece)
                    except TimeoutError:
                        raise ClientLeft("idle") from None
                    record.deliver(count)


def _follow(call: ServerCall) -> bool:
    value = call.headers.get(CallMetadata.FOLLOW, "true").lower()
    if value not in ("true", "false"):
        raise ProtocolError(f"{CallMetadata.FOLLOW}: {value[:40]} is neither true nor false")
    return value == "true"


def _frame_bytes(call: ServerCall, most: int) -> int:
    """Returns the maximal size of a frame: the default of clients, or the client's own limit up to twice `most`.

    A frame can be a little larger than the published message, as it may contain entries of lookup tables.
    """
    value = call.headers.get(CallMetadata.FRAME_BYTES)
    if value is None:
        return FRAME_BYTES
    return min(sequence_parameter(CallMetadata.FRAME_BYTES, value), max(FRAME_BYTES, 2 * most))


# --- publishing -----------------------------------------------------------------------------------
# PublishRdf: the frames of a client become elements of a stream, durably before the reply.
#
# Jelly 1.1, gRPC streaming protocol, "Publishing a stream". With an idempotency key, either all messages of a call
# are appended or none, and only once for repeated calls. Without a key, they are appended as they arrive.

T = TypeVar("T")

_LARGE: Final = 1 << 16  # size of a frame that takes long to read, in bytes
_WAITING: Final = 1000  # frames that are read before earlier ones are stored
_WAITING_BYTES: Final = 1 << 20


class Publishing:
    """Accepts the frames of publishers.

    Args:
        settings: the limits.
        store: the store of the streams.
        bounds: the limits of memory.
        in_thread: calls a function in a thread, so that it does not block the event loop.
        admit: rejects calls that may not publish to a stream; None: to any.
        shapes: the shapes of the streams.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        in_thread: InThread,
        admit: Callable[[ServerCall, str | None], Awaitable[Permit]],
        shapes: StreamShapes,
    ) -> None:
        self._settings, self._store, self._bounds = settings, store, bounds
        self._in_thread, self._admit, self._shapes = in_thread, admit, shapes
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Accepts no further frames. Accepted ones are stored, and their publishers get the number."""
        self._stopping.set()

    async def answer(self, call: ServerCall, record: StreamRecord) -> None:
        """Appends the messages of a call.

        Raises:
            ProtocolError, LogError: the frames are not valid Jelly (INVALID_ARGUMENT).
            NotFound: the stream does not exist (NOT_FOUND).
            Forbidden: the client may not publish (UNAUTHENTICATED, PERMISSION_DENIED).
            SourceError: the server is busy, or stops (UNAVAILABLE).
            UsageError: the call names no stream for too long (DEADLINE_EXCEEDED).
            LimitExceeded: a frame, or the data under one key, is too large (RESOURCE_EXHAUSTED).
            Conflict: other messages were published under the key (ALREADY_EXISTS).
        """
        record.action = "publish"
        topic, key = call.headers.get(CallMetadata.TOPIC), idempotency_key(call)
        if topic is not None:
            permit = await self._admitted(call, topic, record)
        else:
            permit = await self._admit(call, None)
        most = self._settings.message_bytes
        frames = _Frames(call.messages(most), most, self._in_thread)
        with self._bounds.following():
            if topic is None:
                await self._until_end(self._begin(frames), permit)
                topic = frames.topic
                permit = await self._admitted(call, topic, record)
            first = await self._until_end(frames.read(), permit)
            await (
                self._append(topic, first, frames, record, permit)
                if key is None
                else self._append_once(topic, key, first, frames, record, permit)
            )
        await call.begin({})
        record.status = 200
        await call.send(framed(RECEIVED))

    async def _begin(self, frames: _Frames) -> None:
        """Reads the first frame, which names the stream. A call whose stream is known may wait for any time."""
        seconds = self._settings.idle_seconds
        try:
            async with asyncio.timeout(seconds):
                await frames.begin()
        except TimeoutError:
            raise UsageError(
                f"the call named no stream within {seconds:g} seconds",
                status=408,
                hint=f"send the first frame at once, or name the stream by the metadata {CallMetadata.TOPIC}",
            ) from None

    async def _admitted(self, call: ServerCall, topic: str, record: StreamRecord) -> Permit:
        record.stream = topic[:128]
        if not topic:
            raise ProtocolError(
                "stream_name is empty, and names no stream",
                hint=f"name the stream in the options of the first frame, or by the metadata {CallMetadata.TOPIC}",
            )
        return await self._admit(call, topic)

    async def _append(
        self,
        topic: str,
        first: Message | None,
        frames: _Frames,
        record: StreamRecord,
        permit: Permit,
    ) -> None:
        """Appends messages as they arrive, including those before an error."""

        async def store(messages: list[Message]) -> None:
            kept = await self._shapes.conforming(topic, messages)
            if kept:
                sequences = await self._store.aappend_all(topic, kept)
                record.published += len(sequences)
                record.last = sequences[-1]

        async def read() -> None:
            message = first
            while message is not None:
                await appender.add(message, frames.size)
                message = await frames.read()

        async with _Appender(store) as appender:
            await self._until_end(read(), permit)

    async def _append_once(
        self,
        topic: str,
        key: str,
        first: Message | None,
        frames: _Frames,
        record: StreamRecord,
        permit: Permit,
    ) -> None:
        """Appends all messages together, unless they were appended under the key before."""
        messages: list[Message] = []
        settings, size = self._settings, 0

        async def read() -> None:
            nonlocal size
            message = first
            while message is not None:
                messages.append(message)
                size += frames.size
                hold(frames.size)
                if len(messages) > settings.batch_messages or size > settings.body_bytes:
                    raise LimitExceeded(
                        f"more than {settings.batch_messages} messages, or {settings.body_bytes} bytes, under one key",
                        hint="publish them in several calls, each with a key of its own",
                    )
                message = await frames.read()

        with self._bounds.holding() as hold:
            await self._until_end(read(), permit)
            kept = await self._shapes.conforming(topic, messages, key=key)
            if kept:
                sequences = await self._store.aappend_all(topic, kept, key=key)
                record.published, record.last = len(sequences), sequences[-1]

    async def _until_end(self, doing: Coroutine[Any, Any, T], permit: Permit) -> T:
        """Awaits an operation that depends on the client.

        Raises:
            SourceError, Forbidden: the server stops meanwhile, or the token expires.
        """
        task = asyncio.ensure_future(doing)
        end = asyncio.ensure_future(end_of_publishing(self._stopping, permit))
        try:
            await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise end.result()
        finally:
            for each in (task, end):
                each.cancel()
            await asyncio.gather(task, end, return_exceptions=True)


class _Frames:
    """The messages in the frames of a call.

    Args:
        messages: the messages of the call.
        most: the maximal size of a message, in bytes.
        in_thread: calls a function in a thread, so that it does not block the event loop.

    Attributes:
        count: the number of received frames.
        size: the size of the last one, in bytes.
    """

    def __init__(self, messages: MessageReader, most: int, in_thread: InThread) -> None:
        self._messages, self._in_thread = messages, in_thread
        self._reader = FrameReader(DecoderOptions(message_bytes=most))
        self.count = self.size = 0
        self._first: Message | None = None  # read by `begin`

    @property
    def topic(self) -> str:
        """The name of the stream in the options; empty: they have no name."""
        return self._reader.options.stream_name if self._reader.options else ""

    async def begin(self) -> None:
        """Reads the first frame."""
        frame = await self._frame()
        if frame is not None:
            self._first = await self._message(frame)

    async def read(self) -> Message | None:
        """Returns the next message; None: the call has ended."""
        message, self._first = self._first, None
        while message is None:
            frame = await self._frame()
            if frame is None:
                return None
            message = await self._message(frame)
        return message

    async def _frame(self) -> bytes | None:
        messages = self._messages
        frame = messages.ready.popleft() if messages.ready else await messages.read()
        if frame is None and not self.count:
            raise ProtocolError(
                "the call has no frame",
                hint="send at least one, with the options in its first row",
            )
        return frame

    async def _message(self, frame: bytes) -> Message | None:
        self.count, self.size = self.count + 1, len(frame)
        message = (
            await self._in_thread(self._reader.read, frame)
            if len(frame) > _LARGE
            else self._reader.read(frame)
        )
        if message is not None:
            message.checked = True  # decoders only return RDF
        return message


class _Appender:
    """Appends messages in groups: those that arrive while earlier ones are being stored; an async context manager.

    At its end, all messages are stored, also if the block raises an error, but not if it is cancelled.

    Args:
        store: stores messages durably.
    """

    def __init__(self, store: Callable[[list[Message]], Awaitable[None]]) -> None:
        self._store = store
        self._waiting: list[Message] = []
        self._bytes = 0
        self._changed, self._taken = asyncio.Event(), asyncio.Event()
        self._ended = False

    async def add(self, message: Message, size: int) -> None:
        """Adds a message; waits while the queue is full.

        Raises:
            ConstructMessagesError: earlier messages could not be stored.
        """
        self._waiting.append(message)
        self._bytes += size
        self._changed.set()
        while (
            len(self._waiting) >= _WAITING or self._bytes >= _WAITING_BYTES
        ) and not self._task.done():
            self._taken.clear()
            await self._taken.wait()
        if self._task.done():
            self._task.result()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            return
        self._ended = True
        self._changed.set()
        await self._task

    async def _run(self) -> None:
        try:
            while self._waiting or not self._ended:
                await self._changed.wait()
                self._changed.clear()
                while self._waiting:
                    messages, self._waiting, self._bytes = self._waiting, [], 0
                    self._taken.set()
                    await self._store(messages)
        finally:
            self._taken.set()


# --- service --------------------------------------------------------------------------------------

_HEALTH: Final = "/grpc.health.v1.Health/Check"
_SERVING: Final = b"\x08\x01"  # HealthCheckResponse

_LOGGER: Final = logging.getLogger(__name__)


class RdfStreamService:
    """The streams of a store by gRPC.

    Args:
        settings: the limits, and the address.
        store: the store of the streams.
        bounds: the limits of concurrency and memory.
        in_thread: calls a function in a thread, so that it does not block the event loop.
        admit_reader: rejects calls that may not read.
        admit_publisher: rejects calls that may not publish to a stream; None: to any.
        shapes: the shapes of the streams.

    Attributes:
        address: the host and the port, once the service accepts calls.
    """

    address = ""

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        in_thread: InThread,
        admit_reader: Callable[[ServerCall], Awaitable[Permit]],
        admit_publisher: Callable[[ServerCall, str | None], Awaitable[Permit]],
        shapes: StreamShapes,
    ) -> None:
        self._settings, self._admit_reader = settings, admit_reader
        self._live = Live(store, settings.heartbeat_seconds)
        self._subscribing = Subscribing(
            settings, store, bounds=bounds, live=self._live, in_thread=in_thread
        )
        self._publishing = Publishing(
            settings,
            store,
            bounds=bounds,
            in_thread=in_thread,
            admit=admit_publisher,
            shapes=shapes,
        )
        self._calls = CallServer(
            self._answer,
            ping_seconds=settings.heartbeat_seconds,
            silent_seconds=settings.idle_seconds,
        )

    async def start(self, observe: Observe) -> None:
        """Starts to accept calls.

        Args:
            observe: logs and counts the answers.

        Raises:
            OSError: the server cannot listen at the address.
            UsageError: the certificate or its key cannot be read.
        """
        self._observe = observe
        settings, tls = self._settings, None
        if settings.grpc_certificate is not None and settings.grpc_key is not None:
            tls = server_tls_context(settings.grpc_certificate, settings.grpc_key)
            tls.set_alpn_protocols(["h2"])
        found, self._port = await self._calls.listen(*settings.grpc_address, tls)
        self.address = f"[{found}]:{self._port}" if ":" in found else f"{found}:{self._port}"
        _LOGGER.info("listening for gRPC on %s", self.address)

    def url(self, host: str | None) -> str | None:
        """Returns the URL of the service, without a topic.

        Args:
            host: the host name by which a client reaches this server over HTTP without a proxy; None: through a proxy.

        Returns:
            The URL, or None if it is unknown.
        """
        if self._settings.grpc_url is not None or host is None:
            return self._settings.grpc_url
        name = f"[{host}]" if ":" in host else host
        return f"grpc{'' if self._settings.grpc_key is None else 's'}://{name}:{self._port}"

    def stop(self) -> None:
        """Ends all endless calls; clients resume after their last element."""
        self._calls.stop()
        self._publishing.stop()
        self._live.stop()

    async def aclose(self) -> None:
        """Closes all connections."""
        self.stop()
        await self._calls.aclose(CLOSE_SECONDS)

    async def _answer(self, call: ServerCall) -> None:
        if call.path == _HEALTH:
            await call.begin({})
            await call.send(framed(_SERVING))
            await call.end(GrpcStatus.OK)
            return
        method = call.path if call.path in (SUBSCRIBE, PUBLISH) else ""
        record = StreamRecord(
            id=request_id(call.headers.get("x-request-id")),
            method=method.rpartition("/")[2],
            endpoint=ROOT,
            client=call.client,
        )
        with self._observe(record):
            await self._observed(call, method, record)

    async def _observed(self, call: ServerCall, method: str, record: StreamRecord) -> None:
        try:
            async with nullcontext() if call.seconds is None else asyncio.timeout(call.seconds):
                await self._method(call, method, record)
            await call.end(GrpcStatus.OK, metadata=_stored(record))
        except ClientLeft:
            record.aborted("idle")
            call.abort()
        except TimeoutError:
            record.client_left()
            await call.end(GrpcStatus.DEADLINE_EXCEEDED, "the time that the client set is over")
        except ConstructMessagesError as error:
            if record.status is None:
                record.refused(error.status)
            elif not self._stops(error):
                record.aborted(reason_of(error))
            text = str(error).partition("\n")[0]  # with the number of the message, without the hint
            await call.end(status_of(error.status), text, _refusal(error, record))
        except asyncio.CancelledError as error:
            if error.args:  # of this package
                record.aborted("shutdown")
                await call.end(GrpcStatus.UNAVAILABLE, "the server stops")
            else:
                record.client_left()
            raise
        except Exception:  # an unexpected error, for which the client still needs a status
            _LOGGER.exception("fault")
            record.aborted("internal")
            await call.end(GrpcStatus.INTERNAL, "the server failed")

    async def _method(self, call: ServerCall, method: str, record: StreamRecord) -> None:
        if method == SUBSCRIBE:
            async with (await self._admit_reader(call)).limit():
                await self._subscribing.answer(call, record)
        elif method == PUBLISH:
            await self._publishing.answer(call, record)
        else:
            raise ConstructMessagesError(
                f"there is no method {call.path[:200]}",
                status=501,
                hint=f"call {SUBSCRIBE} or {PUBLISH}",
            )

    @staticmethod
    def _stops(error: ConstructMessagesError) -> bool:
        return isinstance(error, SourceError) and error.status == 503


def _stored(record: StreamRecord) -> Mapping[str, str]:
    """Returns the sequence of the last stored element, if any."""
    return {} if record.last is None else {CallMetadata.LAST: str(record.last)}


def _refusal(error: ConstructMessagesError, record: StreamRecord) -> Mapping[str, str]:
    metadata = dict(_stored(record))
    if error.hint is not None:
        metadata[CallMetadata.HINT] = error.hint
    if isinstance(error, SourceError) and error.retry_after is not None:
        metadata[CallMetadata.RETRY_AFTER] = str(math.ceil(1000 * error.retry_after))
    return metadata

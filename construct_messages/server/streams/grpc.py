"""The gRPC service: authorization, dispatch to methods, logging and metrics. It has its own port.

Jelly 1.1, gRPC streaming protocol; grpc.health.v1 (the method Check).
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, nullcontext, suppress
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from grpclib.const import Status
from grpclib.metadata import Deadline, encode_grpc_message
from grpclib.protocol import AbstractHandler, Stream
from h2.config import H2Configuration
from h2.exceptions import H2Error
from multidict import CIMultiDict

from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    ProtocolError,
    SourceError,
    UnsupportedByFormat,
    UsageError,
)
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.encoder import FrameWriter
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
from construct_messages.rdf.formats.media_types import GRPC
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import CallMetadata, FrameMetadata, Parameter
from construct_messages.server.http.access import Permit
from construct_messages.server.http.endpoint import Observe
from construct_messages.server.http.request_log import reason_of, request_id
from construct_messages.server.http.sending import ClientLeft
from construct_messages.server.streams.following import Live
from construct_messages.server.streams.publishing import Appender, Groups, filling
from construct_messages.server.streams.requests import (
    Selection,
    StreamRecord,
    end_of_publishing,
    idempotency_key,
    select,
    selected,
    sequence_parameter,
)
from construct_messages.server.streams.resources import ROOT
from construct_messages.server.streams.served import CLOSE_SECONDS, InThread, ServedStreams
from construct_messages.sparql.client.grpc import (
    CODINGS,
    FRAME_BYTES,
    GZIP,
    IDENTITY,
    PIECE_BYTES,
    GrpcProtocol,
    MessageReader,
    ReceiveBuffer,
    configuration,
    framed,
    status_of,
)
from construct_messages.sparql.client.tls import server_tls_context
from construct_messages.streams.element import Element, messages_of

# --- calls ----------------------------------------------------------------------------------------
# The server side of gRPC calls: metadata, messages, and one status at the end. No service here.
#
# grpclib implements HTTP/2: connections, flow control, pings. `sparql/client/grpc.py` implements messages: grpclib
# neither decompresses them nor limits their size, and sends each one separately. docs/decisions/087-grpc.md
#
# gRPC over HTTP/2, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.

_WINDOW: Final = 1 << 20
"""The maximal number of received bytes that wait in memory, per connection."""

Answer: TypeAlias = "Callable[[ServerCall], Awaitable[None]]"


class ServerCall:
    """A call that is being answered."""

    def __init__(
        self, stream: Stream, inbox: ReceiveBuffer, headers: list[tuple[str, str]]
    ) -> None:
        self._stream, self._inbox = stream, inbox
        self.headers = CIMultiDict(headers)
        self.path = self.headers.get(":path", "")
        address = stream.connection.get_peer().addr()
        self.client: str | None = address[0] if address else None
        self.deadline: Deadline | None = None
        self._began = self._ended = False

    @property
    def seconds(self) -> float | None:
        """The remaining time until the client's deadline, in seconds; None: no deadline."""
        return None if self.deadline is None else self.deadline.time_remaining()

    @property
    def compresses(self) -> bool:
        """Whether the client compresses its own messages with gzip, and accepts compressed ones."""
        return self.headers.get("grpc-encoding") == GZIP and GZIP in self.headers.get(
            "grpc-accept-encoding", ""
        )

    def messages(self, most: int) -> MessageReader:
        """Returns a reader of the messages of the request, of up to `most` bytes each."""
        coding = self.headers.get("grpc-encoding", IDENTITY)
        return MessageReader(self._inbox.take, coding, most, "the client")

    async def begin(self, metadata: Mapping[str, str], coding: str = IDENTITY) -> None:
        """Sends the headers of the answer, with its metadata and the coding of its compressed messages."""
        self._began = True
        headers = [(":status", "200"), ("content-type", f"{GRPC}+proto")]
        headers += [("grpc-encoding", coding), ("grpc-accept-encoding", CODINGS)]
        await self._stream.send_headers([*headers, *metadata.items()])

    async def send(self, data: bytes) -> None:
        """Sends messages with their prefixes, see `framed`. Waits until the client accepts them."""
        await self._stream.send_data(data)

    async def end(
        self, status: Status, text: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        """Ends the call with a status; only the first status is sent."""
        if self._ended:
            return
        self._ended = True
        headers = [("grpc-status", str(status.value))]
        if not self._began:
            headers = [
                (":status", "200"),
                ("content-type", f"{GRPC}+proto"),
                ("grpc-accept-encoding", CODINGS),
                *headers,
            ]
        if text:
            headers.append(("grpc-message", encode_grpc_message(text)))
        headers += ((name, encode_grpc_message(value)) for name, value in (metadata or {}).items())
        with suppress(H2Error):  # the client has left
            await self._stream.send_headers(headers, end_stream=True)
            if self._stream.closable:
                self._stream.reset_nowait()  # data that it still sends is not read

    def abort(self) -> None:
        """Resets the stream, without a status."""
        self._ended = True
        with suppress(H2Error):
            if self._stream.closable:
                self._stream.reset_nowait()


class CallServer:
    """Accepts HTTP/2 connections, and answers each call in its own task, which is cancelled when the client leaves.

    A connection whose client does not answer a ping for `silent_seconds` is closed.
    """

    def __init__(self, answer: Answer, *, ping_seconds: float, silent_seconds: float) -> None:
        self._answer = answer
        self.configuration = configuration(
            ping_seconds,
            silent_seconds,
            http2_connection_window_size=_WINDOW,
            http2_stream_window_size=_WINDOW,
        ).__for_server__()
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections: set[_Connection] = set()  # which add and remove themselves
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> tuple[str, int]:
        """Starts to accept connections; returns the host and the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, ssl=tls)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    def stop(self) -> None:
        """Accepts no further connections and calls."""
        if self._server is not None:
            self._server.close()

    async def aclose(self, seconds: float) -> None:
        """Waits for calls up to a time, cancels the remaining ones, and closes the connections."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in (rest := set(self._tasks)):
            task.cancel("the server stops")
        if rest:
            await asyncio.wait(rest)
        for connection in list(self.connections):
            connection.processor.close("the server stops")
        if self._server is not None:
            await self._server.wait_closed()

    def accept(
        self, stream: Stream, headers: list[tuple[str, str]], release: Callable[[], None]
    ) -> asyncio.Task[None]:
        """Answers a call in a task."""
        assert stream.id is not None  # the call has begun
        inbox = ReceiveBuffer(partial(stream.connection.ack, stream.id))
        stream.buffer = inbox  # type: ignore[assignment] # it has the methods that are used
        call = ServerCall(stream, inbox, headers)
        task = asyncio.create_task(self._run(stream, call, headers, release))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(
        self,
        stream: Stream,
        call: ServerCall,
        headers: list[tuple[str, str]],
        release: Callable[[], None],
    ) -> None:
        try:
            is_grpc = call.headers.get("content-type", "").startswith(GRPC)
            if call.headers.get(":method") != "POST" or not is_grpc:
                await stream.send_headers([(":status", "415")], end_stream=True)
                return
            if self._server is None or not self._server.is_serving():
                await call.end(Status.UNAVAILABLE, "the server stops")
                return
            try:
                call.deadline = Deadline.from_headers(headers)
            except ValueError:
                await call.end(Status.INVALID_ARGUMENT, "grpc-timeout is no time")
                return
            await self._answer(call)
        except H2Error:
            pass  # the client has left
        finally:
            release()


class _Connection(GrpcProtocol, AbstractHandler):
    """A connection of a client, and its calls."""

    def __init__(self, server: CallServer) -> None:
        self._server = server
        self._calls: dict[Stream, asyncio.Task[None]] = {}
        http = H2Configuration(client_side=False, header_encoding="ascii")
        super().__init__(self, server.configuration, http, PIECE_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.connections.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.connections.discard(self)
        super().connection_lost(exc)

    def accept(self, stream: Stream, headers: Any, release_stream: Callable[[], None]) -> None:
        """Starts to answer a call."""
        task = self._calls[stream] = self._server.accept(stream, headers, release_stream)
        task.add_done_callback(lambda _: self._calls.pop(stream, None))

    def cancel(self, stream: Stream) -> None:
        """Cancels a call that the client has reset."""
        if (task := self._calls.get(stream)) is not None:
            task.cancel()

    def close(self) -> None:
        """Cancels all calls after the connection is lost."""
        for task in list(self._calls.values()):
            task.cancel()


# --- frames ---------------------------------------------------------------------------------------
# Serializes elements as consecutive Jelly frames, in the messages of a call. No connection here.

_METADATA_VERSION: Final = 2
_SEQUENCE, _TIME = (
    tuple(metadata_fields({name: bytes(size)})[: -size or None] for size in range(20))
    for name in FrameMetadata
)
"""The bytes before the digits of a number, by the number of digits."""


class ElementFrames:
    """Writes the elements of a stream for one subscriber, and keeps its lookup tables. `most` is the maximal size of a
    frame, in bytes.
    """

    def __init__(self, options: JellyOptions, coding: str, most: int) -> None:
        self._options, self._coding, self._most = options, coding, most
        self._writer = FrameWriter(options, {})
        self._has_metadata = (options.version or 0) >= _METADATA_VERSION

    def pieces(self, page: Sequence[Element]) -> Iterator[tuple[bytes, int]]:
        """Yields groups of frames of elements, with the number of elements. Before an error, it yields the elements
        before that one.
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
    """Answers subscribers."""

    def __init__(self, served: ServedStreams, live: Live) -> None:
        self._settings, self._store, self._bounds = served.settings, served.store, served.limits
        self._live, self._in_thread = live, served.in_thread

    async def answer(self, call: ServerCall, record: StreamRecord) -> None:
        """Sends the elements of a stream until they end, the client leaves, or the server stops."""
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
    """Accepts the frames of publishers."""

    def __init__(self, served: ServedStreams) -> None:
        self._settings, self._store, self._bounds = served.settings, served.store, served.limits
        self._in_thread, self._admit, self._shapes = (
            served.in_thread,
            served.admit_publisher,
            served.shapes,
        )
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Accepts no further frames. Accepted ones are stored, and their publishers get the number."""
        self._stopping.set()

    async def answer(self, call: ServerCall, record: StreamRecord) -> None:
        """Appends the messages of a call."""
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
            if key is None:
                await self._append(topic, frames, record, permit)
            else:
                await self._append_once(topic, key, frames, record, permit)
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
        self, topic: str, frames: _Frames, record: StreamRecord, permit: Permit
    ) -> None:
        """Appends messages as they arrive, including those before an error."""
        groups = Groups[Message](_WAITING, _WAITING_BYTES)
        appender = Appender(self._store, self._shapes, topic, None, record)
        end = end_of_publishing(self._stopping, permit)
        async with filling(groups, _put_all(frames, groups), end):
            while messages := await groups.take():
                appended = await appender.append(messages)
                if appended.refused is not None:
                    raise appended.refused

    async def _append_once(
        self,
        topic: str,
        key: str,
        frames: _Frames,
        record: StreamRecord,
        permit: Permit,
    ) -> None:
        """Appends all messages together, unless they were appended under the key before."""
        messages: list[Message] = []
        settings, size = self._settings, 0

        async def read() -> None:
            nonlocal size
            while (message := await frames.read()) is not None:
                messages.append(message)
                size += frames.size
                hold(frames.size)
                if len(messages) > settings.batch_messages or size > settings.body_bytes:
                    raise LimitExceeded(
                        f"more than {settings.batch_messages} messages, or {settings.body_bytes} bytes, under one key",
                        hint="publish them in several calls, each with another key",
                    )

        with self._bounds.holding() as hold:
            await self._until_end(read(), permit)
            kept = await self._shapes.conforming(topic, messages, key=key)
            if kept:
                sequences = await self._store.aappend_all(topic, kept, key=key)
                record.published, record.last = len(sequences), sequences[-1]

    async def _until_end(self, doing: Coroutine[Any, Any, T], permit: Permit) -> T:
        """Awaits an operation that depends on the client."""
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
    """The messages in the frames of a call; `count` frames came, and the last one has `size` bytes."""

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


async def _put_all(frames: _Frames, groups: Groups[Message]) -> None:
    try:
        while (message := await frames.read()) is not None:
            await groups.put(message, frames.size)
    except ConstructMessagesError as error:
        groups.end(error)
    finally:
        groups.end()


# --- service --------------------------------------------------------------------------------------

_HEALTH: Final = "/grpc.health.v1.Health/Check"
_SERVING: Final = b"\x08\x01"  # HealthCheckResponse

_LOGGER: Final = logging.getLogger(__name__)


class RdfStreamService:
    """The streams of a store by gRPC; `address` is the host and the port, once it accepts calls."""

    address = ""

    def __init__(self, served: ServedStreams) -> None:
        self._settings, self._admit_reader = served.settings, served.admit_reader
        self._live = Live(served.store, served.settings.heartbeat_seconds)
        self._subscribing = Subscribing(served, self._live)
        self._publishing = Publishing(served)
        self._calls = CallServer(
            self._answer,
            ping_seconds=served.settings.heartbeat_seconds,
            silent_seconds=served.settings.idle_seconds,
        )

    async def start(self, observe: Observe) -> None:
        """Starts to accept calls."""
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

        `host` is the name by which a client reaches this server over HTTP; None: through a proxy.
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
            await call.end(Status.OK)
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
            await call.end(Status.OK, metadata=_stored(record))
        except ClientLeft:
            record.aborted("idle")
            call.abort()
        except TimeoutError:
            record.client_left()
            await call.end(Status.DEADLINE_EXCEEDED, "the time that the client set is over")
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
                await call.end(Status.UNAVAILABLE, "the server stops")
            else:
                record.client_left()
            raise
        except Exception:  # an unexpected error, for which the client still needs a status
            _LOGGER.exception("fault")
            record.aborted("internal")
            await call.end(Status.INTERNAL, "the server failed")

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

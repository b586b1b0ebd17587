"""PublishRdf: the frames of a client become elements of a stream, durably before the reply.

Jelly 1.1, gRPC streaming protocol, "Publishing a stream". With an idempotency key, either all messages of a call are
appended or none, and only once for repeated calls. Without a key, they are appended as they arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.frame_stream import FrameReader
from construct_messages.logs.jelly.service import RECEIVED
from construct_messages.rdf.errors import LimitExceeded, ProtocolError, UsageError
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import CallMetadata
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Permit
from construct_messages.server.streams.bounds import StreamLimits
from construct_messages.server.streams.grpc.calls import ServerCall
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import InThread, end_of_publishing, idempotency_key
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.sparql.client.grpc.framing import MessageReader, framed
from construct_messages.streams.store import StreamStore

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

"""The streams of a server, and what all views of them share: limits, shapes, access, IRIs and threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, Final, ParamSpec, Protocol, Self, TypeVar

from aiohttp import web

from construct_messages.construct.shapes import Shapes, dead_letter, without_report
from construct_messages.construct.shapes.report import REPORT_GRAPH
from construct_messages.construct.shapes.validation import does_not_conform
from construct_messages.continuous.registered.process import QueryLimits
from construct_messages.continuous.registered.query import Watched
from construct_messages.continuous.registered.registry import Registry
from construct_messages.errors import Forbidden, SourceError
from construct_messages.rdf.message import Message
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Access, Permit, Requesting, Right
from construct_messages.server.http.body import read_body
from construct_messages.server.http.endpoint import Admission
from construct_messages.server.streams.resources import ROOT, StreamIris
from construct_messages.streams.element import Element, messages_of
from construct_messages.streams.store import StreamStore

# --- bounds ---------------------------------------------------------------------------------------
# Limits of a server of streams: concurrent answers, publications, bytes of their bodies, followers.
#
# Beyond a limit, a request waits for its turn, or is rejected with 503 and Retry-After. No streams and no store here.

_RETRY_SECONDS: Final = 5.0

CLOSE_SECONDS: Final = 0.5
"""The maximal time for closing a WebSocket, and for a follower to end when the server stops."""


class StreamLimits:
    """The limits of one endpoint.

    Readers and publishers have separate places, so slow readers do not block publishers.
    """

    def __init__(self, settings: StreamsSettings) -> None:
        self._settings = settings
        self.reading, self._publishing = (
            Admission(
                settings.concurrency,
                queue_seconds=settings.queue_seconds,
                queue_length=settings.queue_length,
            )
            for _ in range(2)
        )
        # the stream of resumable followers
        self._following: dict[asyncio.Task[Any], str | None] = {}
        self.body_bytes = 0

    @property
    def followers(self) -> int:
        """The current number of followers and of publishers over WebSockets."""
        return len(self._following)

    def followers_of(self, stream: str) -> int:
        """Returns the current number of followers of a stream."""
        return list(self._following.values()).count(stream)

    def publishing(
        self, request: web.Request, permit: Permit
    ) -> AbstractAsyncContextManager[bytes]:
        """Reads the body of an unsafe request, which counts until the block ends.

        A request takes a slot when its body has arrived, so a slow body does not block others. 503: no slot is free, or
        the bodies of all requests together are too large. 401: the token expired meanwhile.
        """
        return _Body(self, self._settings, self._publishing, request, permit)

    def holding(self) -> Holding:
        """Counts bytes in memory until the block ends; call the result with the size of each piece. 503: all bodies
        together are too large.
        """
        return Holding(self, self._settings.bodies_bytes)

    @contextmanager
    def following(self, stream: str | None = None) -> Iterator[None]:
        """Counts the running task as a follower of a stream, which may be disconnected, as it resumes after its last
        element; None: as a publisher. 503: there are too many.
        """
        if self.followers >= self._settings.followers:
            raise _busy(f"{self.followers} follow already")
        task = asyncio.current_task()
        assert task is not None  # a handler runs in a task
        self._following[task] = stream
        try:
            yield
        finally:
            del self._following[task]

    async def end_followers(self) -> None:
        """Waits until all resumable followers have ended, and cancels slow ones, whose clients do not read."""
        ending = [task for task, stream in self._following.items() if stream is not None]
        if ending:
            _, late = await asyncio.wait(ending, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel("the server stops")


class _Body(AbstractAsyncContextManager[bytes]):
    __slots__ = ("_hold", "_permit", "_request", "_settings", "_slots")

    def __init__(
        self,
        limits: StreamLimits,
        settings: StreamsSettings,
        slots: Admission,
        request: web.Request,
        permit: Permit,
    ) -> None:
        self._hold, self._settings, self._slots = limits.holding(), settings, slots
        self._request, self._permit = request, permit

    async def __aenter__(self) -> bytes:
        most, seconds = self._settings.body_bytes, self._settings.idle_seconds
        try:
            async with self._permit.limit():
                body = await read_body(self._request, most, seconds, self._hold)
                await self._slots.acquire()
        except BaseException:
            self._hold.release()
            raise
        return body

    async def __aexit__(self, *_: object) -> None:
        self._slots.release()
        self._hold.release()


class Holding:
    __slots__ = ("_bounds", "_held", "_most")

    def __init__(self, bounds: StreamLimits, most: int) -> None:
        self._bounds, self._most, self._held = bounds, most, 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, size: int) -> None:
        """Counts the bytes of a piece."""
        if self._bounds.body_bytes + size > self._most:
            raise _busy("the bodies of other requests take all the memory that there is for them")
        self._bounds.body_bytes += size
        self._held += size

    def release(self, size: int | None = None) -> None:
        """Subtracts a number of bytes; None: all."""
        size = self._held if size is None else size
        self._bounds.body_bytes -= size
        self._held -= size

    def __exit__(self, *_: object) -> None:
        self.release()


def _busy(message: str) -> SourceError:
    return SourceError(message, status=503, hint="try again later", retry_after=_RETRY_SECONDS)


# --- shapes ---------------------------------------------------------------------------------------
# The shapes of streams: validates published messages before they are stored.
#
# A message that does not conform is rejected with its report, or goes to a stream of dead letters. The settings are
# those of `[streams.NAME]`. If the messages of a request are stored together, one such message rejects all of them.

T = TypeVar("T")
P = ParamSpec("P")

_REPORT: Final = REPORT_GRAPH.encode()
_MANY: Final = 8  # validating this many quads takes as long as starting a thread


class InThread(Protocol):
    """Calls a function in a thread."""

    def __call__(
        self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> Awaitable[T]: ...


class StreamShapes:
    """The shapes of the streams of a store."""

    def __init__(self, settings: StreamsSettings, store: StreamStore, in_thread: InThread) -> None:
        self._store, self._in_thread = store, in_thread
        self._shapes: Mapping[str, Shapes] = {
            name: Shapes(
                stream.shapes, data=stream.shapes_data, allow_warnings=stream.allow_warnings
            )
            for name, stream in settings.bridges.items()
            if stream.shapes
        }
        self._invalid_to = {name: each.invalid_to for name, each in settings.bridges.items()}

    def has(self, stream: str) -> bool:
        """Returns whether a stream has shapes."""
        return stream in self._shapes

    async def conforming(
        self,
        stream: str,
        messages: Sequence[Message],
        *,
        key: str | None = None,
        own: str | None = None,
    ) -> Sequence[Message]:
        """Returns the messages that a stream accepts, after storing dead letters. `DoesNotConform`: one does not
        conform, and the stream has no stream of dead letters.
        """
        if stream not in self._shapes:
            return messages
        kept, letters = await self.sorted(stream, messages)
        await self._store_letters(stream, letters, key, own)
        return kept

    async def sorted(
        self, stream: str, messages: Sequence[Message]
    ) -> tuple[Sequence[Message], Sequence[Message]]:
        """Returns the messages that a stream accepts, and the dead letters of the others; stores nothing."""
        shapes = self._shapes.get(stream)
        if shapes is None:
            return messages, ()
        sort = partial(_sorted, shapes, messages, collects=self._invalid_to[stream] is not None)
        kept, letters = sort() if sum(map(len, messages)) <= _MANY else await self._in_thread(sort)
        return kept, [letter for _, letter in letters]

    async def conforming_elements(
        self, stream: str, elements: Sequence[Element]
    ) -> Sequence[Element]:
        """Returns the elements that a stream accepts from its bridge; see `conforming`."""
        shapes = self._shapes.get(stream)
        if shapes is None:
            return elements
        sort = partial(
            _sorted, shapes, messages_of(elements), collects=self._invalid_to[stream] is not None
        )
        kept, letters = await self._in_thread(sort)
        await self._store_letters(stream, [letter for _, letter in letters], None, None)
        left_out = {place for place, _ in letters}
        rest = (each for place, each in enumerate(elements) if place not in left_out)
        return [
            each._replace(nquads=message.lines.removesuffix(b"\n"))
            if _REPORT in each.nquads
            else each
            for each, message in zip(rest, kept, strict=True)
        ]

    async def _store_letters(
        self, stream: str, letters: Sequence[Message], key: str | None, own: str | None
    ) -> None:
        place = self._invalid_to[stream] if letters else None
        if place is not None:
            await self._store.acreate(place, exist_ok=True)
            # several streams may share a dead letter stream, and their publishers may choose the same keys
            place_key = None if key is None else f"{stream}/{key}"
            await self._store.aappend_all(place, letters, key=place_key, own=own)


def _sorted(
    shapes: Shapes, messages: Sequence[Message], *, collects: bool
) -> tuple[list[Message], list[tuple[int, Message]]]:
    """Returns the messages that conform, and the dead letters of the others with their places."""
    kept: list[Message] = []
    letters: list[tuple[int, Message]] = []
    for place, message in enumerate(map(without_report, messages)):
        report = shapes.validate(message, number=place + 1)
        if report.conforms:
            kept.append(message)
        elif collects:
            letters.append((place, dead_letter(message, report)))
        else:
            raise does_not_conform(report)
    return kept, letters


# --- served ---------------------------------------------------------------------------------------


class ServedStreams:
    """The streams of one store.

    The executor has threads for reading large bodies and rows, which would block the event loop. `public_url` is the
    base of IRIs; None: the URL of each request.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        executor: Executor,
        access: Access,
        watched: Mapping[str, Watched],
        public_url: str | None = None,
    ) -> None:
        self.settings, self.store, self.access = settings, store, access
        self._executor, self._public_url = executor, public_url
        self.limits = StreamLimits(settings)
        self.shapes = StreamShapes(settings, store, self.in_thread)
        self.query_limits = QueryLimits(
            settings.query_seconds, settings.query_bytes, settings.query_output_bytes
        )
        self.registry = Registry(store, self.query_limits, watched)
        # returns the URL of the gRPC service for a host name; None: it is not started
        self.grpc_url: Callable[[str | None], str | None] | None = None

    def is_output(self, name: str) -> bool:
        """Whether a stream is the output of a registered query, which alone publishes to it."""
        return self.registry.get(name) is not None

    # --- IRIs ---

    def base(self, request: web.Request) -> str:
        """The URL of this server, without a final slash."""
        return self._public_url or f"{request.scheme}://{request.host}"

    def iris(self, request: web.Request, name: str) -> StreamIris:
        """The IRIs of a stream."""
        service = None
        if self.grpc_url is not None:
            service = self.grpc_url(None if self._public_url else request.url.host)
        return StreamIris(f"{self.base(request)}{ROOT}/{name}", service)

    # --- access ---

    async def admit(self, request: Requesting, right: Right, policy: str | None = None) -> Permit:
        """Rejects clients without a right; see `Authorizer.admit`."""
        return await self.access.of(right, policy).admit(request, right)

    async def admit_reader(self, request: Requesting) -> Permit:
        """Rejects clients that may not read."""
        return await self.admit(request, "read")

    async def admit_publisher(self, request: Requesting, name: str | None) -> Permit:
        """Rejects clients that may not publish to a stream; None: to any."""
        if name is None:
            return await self._admit_some_publisher(request)
        state = self.store.state(name)
        # its description may allow it, but only the query publishes to its output
        policy = "deny" if self.is_output(name) else state.description.publish
        return await self.admit(request, "publish", policy)

    async def _admit_some_publisher(self, request: Requesting) -> Permit:
        """Rejects clients that may publish to no stream."""
        refusals: list[Forbidden] = []
        for policy in {None, *(state.description.publish for state in self.store.streams())}:
            try:
                return await self.admit(request, "publish", policy)
            except Forbidden as refused:
                refusals.append(refused)
        # with other credentials it may be allowed
        raise next((each for each in refusals if each.status == 401), refusals[0])

    # --- threads ---

    async def in_thread(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Calls a function in a thread, for the event loop to serve others meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, partial(call, *args, **options)
        )

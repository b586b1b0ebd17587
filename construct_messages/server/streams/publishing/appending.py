"""Appends groups of messages of one publisher, in order, up to the first rejected one.

For WebSockets, and for logs that are acknowledged while they are sent. No HTTP here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar

from construct_messages.rdf.errors import ConstructMessagesError
from construct_messages.rdf.message import Message
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.streams.publication import LogPart
from construct_messages.streams.store import StreamStore

# --- groups ---------------------------------------------------------------------------------------
# Groups items that wait for earlier ones to be stored, so that they are stored together.
#
# A commit takes as long for one message as for many. A publisher that does not wait for each answer therefore gets
# all messages that arrived meanwhile into one commit. No messages, no store and no HTTP here.

T = TypeVar("T")


class Groups(Generic[T]):
    """A queue whose reader takes all waiting items.

    Args:
        most: the maximal number of waiting items.
        most_bytes: the size of waiting items, in bytes, at which no more are accepted.

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
    """The result of appending a group.

    Args:
        places: for each processed message, whether it conforms to the shapes of the stream.
        sequences: the sequences of those that were appended now; they belong to the last ones that conform.
        refused: why the next message was rejected; None: all were processed.
    """

    places: Sequence[bool]
    sequences: range
    refused: ConstructMessagesError | None


class Appender:
    """Appends the messages of one publisher.

    Args:
        store: the store of the streams.
        shapes: the shapes of the streams.
        stream: the name of the stream.
        own: see `StreamStore.append`.
        record: counts them.
        key: the idempotency key of their log; None: it has none.
        after: the number of messages to leave out at the start, because they were acknowledged before.

    Attributes:
        count: the number of the last processed message.
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
        self._store, self._shapes, self._stream, self._own = store, shapes, stream, own
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
                sequences = await self._store.aappend_part(self._stream, kept, part, own=self._own)
            elif kept:
                sequences = await self._store.aappend_all(self._stream, kept, own=self._own)
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
                    self._stream, [message], key=key, own=self._own
                )
            except ConstructMessagesError as error:
                return kept, places, error
            kept += found
            places.append(bool(found))
        return kept, places, None

"""Groups the items of a source into batches: all that wait when the previous batch was delivered. No I/O.

A slow source is therefore not delayed until a batch is full, and a fast one is read while a batch is delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from construct_messages.feeds.state import Checkpoint
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.labels import are_unique, may_have_labels
from construct_messages.rdf.message import Message, of_lines
from construct_messages.rdf.terms import Term
from construct_messages.streams.element import Element

BATCH: Final = 1000  # the default maximal number of messages in a batch

_BATCH_BYTES: Final = 4 << 20
_SLICE: Final = 100
"""The number of items after which other tasks run, such as the delivery of the previous batch."""

_STOP_SECONDS: Final = 10.0  # the maximal time for a batch in flight when its delivery is cancelled

T = TypeVar("T")

Position: TypeAlias = Checkpoint | None  # the position of a source; None: it has none


class SourceBatch(NamedTuple, Generic[T]):
    """Items that are delivered together."""

    items: list[T]  # the items, at least one
    position: Position  # the position of the source after the last of them


def check_batch(most: int) -> None:
    """Raises `UsageError` for an option `batch` of less than 1."""
    if most < 1:
        raise UsageError(f"batch={most} is less than 1")


async def batches(
    items: AsyncGenerator[T],
    position: Callable[[], Position],
    size: Callable[[T], int],
    most: int = BATCH,
) -> AsyncGenerator[SourceBatch[T] | None]:
    """Collects items while the consumer works; raises their errors after yielding the items before.

    Yields None whenever no item waits. `items` are read in a separate task, which closes them. `position` returns that
    of the source after the last item; called once per batch, as it may take long. `size` is in bytes.
    """
    gathering = _Gathering(position, size, most)
    reading = asyncio.ensure_future(gathering.read(items))
    reading.add_done_callback(lambda _: gathering.arrived.set())
    try:
        while True:
            if not (gathering.held or reading.done()):
                yield None
            while not gathering.arrived.is_set():
                await gathering.arrived.wait()
            if batch := gathering.take(ended=reading.done()):
                yield batch
            elif reading.done():
                reading.result()  # raises its error
                return
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class _Gathering(Generic[T]):
    def __init__(
        self, position: Callable[[], Position], size: Callable[[T], int], most: int
    ) -> None:
        self._position, self._size, self._most = position, size, most
        self.held: list[T] = []
        self._bytes = 0
        self.arrived, self._room = asyncio.Event(), asyncio.Event()

    async def read(self, items: AsyncGenerator[T]) -> None:
        async with aclosing(items):
            async for item in items:
                self.held.append(item)
                self._bytes += self._size(item)
                self.arrived.set()
                count = len(self.held)
                if count >= self._most or self._bytes >= _BATCH_BYTES:
                    self._room.clear()
                    await self._room.wait()
                    await asyncio.sleep(0)  # the delivery of the batch begins before the next item
                elif count % _SLICE == 0:
                    self.arrived.clear()  # the batch is not taken: the next item may wait already
                    await asyncio.sleep(0)
                    self.arrived.set()

    def take(self, *, ended: bool) -> SourceBatch[T] | None:
        """Takes the waiting items; None: there are none."""
        held, self.held, self._bytes = self.held, [], 0
        if not ended:
            self.arrived.clear()
        self._room.set()
        return SourceBatch(held, self._position()) if held else None


def labelled(elements: Sequence[Element], labels: Callable[[Term], Term]) -> list[Message]:
    """Returns the messages of elements, with new labels for their blank nodes; unique labels are unchanged.

    The elements are in canonical form, as a transport yields them.
    """
    return [
        element.message.map_blanks(labels)
        if may_have_labels(element.nquads) and not are_unique(element.nquads.decode())
        else of_lines(element.nquads + b"\n" if element.nquads else b"")
        for element in elements
    ]


def size_of(element: Element) -> int:
    """Returns the size of an element, for `batches`."""
    return len(element.nquads)


async def shielded(work: Coroutine[object, object, None]) -> None:
    """Delivers a batch; if cancelled, waits for the batch, so that it need not be sent again."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_STOP_SECONDS)
        task.cancel()
        await asyncio.wait([task])
        raise

"""Bridges of a store: feed a stream from a transport, or forward it to one, until they are stopped.

All failures are retried, with increasing pauses. `BridgeStatus` is the state of a bridge that servers show. The
position of a source is stored in the transaction of the elements before it, so each is stored once if the source can be
read again from a position.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from construct_messages.feeds.delivery.batches import BATCH, batches, shielded, size_of
from construct_messages.feeds.delivery.targets import Target
from construct_messages.feeds.forwarding import Forwarder
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Start, Transport
from construct_messages.rdf.errors import ConstructMessagesError, SourceError
from construct_messages.streams import Element, Publication, StreamStore

_PAUSE_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 60.0


@dataclass
class BridgeStatus:
    """The status of a bridge."""

    is_connected: bool = False  # whether it reads or writes; otherwise it is retried
    # the reason of the last failure, if it was not connected since; None: no failure
    error: str | None = None
    elements: int = 0  # the number of transferred elements since the start
    in_flight: int = 0  # the number of elements that are being stored or written
    # the time of the last one, on the monotonic clock; None: there was none
    last: float | None = None
    removed: int = 0  # the number of elements that retention removed before they were forwarded
    # returns the number of waiting elements on this side of the bridge; None: unknown
    behind: Callable[[], int | None] = lambda: None

    @property
    def idle_seconds(self) -> float | None:
        """The seconds since the last element; None: there was none."""
        return None if self.last is None else time.monotonic() - self.last

    def connected(self) -> None:
        """Records that the other side was reached."""
        self.is_connected, self.error = True, None

    def begin(self, count: int) -> None:
        """Records that a batch is about to be stored or written."""
        self.in_flight = count

    def remove(self, count: int) -> None:
        """Records the number of elements that cannot be forwarded any more."""
        self.removed += count

    def end(self) -> None:
        """Records that the batch was stored or written."""
        self.elements += self.in_flight
        self.in_flight, self.last = 0, time.monotonic()
        self.connected()


class Bridge:
    """Work that is repeated after each failure, until it is stopped; it updates the status, and `report` is told each
    failure.
    """

    def __init__(
        self,
        work: Callable[[], Awaitable[None]],
        status: BridgeStatus,
        report: Callable[[str], object],
    ) -> None:
        self._work, self.status, self._report = work, status, report
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts, in a task."""
        self._task = asyncio.create_task(self._keep_working())

    async def stop(self) -> None:
        """Stops after the batch in flight, which is acknowledged."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _keep_working(self) -> None:
        pause = _PAUSE_SECONDS
        while True:
            before = self.status.elements
            try:
                await self._work()
                reason = "it ended"
            except ConstructMessagesError as error:
                reason = str(error).replace("\n  hint: ", "; ")
            except Exception as error:  # noqa: BLE001 - a defect of a bridge must not end the server, and is shown
                reason = f"{type(error).__name__}: {error}"
            self.status.is_connected, self.status.error, self.status.in_flight = False, reason, 0
            self._report(reason)
            if self.status.elements > before:
                pause = _PAUSE_SECONDS
            # so that bridges do not retry at the same time
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, _MOST_SECONDS)


class Fed(msgspec.Struct, frozen=True):
    """The progress of feeding a stream."""

    stream: int  # the number of the stream in the store
    position: Checkpoint


async def feed(
    store: StreamStore,
    stream: str,
    owner: str,
    url: str,
    opening: AbstractAsyncContextManager[Transport],
    start: Start,
    status: BridgeStatus,
    *,
    batch: int = BATCH,
    conforming: Callable[[Sequence[Element]], Awaitable[Sequence[Element]]] | None = None,
) -> None:
    """Appends the elements of a source to a stream, until a failure.

    The stream is created if it does not exist. `start` is for a source that was not read before. `conforming` returns
    the elements that the stream accepts, or raises `DoesNotConform`; None: all of them.
    """
    state = await store.acreate(stream, exist_ok=True)
    kept = (await store.asaved_state(owner)).get(url)
    known = None if kept is None else msgspec.json.decode(kept, type=Fed)
    if known is not None and known.stream == state.id:
        start = Start(checkpoint=known.position)

    async def keep(position: Checkpoint | None, elements: Sequence[Element] = ()) -> None:
        value = {} if position is None else {url: msgspec.json.encode(Fed(state.id, position))}
        if conforming is not None and elements:
            elements = await conforming(elements)
        messages = [Publication(element.nquads, element.generated) for element in elements]
        await store.acommit(owner, value, stream=stream, messages=messages)

    async with opening as transport, aclosing(transport.read(start, follow=True)) as elements:
        transport.check_resumable()  # because its position is stored
        await anext(elements)  # None: the start position is known
        await keep(transport.position)
        if start.checkpoint is not None:  # it is stored, but may not be acknowledged to the source
            await transport.acknowledge(start.checkpoint)
        status.behind = lambda: transport.behind
        status.connected()

        async def take(items: list[Element], position: Checkpoint | None) -> None:
            status.begin(len(items))
            await keep(position, items)
            if position is not None:
                await transport.acknowledge(position)
            status.end()

        rest = cast(AsyncGenerator[Element], elements)  # None only comes first
        gathered = batches(rest, lambda: transport.position, size_of, batch)
        async with aclosing(gathered) as waiting:
            async for found in waiting:
                if found is not None:
                    await shielded(take(found.items, found.position))
    raise SourceError(f"{url} ended")


async def forward_on(
    store: StreamStore,
    stream: str,
    owner: str,
    target: Target,
    status: BridgeStatus,
    *,
    from_first: bool = True,
    batch: int = BATCH,
) -> None:
    """Forwards the elements of a stream, which is created if it does not exist, until a failure; see `Forwarder`."""
    await store.acreate(stream, exist_ok=True)
    forwarder = Forwarder(
        store,
        stream,
        owner,
        target,
        batch=batch,
        from_first=from_first,
        on_begin=status.begin,
        on_end=status.end,
        on_removed=status.remove,
    )
    status.behind = lambda: forwarder.behind
    async with aclosing(target):
        await target.open()
        status.connected()
        await forwarder.run(follow=True)

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

from construct_messages.errors import ConstructMessagesError, SourceError
from construct_messages.feeds.delivery import BATCH, Target, batches, labelled, shielded, size_of
from construct_messages.feeds.state import BatchKey, Checkpoint
from construct_messages.feeds.transport import Start, Transport
from construct_messages.rdf.labels import Labels
from construct_messages.streams import Element, Publication, StreamStore

# --- forwarding -----------------------------------------------------------------------------------
# Forwards the elements of a store's stream to a remote stream, a log file, or an output; each element once.
#
# Before a batch is sent, the store records its elements, its key, and the size of the target. After a kill, the
# elements are therefore sent again under the same key, and the target recognises them.
# docs/decisions/049-state-of-continuous-queries.md


class Forwarded(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of a target with a stream."""

    stream: int  # the number of the stream in the store
    key: str  # the beginning of the keys of batches
    last: int  # the sequence of the last element that the target acknowledged
    # the sequence of the last element of the batch that was sent after it; 0: there is none
    in_flight: int = 0
    # the size of the target before this batch, in bytes; None: it is not a file
    size: int | None = None
    after: int = 0  # the sequence before the first element that is sent under the key


class Forwarder:
    """Forwards a stream to a target, which the caller closes; the store is opened for writing.

    `trims`: elements are removed after the target has acknowledged them. `from_first`: a new target gets the existing
    elements. `on_begin` gets the number of elements of a batch before it is sent, `on_end` is called when it is
    acknowledged, `on_removed` gets the number of elements that retention removed before they were sent. `forwarded` is
    None until the progress is known.
    """

    def __init__(
        self,
        store: StreamStore,
        stream: str,
        owner: str,
        target: Target,
        *,
        trims: bool = False,
        batch: int = BATCH,
        from_first: bool = True,
        on_begin: Callable[[int], object] = lambda _: None,
        on_end: Callable[[], object] = lambda: None,
        on_removed: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._store, self._stream, self._owner, self._target = store, stream, owner, target
        self._trims, self._batch, self._from_first = trims, batch, from_first
        self._on_begin, self._on_end, self._on_removed = on_begin, on_end, on_removed
        self.forwarded: Forwarded | None = None

    @property
    def behind(self) -> int | None:
        """The number of elements that the target does not have yet; None: unknown yet."""
        if self.forwarded is None:
            return None
        return self._store.state(self._stream).last - self.forwarded.last

    async def run(self, *, follow: bool) -> int:
        """Forwards the existing elements, with `follow` also new ones, and returns their number; see `Target.send` for
        errors.
        """
        count = 0
        forwarded = await self._begin()
        async with aclosing(self._batches(forwarded, follow=follow)) as batches:
            async for batch in batches:
                await shielded(self._send(batch))
                count += len(batch)
        return count

    async def _begin(self) -> Forwarded:
        """Reads the progress of the target, as far as it is valid for this stream and its retained elements."""
        state = self._store.state(self._stream)
        kept = (await self._store.asaved_state(self._owner)).get(self._target.name)
        last = state.first - 1 if self._from_first else state.last
        begun = Forwarded(state.id, BatchKey.new_writer(), last, after=last)
        known = begun if kept is None else msgspec.json.decode(kept, type=Forwarded)
        if known.stream != state.id:
            known = begun
        if known.last < state.first - 1:
            if not self._trims:
                self._on_removed(state.first - 1 - known.last)
            # the batch in flight has changed, so its key is not used again
            known = msgspec.structs.replace(begun, last=state.first - 1, after=state.first - 1)
        self.forwarded = known
        return known

    async def _batches(
        self, forwarded: Forwarded, *, follow: bool
    ) -> AsyncGenerator[list[Element]]:
        """Yields the batch in flight unchanged, and then the remaining elements."""
        last = forwarded.last
        if forwarded.in_flight:
            held: list[Element] = []
            async with aclosing(self._store.aread(self._stream, last)) as elements:
                async for element in elements:
                    if element.sequence > forwarded.in_flight:
                        break
                    held.append(element)
            yield held
            last = forwarded.in_flight
        async with aclosing(self._store.apages(self._stream, last, follow=follow)) as pages:
            async for page in pages:
                for first in range(0, len(page), self._batch):
                    yield page[first : first + self._batch]

    async def _send(self, batch: list[Element]) -> None:
        forwarded = self.forwarded
        assert forwarded is not None
        last = batch[-1].sequence
        if forwarded.in_flight != last:
            forwarded = msgspec.structs.replace(forwarded, in_flight=last, size=self._target.size)
            await self._keep(forwarded)
        self._on_begin(len(batch))
        key = f"{forwarded.key}-{batch[0].sequence - forwarded.after}"
        messages = labelled(batch, Labels.at(forwarded.key).in_log)
        await self._target.send(messages, key, forwarded.size)
        self.forwarded = msgspec.structs.replace(forwarded, last=last, in_flight=0, size=None)
        self._on_end()
        if self._trims:
            await self._store.atrim(self._stream, last)
        if last >= self._store.state(self._stream).last:  # otherwise the next batch removes them
            await self._keep(self.forwarded)

    async def _keep(self, forwarded: Forwarded) -> None:
        value = msgspec.json.encode(forwarded)
        await self._store.acommit(self._owner, {self._target.name: value})


async def forward(store: StreamStore, stream: str, owner: str, target: Target) -> int:
    """Sends the waiting elements of a stream, and removes them; returns their number. See `Forwarder`."""
    return await Forwarder(store, stream, owner, target, trims=True).run(follow=False)


# --- bridging -------------------------------------------------------------------------------------

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

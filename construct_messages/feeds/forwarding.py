"""Forwards the elements of a store's stream to a remote stream, a log file, or an output; each element once.

Before a batch is sent, the store records its elements, its key, and the size of the target. After a kill, the elements
are therefore sent again under the same key, and the target recognises them.
docs/decisions/049-state-of-continuous-queries.md
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from construct_messages.feeds.delivery.batches import BATCH, labelled, shielded
from construct_messages.feeds.delivery.targets import Target
from construct_messages.feeds.state import BatchKey
from construct_messages.rdf.labels import Labels
from construct_messages.streams import Element, StreamStore


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

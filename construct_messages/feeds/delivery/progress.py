"""Delivers batches to a target, and stores the acknowledged position and the batch in flight in a state file.

The state is written before each batch, with the batch, its key, and the position of its source after it. After a kill,
the same messages are therefore sent under the same key, and reading continues after them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TypeVar

import msgspec

from construct_messages.feeds.delivery.batches import Position, SourceBatch, shielded
from construct_messages.feeds.delivery.targets import Target
from construct_messages.feeds.state import Checkpoint, Sent, write_state
from construct_messages.logs.lines.texts import to_messages, to_text
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

T = TypeVar("T")


class Delivery:
    """Delivers batches to a target, which the caller opens and closes.

    `sent`: the acknowledged position, and the batch in flight; `state`: the file for it, or None. `labels` returns the
    label of a blank node, by its label in the source. `on_batch` gets the number of acknowledged messages after each
    batch.
    """

    def __init__(
        self,
        target: Target,
        sent: Sent,
        state: str | os.PathLike[str] | None = None,
        on_batch: Callable[[int], object] | None = None,
    ) -> None:
        self._target, self.sent, self._state, self._on_batch = target, sent, state, on_batch
        # labels that are unique to the source: the target keeps them, so that a node is the same in all batches
        self.labels = Labels.at(sent.key).in_log
        self._saved: Sent | None = None

    async def finish(self) -> None:
        """Sends the batch that was in flight at the end of an earlier run; raises `UsageError` for a log that has
        become shorter.
        """
        before = self.sent.size
        if before is not None and (size := self._target.size or 0) < before:
            raise UsageError(
                f"{self._target.name} is shorter than it was: it had {before} bytes, and has {size}",
                hint="restore it, or remove the state, too, and begin again",
            )
        if self.sent.in_flight:
            await self._send(to_messages(self.sent.in_flight))

    async def begin(self, position: Position) -> None:
        """Stores the start position of the source."""
        self.sent = msgspec.structs.replace(self.sent, position=position)
        self._save()

    async def deliver(
        self,
        batches: AsyncIterable[SourceBatch[T] | None],
        messages: Callable[[list[T]], list[Message]],
        acknowledge: Callable[[Checkpoint], Awaitable[None]] | None = None,
    ) -> None:
        """Delivers batches, until there are no more; at the end, also after an error, the state has the acknowledged
        position.

        If cancelled, waits for the batch in flight, so that it is not sent again. `messages` returns those of a batch,
        with labels of `labels`; `acknowledge` gets the position after each batch that the target has acknowledged.
        """
        try:
            async for batch in batches:
                if batch is None:
                    self._save()
                else:
                    await shielded(
                        self._deliver(messages(batch.items), batch.position, acknowledge)
                    )
        finally:
            self._save()

    async def _deliver(
        self,
        messages: list[Message],
        position: Position,
        acknowledge: Callable[[Checkpoint], Awaitable[None]] | None,
    ) -> None:
        kept = () if self._state is None else tuple(map(to_text, messages))
        self.sent = msgspec.structs.replace(
            self.sent, in_flight=kept, size=self._target.size, position=position
        )
        if messages:
            self._save()
            await self._send(messages)
        if acknowledge is not None and position is not None:
            await acknowledge(position)

    async def _send(self, messages: list[Message]) -> None:
        sent = self.sent
        await self._target.send(messages, f"{sent.key}-{sent.acknowledged + 1}", sent.size)
        self.sent = msgspec.structs.replace(
            sent,
            acknowledged=sent.acknowledged + len(messages),
            in_flight=(),
            size=self._target.size,
        )
        if self._on_batch is not None:
            self._on_batch(self.sent.acknowledged)

    def _save(self) -> None:
        if self._state is not None and self.sent != self._saved:
            write_state(self._state, self.sent)
            self._saved = self.sent

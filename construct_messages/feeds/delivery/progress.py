"""Delivers batches to a target, and keeps in a state file what is acknowledged and what is in flight.

The state is written before each batch, and has the batch, its key, and the position of its source after it. So after a
kill the same messages are sent under the same key, and the source is read on after them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TypeVar

import msgspec

from construct_messages.feeds.delivery.batches import Batch
from construct_messages.feeds.delivery.targets import Target
from construct_messages.feeds.state import Checkpoint, Sent, write_state
from construct_messages.labels import Labels
from construct_messages.logs.lines.texts import to_messages, to_text
from construct_messages.message import Message

T = TypeVar("T")


class Delivery:
    """Delivers batches to a target.

    Args:
        target: the target; opened and closed by the caller.
        sent: what an earlier run left, or the beginning.
        state: the file of the state; None: it is not kept.

    Attributes:
        sent: what is acknowledged, and what is in flight.
        labels: returns the label of a blank node, by its label in the source.
    """

    def __init__(self, target: Target, sent: Sent, state: str | os.PathLike[str] | None) -> None:
        self._target, self.sent, self._state = target, sent, state
        # labels that no other source has: the target keeps them, so that a node is one over all batches
        self.labels = Labels.at(sent.key).in_log
        self._saved: Sent | None = None

    async def finish(self) -> None:
        """Sends the batch that was in flight when an earlier run ended."""
        if self.sent.in_flight:
            await self._send(to_messages(self.sent.in_flight))

    async def deliver(
        self,
        batches: AsyncIterable[Batch[T, Checkpoint | None] | None],
        messages: Callable[[list[T]], list[Message]],
        acknowledge: Callable[[Checkpoint], Awaitable[None]] | None = None,
    ) -> None:
        """Delivers batches, until there are no more; at the end, and before an error, the state is what is acknowledged.

        Args:
            batches: see `batches.batches`.
            messages: returns the messages of a batch, with labels of `labels`.
            acknowledge: called with the position after each batch that the target has acknowledged.

        Raises:
            SourceError, CannotWrite, UsageError: see `Target.send`; what was in flight stays in the state.
            CannotWrite: the state cannot be written.
        """
        try:
            async for batch in batches:
                if batch is None:
                    self.save()
                    continue
                made = messages(batch.items)
                self._begin(made, batch.position)
                await self._send(made)
                if acknowledge is not None and batch.position is not None:
                    await acknowledge(batch.position)
        finally:
            self.save()

    def save(self) -> None:
        """Writes the state, if it has changed.

        Raises:
            CannotWrite: it cannot be written.
        """
        if self._state is not None and self.sent != self._saved:
            write_state(self._state, self.sent)
            self._saved = self.sent

    def _begin(self, messages: list[Message], position: Checkpoint | None) -> None:
        kept = () if self._state is None else tuple(map(to_text, messages))
        self.sent = msgspec.structs.replace(
            self.sent, in_flight=kept, size=self._target.size, position=position
        )
        self.save()

    async def _send(self, messages: list[Message]) -> None:
        sent = self.sent
        await self._target.send(messages, f"{sent.key}-{sent.acknowledged + 1}", sent.size)
        self.sent = msgspec.structs.replace(
            sent, acknowledged=sent.acknowledged + len(messages), in_flight=(), size=None
        )

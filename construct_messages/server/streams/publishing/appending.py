"""Appends groups of messages of one publisher, in order, up to the first rejected one.

For WebSockets, and for logs that are acknowledged while they are sent. No HTTP here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from construct_messages.rdf.errors import ConstructMessagesError
from construct_messages.rdf.message import Message
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.streams.publication import LogPart
from construct_messages.streams.store import StreamStore


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

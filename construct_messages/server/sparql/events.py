"""The answer to a query as server-sent events: one for each message, then one for its end or its failure.

WHATWG HTML, section 9.2; w3c/sparql-query issue 323. A client reconnects when the connection ends, with the id of its
last event. Each id is therefore a position in the result, after which the next answer begins. A client that sends the
id of the final event gets 204, because the result has ended.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

from construct_messages.construct.messages import QueryMessages
from construct_messages.rdf.errors import (
    Conflict,
    ConstructMessagesError,
    LimitExceeded,
    ProtocolError,
    shown,
)
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import Event, Header
from construct_messages.server.http.event_stream import STILL_HERE, error_event, event, retry

_END: Final = "end"
_FAILED: Final = "failed"
OVER: Final = (_END, _FAILED)
"""The ids of final events: a client that sends one of them gets no further event."""

_AT_ONCE: Final = 128
"""The number of events that are created before they are sent and other tasks run."""
_DIGEST_BYTES: Final = 8
_ID: Final = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{16})")


@dataclass(frozen=True)
class ResultPosition:
    """A position in a result: after its first messages.

    Args:
        number: the number of messages.
        digest: the digest of their documents, so that a different result is detected.
    """

    number: int
    digest: str

    @classmethod
    def of(cls, id: str) -> Self:
        """Reads the id of an event.

        Raises:
            ProtocolError: it is not the id of an event of this server.

        >>> ResultPosition.of("3-00112233aabbccdd").number
        3
        """
        found = _ID.fullmatch(id)
        if found is None:
            raise ProtocolError(
                f"{Header.LAST_EVENT_ID}: {shown(id)} is no id of an event of this answer",
                hint="leave it out to get the whole result",
            )
        return cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}"


class _Written:
    """The messages of a result as events.

    Args:
        encode: returns the document of a message.
        after: the position to begin after; None: the beginning.
        message_bytes: the maximal size of a document.
    """

    def __init__(
        self,
        encode: Callable[[Message], bytes],
        after: ResultPosition | None,
        message_bytes: int | None,
    ) -> None:
        self._encode, self._after, self._message_bytes = encode, after, message_bytes
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self._number = 0

    def event(self, message: Message) -> bytes | None:
        """Returns the event of the next message; None: the client already has it.

        Raises:
            Conflict: the result up to here differs from that of the client.
            LimitExceeded: the message is too large.
        """
        document = self._encode(message)
        size = len(document)
        if self._message_bytes is not None and size > self._message_bytes:
            raise LimitExceeded(
                f"a message of {size} bytes, where {self._message_bytes} are allowed",
                hint="group less, or ask for smaller values",
            )
        self._number += 1
        self._digest.update(b"%d:%s" % (size, document))
        if self._after is None or self._number > self._after.number:
            position = ResultPosition(self._number, self._digest.hexdigest())
            return event(Event.MESSAGE, document, str(position))
        if self._number == self._after.number and self._digest.hexdigest() != self._after.digest:
            raise _changed()
        return None

    def end(self) -> bytes:
        """Returns the event after the last message.

        Raises:
            Conflict: the client has more messages than the result.
        """
        if self._after is not None and self._number < self._after.number:
            raise _changed()
        return event(Event.END, b"%d" % self._number, _END)


def _changed() -> Conflict:
    return Conflict(
        "the result is not the one that was begun: the data have changed, or came in another order",
        hint="ask for all of it again; ORDER BY sets the order",
    )


def failure(error: ConstructMessagesError) -> bytes:
    """Returns the last event of a failed answer."""
    return error_event(error, _FAILED)


async def answer_events(
    messages: QueryMessages,
    encode: Callable[[Message], bytes],
    *,
    after: ResultPosition | None,
    message_bytes: int | None,
    silent_seconds: float,
) -> AsyncGenerator[bytes]:
    """Yields the events of a result, with a comment in each pause.

    Args:
        messages: the messages; closed at the end.
        encode: returns the document of a message.
        after: the position to begin after; None: the beginning.
        message_bytes: the maximal size of a document.
        silent_seconds: the length of a pause.

    Raises:
        ConstructMessagesError: the result is incomplete; earlier events were yielded.
    """
    made: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_AT_ONCE)
    written = _Written(encode, after, message_bytes)
    # one task reads the whole result: time limits of sources belong to the task that sets them
    making = asyncio.create_task(_make(messages, written, made))
    start = retry()
    try:
        while True:
            try:
                async with asyncio.timeout(silent_seconds):
                    item = await made.get()
            except TimeoutError:
                yield start + STILL_HERE
                start = b""
                continue
            ready: list[bytes] = []
            while isinstance(item, bytes):
                ready.append(item)
                if made.empty():
                    break
                item = made.get_nowait()
            if ready:  # an error before the first event sets the status
                yield b"".join((start, *ready))
                start = b""
            if isinstance(item, Exception):
                raise item
            if item is None:
                return
    finally:
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)


async def _make(
    messages: QueryMessages, written: _Written, made: asyncio.Queue[bytes | Exception | None]
) -> None:
    number = 0
    try:
        async with messages:
            async for message in messages:
                if (next_event := written.event(message)) is not None:
                    await made.put(next_event)
                if number % _AT_ONCE == 0:  # the first event is sent before others are created
                    await asyncio.sleep(0)
                number += 1
        await made.put(written.end())
        await made.put(None)
    except Exception as error:  # noqa: BLE001 - it is raised where the events are read
        await made.put(error)

"""The answer to a query as server-sent events: one for each message, then one for its end or its failure.

WHATWG HTML, section 9.2; w3c/sparql-query issue 323. A client of events connects again when the connection ends, with
the id of the last event. So each id is a position in the result, which the answer to the next request begins after, and
a client that asks again with the id of the last event gets 204: there is no more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

from construct_messages.construct import QueryMessages
from construct_messages.errors import (
    Conflict,
    ConstructMessagesError,
    LimitExceeded,
    ProtocolError,
    shown,
)
from construct_messages.message import Message
from construct_messages.net.wire import Event, Header
from construct_messages.server.http.event_stream import STILL_HERE, error_event, event, retry

_END: Final = "end"
_FAILED: Final = "failed"
OVER: Final = (_END, _FAILED)
"""The ids of last events: a client that sends one of them gets no further event."""

_AT_ONCE: Final = 128
"""How many events are made before they are sent, and before others of the event loop have their turn."""
_DIGEST_BYTES: Final = 8
_ID: Final = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{16})")


@dataclass(frozen=True)
class ResultPosition:
    """A position in a result: after its first messages.

    Args:
        number: of messages.
        digest: of their documents, so that another result is noticed.
    """

    number: int
    digest: str

    @classmethod
    def of(cls, id: str) -> Self:
        """Reads the id of an event.

        Raises:
            ProtocolError: it is no id of an event of this server.

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
        encode: makes the document of a message.
        after: the position to begin after; None: the beginning.
        message_bytes: how large a document may be.
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
        """The event of the next message; None: the client has got it.

        Raises:
            Conflict: the result up to here is another one than the client has got.
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
        """The event after the last message.

        Raises:
            Conflict: the client has got more messages than there are.
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
    """The last event of an answer that failed."""
    return error_event(error, _FAILED)


async def answer_events(
    messages: QueryMessages,
    encode: Callable[[Message], bytes],
    *,
    after: ResultPosition | None,
    message_bytes: int | None,
    silent_seconds: float,
) -> AsyncGenerator[bytes]:
    """The events of a result, with a comment wherever there is none for a while.

    Args:
        messages: closed at the end.
        encode: makes the document of a message.
        after: the position to begin after; None: the beginning.
        message_bytes: how large a document may be.
        silent_seconds: how long nothing may be sent.

    Raises:
        ConstructMessagesError: the result is incomplete; the events before were yielded.
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
            if ready:  # an error before the first one is a status
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
                if number % _AT_ONCE == 0:  # the first event is sent before others are made
                    await asyncio.sleep(0)
                number += 1
        await made.put(written.end())
        await made.put(None)
    except Exception as error:  # noqa: BLE001 - it is raised where the events are read
        await made.put(error)

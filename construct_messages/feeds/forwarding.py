"""Forwards what waits in a store: to a stream elsewhere, to a log file, or to an output; each element once.

Before elements are sent, the store records which are sent to which target. So it can be found out after a kill whether
they arrived, and they are sent again if not. What has arrived is removed from the store.
docs/decisions/049-state-of-continuous-queries.md
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import IO, Final, Protocol
from uuid import uuid4

import msgspec

from construct_messages.feeds.publication import publish
from construct_messages.feeds.subscription import RETRIES
from construct_messages.formats import LogType
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.streams import Element, StreamStore
from construct_messages.streams.element import messages_of
from construct_messages.writing.growing import GrowingLog

_KEY: Final = "sending"


class Sending(msgspec.Struct, frozen=True):
    """Elements on their way.

    Args:
        to: where.
        last: the sequence of the last of them.
        key: of the publication.
        size: bytes of the log before them; None: it is no file.
    """

    to: str
    last: int
    key: str
    size: int | None = None


class Target(Protocol):
    """The target of elements.

    Attributes:
        name: distinguishes it from other targets.
        size: bytes of the log so far; None: it is no file.
    """

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int | None: ...

    async def send(self, elements: Sequence[Element], key: str, at: int | None) -> None:
        """Sends elements; what was sent under the same key is not sent again where that can be known.

        Args:
            elements: at least one.
            key: of the publication.
            at: the size of the target before they were sent for the first time.
        """
        ...


async def forward(store: StreamStore, stream: str, owner: str, target: Target) -> int:
    """Sends the elements that wait in a stream, and removes them.

    Args:
        store: opened to write.
        stream: the name of the stream.
        owner: of the state in the store that records the messages on their way.
        target: where to.

    Returns:
        How many were sent.

    Raises:
        SourceError: the target refuses, or cannot be reached for too long; what was not sent waits.
        CannotWrite: the target cannot be written.
        UsageError: a log is not as it was left.
    """
    count = await _finish(store, stream, owner, target)
    async with aclosing(store.apages(stream)) as pages:
        async for page in pages:
            sending = Sending(target.name, page[-1].sequence, uuid4().hex, target.size)
            await store.acommit(owner, {_KEY: msgspec.json.encode(sending)})
            await target.send(page, sending.key, sending.size)
            await store.atrim(stream, sending.last)
            count += len(page)
    return count


async def _finish(store: StreamStore, stream: str, owner: str, target: Target) -> int:
    """Sees to what was on its way when an earlier run ended."""
    kept = (await store.asaved_state(owner)).get(_KEY)
    sending = None if kept is None else msgspec.json.decode(kept, type=Sending)
    if sending is None or sending.last < store.state(stream).first:
        return 0
    elements: list[Element] = []
    async with aclosing(store.aread(stream)) as waiting:
        async for element in waiting:
            if element.sequence <= sending.last:
                elements.append(element)
    # another target than that of the earlier run has none of them
    await target.send(
        elements, sending.key, sending.size if sending.to == target.name else target.size
    )
    await store.atrim(stream, sending.last)
    return len(elements)


class StreamTarget:
    """A stream of a server.

    Args:
        url: of the stream, or of its input.
        create: whether to make it where there is none.
        token: sent as `Authorization: Bearer`.
        retries: how often in a row a request is sent again that fails in a way that may pass.
    """

    size = None

    def __init__(
        self, url: str, *, create: bool = False, token: str | None = None, retries: int = RETRIES
    ) -> None:
        self.name = url
        self._create, self._token, self._retries = create, token, retries

    async def send(self, elements: Sequence[Element], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """See `Target.send`: the server knows the key for a day."""
        await publish(
            messages_of(elements),
            self.name,
            key=key,
            batch=len(elements),
            create=self._create,
            token=self._token,
            retries=self._retries,
        )


class OutputTarget:
    """A binary file that is written as it comes, such as standard output.

    Args:
        file: flushed after each message; it stays open.
        type: of the log.
        options: those that only its format has.
    """

    name, size = "-", None

    def __init__(
        self, file: IO[bytes], type: LogType, options: FormatOptions | None = None
    ) -> None:
        self._file = file
        self._encoder = encoder_for(*type, EncoderOptions(triple_terms=True, own=options))
        self._start = self._encoder.start()

    async def send(self, elements: Sequence[Element], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """See `Target.send`: it is unknown which messages were sent."""
        for element in elements:
            self._file.write(self._start + self._encoder.encode(element.message))
            self._file.flush()
            self._start = b""


class FileTarget:
    """A log file that grows, each element once. After a kill, it may end within a message until it is continued.

    Args:
        log: of a text format.

    Raises:
        UsageError: a log that cannot be continued.
    """

    def __init__(self, log: GrowingLog) -> None:
        log.check_continued()
        self._log = log
        self.name = str(log.path)

    @property
    def size(self) -> int:
        """See `Target.size`."""
        return self._log.size

    async def send(self, elements: Sequence[Element], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """See `Target.send`: the file shows which of them are there."""
        self._log.append(messages_of(elements), at=at or 0)

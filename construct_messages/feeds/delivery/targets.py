"""Targets of batches: a stream elsewhere, a log file that grows, or an output.

A batch that is sent twice under one key is stored once where the target can know that: in a stream by the capability
`keyed` of its transport, in a file by the size that it had before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import IO, Protocol

from construct_messages.errors import SourceError
from construct_messages.feeds.opening import check_url, opened
from construct_messages.feeds.transport import Settings, Transport
from construct_messages.formats import LogType
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.message import Message
from construct_messages.writing.growing import GrowingLog


class Target(Protocol):
    """The target of batches.

    Attributes:
        name: distinguishes it from other targets.
        size: bytes of the log so far; None: it is no file.
    """

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int | None: ...

    async def open(self) -> None:
        """Connects, for an early error; `send` does it by itself.

        Raises:
            SourceError: the target refuses, or cannot be reached.
        """

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:
        """Sends a batch; one that was sent under the same key is not stored again where that can be known.

        Args:
            messages: at least one.
            key: of the batch.
            at: the size of the target before the batch was sent for the first time.

        Raises:
            SourceError: the target refuses, or cannot be reached.
            CannotWrite: the target cannot be written.
            UsageError: a log is not as it was left.
        """

    async def aclose(self) -> None:
        """Closes the connection. `send` connects again."""


class StreamTarget:
    """A stream of a server or a broker, over a connection that is kept until it fails.

    Args:
        url: of the stream, or of its input.
        settings: see `Settings`.

    Raises:
        UsageError: no URL of a transport.
    """

    size = None

    def __init__(self, url: str, settings: Settings) -> None:
        check_url(url)
        self.name, self._settings = url, settings
        self._connection = AsyncExitStack()
        self._transport: Transport | None = None

    async def open(self) -> None:
        """See `Target.open`."""
        await self._connected()

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """See `Target.send`."""
        transport = await self._connected()
        try:
            await transport.write(messages, key)
        except SourceError:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """See `Target.aclose`."""
        self._transport = None
        await self._connection.aclose()

    async def _connected(self) -> Transport:
        if self._transport is None:
            opening = opened(self.name, self._settings, write=True)
            self._transport = await self._connection.enter_async_context(opening)
        return self._transport


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

    async def open(self) -> None:
        """See `Target.open`."""

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """See `Target.send`: it is unknown which messages were sent."""
        for message in messages:
            self._file.write(self._start + self._encoder.encode(message))
            self._file.flush()
            self._start = b""

    async def aclose(self) -> None:
        """See `Target.aclose`."""


class FileTarget:
    """A log file that grows, each message once. After a kill, it may end within a message until it is continued.

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

    async def open(self) -> None:
        """See `Target.open`."""

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """See `Target.send`: the file shows which of them are there."""
        self._log.append(messages, at=at or 0)

    async def aclose(self) -> None:
        """See `Target.aclose`."""

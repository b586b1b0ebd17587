"""Targets of batches: a remote stream, a growing log file, or an output.

A batch that is sent twice under one key is stored once if the target can detect this: a stream by the capability
`keyed` of its transport, a file by its size before the batch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import IO, Final, Protocol

from construct_messages.feeds.opening import check_url, opened
from construct_messages.feeds.table import TRANSPORTS, Capabilities
from construct_messages.feeds.transport import Settings, Transport
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.logs.targets import format_of_target
from construct_messages.logs.writing import GrowingLog
from construct_messages.rdf.errors import SourceError, UsageError
from construct_messages.rdf.formats import LogType
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.message import Message

# --- guarantees -----------------------------------------------------------------------------------
# The guarantees of a relay for each pair of a source and a target, by their capabilities. No I/O.
#
# docs/reference/streams/relay.md has the table, which a test compares with these.

LOG: Final = Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True)
"""The capabilities of a log file: its size before a batch has the role of the key."""

OUTPUT: Final = Capabilities(ends=True, replays=True, numbered=True, writes=True)
"""The capabilities of standard input, if the same log is passed again, and of standard output."""

ENDS: Final = {
    **{kind.title: kind.capabilities for kind in TRANSPORTS},
    "log file": LOG,
    "standard input or output": OUTPUT,
}
"""The sources and targets of relays, by their names in the documentation."""


class Guarantee(StrEnum):
    """How often each message of a source is in a target, after the process was killed and restarted."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    NONE = "no relay"


def guarantee(source: Capabilities, target: Capabilities) -> Guarantee:
    """Returns the guarantee of a relay with a state; without one, a process cannot continue where another one stopped.

    Exactly once requires a source that can be read again from a position, and a target that recognises a batch.

    >>> guarantee(LOG, OUTPUT).value, guarantee(LOG, LOG).value
    ('at least once', 'exactly once')
    """
    if not target.writes:
        return Guarantee.NONE
    return Guarantee.EXACTLY_ONCE if source.replays and target.keyed else Guarantee.AT_LEAST_ONCE


# --- targets --------------------------------------------------------------------------------------

STANDARD: Final = "-"  # the name of outputs


class Target(Protocol):
    """The target of batches.

    `name` distinguishes it from other targets. `size` is that of the log so far, in bytes; None: it is not a file.
    """

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int | None: ...

    async def open(self) -> None:
        """Connects, for an early error; `send` also connects by itself."""

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:
        """Sends a batch; one that was sent under the same key is not stored again if the target can detect this.

        `at` is the size of the target before the batch was sent for the first time. Raises `SourceError`,
        `CannotWrite`, or `UsageError` for a log that was changed since it was last written.
        """

    async def aclose(self) -> None:
        """Closes the connection. `send` connects again."""


class StreamTarget:
    """A stream of a server or a broker, over a connection that is kept until it fails."""

    size = None

    def __init__(self, url: str, settings: Settings) -> None:
        check_url(url)
        self.name, self._settings = url, settings
        self._connection = AsyncExitStack()
        self._transport: Transport | None = None

    @property
    def writes_lines(self) -> bool:
        """See `Transport.writes_lines`; available while the connection is open."""
        return self._transport is not None and self._transport.writes_lines

    async def open(self) -> None:
        await self._connected()

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        transport = await self._connected()
        try:
            await transport.write(messages, key)
        except SourceError:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        self._transport = None
        await self._connection.aclose()

    async def _connected(self) -> Transport:
        if self._transport is None:
            opening = opened(self.name, self._settings, write=True)
            self._transport = await self._connection.enter_async_context(opening)
        return self._transport


class OutputTarget:
    """A binary file that is flushed after each message, such as standard output; it stays open."""

    name, size = STANDARD, None

    def __init__(
        self, file: IO[bytes], type: LogType, options: FormatOptions | None = None
    ) -> None:
        self._file = file
        self._encoder = encoder_for(*type, EncoderOptions(triple_terms=True, own=options))
        self._start = self._encoder.start()

    async def open(self) -> None:
        """Opens the target; see `Target.open`."""

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        """Writes the messages; which ones were written before is unknown. See `Target.send`."""
        for message in messages:
            self._write(self._encoder.encode(message))

    def finish(self) -> None:
        """Writes the bytes after the last message."""
        self._write(self._encoder.finish())

    def _write(self, data: bytes) -> None:
        self._file.write(self._start + data)
        self._file.flush()
        self._start = b""

    async def aclose(self) -> None:
        """Closes the target; see `Target.aclose`."""


class FileTarget:
    """A growing log file with each message once. After a kill, it may end within a message until it is continued.

    Raises `UsageError` for a log that cannot be continued.
    """

    def __init__(self, log: GrowingLog) -> None:
        log.check_continued()
        self._log = log
        self.name = str(log.path)

    @property
    def size(self) -> int:
        return self._log.size

    async def open(self) -> None:
        """Opens the target; see `Target.open`."""

    async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:  # noqa: ARG002 the protocol's
        self._log.append(messages, at=at or 0)

    async def aclose(self) -> None:
        """Closes the target; see `Target.aclose`."""


def target_of(
    place: str | os.PathLike[str] | IO[bytes],
    settings: Settings,
    *,
    syntax: str | None = None,
    own: FormatOptions | None = None,
) -> StreamTarget | OutputTarget | FileTarget:
    """Returns the target for a place: the URL of a stream, the path of a log, or a binary file.

    For a log, `settings.media_type` is its format, and other settings are not allowed; `syntax` and `own` are its
    options, see `write_log`. Raises `UsageError`.
    """
    if isinstance(place, str) and "://" in place:
        if syntax is not None or own is not None:
            raise UsageError(
                "the syntax and options of a format are for a log, and the target is a stream",
                hint="leave them out",
            )
        return StreamTarget(place, settings)
    name = os.fspath(place) if isinstance(place, str | os.PathLike) else STANDARD
    refuse_stream_options(
        name, create=settings.create, token=settings.token, options=settings.options
    )
    if not isinstance(place, str | os.PathLike):
        type = find_log(format_of_target(place, settings.media_type), syntax)
        return OutputTarget(place, type, own)
    return FileTarget(GrowingLog(place, settings.media_type, syntax=syntax, options=own))


def refuse_stream_options(name: str, **options: object) -> None:
    """Raises `UsageError` if an option is set that only streams have."""
    for option, value in options.items():
        if value:
            raise UsageError(
                f"{option} is for a stream, and {name} is a log",
                hint="leave it out, or give the URL of a stream",
            )

"""Delivers the items of a source in batches to a target: a remote stream, a growing log file, or an output.

A batch that is sent twice under one key is stored once if the target can detect this: a stream by the capability
`keyed` of its transport, a file by its size before the batch. The progress is stored in a state file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing
from enum import StrEnum
from typing import IO, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.opening import check_url, opened
from construct_messages.feeds.state import Checkpoint, Sent, write_state
from construct_messages.feeds.table import TRANSPORTS, Capabilities
from construct_messages.feeds.transport import Settings, Start, Transport
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.logs.lines.decoder import to_messages, to_text
from construct_messages.logs.reading import LogReader
from construct_messages.logs.targets import format_of_target
from construct_messages.logs.writing import GrowingLog
from construct_messages.rdf.formats import LogType
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.labels import Labels, are_unique, may_have_labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term
from construct_messages.streams import Element
from construct_messages.streams.publication import received, received_message

# --- batches --------------------------------------------------------------------------------------
# Groups the items of a source into batches: all that wait when the previous batch was delivered. No I/O.
#
# A slow source is therefore not delayed until a batch is full, and a fast one is read while a batch is delivered.

BATCH: Final = 1000  # the default maximal number of messages in a batch

_BATCH_BYTES: Final = 4 << 20
_SLICE: Final = 100
"""The number of items after which other tasks run, such as the delivery of the previous batch."""

_STOP_SECONDS: Final = 10.0  # the maximal time for a batch in flight when its delivery is cancelled

T = TypeVar("T")

Position: TypeAlias = Checkpoint | None  # the position of a source; None: it has none


class SourceBatch(NamedTuple, Generic[T]):
    """Items that are delivered together."""

    items: list[T]  # the items, at least one
    position: Position  # the position of the source after the last of them


def check_batch(most: int) -> None:
    """Raises `UsageError` for an option `batch` of less than 1."""
    if most < 1:
        raise UsageError(f"batch={most} is less than 1")


async def batches(
    items: AsyncGenerator[T],
    position: Callable[[], Position],
    size: Callable[[T], int],
    most: int = BATCH,
) -> AsyncGenerator[SourceBatch[T] | None]:
    """Collects items while the consumer works; raises their errors after yielding the items before.

    Yields None whenever no item waits. `items` are read in a separate task, which closes them. `position` returns that
    of the source after the last item; called once per batch, as it may take long. `size` is in bytes.
    """
    gathering = _Gathering(position, size, most)
    reading = asyncio.ensure_future(gathering.read(items))
    reading.add_done_callback(lambda _: gathering.arrived.set())
    try:
        while True:
            if not (gathering.held or reading.done()):
                yield None
            while not gathering.arrived.is_set():
                await gathering.arrived.wait()
            if batch := gathering.take(ended=reading.done()):
                yield batch
            elif reading.done():
                reading.result()  # raises its error
                return
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class _Gathering(Generic[T]):
    def __init__(
        self, position: Callable[[], Position], size: Callable[[T], int], most: int
    ) -> None:
        self._position, self._size, self._most = position, size, most
        self.held: list[T] = []
        self._bytes = 0
        self.arrived, self._room = asyncio.Event(), asyncio.Event()

    async def read(self, items: AsyncGenerator[T]) -> None:
        async with aclosing(items):
            async for item in items:
                self.held.append(item)
                self._bytes += self._size(item)
                self.arrived.set()
                count = len(self.held)
                if count >= self._most or self._bytes >= _BATCH_BYTES:
                    self._room.clear()
                    await self._room.wait()
                    await asyncio.sleep(0)  # the delivery of the batch begins before the next item
                elif count % _SLICE == 0:
                    self.arrived.clear()  # the batch is not taken: the next item may wait already
                    await asyncio.sleep(0)
                    self.arrived.set()

    def take(self, *, ended: bool) -> SourceBatch[T] | None:
        """Takes the waiting items; None: there are none."""
        held, self.held, self._bytes = self.held, [], 0
        if not ended:
            self.arrived.clear()
        self._room.set()
        return SourceBatch(held, self._position()) if held else None


def labelled(elements: Sequence[Element], labels: Callable[[Term], Term]) -> list[Message]:
    """Returns the messages of elements, with new labels for their blank nodes; unique labels are unchanged.

    The elements are in canonical form, as a transport yields them.
    """
    return [
        message.map_blanks(labels)
        if may_have_labels(message.lines) and not are_unique(message.lines.decode())
        else message
        for message in map(received_message, elements)
    ]


def size_of(element: Element) -> int:
    """Returns the size of an element, for `batches`."""
    return len(element.nquads)


async def shielded(work: Coroutine[object, object, None]) -> None:
    """Delivers a batch; if cancelled, waits for the batch, so that it need not be sent again."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_STOP_SECONDS)
        task.cancel()
        await asyncio.wait([task])
        raise


# --- progress -------------------------------------------------------------------------------------
# Delivers batches to a target, and stores the acknowledged position and the batch in flight in a state file.
#
# The state is written before each batch, with the batch, its key, and the position of its source after it. After a
# kill, the same messages are therefore sent under the same key, and reading continues after them.


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


# --- logs -----------------------------------------------------------------------------------------
# A log that is read as a stream: a file, or the output of another program. Its messages are counted from 1.


class ReadableLog(Transport):
    """A log; see `Transport`. A position is a number of messages, which are skipped when the log is read again."""

    def __init__(self, log: LogReader, name: str) -> None:
        log.keep_lines()
        self._log, self._name = log, name
        self._position: Checkpoint | None = None

    @property
    def position(self) -> Checkpoint | None:
        return self._position

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the elements until the end of the log; see `Transport.read`.

        Raises `UsageError` for a position that logs do not have, or fewer messages than were read before.
        """
        if follow:
            raise UsageError(
                f"{self._name} is a log, and ends",
                hint=f"construct-messages tail -n 0 --follow {self._name} | construct-messages relay --from - …",
            )
        if start.last is not None or start.since is not None:
            raise UsageError(
                f"the messages of {self._name} have no times and no known number",
                hint="start after a number of messages, or give the last ones: construct-messages tail -n N",
            )
        if start.checkpoint is not None:
            start.checkpoint.check()
            skipped = start.checkpoint.sequence
        else:
            skipped = start.after or 0
        self._position = Checkpoint(skipped)
        yield None
        count = 0
        async with self._log:
            async for message in self._log:
                count += 1
                if count > skipped:
                    element = received(self._name, count, message)
                    self._position = Checkpoint(count)
                    yield element
        if count < skipped:
            raise UsageError(
                f"{self._name} has {count} messages, and {skipped} were read before",
                hint="give the same log, or another state file",
            )


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

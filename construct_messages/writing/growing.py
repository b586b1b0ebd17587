"""Logs that grow: messages are appended to a file as they come, and each is there once, whatever ends the process.

Who appends keeps a size of the log with what else it has to know, and passes it again after a restart. There are two
kinds of programs: those that can append the same messages again (`GrowingLog.append`), and those that are sent again
what comes after a place (`GrowingLog.opened`). `files/growing.py` writes the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from construct_messages.arguments import checked
from construct_messages.errors import UsageError
from construct_messages.files.compression import COMPRESSIONS
from construct_messages.files.growing import append_once, growing, settled_size, write_whole
from construct_messages.formats import COLUMNS
from construct_messages.formats.lookup import find_log
from construct_messages.logs import (
    Encoder,
    EncoderOptions,
    FormatOptions,
    check_options,
    encoder_for,
)
from construct_messages.logs.json.options import JsonOptions
from construct_messages.message import Message
from construct_messages.targets import format_of_target


class OpenLog:
    """A log that is written message by message.

    Args:
        encoder: of the log.
        write: writes bytes, all of them.
        size: how many bytes are there already; 0: the log begins.
        sync: brings what was written onto the disk.

    Attributes:
        size: the bytes of the log so far.
        message_count: how many messages were written.
    """

    def __init__(
        self,
        encoder: Encoder,
        write: Callable[[bytes], object],
        *,
        size: int = 0,
        sync: Callable[[], object] = lambda: None,
    ) -> None:
        self._encoder, self._write, self.sync = encoder, write, sync
        self.size, self.message_count = size, 0
        if not size:
            self._put(encoder.start())

    def write(self, message: Message) -> None:
        """Writes a message.

        Raises:
            UnsupportedByFormat: the format cannot represent it; nothing of it is written.
        """
        self._put(self._encoder.encode(message))
        self.message_count += 1

    def finish(self) -> None:
        """Writes what the format has after the last message."""
        self._put(self._encoder.finish())

    def _put(self, data: bytes) -> None:
        self._write(data)
        self.size += len(data)


class GrowingLog:
    """A log file that grows.

    Args:
        path: of the file, which need not exist; what is in it stays.
        format: see `write_log`.
        syntax: see `write_log`.
        options: see `write_log`.

    Raises:
        UsageError: an unknown format or syntax, options of another format, or a file that is packed.

    >>> import tempfile
    >>> from construct_messages import Message, Quad, iri, read_log
    >>> messages = [Message([Quad(iri("urn:s"), iri("urn:p"), iri(f"urn:{n}"))]) for n in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = GrowingLog(f"{folder}/log.nq")
    ...     before = log.append(messages[:1])  # keep this number and the next messages on disk
    ...     for _ in range(2):  # after a kill, append them again: they are there once
    ...         after = log.append(messages[1:], at=before)
    ...     len(list(read_log(f"{folder}/log.nq"))), after == log.size
    (3, True)
    """

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        syntax: str | None = None,
        options: FormatOptions | None = None,
    ) -> None:
        self._path = Path(path)
        self._type = find_log(format_of_target(path, format), syntax)
        check_options(self._type[0], options)
        self._options = options
        if self._type.format in COLUMNS:
            raise UsageError(
                f"{path}: a {self._type.format.name} file is written whole, and a log that grows has no end",
                hint="write N-Quads, and convert that",
            )
        if isinstance(options, JsonOptions) and options.array:
            raise UsageError(
                f"{path}: an array has an end, and a log that grows has none",
                hint="leave array out: then each document is a line",
            )
        if self._path.suffix.lower() in COMPRESSIONS:
            raise UsageError(
                f"{path}: a log that grows is not packed",
                hint="write standard output, and pack that",
            )

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self._path.absolute()

    @property
    def size(self) -> int:
        """The bytes of the log, after what an append has not finished was cut off; 0 where there is no file.

        Raises:
            CannotWrite: the place cannot be read or written.
            UsageError: another program wrote after a part that was not finished.
        """
        return settled_size(self._path)

    def append(self, messages: Iterable[Message], *, at: int | None = None) -> int:
        """Appends messages, all or none of them, unless they are there; then they are on disk.

        Args:
            messages: the messages.
            at: the size of the log before these messages were appended for the first time; None: its present size.

        Returns:
            The size of the log after them.

        Raises:
            CannotWrite: the file cannot be written.
            UsageError: the file is shorter than `at`, or goes on with something else than these messages; or the format
                is binary, so that such a log cannot be continued.
        """
        self.check_continued()
        at = self.size if at is None else at
        encoder = self._encoder()
        start = b"" if at else encoder.start()
        data = b"".join((start, *map(encoder.encode, messages)))
        if data:
            append_once(self._path, data, at)
        return at + len(data)

    @contextmanager
    def opened(self, at: int = 0) -> Iterator[OpenLog]:
        """Opens the log to write messages as they come, after its first `at` bytes; what follows them is cut off.

        Keep `size` after `sync()`, together with the place in the source of the messages. After a restart, pass the
        size, and read the source from that place.

        Args:
            at: the size to continue from; 0: begin.

        Raises:
            CannotWrite: the file cannot be written.
            UsageError: the file is shorter than `at`, or a binary log is to be continued.

        >>> import tempfile
        >>> from construct_messages import Message, read_log
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = GrowingLog(f"{folder}/log.nq")
        ...     with log.opened() as opened:
        ...         opened.write(Message())
        ...         opened.sync()
        ...         kept = opened.size
        ...         opened.write(Message())  # and the process is killed here
        ...     with log.opened(kept) as opened:
        ...         opened.write(Message())
        ...     len(list(read_log(f"{folder}/log.nq")))
        2
        """
        if at:
            self.check_continued()
        with growing(self._path, at) as file:

            def sync() -> None:
                if self._path.is_file():  # a device has nothing to sync
                    os.fsync(file.fileno())

            yield OpenLog(self._encoder(), partial(write_whole, file), size=at, sync=sync)

    def _encoder(self) -> Encoder:
        return encoder_for(*self._type, EncoderOptions(triple_terms=True, own=self._options))

    def check_continued(self) -> None:
        """Checks that a log of this format can be continued.

        Raises:
            UsageError: it cannot: the format is binary.
        """
        format = self._type[0]
        if format.binary:
            raise UsageError(f"a {format.name} log cannot be continued", hint="write a text format")

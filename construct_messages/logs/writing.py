"""Writing logs: `write_log` and `awrite_log`, from any iterable of messages to a file.

`logs/` encodes messages, and `rdf/files/output.py` writes files. RDF Messages, section 3.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from construct_messages.errors import UsageError
from construct_messages.logs import (
    Encoder,
    EncoderOptions,
    FormatOptions,
    check_options,
    encoder_for,
    options_for_writing,
)
from construct_messages.logs.checking import Checker
from construct_messages.logs.json.options import JsonOptions
from construct_messages.logs.reading import LogReader
from construct_messages.logs.targets import LogTarget, format_of_target, log_file, write_in_thread
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.files.output import append_once, growing, settled_size, write_whole
from construct_messages.rdf.files.unpacking import COMPRESSIONS
from construct_messages.rdf.formats import COLUMNS, N_QUADS, Format, Syntax
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.message import Message
from construct_messages.rdf.single_use import each_of
from construct_messages.rdf.terms import Lenience

_CHUNK_BYTES: Final = 1 << 16

# --- growing --------------------------------------------------------------------------------------
# Logs that grow: messages are appended to a file as they arrive, each exactly once, however the process ends.
#
# The program saves the size of the log together with its own state, and passes it again after a restart.
# `GrowingLog.append` is for programs that can append the same messages again, `GrowingLog.opened` for those that read
# their source again from a position. `rdf/files/output.py` writes the file.


class OpenLog:
    """A log that is written message by message.

    Args:
        encoder: the encoder of the log.
        write: writes all of some bytes.
        size: the number of existing bytes; 0: a new log.
        sync: syncs the written bytes to disk.

    Attributes:
        size: the number of bytes of the log so far, with those that are held.
        message_count: the number of messages, with those that are held.
    """

    def __init__(
        self,
        encoder: Encoder,
        write: Callable[[bytes], object],
        *,
        size: int = 0,
        sync: Callable[[], object] = lambda: None,
    ) -> None:
        self._encode, self._finish = encoder.encode, encoder.finish
        self._write, self._sync = write, sync
        self._held: list[bytes] = []
        self._held_after = size  # the size when these bytes were first held
        self.size, self.message_count = size, 0
        if not size:
            self._hold(encoder.start())
            self.flush()

    def write(self, message: Message) -> None:
        """Writes a message.

        Raises:
            UnsupportedByFormat: the format cannot represent it; no part of it is written.
        """
        self.hold(message)
        self.flush()

    def hold(self, message: Message) -> None:
        """Adds a message, which `flush` or `sync` writes together with others: for messages that wait already.

        Raises:
            UnsupportedByFormat: see `write`.
        """
        self._hold(self._encode(message))
        self.message_count += 1
        if self.size - self._held_after >= _CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the messages that are held."""
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._held_after = self.size
            self._write(data)

    def sync(self) -> None:
        """Writes the messages that are held, and syncs all to disk."""
        self.flush()
        self._sync()

    def finish(self) -> None:
        """Writes the end of the log, if the format has one."""
        self._hold(self._finish())
        self.flush()

    def _hold(self, data: bytes) -> None:
        self._held.append(data)
        self.size += len(data)


class GrowingLog:
    """A log file that grows.

    Args:
        path: the path of the file, which need not exist; existing content is kept.
        format: see `write_log`.
        syntax: see `write_log`.
        options: see `write_log`.

    Raises:
        UsageError: an unknown format or syntax, options of another format, or a compressed file.

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
                f"{path}: a {self._type.format.name} file must be complete, and a growing log has no end",
                hint="write N-Quads, and convert that",
            )
        if isinstance(options, JsonOptions) and options.array:
            raise UsageError(
                f"{path}: an array has an end, and a growing log has none",
                hint="leave array out: then each document is a line",
            )
        if self._path.suffix.lower() in COMPRESSIONS:
            raise UsageError(
                f"{path}: a growing log cannot be compressed",
                hint="write to standard output, and compress that",
            )

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self._path.absolute()

    @property
    def size(self) -> int:
        """Removes an unfinished append, and returns the size of the log; 0 if there is no file.

        Raises:
            CannotWrite: the file cannot be read or written.
            UsageError: another program wrote after an unfinished part.
        """
        return settled_size(self._path)

    def append(self, messages: Iterable[Message], *, at: int | None = None) -> int:
        """Appends messages, all or none, unless the log already has them, and syncs them to disk.

        Args:
            messages: the messages.
            at: the size of the log before these messages were appended for the first time; None: its present size.

        Returns:
            The size of the log after them.

        Raises:
            CannotWrite: the file cannot be written.
            UsageError: the file is shorter than `at`, or has other bytes in place of these messages; or the format is
                binary, so that the log cannot be continued.
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
        """Opens the log to write messages as they arrive, after truncating it to its first `at` bytes.

        Save `size` after `sync()`, together with the position in the source of the messages. After a restart, pass the
        size, and read the source from that position.

        Args:
            at: the size to continue from; 0: a new log.

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
                if self._path.is_file():  # a device cannot be synced
                    os.fsync(file.fileno())

            yield OpenLog(self._encoder(), partial(write_whole, file), size=at, sync=sync)

    def _encoder(self) -> Encoder:
        return encoder_for(*self._type, EncoderOptions(triple_terms=True, own=self._options))

    def check_continued(self) -> None:
        """Checks that a log of this format can be continued.

        Raises:
            UsageError: the format is binary.
        """
        format = self._type[0]
        if format.binary:
            raise UsageError(f"a {format.name} log cannot be continued", hint="write a text format")


# --- writing --------------------------------------------------------------------------------------


@checked
def write_log(
    messages: Iterable[Message],
    target: LogTarget,
    format: str | None = None,
    *,
    syntax: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    graphs: bool | None = None,
    options: FormatOptions | None = None,
    lenient: bool = False,
) -> int:
    """Writes messages as a log and returns their number.

    Args:
        messages: the messages. If it raises an error or contains a message that the format cannot represent, no file is
            written.
        target: a path, which appears when the log is complete and is compressed if it ends in `.gz`, `.bz2`, `.xz` or
            `.zst`; or a binary file, which stays open.
        format: a name, extension or media type, whose parameters determine the syntax; None: by the extension of the
            path or of the file's name, which must be known; N-Quads without an extension.
        syntax: the syntax: `"rdfm"`, `"1.2-messages"`, `"1.2-basic-messages"` or `"1.1-messages"`; None: `rdfm`, or
            the format's own delimiters.
        prefixes: for formats that have prefixes; None: if `messages` is a `LogReader`, those that the log has declared
            before its first message.
        graphs: whether messages may have named graphs, which Jelly announces at the start; None: they may, unless
            `messages` is a `LogReader` of a format without them.
        options: options of the format, such as `JellyOptions`. Defaults suit messages without triple terms; if
            `messages` is a `LogReader` of the same format, its options are the defaults.
        lenient: write malformed IRIs and language tags unchanged, if the format can represent them. Those of messages
            that were read leniently are always written.

    Raises:
        UsageError: an unknown format, extension or syntax, options of another format, or an object that is not a
            message.
        CannotWrite: the target cannot be written.
        TermError: a term that is not RDF, or is not allowed in its position, such as a literal as subject; names
            message and quad.
        UnsupportedByFormat: the format cannot represent a quad.

    >>> import io
    >>> from construct_messages.logs.reading import read_log
    >>> log = io.BytesIO()
    >>> write_log(read_log(b"PREFIX : <urn:> :s :p :o ."), log, "ttl", syntax="1.2-messages")
    1
    >>> print(log.getvalue().decode(), end="")
    VERSION "1.2-messages"
    PREFIX : <urn:>
    <BLANKLINE>
    :s :p :o .
    MESSAGE
    """
    log = _Log(messages, target, format, syntax, prefixes, graphs, options, lenient)
    with log_file(target) as write:
        for message in messages:
            write(log.encode(message))
        write(log.finish())
    return log.message_count


@checked
async def awrite_log(
    messages: Iterable[Message] | AsyncIterable[Message],
    target: LogTarget,
    format: str | None = None,
    *,
    syntax: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    graphs: bool | None = None,
    options: FormatOptions | None = None,
    lenient: bool = False,
) -> int:
    """Writes messages as a log and returns their number, for asyncio. See `write_log`.

    The messages may be an async iterable. The file is written in a thread.

    >>> import asyncio, io
    >>> log = io.BytesIO()
    >>> asyncio.run(awrite_log([Message(), Message()], log, "nq"))
    2
    >>> log.getvalue()
    b'# @message\\n# @message\\n'
    """
    log = _Log(messages, target, format, syntax, prefixes, graphs, options, lenient)
    with log_file(target) as write:
        held, size = [], 0
        async for message in each_of(messages):
            held.append(log.encode(message))
            size += len(held[-1])
            if size >= _CHUNK_BYTES:
                await write_in_thread(write, b"".join(held))
                held, size = [], 0
        await write_in_thread(write, b"".join([*held, log.finish()]))
    return log.message_count


def passes_lines(format: Format, syntax: Syntax) -> bool:
    """Whether a log has the lines of each message unchanged and unexamined, so that their terms are not needed."""
    return format is N_QUADS and syntax.triple_terms and syntax.directions


class _Log:
    """Yields the bytes of a log, message by message; none before the first, so that an early error writes nothing."""

    def __init__(
        self,
        messages: object,
        target: LogTarget,
        format: str | None,
        syntax: str | None,
        prefixes: Mapping[str, str] | None,
        graphs: bool | None,
        options: FormatOptions | None,
        lenient: bool,
    ) -> None:
        self._format, self._syntax = find_log(format_of_target(target, format), syntax)
        check_options(self._format, options)
        self._messages, self._prefixes, self._graphs, self._options = (
            messages,
            prefixes,
            graphs,
            options,
        )
        self._lenience = Lenience() if lenient else None
        self._encoder: Encoder | None = None
        self.message_count = 0
        if isinstance(messages, LogReader) and passes_lines(self._format, self._syntax):
            messages.keep_lines()

    def encode(self, message: Message) -> bytes:
        self.message_count += 1
        start = b""
        if self._encoder is None:
            start = self._start().start()
        assert self._encoder is not None
        self._checker.check(message)
        return start + self._encoder.encode(message)

    def finish(self) -> bytes:
        if self._lenience is not None:
            self._lenience.report()
        if self._encoder is None:
            encoder = self._start()
            return encoder.start() + encoder.finish()
        return self._encoder.finish()

    def _start(self) -> Encoder:
        prefixes, graphs, options = self._prefixes, self._graphs, self._options
        origin: dict[str, str] = {}
        if isinstance(self._messages, LogReader):
            origin = {"source": self._messages.name} if self._messages.name else {}
            prefixes = dict(self._messages.prefixes) if prefixes is None else prefixes
            graphs = self._messages.names_graphs if graphs is None else graphs
            options = options_for_writing(
                self._format,
                options,
                self._messages.options,
                graphs=graphs,
                generalized=self._messages.generalized,
            )
        # the encoder checks the positions of terms
        self._checker = Checker(
            self._lenience, generalized=options is not None and options.is_generalized
        )
        encoding = EncoderOptions(prefixes, graphs=graphs is not False, own=options, origin=origin)
        self._encoder = encoder_for(self._format, self._syntax, encoding)
        return self._encoder

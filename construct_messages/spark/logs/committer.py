"""Committing logs that many tasks write: tasks write into the folder of a run (`runs`), whose files count when the
driver has committed it.

A task that fails or runs twice leaves no files, and a job that fails changes nothing. Spark ends a job while some of
its tasks still run: those find that the job has ended, and remove their files. No Spark here: a task is identified
by the numbers of its partition and its attempt, and messages come as Arrow batches.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from posixpath import dirname
from typing import IO, Any, Final, cast

import pyarrow as pa
from pyarrow import fs

from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.files.unpacking import opener
from construct_messages.rdf.formats import content_type
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience
from construct_messages.spark.logs.files import Place, place_of, remove_file
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.runs import LogFile, Mode, Run, unwritable

_KEYS: Final = ("file", "block", "ordinal", "sequence")
"""The columns that identify a message."""


@dataclass(frozen=True)
class LogJob:
    """A job that writes one log for each partition that has messages into a folder, or one log of all partitions."""

    options: WriteOptions
    target: Place
    run: Run
    mode: Mode

    @classmethod
    def begin(cls, options: WriteOptions, *, overwrite: bool) -> LogJob:
        """Starts a job, which `commit` or `abort` ends."""
        target = place_of(options.path, options.s3)
        mode: Mode = "overwrite" if overwrite else "error" if options.alone else "append"
        opening(options)  # which fails if the options do
        if options.single:
            _check_file(target, overwrite=overwrite)
            run = Run.begin(target.at(dirname(target.path)))
        else:
            run = Run.begin(target, mode)
        try:
            target.files.create_dir(run.logs, recursive=True)
        except OSError as error:
            raise unwritable(target.uri, error) from error
        return cls(options, target, run, mode)

    # --- in tasks -----------------------------------------------------------------------------------------------------

    def write(
        self, batches: Iterable[pa.RecordBatch], partition: int, attempt: int
    ) -> LogFile | None:
        """Writes the messages of one partition, in the column `message`; returns None if it has none. Errors name the
        message.
        """
        extension = f"{self.options.format.extension}{self.options.packing}"
        name = f"part-{partition:05d}-{attempt}.{extension}"
        log = self.target.at(f"{self.run.logs}/{name}")
        try:
            self._check_runs()
            written = write_log(log, batches, self.options, f"partition {partition}")
            self._check_runs()
        except BaseException as error:
            for folder in (self.run.logs, self.run.place):
                remove_file(self.target.at(f"{folder}/{name}"))
            if isinstance(error, OSError):
                raise unwritable(self.target.uri, error) from error
            raise
        return written

    def _check_runs(self) -> None:
        if not self.run.is_running:
            raise UsageError(
                f"cannot write to {self.target.uri}: the job has ended, or its folder is not seen from here",
                hint="write to a place that the driver and all executors share",
            )

    # --- on the driver ------------------------------------------------------------------------------------------------

    def commit(self, logs: Iterable[LogFile]) -> None:
        """Makes the logs those of the folder, or one log, and removes the other files of tasks."""
        logs = sorted(logs, key=lambda log: log.partition)
        try:
            if self.options.single:
                self._join(logs)
            else:
                self._commit(logs or [self._empty()])
        except OSError as error:
            raise unwritable(self.target.uri, error) from error
        self.run.end()

    def _commit(self, logs: Sequence[LogFile]) -> None:
        counts = (sum(log.messages or 0 for log in logs), sum(log.quads or 0 for log in logs))
        media_type = content_type(self.options.format, self.options.syntax)
        self.run.commit(media_type, counts, logs, self.mode)

    def _empty(self) -> LogFile:
        """Writes the log without messages, for a folder without any other log."""
        data = opening(self.options)
        name = f"part-00000-0.{self.options.format.extension}{self.options.packing}"
        self.run.write(f"{self.run.logs}/{name}", data)
        return LogFile(name, len(data), 0, 0, zlib.crc32(data))

    def _join(self, logs: Sequence[LogFile]) -> None:
        """Concatenates the parts to one log, which is valid in every format, and also for compressed logs."""
        files, whole = self.target.files, f"{self.run.hidden}/whole"
        with files.open_output_stream(whole, compression=None) as target:
            if not logs or encoder(self.options).start():
                target.write(opening(self.options))
            for chunk in self.run.drained(logs):
                target.write(chunk)
        files.move(whole, self.target.path)

    def abort(self) -> None:
        """Removes the files of tasks, and the folder of the logs if it is new."""
        self.run.end()


def _check_file(target: Place, *, overwrite: bool) -> None:
    try:
        there = target.files.get_file_info(target.path).type
    except OSError as error:
        raise unwritable(target.uri, error) from error
    if there == fs.FileType.Directory:
        raise UsageError(f"{target.uri} is a folder", hint="name a file in it")
    if there == fs.FileType.File and not overwrite:
        raise UsageError(
            f"{target.uri} exists, and a log in one file cannot grow", hint="overwrite it"
        )


# --- one log --------------------------------------------------------------------------------------


def encoder(options: WriteOptions) -> Encoder:
    encoding = EncoderOptions(options.prefixes, graphs=options.graphs, own=options.own)
    return encoder_for(options.format, options.syntax, encoding)


def opening(options: WriteOptions) -> bytes:
    """Returns a log without messages."""
    empty, file = encoder(options), BytesIO()
    with _packed(file, options.packing) as packed:
        packed.write(empty.start() + empty.finish())
    return file.getvalue()


def write_log(
    place: Place, batches: Iterable[pa.RecordBatch], options: WriteOptions, task: str
) -> LogFile | None:
    """Writes the messages of a partition, in the column `message`, as a log, or, of a `single` one, a part of it.

    Returns None, and writes no file, if there are no messages. Errors name the message.
    """
    batches = (batch for batch in batches if batch.num_rows)
    if (first := next(batches, None)) is None:
        return None
    encoding, messages, quads = encoder(options), 0, 0
    start = encoding.start()
    with place.files.open_output_stream(place.path, compression=None) as raw:
        sums = _Sums(raw)
        with _packed(cast("IO[bytes]", sums), options.packing) as file:
            if not options.single:
                file.write(start)
            for batch in chain([first], batches):
                encoded = [*_encoded(batch, messages + 1, encoding, task, options.lenient)]
                file.write(b"".join([data for data, _ in encoded]))
                messages += len(encoded)
                quads += sum(size for _, size in encoded)
            file.write(encoding.finish())
    return LogFile(place.path.rpartition("/")[2], sums.bytes, messages, quads, sums.crc32)


@contextmanager
def _packed(file: IO[bytes], packing: str) -> Iterator[Any]:
    if packing:
        with opener(packing)(file, "wb") as packed:
            yield packed
    else:
        yield file


class _Sums:
    """A file that counts the written bytes and computes their CRC-32."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = self.crc32 = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self.bytes += len(data)
        self.crc32 = zlib.crc32(data, self.crc32)
        return len(data)

    def flush(self) -> None:
        self._file.flush()


def _encoded(
    batch: pa.RecordBatch, first: int, encoder: Encoder, task: str, lenient: bool
) -> Iterator[tuple[bytes, int]]:
    """Yields the encoded messages of a batch, each with its number of quads; `first` is the number of the first."""

    def place(row: int) -> str:
        keys = [f"{key} {batch.column(key)[row]}" for key in _KEYS if key in batch.schema.names]
        return ", ".join([task, *keys])

    for row, message in enumerate(
        messages_of(batch.column("message").to_pylist(), first, place, lenient=lenient)
    ):
        try:
            yield encoder.encode(message), len(message)
        except UnsupportedByFormat as error:
            raise UnsupportedByFormat(
                f"in {place(row)}: {error.message}", hint=error.hint
            ) from error


def messages_of(
    texts: Sequence[str | None], first: int, place: Callable[[int], str], *, lenient: bool = False
) -> list[Message]:
    """Returns the messages of texts; errors name the place of a text, and its number, counted from `first`."""
    try:
        if None in texts:
            number = first + texts.index(None)
            hint = "filter it out, or make it '' if it is empty"
            raise LogError("NULL", number=number, hint=hint)
        return to_messages(cast("Sequence[str]", texts), first, Lenience() if lenient else None)
    except LogError as error:
        raise LogError(
            f"in {place(error.number - first)}: {error.message}",
            number=error.number,
            position=error.position,
            hint=error.hint,
        ) from error

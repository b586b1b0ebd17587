"""Committing logs that many tasks write: tasks write into the folder of a run (`runs`), whose files count when the
driver has committed it.

A task that fails or runs twice leaves no files, and a job that fails changes nothing. Spark ends a job while some of
its tasks still run: those find that the job has ended, and remove their files. No Spark here: a task is identified
by the numbers of its partition and its attempt, and messages come as Arrow batches.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from posixpath import dirname
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa
from pyarrow import fs

from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.files.unpacking import opener
from construct_messages.rdf.formats import content_type
from construct_messages.rdf.terms import Lenience
from construct_messages.spark.logs.files import Place, place_of
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.runs import LogFile, Mode, Owner, Run, check, unwritable

_CHUNK_BYTES: Final = 1 << 20
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_KEYS: Final = ("file", "block", "ordinal", "sequence")
"""The columns that identify a message."""


class Part(NamedTuple):
    """The log that a task has written."""

    partition: int
    name: str
    bytes: int = 0
    messages: int = 0
    quads: int = 0
    crc32: int = 0


@dataclass(frozen=True)
class LogJob:
    """A job that writes one log for each partition that has messages into a folder, or one log of all partitions."""

    options: WriteOptions
    stamp: str  # the identifier of its run
    overwrite: bool
    fresh: bool  # whether the folder is new

    @classmethod
    def begin(cls, options: WriteOptions, *, overwrite: bool) -> LogJob:
        """Starts a job, which `commit` or `abort` ends."""
        place = place_of(options.path, options.s3)
        try:
            there = place.files.get_file_info(place.path).type
        except OSError as error:
            raise UsageError(f"cannot reach {options.path}: {error}") from error
        if options.single and there == fs.FileType.Directory:
            raise UsageError(f"{options.path} is a folder", hint="name a file in it")
        if options.single and there == fs.FileType.File and not overwrite:
            raise UsageError(
                f"{options.path} exists, and a log in one file cannot grow", hint="overwrite it"
            )
        if not options.single and there == fs.FileType.File:
            raise UsageError(
                f"{options.path} is a file", hint="name a folder, or write a single log"
            )
        folder = place.at(dirname(place.path)) if options.single else place
        try:
            if not options.single:
                check(folder, "overwrite" if overwrite else "append")
            run = Run.begin(folder, Owner.java())
            # tasks may run in another working directory, where a relative path would differ
            job = cls(
                replace(options, path=place.uri), run.id, overwrite, there == fs.FileType.NotFound
            )
            job._open()
        except OSError as error:
            raise unwritable(options.path, error) from error
        return job

    def _open(self) -> None:
        """Writes a log without messages into the hidden folder: as long as it exists, tasks may write."""
        encoder = self._encoder()
        self._place.files.create_dir(self._run.logs, recursive=True)
        with self._packed(self._opening) as (write, _):
            write(encoder.start() + encoder.finish())

    # --- in tasks -----------------------------------------------------------------------------------------------------

    def write(self, batches: Iterable[pa.RecordBatch], partition: int, attempt: int) -> Part | None:
        """Writes the messages of one partition, in the column `message`; returns None if it has none. Errors name the
        message.
        """
        encoder = self._encoder()
        opening = encoder.start()
        with ExitStack() as stack:
            write: Callable[[bytes], object] | None = None
            sums: _Sums | None = None
            extension = f"{self.options.format.extension}{self.options.packing}"
            name = f"part-{partition:05d}-{attempt}.{extension}"
            first, quads = 1, 0
            for batch in batches:
                if not batch.num_rows:
                    continue
                if write is None:
                    write, sums = stack.enter_context(self._file(name))
                    if not self.options.single:
                        write(opening)
                task = f"partition {partition}"
                for data, size in _encoded(
                    batch, first, encoder, task, lenient=self.options.lenient
                ):
                    write(data)
                    quads += size
                first += batch.num_rows
            if write is None or sums is None:
                return None
            write(encoder.finish())
        return Part(partition, name, sums.bytes, first - 1, quads, sums.crc32)

    def _encoder(self) -> Encoder:
        options = self.options
        encoding = EncoderOptions(options.prefixes, graphs=options.graphs, own=options.own)
        return encoder_for(options.format, options.syntax, encoding)

    # --- on the driver ------------------------------------------------------------------------------------------------

    def commit(self, parts: Iterable[Part]) -> None:
        """Makes the logs those of the folder, or one log, and removes the other files of tasks."""
        parts = sorted(parts)
        try:
            if self.options.single:
                self._join(parts)
            else:
                self._commit(parts)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise unwritable(self.options.path, error) from error
            raise UsageError(
                f"cannot put logs at {self.options.path}: {error}",
                hint="write to a place that the driver and all executors share",
            ) from error
        self._clean()

    def _commit(self, parts: Sequence[Part]) -> None:
        options = self.options
        if not parts:
            parts = [self._empty()]
        files = [LogFile(part.name, part.bytes, part.messages, part.crc32) for part in parts]
        counts = (sum(part.messages for part in parts), sum(part.quads for part in parts))
        mode: Mode = "overwrite" if self.overwrite else "error" if options.alone else "append"
        media_type = content_type(options.format, options.syntax)
        self._run.commit(media_type, counts, files, mode)

    def _empty(self) -> Part:
        """Writes the log without messages, for a folder without any other log."""
        with self._place.files.open_input_stream(self._opening, compression=None) as file:
            data = file.read()
        name = f"part-00000-0.{self.options.format.extension}{self.options.packing}"
        self._run.write(f"{self._run.logs}/{name}", data)
        return Part(0, name, len(data), crc32=zlib.crc32(data))

    def _join(self, parts: Sequence[Part]) -> None:
        """Concatenates the parts to one log, which is valid in every format, and also for compressed logs."""
        files, whole = self._place.files, f"{self._run.hidden}/whole"
        paths = [f"{self._run.logs}/{part.name}" for part in parts]
        if not paths or self._encoder().start():
            paths.insert(0, self._opening)
        with files.open_output_stream(whole, compression=None) as target:
            for path in paths:
                with files.open_input_stream(path, compression=None) as source:
                    while chunk := source.read(_CHUNK_BYTES):
                        target.write(chunk)
        files.move(whole, self._place.path)

    def abort(self) -> None:
        """Removes the files of tasks, and the folder of the logs if it is new."""
        self._clean(new=self.fresh and not self.options.single)

    def _clean(self, *, new: bool = False) -> None:
        """Removes the hidden folder, beginning with the mark of a running job, so that no task goes on writing."""
        if self._runs():
            self._place.files.delete_file(self._opening)
        self._run.end(new=new)

    # --- places -------------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> Place:
        return place_of(self.options.path, self.options.s3)

    @property
    def _run(self) -> Run:
        place = self._place
        return Run(place.at(dirname(place.path)) if self.options.single else place, self.stamp)

    @property
    def _opening(self) -> str:
        return f"{self._run.hidden}/opening"

    def _runs(self) -> bool:
        return bool(self._place.files.get_file_info(self._opening).type == fs.FileType.File)

    @contextmanager
    def _file(self, name: str) -> Iterator[tuple[Callable[[bytes], object], _Sums]]:
        """Yields the same as `_packed` for a task's file; removes the file if the block raises or the job has ended."""
        if not self._runs():
            raise self._ended()
        try:
            with self._packed(f"{self._run.logs}/{name}") as opened:
                yield opened
            if not self._runs():
                raise self._ended()
        except BaseException as error:
            for folder in (self._run.logs, self._run.place):
                with suppress(FileNotFoundError):  # it was not made, or was removed with the folder
                    self._place.files.delete_file(f"{folder}/{name}")
            if isinstance(error, OSError):
                raise unwritable(self.options.path, error) from error
            raise

    @contextmanager
    def _packed(self, path: str) -> Iterator[tuple[Callable[[bytes], object], _Sums]]:
        """Yields a writer of a new file with the compression of the options, and the size and CRC-32 of the file."""
        with self._place.files.open_output_stream(path, compression=None) as raw:
            sums = _Sums(raw)
            if self.options.packing:
                with opener(self.options.packing)(sums, "wb") as packed:
                    yield packed.write, sums
            else:
                yield sums.write, sums

    def _ended(self) -> UsageError:
        return UsageError(
            f"cannot write to {self.options.path}: the job has ended, or its folder is not seen from here",
            hint="write to a place that the driver and all executors share",
        )


class _Sums:
    """A file that counts the written bytes and computes their CRC-32."""

    def __init__(self, file: BinaryIO) -> None:
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
    batch: pa.RecordBatch, first: int, encoder: Encoder, task: str, *, lenient: bool
) -> Iterator[tuple[bytes, int]]:
    """Yields the encoded messages of a batch, each with its number of quads; `first` is the number of the first."""
    texts = batch.column("message").to_pylist()
    try:
        if None in texts:
            number = first + texts.index(None)
            raise LogError(
                "NULL", number=number, hint="filter it out, or make it '' if it is empty"
            )
        messages = to_messages(texts, first, Lenience() if lenient else None)
    except LogError as error:
        raise LogError(
            f"in {_row(batch, error.number - first, task)}: {error.message}",
            number=error.number,
            position=error.position,
            hint=error.hint,
        ) from error
    for row, message in enumerate(messages):
        try:
            yield encoder.encode(message), len(message)
        except UnsupportedByFormat as error:
            raise UnsupportedByFormat(
                f"in {_row(batch, row, task)}: {error.message}", hint=error.hint
            ) from error


def _row(batch: pa.RecordBatch, row: int, task: str) -> str:
    keys = [f"{key} {batch.column(key)[row]}" for key in _KEYS if key in batch.schema.names]
    return ", ".join([task, *keys])

"""Committing logs that many tasks write: tasks write to a hidden folder, whose files the driver renames or removes.

A task that fails or runs twice leaves nothing behind, and a job that fails changes nothing. Spark ends a job while some
of its tasks still run: those find the folder gone, and remove what they have written. No Spark here: a task is
identified by the numbers of its partition and its attempt, and messages come as Arrow batches.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from posixpath import dirname
from typing import Final, NamedTuple

import pyarrow as pa
from pyarrow import fs

from construct_messages.errors import CannotWrite, LogError, UnsupportedByFormat, UsageError
from construct_messages.files.compression import opener
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.lines.texts import to_messages
from construct_messages.spark.logs.files import Place, place_of, remove_folder, visible_below
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.terms import Lenience

_CHUNK_BYTES: Final = 1 << 20
_SUCCESS: Final = "_SUCCESS"
"""The empty file by which Spark's own writers say that a folder is whole."""

_KEYS: Final = ("file", "block", "ordinal", "sequence")
"""The columns that say of a message which it is."""


class Part(NamedTuple):
    """The log that a task has written.

    Args:
        partition: its number.
        path: where, for now.
    """

    partition: int
    path: str


@dataclass(frozen=True)
class LogJob:
    """One job of writing: in a folder a log for each partition that has messages, or one log of all.

    Args:
        options: where and how.
        stamp: the name of its hidden folder, behind a dot, and what the names of its logs begin with: those of a later
            job come later.
        overwrite: whether the logs that are there go.
        fresh: whether there was no folder.
    """

    options: WriteOptions
    stamp: str
    overwrite: bool
    fresh: bool

    @classmethod
    def begin(cls, options: WriteOptions, *, overwrite: bool) -> LogJob:
        """A new job, with its hidden folder; `commit` or `abort` removes that.

        Raises:
            UsageError: what is at the path stands in its way, or it cannot be reached or written.
        """
        place = place_of(options.path)
        try:
            there = place.files.get_file_info(place.path).type
        except OSError as error:
            raise UsageError(f"cannot reach {options.path}: {error}") from error
        if options.single and there == fs.FileType.Directory:
            raise UsageError(f"{options.path} is a folder", hint="name a file in it")
        if options.single and there == fs.FileType.File and not overwrite:
            raise UsageError(f"{options.path} exists, and a log in one file cannot grow", hint="overwrite it")
        if not options.single and there == fs.FileType.File:
            raise UsageError(f"{options.path} is a file", hint="name a folder, or write a single log")
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(2)}"
        # tasks may run in other folders, where a relative path would mean another place
        job = cls(replace(options, path=place.uri), stamp, overwrite, there == fs.FileType.NotFound)
        try:
            job._open()
        except OSError as error:
            raise job._unwritable(error) from error
        return job

    def _open(self) -> None:
        """Makes the hidden folder and in it a log of no messages: as long as that is there, tasks may write."""
        encoder = self._encoder()
        self._place.files.create_dir(self._hidden, recursive=True)
        with self._packed(self._opening) as write:
            write(encoder.start() + encoder.finish())

    # --- in tasks -----------------------------------------------------------------------------------------------------

    def write(self, batches: Iterable[pa.RecordBatch], partition: int, attempt: int) -> Part | None:
        """Writes the messages of one partition; None where there are none.

        Args:
            batches: with a column `message`.
            partition, attempt: what the task is.

        Raises:
            UnsupportedByFormat: naming the partition and the message; see `Encoder.encode`.
            LogError: likewise; see `to_messages`.
            UsageError: the job has ended, or its folder cannot be reached from here.
        """
        encoder = self._encoder()
        opening = encoder.start()
        with ExitStack() as stack:
            write: Callable[[bytes], object] | None = None
            part = Part(partition, f"{self._hidden}/{partition:05d}-{attempt}")
            first = 1
            for batch in batches:
                if not batch.num_rows:
                    continue
                if write is None:
                    write = stack.enter_context(self._file(part.path))
                    if not self.options.single:
                        write(opening)
                for data in _encoded(batch, first, encoder, f"partition {partition}", lenient=self.options.lenient):
                    write(data)
                first += batch.num_rows
            if write is None:
                return None
            write(encoder.finish())
        return part

    def _encoder(self) -> Encoder:
        options = self.options
        encoding = EncoderOptions(options.prefixes, graphs=options.graphs, own=options.own)
        return encoder_for(options.format, options.syntax, encoding)

    # --- on the driver ------------------------------------------------------------------------------------------------

    def commit(self, parts: Iterable[Part]) -> None:
        """Gives the logs their names, and removes what is to be overwritten and what tasks have left.

        Raises:
            UsageError: what a task has written cannot be reached from here.
        """
        parts = sorted(parts)
        try:
            if self.options.single:
                self._join(parts)
            else:
                self._move(parts or [Part(-1, self._opening)])
        except OSError as error:
            raise UsageError(
                f"cannot put logs at {self.options.path}: {error}",
                hint="write to a place that the driver and all executors share",
            ) from error
        self._clean()

    def _move(self, parts: Sequence[Part]) -> None:
        """Each part to its name; what was there goes when all are there."""
        place, options = self._place, self.options
        before = [info.path for info in visible_below(place, place.path)] if self.overwrite else []
        moved: list[str] = []
        try:
            for number, part in enumerate(parts):
                path = f"{place.path}/{self.stamp}-{number:05d}.{options.format.extension}{options.packing}"
                place.files.move(part.path, path)
                moved.append(path)
        except OSError:
            for path in moved:
                place.files.delete_file(path)
            raise
        for path in before:
            place.files.delete_file(path)
        with place.files.open_output_stream(f"{place.path}/{_SUCCESS}", compression=None):
            pass

    def _join(self, parts: Sequence[Part]) -> None:
        """The parts as one log: what each format writes is a log when it is joined, and so are packed ones."""
        files, whole = self._place.files, f"{self._hidden}/whole"
        paths = [part.path for part in parts]
        if not paths or self._encoder().start():
            paths.insert(0, self._opening)
        with files.open_output_stream(whole, compression=None) as target:
            for path in paths:
                with files.open_input_stream(path, compression=None) as source:
                    while chunk := source.read(_CHUNK_BYTES):
                        target.write(chunk)
        files.move(whole, self._place.path)

    def abort(self) -> None:
        """Removes what tasks have left, and the folder of the logs if it is new."""
        self._clean()
        files, folder = self._place.files, self._folder
        if self.options.single or not self.fresh or files.get_file_info(folder).type == fs.FileType.NotFound:
            return
        if not files.get_file_info(fs.FileSelector(folder)):
            files.delete_dir(folder)

    def _clean(self) -> None:
        """Removes the hidden folder: first what says that the job runs, so that no task can write unseen."""
        files = self._place.files
        if self._runs():
            files.delete_file(self._opening)
        remove_folder(self._place.at(self._hidden))

    # --- places -------------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> Place:
        return place_of(self.options.path)

    @property
    def _folder(self) -> str:
        """Returns the folder of the logs."""
        return dirname(self._place.path) if self.options.single else self._place.path

    @property
    def _hidden(self) -> str:
        return f"{self._folder}/.{self.stamp}"

    @property
    def _opening(self) -> str:
        return f"{self._hidden}/opening"

    def _runs(self) -> bool:
        return bool(self._place.files.get_file_info(self._opening).type == fs.FileType.File)

    @contextmanager
    def _file(self, path: str) -> Iterator[Callable[[bytes], object]]:
        """Yields a writer of a task's file, which is removed if the block raises or the job has ended."""
        files = self._place.files
        if not self._runs():
            raise self._ended()
        try:
            with self._packed(path) as write:
                yield write
            if not self._runs():
                raise self._ended()
        except BaseException as error:
            with suppress(FileNotFoundError):  # it was not made, or went with the folder
                files.delete_file(path)
            if isinstance(error, OSError):
                raise self._unwritable(error) from error
            raise

    @contextmanager
    def _packed(self, path: str) -> Iterator[Callable[[bytes], object]]:
        """Yields a writer of a new file with the compression of the options."""
        with self._place.files.open_output_stream(path, compression=None) as raw:
            if self.options.packing:
                with opener(self.options.packing)(raw, "wb") as packed:
                    yield packed.write
            else:
                yield raw.write

    def _unwritable(self, error: OSError) -> CannotWrite:
        return CannotWrite(f"cannot write to {self.options.path}: {error}", hint="choose another place")

    def _ended(self) -> UsageError:
        return UsageError(
            f"cannot write to {self.options.path}: the job has ended, or its folder is not seen from here",
            hint="write to a place that the driver and all executors share",
        )


def _encoded(batch: pa.RecordBatch, first: int, encoder: Encoder, task: str, *, lenient: bool) -> Iterator[bytes]:
    """The messages of a batch as a log has them; `first` is the number of the first."""
    texts = batch.column("message").to_pylist()
    try:
        if None in texts:
            number = first + texts.index(None)
            raise LogError("NULL", number=number, hint="filter it out, or make it '' if it is empty")
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
            yield encoder.encode(message)
        except UnsupportedByFormat as error:
            raise UnsupportedByFormat(f"in {_row(batch, row, task)}: {error.message}", hint=error.hint) from error


def _row(batch: pa.RecordBatch, row: int, task: str) -> str:
    """Which message it is, as far as the columns tell."""
    keys = [f"{key} {batch.column(key)[row]}" for key in _KEYS if key in batch.schema.names]
    return ", ".join([task, *keys])

"""Writers of the data source `rdfm`: of tables, as the logs of a run (`runs`) or as one log, and the sinks of
Structured Streaming, a folder with a log for each partition of a micro-batch, and a stream of a server.

A job of tables counts when the driver has committed its run: a task that fails or runs twice leaves no files, and a job
that fails changes nothing. Spark ends a job while some of its tasks still run: those find that the job has ended, and
remove their files.

Spark runs a micro-batch again if it was killed before it noted that the batch was committed: `write` in other tasks,
and `commit`, which may also run twice. A folder therefore has a record of each batch, which is written before its logs
get their names: the batch is the logs in it, and logs that were written again are removed. A stream gets messages in
chunks that do not depend on how they arrive, each with a key of query, batch, partition and number, by which the server
recognises those that it has.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, fields, replace
from io import BytesIO
from itertools import chain
from posixpath import dirname
from typing import IO, Any, Final, NamedTuple, cast
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.files.unpacking import opener
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import TransportOptions
from construct_messages.rdf.terms import Lenience
from construct_messages.spark.logs.files import (
    Place,
    files_below,
    is_there,
    kind_of,
    make_folder,
    move,
    place_of,
    remove_file,
    write_bytes,
)
from construct_messages.spark.logs.options import ServerOptions, WriteOptions
from construct_messages.spark.logs.runs import (
    LogFile,
    Mode,
    Run,
    RunRecord,
    counts_of,
    read_record,
    writing,
)

# --- one log --------------------------------------------------------------------------------------


_KEYS: Final = ("file", "block", "ordinal", "sequence")
"""The columns that identify a message."""


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
        with _packed(sums, options.packing) as file:
            if not options.single:
                file.write(start)
            for batch in chain([first], batches):
                encoded = [*_encoded(batch, messages + 1, encoding, task, options.lenient)]
                file.write(b"".join([data for data, _ in encoded]))
                messages += len(encoded)
                quads += sum(size for _, size in encoded)
            file.write(encoding.finish())
    return LogFile(place.path.rpartition("/")[2], sums.bytes, messages, quads, sums.crc32)


def _packed(file: Any, packing: str) -> AbstractContextManager[Any]:
    return opener(packing)(file, "wb") if packing else nullcontext(file)


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
            error.message = f"in {place(row)}: {error.message}"
            raise


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
        error.message = f"in {place(error.number - first)}: {error.message}"
        raise


# --- tables ---------------------------------------------------------------------------------------


@dataclass
class Written(WriterCommitMessage):
    """The log that a task has written, if it has messages that are not in a stream; of a micro-batch also the query."""

    log: LogFile | None
    query: str = ""


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None  # a task has one
    return context


def _logs(messages: Iterable[WriterCommitMessage | None]) -> list[LogFile]:
    """Returns the logs of tasks, in the order of partitions; a lost task sends nothing."""
    logs = [each.log for each in messages if isinstance(each, Written) and each.log is not None]
    return sorted(logs, key=lambda log: log.partition)


@dataclass(frozen=True)
class LogJob(DataSourceArrowWriter):
    """A job that writes one log for each partition that has messages into a folder, or one log of all partitions."""

    options: WriteOptions
    target: Place
    run: Run

    @classmethod
    def begin(cls, options: WriteOptions, *, overwrite: bool) -> LogJob:
        """Starts a job, which `commit` or `abort` ends."""
        target = place_of(options.path, options.s3)
        mode: Mode = "overwrite" if overwrite else "error" if options.alone else "append"
        opening(options)  # which fails if the options do
        with writing(target.uri):
            if options.single:
                _check_file(target, overwrite=overwrite)
                run = Run.begin(target._replace(path=dirname(target.path)))
            else:
                run = Run.begin(target, mode)
            make_folder(run.logs)
        return cls(options, target, run)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = _task()
        return self.write_part(iterator, context.partitionId(), context.taskAttemptId())

    def write_part(
        self, batches: Iterable[pa.RecordBatch], partition: int, attempt: int
    ) -> Written:
        """Writes the messages of one partition, in the column `message`. Errors name the message."""
        name = f"part-{partition:05d}-{attempt}.{self.options.extension}"
        try:
            self._check_runs()
            with writing(self.target.uri):
                log = write_log(
                    self.run.logs / name, batches, self.options, f"partition {partition}"
                )
            self._check_runs()
        except BaseException:
            for folder in (self.run.logs, self.run.place):
                remove_file(folder / name)
            raise
        return Written(log)

    def _check_runs(self) -> None:
        if not self.run.is_running:
            raise UsageError(
                f"cannot write to {self.target.uri}: the job has ended, or its folder is not seen from here",
                hint="write to a place that the driver and all executors share",
            )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Makes the logs those of the folder, or one log, and removes the other files of tasks."""
        logs, options = _logs(messages), self.options
        with writing(self.target.uri):
            if options.single:
                self._join(logs)
            else:
                logs = logs or [self._empty()]
                self.run.commit(options.media_type, counts_of(logs), logs)
        self.run.close()

    def _empty(self) -> LogFile:
        """Writes the log without messages, for a folder without any other log."""
        data, name = opening(self.options), f"part-00000-0.{self.options.extension}"
        self.run.write(self.run.logs / name, data)
        return LogFile(name, len(data), 0, 0, zlib.crc32(data))

    def _join(self, logs: Sequence[LogFile]) -> None:
        """Concatenates the parts to one log, which is valid in every format, and also for compressed logs."""
        whole = self.run.hidden / "whole"
        with whole.files.open_output_stream(whole.path, compression=None) as target:
            if not logs or encoder(self.options).start():
                target.write(opening(self.options))
            self.run.drain(logs, target)
        move(whole, self.target)

    def abort(self, messages: Sequence[WriterCommitMessage | None] = ()) -> None:  # noqa: ARG002 - Spark's
        """Removes the files of tasks, and the folder of the logs if it is new."""
        self.run.close()


def _check_file(target: Place, *, overwrite: bool) -> None:
    there = kind_of(target)
    if there == fs.FileType.Directory:
        raise UsageError(f"{target.uri} is a folder", hint="name a file in it")
    if there == fs.FileType.File and not overwrite:
        raise UsageError(
            f"{target.uri} exists, and a log in one file cannot grow", hint="overwrite it"
        )


# --- micro-batches --------------------------------------------------------------------------------

RECORDED: Final = 100
"""The number of batches whose records are kept: as many as Spark keeps in a checkpoint."""

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
"""The properties by which Spark tells tasks of which streaming query and batch they are."""

_FOLDER: Final = "_batches"
_WRITTEN, _RECORD = ".part", ".json"
_NUMBER: Final = re.compile(r"\d+(?=[-.])")
_NAME: Final = re.compile(r"[\w-]{1,100}", re.ASCII)


class Task(NamedTuple):
    """A task that writes a partition of a micro-batch."""

    query: str
    batch: int
    partition: int

    def __str__(self) -> str:
        return f"batch {self.batch}, partition {self.partition}"

    @classmethod
    def this(cls, options: WriteOptions | ServerOptions) -> Task:
        context = _task()
        query = options.query_id or context.getLocalProperty(QUERY_ID)
        own = options.batch_id
        batch = context.getLocalProperty(BATCH_ID) if own is None else own
        if query is None or batch is None:
            raise UsageError(
                "nothing identifies the micro-batch, so that it could be written once",
                hint="set the options queryId and batchId, or write by writeStream",
            )
        return cls(query, int(batch), context.partitionId())


@dataclass(frozen=True)
class FolderWriter(DataSourceStreamArrowWriter, DataSourceArrowWriter):
    """Writes a log for each partition of a micro-batch that has messages. Of a table, as in `foreachBatch`, options
    identify the batch.

    A batch is in the folder once its record is: `commit` then renames the logs that the record lists, and removes all
    others that were written for the batch. A log that is no longer under its temporary name has been renamed.
    """

    options: WriteOptions

    @classmethod
    def of(cls, options: WriteOptions) -> FolderWriter:
        for name in ("single", "alone"):
            if getattr(options, name):
                raise UsageError(f"{name} is not for a folder that grows", hint="leave it out")
        if options.query_id is not None and not _NAME.fullmatch(options.query_id):
            raise UsageError(
                f"queryId={options.query_id} is not a part of a file's name",
                hint="use up to 100 ASCII letters, digits, - and _",
            )
        place = place_of(options.path, options.s3)
        if kind_of(place) == fs.FileType.File:
            raise UsageError(f"{options.path} is a file", hint="name a folder")
        # tasks may run in another working directory, where a relative path would differ
        return cls(replace(options, path=place.uri))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task, options = Task.this(self.options), self.options
        name = f"{task.batch:09d}-{task.partition:05d}-{task.query}.{options.extension}"
        folder = self._folder(task.query)
        with writing(options.path):
            make_folder(folder)
            # numbers of attempts begin again with each session: a new file must not be taken for a recorded one;
            # after an error, the next commit removes the file
            part = folder / f"{name}.{uuid4().hex}{_WRITTEN}"
            return Written(write_log(part, iterator, options, str(task)), task.query)

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        written = [each for each in messages if isinstance(each, Written)]
        if not written:
            return  # the batch has no partition, and so no message
        query, number = (
            written[0].query,
            (self.options.batch_id or 0) if batchId is None else batchId,
        )
        folder, record = self._folder(query), self._record(query, number)
        with writing(self.options.path):
            if not is_there(record):
                logs = _logs(messages)
                batch = RunRecord(query, self.options.media_type, *counts_of(logs), logs, number)
                write_bytes(record, batch.encoded(), folder / f"{record.path.rpartition('/')[2]}~")
            for log, name in self._named(record).items():
                if is_there(folder / log):
                    move(folder / log, self._place / name)
            _clean(folder, number)

    def logs(self, query: str, batch: int) -> list[str]:
        """Returns the URIs of the logs of a committed batch that have not been removed since."""
        record = self._record(query, batch)
        if not is_there(record):
            return []  # the batch has no partition, and so no message
        places = [self._place / name for name in self._named(record).values()]
        return [place.uri for place in places if is_there(place)]

    def remove(self, logs: Iterable[str]) -> None:
        """Removes logs that `logs` has returned."""
        for uri in logs:
            remove_file(place_of(uri, self.options.s3))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: ARG002 - Spark's
    ) -> None:
        for each in messages:
            if isinstance(each, Written) and each.log is not None:
                remove_file(self._folder(each.query) / each.log.name)

    @property
    def _place(self) -> Place:
        return place_of(self.options.path, self.options.s3)

    def _folder(self, query: str) -> Place:
        """Returns the folder of the records of a query, and of its logs before they have names."""
        return self._place / _FOLDER / query

    def _record(self, query: str, batch: int) -> Place:
        return self._folder(query) / f"{batch:09d}{_RECORD}"

    def _named(self, record: Place) -> dict[str, str]:
        """Returns the final names of the logs in a record, by their temporary names."""
        return {log.name: log.name.rsplit(".", 2)[0] for log in read_record(record).files}


def _clean(folder: Place, batch: int) -> None:
    """Removes logs that no record of the batch or an earlier one lists, and records that are not needed any more."""
    for name in files_below(folder):
        if number := _NUMBER.match(name):
            kept = batch - RECORDED if name.endswith(_RECORD) else batch
            if int(number[0]) <= kept:
                remove_file(folder / name)


# --- streams --------------------------------------------------------------------------------------

_MESSAGES, _CHARACTERS = 1000, 4 << 20  # of a chunk, at most, unless one message is larger


@dataclass(frozen=True)
class ServerWriter(DataSourceStreamArrowWriter, DataSourceArrowWriter):
    """Sends the messages of each partition to a stream, in their order; see the top of the module.

    Elements appear while the batch is running. A batch that runs again must have the same messages in its partitions;
    if it has others, the server refuses the key of the chunk, and the query ends with that error.
    """

    options: ServerOptions

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = Task.this(self.options)
        asyncio.run(self._send(iterator, task))
        return Written(None)

    async def _send(self, batches: Iterable[pa.RecordBatch], task: Task) -> None:
        from construct_messages.feeds.delivery import StreamTarget
        from construct_messages.feeds.transport import Settings

        options = self.options
        shared = {each.name: getattr(options, each.name) for each in fields(TransportOptions)}
        async with aclosing(
            StreamTarget(options.url, Settings(token=options.token, **shared))
        ) as target:
            first = 1
            for number, texts in enumerate(_chunks(batches), 1):
                messages = messages_of(texts, first, lambda _: str(task))
                await target.send(
                    messages, f"{task.query}-{task.batch}-{task.partition}-{number}", None
                )
                first += len(texts)

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        """Does nothing: all messages are in the stream."""

    def abort(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        """Does nothing: the batch will run again, and the server knows its keys."""


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[list[str | None]]:
    """Yields the texts of messages in chunks that depend on the texts only, and not on how Spark cuts batches."""
    texts, size = list[str | None](), 0
    for batch in batches:
        for text in batch.column("message").to_pylist():
            length = len(text or "")
            if texts and (len(texts) == _MESSAGES or size + length > _CHARACTERS):
                yield texts
                texts, size = [], 0
            texts.append(text)
            size += length
    if texts:
        yield texts

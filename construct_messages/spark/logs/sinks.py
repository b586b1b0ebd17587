"""Writers of the data source `rdfm`: of tables, by the jobs of `committer`, and the sinks of Structured Streaming, a
folder with a log for each partition of a micro-batch, and a stream of a server.

Spark runs a micro-batch again if it was killed before it noted that the batch was committed: `write` in other tasks,
and `commit`, which may also run twice. A folder therefore has a record of each batch, which is written before its logs
get their names: the batch is the logs in it, and logs that were written again are removed. A stream gets messages in
chunks that do not depend on how they arrive, each with a key of query, batch, partition and number, by which the server
recognises those that it has.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyarrow import fs
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from construct_messages.errors import UsageError
from construct_messages.rdf.options import TransportOptions
from construct_messages.spark.logs.committer import LogJob, messages_of, write_log
from construct_messages.spark.logs.files import (
    Place,
    is_there,
    place_of,
    read_bytes,
    remove_file,
    write_bytes,
)
from construct_messages.spark.logs.options import ServerOptions, WriteOptions
from construct_messages.spark.logs.runs import LogFile, unwritable

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
        context = TaskContext.get()
        assert context is not None  # a task has one
        query = options.query_id or context.getLocalProperty(QUERY_ID)
        batch = options.batch_id
        if batch is None:
            number = context.getLocalProperty(BATCH_ID)
            batch = None if number is None else int(number)
        if query is None or batch is None:
            raise UsageError(
                "nothing identifies the micro-batch, so that it could be written once",
                hint="set the options queryId and batchId, or write by writeStream",
            )
        return cls(query, batch, context.partitionId())


@dataclass
class Written(WriterCommitMessage):
    """The log that a task has written, if it has messages that are not in a stream; of a micro-batch also the task."""

    log: LogFile | None
    task: Task | None = None


def _written(messages: Iterable[WriterCommitMessage | None]) -> list[tuple[Task, LogFile | None]]:
    """Returns the tasks of a micro-batch and their logs; a lost task sends nothing."""
    found = [each for each in messages if isinstance(each, Written)]
    return [(each.task, each.log) for each in found if each.task is not None]


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogWriter(DataSourceArrowWriter):
    """Writes a table as a job."""

    job: LogJob

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None  # a task has one
        return Written(self.job.write(iterator, context.partitionId(), context.taskAttemptId()))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.job.commit([each.log for each in messages if isinstance(each, Written) and each.log])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's
        self.job.abort()


# --- folders --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FolderWriter(DataSourceStreamArrowWriter):
    """Writes a log for each partition that has messages.

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
        if place.files.get_file_info(place.path).type == fs.FileType.File:
            raise UsageError(f"{options.path} is a file", hint="name a folder")
        # tasks may run in another working directory, where a relative path would differ
        return cls(replace(options, path=place.uri))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = Task.this(self.options)
        folder = self._folder(task.query)
        # numbers of attempts begin again with each session: a new file must not be taken for a recorded one
        name = f"{task.batch:09d}-{task.partition:05d}-{uuid4().hex}{_WRITTEN}"
        try:
            folder.files.create_dir(folder.path, recursive=True)
            # after an error, the next commit removes the file
            place = folder.at(f"{folder.path}/{name}")
            return Written(write_log(place, iterator, self.options, str(task)), task)
        except OSError as error:
            raise unwritable(self.options.path, error) from error

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if not (written := _written(messages)):
            return  # the batch has no partition, and so no message
        query = written[0][0].query
        folder, record = self._folder(query), self._record(query, batchId)
        try:
            if not is_there(record):
                batch = self._batch([(task, log) for task, log in written if log], batchId)
                write_bytes(record, msgspec.json.encode(batch) + b"\n", f"{record.path}~")
            for each in _read(record).files:
                log = folder.at(f"{folder.path}/{each.written}")
                if is_there(log):
                    folder.files.move(log.path, f"{self._place.path}/{each.name}")
            _clean(folder, batchId)
        except OSError as error:
            raise unwritable(self.options.path, error) from error

    def _batch(self, written: Sequence[tuple[Task, LogFile]], number: int) -> Batch:
        extension = f"{self.options.format.extension}{self.options.packing}"
        files = [
            BatchLog(
                log.name, f"{number:09d}-{task.partition:05d}-{task.query}.{extension}", log.bytes
            )
            for task, log in sorted(written, key=lambda each: each[0])
        ]
        logs = [log for _, log in written]
        counts = (sum(log.messages or 0 for log in logs), sum(log.quads or 0 for log in logs))
        return Batch(*counts, files)

    def logs(self, query: str, batch: int) -> list[str]:
        """Returns the URIs of the logs of a committed batch that have not been removed since."""
        place, record = self._place, self._record(query, batch)
        if not is_there(record):
            return []  # the batch has no partition, and so no message
        infos = place.files.get_file_info([f"{place.path}/{e.name}" for e in _read(record).files])
        return [place.at(info.path).uri for info in infos if info.type == fs.FileType.File]

    def remove(self, logs: Iterable[str]) -> None:
        """Removes logs that `logs` has returned."""
        place = self._place
        for uri in logs:
            place.files.delete_file(place_of(uri, self.options.s3).path)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - Spark's
        for task, log in _written(messages):
            if log is not None:
                folder = self._folder(task.query)
                remove_file(folder.at(f"{folder.path}/{log.name}"))

    @property
    def _place(self) -> Place:
        return place_of(self.options.path, self.options.s3)

    def _folder(self, query: str) -> Place:
        """Returns the folder of the records of a query, and of its logs before they have names."""
        place = self._place
        return place.at(f"{place.path}/{_FOLDER}/{query}")

    def _record(self, query: str, batch: int) -> Place:
        folder = self._folder(query)
        return folder.at(f"{folder.path}/{batch:09d}{_RECORD}")


class BatchLog(msgspec.Struct, frozen=True):
    written: str  # its name before the batch is committed
    name: str
    bytes: int


class Batch(msgspec.Struct, frozen=True):
    """The record of a batch."""

    messages: int
    quads: int
    files: Sequence[BatchLog]


def _read(record: Place) -> Batch:
    return msgspec.json.decode(read_bytes(record, record.path), type=Batch)


def _clean(folder: Place, batch: int) -> None:
    """Removes logs that no record of the batch or an earlier one lists, and records that are not needed any more."""
    for info in folder.files.get_file_info(fs.FileSelector(folder.path, allow_not_found=True)):
        number = _NUMBER.match(info.base_name)
        if number is None:
            continue
        is_record = info.base_name.endswith(_RECORD)
        if int(number[0]) <= (batch - RECORDED if is_record else batch):
            remove_file(folder.at(info.path))


# --- streams --------------------------------------------------------------------------------------

_MESSAGES, _CHARACTERS = 1000, 4 << 20  # of a chunk, at most, unless one message is larger


@dataclass(frozen=True)
class ServerWriter(DataSourceStreamArrowWriter):
    """Sends the messages of each partition to a stream, in their order; see the top of the module.

    Elements appear while the batch is running. A batch that runs again must have the same messages in its partitions;
    if it has others, the server refuses the key of the chunk, and the query ends with that error.
    """

    options: ServerOptions

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = Task.this(self.options)
        asyncio.run(self._send(iterator, task))
        return Written(None, task)

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

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Does nothing: all messages are in the stream."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
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


# --- batches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableWriter(DataSourceArrowWriter):
    """Writes a table as a micro-batch that options identify, as in `foreachBatch`."""

    writer: FolderWriter | ServerWriter

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return self.writer.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.commit(messages, self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.abort(messages, self._batch)

    @property
    def _batch(self) -> int:
        return self.writer.options.batch_id or 0

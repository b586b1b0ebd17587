"""Sinks of Structured Streaming: a folder with a log for each partition of a micro-batch, and a stream of a server.

Spark runs a micro-batch again if it was killed before it noted that the batch was committed: `write` in other tasks,
and `commit`, which may also run twice. A folder therefore has a record of each batch, which is written before its logs
get their names: the batch is the logs in it, and logs that were written again are removed. A stream gets messages in
chunks that do not depend on how they arrive, each with a key of query, batch, partition and number, by which the server
recognises those that it has.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Final, NamedTuple, cast
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from construct_messages.errors import CannotWrite, LogError, UsageError
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.files.unpacking import opener
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import TransportOptions
from construct_messages.spark.logs.committer import _encoded
from construct_messages.spark.logs.files import Place, place_of, read_bytes
from construct_messages.spark.logs.options import ServerOptions, WriteOptions

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


class TaskLog(NamedTuple):
    """A log that a task has written under a temporary name."""

    name: str
    bytes: int
    messages: int
    quads: int


@dataclass
class Written(WriterCommitMessage):
    """The log that a task has written; `part` is None if it has no messages, or if they are in a stream already."""

    task: Task
    part: TaskLog | None = None

    @property
    def named(self) -> tuple[int, TaskLog] | None:
        return None if self.part is None else (self.task.partition, self.part)


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
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return Written(task)
        folder = self._folder(task.query)
        # numbers of attempts begin again with each session: a new file must not be taken for a recorded one
        path = f"{folder.path}/{task.batch:09d}-{task.partition:05d}-{uuid4().hex}{_WRITTEN}"
        try:
            folder.files.create_dir(folder.path, recursive=True)
            messages, quads = self._write(folder.at(path), chain([first], batches), task)
            size = folder.files.get_file_info(path).size
        except OSError as error:
            raise _unwritable(self.options.path, error) from error
        return Written(task, TaskLog(path.rpartition("/")[2], size, messages, quads))

    def _write(
        self, place: Place, batches: Iterable[pa.RecordBatch], task: Task
    ) -> tuple[int, int]:
        """Writes a log; returns the numbers of messages and quads. After an error, the next commit removes the file."""
        options = self.options
        encoding = EncoderOptions(options.prefixes, graphs=options.graphs, own=options.own)
        encoder = encoder_for(options.format, options.syntax, encoding)
        messages = quads = 0
        with ExitStack() as stack:
            file = stack.enter_context(place.files.open_output_stream(place.path, compression=None))
            if options.packing:
                file = stack.enter_context(opener(options.packing)(file, "wb"))
            file.write(encoder.start())
            for batch in batches:
                encoded = [
                    *_encoded(batch, messages + 1, encoder, str(task), lenient=options.lenient)
                ]
                file.write(b"".join([data for data, _ in encoded]))
                messages += len(encoded)
                quads += sum(size for _, size in encoded)
            file.write(encoder.finish())
        return messages, quads

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        written = [each for each in messages if isinstance(each, Written)]
        if not written:
            return  # the batch has no partition, and so no message
        folder = self._folder(written[0].task.query)
        record = f"{folder.path}/{batchId:09d}{_RECORD}"
        try:
            if folder.files.get_file_info(record).type == fs.FileType.NotFound:
                self._record(folder, record, sorted(filter(None, (w.named for w in written))))
            self._name(folder, json.loads(read_bytes(folder, record)))
            _clean(folder, batchId)
        except OSError as error:
            raise _unwritable(self.options.path, error) from error

    def _record(self, folder: Place, record: str, named: Sequence[tuple[int, TaskLog]]) -> None:
        """Writes the record of a batch, whole or not at all."""
        options = self.options
        extension = f"{options.format.extension}{options.packing}"
        query = folder.path.rpartition("/")[2]
        batch = record.rpartition("/")[2].removesuffix(_RECORD)
        document = {
            "messages": sum(part.messages for _, part in named),
            "quads": sum(part.quads for _, part in named),
            "files": [
                {
                    "written": part.name,
                    "name": f"{batch}-{partition:05d}-{query}.{extension}",
                    "bytes": part.bytes,
                }
                for partition, part in named
            ],
        }
        folder.files.create_dir(folder.path, recursive=True)
        with folder.files.open_output_stream(f"{record}~", compression=None) as file:
            file.write(json.dumps(document).encode() + b"\n")
        folder.files.move(f"{record}~", record)

    def _name(self, folder: Place, document: dict[str, Any]) -> None:
        """Gives the logs of a record their names, those that do not have them yet."""
        for each in document["files"]:
            path = f"{folder.path}/{each['written']}"
            if folder.files.get_file_info(path).type != fs.FileType.NotFound:
                folder.files.move(path, f"{self._place.path}/{each['name']}")

    def logs(self, query: str, batch: int) -> list[str]:
        """Returns the URIs of the logs of a committed batch that have not been removed since."""
        folder, place = self._folder(query), self._place
        path = f"{folder.path}/{batch:09d}{_RECORD}"
        if folder.files.get_file_info(path).type == fs.FileType.NotFound:
            return []  # the batch has no partition, and so no message
        files = json.loads(read_bytes(folder, path))["files"]
        paths = [f"{place.path}/{each['name']}" for each in files]
        infos = place.files.get_file_info(paths)
        return [place.at(info.path).uri for info in infos if info.type == fs.FileType.File]

    def remove(self, logs: Iterable[str]) -> None:
        """Removes logs that `logs` has returned."""
        place = self._place
        for uri in logs:
            place.files.delete_file(place_of(uri, self.options.s3).path)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - Spark's
        for each in messages:
            if isinstance(each, Written) and each.part is not None:
                folder = self._folder(each.task.query)
                with suppress(FileNotFoundError):
                    folder.files.delete_file(f"{folder.path}/{each.part.name}")

    @property
    def _place(self) -> Place:
        return place_of(self.options.path, self.options.s3)

    def _folder(self, query: str) -> Place:
        """Returns the folder of the records of a query, and of its logs before they have names."""
        place = self._place
        return place.at(f"{place.path}/{_FOLDER}/{query}")


def _clean(folder: Place, batch: int) -> None:
    """Removes logs that no record of the batch or an earlier one lists, and records that are not needed any more."""
    for info in folder.files.get_file_info(fs.FileSelector(folder.path, allow_not_found=True)):
        number = _NUMBER.match(info.base_name)
        if number is None:
            continue
        is_record = info.base_name.endswith(_RECORD)
        if int(number[0]) <= (batch - RECORDED if is_record else batch):
            with suppress(FileNotFoundError):
                folder.files.delete_file(info.path)


def _unwritable(path: str, error: OSError) -> CannotWrite:
    return CannotWrite(
        f"cannot write to {path}: {error.strerror or error}",
        hint="name a place that the driver and all executors share, and that has room",
    )


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
        return Written(task)

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
                messages = _messages(texts, first, task)
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


def _messages(texts: Sequence[str | None], first: int, task: Task) -> list[Message]:
    """Returns the messages of texts; errors name the task, and number the messages of its partition."""
    try:
        if None in texts:
            number = first + texts.index(None)
            raise LogError(
                "NULL", number=number, hint="filter it out, or make it '' if it is empty"
            )
        return to_messages(cast("Sequence[str]", texts), first)
    except LogError as error:
        raise LogError(
            f"in {task}: {error.message}",
            number=error.number,
            position=error.position,
            hint=error.hint,
        ) from error


# --- batches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableWriter(DataSourceArrowWriter):
    """Writes a table as a micro-batch that options identify, as in `foreachBatch`."""

    writer: FolderWriter | ServerWriter

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return self.writer.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.commit(messages, _number(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.abort(messages, _number(messages))


def _number(messages: Iterable[WriterCommitMessage | None]) -> int:
    return next((each.task.batch for each in messages if isinstance(each, Written)), 0)

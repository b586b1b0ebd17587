"""The data source `rdfm`: logs as rows of messages, and rows of messages as logs, by Spark's Python Data Source API.

Only the classes that Spark calls are here; `blocks` reads and `committer` writes, both without Spark. A future
streaming
source also belongs here: a `streamReader`, whose offset is the bytes read of each file, returns `Block`s as `reader`
does, and a `streamWriter` is `LogWriter` with the number of a batch in the names of its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from construct_messages.rdf.errors import UsageError
from construct_messages.spark.logs.blocks import Block, partitions, texts_of
from construct_messages.spark.logs.committer import LogJob, Part
from construct_messages.spark.logs.files import find
from construct_messages.spark.logs.options import ReadOptions, WriteOptions

SCHEMA: Final = StructType(
    [
        StructField("file", StringType()),
        StructField("block", LongType()),
        StructField("ordinal", LongType()),
        StructField("message", StringType()),
    ]
)
_ARROW: Final = pa.schema(
    [
        ("file", pa.string()),
        ("block", pa.int64()),
        ("ordinal", pa.int64()),
        ("message", pa.string()),
    ]
)
# of a batch: the most rows, and about the most characters; larger batches are slower, as their memory is always new
_ROWS: Final = 1 << 13
_CHARACTERS: Final = 1 << 20


class LogSource(DataSource):
    """Logs as a data source; see `register`.

    Attributes:
        session: settings of the session for S3, as options; a data source sees only its own options.
    """

    session: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        """Returns the name of the data source."""
        return "rdfm"

    def schema(self) -> StructType:
        """Returns the columns of a log that is read."""
        return SCHEMA

    def reader(self, schema: StructType) -> LogReader:
        """Reads logs.

        Raises:
            UsageError: an invalid option, or a schema other than that of logs.
        """
        if schema != SCHEMA:
            raise UsageError(
                "logs have a schema of their own",
                hint="leave schema() out, and select what you need",
            )
        return LogReader(ReadOptions.of({**self.session, **self.options}))

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        """Writes logs.

        Raises:
            UsageError: an invalid option, or no column of messages.
        """
        if "message" not in schema.names or not isinstance(schema["message"].dataType, StringType):
            raise UsageError(
                f"no column `message` of strings among {', '.join(schema.names)}",
                hint="give each message as lines of N-Quads in a column of that name",
            )
        return LogWriter(
            LogJob.begin(WriteOptions.of({**self.session, **self.options}), overwrite=overwrite)
        )


@dataclass
class Blocks(InputPartition):
    """The blocks that a task reads.

    Args:
        value: the blocks, in order.
    """

    value: tuple[Block, ...]


class LogReader(DataSourceReader):
    """Reads logs block by block.

    Args:
        options: the options of reading.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the blocks for each task.

        Raises:
            UsageError: there are no logs at the paths.
        """
        files = dict.fromkeys(
            file for path in self._options.paths for file in find(path, self._options.s3)
        )
        # without partitions, Spark makes an empty one of its own
        return [Blocks(blocks) for blocks in partitions(sorted(files), self._options) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the messages of some blocks, in order."""
        for block in partition.value:
            first, texts, size = 0, list[str](), 0
            for text in texts_of(block, self._options):
                texts.append(text)
                size += len(text)
                if len(texts) == _ROWS or size >= _CHARACTERS:
                    yield _batch(block, first, texts)
                    first, texts, size = first + len(texts), [], 0
            if texts:
                yield _batch(block, first, texts)


def _batch(block: Block, first: int, texts: list[str]) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.repeat(pa.scalar(block.uri), len(texts)),
            pa.repeat(pa.scalar(block.start), len(texts)),
            pa.array(range(first, first + len(texts)), pa.int64()),
            pa.array(texts, pa.string()),
        ],
        schema=_ARROW,
    )


@dataclass
class Written(WriterCommitMessage):
    """The result of a task that writes.

    Args:
        part: its file; None: it had no messages.
    """

    part: Part | None


class LogWriter(DataSourceArrowWriter):
    """Writes a log for each partition, or one log of all partitions.

    Args:
        job: the job.
    """

    def __init__(self, job: LogJob) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes the messages of a partition into a temporary file in the same folder.

        Raises:
            UnsupportedByFormat: a message that the format has no syntax for.
            LogError: a text that is not a message.
        """
        context = TaskContext.get()
        assert context is not None  # a task has one
        return Written(self._job.write(iterator, context.partitionId(), context.taskAttemptId()))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Renames the files of the tasks to their final names."""
        self._job.commit(
            [written.part for written in messages if isinstance(written, Written) and written.part]
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - a lost task sends none
        """Removes all files of the tasks."""
        self._job.abort()

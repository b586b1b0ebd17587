"""The data source `rdfm`: logs as rows of messages, and rows of messages as logs, by Spark's Python Data Source API.

Reading is here. `streams` reads logs as a stream, and `sinks` has the writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Final, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSourceReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import MESSAGE_BYTES, DecoderOptions
from construct_messages.logs.lines.decoder import LinesDecoder, to_text
from construct_messages.logs.reading import read_log
from construct_messages.rdf.files.unpacking import COMPRESSIONS, packing_of
from construct_messages.rdf.formats import RDFM, Format, Syntax
from construct_messages.rdf.formats.lookup import (
    find_format,
    find_log,
    format_of_file,
    is_archive_name,
    is_media_type,
)
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience
from construct_messages.spark.logs.files import File, read_from
from construct_messages.spark.logs.options import ReadOptions
from construct_messages.spark.logs.runs import logs_at

# --- splitting ------------------------------------------------------------------------------------
# Splitting of N-Triples and N-Quads logs: the messages that belong to a range of bytes. No I/O, no Spark.
#
# A range owns the messages after the delimiters whose lines begin in it; the first range also owns the text before
# the first delimiter. So each message has one owner for every split of the log, even within a delimiter, a character
# or a CRLF. A message that continues past the end of its range is read to its end. Lines are decoded by
# `LinesDecoder`; only line ends are looked for here. RDF Messages, section 3, and the first draft, section 3.1.

_LINE_END: Final = re.compile(rb"\r\n?|\n")


def messages_of(
    chunks: Iterable[bytes],
    start: int,
    end: int,
    *,
    format: Format,
    syntax: Syntax | None = None,
    options: DecoderOptions | None = None,
) -> Iterator[Message]:
    r"""Yields the messages that a range of a log owns, in order; its end is excluded.

    The chunks begin with the byte before `start`, or with the log, and are read only as far as needed. Numbers of
    messages and lines in errors count from the first line that begins in the range.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> log = b"# @message\n<urn:a> <urn:p> <urn:o> .\n# @message\n<urn:b> <urn:p> <urn:o> .\n"
    >>> for start, end in ((0, 20), (20, 60), (60, len(log))):
    ...     print(*messages_of([log[max(start - 1, 0) :]], start, end, format=N_TRIPLES))
    <Message of 1 quad: <urn:a> <urn:p> <urn:o> .>
    <Message of 1 quad: <urn:b> <urn:p> <urn:o> .>
    <BLANKLINE>
    """
    options = options or DecoderOptions()
    placed = _placed(chunks, max(start - 1, 0))
    if start == 0:
        return _read_split(LinesDecoder(format, syntax, options), placed, end)
    decoder = LinesDecoder(format, syntax or RDFM, options, continued=True)
    # the first is the rest of a message that began before the range, or of its delimiter
    return islice(_read_split(decoder, _from_line(placed, end), end, continued=True), 1, None)


def announced_in(
    chunks: Iterable[bytes], format: Format, *, message_bytes: int = MESSAGE_BYTES
) -> Syntax | None:
    r"""Returns the syntax that a log declares before its first statement; None: no syntax."""
    line = LinesDecoder(format, None, DecoderOptions(message_bytes=message_bytes))
    for _, chunk in _placed(chunks, 0):
        for piece in chunk.splitlines(keepends=True):
            messages = [*line.feed(_plain(piece))]
            if _LINE_END.search(piece):
                messages += line.close()
                if messages or line.syntax:
                    return line.syntax
                line = LinesDecoder(format, None, DecoderOptions(message_bytes=message_bytes))
    return None


def _read_split(
    decoder: LinesDecoder, placed: Iterator[tuple[int, bytes]], end: int, *, continued: bool = False
) -> Iterator[Message]:
    """Yields the messages up to the first delimiter on a line that begins at `end` or after it.

    If the log has begun before (`continued`), no message is owned without a delimiter before `end`.
    """
    last: int | None = None  # the last delimiter before `end`, once that is reached
    for place, chunk in placed:
        rest = chunk
        if last is None:
            cut = _line_start(chunk, end - place)
            yield from decoder.feed(_plain(chunk[:cut]))
            if cut is None:
                continue
            last, rest = decoder.delimiter, chunk[cut:]
            if continued and not last:
                return
        for line in rest.splitlines(keepends=True):
            yield from decoder.feed(_plain(line))
            if decoder.delimiter != last:
                return
    yield from decoder.close()


def _line_start(chunk: bytes, place: int) -> int | None:
    """Returns the start of the first line of a chunk that begins at a place or after it, or None."""
    line_end = _LINE_END.search(chunk, max(place - 1, 0))
    return line_end.end() if line_end else None


def _from_line(placed: Iterator[tuple[int, bytes]], end: int) -> Iterator[tuple[int, bytes]]:
    """Yields the chunks after the first line end; nothing if that is at `end` or after it."""
    for place, chunk in placed:
        if (line_end := _LINE_END.search(chunk)) is None:
            continue
        place += line_end.end()
        if place < end:
            yield place, chunk[line_end.end() :]
            yield from placed
        return


def _placed(chunks: Iterable[bytes], place: int) -> Iterator[tuple[int, bytes]]:
    """Yields chunks with their places; none ends within a CRLF, and a missing line end is added to the last line."""
    held, lacks_end = b"", True
    for chunk in chunks:
        lacks_end = (
            not chunk.endswith(b"\n") if chunk else lacks_end
        )  # a second line end would count towards the size of a message
        chunk = held + chunk
        held = b"\r" if chunk.endswith(b"\r") else b""
        if held:
            chunk = chunk[:-1]
        yield place, chunk
        place += len(chunk)
    if lacks_end:
        yield place, held + b"\n"


def _plain(data: bytes) -> bytes:
    """Returns data with LF for each line end: after a CR, a decoder would wait for the next byte."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


# --- blocks ---------------------------------------------------------------------------------------
# Blocks, the parts of logs that a task reads, and their messages as strings. No Spark here.
#
# N-Triples and N-Quads logs without compression are split into ranges of bytes (`splitting`). Any other log is one
# block: a line of it depends on all lines before it (prefixes, contexts, tables, strings over many lines), and packed
# logs cannot be read from the middle.


class Block(NamedTuple):
    """Some bytes of a log."""

    uri: str
    start: int
    end: int | None  # after the last byte; None: the block is the whole log
    written: int = 0  # when the log was last written, in nanoseconds; 0: not known

    def __str__(self) -> str:
        return f"{self.uri} from byte {self.start}" if self.start else self.uri

    def labels(self, *, of_log: bool) -> Labels:
        """Returns the labels of its nodes: equal in a task that runs again, different after the log was overwritten.

        Those of a log are the same in all its blocks; otherwise each message has its own, as messages are counted in
        their block.
        """
        return Labels.at(f"{self.written} {self.uri if of_log else self}")


def partitions(files: Iterable[File], options: ReadOptions) -> list[tuple[Block, ...]]:
    """Returns the blocks of logs, in order; several small ones together.

    >>> files = [File("a.nq", 250), File("b.trig", 250), File("c.nt.gz", 30), File("d.nt", 30)]
    >>> for blocks in partitions(files, ReadOptions((), max_partition_bytes=100)):
    ...     print(*blocks, sep=", ")
    a.nq
    a.nq from byte 100
    a.nq from byte 200
    b.trig
    c.nt.gz, d.nt
    """
    parts: list[tuple[Block, ...]] = []
    room = 0
    for file in files:
        for block in _blocks(file, options):
            size = (file.size if block.end is None else block.end) - block.start
            if parts and size <= room:
                parts[-1] += (block,)
                room -= size
            else:
                parts.append((block,))
                room = options.max_partition_bytes - size
    return parts


def _blocks(file: File, options: ReadOptions) -> Iterator[Block]:
    if _splittable(file.uri, options) is None:
        yield Block(file.uri, 0, None, file.written)
        return
    for start in range(0, file.size, options.max_partition_bytes):
        yield Block(
            file.uri, start, min(start + options.max_partition_bytes, file.size), file.written
        )


def _splittable(uri: str, options: ReadOptions) -> Format | None:
    """Returns the format of a log; None if the log cannot be split."""
    if uri.lower().endswith(tuple(COMPRESSIONS)) or is_archive_name(uri):
        return None
    format, syntax = find_format(options.format) if options.format else (format_of_file(uri), None)
    if (
        options.format
        and is_media_type(options.format)
        and syntax is None
        and options.syntax is None
    ):
        return None  # a plain document, unless the log itself announces messages
    return format if format is not None and format.line_based else None


def texts_of(block: Block, options: ReadOptions) -> Iterator[str]:
    """Yields the messages that a block owns, in order, each as text. Errors name the block."""
    lenience = Lenience() if options.lenient else None
    try:
        yield from map(to_text, _read_block(block, options, lenience))
    except (LogError, LimitExceeded) as error:
        error.message = f"in {block}: {error.message}"
        raise
    finally:
        if lenience is not None:
            lenience.report(str(block))


def _read_block(block: Block, options: ReadOptions, lenience: Lenience | None) -> Iterable[Message]:
    chunks = read_from(block.uri, s3=options.s3)
    first = next(chunks, b"")
    chunks = chain([first], chunks)
    format = None if block.end is None else _splittable(block.uri, options)
    # a compressed log need not have the extension of its compression
    if block.end is None or format is None or packing_of(first):
        return () if block.start else _whole(block, chunks, options)
    syntax = _announced(format, options)
    if block.start:
        syntax = syntax or announced_in(chunks, format, message_bytes=options.message_bytes)
        chunks = read_from(block.uri, block.start - 1, options.s3)
    return messages_of(
        chunks,
        block.start,
        block.end,
        format=format,
        syntax=syntax,
        options=DecoderOptions(
            message_bytes=options.message_bytes,
            labels=block.labels(
                of_log=options.shared_labels is not False
                and (syntax is None or syntax.label == RDFM.label)
            ),
            shared_labels=options.shared_labels,
            lenience=lenience,
        ),
    )


def _whole(block: Block, chunks: Iterator[bytes], options: ReadOptions) -> Iterator[Message]:
    return read_log(
        cast("IO[bytes]", _Named(block.uri, chunks)),
        options.format,
        syntax=options.syntax,
        base=options.base,
        contexts=options.contexts,
        message_bytes=options.message_bytes,
        label_prefix=block.labels(of_log=True).prefix,
        shared_labels=options.shared_labels,
        lenient=options.lenient,
    )


class _Named:
    """The part of a file that `read_log` needs: the name may determine the format."""

    def __init__(self, name: str, chunks: Iterator[bytes]) -> None:
        self.name, self._chunks = name, chunks

    def read(self, _size: int) -> bytes:
        return next(self._chunks, b"")


def _announced(format: Format, options: ReadOptions) -> Syntax | None:
    if options.syntax is not None:
        return find_log(options.format or format.extension, options.syntax)[1]
    return find_format(options.format)[1] if options.format else None


# --- source ---------------------------------------------------------------------------------------

SCHEMA: Final = (
    StructType()
    .add("file", "string")
    .add("block", "long")
    .add("ordinal", "long")
    .add("message", "string")
)
_ARROW: Final = pa.schema(
    [
        ("file", pa.string()),
        ("block", pa.int64()),
        ("ordinal", pa.int64()),
        ("message", pa.string()),
    ]
)
ROWS: Final = 1 << 13
"""Of a batch: the most rows. Larger batches are slower, as their memory is always new."""
_CHARACTERS: Final = 1 << 20


@dataclass
class Blocks(InputPartition):
    value: tuple[Block, ...]


class LogReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        files = dict.fromkeys(
            file for path in self._options.paths for file in logs_at(path, self._options.s3)
        )
        # without partitions, Spark itself makes an empty one
        return [Blocks(blocks) for blocks in partitions(sorted(files), self._options) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for block in partition.value:
            first, texts, size = 0, list[str](), 0
            for text in texts_of(block, self._options):
                texts.append(text)
                size += len(text)
                if len(texts) == ROWS or size >= _CHARACTERS:
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


# --- sequence -------------------------------------------------------------------------------------


def with_sequence(messages: DataFrame) -> DataFrame:
    """Adds a column `sequence` to messages: 0, 1, 2, … in the order of (file, block, ordinal), without gaps.

    Blocks are counted first, so the logs are read twice, and no message moves between partitions.

    Args:
        messages: a DataFrame with the columns `file`, `block` and `ordinal`, with all rows of its logs.

    >>> messages = spark.createDataFrame([("a.nq", 0, 0), ("a.nq", 0, 1), ("b.nq", 0, 0)], ["file", "block", "ordinal"])
    >>> sorted(row["sequence"] for row in with_sequence(messages).collect())
    [0, 1, 2]
    """
    counted = messages.groupBy("file", "block").agg(F.count("*").alias("messages"))
    # the blocks alone are few enough for one task
    before = Window.orderBy("file", "block").rowsBetween(Window.unboundedPreceding, -1)
    first = counted.select(
        "file", "block", F.coalesce(F.sum("messages").over(before), F.lit(0)).alias("first")
    )
    return (
        messages.join(F.broadcast(first), ["file", "block"])
        .withColumn("sequence", F.col("first") + F.col("ordinal"))
        .drop("first")
    )

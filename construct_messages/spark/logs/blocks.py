"""Blocks, the parts of logs that a task reads, and their messages as strings. No Spark here.

N-Triples and N-Quads logs without compression are split into ranges of bytes (`splitting`). Any other log is one block:
a line of it depends on all lines before it (prefixes, contexts, tables, strings over many lines), and packed logs
cannot be read from the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, NamedTuple, cast

from construct_messages.logs import DecoderOptions
from construct_messages.logs.lines.texts import to_text
from construct_messages.logs.reading import read_log
from construct_messages.rdf.errors import LimitExceeded, LogError
from construct_messages.rdf.files.compression import COMPRESSIONS
from construct_messages.rdf.files.unpacking import packing_of
from construct_messages.rdf.formats import RDFM, Format, Syntax
from construct_messages.rdf.formats.file_names import format_of_file, is_archive_name
from construct_messages.rdf.formats.lookup import find_format, find_log, is_media_type
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience
from construct_messages.spark.logs.files import File, read_from
from construct_messages.spark.logs.options import ReadOptions
from construct_messages.spark.logs.splitting import announced_in, messages_of


class Block(NamedTuple):
    """Some bytes of a log.

    Args:
        uri: the URI of the log.
        start: the offset of the first byte.
        end: the offset after the last byte; None: the block is the whole log.
        written: when the log was last written, in nanoseconds; 0: not known.
    """

    uri: str
    start: int
    end: int | None
    written: int = 0

    def __str__(self) -> str:
        return f"{self.uri} from byte {self.start}" if self.start else self.uri

    def labels(self, *, of_log: bool) -> Labels:
        """Returns the labels of its nodes: equal in a task that runs again, different after the log was overwritten.

        Args:
            of_log: whether all blocks of the log have the same labels; otherwise each message has its own labels, as
                messages are counted within their block.
        """
        return Labels.at(f"{self.written} {self.uri if of_log else self}")


def partitions(files: Iterable[File], options: ReadOptions) -> list[tuple[Block, ...]]:
    """Returns the blocks of logs, in order; several small ones together.

    >>> files = [File("a.nq", 250), File("b.trig", 250), File("c.nt.gz", 30), File("d.nt", 30)]
    >>> for blocks in partitions(files, ReadOptions((), partition_bytes=100)):
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
                room = options.partition_bytes - size
    return parts


def _blocks(file: File, options: ReadOptions) -> Iterator[Block]:
    if _splittable(file.uri, options) is None:
        yield Block(file.uri, 0, None, file.written)
        return
    for start in range(0, file.size, options.partition_bytes):
        yield Block(file.uri, start, min(start + options.partition_bytes, file.size), file.written)


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
    """Yields the messages that a block owns, in order, each as text.

    Raises:
        LogError, LimitExceeded: naming the block; see `read_log` and `messages_of`.
        UsageError, IncompleteResult: the log cannot be read.
    """
    lenience = Lenience() if options.lenient else None
    try:
        yield from map(to_text, _read(block, options, lenience))
    except LogError as error:
        raise LogError(
            f"in {block}: {error.message}",
            number=error.number,
            position=error.position,
            hint=error.hint,
        ) from error
    except LimitExceeded as error:
        raise LimitExceeded(
            f"in {block}: {error.message}", position=error.position, hint=error.hint
        ) from error
    finally:
        if lenience is not None:
            lenience.report(str(block))


def _read(block: Block, options: ReadOptions, lenience: Lenience | None) -> Iterable[Message]:
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
    """Returns the syntax that the options announce."""
    if options.syntax is not None:
        return find_log(options.format or format.extension, options.syntax)[1]
    return find_format(options.format)[1] if options.format else None

"""Sources of Structured Streaming: a folder of logs that grows by whole files, and a stream of a server.

Offsets are all that Spark keeps of a source. That of a folder names its files, each with its size and time; that of a
stream is the sequence of an element. Both are read again between the same offsets after a failure, so a file
that has changed, and elements that were removed, end the query. `source` reads the parts of files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias
from urllib.request import Request

import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from construct_messages.errors import SourceError, UsageError
from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.logs.lines.decoder import to_text
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.wire import Header, Parameter, Property
from construct_messages.spark.logs.files import File, place_of
from construct_messages.spark.logs.options import FolderStreamOptions, ServerStreamOptions
from construct_messages.spark.logs.runs import logs_at
from construct_messages.spark.logs.source import (
    ROWS,
    Blocks,
    LogReader,
    partitions,
)

Offset: TypeAlias = dict[str, Any]

# --- folders --------------------------------------------------------------------------------------


@dataclass
class FileBlocks(Blocks):
    """Blocks of files, with the files as they were listed."""

    files: Mapping[str, File]


class FolderStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The logs of folders, each read once when it has appeared, the oldest first.

    An offset has all files of the folders so far, by URI. Files that were removed since are left out of the next one.
    """

    def __init__(self, options: FolderStreamOptions) -> None:
        self._options, self._logs = options, LogReader(options)
        self._available: set[str] | None = None  # None: all files, whenever they appear

    def initialOffset(self) -> Offset:
        return {"files": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.max_files_per_trigger is not None:
            return ReadMaxFiles(options.max_files_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._available = {file.uri for file in self._listed()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        known, listed = start["files"], self._listed()
        for file in listed:
            if (before := known.get(file.uri, version := _version(file))) != version:
                raise _changed(file.uri, before, version)
        new = sorted(
            (
                file
                for file in listed
                if file.uri not in known
                and (self._available is None or file.uri in self._available)
            ),
            key=lambda file: (file.written, file.uri),
        )
        if not new:
            return start  # even if files were removed: another offset would be another batch
        kept = {file.uri for file in listed}
        files = {uri: version for uri, version in known.items() if uri in kept}
        return {"files": files | {file.uri: _version(file) for file in _admitted(new, limit)}}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        files = {
            uri: File(uri, *map(int, version.split()))
            for uri, version in end["files"].items()
            if uri not in start["files"]
        }
        return [
            FileBlocks(blocks, {block.uri: files[block.uri] for block in blocks})
            for blocks in partitions(sorted(files.values()), self._options)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FileBlocks)  # as `partitions` made it
        for block in partition.value:
            self._check(partition.files[block.uri])
            yield from self._logs.read(Blocks((block,)))
            self._check(partition.files[block.uri])

    def _check(self, file: File) -> None:
        place = place_of(file.uri, self._options.s3)
        info = place.files.get_file_info(place.path)
        if info.type == fs.FileType.NotFound:
            raise SourceError(
                f"{file.uri} was removed before it was read",
                hint="restore it: its messages are part of the batch",
            )
        found = _version(File(file.uri, info.size, info.mtime_ns or 0))
        if found != _version(file):
            raise _changed(file.uri, _version(file), found)

    def _listed(self) -> list[File]:
        options = self._options
        return [*{file for path in options.paths for file in logs_at(path, options.s3, grows=True)}]


def _version(file: File) -> str:
    return f"{file.size} {file.written}"


def _changed(uri: str, before: str, now: str) -> SourceError:
    (size, _), (later, _) = before.split(), now.split()
    change = f"it had {size} bytes, and has {later}" if size != later else "it was written again"
    return SourceError(
        f"{uri} has changed since it was listed: {change}",
        hint="write each log elsewhere, such as under a name that begins with a dot, and rename it when it is complete",
    )


def _admitted(files: Sequence[File], limit: ReadLimit) -> Iterable[File]:
    """Returns the files of the next batch, at least one."""
    if isinstance(limit, ReadMaxFiles):
        return islice(files, limit.max_files)
    if isinstance(limit, ReadMaxBytes):
        room, count = limit.max_bytes - files[0].size, 1
        while count < len(files) and files[count].size <= room:
            room -= files[count].size
            count += 1
        return islice(files, count)
    return files


# --- streams of servers ---------------------------------------------------------------------------

_ARROW: Final = pa.schema(
    [("stream", pa.string()), ("sequence", pa.int64()), ("message", pa.string())]
)
_LOG: Final = content_type(N_QUADS, RDFM)


@dataclass
class Range(InputPartition):
    """The elements of a stream after a sequence, up to another one."""

    stream: str
    output: str
    identity: str
    after: int
    last: int


class ServerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The elements of a stream of a server, by their sequences, in ranges that tasks request at the same time.

    An offset is the sequence of the last element, with the identity of the stream.
    """

    def __init__(self, options: ServerStreamOptions) -> None:
        self._options = options
        self._endpoints: tuple[str, str] | None = None
        self._available: int | None = (
            None  # the last sequence to read; None: all, whenever they appear
        )

    def initialOffset(self) -> Offset:
        first, _, identity = self._bounds()
        after = self._options.after
        return {"sequence": first if after is None else after, "identity": identity}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        _, self._available, _ = self._bounds()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        _, last, identity = self._bounds()
        url = self._options.url
        if identity != start["identity"] or last < start["sequence"]:
            raise SourceError(
                f"{url} is not the stream that was read before: it was deleted and created again",
                hint="begin again with another checkpoint",
            )
        if self._available is not None:
            last = min(last, self._available)
        if isinstance(limit, ReadMaxRows):
            last = min(last, start["sequence"] + limit.max_rows)
        return {**start, "sequence": max(last, start["sequence"])}

    def reportLatestOffset(self) -> Offset | None:
        _, last, identity = self._bounds()
        return {"sequence": last, "identity": identity}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        stream, output = self._found()
        after, last, most = start["sequence"], end["sequence"], self._options.max_partition_messages
        return [
            Range(stream, output, end["identity"], first, min(first + most, last))
            for first in range(after, last, most)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)  # as `partitions` made it
        sequence, texts = partition.after, self._texts(partition)
        while some := list(islice(texts, ROWS)):
            sequences = range(sequence + 1, sequence + len(some) + 1)
            yield pa.record_batch(
                [
                    pa.repeat(pa.scalar(partition.stream), len(some)),
                    pa.array(sequences, pa.int64()),
                    pa.array(some, pa.string()),
                ],
                schema=_ARROW,
            )
            sequence += len(some)

    def _texts(self, range: Range) -> Iterator[str]:
        """Yields the messages of a range, all of them or an error; requests the rest if a connection breaks off."""
        from construct_messages.sparql.client.retries import Attempts, Timeouts

        timeouts = Timeouts(None, stall=self._options.idle_seconds)
        after = range.after
        for attempt in Attempts(self._options.retries, timeouts, lambda _: True):
            with attempt:
                for text in self._requested(range, after, timeouts):
                    after += 1
                    yield text

    def _requested(self, range: Range, after: int, timeouts: Any) -> Iterator[str]:
        from construct_messages.sparql.client.urllib_client import receive

        separator = "&" if "?" in range.output else "?"
        asked = f"{Parameter.AFTER}={after}&{Parameter.BEFORE}={range.last + 1}"
        url = f"{range.output}{separator}{asked}"
        options = DecoderOptions(
            message_bytes=self._options.message_bytes,
            labels=Labels.at(f"{range.stream} {range.identity}"),
            keep_lines=True,
        )
        decoder = decoder_for(N_QUADS, RDFM, options)
        with closing(self._response("GET", url, timeouts)) as response:
            expected = (range.identity, str(after), str(range.last))
            names = (Header.IDENTITY, Header.AFTER, Header.LAST)
            if tuple(response.headers.get(name) for name in names) != expected:
                raise SourceError(
                    f"{range.stream} no longer has the elements {after + 1} to {range.last}",
                    hint="retention has removed some of them, or the stream was created again: begin again with "
                    "another checkpoint, and retain elements for longer",
                )
            size = 0
            while chunk := receive(response, timeouts, lambda cut: _broke_off(range.stream, cut)):
                size += len(chunk)
                for message in decoder.feed(chunk):
                    after += 1
                    yield to_text(message)
            # the last message is only complete if the body is
            _check_whole(range.stream, response.headers, size)
            last = [*decoder.close()]
            if after + len(last) != range.last:
                raise _broke_off(range.stream, f"after element {after}, before {range.last}")
            yield from map(to_text, last)

    def _bounds(self) -> tuple[int, int, str]:
        """Returns the sequence before the first element, that of the last one, and the identity of the stream."""
        from construct_messages.sparql.client.retries import Attempts, Timeouts

        stream, output = self._found()
        timeouts = Timeouts(None, stall=self._options.idle_seconds)
        for attempt in Attempts(self._options.retries, timeouts, lambda _: True):
            with attempt, closing(self._response("HEAD", output, timeouts)) as response:
                after, last, identity = (
                    response.headers.get(name)
                    for name in (Header.AFTER, Header.LAST, Header.IDENTITY)
                )
        if None in (after, last, identity):
            raise SourceError(
                f"{stream} does not send the sequences of its elements",
                hint="read it by construct-messages subscribe, and the logs as a folder",
            )
        return int(after), int(last), identity

    def _response(self, method: str, url: str, timeouts: Any) -> Any:
        from construct_messages.feeds.http.client import refusal
        from construct_messages.sparql.client.responses import authorization
        from construct_messages.sparql.client.urllib_client import receive, send
        from construct_messages.sparql.client.urls import without_query

        headers = {"Accept": _LOG, **authorization(None, None, self._options.token)}
        name = without_query(url)
        response = send(Request(url, headers=headers, method=method), name, timeouts)
        if response.status < 300:
            return response
        with closing(response):
            content = receive(response, timeouts, lambda cut: _broke_off(name, cut))
        raise refusal(url, response.status, content, response.headers.get)

    def _found(self) -> tuple[str, str]:
        """Returns the IRI of the stream and the URL of its output, by the description of the stream."""
        if self._endpoints is None:
            self._endpoints = asyncio.run(self._discovered())
        return self._endpoints

    async def _discovered(self) -> tuple[str, str]:
        from construct_messages.feeds.http.client import Client, origin_of
        from construct_messages.feeds.http.discovery import discover
        from construct_messages.feeds.transport import Settings

        options = self._options
        settings = Settings(token=options.token, message_bytes=options.message_bytes)
        client = Client(
            origin_of(options.url), options.token, options.retries, options.idle_seconds
        )
        async with client:
            async for attempt in client.attempts():
                with attempt:
                    found = await discover(client, options.url, settings)
        if Property.OUTPUT not in found.urls:
            raise UsageError(
                f"{options.url} has no output to read ranges of elements from",
                hint="give the URL of a stream of construct-messages serve",
            )
        return found.stream, found.urls[Property.OUTPUT]


def _check_whole(stream: str, headers: Any, size: int) -> None:
    """Raises `SourceError` for a body that is truncated, or of which that cannot be known."""
    from construct_messages.sparql.client.responses import BodyFraming

    framing = BodyFraming.of(headers.get)
    if not framing.is_delimited:
        raise SourceError(f"{stream} sends elements without their size", hint="use HTTP/1.1")
    if framing.length not in (None, size):
        raise _broke_off(stream, f"{size} of {framing.length} bytes came")


def _broke_off(stream: str, reason: object) -> SourceError:
    return SourceError(f"{stream} broke off: {reason}", transient=True)

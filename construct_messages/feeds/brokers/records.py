"""The base of transports whose records are one message each: decodes and encodes them, for any broker.

RDF Messages, section 3: the type of a message comes from its record, or else from the settings. No connection here.
Records that are not messages go to dead letters.
"""

from __future__ import annotations

import asyncio
import base64
import os
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from construct_messages.errors import (
    CannotWrite,
    LimitExceeded,
    LogError,
    SourceError,
    UsageError,
)
from construct_messages.feeds.connections import reader_of
from construct_messages.feeds.transport import Record, Settings, Start, Transport, records_of
from construct_messages.logs.documents import (
    DocumentReader,
    document_format,
    document_writer,
    implied_context,
)
from construct_messages.rdf.files.output import sync_folder, write_whole
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.media_types import read_media_type
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import Header
from construct_messages.streams import Element
from construct_messages.streams.publication import received, received_lines

# --- gaps -----------------------------------------------------------------------------------------
# Detects messages of a publisher that a broker dropped, by the numbers in the keys of records. No I/O.
#
# Brokers of MQTT drop messages that a slow reader has not received. The reader cannot see that, since packets have no
# sequences. `RecordTransport.write` numbers the records of a publisher without gaps.

_GONE: Final = 410
_PUBLISHERS: Final = 1000


def numbered_key(key: str) -> tuple[str, int] | None:
    """Returns the publisher of a record and its number, from its key; None: the key has another form.

    >>> numbered_key("a1-1001-3"), numbered_key("a1")
    (('a1', 1003), None)
    """
    batch, _, number = key.rpartition("-")
    publisher, _, first = batch.rpartition("-")
    if publisher and first.isdecimal() and number.isdecimal() and len(key) < 200:
        return publisher, int(first) + int(number) - 1
    return None


class Gaps:
    """The last number of each publisher."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._last: OrderedDict[str, int] = OrderedDict()

    def check(self, key: str) -> None:
        """Checks the key of the next record.

        Raises `SourceError` (410) if messages of its publisher are missing before it; the next call continues after
        them.
        """
        if (found := numbered_key(key)) is None:
            return
        publisher, number = found
        last = self._last.pop(publisher, number - 1)
        self._last[publisher] = max(last, number)
        if len(self._last) > _PUBLISHERS:
            self._last.popitem(last=False)
        if number > last + 1:
            raise SourceError(
                f"{self._url}: messages {last + 1} to {number - 1} of publisher {publisher} did not come",
                status=_GONE,
                hint="the broker dropped them, as it queues a bounded number for a slow reader (Mosquitto: 1,000, see "
                "max_queued_messages); read again to go on after them",
            )


# --- transport ------------------------------------------------------------------------------------

_lines_of: Final = attrgetter("lines")
_PART_BYTES: Final = 1 << 17
_READERS: Final = 32  # a header can name any number of types, all of one format


def _parts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Yields the records in parts that fit into processor caches, which is faster than processing more together."""
    size = sum([len(record.value) for record in records])
    if size <= _PART_BYTES:
        return iter((records,) if records else ())
    step = max(1, len(records) * _PART_BYTES // size)
    return (records[start : start + step] for start in range(0, len(records), step))


class RecordTransport(Transport):
    """A transport of a broker; its subclasses read and send records.

    The URL of the topic is also the stream of the elements, and the base of relative IRIs.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        self.url, self.settings = url, settings
        format = N_QUADS
        if settings.media_type is not None:
            format = document_format(settings.media_type)
        self.content_type = format.document_type
        self._write = document_writer(format)
        self._lines = format is N_QUADS
        self._readers: dict[str, DocumentReader] = {}

    @abstractmethod
    def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:
        """Yields the records from a position on, all received ones together; see `Transport.read`.

        Yields an empty sequence first, once the start position is known. `advance_past` is called for each yielded
        record before the next ones are requested.
        """

    @abstractmethod
    def advance_past(self, record: Record) -> None:
        """Moves `position` after a record that `records` yielded: it is read, or stored as a dead letter."""

    @abstractmethod
    async def send(self, records: Sequence[Record], key: str) -> None:
        """Sends records, at least one, until the broker has acknowledged all of them.

        The key of the batch, and those of the records, are unique in the stream, and the same each time that they are
        sent.
        """

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the elements; see `Transport.read`. Records that are not messages go to `settings.dead_letters`."""
        async with aclosing(self.records(start, follow=follow)) as batches:
            async for batch in batches:
                if not batch:
                    yield None
                for records in _parts(batch):
                    if elements := self._elements_of(records):
                        for record, element in zip(records, elements, strict=True):
                            self.advance_past(record)
                            yield element
                        continue
                    for record in records:
                        message = await self._message(record)
                        self.advance_past(record)
                        if message is not None:
                            yield received(self.url, record.sequence, message, record.microseconds)

    def _elements_of(self, records: Sequence[Record]) -> Sequence[Element]:
        """Returns the elements of records whose values are lines; empty: they must be read one by one."""
        lines = self._lines_of(records)
        if lines is None:
            return ()
        return received_lines(
            self.url,
            [record.sequence for record in records],
            lines,
            [record.microseconds for record in records],
        )

    def _lines_of(self, records: Sequence[Record]) -> Sequence[bytes] | None:
        """Returns the lines of the messages of records; None: they must be read one by one."""
        named = {record.content_type for record in records}
        content_type = named.pop() or self.settings.media_type
        if content_type is None or named:
            return None
        try:
            reader = self._reader_for(content_type)
        except SourceError:
            return None
        return reader.lines([record.value for record in records])

    async def _message(self, record: Record) -> Message | None:
        """Returns the message of a record; None: it is not a message, and was stored as a dead letter."""
        try:
            return self.message_in(record)
        except (LogError, LimitExceeded, SourceError) as error:
            if self.settings.dead_letters is None:
                raise
            await self.settings.dead_letters.put(record, self.url, str(error))
            return None

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """Sends each message as a record, with the key of the batch and its number as the key; see
        `Transport.write`.
        """
        values = list(map(_lines_of if self.writes_lines else self._write, batch))
        await self.send(records_of(values, self.content_type, key), key)

    @property
    def writes_lines(self) -> bool:
        return self._lines  # N-Quads can represent every message, so no check is necessary

    def message_in(self, record: Record) -> Message:
        """Returns the message of a record; raises `SourceError` for its media type, `LogError` or `LimitExceeded`."""
        if not record.value:
            return Message()  # unlimited in every format
        content_type = record.content_type or self.settings.media_type
        if content_type is None:
            raise SourceError(
                f"{self.url}: record {record.place or record.sequence} names no media type",
                hint="pass the one that its messages have: media_type=",
            )
        return self._reader_for(content_type).read(record.value, record.sequence)

    def _reader_for(self, content_type: str) -> DocumentReader:
        if (reader := self._readers.get(content_type)) is None:
            media_type, parameters = read_media_type(content_type) or ("", {})
            context = implied_context(media_type, parameters)
            reader = reader_of(content_type, self.settings, base=self.url, context=context)
            if len(self._readers) >= _READERS:
                self._readers.clear()
            self._readers[content_type] = reader
        return reader


# --- dead letters ---------------------------------------------------------------------------------
# Destinations of records that are not messages: a file of JSON lines, or another topic of a broker.


class DeadLetterFile:
    """A file with a line of JSON per record, which is stored durably before the next one is read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    async def put(self, record: Record, source: str, reason: str) -> None:
        letter = {
            "source": source,
            "sequence": record.sequence,
            "place": record.place,
            "reason": reason,
            "time": datetime.now(UTC).isoformat(),
            "contentType": record.content_type,
            "key": record.key,
            "headers": dict(record.headers),
            "value": base64.b64encode(record.value).decode(),
        }
        await asyncio.to_thread(self._append, msgspec.json.encode(letter) + b"\n")

    def _append(self, line: bytes) -> None:
        try:
            with open(self._path, "a+b", buffering=0) as file:
                if (size := file.seek(0, os.SEEK_END)) and os.pread(
                    file.fileno(), 1, size - 1
                ) != b"\n":
                    line = b"\n" + line  # a line that was not finished when its process was killed
                write_whole(file, line)
                os.fsync(file.fileno())
                if not size:  # the file is new
                    sync_folder(Path(self._path).resolve().parent)
        except OSError as error:
            raise CannotWrite(f"cannot write {os.fspath(self._path)}: {error.strerror}") from error


class DeadLetterTopic:
    """Another topic of a broker. It gets each record unchanged, with its source, its place and the reason as headers.

    `opening` opens the transport of the topic, for each record.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Transport]]) -> None:
        self._opening = opening

    async def put(self, record: Record, source: str, reason: str) -> None:
        async with self._opening() as transport:
            if not isinstance(transport, RecordTransport):
                raise UsageError(
                    "dead letters go to a file, or to a topic of a broker",
                    hint="name a file, or a URL such as kafka://localhost/dead-letters",
                )
            key = f"{record.key or source}-{record.sequence}-dead"
            headers = {
                **record.headers,
                Header.DEAD_LETTER_SOURCE.value: source,
                Header.DEAD_LETTER_PLACE.value: record.place or str(record.sequence),
                Header.DEAD_LETTER_REASON.value: reason.replace("\n", "; "),
            }
            await transport.send([record._replace(key=key, headers=headers)], key)

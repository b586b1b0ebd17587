"""The transport whose records are one message each: decodes and encodes them, whatever the broker. No connection here.

RDF Messages, section 3: the type of a message comes from its record, or else from the settings.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Final

from construct_messages.documents import DocumentReader, document_format, document_writer
from construct_messages.documents.contexts import implied_context
from construct_messages.errors import LimitExceeded, LogError, SourceError
from construct_messages.feeds.documents import reader_of
from construct_messages.feeds.record import Record, records_of
from construct_messages.feeds.transport import Settings, Start, Transport
from construct_messages.formats import N_QUADS
from construct_messages.formats.media_types import read_media_type
from construct_messages.message import Message
from construct_messages.streams import Element
from construct_messages.streams.publication import received, received_lines

_lines_of: Final = attrgetter("lines")
_PART_BYTES: Final = 1 << 17
_READERS: Final = 32  # a header can name any number of types, all of one format


def _parts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """The records in parts of a size that caches of processors hold: to look at more at once takes longer."""
    size = sum([len(record.value) for record in records])
    if size <= _PART_BYTES:
        return iter((records,) if records else ())
    step = max(1, len(records) * _PART_BYTES // size)
    return (records[start : start + step] for start in range(0, len(records), step))


class RecordTransport(Transport):
    """A transport of a broker. A class of it reads records and sends them.

    Args:
        url: of the topic; it is the stream of the elements, and the base of relative IRIs.
        settings: see `Settings`.

    Attributes:
        url, settings: those.
        content_type: the media type of the records that are written.

    Raises:
        UsageError: `settings.media_type` is of no format.
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
        """The records from a position on, see `Transport.read`: as many together as have come.

        Yields none first, once it is known where to start. `pass_by` is called for each of those that were yielded
        before the next ones are asked for.
        """

    @abstractmethod
    def pass_by(self, record: Record) -> None:
        """Moves `position` after a record that `records` yielded: it is read, or stored as a dead letter."""

    @abstractmethod
    async def send(self, records: Sequence[Record], key: str) -> None:
        """Sends records until the broker has acknowledged all of them.

        Args:
            records: at least one. Their keys are different in the stream, and the same each time that they are sent.
            key: the same each time that they are sent.

        Raises:
            SourceError: the broker refuses, or cannot be reached.
        """

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """See `Transport.read`. Records that are no message go to `settings.dead_letters`.

        Raises:
            SourceError: also for a record without a media type, or with one that is not read.
        """
        async with aclosing(self.records(start, follow=follow)) as batches:
            async for batch in batches:
                if not batch:
                    yield None
                for records in _parts(batch):
                    if elements := self._elements_of(records):
                        for record, element in zip(records, elements, strict=True):
                            self.pass_by(record)
                            yield element
                        continue
                    for record in records:
                        message = await self._message(record)
                        self.pass_by(record)
                        if message is not None:
                            yield received(self.url, record.sequence, message, record.microseconds)

    def _elements_of(self, records: Sequence[Record]) -> Sequence[Element]:
        """The elements of records whose values are lines; none: they have to be read one by one."""
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
        """The lines of the messages that records are; None: they have to be read one by one."""
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
        """Returns the message that a record is; None: it is none, and was stored as a dead letter."""
        try:
            return self.message_in(record)
        except (LogError, LimitExceeded, SourceError) as error:
            if self.settings.dead_letters is None:
                raise
            await self.settings.dead_letters.put(record, self.url, str(error))
            return None

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """See `Transport.write`: each message is a record, whose key is that of the batch and its number in it."""
        values = list(map(_lines_of if self.writes_lines else self._write, batch))
        await self.send(records_of(values, self.content_type, key), key)

    @property
    def writes_lines(self) -> bool:
        """See `Transport.writes_lines`."""
        return (
            self._lines
        )  # N-Quads has all that messages can have, so that there is nothing to check

    def message_in(self, record: Record) -> Message:
        """Returns the message that a record is.

        Raises:
            SourceError: its media type is not known.
            LogError, LimitExceeded: it is malformed, or too large.
        """
        if not record.value:
            return Message()  # in every format
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

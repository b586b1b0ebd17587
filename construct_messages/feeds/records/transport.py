"""The transport whose records are one message each: decodes and encodes them, whatever the broker. No connection here.

RDF Messages, section 3: the type of a message comes from its record, or else from the settings.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from construct_messages.documents import DocumentReader, document_format, document_writer
from construct_messages.documents.contexts import implied_context
from construct_messages.errors import LimitExceeded, LogError, SourceError
from construct_messages.feeds.documents import reader_of
from construct_messages.feeds.record import Record
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Settings, Start, Transport
from construct_messages.formats import N_QUADS
from construct_messages.formats.media_types import read_media_type
from construct_messages.message import Message
from construct_messages.streams import Element
from construct_messages.streams.publication import received

_READERS: Final = 32  # a header can name any number of types, all of one format


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
        self._readers: dict[str, DocumentReader] = {}
        self._position: Checkpoint | None = None

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`: a record that is no message is before it once it is stored as a dead letter."""
        return self._position

    @property
    @abstractmethod
    def reached(self) -> Checkpoint | None:
        """The position after the last record that `records` yielded; None: not known yet."""

    @abstractmethod
    def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Record | None]:
        """The records from a position on, see `Transport.read`; `reached` is the one after the last of them."""

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
        async with aclosing(self.records(start, follow=follow)) as records:
            async for record in records:
                if record is None:
                    self._position = self.reached
                    yield None
                    continue
                reached = self.reached
                try:
                    message = self.message_in(record)
                except (LogError, LimitExceeded, SourceError) as error:
                    if self.settings.dead_letters is None:
                        raise
                    await self.settings.dead_letters.put(record, self.url, str(error))
                    self._position = reached
                    continue
                self._position = reached
                yield received(self.url, record.sequence, message, record.microseconds)

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """See `Transport.write`: each message is a record, whose key is that of the batch and its number in it."""
        records = [
            Record(self._write(message), self.content_type, f"{key}-{number}", number)
            for number, message in enumerate(batch, 1)
        ]
        await self.send(records, key)

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
        if (reader := self._readers.get(content_type)) is None:
            media_type, parameters = read_media_type(content_type) or ("", {})
            context = implied_context(media_type, parameters)
            reader = reader_of(content_type, self.settings, base=self.url, context=context)
            if len(self._readers) >= _READERS:
                self._readers.clear()
            self._readers[content_type] = reader
        return reader.read(record.value, record.sequence)

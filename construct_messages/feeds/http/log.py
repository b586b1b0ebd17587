"""Elements as message logs: pulls the elements of a stream by GET, and sends messages by POST.

If a stream's description names an input that acknowledges a log while it is being sent, all batches are one log, see
`posting.py`. Otherwise each batch is a separate log.

LDN for RDF streams (pull); Linked Data Notifications, section 3.3.1; Idempotency-Key:
draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from construct_messages.feeds.http.connections import ConnectedTransport, ConnectionState
from construct_messages.feeds.http.posting import PostedLog
from construct_messages.feeds.http.stream import HttpStream
from construct_messages.feeds.sequences import is_sequence
from construct_messages.feeds.state import BatchKey
from construct_messages.logs import DecoderOptions, decoder_for, encoder_for
from construct_messages.rdf.errors import SourceError, UsageError, shown
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import Header, Property
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element

_MISSING: Final = 409
"""Raised if the server does not have the messages of the log before a batch."""


class LogTransport(ConnectedTransport):
    """Reads and writes message logs, whose messages have no sequences and are counted; see `Transport`."""

    endpoint = Property.OUTPUT

    def __init__(self, stream: HttpStream) -> None:
        super().__init__(stream)
        self._log_url = stream.endpoints.urls.get(Property.LOG_INPUT)
        self._log: PostedLog | None = None

    async def connection(self, url: str, state: ConnectionState) -> AsyncGenerator[Element]:
        """Yields the elements of one log; see `ConnectedTransport.connection`.

        Raises:
            LogError: also for data that are not a log.
        """
        state.retry_seconds = self._settings.poll_seconds
        accept = {"Accept": content_type(N_QUADS, RDFM)}
        response = await self._client.open("GET", state.url(url), accept)
        async with self._client.reading(response, url) as chunks:
            media_type = response.headers.get("Content-Type", "")
            problem = f"{without_query(url)} answers with {shown(media_type)!a}, and no message log"
            try:
                format, syntax = find_format(media_type)
            except UsageError as error:
                raise SourceError(problem) from error
            if syntax is None:
                raise SourceError(problem)
            options = DecoderOptions(
                base=without_query(url),
                contexts=self._settings.contexts,
                message_bytes=self._settings.message_bytes,
                labels=Labels(),
            )
            decoder = decoder_for(format, syntax, options)
            state.begin(response, url)
            last = response.headers.get(Header.LAST, "")
            async for chunk in chunks:
                for message in decoder.feed(chunk):
                    yield self.counted(state, message)
            for message in decoder.close():
                yield self.counted(state, message)
            if is_sequence(last) and (state.sequence or 0) < int(last):
                raise SourceError(
                    f"{without_query(url)} broke off after element {state.sequence}, before its last, {last}",
                    transient=True,
                )

    @property
    def writes_lines(self) -> bool:
        """See `Transport.writes_lines`."""
        return True

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """Sends a batch, which a server appends once by its key, or by its number in a log; see `Transport.write`."""
        parsed = BatchKey.parse(key)
        if self._log_url is not None and parsed.is_own:
            try:
                await self._send(self._log_url, batch, parsed)
                return
            except SourceError as error:
                if error.response_status != _MISSING:
                    raise
            self._log_url = None  # no message of the batch is in the log
        await self._post(batch, key)

    async def _send(self, url: str, batch: Sequence[Message], key: BatchKey) -> None:
        """Sends a batch in the log of its writer."""
        before = key.number - 1
        async for attempt in self._client.attempts():
            with attempt:
                if self._log is None or self._log.ended or self._log.count != before:
                    at_once = self._log is not None and self._log.ended
                    await self.aclose()
                    self._log = PostedLog(self._client, url, key.writer, before, at_once=at_once)
                try:
                    await self._log.send(batch)
                except BaseException:
                    await self.aclose()
                    raise

    async def aclose(self) -> None:
        """Closes the request of the log; see `Transport.aclose`."""
        if self._log is not None:
            log, self._log = self._log, None
            await log.aclose()

    async def _post(self, batch: Sequence[Message], key: str) -> None:
        """Sends a batch as a separate log."""
        url = self._stream.endpoints.urls[Property.INPUT]
        encoder = encoder_for(N_QUADS, RDFM)
        log = b"".join((encoder.start(), *map(encoder.encode, batch), encoder.finish()))
        headers = {"Content-Type": content_type(N_QUADS, RDFM), Header.KEY: f'"{key}"'}
        async for attempt in self._client.attempts():
            with attempt:
                await self._client.body(await self._client.open("POST", url, headers, log), url)

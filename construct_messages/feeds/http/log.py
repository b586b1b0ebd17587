"""Elements as message logs: what a stream has is pulled by GET, and batches are sent by POST.

LDN for RDF streams (pull); Linked Data Notifications, section 3.3.1; Idempotency-Key:
draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from construct_messages.errors import SourceError, UsageError, shown
from construct_messages.feeds.http.connections import ConnectedTransport, ConnectionState
from construct_messages.feeds.sequences import is_sequence
from construct_messages.formats import N_QUADS, RDFM, content_type
from construct_messages.formats.lookup import find_format
from construct_messages.labels import Labels
from construct_messages.logs import DecoderOptions, decoder_for, encoder_for
from construct_messages.message import Message
from construct_messages.net.urls import without_query
from construct_messages.net.wire import Header, Property
from construct_messages.streams import Element


class LogTransport(ConnectedTransport):
    """Reads and writes message logs, whose messages have no sequences and are counted; see `Transport`."""

    endpoint = Property.OUTPUT

    async def connection(self, url: str, state: ConnectionState) -> AsyncGenerator[Element]:
        """See `ConnectedTransport.connection`: one log.

        Raises:
            LogError: also for what is no log.
        """
        state.retry_seconds = self._settings.poll_seconds
        accept = {"Accept": content_type(N_QUADS, RDFM)}
        response = await self._client.open("GET", state.url(url), accept)
        async with self._client.reading(response, url) as chunks:
            said = response.headers.get("Content-Type", "")
            problem = f"{without_query(url)} answers with {shown(said)!a}, and no message log"
            try:
                format, syntax = find_format(said)
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
        """See `Transport.write`: a server that knows the key of a batch appends it once, however often it arrives."""
        url = self._stream.endpoints.urls[Property.INPUT]
        encoder = encoder_for(N_QUADS, RDFM)
        log = b"".join((encoder.start(), *map(encoder.encode, batch), encoder.finish()))
        headers = {"Content-Type": content_type(N_QUADS, RDFM), Header.KEY: f'"{key}"'}
        async for attempt in self._client.attempts():
            with attempt:
                await self._client.body(await self._client.open("POST", url, headers, log), url)

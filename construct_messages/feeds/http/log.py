"""Elements as message logs: pulls the elements of a stream by GET, and sends messages by POST.

If a stream's description names an input that acknowledges a log while it is being sent, all batches are one log.
Otherwise each batch is a separate log.

LDN for RDF streams (pull); Linked Data Notifications, section 3.3.1; Idempotency-Key:
draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import aiohttp

from construct_messages.errors import SourceError, UsageError, shown
from construct_messages.feeds.http.client import Client, ended
from construct_messages.feeds.http.connections import (
    ConnectedTransport,
    ConnectionState,
    HttpStream,
)
from construct_messages.feeds.state import BatchKey, is_sequence
from construct_messages.logs import DecoderOptions, decoder_for, encoder_for
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import NDJSON
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import Header, Property
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element

# --- posting --------------------------------------------------------------------------------------
# Sends a log that is acknowledged while it is being sent: one request for many batches.
#
# Its answer has lines, each about messages that are stored durably. `LogWriter` decides which servers support such
# logs, and sends to the others. docs/decisions/099-logs-acknowledged-on-the-way.md

_TYPE: Final = content_type(N_QUADS, RDFM)
_DELIMITER: Final = RDFM.delimiter.encode()
"""The delimiter precedes each message, and completes the previous one, which is then stored."""

_ANSWER_SECONDS: Final = 2.0
"""The maximal time until the answer begins; then the request ends, because proxies may read the complete request
first.
"""


class PostedLog:
    """A request whose body is sent while its answer is read.

    `after`: the number of messages at the start of the log that the server has. `at_once`: the request ends after the
    first messages. `count`: the number of durably stored messages of the log.
    """

    def __init__(
        self, client: Client, url: str, key: str, after: int, *, at_once: bool = False
    ) -> None:
        self._client, self._url = client, url
        self._headers = {
            "Content-Type": _TYPE,
            "Accept": NDJSON,
            Header.KEY: f'"{key}"',
            Header.LOG_AFTER: str(after),
        }
        self.count = after
        self._encoder = encoder_for(N_QUADS, RDFM)
        self._pieces = asyncio.Queue[bytes | None]()
        self._at_once, self._ended = at_once, False
        self._response: aiohttp.ClientResponse | None = None
        self._lines: AsyncGenerator[bytes] | None = None

    @property
    def ended(self) -> bool:
        """Whether the request accepts no more messages."""
        return self._ended

    async def send(self, messages: Sequence[Message]) -> None:
        """Sends the next messages, and waits until they are stored durably. After an error, some of them may be
        stored.
        """
        last = self.count + len(messages)
        log = b"".join(map(self._encoder.encode, messages))
        if self._lines is None:
            self._pieces.put_nowait(log)
            if self._at_once:
                self._end()
            self._lines = self._read_lines(await self._answer())
            if not self._ended:
                self._pieces.put_nowait(_DELIMITER)
        else:
            self._pieces.put_nowait(log[len(_DELIMITER) :] + _DELIMITER)
        while self.count < last:
            self._take(await anext(self._lines, None))
        if self._ended:
            await anext(self._lines, None)  # so that the connection can be reused

    async def aclose(self) -> None:
        """Closes the connection. After a delimiter, the end of the body would be a message without statements."""
        if self._lines is not None:
            await self._lines.aclose()
        if self._response is not None:
            self._response.close()

    async def _answer(self) -> aiohttp.ClientResponse:
        """Returns the answer, once it has begun."""
        opening = asyncio.ensure_future(
            self._client.open("POST", self._url, self._headers, self._body())
        )
        try:
            _, late = await asyncio.wait([opening], timeout=_ANSWER_SECONDS)
            if late:
                self._end()
            self._response = await opening
        finally:
            opening.cancel()
        if self._response.content_type != NDJSON:
            self._response.close()
            raise SourceError(
                f"{without_query(self._url)} answers a log with {self._response.content_type}, and not with {NDJSON}",
                hint="publish to the URL of the input, which sends batches",
            )
        return self._response

    async def _body(self) -> AsyncGenerator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._pieces.put_nowait(None)

    async def _read_lines(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        """Yields the lines of the answer that are not empty."""
        held = b""
        async with self._client.reading(response, self._url) as chunks:
            async for chunk in chunks:
                *lines, held = (held + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield line

    def _take(self, line: bytes | None) -> None:
        """Processes the next line of the answer; None: it has ended."""
        if line is None:
            raise SourceError(
                f"{without_query(self._url)} ended its answer after message {self.count} of the log",
                transient=True,
            )
        document = json.loads(line)
        if "status" in document:
            raise ended(self._url, document["status"], line)
        self.count = document["messages"]


# --- log ------------------------------------------------------------------------------------------

_MISSING: Final = 409  # raised if the server does not have the messages of the log before a batch


class LogTransport(ConnectedTransport):
    """Reads and writes message logs, whose messages have no sequences and are counted; see `Transport`."""

    endpoint = Property.OUTPUT

    def __init__(self, stream: HttpStream) -> None:
        super().__init__(stream)
        self._log_url = stream.endpoints.urls.get(Property.LOG_INPUT)
        self._log: PostedLog | None = None

    async def connection(self, url: str, state: ConnectionState) -> AsyncGenerator[Element]:
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
                keep_lines=True,
            )
            decoder = decoder_for(format, syntax, options)
            state.begins(response, url)
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
        return True

    async def write(self, batch: Sequence[Message], key: str) -> None:
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

"""Sends a log that is acknowledged while it is being sent: one request for many batches.

Its answer has lines, each about messages that are stored durably. `log.py` decides which servers support such logs, and
sends to the others. docs/decisions/099-logs-acknowledged-on-the-way.md
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import aiohttp

from construct_messages.feeds.http.client import Client, ended
from construct_messages.logs import encoder_for
from construct_messages.rdf.errors import SourceError
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.rdf.formats.media_types import NDJSON
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import Header
from construct_messages.sparql.client.urls import without_query

_TYPE: Final = content_type(N_QUADS, RDFM)
_DELIMITER: Final = RDFM.delimiter.encode()
"""The delimiter precedes each message, and completes the previous one, which is then stored."""

_ANSWER_SECONDS: Final = 2.0
"""The maximal time until the answer begins; then the request ends, because proxies may read the complete request
first.
"""


class PostedLog:
    """A request whose body is sent while its answer is read.

    Args:
        client: sends the request.
        url: the URL that logs are posted to.
        key: the key of the log.
        after: the number of messages at the start of the log that are left out, because the server has them.
        at_once: whether the request ends after the first messages.

    Attributes:
        count: the number of durably stored messages of the log.
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
        """Sends the next messages, and waits until they are stored durably.

        Raises:
            SourceError: the server rejects one of them, or the connection is lost. Some of them may be stored.
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

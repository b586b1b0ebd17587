"""What transports share: reading over successive connections, the check of a port, and the readers of documents.

Each connection begins where the previous one ended; the folder of its transport reads its content. WHATWG HTML, section
9.2 (reconnection).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar
from urllib.parse import urlsplit

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.state import Checkpoint, begin_after, is_sequence, same_stream
from construct_messages.feeds.table import address_of, kinds_for
from construct_messages.feeds.transport import Settings, Start
from construct_messages.logs import DecoderOptions
from construct_messages.logs.documents import DocumentReader, document_format, document_syntax
from construct_messages.sparql.client.retries import Attempts, Timeouts
from construct_messages.sparql.client.tls import check_plain, check_tls
from construct_messages.sparql.client.urls import without_query

# --- connections ----------------------------------------------------------------------------------

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.5  # the time before the next connection, after one that brought elements


def attempts_of(settings: Settings) -> Attempts:
    """Returns the attempts at an operation that may fail temporarily; see `sparql/client/retries.py`."""
    return Attempts(settings.retries, Timeouts(None), lambda _: True)


@dataclass
class StreamPosition:
    """The position of the connections to a stream with sequences."""

    sequence: int | None  # of the last known element; None: the other side has not sent it yet
    wish: Mapping[str, str] = field(default_factory=dict)  # how to ask while it is unknown
    identity: str = ""  # of the stream; empty: unknown

    @classmethod
    def at(cls, start: Start, *, last: str, since: str) -> Self:
        """The position before the first connection; `last` and `since` are parameters of the other side."""
        if start.checkpoint is not None:
            start.checkpoint.check()
            return cls(start.checkpoint.sequence, identity=start.checkpoint.identity)
        if start.last is not None:
            return cls(None, {last: str(start.last)})
        if start.since is not None:
            return cls(None, {since: start.since.isoformat()})
        return cls(start.after)

    @property
    def checkpoint(self) -> Checkpoint | None:
        return None if self.sequence is None else Checkpoint(self.sequence, identity=self.identity)

    def asked(self, after: str) -> Mapping[str, str]:
        """The parameters that request the elements after the last one, `after` among them."""
        return self.wish if self.sequence is None else {after: str(self.sequence)}

    def recognise(self, stream: str, identity: str) -> None:
        """Raises `SourceError` (410) if an answer is of another stream than was read before."""
        self.identity = same_stream(stream, self.identity, identity)

    def begin(self, stream: str, identity: str, after: str) -> bool:
        """Processes the position at which an answer begins; returns whether the other side sends it.

        Raises `SourceError` if it begins at another position than requested, or is of another stream.
        """
        self.recognise(stream, identity)
        if not is_sequence(after):
            return False
        self.sequence = begin_after(stream, self.sequence, int(after))
        return True


async def check_port(url: str, *, is_secure: bool) -> None:
    """Raises `SourceError` if the server's port has no TLS where it is requested, or has it where it is not.

    Called after a connection has failed: without this check, clients connect again and again, and report a failure of
    the network in the end.
    """
    probe, (host, port) = kinds_for(url)[0].probe, address_of(url)
    assert probe is not None  # the caller's transport has one
    scheme = urlsplit(url).scheme.lower()
    shown, plain = without_query(url), scheme.removesuffix("s")
    hints = probe.hints or (
        f"write {plain}s: instead of {plain}:",
        f"write {plain}: instead of {plain}s:",
    )
    if is_secure:
        await check_tls(shown, host, port, probe.begins, hints[1])
    else:
        await check_plain(shown, host, port, hints[0])


async def over_connections(
    connection: Callable[[], AsyncGenerator[T]],
    settings: Settings,
    *,
    follow: bool = False,
    pause: Callable[[], float] = lambda: _PAUSE_SECONDS,
) -> AsyncGenerator[T]:
    """Yields the items of successive connections, until one ends by itself and not to be followed.

    A failed connection is repeated. Its failure does not count as a repeated one if it brought an item, or was open for
    long (`idle_seconds`), as that of a quiet stream. `connection` yields the items after the last yielded one; None is
    no item: it may be yielded when the other side has answered. `pause` returns the seconds until the next connection,
    after one without failure, and may raise.
    """
    clock = asyncio.get_running_loop().time
    while True:
        async for attempt in attempts_of(settings):
            began, moved = clock(), False
            with attempt:
                try:
                    async with aclosing(connection()) as items:
                        async for item in items:
                            moved = moved or item is not None
                            yield item
                    if not follow:
                        return
                except SourceError as error:
                    lasted = clock() - began > settings.idle_seconds
                    if not ((moved or lasted) and error.transient):
                        raise
        await asyncio.sleep(pause())


# --- documents ------------------------------------------------------------------------------------
# Creates readers for the documents of a stream: of one media type, with the contexts and limits of `Settings`.
#
# No I/O.


def reader_of(
    content_type: str, settings: Settings, *, base: str, context: str | None = None
) -> DocumentReader:
    """Returns the reader for documents that the other side sends.

    `base` is the IRI that relative IRIs resolve against, `context` the IRI of the context for all of them, from a Link
    header. Raises `SourceError` for an unknown media type, or an unknown syntax of messages in it.
    """
    try:
        format = document_format(content_type)
        syntax = document_syntax(content_type, format)
    except UsageError as error:
        raise SourceError(error.message, hint=error.hint) from error
    options = DecoderOptions(
        base=base,
        contexts=settings.contexts,
        context=context,
        message_bytes=settings.message_bytes,
        comments=False,
    )
    return DocumentReader(format, options, syntax)

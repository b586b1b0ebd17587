"""Subscriptions: the elements of a stream, by the transport that its URL and the caller choose.

`table.py` lists the transports; each continues after the last element, so that elements are neither lost nor repeated.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Self

from construct_messages.errors import UsageError
from construct_messages.feeds.brokers.records import DeadLetterFile, DeadLetterTopic
from construct_messages.feeds.http.client import check_stream_url, origin_of
from construct_messages.feeds.opening import check_dead_letters, check_via, opened
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.table import kinds_for
from construct_messages.feeds.transport import (
    IDLE_SECONDS,
    RETRIES,
    DeadLetters,
    Settings,
    Start,
    Transport,
)
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.logs.documents import KnownContexts
from construct_messages.rdf.arguments import checked
from construct_messages.sparql.client.oauth import BearerToken
from construct_messages.streams.element import Element, microseconds_of


@checked
def subscribe(
    url: str,
    *,
    after: int | None = None,
    last: int | None = None,
    since: datetime | None = None,
    checkpoint: Checkpoint | None = None,
    follow: bool = True,
    via: str | None = None,
    contexts: Mapping[str, Any] | None = None,
    token: BearerToken | None = None,
    origins: Sequence[str] = (),
    message_bytes: int = MESSAGE_BYTES,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
    poll_seconds: float = 1.0,
    media_type: str | None = None,
    options: Mapping[str, str] | None = None,
    dead_letters: str | os.PathLike[str] | None = None,
) -> Subscription:
    """Returns an iterator over the elements of a stream, in order, each once.

    Args:
        url: the URL of a stream of `construct-messages serve --streams`, or of its events, its WebSocket or its output.
            Also the URL of a Linked Data Event Stream of any server: its IRI, the root of a view, or a page; of an LDN
            inbox; or of a topic of a broker.
        after: start after this sequence; 0: with the first element.
        last: start with this number of newest elements. Without `after`, `last`, `since` and `checkpoint`, a follower
            starts with the next element, and others with the oldest.
        since: start with elements stored at this time or later; a time with a time zone.
        checkpoint: continue after an earlier subscription to the same URL, see `Subscription.checkpoint`.
        follow: wait for more elements; otherwise end after the newest.
        via: the name of a transport, such as `"sse"`; None: the first one in the table of transports that the stream
            offers, and that can end without `follow`.
        contexts: JSON-LD contexts that documents or headers name, by their IRI, as parsed JSON, besides those of Linked
            Data Notifications, Activity Streams, Web Annotation and PROV; contexts are never fetched.
        token: a token, sent as `Authorization: Bearer` to the origin of `url`; or the credentials for fetching tokens.
        origins: other origins of pages of an event stream, or of notifications, such as `https://example.org`.
        message_bytes: the maximal size of a message, and of a page.
        retries: the number of times that a connection is repeated after temporary failures.
        idle_seconds: the maximal time without data from the server, after which the connection counts as lost.
        poll_seconds: the time between two pulls, and before pages are requested again; an event stream may ask for
            more.
        media_type: the media type of a broker's records, or of server-sent events, that have none; None: they are
            errors. With it, events of the default type are messages, too.
        options: the options of a broker's transport, by their names in its library. A value that begins with `$` is the
            name of an environment variable with the value.
        dead_letters: the destination of records that are not messages: a file of JSON lines, or the URL of another
            topic; None: such a record is an error.

    Returns:
        An async iterator. Close it (`contextlib.aclosing`) if you leave it before its end, or if the other side stores
            the positions of its readers, as Kafka does for a group. The time of an element is the time of its receipt,
            or the one that orders the members of an event stream; its stream is the stream's IRI.

    Raises:
        UsageError: arguments that do not go together (immediately).
        SourceError: the server rejects the request (`response_status` 404: the stream or element does not exist), or
            cannot be reached; `status` 410: the next element was removed by retention, or elements are missing.
        LogError, LimitExceeded: the data are not a message, or too large.

    >>> import asyncio
    >>> from construct_messages import Message
    >>> from construct_messages.feeds import publish
    >>> async def main(stream):
    ...     await publish([Message(), Message()], stream, create=True)
    ...     return [element.sequence async for element in subscribe(stream, follow=False)]
    >>> asyncio.run(main(f"{server}/streams/rooms"))
    [1, 2]
    """
    settings = Settings(
        contexts=KnownContexts(contexts),
        token=token,
        origins=trusted(origins),
        message_bytes=message_bytes,
        retries=retries,
        idle_seconds=idle_seconds,
        poll_seconds=poll_seconds,
        media_type=media_type,
        options=options or {},
    )
    start = Start(after=after, last=last, since=since, checkpoint=checkpoint)
    start = checked_start(start, follow=follow)
    opening = reading(url, settings, via=via, follow=follow, dead_letters=dead_letters)
    return Subscription(opening, start, follow=follow)


def trusted(origins: Sequence[str]) -> frozenset[str]:
    """The origins of URLs; raises `UsageError` for one that is not the URL of a server."""
    for origin in origins:
        check_stream_url(origin)
    return frozenset(map(origin_of, origins))


def checked_start(start: Start, *, follow: bool) -> Start:
    """Returns where reading starts: a follower that names no position starts with the next element.

    Raises `UsageError` for several positions, or an invalid one.
    """
    wishes = sum(
        wish is not None for wish in (start.after, start.last, start.since, start.checkpoint)
    )
    if wishes > 1:
        raise UsageError(
            "after, last, since and checkpoint do not go together", hint="give one of them"
        )
    for name, number in (("after", start.after), ("last", start.last)):
        if number is not None and number < 0:
            raise UsageError(f"{name}={number} is less than 0")
    if start.since is not None:
        microseconds_of(start.since)  # raises an error for invalid ones
    return Start(last=0) if follow and not wishes else start


def reading(
    url: str,
    settings: Settings,
    *,
    via: str | None,
    follow: bool,
    dead_letters: str | os.PathLike[str] | None,
) -> AbstractAsyncContextManager[Transport]:
    """Returns a function that opens the transport of a stream for reading; see `subscribe`."""
    check_via(url, via, follow=follow)
    if dead_letters is not None:
        place = os.fspath(dead_letters)
        check_dead_letters(url, place)
        settings = replace(settings, dead_letters=_dead_letters(url, place, settings))
    return opened(url, settings, via=via, follow=follow)


def _dead_letters(url: str, place: str, settings: Settings) -> DeadLetters:
    kinds = kinds_for(place)
    if not kinds:
        return DeadLetterFile(place)
    options = {
        name: value
        for name, value in settings.options.items()
        if kinds == kinds_for(url) and not any(name in kind.identity for kind in kinds)
    }
    return DeadLetterTopic(partial(opened, place, replace(settings, options=options), write=True))


class Subscription(AsyncIterator[Element]):
    """The elements of a stream; created by `subscribe`.

    Args:
        opening: opens the transport.
        start: the start position.
        follow: whether to wait for more elements.
    """

    def __init__(
        self, opening: AbstractAsyncContextManager[Transport], start: Start, *, follow: bool
    ) -> None:
        self._opening, self._start, self._follow = opening, start, follow
        self._transport: Transport | None = None
        self._elements = self._run()
        self._started = self._closed = False

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The position after the last returned element; None: unknown yet."""
        return None if self._transport is None else self._transport.position

    async def start(self) -> None:
        """Finds the stream and the position to start at. Iterating does this by itself.

        Raises:
            SourceError, LogError, LimitExceeded: see `subscribe`.
        """
        if not self._started:
            self._started = True
            await anext(self._elements)

    def check_resumable(self) -> None:
        """Checks that another process can continue from a checkpoint. Call it after `start`.

        Raises:
            UsageError: the other side does not keep elements for this reader; the hint is the fix.
        """
        if self._transport is not None:
            self._transport.check_resumable()

    @property
    def acknowledges(self) -> bool:
        """Whether the other side stores the positions of its readers, see `acknowledge`; False: unknown yet, or no."""
        return self._transport is not None and self._transport.acknowledges

    async def acknowledge(self, checkpoint: Checkpoint) -> None:
        """Acknowledges to the other side that the elements up to a checkpoint were processed durably.

        Does nothing if the other side does not store the positions of its readers; then store the checkpoint.

        Raises:
            UsageError: the subscription is closed.
            SourceError: the other side cannot be reached.
        """
        if self._transport is None or not self.acknowledges:
            return
        if self._closed:
            raise UsageError(
                "elements were acknowledged after the subscription was closed",
                hint="acknowledge them within `async with aclosing(subscription)`",
            )
        await self._transport.acknowledge(checkpoint)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Element:
        if not self._started:
            await self.start()
        if (element := await anext(self._elements)) is None:
            raise StopAsyncIteration
        return element

    async def aclose(self) -> None:
        """Ends the subscription."""
        await self._elements.aclose()

    async def _run(self) -> AsyncGenerator[Element | None]:
        """Yields None at the start, and at the end as long as the last elements can be acknowledged: until `aclose`."""
        try:
            async with (
                self._opening as transport,
                aclosing(transport.read(self._start, follow=self._follow)) as elements,
            ):
                async for element in elements:
                    self._transport = transport
                    yield element
                while transport.acknowledges:
                    yield None
        finally:
            self._closed = True

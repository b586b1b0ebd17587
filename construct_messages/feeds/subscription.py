"""Subscriptions: the elements of a stream, over as many connections as it takes.

Each connection begins behind the last element, so that nothing is lost and nothing comes twice. WHATWG HTML, section
9.2 (reconnection); `transports.py` says what one connection gives, `ldes.py` and `inbox.py` read what is asked for
again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final, Literal, Protocol, Self, TypeAlias
from urllib.parse import urldefrag

from construct_messages.arguments import checked
from construct_messages.documents.contexts import KnownContexts
from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.client import Client, check_stream_url, origin_of
from construct_messages.feeds.collections.collection import Collection
from construct_messages.feeds.collections.inbox import InboxReader
from construct_messages.feeds.collections.ldes import EventStreamReader
from construct_messages.feeds.discovery import Endpoints, discover
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transports import (
    Position,
    Reading,
    Transport,
    events,
    frames,
    log,
    recognise,
    sequence_after,
)
from construct_messages.formats import N_QUADS, RDFM, content_type
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.net.urls import without_query
from construct_messages.streams.element import Element, microseconds_of
from construct_messages.streams.wire import Parameter

Via: TypeAlias = Literal["sse", "websocket", "pull", "ldes", "inbox"]

RETRIES: Final = 10
"""How often in a row a request is sent again, by default: about a minute."""

IDLE_SECONDS: Final = 60.0
"""How long a server may be silent, by default."""


@checked
def subscribe(
    url: str,
    *,
    after: int | None = None,
    last: int | None = None,
    since: datetime | None = None,
    checkpoint: Checkpoint | None = None,
    follow: bool = True,
    via: Via | None = None,
    contexts: Mapping[str, Any] | None = None,
    token: str | None = None,
    origins: Sequence[str] = (),
    message_bytes: int = MESSAGE_BYTES,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
    poll_seconds: float = 1.0,
) -> Subscription:
    """The elements of a stream, in order, each once.

    Args:
        url: the URL of a stream of `construct-messages serve --streams`, or of its events, its socket or its output.
            Also a Linked Data Event Stream of any server: its IRI, the root of a view, or a page; or an LDN inbox.
        after: start after this sequence; 0: with the first element.
        last: start with this number of newest elements. Without `after`, `last`, `since` and `checkpoint`, a follower
            starts with the next element, and others with the oldest.
        since: start with elements stored at this time or later; a time with a time zone.
        checkpoint: continue after an earlier subscription to the same URL, see `Subscription.checkpoint`.
        follow: wait for more elements; otherwise end after the newest.
        via: the transport: server-sent events, WebSocket, repeated pulls of logs, pages of a Linked Data Event Stream,
            or notifications of an inbox; None: the first of these that the stream offers, without `follow` of the last
            three.
        contexts: JSON-LD contexts that documents or headers name, by their IRI, as parsed JSON, besides those of Linked
            Data Notifications, Activity Streams, Web Annotation and PROV; contexts are never fetched.
        token: a token, sent as `Authorization: Bearer` to the origin of `url`.
        origins: other origins of pages of an event stream, or of notifications, such as `https://example.org`.
        message_bytes: the maximal size of a message, and of a page.
        retries: how often in a row a connection is repeated after temporary failures.
        idle_seconds: the maximal time that a server may be silent before the connection counts as lost.
        poll_seconds: the time between two pulls, and before pages are requested again; an event stream may ask for
            more.

    Returns:
        An async iterator. Close it (`contextlib.aclosing`) if you leave it before its end. The time of an element is
            the time of its receipt, or the one that orders the members of an event stream; its stream is the stream's
            IRI.

    Raises:
        UsageError: arguments that do not go together (immediately).
        SourceError: the server refuses the request (`response_status` 404: there is no such stream or element), or
            cannot be reached; `status` 410: the next element was removed by retention, or elements are missing.
        LogError, LimitExceeded: the data are not a message, or too large.

    >>> from construct_messages import Message
    >>> from construct_messages.feeds import publish
    >>> async def main(stream):
    ...     await publish([Message(), Message()], stream, create=True)
    ...     return [element.sequence async for element in subscribe(stream, follow=False)]
    >>> asyncio.run(main(f"{server}/streams/rooms"))
    [1, 2]
    """
    wishes = sum(wish is not None for wish in (after, last, since, checkpoint))
    if wishes > 1:
        raise UsageError(
            "after, last, since and checkpoint do not go together", hint="give one of them"
        )
    for name, number in (("after", after), ("last", last)):
        if number is not None and number < 0:
            raise UsageError(f"{name}={number} is less than 0")
    if via not in (None, *_VIAS):
        raise UsageError(f"via={via!r} is no transport", hint=f"choose one of {', '.join(_VIAS)}")
    if not follow and via in _PUSHED:
        raise UsageError(f"via={via!r} follows a stream", hint='leave it out, or take via="pull"')
    if since is not None:
        microseconds_of(since)  # for its error
    check_stream_url(urldefrag(url).url)
    for origin in origins:
        check_stream_url(origin)
    if follow and not wishes:
        last = 0
    client = Client(origin_of(url), token, retries, idle_seconds)
    known = KnownContexts(contexts)
    trusted = {origin_of(origin) for origin in origins}
    collection = Collection(
        known, message_bytes, poll_seconds, trusted, after, last, since, checkpoint
    )
    return Subscription(client, url, collection, follow, via)


class Subscription(AsyncIterator[Element]):
    """The elements of a stream; created by `subscribe`.

    Args:
        client: sends the requests.
        url: see `subscribe`, as for the other arguments.
        collection: where to start, and what is allowed.
        follow: whether to wait for more elements.
        via: the transport.
    """

    def __init__(
        self, client: Client, url: str, collection: Collection, follow: bool, via: Via | None
    ) -> None:
        self._client, self._url, self._collection, self._follow, self._via = (
            client,
            url,
            collection,
            follow,
            via,
        )
        self._place: _Place | None = None
        self._elements = self._run()
        self._started = False

    @property
    def checkpoint(self) -> Checkpoint | None:
        """How far it is: behind the element that it gave last; None: it is not known yet where that is."""
        return None if self._place is None else self._place.checkpoint

    async def start(self) -> None:
        """Finds the stream and the position to start at. Iterating does this by itself.

        Raises:
            SourceError, LogError, LimitExceeded: see `subscribe`.
        """
        if not self._started:
            self._started = True
            await anext(self._elements)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Element:
        await self.start()
        element = await anext(self._elements)
        assert element is not None  # as it is at the start only
        return element

    async def aclose(self) -> None:
        """Ends the subscription."""
        await self._elements.aclose()

    async def _run(self) -> AsyncGenerator[Element | None]:
        async with self._client as client:
            collection, via = self._collection, self._via
            async for attempt in client.attempts():
                with attempt:
                    endpoints = await discover(
                        client, self._url, collection.contexts, collection.message_bytes
                    )
                    chosen, target = _choose(endpoints, _VIAS if self._follow else _READ, via)
                    position = _position(collection)
                    if chosen in _TRANSPORTS:
                        await _locate(client, endpoints, chosen, position)
            if chosen in _TRANSPORTS:
                self._place = position
                read = Reading(endpoints.stream, collection.contexts, collection.message_bytes)
                if chosen == "pull":
                    position.retry_seconds = collection.poll_seconds
                yield None
                # the frames of a socket say nothing of the stream that they are of
                asked = endpoints.output if chosen == "websocket" else None
                elements: AsyncGenerator[Element | None] = _connected(
                    client, target, _TRANSPORTS[chosen], position, read, self._follow, asked
                )
            else:
                reader = (EventStreamReader if chosen == "ldes" else InboxReader)(
                    client, target, collection
                )
                self._place = reader.known
                elements = reader.elements(follow=self._follow)
            async with aclosing(elements):
                async for element in elements:
                    yield element


class _Place(Protocol):
    """The position of a subscription."""

    @property
    def checkpoint(self) -> Checkpoint | None: ...


async def _connected(
    client: Client,
    target: str,
    transport: Transport,
    position: Position,
    reading: Reading,
    follow: bool,
    asked: str | None,
) -> AsyncGenerator[Element]:
    """The elements of one connection after the other; `asked` checks before each whether the stream is the same."""
    while True:
        async for attempt in client.attempts():
            moved = False
            with attempt:
                try:
                    if asked is not None:
                        await _ask_position(client, asked, position)
                    async with aclosing(transport(client, target, position, reading)) as elements:
                        async for element in elements:
                            moved = True
                            yield element
                    if not follow:
                        return
                except SourceError as error:
                    if not (moved and error.transient):
                        raise
        if not position.resumable:
            raise SourceError(
                f"{without_query(target)} has ended, and its events have no ids to resume behind",
                hint="subscribe again, or ask the publisher for ids",
            )
        await asyncio.sleep(position.retry_seconds)


_TRANSPORTS: Final[Mapping[Via, Transport]] = {"sse": events, "websocket": frames, "pull": log}
_VIAS: Final[tuple[Via, ...]] = ("sse", "websocket", "pull", "ldes", "inbox")
_PUSHED: Final[tuple[Via, ...]] = ("sse", "websocket")
_READ: Final[tuple[Via, ...]] = ("pull", "ldes", "inbox")


def _choose(endpoints: Endpoints, vias: Iterable[Via], via: Via | None) -> tuple[Via, str]:
    targets: Mapping[Via, str | None] = {
        "sse": endpoints.events,
        "websocket": endpoints.socket,
        "pull": endpoints.output,
        "ldes": endpoints.ldes,
        "inbox": endpoints.inbox,
    }
    for name in vias:
        if (target := targets[name]) is not None and via in (None, name):
            return name, target
    offered = ", ".join(name for name, target in targets.items() if target is not None)
    raise SourceError(
        f"{endpoints.stream} cannot be had via {via or 'any transport'}",
        hint=f"choose one of {offered}" if offered else "give the URL of a stream that can be read",
    )


def _position(collection: Collection) -> Position:
    """Returns the position to start connections at."""
    if collection.checkpoint is not None:
        return Position(collection.checkpoint.sequence, identity=collection.checkpoint.identity)
    if collection.last is not None:
        return Position(None, {Parameter.LAST: str(collection.last)})
    if collection.since is not None:
        return Position(None, {Parameter.SINCE: collection.since.isoformat()})
    return Position(collection.after)


async def _ask_position(client: Client, output: str, position: Position) -> int | None:
    """Asks where a stream begins for a position; it must be the one that was read before."""
    url = position.url(output)
    response = await client.open("HEAD", url, {"Accept": content_type(N_QUADS, RDFM)})
    response.close()
    recognise(response, url, position)
    return sequence_after(response)


async def _locate(client: Client, endpoints: Endpoints, via: Via, position: Position) -> None:
    """Finds the sequence to begin behind, so that what comes before the first element is not lost to a reconnect."""
    if position.sequence is not None:
        return
    if endpoints.output is not None:
        position.sequence = await _ask_position(client, endpoints.output, position)
    if position.sequence is None and via != "sse":
        raise UsageError(
            f"{endpoints.stream} does not tell the number of its elements",
            hint="give the sequence to begin behind: after",
        )

"""Subscriptions: the elements of a stream, over as many connections as it takes.

Each connection begins behind the last element, so that nothing is lost and nothing comes twice. WHATWG HTML, section
9.2 (reconnection); `transports.py` says what one connection gives, `ldes.py` and `inbox.py` read what is asked for
again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final, Literal, Protocol, Self, TypeAlias
from urllib.parse import urldefrag

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.client import Client, check_stream_url, origin_of
from construct_messages.feeds.collections.collection import Collection
from construct_messages.feeds.collections.inbox import InboxReader
from construct_messages.feeds.collections.ldes import EventStreamReader
from construct_messages.feeds.discovery import Endpoints, discover
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transports import Position, Reading, Transport, events, frames, log, sequence_after
from construct_messages.formats import N_QUADS, RDFM, content_type
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.sources.http.response import without_query
from construct_messages.streams.contexts import CONTEXTS
from construct_messages.streams.element import Element, microseconds_of

Via: TypeAlias = Literal["sse", "websocket", "pull", "ldes", "inbox"]

RETRIES: Final = 10
"""How often in a row a request is sent again, by default: about a minute."""

IDLE_SECONDS: Final = 60.0
"""How long a server may be silent, by default."""


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
    origins: Iterable[str] = (),
    message_bytes: int = MESSAGE_BYTES,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
    poll_seconds: float = 1.0,
) -> Subscription:
    """The elements of a stream, in order, each once.

    Args:
        url: of the stream, as `construct-messages serve --streams` serves it; or of its events, its socket or its
            output. Also a Linked Data Event Stream of any server: its IRI, the root of a view, or a page; or an LDN
            inbox.
        after: begin behind this sequence; 0: with the first.
        last: begin with as many of the newest. Without `after`, `last`, `since` and `checkpoint` a follower begins with
            what comes next, and one that does not follow with the oldest.
        since: begin with what was stored at this time or later; a time with a zone.
        checkpoint: begin behind what an earlier subscription to the same URL gave, see `Subscription.checkpoint`.
        follow: whether to wait for more; otherwise it ends behind what is there now.
        via: how elements come: server-sent events, WebSocket, logs that are pulled again and again, pages of a Linked
            Data Event Stream, or notifications of an inbox; None: the first of these that the stream offers, and of the
            last three where it does not follow.
        contexts: JSON-LD contexts that documents or the response's headers name, by their IRI, as parsed JSON, beside
            those of Linked Data Notifications, Activity Streams, Web Annotation and PROV; no context is fetched.
        token: sent as `Authorization: Bearer` to the origin of `url`.
        origins: other origins that pages of an event stream, or notifications, may be at, such as
            `https://example.org`.
        message_bytes: how large a message may be, and how large a page.
        retries: how often in a row a connection is tried again that fails in a way that may pass.
        idle_seconds: how long a server may be silent before the connection is taken for lost.
        poll_seconds: how long to wait between two logs that are pulled, and before pages are asked for again; an event
            stream may say that it takes longer.

    Returns:
        An async iterator. Close it (`contextlib.aclosing`) where it is left before its end. The time of an element is
        that of its receipt, or the one that orders the members of an event stream; its stream is the stream's IRI.

    Raises:
        UsageError: arguments that do not go together, here and now.
        SourceError: the server refuses (`status` tells how: 404, there is no such stream or element; 410, retention
            has removed what comes next), or cannot be reached for too long.
        LogError, LimitExceeded: what comes is no message, or too large.
    """
    wishes = sum(wish is not None for wish in (after, last, since, checkpoint))
    if wishes > 1:
        raise UsageError("after, last, since and checkpoint do not go together", hint="give one of them")
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
    known = {**CONTEXTS, **(contexts or {})}
    trusted = {origin_of(origin) for origin in origins}
    collection = Collection(known, message_bytes, poll_seconds, trusted, after, last, since, checkpoint)
    return Subscription(client, url, collection, follow, via)


class Subscription(AsyncIterator[Element]):
    """The elements of a stream; made by `subscribe`.

    Args:
        client: sends the requests.
        url: see `subscribe`, as the rest.
        collection: where to begin, and what is allowed.
        follow: whether to wait for more.
        via: how elements come.
    """

    def __init__(self, client: Client, url: str, collection: Collection, follow: bool, via: Via | None) -> None:
        self._client, self._url, self._collection, self._follow, self._via = client, url, collection, follow, via
        self._place: _Place | None = None
        self._elements = self._run()
        self._started = False

    @property
    def checkpoint(self) -> Checkpoint | None:
        """How far it is: behind the element that it gave last; None: it is not known yet where that is."""
        return None if self._place is None else self._place.checkpoint

    async def start(self) -> None:
        """Finds the stream, and where to begin in it; iterating does so by itself.

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
        """Ends it."""
        await self._elements.aclose()

    async def _run(self) -> AsyncGenerator[Element | None]:
        async with self._client as client:
            collection, via = self._collection, self._via
            async for attempt in client.attempts():
                with attempt:
                    endpoints = await discover(client, self._url, collection.contexts, collection.message_bytes)
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
                elements: AsyncGenerator[Element | None] = _connected(
                    client, target, _TRANSPORTS[chosen], position, read, self._follow
                )
            else:
                reader = (EventStreamReader if chosen == "ldes" else InboxReader)(client, target, collection)
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
    client: Client, target: str, transport: Transport, position: Position, reading: Reading, follow: bool
) -> AsyncGenerator[Element]:
    """The elements of one connection after the other."""
    while True:
        async for attempt in client.attempts():
            moved = False
            with attempt:
                try:
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
        return Position(collection.checkpoint.sequence)
    if collection.last is not None:
        return Position(None, {"last": str(collection.last)})
    if collection.since is not None:
        return Position(None, {"since": collection.since.isoformat()})
    return Position(collection.after)


async def _locate(client: Client, endpoints: Endpoints, via: Via, position: Position) -> None:
    """Finds the sequence to begin behind, so that what comes before the first element is not lost to a reconnect."""
    if position.sequence is not None:
        return
    if endpoints.output is not None:
        url = position.url(endpoints.output)
        response = await client.open("HEAD", url, {"Accept": content_type(N_QUADS, RDFM)})
        position.sequence = sequence_after(response)
        response.close()
    if position.sequence is None and via != "sse":
        raise UsageError(
            f"{endpoints.stream} does not tell the number of its elements",
            hint="give the sequence to begin behind: after",
        )

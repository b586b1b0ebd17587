"""Subscriptions: the elements of a stream, over as many connections as it takes.

Each connection begins behind the last element, so that nothing is lost and nothing comes twice. WHATWG HTML, section
9.2 (reconnection); `transports.py` says what one connection gives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.client import Client
from construct_messages.feeds.discovery import Endpoints, discover
from construct_messages.feeds.transports import Position, Reading, Transport, events, frames, log, sequence_after
from construct_messages.formats import N_QUADS, RDFM, content_type
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.sources.http.response import without_query
from construct_messages.streams.element import Element, microseconds_of

Via: TypeAlias = Literal["sse", "websocket", "pull"]

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
    follow: bool = True,
    via: Via | None = None,
    contexts: Mapping[str, Any] | None = None,
    token: str | None = None,
    message_bytes: int = MESSAGE_BYTES,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
    poll_seconds: float = 1.0,
) -> AsyncGenerator[Element]:
    """The elements of a stream, in order, each once.

    Args:
        url: of the stream, as `construct-messages serve --streams` serves it; or of its events, its socket or its
            output.
        after: begin behind this sequence; 0: with the first.
        last: begin with as many of the newest. Without `after`, `last` and `since` a follower begins with what comes
            next, and one that does not follow with the oldest.
        since: begin with what was stored at this time or later; a time with a zone.
        follow: whether to wait for more; otherwise it ends behind what is there now.
        via: how elements come: server-sent events, WebSocket, or logs that are pulled again and again; None: the first
            of these that the stream offers, and a log where it does not follow.
        contexts: JSON-LD contexts that documents or the response's headers name, by their IRI, as parsed JSON; no
            context is fetched.
        token: sent as `Authorization: Bearer`.
        message_bytes: how large a message may be.
        retries: how often in a row a connection is tried again that fails in a way that may pass.
        idle_seconds: how long a server may be silent before the connection is taken for lost.
        poll_seconds: how long to wait between two logs that are pulled.

    Returns:
        An async iterator. Close it (`contextlib.aclosing`) where it is left before its end. The time of an element is
        that of its receipt; its stream is the stream's IRI.

    Raises:
        UsageError: arguments that do not go together, here and now.
        SourceError: the server refuses (`status` tells how: 404, there is no such stream or element; 410, retention
            has removed what comes next), or cannot be reached for too long.
        LogError, LimitExceeded: what comes is no message, or too large.
    """
    if sum(wish is not None for wish in (after, last, since)) > 1:
        raise UsageError("after, last and since do not go together", hint="give one of them")
    for name, number in (("after", after), ("last", last)):
        if number is not None and number < 0:
            raise UsageError(f"{name}={number} is less than 0")
    if not follow and via not in (None, "pull"):
        raise UsageError(f"via={via!r} follows a stream", hint='leave it out, or take via="pull"')
    if via not in (None, *_TRANSPORTS):
        raise UsageError(f"via={via!r} is no transport", hint=f"choose one of {', '.join(_TRANSPORTS)}")
    wishes: dict[str, str] = {}
    if last is not None:
        wishes["last"] = str(last)
    elif since is not None:
        microseconds_of(since)  # for its error
        wishes["since"] = since.isoformat()
    elif follow:
        wishes["last"] = "0"
    client = Client(token, retries, idle_seconds)
    position = Position(after, wishes)
    return _subscribe(client, url, position, follow, via, (contexts, message_bytes), poll_seconds)


async def _subscribe(
    client: Client,
    url: str,
    position: Position,
    follow: bool,
    via: Via | None,
    reading: tuple[Mapping[str, Any] | None, int],
    poll_seconds: float,
) -> AsyncGenerator[Element]:
    async with client:
        async for attempt in client.attempts():
            with attempt:
                endpoints = await discover(client, url)
                transport, target = _choose(endpoints, via if follow else "pull")
                await _locate(client, endpoints, transport, position)
        read = Reading(endpoints.stream, *reading)
        if transport is log:
            position.retry_seconds = poll_seconds
        while True:
            async for attempt in client.attempts():
                moved = False
                with attempt:
                    try:
                        async with aclosing(transport(client, target, position, read)) as elements:
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


def _choose(endpoints: Endpoints, via: Via | None) -> tuple[Transport, str]:
    targets: Mapping[Via, str | None] = {
        "sse": endpoints.events,
        "websocket": endpoints.socket,
        "pull": endpoints.output,
    }
    for name, target in targets.items():
        if target is not None and via in (None, name):
            return _TRANSPORTS[name], target
    offered = ", ".join(name for name, target in targets.items() if target is not None)
    raise SourceError(
        f"{endpoints.stream} cannot be had via {via or 'any transport'}",
        hint=f"choose one of {offered}" if offered else "give the URL of a stream that can be read",
    )


async def _locate(client: Client, endpoints: Endpoints, transport: Transport, position: Position) -> None:
    """Finds the sequence to begin behind, so that what comes before the first element is not lost to a reconnect."""
    if position.sequence is not None:
        return
    if endpoints.output is not None:
        url = position.url(endpoints.output)
        response = await client.open("HEAD", url, {"Accept": content_type(N_QUADS, RDFM)})
        position.sequence = sequence_after(response)
        response.close()
    if position.sequence is None and transport is not events:
        raise UsageError(
            f"{endpoints.stream} does not tell the number of its elements",
            hint="give the sequence to begin behind: after",
        )

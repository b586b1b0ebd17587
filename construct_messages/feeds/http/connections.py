"""Reading over one connection after the other: where each begins, and what follows its end.

Each connection begins after the last element, so that nothing is lost and nothing comes twice. WHATWG HTML, section 9.2
(reconnection). What one connection brings is in the rooms of the transports.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.connections import over_connections
from construct_messages.feeds.http.stream import HttpStream
from construct_messages.feeds.sequences import begin_after, is_sequence, same_stream
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Start, Transport
from construct_messages.formats import N_QUADS, RDFM, content_type
from construct_messages.message import Message
from construct_messages.net.urls import without_query
from construct_messages.net.wire import Header, Parameter, Property
from construct_messages.streams import Element
from construct_messages.streams.publication import received

_SELECTING: Final = frozenset(Parameter)


@dataclass
class ConnectionState:
    """How far the connections to a stream are.

    Args:
        sequence: of the last element that is known; None: the server has not sent it yet.
        parameters: query parameters to send while `sequence` is unknown.
        event_id: the last that an event had; None: none yet.
        retry_seconds: how long to wait before the next connection.
        resumable: whether the next connection can begin after the last element.
        identity: of the stream; empty: it is not known.
    """

    sequence: int | None
    parameters: Mapping[str, str] = field(default_factory=dict)
    event_id: str | None = None
    retry_seconds: float = 0.5
    resumable: bool = True
    identity: str = ""

    @classmethod
    def at(cls, start: Start) -> ConnectionState:
        """Returns the state before the first connection."""
        if start.checkpoint is not None:
            start.checkpoint.check()
            return cls(start.checkpoint.sequence, identity=start.checkpoint.identity)
        if start.last is not None:
            return cls(None, {Parameter.LAST: str(start.last)})
        if start.since is not None:
            return cls(None, {Parameter.SINCE: start.since.isoformat()})
        return cls(start.after)

    def url(self, url: str) -> str:
        """Returns the URL that asks for what comes after the last element.

        >>> ConnectionState(7).url("https://example.org/events?format=ttl&after=0")
        'https://example.org/events?format=ttl&after=7'
        """
        asked = (
            {Parameter.AFTER: str(self.sequence)} if self.sequence is not None else self.parameters
        )
        parts = urlsplit(url)
        kept = [
            pair
            for pair in parse_qsl(parts.query, keep_blank_values=True)
            if not asked or pair[0] not in _SELECTING
        ]
        return parts._replace(query=urlencode([*kept, *asked.items()])).geturl()

    def recognise(self, response: aiohttp.ClientResponse, url: str) -> None:
        """Makes sure that a response is of the stream that was read before.

        Raises:
            SourceError: it is of another one, whose sequences say nothing of the position (410).
        """
        said = response.headers.get(Header.IDENTITY, "")
        self.identity = same_stream(without_query(url), self.identity, said)

    def begin(self, response: aiohttp.ClientResponse, url: str) -> bool:
        """Takes the position at which a response begins; returns whether the server names it.

        Raises:
            SourceError: it begins elsewhere than was asked for.
        """
        self.recognise(response, url)
        after = sequence_after(response)
        if after is None:
            return False
        self.sequence = begin_after(without_query(url), self.sequence, after)
        return True


def sequence_after(response: aiohttp.ClientResponse) -> int | None:
    """Returns the sequence before the first element of a response; None: the server does not send it."""
    after = response.headers.get(Header.AFTER, "")
    return int(after) if is_sequence(after) else None


class ConnectedTransport(Transport):
    """A transport whose connections bring elements in the order of their sequences.

    Args:
        stream: what is read.
    """

    endpoint: ClassVar[Property]
    """Names the URL to connect to."""

    counts: ClassVar[bool] = True
    """Whether elements come without sequences, so that they are counted from the first."""

    def __init__(self, stream: HttpStream) -> None:
        self._stream, self._client, self._settings = stream, stream.client, stream.settings
        self._state: ConnectionState | None = None

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`."""
        state = self._state
        if state is None or state.sequence is None:
            return None
        return Checkpoint(state.sequence, identity=state.identity)

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """See `Transport.read`."""
        state = ConnectionState.at(start)
        url = self._stream.endpoints.urls[self.endpoint]
        async for attempt in self._client.attempts():
            with attempt:
                await self._locate(state)
        self._state = state
        yield None

        def pause() -> float:
            if not state.resumable:
                raise SourceError(
                    f"{without_query(url)} has ended, and its events have no ids to resume after",
                    hint="subscribe again, or ask the publisher for ids",
                )
            return state.retry_seconds

        reading = over_connections(
            partial(self.connection, url, state), self._settings, follow=follow, pause=pause
        )
        async with aclosing(reading) as elements:
            async for element in elements:
                yield element

    @abstractmethod
    def connection(self, url: str, state: ConnectionState) -> AsyncGenerator[Element]:
        """The elements of one connection; the state moves with each, before it is yielded.

        Args:
            url: of the endpoint.
            state: where it begins.

        Raises:
            SourceError: the server refuses, or the connection breaks off.
            LogError, LimitExceeded: what is no message, or too large.
        """

    def counted(self, state: ConnectionState, message: Message) -> Element:
        """Returns a message as the next element, which the state moves to."""
        assert state.sequence is not None  # it was located
        element = received(self._stream.endpoints.stream, state.sequence + 1, message)
        state.sequence += 1
        return element

    async def ask_position(self, state: ConnectionState) -> int | None:
        """Asks where the output of the stream begins for a state; it must be the stream that was read before."""
        output = self._stream.endpoints.urls.get(Property.OUTPUT)
        if output is None:
            return None
        url = state.url(output)
        response = await self._client.open("HEAD", url, {"Accept": content_type(N_QUADS, RDFM)})
        response.close()
        state.recognise(response, url)
        return sequence_after(response)

    async def _locate(self, state: ConnectionState) -> None:
        """Finds the sequence to begin after, so that what comes before the first element is not lost to a reconnect."""
        if state.sequence is None:
            state.sequence = await self.ask_position(state)
        if state.sequence is None and self.counts:
            raise UsageError(
                f"{self._stream.endpoints.stream} does not send the number of its elements",
                hint="pass the sequence to begin after: after=",
            )

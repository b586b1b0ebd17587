"""Reads over successive HTTP connections: the start position of each, and reconnection after its end.

Each connection begins after the last element, so that elements are neither lost nor repeated. WHATWG HTML, section 9.2
(reconnection). The folders of the transports read the content of a connection.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.connections import StreamPosition, over_connections
from construct_messages.feeds.http.client import Client
from construct_messages.feeds.state import Checkpoint, is_sequence
from construct_messages.feeds.transport import Settings, Start, Transport
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import Header, Parameter, Property
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element
from construct_messages.streams.publication import received

# --- stream ---------------------------------------------------------------------------------------
# A stream of an HTTP server, as found by discovery: the argument of transports over HTTP.


class Endpoints(NamedTuple):
    """The endpoints of a stream."""

    stream: str  # the IRI of the stream, or of another resource that was found
    # the URLs of its known endpoints, by their properties in descriptions
    urls: Mapping[Property, str]


@dataclass(frozen=True)
class HttpStream:
    """A stream of a server."""

    client: Client  # sends the requests; its owner closes it
    endpoints: Endpoints
    settings: Settings


# --- connections ----------------------------------------------------------------------------------

_SELECTING: Final = frozenset(Parameter)


@dataclass
class ConnectionState(StreamPosition):
    """The position of the connections to a stream, and how the next one begins."""

    event_id: str | None = None  # the last id of an event; None: none yet
    retry_seconds: float = 0.5  # the time before the next connection, in seconds
    resumable: bool = True  # whether the next connection can begin after the last element

    def url(self, url: str) -> str:
        """Returns the URL that requests the elements after the last one.

        >>> ConnectionState(7).url("https://example.org/events?format=ttl&after=0")
        'https://example.org/events?format=ttl&after=7'
        """
        asked = self.asked(Parameter.AFTER)
        parts = urlsplit(url)
        kept = [
            pair
            for pair in parse_qsl(parts.query, keep_blank_values=True)
            if not asked or pair[0] not in _SELECTING
        ]
        return parts._replace(query=urlencode([*kept, *asked.items()])).geturl()

    def begins(self, response: aiohttp.ClientResponse, url: str) -> bool:
        """See `begin`."""
        headers = response.headers
        after = headers.get(Header.AFTER, "")
        return self.begin(without_query(url), headers.get(Header.IDENTITY, ""), after)


class ConnectedTransport(Transport):
    """A transport whose connections bring elements in the order of their sequences."""

    endpoint: ClassVar[Property]  # the endpoint to connect to

    counts: ClassVar[bool] = True
    """Whether elements have no sequences, so that they are counted from the first."""

    def __init__(self, stream: HttpStream) -> None:
        self._stream, self._client, self._settings = stream, stream.client, stream.settings
        self._state: ConnectionState | None = None

    @property
    def position(self) -> Checkpoint | None:
        return None if self._state is None else self._state.checkpoint

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        state = ConnectionState.at(start, last=Parameter.LAST, since=Parameter.SINCE)
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
        """Yields the elements of one connection; the state advances with each, before it is yielded."""

    def counted(self, state: ConnectionState, message: Message) -> Element:
        """Returns a message as the next element, and advances the state to it."""
        assert state.sequence is not None  # the state was located
        element = received(self._stream.endpoints.stream, state.sequence + 1, message)
        state.sequence += 1
        return element

    async def ask_position(self, state: ConnectionState) -> int | None:
        """Requests the position at which the output of the stream begins for a state; checks that it is the same
        stream.
        """
        output = self._stream.endpoints.urls.get(Property.OUTPUT)
        if output is None:
            return None
        url = state.url(output)
        response = await self._client.open("HEAD", url, {"Accept": content_type(N_QUADS, RDFM)})
        response.close()
        state.recognise(without_query(url), response.headers.get(Header.IDENTITY, ""))
        after = response.headers.get(Header.AFTER, "")
        return int(after) if is_sequence(after) else None

    async def _locate(self, state: ConnectionState) -> None:
        """Finds the sequence to begin after, so that a reconnect before the first element does not lose elements."""
        if state.sequence is None:
            state.sequence = await self.ask_position(state)
        if state.sequence is None and self.counts:
            raise UsageError(
                f"{self._stream.endpoints.stream} does not send the number of its elements",
                hint="pass the sequence to begin after: after=",
            )

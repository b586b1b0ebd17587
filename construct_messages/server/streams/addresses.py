"""The IRIs of streams: one path for each thing that a stream offers, below the IRI of the stream itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from construct_messages.net.wire import Parameter, Property

ROOT = "/streams"
"""The path of the list of streams."""


class StreamIris(NamedTuple):
    """The IRIs of one stream.

    Args:
        stream: the IRI of the stream.
        service: the URL of the gRPC service; None: there is none, or its URL is not known.

    >>> StreamIris("https://example.org/streams/a").element(7)
    'https://example.org/streams/a/output/7'
    >>> StreamIris("https://example.org/streams/a").socket
    'wss://example.org/streams/a/socket'
    >>> StreamIris("https://example.org/streams/a", "grpcs://example.org").grpc
    'grpcs://example.org/a'
    """

    stream: str
    service: str | None = None

    @property
    def input(self) -> str:
        """The IRI to send elements to."""
        return f"{self.stream}/input"

    @property
    def output(self) -> str:
        """The IRI of the list of elements, which can be pulled."""
        return f"{self.stream}/output"

    @property
    def inbox(self) -> str:
        """Both at once, as Linked Data Notifications have it."""
        return f"{self.stream}/inbox"

    @property
    def events(self) -> str:
        """The IRI of server-sent events."""
        return f"{self.stream}/events"

    @property
    def socket(self) -> str:
        """The IRI of the WebSocket, which pushes and accepts elements."""
        return f"ws{self.stream.removeprefix('http')}/socket"

    @property
    def grpc(self) -> str | None:
        """The URL of the stream as a topic of the gRPC service, as clients of this package take it."""
        return None if self.service is None else f"{self.service}/{self.stream.rpartition('/')[2]}"

    @property
    def ldes(self) -> str:
        """The root of the Linked Data Event Stream."""
        return f"{self.stream}/ldes"

    @property
    def query(self) -> str:
        """The IRI to register queries over the stream at."""
        return f"{self.stream}/query"

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The IRIs of the endpoints, by the properties that name them."""
        named: dict[str, str] = {
            Property.INBOX: self.inbox,
            Property.INPUT: self.input,
            Property.LOG_INPUT: self.input,
            Property.OUTPUT: self.output,
            Property.EVENTS: self.events,
            Property.SOCKET: self.socket,
            Property.LDES: self.ldes,
            Property.QUERY: self.query,
        }
        return named if self.grpc is None else named | {str(Property.GRPC): self.grpc}

    @property
    def event_stream(self) -> str:
        """The Linked Data Event Stream itself, which its root describes."""
        return f"{self.ldes}#stream"

    def ldes_page(self, name: str) -> str:
        """A page of the Linked Data Event Stream."""
        return f"{self.ldes}/{name}"

    def element(self, sequence: int | str) -> str:
        """One element."""
        return f"{self.output}/{sequence}"

    def elements(self, sequences: Sequence[int]) -> str:
        """Some elements that follow each other, as a log; which ones they are never changes.

        >>> StreamIris("https://example.org/streams/a").elements(range(12, 14))
        'https://example.org/streams/a/output?after=11&before=14'
        """
        bounds = (Parameter.AFTER, sequences[0] - 1), (Parameter.BEFORE, sequences[-1] + 1)
        return f"{self.output}?{urlencode(bounds)}"

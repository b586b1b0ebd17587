"""The IRIs of streams and of their resources, whose paths are below that of the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from construct_messages.rdf.wire import Parameter, Property

ROOT = "/streams"
"""The path of the stream list."""


class StreamIris(NamedTuple):
    """The IRIs of one stream.

    Args:
        stream: the IRI of the stream.
        service: the URL of the gRPC service; None: it is not started, or its URL is unknown.

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
        """The IRI of the inbox, which accepts elements."""
        return f"{self.stream}/input"

    @property
    def output(self) -> str:
        """The IRI of the output, the list of elements."""
        return f"{self.stream}/output"

    @property
    def inbox(self) -> str:
        """The IRI of the inbox of Linked Data Notifications, which accepts and lists elements."""
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
        """The URL of the stream as a topic of the gRPC service, in the form that clients of this package use."""
        return None if self.service is None else f"{self.service}/{self.stream.rpartition('/')[2]}"

    @property
    def ldes(self) -> str:
        """The root of the Linked Data Event Stream."""
        return f"{self.stream}/ldes"

    @property
    def query(self) -> str:
        """The IRI at which queries over the stream are registered."""
        return f"{self.stream}/query"

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The IRIs of the endpoints, by their properties in descriptions."""
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
        """Returns the IRI of a page of the Linked Data Event Stream."""
        return f"{self.ldes}/{name}"

    def element(self, sequence: int | str) -> str:
        """Returns the IRI of one element."""
        return f"{self.output}/{sequence}"

    def elements(self, sequences: Sequence[int]) -> str:
        """Returns the IRI of a log of consecutive elements, which never change.

        >>> StreamIris("https://example.org/streams/a").elements(range(12, 14))
        'https://example.org/streams/a/output?after=11&before=14'
        """
        bounds = (Parameter.AFTER, sequences[0] - 1), (Parameter.BEFORE, sequences[-1] + 1)
        return f"{self.output}?{urlencode(bounds)}"

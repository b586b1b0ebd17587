"""A stream of an HTTP server, as found by discovery: the argument of transports over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from construct_messages.feeds.http.client import Client
from construct_messages.feeds.transport import Settings
from construct_messages.rdf.wire import Property


class Endpoints(NamedTuple):
    """The endpoints of a stream.

    Args:
        stream: the IRI of the stream, or of another resource that was found.
        urls: the URLs of its known endpoints, by their properties in descriptions.
    """

    stream: str
    urls: Mapping[Property, str]


@dataclass(frozen=True)
class HttpStream:
    """A stream of a server.

    Args:
        client: sends the requests; its owner closes it.
        endpoints: the endpoints of the stream.
        settings: see `Settings`.
    """

    client: Client
    endpoints: Endpoints
    settings: Settings

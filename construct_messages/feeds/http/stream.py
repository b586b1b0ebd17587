"""A stream of an HTTP server, as discovery found it: what transports over HTTP are created with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from construct_messages.feeds.http.client import Client
from construct_messages.feeds.transport import Settings
from construct_messages.net.wire import Property


class Endpoints(NamedTuple):
    """The endpoints of a stream.

    Args:
        stream: the IRI of the stream, or of what was found instead.
        urls: the URLs of the endpoints that it is known to have, by the properties that name them.
    """

    stream: str
    urls: Mapping[Property, str]


@dataclass(frozen=True)
class HttpStream:
    """A stream of a server.

    Args:
        client: sends the requests; its owner closes it.
        endpoints: of the stream.
        settings: see `Settings`.
    """

    client: Client
    endpoints: Endpoints
    settings: Settings

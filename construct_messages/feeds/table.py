"""The table of transports: names, schemes, capabilities, and modules. No I/O; does not import transports.

A new transport is a record here and a subfolder. The command line, `via`, `opening.py`, the layers of
tests/test_layers.py, and the table in docs/reference/streams/clients.md read it. docs/decisions/079-transports.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from construct_messages.rdf.wire import Property


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The capabilities of a transport.

    Args:
        ends: reading can end after the newest element; otherwise it follows.
        replays: reading can start at an earlier element, if the other side has it.
        numbered: elements have sequences without gaps, so that positions of one stream can be compared, and a missing
            element is an error.
        ordered: whether elements are in the order of the stream, of each partition, or unordered.
        acknowledges: the other side stores the position of a reader that acknowledges elements.
        writes: it accepts messages.
        keyed: a batch that is written twice under one key is stored once.
    """

    ends: bool = False
    replays: bool = False
    numbered: bool = False
    ordered: Literal["stream", "partition", "none"] = "stream"
    acknowledges: bool = False
    writes: bool = False
    keyed: bool = False


@dataclass(frozen=True, kw_only=True)
class TransportKind:
    """The record of a transport.

    Args:
        name: the value of `via`.
        title: its common name.
        schemes: the schemes of its URLs.
        capabilities: its capabilities.
        room: its class, as `module:name` in this folder, imported on first use. It is created with an `HttpStream` if
            it has an endpoint, otherwise with the URL and `Settings`.
        endpoint: the property of a stream's description with its URL; None: it has separate URLs.
        extra: the extra of this package that it needs; None: only `streams`.
        credentials: the options of a broker with credentials, instead of bearer tokens; None: it is not a broker.
        identity: the options that must be unique to a reader's connection, and not be used by that for its dead
            letters.
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    capabilities: Capabilities
    room: str
    endpoint: Property | None = None
    extra: str | None = None
    credentials: str | None = None
    identity: frozenset[str] = frozenset()


_HTTP: Final = ("http", "https")

TRANSPORTS: Final = (
    TransportKind(
        name="sse",
        title="server-sent events",
        schemes=_HTTP,
        capabilities=Capabilities(replays=True, numbered=True),
        room="http.sse:EventsTransport",
        endpoint=Property.EVENTS,
    ),
    TransportKind(
        name="websocket",
        title="WebSocket",
        schemes=(*_HTTP, "ws", "wss"),
        capabilities=Capabilities(replays=True, numbered=True),
        room="http.websocket:WebSocketTransport",
        endpoint=Property.SOCKET,
    ),
    TransportKind(
        name="pull",
        title="message logs by GET and POST",
        schemes=_HTTP,
        capabilities=Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True),
        room="http.log:LogTransport",
        endpoint=Property.OUTPUT,
    ),
    TransportKind(
        name="ldes",
        title="Linked Data Event Stream",
        schemes=_HTTP,
        capabilities=Capabilities(ends=True, replays=True),
        room="http.ldes:EventStreamTransport",
        endpoint=Property.LDES,
    ),
    TransportKind(
        name="inbox",
        title="inbox of Linked Data Notifications",
        schemes=_HTTP,
        capabilities=Capabilities(ends=True, replays=True, ordered="none"),
        room="http.inbox:InboxTransport",
        endpoint=Property.INBOX,
    ),
    TransportKind(
        name="mqtt",
        title="MQTT 5",
        schemes=("mqtt", "mqtts"),
        capabilities=Capabilities(acknowledges=True, writes=True),
        room="brokers.mqtt:MqttTransport",
        extra="mqtt",
        credentials="username and password",
        identity=frozenset(("identifier",)),
    ),
    TransportKind(
        name="nats",
        title="NATS JetStream",
        schemes=("nats", "tls"),
        capabilities=Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True),
        room="brokers.nats.transport:NatsTransport",
        extra="nats",
        credentials="token, or user and password",
    ),
    TransportKind(
        name="kafka",
        title="Apache Kafka",
        schemes=("kafka",),
        capabilities=Capabilities(
            ends=True,
            replays=True,
            ordered="partition",
            acknowledges=True,
            writes=True,
            keyed=True,
        ),
        room="brokers.kafka.transport:KafkaTransport",
        extra="kafka",
        credentials="sasl.mechanism, sasl.username and sasl.password",
    ),
    TransportKind(
        name="grpc",
        title="Jelly gRPC",
        schemes=("grpc", "grpcs"),
        capabilities=Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True),
        room="grpc:GrpcTransport",
        extra="grpc",
    ),
)
"""All transports, in order of preference."""


def kinds_for(url: str) -> list[TransportKind]:
    """Returns the transports that may support a URL; only a request can determine its endpoints.

    >>> [kind.name for kind in kinds_for("wss://example.org/streams/a/socket")], kinds_for("ftp://example.org/a")
    (['websocket'], [])
    """
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError:
        return []
    return [kind for kind in TRANSPORTS if scheme in kind.schemes]

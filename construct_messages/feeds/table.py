"""The table of transports: names, schemes, capabilities, and modules. No I/O; does not import transports.

A new transport is a record here and a subfolder. The command line, `via`, `opening.py`, the layers of
tests/test_layers.py, and the table in docs/reference/streams/clients.md read it. docs/decisions/079-transports.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from construct_messages.rdf.wire import Property


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The capabilities of a transport."""

    ends: bool = False  # reading can end after the newest element; otherwise it follows
    replays: bool = False  # reading can start at an earlier element, if the other side has it
    # elements have sequences without gaps, so that positions of one stream can be compared, and a missing element is an
    # error
    numbered: bool = False
    # whether elements are in the order of the stream, of each partition, or unordered
    ordered: Literal["stream", "partition", "none"] = "stream"
    # the other side stores the position of a reader that acknowledges elements
    acknowledges: bool = False
    writes: bool = False  # it accepts messages
    keyed: bool = False  # a batch that is written twice under one key is stored once


@dataclass(frozen=True, kw_only=True)
class PortProbe:
    """What finds out whether a port has TLS, when a connection has failed; see `connections.check_port`."""

    # how a connection begins without TLS, as far as each server answers; without secrets
    begins: bytes
    # how TLS is requested, and how it is not; None: by the scheme with and without a final `s`
    hints: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class TransportKind:
    """The record of a transport."""

    name: str  # the value of `via`
    title: str
    schemes: tuple[str, ...]
    capabilities: Capabilities
    # its class, as `module:name` in this folder, imported on first use. It is created with an `HttpStream` if it has an
    # endpoint, otherwise with the URL and `Settings`
    room: str
    # the property of a stream's description with its URL; None: it has separate URLs
    endpoint: Property | None = None
    extra: str | None = None  # the extra of this package that it needs; None: only `streams`
    # the options of a broker with credentials, instead of bearer tokens; None: it is not a broker
    credentials: str | None = None
    # the options that must be unique to a reader's connection, and not be used by that for its dead letters
    identity: frozenset[str] = frozenset()
    ports: Mapping[str, int] = field(default_factory=dict)  # the default ports of the schemes
    probe: PortProbe | None = None  # how to find out whether a port has TLS; None: its library does


_HTTP: Final = ("http", "https")
_HTTP_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_HTTP_PROBE: Final = PortProbe(
    begins=b"OPTIONS * HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n"
)

TRANSPORTS: Final = (
    TransportKind(
        name="sse",
        title="server-sent events",
        schemes=_HTTP,
        capabilities=Capabilities(replays=True, numbered=True),
        room="http.sse:EventsTransport",
        endpoint=Property.EVENTS,
        ports=_HTTP_PORTS,
        probe=_HTTP_PROBE,
    ),
    TransportKind(
        name="websocket",
        title="WebSocket",
        schemes=(*_HTTP, "ws", "wss"),
        capabilities=Capabilities(replays=True, numbered=True),
        room="http.websocket:WebSocketTransport",
        endpoint=Property.SOCKET,
        ports=_HTTP_PORTS,
        probe=_HTTP_PROBE,
    ),
    TransportKind(
        name="pull",
        title="message logs by GET and POST",
        schemes=_HTTP,
        capabilities=Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True),
        room="http.log:LogTransport",
        endpoint=Property.OUTPUT,
        ports=_HTTP_PORTS,
        probe=_HTTP_PROBE,
    ),
    TransportKind(
        name="ldes",
        title="Linked Data Event Stream",
        schemes=_HTTP,
        capabilities=Capabilities(ends=True, replays=True),
        room="http.ldes:EventStreamTransport",
        endpoint=Property.LDES,
        ports=_HTTP_PORTS,
        probe=_HTTP_PROBE,
    ),
    TransportKind(
        name="inbox",
        title="inbox of Linked Data Notifications",
        schemes=_HTTP,
        capabilities=Capabilities(ends=True, replays=True, ordered="none"),
        room="http.inbox:InboxTransport",
        endpoint=Property.INBOX,
        ports=_HTTP_PORTS,
        probe=_HTTP_PROBE,
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
        ports={"mqtt": 1883, "mqtts": 8883},
        probe=PortProbe(
            # CONNECT without a name and a password (MQTT 5.0, section 3.1)
            begins=b"\x10\x0d\0\4MQTT\5\2\0\5\0\0\0",
            hints=("write mqtts: instead of mqtt:", "write mqtt: without options of TLS"),
        ),
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
        ports={"kafka": 9092},
        probe=PortProbe(
            begins=b"\0\0\0\x0a\0\x12\0\0\0\0\0\0\xff\xff",  # a request for the versions of the API
            hints=(
                "set security.protocol to ssl, or to sasl_ssl with a password",
                "set security.protocol to plaintext, or to sasl_plaintext",
            ),
        ),
    ),
    TransportKind(
        name="grpc",
        title="Jelly gRPC",
        schemes=("grpc", "grpcs"),
        capabilities=Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True),
        room="grpc:GrpcTransport",
        extra="grpc",
        ports={"grpc": 50051, "grpcs": 443},
        # the beginning of a connection, with empty SETTINGS (RFC 9113, section 3.4)
        probe=PortProbe(begins=b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"),
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


def address_of(url: str) -> tuple[str, int]:
    """The host and the port of a URL of a transport; of the first broker if it names several.

    >>> address_of("grpcs://example.org/a"), address_of("kafka://[::1],b.example.org:9094/rooms")
    (('example.org', 443), ('::1', 9092))
    """
    parts = urlsplit(url)
    first = parts._replace(netloc=parts.netloc.partition(",")[0])
    port = first.port or kinds_for(url)[0].ports[parts.scheme.lower()]
    return first.hostname or "", port

"""A connection to an MQTT 5 broker; its end raises an error in all waiters. No RDF here.

aiomqtt runs the client of paho in the event loop. Features that it does not expose are used through its attribute
`_client`: manual acknowledgements, the reasons of rejected publications, and whether the broker has the session. MQTT
5.0 (OASIS), sections 3 and 4.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from aiomqtt import Client, MqttError, ProtocolVersion
from aiomqtt.exceptions import MqttCodeError
from paho.mqtt.client import Client as PahoClient
from paho.mqtt.client import ConnectFlags, MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from construct_messages.feeds.transport import Settings
from construct_messages.rdf.errors import SourceError, shown
from construct_messages.sparql.client.timeouts import CONNECT_SECONDS
from construct_messages.sparql.client.tls import TLS_OPTIONS, check_plain, check_tls, tls_context

_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.addHandler(logging.NullHandler())

IN_FLIGHT: Final = 100
"""The maximal number of messages in flight, unless the broker accepts fewer."""

_CONNECT: Final = b"\x10\x0d\0\4MQTT\5\2\0\5\0\0\0"
"""CONNECT without a name and a password, to which each broker answers (MQTT 5.0, section 3.1)."""

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_FAILURE: Final = 0x80  # the lowest reason code of a failure
_PASSING: Final = frozenset((0x88, 0x89, 0x8B, 0x97, 0x9C, 0x9D, 0x9F))
"""Reason codes of temporary failures: unavailable, busy, shutting down, quota, other server, rate."""

_CREDENTIALS: Final = frozenset((0x86, 0x87, 0x8A, 0x8C))
_TAKEN_OVER: Final = 0x8E
_CLOSE_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 10.0
_NOTHING: Final = "construct-messages/nothing"
"""A topic without subscribers."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """The session at the broker (MQTT 5.0, section 4.1).

    Args:
        identifier: the identifier of the client.
        expiry_seconds: the time that the broker keeps the session after the connection.
        is_ended: whether it ends with the last connection.
        receive_maximum: the maximal number of messages in flight from the broker.
    """

    identifier: str
    expiry_seconds: int
    is_ended: bool
    receive_maximum: int


class MqttConnection:
    """A connection to a broker.

    Args:
        client: the connected client.
        server: the URL without the topic, for errors.
        identifier: the identifier of the client, for errors.

    Attributes:
        session_present: whether the broker has the session of an earlier connection.
        in_flight: the maximal number of unacknowledged messages.
        packet_bytes: the maximal size of a packet; None: no limit.
    """

    def __init__(self, client: Client, server: str, identifier: str) -> None:
        self._client, self._server, self._identifier = client, server, identifier
        self._paho: PahoClient = client._client
        self._paho.on_message = self._arrive
        self._paho.on_publish = self._publish_reply
        self._connected, self._paho.on_connect = self._paho.on_connect, self._connect_reply
        self._disconnected, self._paho.on_disconnect = self._paho.on_disconnect, self._disconnect
        self._loop = asyncio.get_running_loop()
        self._paho.manual_ack_set(True)
        self._paho.max_inflight_messages_set(0)  # they are counted here
        self._arrived: asyncio.Queue[MQTTMessage | None] = asyncio.Queue()
        self._replies: asyncio.Queue[ReasonCode | None] = asyncio.Queue()
        self._failure: SourceError | None = None
        self._unsettled = False
        self.session_present, self.in_flight = False, IN_FLIGHT
        self.packet_bytes: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return self._failure is None

    async def subscribe(self, topic: str, retain_handling: int) -> None:
        """Subscribes to a topic at QoS 1.

        Args:
            topic: the topic, possibly with wildcards.
            retain_handling: whether retained messages are sent: 0: yes; 1: if the subscription is new; 2: no.

        Raises:
            SourceError: the broker rejects the subscription.
        """
        options = SubscribeOptions(qos=1, retainHandling=retain_handling)
        try:
            (granted,) = await self._client.subscribe(topic, options=options)
        except MqttError as error:
            raise self._failure or failed(self._server, error) from error
        assert isinstance(granted, ReasonCode)  # since MQTT 5
        if granted.value >= _FAILURE:
            raise refusal(f"{self._server} refuses to subscribe to {topic}", granted)
        if granted.value == 0:
            raise SourceError(
                f"{self._server} grants QoS 0 to {topic}, where messages get lost",
                hint="allow QoS 1 at the broker",
            )

    async def next(self) -> MQTTMessage:
        """Returns the next message; the broker keeps it until it is acknowledged.

        Raises:
            SourceError: the connection has ended.
        """
        message = await self._arrived.get()
        if message is None:
            assert self._failure is not None  # this was the reason
            raise self._failure
        return message

    def acknowledge(self, number: int) -> None:
        """Sends PUBACK, if the connection is open.

        Args:
            number: the number of the packet (`mid`); packets are acknowledged in order (MQTT 5.0, section 4.6).
        """
        if self.is_open:
            self._paho.ack(number, 1)
            self._unsettled = True

    def publish(self, topic: str, payload: bytes, properties: Properties) -> None:
        """Sends a message at QoS 1; `published` returns the broker's reason code.

        Raises:
            SourceError: the connection has ended.
        """
        if self._failure is not None:
            raise self._failure
        self._paho.publish(topic, payload, qos=1, properties=properties)

    async def published(self) -> ReasonCode:
        """Returns the reason code of the next message that the broker has acknowledged.

        Raises:
            SourceError: the broker rejects it, or the connection has ended.
        """
        reply = await self._replies.get()
        if reply is None:
            assert self._failure is not None
            raise self._failure
        if reply.value >= _FAILURE:
            raise refusal(f"{self._server} refuses a message", reply)
        return reply

    async def watch(self) -> None:
        """Waits for the end of the connection, and wakes its waiters."""
        try:
            await anext(self._client.messages)  # which receives no messages
        except MqttError as error:
            self._failure = self._ending(error)
        for queue in (self._arrived, self._replies):
            queue.put_nowait(None)

    async def settle(self) -> None:
        """Waits until the broker has processed all acknowledgements: it answers in order."""
        if not self._unsettled:
            return
        with suppress(MqttError):
            await self._client.unsubscribe(_NOTHING, timeout=_SETTLE_SECONDS)

    def end_session(self) -> None:
        """Disconnects and ends the session at the broker."""
        properties = Properties(PacketTypes.DISCONNECT)  # type: ignore[no-untyped-call] # of paho
        properties.SessionExpiryInterval = 0
        self._paho.disconnect(properties=properties)

    def _ending(self, error: MqttError) -> SourceError:
        cause = error.__cause__
        code = cause.rc if isinstance(cause, MqttCodeError) else None
        if isinstance(code, ReasonCode) and code.value == _TAKEN_OVER:
            return SourceError(
                f"another client connected to {self._server} as {self._identifier}",
                hint="give each reader an identifier of its own",
            )
        if (
            isinstance(code, ReasonCode) and code.value > _FAILURE
        ):  # paho uses this if there was none
            return refusal(f"{self._server} ended the connection", code)
        return SourceError(f"the connection to {self._server} was lost", transient=True)

    # --- called by the client of paho ---

    def _arrive(self, client: object, data: object, message: MQTTMessage) -> None:  # noqa: ARG002
        self._arrived.put_nowait(message)

    def _publish_reply(
        self,
        client: object,  # noqa: ARG002
        data: object,  # noqa: ARG002
        number: int,  # noqa: ARG002
        code: ReasonCode,
        properties: object,  # noqa: ARG002
    ) -> None:
        self._replies.put_nowait(code)

    def _connect_reply(
        self,
        client: PahoClient,
        data: Any,
        flags: ConnectFlags,
        code: ReasonCode,
        properties: Properties | None,
    ) -> None:
        self.session_present = flags.session_present
        self.in_flight = min(IN_FLIGHT, getattr(properties, "ReceiveMaximum", IN_FLIGHT))
        self.packet_bytes = getattr(properties, "MaximumPacketSize", None)
        self._connected(client, data, flags, code, properties)  # type: ignore[misc, call-arg, arg-type] # aiomqtt's

    def _disconnect(self, *details: Any) -> None:
        """Ends an attempt to connect; aiomqtt would wait until its time is over. May be called in another thread."""
        if self._client._connected.done():
            self._disconnected(*details)  # type: ignore[misc] # aiomqtt's
        else:
            self._loop.call_soon_threadsafe(self._fail_attempt)

    def _fail_attempt(self) -> None:
        if not self._client._connected.done():
            closed = MqttError("the connection was closed before an answer")
            self._client._connected.set_exception(closed)


@asynccontextmanager
async def connected(
    url: str, options: Mapping[str, str], session: Session, settings: Settings
) -> AsyncGenerator[MqttConnection]:
    """Connects to the broker of a URL, and disconnects at the end of the block.

    Args:
        url: the URL with the host; its path is not used.
        options: `username`, `password`, and those of TLS.
        session: the session to continue or to begin.
        settings: the maximal time without data from the broker.

    Raises:
        SourceError: the broker cannot be reached, or rejects the connection.
        UsageError: certificates cannot be read.
    """
    parts = urlsplit(url)
    server = parts._replace(path="", query="", fragment="").geturl()
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call] # of paho
    properties.SessionExpiryInterval = session.expiry_seconds
    properties.ReceiveMaximum = session.receive_maximum
    is_secure = parts.scheme == "mqtts" or any(name in TLS_OPTIONS for name in options)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    client = Client(
        host,
        port,
        identifier=session.identifier,
        protocol=ProtocolVersion.V5,
        username=options.get("username"),
        password=options.get("password"),
        clean_start=False,
        properties=properties,
        tls_context=tls_context(options) if is_secure else None,
        timeout=min(CONNECT_SECONDS, settings.idle_seconds),
        # without an answer in half of this time again, the connection is lost
        keepalive=max(1, int(settings.idle_seconds * 2 / 3)),
        logger=_LOGGER,  # its failures are raised, too
        socket_options=((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),),
    )
    connection = MqttConnection(client, server, session.identifier)
    try:
        await client.__aenter__()
    except MqttError as error:
        with suppress(MqttError, OSError):
            client._client.disconnect()
        if isinstance(error, MqttCodeError):
            pass  # an answer
        elif is_secure:
            hint = "write mqtt: without options of TLS"
            await check_tls(server, host, port, _CONNECT, hint)
        else:
            await check_plain(server, host, port, "write mqtts: instead of mqtt:")
        raise failed(server, error) from error
    watching = asyncio.create_task(connection.watch())
    try:
        yield connection
    finally:
        if session.is_ended and connection.is_open:
            connection.end_session()
            await asyncio.wait([watching], timeout=_CLOSE_SECONDS)
        elif connection.is_open:
            await (
                connection.settle()
            )  # otherwise acknowledgements may be lost when the client reconnects soon
        with suppress(MqttError, OSError):  # the connection has ended
            await client.__aexit__(None, None, None)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def failed(server: str, error: MqttError) -> SourceError:
    """Returns the error for a failed connection attempt.

    >>> failed("mqtt://localhost", MqttError("[Errno 111] MqttConnection refused")).transient
    True
    """
    if isinstance(error, MqttCodeError) and isinstance(error.rc, ReasonCode):
        return refusal(f"{server} refuses the connection", error.rc)
    if isinstance(error.__context__, ssl.SSLError):
        return SourceError(
            f"{server} could not be reached by TLS: {shown(str(error.__context__))}",
            hint="name the authority of its certificate: the option ca_certs",
        )
    return SourceError(
        f"{server} could not be reached: {shown(str(error))}",
        hint="check the URL, and that the broker runs"
        + (", with TLS at this port" if server.startswith("mqtts:") else ""),
        transient=True,
    )


def refusal(problem: str, code: ReasonCode) -> SourceError:
    """Returns the error for a reason code of a failure (MQTT 5.0, section 2.4)."""
    return SourceError(
        f"{problem}: {code}",
        hint="pass the options username and password, and allow them the topic at the broker"
        if code.value in _CREDENTIALS
        else None,
        transient=code.value in _PASSING,
    )

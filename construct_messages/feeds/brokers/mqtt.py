"""Reads and writes topics of MQTT 5: an element is a PUBLISH packet, whose Content Type names its format.

RDF Messages, section 3 (brokers); MQTT 5.0 (OASIS), sections 3.3 and 4. docs/decisions/079-transports.md
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from aiomqtt import Client, MqttError, ProtocolVersion, Topic
from aiomqtt.exceptions import MqttCodeError
from paho.mqtt.client import Client as PahoClient
from paho.mqtt.client import ConnectFlags, MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from construct_messages.errors import LimitExceeded, SourceError, UsageError, shown
from construct_messages.feeds.brokers.records import Gaps, RecordTransport
from construct_messages.feeds.connections import attempts_of, check_port, over_connections
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.table import address_of
from construct_messages.feeds.transport import (
    Record,
    Settings,
    Start,
    content_type_in,
    option_values,
)
from construct_messages.rdf.wire import Header
from construct_messages.sparql.client.retries import CONNECT_SECONDS
from construct_messages.sparql.client.tls import TLS_OPTIONS, tls_context
from construct_messages.streams.element import microseconds_of

# --- connection -----------------------------------------------------------------------------------
# A connection to an MQTT 5 broker; its end raises an error in all waiters. No RDF here.
#
# aiomqtt runs the client of paho in the event loop. Features that it does not expose are used through its attribute
# `_client`: manual acknowledgements, the reasons of rejected publications, and whether the broker has the session.
# MQTT 5.0 (OASIS), sections 3 and 4.

_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.addHandler(logging.NullHandler())

IN_FLIGHT: Final = 100  # the maximal number of messages in flight, unless the broker accepts fewer

_FAILURE: Final = 0x80  # the lowest reason code of a failure
_PASSING: Final = frozenset((0x88, 0x89, 0x8B, 0x97, 0x9C, 0x9D, 0x9F))
"""Reason codes of temporary failures: unavailable, busy, shutting down, quota, other server, rate."""

_CREDENTIALS: Final = frozenset((0x86, 0x87, 0x8A, 0x8C))
_TAKEN_OVER: Final = 0x8E
_CLOSE_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 10.0
_NOTHING: Final = "construct-messages/nothing"  # a topic without subscribers


@dataclass(frozen=True, kw_only=True)
class Session:
    """The session at the broker (MQTT 5.0, section 4.1)."""

    identifier: str
    expiry_seconds: int  # the time that the broker keeps the session after the connection
    is_ended: bool  # whether it ends with the last connection
    receive_maximum: int  # the maximal number of messages in flight from the broker


class MqttConnection:
    """A connection to a broker.

    `session_present`: the broker has the session of an earlier connection. `in_flight`: the maximal number of
    unacknowledged messages. `packet_bytes`: the maximal size of a packet; None: no limit.
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
        return self._failure is None

    async def subscribe(self, topic: str, retain_handling: int) -> None:
        """Subscribes to a topic, possibly with wildcards, at QoS 1.

        `retain_handling`: whether retained messages are sent: 0: yes; 1: if the subscription is new; 2: no.
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
        """Returns the next message, which the broker keeps until it is acknowledged; raises the error that ended the
        connection.
        """
        message = await self._arrived.get()
        if message is None:
            assert self._failure is not None  # this was the reason
            raise self._failure
        return message

    def acknowledge(self, number: int) -> None:
        """Sends PUBACK for a packet's `mid`, in order (MQTT 5.0, section 4.6), if the connection is open."""
        if self.is_open:
            self._paho.ack(number, 1)
            self._unsettled = True

    def publish(self, topic: str, payload: bytes, properties: Properties) -> None:
        """Sends a message at QoS 1; `published` returns the broker's reason code."""
        if self._failure is not None:
            raise self._failure
        self._paho.publish(topic, payload, qos=1, properties=properties)

    async def published(self) -> ReasonCode:
        """Returns the reason code of the next message that the broker has acknowledged; raises `SourceError` if it
        rejects it.
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
    """Connects to the broker of a URL, whose path is not used, and disconnects at the end of the block.

    Options are `username`, `password`, and those of TLS.
    """
    parts = urlsplit(url)
    server = parts._replace(path="", query="", fragment="").geturl()
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call] # of paho
    properties.SessionExpiryInterval = session.expiry_seconds
    properties.ReceiveMaximum = session.receive_maximum
    is_secure = parts.scheme == "mqtts" or any(name in TLS_OPTIONS for name in options)
    host, port = address_of(url)
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
        if not isinstance(error, MqttCodeError):  # which is an answer
            await check_port(server, is_secure=is_secure)
        raise failed(server, error) from error
    watching = asyncio.create_task(connection.watch())
    try:
        yield connection
    finally:
        if session.is_ended and connection.is_open:
            connection.end_session()
            await asyncio.wait([watching], timeout=_CLOSE_SECONDS)
        elif connection.is_open:
            # otherwise acknowledgements may be lost when the client reconnects soon
            await connection.settle()
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


# --- transport ------------------------------------------------------------------------------------

TIME: Final = "time"
"""The user property with the time when a message was sent. The property for its key is `Header.KEY`."""

_OPTIONS: Final = (
    "identifier",
    "username",
    "password",
    "session_expiry_interval",
    "receive_maximum",
    "retain_handling",
    *TLS_OPTIONS,
)
_GONE: Final = 410
_WEEK: Final = 7 * 24 * 3600
_RECONNECTING_SECONDS: Final = 300
"""The time that the broker keeps the session of a reader without an identifier, which may reconnect after a failure."""

_RECEIVE_MAXIMUM: Final = 2500  # room for a batch that is delivered, and for the next one
_KEYS: Final = 10_000  # the number of stored keys, for recognising repeated messages

_WILDCARDS: Final = ("+", "#")
_SHARED: Final = "$share/"
_TOPIC_BYTES: Final = 65_535
_NO_SUBSCRIBERS: Final = 0x10
_PACKET_BYTES: Final = 5 + 2 + 2  # the size of the header, the length of the topic and the number


class MqttTransport(RecordTransport):
    """A topic: `mqtt://host/topic`, or `mqtts:`; with wildcards for reading, `#` as `%23`.

    With the option `identifier`, the broker keeps a session with unacknowledged messages and those that are sent while
    there is no reader. Without it, reading begins with the next message, and messages are acknowledged when the next
    one is requested.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        super().__init__(url, settings)
        self._topic = _topic_of(url)
        self._options = option_values(settings, _OPTIONS)
        self._is_named = "identifier" in self._options
        self._session = Session(
            identifier=self._options.get("identifier") or f"construct-messages-{uuid4().hex}",
            expiry_seconds=self._number(
                "session_expiry_interval",
                _WEEK if self._is_named else _RECONNECTING_SECONDS,
                range(1 << 32),
            ),
            is_ended=not self._is_named,
            receive_maximum=self._number("receive_maximum", _RECEIVE_MAXIMUM, range(1, 1 << 16)),
        )
        self._retain_handling = self._number("retain_handling", 2, range(3))
        self._count = 0
        self._passed: int | None = None
        self._acknowledged = 0
        self._has_session = False
        self._unacknowledged: deque[tuple[int, int]] = deque()
        self._keys: OrderedDict[str, int] = OrderedDict()
        self._topics: set[str] = set()  # topics that match the subscription
        self._gaps = Gaps(self.url)
        self._connection: MqttConnection | None = None
        self._open = AsyncExitStack()  # the connection
        self._warned = False

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`: the number of messages; the broker stores the actual position."""
        return None if self._passed is None else Checkpoint(self._passed)

    @property
    def acknowledges(self) -> bool:
        return True

    def advance_past(self, record: Record) -> None:
        self._passed = record.sequence

    async def aclose(self) -> None:
        await self._open.aclose()

    def _number(self, name: str, default: int, allowed: range) -> int:
        value = self._options.get(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and int(value) in allowed):
            raise UsageError(
                f"the option {name} is {shown(value)!r}",
                hint=f"give a number from {allowed[0]} to {allowed[-1]}",
            )
        return int(value)

    async def _connected(self, *, reading: bool) -> MqttConnection:
        """Returns the connection; opens a new one if there is none, or it has ended."""
        if self._connection is None or not self._connection.is_open:
            await self._open.aclose()
            session = self._session
            connection = await self._open.enter_async_context(
                connected(self.url, self._options, session, self.settings)
            )
            self._unacknowledged.clear()  # unacknowledged messages are sent again
            if reading:
                self._check_session(connection)
                await connection.subscribe(self._topic, self._retain_handling)
                self._has_session = True
            self._connection = connection
        return self._connection

    # --- reading ---

    async def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:  # noqa: ARG002 - it always follows
        """Yields the records; see `RecordTransport.records`.

        Raises `UsageError` for a start that needs earlier messages, and `SourceError` (410) if the broker lost the
        session or dropped messages.
        """
        if start.after is not None or start.last or start.since is not None:
            raise UsageError(
                f"{self.url}: an MQTT broker keeps no earlier messages",
                hint="leave out after, last and since; the option identifier makes the broker keep what is not read",
            )
        if start.checkpoint is not None:
            start.checkpoint.check()
            self.check_resumable()
            self._count = self._acknowledged = start.checkpoint.sequence
            self._has_session = True
        async for attempt in attempts_of(self.settings):
            with attempt:
                await self._connected(reading=True)
        self._passed = self._count
        yield ()
        async with aclosing(over_connections(self._received, self.settings)) as records:
            async for record in records:
                yield record

    def _check_session(self, connection: MqttConnection) -> None:
        if self._has_session and not connection.session_present:
            raise SourceError(
                f"the broker of {self.url} has lost the session of {self._session.identifier}, and what it kept for it",
                status=_GONE,
                hint="begin again without the state; let the broker store sessions (Mosquitto: persistence, "
                "autosave_interval), and longer than the reader is away",
            )

    async def _received(self) -> AsyncGenerator[Sequence[Record]]:
        """Yields the records of one connection that were not read before."""
        connection = await self._connected(reading=True)
        while True:
            message = await connection.next()
            self._check_topic(message.topic)
            record = _record(message)
            known = self._keys.get(record.key) if record.key else None
            if known is not None:  # it was sent again, by the broker or by its publisher
                self._hold(known, message)
                continue
            if not self._topic.startswith(_SHARED):  # each of its readers gets a part
                self._gaps.check(record.key)
            self._count += 1
            if record.key:
                self._keys[record.key] = self._count
                if len(self._keys) > _KEYS:
                    self._keys.popitem(last=False)
            self._hold(self._count, message)
            yield (record._replace(sequence=self._count),)
            if not self._is_named:
                self._release(self._count)

    def _check_topic(self, topic: str) -> None:
        """Checks that a message belongs to the subscription: a session may have others from an earlier reader."""
        if topic not in self._topics:
            if not Topic(topic).matches(self._topic):
                raise SourceError(
                    f"the session {self._session.identifier} also has messages of {shown(topic)}, not only of "
                    f"{self._topic}",
                    hint="give each reader an identifier of its own",
                )
            if len(self._topics) >= _KEYS:
                self._topics.clear()
            self._topics.add(topic)

    def _hold(self, sequence: int, message: MQTTMessage) -> None:
        if message.qos:
            self._unacknowledged.append((sequence, message.mid))
            if len(self._unacknowledged) == self._session.receive_maximum:
                _LOGGER.warning(
                    "%s: the broker sends no more until some of %d messages are acknowledged",
                    self.url,
                    len(self._unacknowledged),
                )
            self._release(self._acknowledged)

    def _release(self, sequence: int) -> None:
        """Acknowledges messages in the order of their arrival."""
        self._acknowledged = max(self._acknowledged, sequence)
        while self._unacknowledged and self._unacknowledged[0][0] <= self._acknowledged:
            _, number = self._unacknowledged.popleft()
            if self._connection is not None:
                self._connection.acknowledge(number)

    def check_resumable(self) -> None:
        """Checks that the reader has an identifier, for which the broker keeps messages; see
        `Transport.check_resumable`.
        """
        if not self._is_named:
            raise UsageError(
                f"{self.url} cannot be continued: the broker keeps nothing for a reader without an identifier",
                hint="give the reader a name of its own: the option identifier (--set identifier=NAME; of a relay "
                "--from-set identifier=NAME), or leave out the state",
            )

    async def acknowledge(self, position: Checkpoint) -> None:
        self._release(position.sequence)

    # --- writing ---

    async def send(self, records: Sequence[Record], key: str) -> None:
        """Sends records; see `RecordTransport.send`. Raises `LimitExceeded` before any is sent.

        A batch is sent again as a whole if the connection is lost before all of it is acknowledged: a restarted broker
        may have lost acknowledged messages (Mosquitto writes its database afterwards).
        """
        if any(each in self._topic for each in _WILDCARDS):
            raise UsageError(
                f"{self.url} has wildcards, and messages are written to one topic",
                hint="name one topic",
            )
        packets = [_properties(record) for record in records]
        async for attempt in attempts_of(self.settings):
            with attempt:
                connection = await self._connected(reading=False)
                for number, (record, properties) in enumerate(
                    zip(records, packets, strict=True), 1
                ):
                    self._check_size(connection, f"{number} of {key}", record, properties)
                try:
                    await self._publish(connection, records, packets)
                except BaseException:
                    self._connection = None  # replies to sent messages may still arrive
                    raise

    async def _publish(
        self, connection: MqttConnection, records: Sequence[Record], packets: Sequence[Properties]
    ) -> None:
        acknowledged = 0
        for number, (record, properties) in enumerate(zip(records, packets, strict=True)):
            if number - acknowledged >= connection.in_flight:
                self._warn_without_subscribers((await connection.published()).value)
                acknowledged += 1
            connection.publish(self._topic, record.value, properties)
        for _ in range(len(records) - acknowledged):
            self._warn_without_subscribers((await connection.published()).value)

    def _warn_without_subscribers(self, code: int) -> None:
        if code == _NO_SUBSCRIBERS and not self._warned:
            self._warned = True
            _LOGGER.warning(
                "%s: nobody subscribes, so that the broker drops what is sent; start a reader with an identifier first",
                self.url,
            )

    def _check_size(
        self, connection: MqttConnection, name: str, record: Record, properties: Properties
    ) -> None:
        most = connection.packet_bytes
        if most is None:
            return
        size = _PACKET_BYTES + len(self._topic.encode()) + len(record.value)
        size += len(properties.pack())  # type: ignore[no-untyped-call] # of paho
        if size > most:
            raise LimitExceeded(
                f"message {name} has {size} bytes as a packet, and {self.url} takes {most}",
                hint="raise the broker's limit (Mosquitto: max_packet_size), or send smaller messages",
            )


def _properties(record: Record) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # of paho
    if record.content_type is not None:
        properties.ContentType = record.content_type
    named = {TIME: datetime.now(UTC).isoformat(), **record.headers}
    if record.key:
        named[Header.KEY.value] = record.key
    properties.UserProperty = list(named.items())
    return properties


def _record(message: MQTTMessage) -> Record:
    properties = message.properties
    headers: dict[str, str] = dict(getattr(properties, "UserProperty", ()))
    content_type = getattr(properties, "ContentType", None) or content_type_in(headers)
    return Record(
        bytes(message.payload),
        content_type,
        headers.pop(Header.KEY, ""),
        microseconds=_microseconds(headers.pop(TIME, "")),
        headers=headers,
    )


def _microseconds(text: str) -> int | None:
    """Returns the time from a publisher; None: it is not a time.

    >>> _microseconds("1970-01-01T00:00:01Z"), _microseconds("now"), _microseconds("2026-01-01")
    (1000000, None, None)
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else microseconds_of(time)


def _topic_of(url: str) -> str:
    """Returns the topic of a URL.

    >>> _topic_of("mqtt://localhost/rooms/kitchen"), _topic_of("mqtt://localhost//rooms/%23")
    ('rooms/kitchen', '/rooms/#')
    """
    parts = urlsplit(url)
    topic = unquote(parts.path.removeprefix("/"))
    if (
        not parts.hostname
        or not topic
        or parts.query
        or "#" in url
        or "\0" in topic
        or len(topic.encode()) > _TOPIC_BYTES
    ):
        raise UsageError(
            f"{shown(url)} is no URL of a topic",
            hint="write it like mqtt://localhost/TOPIC, with %23 instead of #",
        )
    return topic

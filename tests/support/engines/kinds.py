"""What relays read and write in tests: streams of a server, log files, and topics of brokers that run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, aclosing, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, Self

from construct_messages import Message, read_log
from construct_messages.errors import ConstructMessagesError
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.delivery import LOG
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.table import TRANSPORTS, Capabilities
from construct_messages.logs.writing import GrowingLog
from tests.support.engines.brokers import Mosquitto, NatsServer
from tests.support.engines.kafka import Kafka
from tests.support.engines.servers import Missing
from tests.support.http.streams import StreamsServer
from tests.support.places import absent
from tests.support.waiting import SECONDS

_NUMBERS = count(1)


class Place(NamedTuple):
    """Something that is relayed from and to.

    Args:
        name: the URL, or the path.
        can: its capabilities.
        stream: the URL at which its stream is created; None: it is created when it is written to.
    """

    name: str
    can: Capabilities
    stream: str | None = None

    async def prepare(self) -> None:
        """Creates its stream, and sessions of a broker that keeps messages for its readers only."""
        if self.stream is not None:
            await publish([], self.stream, create=True)
        for reader in () if self.can.replays else ("relay", "test"):
            async with aclosing(subscribe(self.name, options=self._session(reader))) as elements:
                await elements.start()

    def _session(self, reader: str) -> dict[str, str]:
        return {"identifier": f"{reader}-{self.name.rpartition('/')[2]}"}

    @property
    def reading(self) -> list[str]:
        """The options of a relay that reads it."""
        if self.can.replays:
            return []
        ((name, value),) = self._session("relay").items()
        return ["--from-set", f"{name}={value}", "--follow"]

    async def put(self, messages: Sequence[Message]) -> None:
        """Appends messages."""
        if "://" in self.name:
            await publish(messages, self.name, create=True)
        else:
            GrowingLog(self.name).append(messages)

    async def messages(self, last: Message) -> list[Message]:
        """All messages, once a last one is there."""
        read: list[Message] = []
        async with asyncio.timeout(SECONDS):
            if not self.can.replays:
                following = subscribe(self.name, options=self._session("test"))
                async with aclosing(following) as elements:
                    async for element in elements:
                        read.append(element.message)
                        await elements.acknowledge(Checkpoint(element.sequence))
                        if read[-1] == last:
                            return read
            while not read or read[-1] != last:
                await asyncio.sleep(0.1)
                read = await self._now()
        return read

    async def _now(self) -> list[Message]:
        with suppress(ConstructMessagesError):  # it is not there yet, or ends within a message
            if "://" not in self.name:
                return list(read_log(self.name))
            found = subscribe(self.name, after=0, follow=False)
            return [element.message async for element in found]
        return []


class Kinds:
    """Makes places of each kind; a broker is started when the first is made, and runs until the end of the block.

    Args:
        folder: of their files.
        kafka: gives the broker of Kafka.
    """

    def __init__(self, folder: Path, kafka: Callable[[], Kafka]) -> None:
        self._folder, self._kafka = folder, kafka
        self._running = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def place(self, kind: str, server: StreamsServer) -> Place:
        """Returns a new place; a stream is one of the server. Skips the test where the broker is not installed."""
        try:
            return self._place(kind, server)
        except Missing as missing:
            absent(str(missing))

    def _place(self, kind: str, server: StreamsServer) -> Place:
        number = next(_NUMBERS)
        match kind:
            case "stream":
                return Place(f"{server.url}/streams/s{number}", _can("pull"))
            case "log":
                return Place(str(self._folder / f"log{number}.nq"), LOG)
            case "grpc":
                assert server.streams.grpc is not None
                url = f"grpc://{server.streams.grpc.address}/s{number}"
                return Place(url, _can("grpc"), f"{server.url}/streams/s{number}")
            case "kafka":
                kafka = self._kafka()
                return Place(kafka.url(kafka.topic(max_message_bytes="4000000")), _can("kafka"))
            case "mqtt":
                return Place(self.mqtt.url(f"s{number}"), _can("mqtt"))
            case "nats":
                return Place(self.nats.url(f"s{number}"), _can("nats"))
        raise AssertionError(kind)

    @cached_property
    def nats(self) -> NatsServer:
        """A server of NATS."""
        return self._running.enter_context(NatsServer(self._made("nats"), "max_payload: 4MB"))

    @cached_property
    def mqtt(self) -> Mosquitto:
        """A broker of MQTT, which drops nothing of what waits. It is not killed, and so stores nothing."""
        broker = Mosquitto(self._made("mqtt"), "max_queued_messages 0")
        broker.saves = False
        return self._running.enter_context(broker)

    def _made(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        return folder


_BROKERS: Final = ("kafka", "nats", "mqtt", "grpc")
KINDS: Final = (
    *("stream", "log"),
    *(name for name in _BROKERS if any(kind.name == name for kind in TRANSPORTS)),
)


def _can(name: str) -> Capabilities:
    return next(kind.capabilities for kind in TRANSPORTS if kind.name == name)

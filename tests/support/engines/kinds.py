"""What relays read and write in tests: streams of a server, log files, and topics of brokers that run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, Self

from construct_messages import Message, read_log
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.delivery.guarantees import LOG
from construct_messages.feeds.table import TRANSPORTS, Capabilities
from construct_messages.writing.growing import GrowingLog
from tests.support.engines.brokers import NatsServer
from tests.support.engines.kafka import Kafka, kafka
from tests.support.http.streams import StreamsServer

_NUMBERS = count(1)


class Place(NamedTuple):
    """Something that is relayed from and to.

    Args:
        name: the URL, or the path.
        can: its capabilities.
    """

    name: str
    can: Capabilities

    async def put(self, messages: Sequence[Message]) -> None:
        """Appends messages."""
        if "://" in self.name:
            await publish(messages, self.name, create=True)
        else:
            GrowingLog(self.name).append(messages)

    async def messages(self) -> list[Message]:
        """All messages that are there."""
        if "://" not in self.name:
            return list(read_log(self.name))
        return [element.message async for element in subscribe(self.name, after=0, follow=False)]


class Kinds:
    """Makes places of each kind; a broker is started when the first is made, and runs until the end of the block.

    Args:
        folder: of their files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def place(self, kind: str, server: StreamsServer) -> Place:
        """Returns a new place; a stream is one of the server."""
        number = next(_NUMBERS)
        match kind:
            case "stream":
                return Place(f"{server.url}/streams/s{number}", _can("pull"))
            case "log":
                return Place(str(self._folder / f"log{number}.nq"), LOG)
            case "kafka":
                return Place(self.kafka.url(self.kafka.topic()), _can("kafka"))
            case "nats":
                return Place(self.nats.url(f"s{number}"), _can("nats"))
        raise AssertionError(kind)

    @cached_property
    def kafka(self) -> Kafka:
        """A broker of Kafka."""
        return self._running.enter_context(kafka(self._made("kafka")))

    @cached_property
    def nats(self) -> NatsServer:
        """A server of NATS."""
        return self._running.enter_context(NatsServer(self._made("nats")))

    def _made(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir()
        return folder


KINDS: Final = ("stream", "log", "kafka", "nats")


def _can(name: str) -> Capabilities:
    return next(kind.capabilities for kind in TRANSPORTS if kind.name == name)

"""Messages through brokers, against the client library alone: `python -m benchmarks micro brokers [--messages N]`.

Mosquitto (MQTT 5, without its database) and the NATS server (JetStream, in files), each in a process of its own. Sent:
from messages in memory to the last acknowledgement of the broker, against the same library sending the same bytes with
the same properties, as many at a time. Read: to messages in memory, against the library reading the bytes; for MQTT,
whose reader must be there, while they are sent by the same process. All runs are taken in turn. The ratios of CPU
seconds of this process stand beside those of seconds, as other work on the machine changes them less.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import aiomqtt
import nats
from nats.js import api
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from benchmarks.harness import Figure, report
from construct_messages.feeds import publish, subscribe
from construct_messages.logs.documents import document_writer
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal
from tests.support.engines.brokers import Mosquitto, NatsServer

EX = "http://example.org/"

COMPANY = Template(
    ("company", "name", "label", "motto", "street", "size", "founded", "country", "sector"),
    tuple(
        Pattern(Variable(0), Constant(iri(predicate)), object)
        for predicate, object in (
            (RDF + "type", Constant(iri(EX + "ns#Company"))),
            (EX + "ns#name", Variable(1)),
            (EX + "ns#label", Variable(2)),
            (EX + "ns#motto", Variable(3)),
            (EX + "ns#street", Variable(4)),
            (EX + "ns#employees", Variable(5)),
            (EX + "ns#founded", Variable(6)),
            (EX + "ns#country", Variable(7)),
            (EX + "ns#sector", Variable(8)),
            (EX + "ns#source", Constant(iri(EX + "register/current"))),
        )
    ),
)
OBSERVATION = Template(
    ("observation", "sensor", "time", "result", "label", "day"),
    tuple(
        Pattern(Variable(0), Constant(iri(predicate)), object, Variable(5))
        for predicate, object in (
            (RDF + "type", Constant(iri("http://www.w3.org/ns/sosa/Observation"))),
            ("http://www.w3.org/ns/sosa/madeBySensor", Variable(1)),
            ("http://www.w3.org/ns/sosa/resultTime", Variable(2)),
            ("http://www.w3.org/ns/sosa/hasSimpleResult", Variable(3)),
            ("http://www.w3.org/2000/01/rdf-schema#label", Variable(4)),
        )
    ),
)


def company(number: int) -> tuple[Term, ...]:
    """Made-up values for `COMPANY`."""
    return (
        iri(f"{EX}company/{number:07}"),
        literal(f"Company № {number}"),
        literal(f"Société {number}", language="fr"),
        literal(f"We know {number * 7919 % 1000} ways"),
        literal(f"Rue {number * 31 % 977}, boîte {number % 13}"),
        literal(str(number * 17 % 5000), datatype=XSD + "integer"),
        literal(f"{1900 + number % 120}-0{1 + number % 9}-15", datatype=XSD + "date"),
        iri(f"{EX}country/{number * 13 % 200}"),
        iri(f"{EX}ns#Sector{number * 7 % 40}"),
    )


def observation(number: int) -> tuple[Term, ...]:
    """Made-up values for `OBSERVATION`."""
    return (
        iri(f"{EX}observation/{number:07}"),
        iri(f"{EX}sensor/{number * 31 % 500}"),
        literal(
            f"2026-01-{1 + number % 28:02}T{number % 24:02}:{number * 7 % 60:02}:00Z",
            datatype=XSD + "dateTime",
        ),
        literal(f"{number * 7919 % 6000 / 100 - 20:.2f}", datatype=XSD + "decimal"),
        literal(f"Température à Liège, № {number}", language="fr"),
        iri(f"{EX}day/{number // 1000}"),
    )


TYPE = N_QUADS.document_type
BATCH = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="of each shape")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("MQTT", "NATS"), help="one of the brokers")
    known = parser.parse_args()
    figures = asyncio.run(_figures(known.messages, known.rounds, known.only))
    report("brokers", f"{known.messages:,} messages of each shape through brokers", figures)


Run = Callable[[], Awaitable[float]]
"""Does something, and returns the seconds that a part of it took."""


async def _figures(count: int, rounds: int, only: str | None) -> list[Figure]:
    few = [Message(OBSERVATION.instantiate(observation(n), n)) for n in range(count)]
    many = [
        Message(quad for part in range(3) for quad in COMPANY.instantiate(company(3 * n + part), n))
        for n in range(count)
    ]
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        mosquitto = Mosquitto(
            Path(folder) / "mqtt", "max_inflight_messages 100\nmax_queued_messages 0"
        )
        mosquitto.saves = False
        with mosquitto, NatsServer(Path(folder) / "nats") as server:
            for what, messages in (("5 quads", few), ("30 triples", many)):
                documents = [document_writer(N_QUADS)(message) for message in messages]
                size = sum(map(len, documents)) // count
                for kind, runs in (
                    ("MQTT", _mqtt(mosquitto, messages, documents)),
                    ("NATS", _nats(server, messages, documents)),
                ):
                    if only not in (None, kind):
                        continue
                    medians = await _medians(rounds, runs)
                    for name, raw, own in zip(
                        ("sent", "read"), medians[::2], medians[1::2], strict=True
                    ):
                        title = f"{kind}, {what} ({size} bytes): {name}, {count / own.wall:,.0f} a second"
                        figures.append(Figure(title, own.wall, raw.wall / own.wall, "≥ 0.7"))
                        title = f"{kind}, {what}: {name}, {count / own.cpu:,.0f} per second of CPU"
                        figures.append(Figure(title, own.cpu, raw.cpu / own.cpu))
    return figures


class Times(NamedTuple):
    """Seconds that a run takes, and those of the CPU of this process, with the connection."""

    wall: float
    cpu: float


async def _medians(rounds: int, runs: Sequence[Run]) -> list[Times]:
    seconds: list[list[Times]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, each in zip(runs, seconds, strict=True):
            used = time.process_time()
            wall = await run()
            each.append(Times(wall, time.process_time() - used))
    return [Times(*map(statistics.median, zip(*each, strict=True))) for each in seconds]


def _mqtt(broker: Mosquitto, messages: list[Message], documents: list[bytes]) -> list[Run]:
    """Sending and reading, each by the library and by this package."""
    url = broker.url("measured")

    def client(identifier: str) -> aiomqtt.Client:
        session = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call] # of paho
        session.SessionExpiryInterval = 0
        session.ReceiveMaximum = 1000
        return aiomqtt.Client(
            "127.0.0.1",
            broker.port,
            identifier=identifier,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=False,
            properties=session,
            max_inflight_messages=100,
        )

    async def send_raw() -> float:
        async with client(uuid4().hex) as sender:
            sender.pending_calls_threshold = BATCH
            started = time.perf_counter()
            for start in range(0, len(documents), BATCH):
                sending = []
                for number, document in enumerate(documents[start : start + BATCH]):
                    named = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # of paho
                    named.ContentType = TYPE
                    named.UserProperty = [
                        ("time", "2026-11-24T14:00:00.000000+00:00"),
                        ("Idempotency-Key", f"0123456789abcdef0123456789abcdef-{start}-{number}"),
                    ]
                    sending.append(sender.publish("measured", document, qos=1, properties=named))
                await asyncio.gather(*sending)
            return time.perf_counter() - started

    async def send() -> float:
        started = time.perf_counter()
        await publish(messages, url, batch=BATCH)
        return time.perf_counter() - started

    async def read_raw() -> float:
        async with client(uuid4().hex) as reader:
            await reader.subscribe("measured", qos=1)
            started = time.perf_counter()
            sending = asyncio.create_task(send_raw())
            messages = reader.messages
            for _ in documents:
                await anext(messages)
            await sending
            return time.perf_counter() - started

    async def read() -> float:
        async with aclosing(subscribe(url)) as elements:
            await elements.start()
            started = time.perf_counter()
            sending = asyncio.create_task(send())
            for _ in messages:
                await anext(elements)
            await sending
            return time.perf_counter() - started

    return [send_raw, send, read_raw, read]


def _nats(server: NatsServer, messages: list[Message], documents: list[bytes]) -> list[Run]:
    """As `_mqtt`."""
    name = uuid4().hex

    async def fresh(streams: JetStreamContext) -> None:
        with suppress(NotFoundError):
            await streams.delete_stream(name)
        await streams.add_stream(name=name, subjects=[name], storage=api.StorageType.FILE)

    @asynccontextmanager
    async def client() -> AsyncIterator[JetStreamContext]:
        connection = await nats.connect(f"nats://127.0.0.1:{server.port}")
        yield connection.jetstream(publish_async_max_pending=500)
        await connection.close()

    async def send_raw() -> float:
        async with client() as streams:
            await fresh(streams)
            started = time.perf_counter()
            for start in range(0, len(documents), BATCH):
                sending = []
                for number, document in enumerate(documents[start : start + BATCH]):
                    headers = {
                        "Content-Type": TYPE,
                        "RDF-Message-Content-Type": TYPE,
                        "Nats-Msg-Id": f"0123456789abcdef0123456789abcdef-{start}-{number}",
                        "Nats-Expected-Stream": name,
                    }
                    sending.append(await streams.publish_async(name, document, headers=headers))
                await asyncio.gather(*sending)
            return time.perf_counter() - started

    async def send() -> float:
        async with client() as streams:
            await fresh(streams)
        started = time.perf_counter()
        await publish(messages, server.url(name), batch=BATCH)
        return time.perf_counter() - started

    async def read_raw() -> float:
        async with client() as streams:
            consumer = api.ConsumerConfig(ack_policy=api.AckPolicy.NONE)
            reader = await streams.pull_subscribe("", stream=name, config=consumer)
            started, count = time.perf_counter(), 0
            while count < len(documents):
                count += len(await reader.fetch(500))
            return time.perf_counter() - started

    async def read() -> float:
        started, count = time.perf_counter(), 0
        async for _ in subscribe(server.url(name), follow=False):
            count += 1
        assert count == len(messages)
        return time.perf_counter() - started

    return [send_raw, send, read_raw, read]

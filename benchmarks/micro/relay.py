"""Messages a second that a relay moves from Kafka to NATS JetStream, exactly once.

`python -m benchmarks micro relay`. Both brokers run on this machine, on the disk; the messages have 600 bytes of
N-Quads. The relay has a state file, so that each batch is on disk before it is written. The figures are those of a
whole run, from opening both sides to the last acknowledgement: messages a second, and messages a second of CPU of the
relay alone, which other work on the machine changes less. What arrived is compared with what was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.harness import Figure, report
from construct_messages import Message, Quad, iri, literal
from construct_messages.feeds import publish, relay, subscribe
from tests.support.engines.brokers import NatsServer
from tests.support.engines.kafka import kafka

_GOAL = "≥ 20,000"
_QUADS = 5


def message(number: int) -> Message:
    """A message of five quads and 600 bytes."""
    subject = iri(f"http://example.org/observation/{number:09}")
    return Message(
        Quad(subject, iri(f"http://example.org/property/{index}"), literal("x" * 34 + str(number)))
        for index in range(_QUADS)
    )


class Times(NamedTuple):
    """Seconds that a relay takes, and those of CPU."""

    wall: float
    cpu: float


async def timed(moving: Callable[[], Awaitable[int]], count: int) -> Times:
    """The times of a relay."""
    started, cpu = time.perf_counter(), time.process_time()
    moved = await moving()
    if moved != count:
        raise SystemExit(f"{moved} messages were moved instead of {count}")
    return Times(time.perf_counter() - started, time.process_time() - cpu)


async def measure(source: str, target: str, count: int, batch: int, folder: Path) -> list[Times]:
    """The times without a state, and with one."""
    found = []
    for number, state in enumerate((None, folder / "state")):
        to = f"{target}{number}"
        found.append(
            await timed(
                lambda to=to, state=state: relay(source, to, batch=batch, state=state, create=True),  # type: ignore[misc] # mypy infers no defaults
                count,
            )
        )
        arrived = subscribe(to, after=0, follow=False)
        lines = [element.nquads async for element in arrived]
        if lines != [message(number).lines[:-1] for number in range(count)]:
            raise SystemExit("other messages arrived than were sent")
    return found


def main() -> None:
    """Measures and reports.

    Raises:
        SystemExit: messages are lost.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    count = options.messages
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kafka").mkdir()
        with kafka(place / "kafka") as broker, NatsServer(place / "nats") as nats:
            source = broker.url(broker.topic())
            asyncio.run(publish(map(message, range(count)), source))
            without, exactly = asyncio.run(
                measure(source, nats.url("benchmark"), count, options.batch, place)
            )
    figures = []
    for name, times, goal in (("without a state", without, ""), ("with a state", exactly, _GOAL)):
        figures.append(Figure(f"{name}: messages/s", times.wall, count / times.wall, goal))
        figures.append(Figure(f"{name}: messages/s of CPU", times.cpu, count / times.cpu))
    report("relay", "relay from Kafka to NATS, messages of 600 bytes", figures)

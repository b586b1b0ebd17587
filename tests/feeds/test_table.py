"""The table of transports: what it says is so, and everything else reads it. A new one is a record and a class."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name

import pytest

from construct_messages import Message
from construct_messages.cli import build_parser
from construct_messages.errors import UsageError
from construct_messages.feeds import Checkpoint, opening, publish, subscribe, table
from construct_messages.feeds.http.collections import Known
from construct_messages.feeds.http.connections import ConnectionState
from construct_messages.feeds.table import TRANSPORTS, Capabilities, TransportKind, kinds_for
from construct_messages.feeds.transport import Settings, Start, Transport
from construct_messages.rdf.wire import ENDPOINTS
from construct_messages.streams import Element
from construct_messages.streams.publication import received
from tests.support.places import ROOT
from tests.support.streams import numbered

PAGE = ROOT / "docs" / "reference" / "streams" / "clients.md"


def documented() -> str:
    """The table of the documentation."""
    yes = {True: "yes", False: "no"}
    rows = [
        "| `via` | transport | URLs | ends | replays | sequences | order | acknowledges | `publish` |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in TRANSPORTS:
        can = kind.capabilities
        order = {"stream": "of the stream", "partition": "of each partition", "none": "none"}
        writes = "once per key" if can.keyed else yes[can.writes]
        cells = [
            f"`{kind.name}`",
            kind.title,
            ", ".join(f"`{scheme}:`" for scheme in kind.schemes),
            *(yes[each] for each in (can.ends, can.replays, can.numbered)),
            order[can.ordered],
            yes[can.acknowledges],
            writes,
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def test_the_documentation_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- transports -->\n\n{documented()}\n\n<!-- /transports -->"
    assert wanted in page, f"write into {PAGE.name}:\n{wanted}"


def test_the_command_line_offers_them() -> None:
    (commands,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    (via,) = (each for each in commands.choices["subscribe"]._actions if each.dest == "via")
    assert via.choices == [kind.name for kind in TRANSPORTS]
    assert ", ".join(via.choices) in via.help


@pytest.mark.parametrize("kind", TRANSPORTS, ids=lambda kind: kind.name)
def test_records(kind: TransportKind) -> None:
    room = resolve_name(f"construct_messages.feeds.{kind.room}")
    assert issubclass(room, Transport)
    assert (room.write is not Transport.write) == kind.capabilities.writes
    assert (room.acknowledge is not Transport.acknowledge) == kind.capabilities.acknowledges
    assert kind.endpoint is None or kind.endpoint in ENDPOINTS
    assert all(kind in kinds_for(f"{scheme.upper()}://example.org/") for scheme in kind.schemes)
    assert kind.capabilities.writes or not kind.capabilities.keyed


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("kind", TRANSPORTS, ids=lambda kind: kind.name)
def test_via_is_checked_by_the_table(kind: TransportKind, follow: bool) -> None:
    url = f"{kind.schemes[0]}://localhost/a"
    if follow or kind.capabilities.ends:
        subscribe(url, via=kind.name, follow=follow)
    else:
        with pytest.raises(UsageError, match="follows a stream"):
            subscribe(url, via=kind.name, follow=follow)


def test_what_can_only_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = replace(MEMORY, capabilities=Capabilities(writes=True))
    for module in (table, opening):
        monkeypatch.setattr(module, "TRANSPORTS", (*TRANSPORTS, kind))
    subscribe("memory://a")
    with pytest.raises(UsageError, match="memory: does not end"):
        subscribe("memory://a", follow=False)


def test_what_is_no_transport() -> None:
    with pytest.raises(UsageError, match="via='amqp' is no transport"):
        subscribe("http://localhost/", via="amqp")
    with pytest.raises(UsageError, match="via='ldes' has no such URLs"):
        subscribe("ws://localhost/", via="ldes")
    with pytest.raises(UsageError, match="http"):
        subscribe("memory://a")


@dataclass
class Queue:
    """A queue of a broker: its messages by key, and how far its reader is."""

    batches: dict[str, Sequence[Message]] = field(default_factory=dict)
    acknowledged: int = 0
    closed: int = 0


QUEUES: dict[str, Queue] = {}


class MemoryTransport(Transport):
    """The least that a broker's transport is: what the next ones will be like."""

    def __init__(self, url: str, settings: Settings) -> None:
        self._url, self._settings = url, settings
        self._queue = QUEUES.setdefault(url, Queue())
        self._sequence = 0

    @property
    def position(self) -> Checkpoint:
        return Checkpoint(self._sequence)

    @property
    def acknowledges(self) -> bool:
        return True

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        assert not follow
        messages = [each for batch in self._queue.batches.values() for each in batch]
        after = start.checkpoint.sequence if start.checkpoint else start.after
        self._sequence = self._queue.acknowledged if after is None else after
        yield None
        for message in messages[self._sequence :]:
            self._sequence += 1
            yield received(self._url, self._sequence, message)

    async def acknowledge(self, position: Checkpoint) -> None:
        self._queue.acknowledged = position.sequence

    async def aclose(self) -> None:
        self._queue.closed += 1

    async def write(self, batch: Sequence[Message], key: str) -> None:
        self._queue.batches.setdefault(key, list(batch))


MEMORY = TransportKind(
    name="memory",
    title="queues in memory",
    schemes=("memory",),
    capabilities=Capabilities(
        ends=True, replays=True, acknowledges=True, numbered=True, writes=True, keyed=True
    ),
    room="memory:MemoryTransport",
)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a queue; its transport is one record and one class."""
    for module in (table, opening):
        monkeypatch.setattr(module, "TRANSPORTS", (*TRANSPORTS, MEMORY))
    modules = {f"{opening.__package__}.{MEMORY.room}": MemoryTransport}
    monkeypatch.setattr(
        opening, "resolve_name", lambda name: modules.get(name) or resolve_name(name)
    )
    QUEUES.clear()
    return "memory://broker/a"


async def taken(
    url: str, count: int, checkpoint: Checkpoint | None = None
) -> tuple[list[Element], Checkpoint]:
    async with aclosing(subscribe(url, follow=False, checkpoint=checkpoint)) as elements:
        read = [await anext(elements) for _ in range(count)]
        reached = elements.checkpoint
        assert reached is not None
        await elements.acknowledge(reached)
    return read, reached


async def test_a_transport_is_a_record_and_a_class(memory: str) -> None:
    """Publishing, reading, acknowledging and continuing by a transport that is not HTTP."""
    sent = [numbered(1), Message(), numbered(3), numbered(4)]
    assert await publish(sent, memory, key="k", batch=2) == 4
    assert await publish(sent, memory, key="k", batch=2) == 4  # the keys are known
    elements, checkpoint = await taken(memory, 2)
    assert [element.message for element in elements] == sent[:2]
    assert [element.sequence for element in elements] == [1, 2]
    again, _ = await taken(memory, 1)  # after what was acknowledged
    assert again[0].message == sent[2]
    replayed, _ = await taken(memory, 2, checkpoint=checkpoint)
    assert [element.message for element in replayed] == sent[2:]
    assert QUEUES[memory].closed == 5  # each connection


async def test_an_extra_that_is_absent(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name, name="aiomemory")

    monkeypatch.setattr(opening, "resolve_name", absent)
    kind = TransportKind(
        name="memory",
        title="queues in memory",
        schemes=("memory",),
        capabilities=MEMORY.capabilities,
        room=MEMORY.room,
        extra="memory",
    )
    for module in (table, opening):
        monkeypatch.setattr(module, "TRANSPORTS", (kind,))
    with pytest.raises(UsageError, match=r"aiomemory.*not installed") as refused:
        await taken(memory, 1)
    assert "construct-messages[memory]" in str(refused.value)


@pytest.mark.parametrize(("url", "package"), [("mqtt://h/a", "aiomqtt"), ("nats://h/a", "nats")])
async def test_the_extras_of_brokers(
    url: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its package, a room cannot be imported, and the error names what to install."""
    (kind,) = kinds_for(url)
    room = f"construct_messages.feeds.brokers.{kind.name}"
    for name in [each for each in sys.modules if each.startswith((room, f"{package}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"{kind.name} needs {package}.*not installed") as refused:
        await anext(subscribe(url))
    assert f"pip install 'construct-messages[{kind.name}]'" in str(refused.value)


def test_a_checkpoint_of_another_transport() -> None:
    checkpoint = Checkpoint(1, {"offsets": ("0:17",)})
    with pytest.raises(UsageError, match="another transport"):
        Known.at(Start(checkpoint=checkpoint))
    members = Known(None)
    members.add("urn:a", (), 1)
    with pytest.raises(UsageError, match="another transport"):
        ConnectionState.at(Start(checkpoint=members.checkpoint), last="last", since="since")

"""A relay that is killed again and again, for each pair of kinds: nothing is lost, and doubles only where documented.

`make soak-relay` kills it fifty times for each, relays a log of 20,000 messages, too, and prints a table of all pairs;
`make soak-relay PAIRS="kafka-nats or log-mqtt"` does so for some. A pair that fails does not end it.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import msgspec
import pytest

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.feeds.delivery import Guarantee, guarantee
from construct_messages.feeds.state import Sent
from tests.support.engines.broker_logs import differences, log, same, undoubled
from tests.support.engines.kinds import KINDS, Kinds, Place
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.processes import start
from tests.support.streams import numbered

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.engine]

FEW = 2

MOST_SECONDS = 900.0
"""After which a pair has failed."""

STEP = 60
"""How many messages each run of the relay finds."""

LAST = numbered(1_000_000)
"""The message after which no more are sent."""


def messages(first: int) -> list[Message]:
    """A step of messages: numbered, with an empty one, and some with a node."""
    made = [numbered(number) for number in range(first, first + STEP)]
    made[7] = Message()
    for place in (11, 12):
        made[place] = Message([Quad(blank("x"), iri("urn:p"), literal(str(first)))])
    return made


def reached(state: Path) -> tuple[int, int]:
    """How many messages a relay has in flight or acknowledged, and of these in flight."""
    if not state.exists():
        return 0, 0
    sent = msgspec.json.decode(state.read_bytes(), type=Sent)
    return sent.acknowledged + len(sent.in_flight), len(sent.in_flight)


async def killed(command: Sequence[str], state: Path, at: int, points: random.Random) -> bool:
    """Runs a relay, and kills it when its state has so many messages; returns whether it still ran."""
    process = await start(*command)
    while reached(state)[0] < at and process.returncode is None:  # noqa: ASYNC110 # both are others'
        await asyncio.sleep(0.001)
    await asyncio.sleep(points.random() * 0.02)
    ran = process.returncode is None
    if ran:
        process.kill()
    _, errors = await process.communicate()
    assert ran or (process.returncode, errors) == (0, b"")
    return ran


async def finished(command: Sequence[str], target: Place) -> list[Message]:
    """Runs a relay until the last message arrived; returns all that did."""
    process = await start(*command)
    if "--follow" not in command:
        assert await process.communicate() == (b"", b"")
        return await target.messages(LAST)
    arrived = await target.messages(LAST)
    process.send_signal(signal.SIGINT)
    assert await process.communicate() == (b"", b"")
    return arrived


def check(
    source: Place, target: Place, arrived: list[Message], sent: list[Message], pair: Pair
) -> None:
    """Nothing is lost and all is in order; without doubles where that is guaranteed."""
    expected = guarantee(source.can, target.can)
    pair.note(guarantee=expected.value, **differences(arrived, sent))
    if expected is Guarantee.EXACTLY_ONCE or not pair.kills:
        assert same(arrived, sent)
    else:
        assert undoubled(arrived, sent)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    async with serving_streams(tmp_path / "streams.db", grpc="127.0.0.1:0") as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each kind once on each side, or all pairs where many kills are asked for."""
    if "pair" in metafunc.fixturenames:
        many = metafunc.config.getoption("--kills") > FEW
        pairs = list(product(KINDS, KINDS)) if many else list(pairwise((*KINDS, KINDS[0])))
        metafunc.parametrize("pair", pairs, ids="-".join)


@pytest.fixture(scope="module")
def kinds(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Kinds]:
    broker = partial(request.getfixturevalue, "kafka")
    with Kinds(tmp_path_factory.mktemp("kinds"), broker) as made:
        yield made


@dataclass
class Pair:
    """The figures of a pair, for the table at the end.

    Args:
        record: keeps them.
        kills: how many there were.
    """

    record: Callable[[str, object], None]
    kills: int = 0

    def note(self, **figures: object) -> None:
        for name, value in figures.items():
            self.record(name, value)


@pytest.fixture
def figures(record_property: Callable[[str, object], None], pair: tuple[str, str]) -> Pair:
    noted = Pair(record_property)
    noted.note(pair=" → ".join(pair))
    return noted


async def test_kills(
    tmp_path: Path,
    pair: tuple[str, str],
    figures: Pair,
    served: StreamsServer,
    kinds: Kinds,
    request: pytest.FixtureRequest,
) -> None:
    rounds, seed = request.config.getoption("--kills"), random.randrange(1 << 32)
    print(f"seed {seed}")
    points, state = random.Random(seed), tmp_path / "state"
    source, target = (kinds.place(kind, served) for kind in pair)
    command = ["relay", "--from", source.name, "--to", target.name, "--state", str(state)]
    command += ["--batch", "5", *source.reading, *(["--create"] if "://" in target.name else [])]
    for place in (source, target):
        await place.prepare()
    sent: list[Message] = []
    kills = cut = 0
    async with asyncio.timeout(MOST_SECONDS):
        while kills < rounds:
            sent += (more := messages(len(sent) + 1))
            await source.put(more)
            at = points.randrange(reached(state)[0], max(reached(state)[0], len(sent) - 5) + 1)
            kills += await killed(command, state, at, points)
            cut += reached(state)[1] > 0
        figures.kills = kills
        figures.note(kills=kills, cut=cut)
        sent.append(LAST)
        await source.put([LAST])
        check(source, target, await finished(command, target), sent, figures)
    assert reached(state)[1] == 0


async def test_all_pairs(
    tmp_path: Path,
    pair: tuple[str, str],
    figures: Pair,
    served: StreamsServer,
    kinds: Kinds,
    request: pytest.FixtureRequest,
) -> None:
    """One log from every kind to every other: isomorphic, and in order, with empty messages and some of a megabyte."""
    many = request.config.getoption("--kills") > FEW
    sent = [*(log(20_000, large=20) if many else log(150, large=2)), LAST]
    source, target = (kinds.place(kind, served) for kind in pair)
    async with asyncio.timeout(MOST_SECONDS):
        for place in (source, target):
            await place.prepare()
        await source.put(sent)
        state = tmp_path / "state"
        command = ["relay", "--from", source.name, "--to", target.name, "--state", str(state)]
        command += [*source.reading, *(["--create"] if "://" in target.name else [])]
        check(source, target, await finished(command, target), sent, figures)

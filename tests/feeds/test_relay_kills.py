"""A relay that is killed again and again, for each pair of kinds: nothing is lost, and doubles only where documented.

`make soak-relay` kills it fifty times for each.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path

import msgspec
import pytest

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.feeds.delivery.guarantees import Guarantee, guarantee
from construct_messages.feeds.state import Sent
from tests.support.engines.broker_logs import log, same, undoubled
from tests.support.engines.kinds import KINDS, Kinds, Place
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.processes import start
from tests.support.streams import numbered

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.engine]

FEW = 2

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
    arrived = await target.messages(LAST)
    if "--follow" in command:
        process.send_signal(signal.SIGINT)
    assert await process.communicate() == (b"", b"")
    return arrived


def check(source: Place, target: Place, arrived: list[Message], sent: list[Message]) -> None:
    """Nothing is lost and all is in order; without doubles where that is guaranteed."""
    if guarantee(source.can, target.can) is Guarantee.EXACTLY_ONCE:
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
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kinds]:
    with Kinds(tmp_path_factory.mktemp("kinds")) as made:
        yield made


async def test_kills(
    tmp_path: Path,
    pair: tuple[str, str],
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
    while kills < rounds:
        sent += (more := messages(len(sent) + 1))
        await source.put(more)
        at = points.randrange(reached(state)[0], max(reached(state)[0], len(sent) - 5) + 1)
        kills += await killed(command, state, at, points)
        cut += reached(state)[1] > 0
    sent.append(LAST)
    await source.put([LAST])
    check(source, target, await finished(command, target), sent)
    assert reached(state)[1] == 0
    print(f"{'-'.join(pair)}: {kills} kills, {cut} of them in mid-batch, {len(sent)} messages")


async def test_all_pairs(
    tmp_path: Path,
    pair: tuple[str, str],
    served: StreamsServer,
    kinds: Kinds,
    request: pytest.FixtureRequest,
) -> None:
    """One log from every kind to every other: isomorphic, and in order, with empty messages and some of a megabyte."""
    many = request.config.getoption("--kills") > FEW
    sent = [*(log(20_000, large=20) if many else log(150, large=2)), LAST]
    source, target = (kinds.place(kind, served) for kind in pair)
    for place in (source, target):
        await place.prepare()
    await source.put(sent)
    state = tmp_path / "state"
    command = ["relay", "--from", source.name, "--to", target.name, "--state", str(state)]
    command += [*source.reading, *(["--create"] if "://" in target.name else [])]
    assert same(await finished(command, target), sent)

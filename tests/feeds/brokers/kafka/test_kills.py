"""A broker killed in mid-stream, and publishers and subscribers killed at random: nothing is lost, nothing comes twice.

`--kills` says how often; `make kill-kafka` kills 50 times.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from construct_messages import Message, read_log, write_log
from construct_messages.feeds import publish, subscribe
from tests.support.commands import COMMAND, ENVIRONMENT, run
from tests.support.engines.broker_logs import log, same
from tests.support.engines.kafka import Kafka
from tests.support.streams import numbered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture
def points() -> random.Random:
    """Random points, whose seed is shown."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    count = request.config.getoption("--kills")
    assert isinstance(count, int)
    return count


@pytest.fixture
def restarts(kills: int) -> int:
    """How often the broker is killed, which takes seconds to start again."""
    return max(1, kills - 1)


@pytest.mark.parametrize("with_state", [True, False])
async def test_the_broker_is_killed(
    kafka: Kafka, tmp_path: Path, restarts: int, points: random.Random, with_state: bool
) -> None:
    """Under a publisher and a follower, who go on by themselves. One publication writes everything once in any case."""
    url, state = kafka.url(kafka.topic()), tmp_path / "state.json"
    sent: list[Message] = []
    ending = False

    async def messages() -> AsyncGenerator[Message]:
        while not ending:
            await asyncio.sleep(0.001)
            sent.append(numbered(len(sent)))
            yield sent[-1]

    received: list[Message] = []

    async def follow() -> None:
        async with aclosing(subscribe(url, after=0)) as elements:
            async for element in elements:
                received.append(element.message)

    publishing = asyncio.ensure_future(
        publish(messages(), url, state=state if with_state else None, batch=100)
    )
    following = asyncio.ensure_future(follow())
    try:
        for _ in range(restarts):
            at = len(received) + points.randrange(1, 300)
            while len(received) < at:
                assert not publishing.done(), await publishing
                assert not following.done(), await following
                await asyncio.sleep(points.random() * 0.01)
            await asyncio.to_thread(kafka.kill)
            await asyncio.sleep(points.random())
            await asyncio.to_thread(kafka.start)
        ending = True
        assert await publishing == len(sent)
        while len(received) < len(sent):
            assert not following.done(), await following
            await asyncio.sleep(0.01)
    finally:
        for task in (publishing, following):
            task.cancel()
        await asyncio.gather(publishing, following, return_exceptions=True)
    stored = [element.message async for element in subscribe(url, follow=False)]
    assert stored == sent
    assert received == sent
    print(f"{restarts} kills of the broker, {len(sent)} messages")


async def killed(command: list[str], until: Callable[[], bool], seconds: float) -> bool:
    """Runs a command until something holds, and a moment longer; returns whether it had not ended by itself."""
    process = await asyncio.create_subprocess_exec(*command, env=ENVIRONMENT)
    await eventually(lambda: until() or process.returncode is not None)
    await asyncio.sleep(seconds)
    if process.returncode is None:
        process.kill()
    status = await process.wait()
    assert status in (0, -signal.SIGKILL)
    return status != 0


def acknowledged(state: Path) -> int:
    return int(json.loads(state.read_text()).get("acknowledged", 0)) if state.exists() else 0


def reached(state: Path, count: int) -> bool:
    return acknowledged(state) >= count


def differs(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size != size


async def test_the_publisher_is_killed(
    kafka: Kafka, tmp_path: Path, kills: int, points: random.Random
) -> None:
    """And started again with its state: each message is there once."""
    url, state, file = kafka.url(kafka.topic()), tmp_path / "state.json", tmp_path / "log.nq"
    sent = log(200 * (kills + 2))
    write_log(sent, file)
    command = [*COMMAND, "publish", str(file), "--to", url, "--state", str(state), "--batch", "20"]
    count = 0
    for _ in range(kills):
        at = acknowledged(state) + points.randrange(1, 150)
        count += await killed(command, partial(reached, state, at), points.random() * 0.03)
    assert count > kills // 2
    done = run(*command[len(COMMAND) :])
    assert done.status == 0, done.errors
    stored = [element.message async for element in subscribe(url, follow=False)]
    assert same(stored, sent)
    print(f"{count} kills of the publisher, {len(sent)} messages")


async def test_the_subscriber_is_killed(
    kafka: Kafka, tmp_path: Path, kills: int, points: random.Random
) -> None:
    """And started again with its state: each message is in its log once."""
    url, state, file = kafka.url(kafka.topic()), tmp_path / "state.json", tmp_path / "log.nq"
    sent = log(300 * (kills + 1))
    command = [*COMMAND, "subscribe", url, "--after", "0", "--follow"]
    command += ["--state", str(state), "--output", str(file)]
    again = [*command[: len(COMMAND) + 2], *command[len(COMMAND) + 4 :]]  # without --after
    for number in range(kills):
        await publish(sent[300 * number : 300 * (number + 1)], url)
        each = again if state.exists() else command
        grown = partial(differs, file, file.stat().st_size if file.exists() else 0)
        # the state is written within a second
        assert await killed(each, grown, points.random() * 1.5 * (number % 2))
    await publish(sent[300 * kills :], url)
    final = again if state.exists() else command
    done = run(*(each for each in final[len(COMMAND) :] if each != "--follow"))
    assert done.status == 0, done.errors
    assert same(list(read_log(file)), sent)


async def test_a_commit_whose_answer_is_lost(
    kafka: Kafka, tmp_path: Path, points: random.Random, restarts: int
) -> None:
    """The broker dies somewhere in a transaction, and so does the publisher: its key tells what became of it."""
    url, state = kafka.url(kafka.topic()), tmp_path / "state.json"
    sent = [numbered(n) for n in range(1000)]
    for _ in range(restarts):
        task = asyncio.ensure_future(publish(sent, url, state=state, batch=10, retries=0))
        at = acknowledged(state) + points.randrange(1, 100)
        await eventually(lambda: reached(state, at) or task.done())  # noqa: B023 - it is asked now
        await asyncio.to_thread(kafka.kill)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(kafka.start)
    await publish(sent, url, state=state, batch=10)
    assert [element.message async for element in subscribe(url, follow=False)] == sent


@pytest.mark.parametrize("partitions", [1, 3])
async def test_real_messages(kafka: Kafka, kills: int, partitions: int) -> None:
    """Empty, small and large ones, with blank nodes: isomorphic, and in order. 20,000 of them with `--kills 50`."""
    url = kafka.url(kafka.topic(partitions=partitions, max_message_bytes="2000000"))
    sent = log(400 * kills, large=2 * kills)
    for key in ("k", "l"):
        await publish(sent, url, key=key)
    stored = [element.message async for element in subscribe(url, follow=False)]
    assert same(stored, [*sent, *sent])

"""Streaming queries that are killed, and started again from their checkpoints: each message is there once."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from construct_messages.errors import SparkUnavailable
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.spark import session
from tests.support.places import ROOT, absent
from tests.support.processes import end_group
from tests.support.spark.flows import ATTEMPTS, appear, elements, publish, quad, server, texts
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.process]

# what is to be seen of a batch that began after the process did, and is killed then, by a pattern in the folder
MOMENTS = {
    "the batch has begun": "checkpoint-0/offsets/[0-9]*",
    "a task writes": "out/_batches/*/*.part",
    "the batch is recorded": "out/_batches/*/*.json",
    "a log has its name": "out/*.nq",
    "the batch is committed": "checkpoint-0/commits/[0-9]*",
    "a batch for the stream has begun": "checkpoint-1/offsets/[0-9]*",
    "a batch for the stream is committed": "checkpoint-1/commits/[0-9]*",
}


def test_kills_lose_and_double_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    try:
        session.require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    kills, seed = request.config.getoption("--kills"), random.randrange(1 << 32)
    chance = random.Random(seed)
    messages = [quad(f"m{number}") for number in range(60 * (kills + 1))]
    (tmp_path / "in").mkdir()
    for number in range(6 * (kills + 1)):
        appear(tmp_path / "in" / f"{number}.nq", *messages[10 * number : 10 * (number + 1)])
    seen = Counter[str]()
    with server(tmp_path / "streams.db") as served:
        streams = f"{served.url}/streams"
        publish(f"{streams}/source", to_messages(messages))
        asyncio.run(_create(f"{streams}/target"))
        for kill in range(kills * ATTEMPTS):
            if seen.total() == kills:
                break
            moment = chance.choice([*MOMENTS])
            running = _start(tmp_path, streams)
            if _wait(tmp_path, MOMENTS[moment], running):
                # within the batch, or between it and the next one
                time.sleep(chance.choice((0, 0, chance.random() / 4, chance.random() * 2)))
                seen[moment] += running.poll() is None
            end_group(running)
            assert Counter(elements(f"{streams}/target")).keys() <= {*messages}, (seed, kill)
        for _ in range(ATTEMPTS):
            running = _start(tmp_path, streams)
            if running.wait(SECONDS) == 0:
                break
        errors = tmp_path / "errors"
        assert running.returncode == 0, (seed, errors.read_text()[-2000:])
        print(f"\nseed {seed}, kills: {dict(seen)}")
        assert Counter(texts(tmp_path / "out")) == Counter(messages), seed
        assert Counter(elements(f"{streams}/target")) == Counter(messages), seed
    assert seen.total() > 0


async def _create(url: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as client, client.put(url) as answer:
        assert answer.status == 201


def _start(folder: Path, streams: str) -> subprocess.Popen[bytes]:
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark.flowing", str(folder), streams],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def _wait(folder: Path, pattern: str, running: subprocess.Popen[bytes]) -> bool:
    """Waits until a path with this pattern appears; False: the program has ended before."""
    before = {*folder.glob(pattern)}
    deadline = time.monotonic() + SECONDS
    while running.poll() is None:
        if {*folder.glob(pattern)} - before:
            return True
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return False

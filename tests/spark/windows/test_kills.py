"""A streaming query over windows that is killed within batches, and started again: each window is there once."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from construct_messages.continuous import WindowedQuery
from construct_messages.errors import SparkUnavailable
from construct_messages.logs.lines.decoder import to_text
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.spark import session
from construct_messages.streams.element import Element
from tests.support.places import absent
from tests.support.processes import end_group
from tests.support.spark.flows import ATTEMPTS, appear, appeared, quad, shapes, started, texts
from tests.support.spark.windowing import QUERY
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.process]

PROGRAM = "tests.support.spark.windowing"
# what is to be seen of a batch that began after the process did, by a pattern in the folder
MOMENTS = (
    "checkpoint/offsets/[0-9]*",
    "checkpoint/windows/[0-9]*/*.parquet",
    "out/_batches/*/*.part",
    "out/_batches/*/*.json",
    "checkpoint/windows/[0-9]*.json",
    "checkpoint/commits/[0-9]*",
)


def test_kills_lose_and_double_no_window(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    try:
        session.require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    # each start of Spark takes ten seconds
    kills, seed = request.config.getoption("--kills") // 2, random.randrange(1 << 32)
    chance = random.Random(seed)
    messages = [quad(f"m{number}") for number in range(28 * (kills + 1))]
    (tmp_path / "in").mkdir()
    for number in range(0, len(messages), 7):
        appear(tmp_path / "in" / f"{number}.nq", *messages[number : number + 7])
    seen = Counter[str]()
    for _ in range(kills * ATTEMPTS):
        if seen.total() == kills:
            break
        moment = chance.choice(MOMENTS)
        running = started(PROGRAM, tmp_path)
        if appeared(tmp_path, moment, running, SECONDS * 5):
            time.sleep(chance.choice((0, 0, chance.random() / 4, chance.random() * 2)))
            seen[moment] += running.poll() is None
        end_group(running)
    for _ in range(ATTEMPTS):
        running = started(PROGRAM, tmp_path)
        if running.wait(SECONDS * 5) == 0:
            break
    assert running.returncode == 0, (seed, (tmp_path / "errors").read_text()[-2000:])
    print(f"\nseed {seed}, kills: {dict(seen)}")
    engine = WindowedQuery(parse_continuous(QUERY))
    expected = Counter[str]()
    for number, text in enumerate(messages):
        element = Element("in", number + 1, number * 1_000_000, text.encode())
        for firing in engine.take("urn:in", element):
            expected += shapes(map(to_text, firing.messages))
    found = texts(tmp_path / "out")
    assert shapes(found) == expected, seed
    assert len({*re.findall(r"_:\S+_t\S+", "\n".join(found))}) == len(found)
    assert seen.total() > 0

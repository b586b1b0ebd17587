"""Health: what probes are told, and that they do not load the sources."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from aiohttp import web

from construct_messages.errors import SourceError, SourceTimeout
from construct_messages.server.http.app import Health
from tests.support.waiting import eventually

REQUEST = cast(web.Request, None)  # not looked at


class Source:
    """A source whose check does what it is told, and counts."""

    def __init__(self, error: Exception | None = None, seconds: float = 0) -> None:
        self.error, self.seconds, self.asked = error, seconds, 0

    async def check(self) -> None:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        if self.error:
            raise self.error


async def ready(health: Health) -> tuple[int, dict[str, Any]]:
    response = await health.ready(REQUEST)
    assert response.headers["Cache-Control"] == "no-store"
    assert isinstance(response.text, str)
    return response.status, json.loads(response.text)


async def test_live_asks_nobody() -> None:
    source = Source(SourceError("down"))
    response = await Health({"": source}).live(REQUEST)
    assert response.status == 200
    assert source.asked == 0


@pytest.mark.parametrize(
    ("sources", "status", "answers"),
    [
        ({"a": Source}, 200, {"a": "answers"}),
        ({"a": lambda: Source(SourceError("secret"))}, 503, {"a": "fails"}),
        ({"a": lambda: Source(SourceTimeout("secret"))}, 503, {"a": "fails"}),
        ({"a": lambda: Source(seconds=600)}, 503, {"a": "fails"}),
        (
            {"a": Source, "b": lambda: Source(SourceError("secret"))},
            200,
            {"a": "answers", "b": "fails"},
        ),
    ],
    ids=["answers", "fails", "times out", "hangs", "one of two"],
)
async def test_ready(
    sources: dict[str, Callable[[], Any]], status: int, answers: dict[str, str]
) -> None:
    made = {name: make() for name, make in sources.items()}
    hangs = any(isinstance(source, Source) and source.seconds for source in made.values())
    health = Health(made, check_seconds=0.05 if hangs else 60)
    found, document = await ready(health)
    assert found == status
    assert document["endpoints"] == answers
    assert "secret" not in json.dumps(document)


async def test_many_probes_are_one_question() -> None:
    source = Source(seconds=0.01)
    health = Health({"": source}, kept_seconds=60)
    assert {status for status, _ in await asyncio.gather(*(ready(health) for _ in range(50)))} == {
        200
    }
    source.error = SourceError("down")
    assert (await ready(health))[0] == 200
    assert source.asked == 1


async def test_an_old_word_does_not_count() -> None:
    source = Source()
    health = Health({"": source}, kept_seconds=0)
    assert (await ready(health))[0] == 200
    source.error = SourceError("down")
    assert (await ready(health))[0] == 503
    assert source.asked == 2


async def test_a_probe_that_leaves_does_not_disturb_others() -> None:
    source = Source(seconds=0.05)
    health = Health({"": source}, kept_seconds=60)
    leaving, staying = (asyncio.create_task(ready(health)) for _ in range(2))
    await eventually(lambda: source.asked)
    leaving.cancel()
    assert (await staying)[0] == 200


async def test_a_fault_is_not_a_failing_source() -> None:
    with pytest.raises(KeyError):
        await ready(Health({"": Source(KeyError())}))

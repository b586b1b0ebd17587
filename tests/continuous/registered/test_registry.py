"""Registered queries over a store: what they give out, how they fail, and that they go on where they were."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message, Quad, Term, iri
from construct_messages.continuous.registered.process import QueryLimits
from construct_messages.continuous.registered.query import TRIES
from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.registered.registry import Registry
from construct_messages.errors import Conflict, ConstructMessagesError, QueryError, StoreError
from construct_messages.streams import Description, Retention, StreamStore, open_store
from tests.support.streams import Clock, numbered
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.slow

STREAMS = "http://example.org/streams/"
STATELESS = "CONSTRUCT { ?s <urn:saw> ?n } WHERE { ?s <urn:number> ?n }"
LAST_THREE = f"""REGISTER RSTREAM <seen> AS CONSTRUCT {{ ?s <urn:has> ?n }}
FROM NAMED WINDOW <urn:w> ON <{STREAMS}a> [ELEMENTS 3 STEP 3] WHERE {{ WINDOW <urn:w> {{ ?s <urn:number> ?n }} }}"""
UNHURRIED = QueryLimits(seconds=SECONDS)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[StreamStore]:
    with open_store(tmp_path / "streams.db") as opened:
        opened.create("a")
        yield opened


@asynccontextmanager
async def running(store: StreamStore, limits: QueryLimits | None = None) -> AsyncIterator[Registry]:
    registry = Registry(store, limits or UNHURRIED)
    await registry.start()
    try:
        yield registry
    finally:
        await registry.stop()


def over_a(text: str, after: int = 0, **options: object) -> Registration:
    return Registration(
        text=text, streams=STREAMS, inputs={f"{STREAMS}a": "a"}, after={"a": after}, **options
    )  # type: ignore[arg-type]


def given(store: StreamStore, name: str = "seen") -> list[str]:
    return [quad.object.strip('"') for element in store.read(name) for quad in element.message]


async def until(store: StreamStore, count: int) -> None:
    await eventually(lambda: store.state("seen").last >= count)


async def test_history_first_then_live(store: StreamStore) -> None:
    store.append_all("a", map(numbered, range(5)))
    async with running(store) as registry:
        await registry.register("seen", over_a(STATELESS, after=1), Description())
        await until(store, 4)
        store.append_all("a", map(numbered, range(5, 2500)))
        await until(store, 2499)
        query = registry.get("seen")
        assert query is not None
        await eventually(lambda: query.lag == 0 and query.given == 2499)
        assert (query.taken, query.registration.status) == (2499, "running")
    assert given(store) == [f"x{each}" for each in range(1, 2500)]


@pytest.mark.parametrize(
    ("text", "elements"), [(STATELESS, 30), (LAST_THREE, 30)], ids=["stateless", "windows"]
)
async def test_it_goes_on_where_it_was(store: StreamStore, text: str, elements: int) -> None:
    async with running(store) as registry:
        await registry.register("seen", over_a(text), Description())
        store.append_all("a", map(numbered, range(13)))
        await until(store, 12)
    store.append_all("a", map(numbered, range(13, 20)))
    async with running(store):
        store.append_all("a", map(numbered, range(20, elements)))
        await until(store, elements)
    assert sorted(given(store), key=lambda each: int(each[1:])) == [
        f"x{each}" for each in range(elements)
    ]


@pytest.mark.parametrize(
    "kept",
    [b'{"version": 2, "registration": {}}', b'{"text": "", "streams": ""}'],
    ids=["a later one", "none"],
)
async def test_what_another_version_saved_is_refused(store: StreamStore, kept: bytes) -> None:
    """Nothing of it is changed: the release that saved it can go on."""
    async with running(store) as registry:
        await registry.register("seen", over_a(STATELESS), Description())
        store.append_all("a", map(numbered, range(3)))
        await until(store, 3)
    store.commit("query:seen", {"registration": kept})
    before = store.saved_state("query:seen")
    with pytest.raises(
        StoreError, match=r"seen: the query is saved in version .*program has version 1"
    ):
        async with running(store):
            pass
    assert store.saved_state("query:seen") == before


async def test_time_passes_where_no_elements_come(tmp_path: Path) -> None:
    clock = Clock()
    text = LAST_THREE.replace("ELEMENTS 3 STEP 3", "RANGE PT10S STEP PT10S")
    store = StreamStore(tmp_path / "streams.db", clock=clock)
    with store:
        store.create("a")
        async with running(store) as registry:
            await registry.register("seen", over_a(text), Description())
            store.append("a", numbered(1))
            query = registry.get("seen")
            assert query is not None
            await eventually(lambda: query.taken == 1)
            assert store.state("seen").last == 0
            clock.microseconds += 11_000_000
            await until(store, 1)


COUNTS = f"""REGISTER RSTREAM <seen> AS CONSTRUCT {{ <urn:all> <urn:count> ?n }}
FROM NAMED WINDOW <urn:w> ON <{STREAMS}a> [RANGE PT10S STEP PT1S]
WHERE {{ SELECT (STR(COUNT(*)) AS ?n) WHERE {{ WINDOW <urn:w> {{ ?s <urn:number> ?m }} }} }}"""


async def test_a_long_pause_is_caught_up_with_in_slices(tmp_path: Path) -> None:
    """An hour and a half of windows that close each second, and the server stops in the middle."""
    clock = Clock()
    with StreamStore(tmp_path / "streams.db", clock=clock) as store:
        store.create("a")
        async with running(store) as registry:
            await registry.register("seen", over_a(COUNTS), Description())
            store.append("a", numbered(1))
            query = registry.get("seen")
            assert query is not None
            await eventually(lambda: query.taken == 1)
            clock.microseconds += 5_400_000_000
            await until(store, 1000)
        stopped = store.state("seen").last
        assert stopped < 5400  # what was committed is a part
        async with running(store):
            store.append("a", numbered(2))
            clock.microseconds += 2_000_000
            await until(store, 5401)
        counts = given(store)
        # the window holds one message for ten seconds, and then none until the next message comes
        assert counts[:5400] == ["1"] * 10 + ["0"] * 5390
        assert set(counts[5400:]) == {"1"}


async def test_a_process_that_is_killed_is_started_again(store: StreamStore) -> None:
    async with running(store, QueryLimits(seconds=SECONDS, restart_seconds=0.01)) as registry:
        await registry.register("seen", over_a(LAST_THREE), Description())
        query = registry.get("seen")
        assert query is not None
        store.append_all("a", map(numbered, range(4)))
        await until(store, 3)
        for times in (1, 2):
            process = query._process
            assert process is not None
            os.kill(process._child.pid, signal.SIGKILL)
            # no message has to come for that
            await eventually(
                lambda: query.restarts == times and query._process not in (None, process)  # noqa: B023
            )
            assert (query.registration.status, "SIGKILL" in (query.error or "")) == (
                "running",
                True,
            )
        store.append_all("a", map(numbered, range(4, 6)))
        await until(store, 6)
        await eventually(lambda: query.error is None)
        assert query.memory_bytes > 0
    assert sorted(given(store)) == [f"x{number}" for number in range(6)]


async def test_a_process_that_ends_again_and_again_is_paused(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(store, QueryLimits(seconds=SECONDS, restart_seconds=0.01)) as registry:
        await registry.register("seen", over_a(STATELESS), Description())
        query = registry.get("seen")
        assert query is not None
        monkeypatch.setattr(sys, "executable", "false")
        assert query._process is not None
        os.kill(query._process._child.pid, signal.SIGKILL)
        await eventually(lambda: query.registration.status == "failed")
        assert query.restarts == TRIES - 1
        monkeypatch.undo()
        store.append("a", numbered(1))
        await registry.resume("seen")
        await until(store, 1)


LARGE = Message(quad for each in range(200) for quad in numbered(each, 100))


@pytest.mark.parametrize(
    "text", [STATELESS, LAST_THREE.replace("ELEMENTS 3 STEP 3", "ROWS 1")], ids=["alone", "windows"]
)
async def test_an_element_that_fails_is_left_out_if_asked_for(
    store: StreamStore, text: str
) -> None:
    """It is told from those around it, and counted; each other is there once."""
    store.append_all("a", [*map(numbered, range(5)), LARGE, *map(numbered, range(6, 12))])
    limits = QueryLimits(seconds=SECONDS, output_bytes=5000, restart_seconds=0.01)
    async with running(store, limits) as registry:
        await registry.register("seen", over_a(text, skip_after=3), Description())
        query = registry.get("seen")
        assert query is not None
        await until(store, 11)
        assert query.dropped == {"skipped": 1}
        assert query.restarts == 1 + 3  # the first time it fails with all others
    async with running(store, limits) as registry:
        store.append("a", numbered(12))
        await until(store, 12)
        query = registry.get("seen")
        assert query is not None
        assert query.dropped == {"skipped": 1}
    assert given(store) == [f"x{number}" for number in range(13) if number != 5]


async def test_windows_over_two_streams_of_which_one_is_quiet(tmp_path: Path) -> None:
    """A stream without messages does not hold up the others: the server knows that time has passed there, too."""
    clock = Clock()
    text = f"""REGISTER ISTREAM <seen> AS CONSTRUCT {{ ?s <urn:both> ?n, ?m }}
    FROM NAMED WINDOW <urn:v> ON <{STREAMS}a> [RANGE PT10S STEP PT10S]
    FROM NAMED WINDOW <urn:w> ON <{STREAMS}b> [RANGE PT60S STEP PT10S]
    WHERE {{ WINDOW <urn:v> {{ ?s <urn:number> ?n }} WINDOW <urn:w> {{ ?s <urn:number> ?m }} }}"""
    inputs = {f"{STREAMS}{name}": name for name in "ab"}
    registration = Registration(
        text=text, streams=STREAMS, inputs=inputs, after=dict.fromkeys("ab", 0)
    )
    with StreamStore(tmp_path / "streams.db", clock=clock) as store:
        for name in "ab":
            store.create(name)
        async with running(store) as registry:
            await registry.register("seen", registration, Description())
            store.append("b", numbered(9))
            for number in (1, 2):
                store.append("a", numbered(number))
                clock.microseconds += 11_000_000
                await until(store, number)
        assert given(store) == ["x1", "x9", "x2", "x9"]


async def test_a_silent_stream_does_not_hold_back_windows_of_event_time(tmp_path: Path) -> None:
    """After `idle` by the server's clock, also after a restart; without it, nothing comes."""
    clock = Clock()
    text = f"""REGISTER ISTREAM <seen> AS CONSTRUCT {{ ?s <urn:is> ?n }}
    FROM NAMED WINDOW <urn:v> ON <{STREAMS}a> [RANGE PT10S STEP PT10S]
    FROM NAMED WINDOW <urn:w> ON <{STREAMS}b> [RANGE PT10S STEP PT10S]
    WHERE {{ WINDOW <urn:v> {{ ?s <urn:number> ?n }} OPTIONAL {{ WINDOW <urn:w> {{ ?s <urn:number> ?m }} }} }}"""
    inputs = {f"{STREAMS}{name}": name for name in "ab"}

    def at(second: int) -> Message:
        time = f'"2026-01-01T00:00:{second:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        at = Quad(iri("urn:s"), iri("urn:at"), Term(time))
        return Message([*numbered(second), at])

    def registration(idle: int | None) -> Registration:
        return Registration(
            text=text,
            streams=STREAMS,
            inputs=inputs,
            after=dict.fromkeys("ab", 0),
            time="<urn:at>",
            idle=idle,
        )

    with StreamStore(tmp_path / "streams.db", clock=clock) as store:
        for name in "ab":
            store.create(name)
        async with running(store) as registry:
            await registry.register("seen", registration(30_000_000), Description())
            await registry.register("never", registration(None), Description())
            store.append("b", at(1))
            store.append_all("a", [at(2), at(13)])
            query = registry.get("seen")
            assert query is not None
            await eventually(lambda: query.taken == 3)
            clock.microseconds += 29_000_000
            await asyncio.sleep(1.2)
            assert query.evaluations == 0
            clock.microseconds += 2_000_000
            await until(store, 1)
        async with running(store) as registry:
            store.append("a", at(24))
            await until(store, 2)
            query = registry.get("seen")
            assert query is not None
            assert store.state("never").last == 0
            store.append("b", at(25))
            await eventually(lambda: query.taken == 2)  # those of one instant have no order
            store.append("a", at(36))
            await eventually(lambda: query.taken == 3)
            await asyncio.sleep(1.2)
            assert store.state("seen").last == 2  # b holds it back again
            store.append("b", at(36))
            await until(store, 3)
        assert given(store) == ["x2", "x13", "x24"]


async def test_pause_and_resume(store: StreamStore) -> None:
    async with running(store) as registry:
        await registry.register("seen", over_a(STATELESS), Description())
        store.append("a", numbered(1))
        await until(store, 1)
        await registry.pause("seen")
        store.append("a", numbered(2))
    async with running(store) as registry:
        query = registry.get("seen")
        assert query is not None
        assert (query.registration.status, query.lag) == ("paused", 1)
        assert store.state("seen").last == 1
        await registry.resume("seen")
        await until(store, 2)


TUMBLING = LAST_THREE.replace("ELEMENTS 3 STEP 3", "RANGE PT10S STEP PT5S")


@pytest.mark.parametrize(
    ("text", "retention", "options", "error"),
    [
        (LAST_THREE, Retention(count=5), {}, "the last 6 messages of a, which keeps 5 messages:"),
        (LAST_THREE, Retention(count=6, seconds=1), {}, None),
        (
            TUMBLING,
            Retention(count=9, seconds=12),
            {},
            "the last 15 seconds of a, which keeps 9 messages or 12 seconds:",
        ),
        (TUMBLING, Retention(seconds=15), {}, None),
        (TUMBLING, Retention(seconds=15), {"lateness": 500_000}, "the last 15.5 seconds of a"),
        (
            TUMBLING,
            Retention(seconds=15),
            {"report": "PERIODIC", "every": 20_000_000},
            "the last 30 seconds of a",
        ),
        (TUMBLING, Retention(seconds=1), {"time": "<urn:at>"}, None),
        (TUMBLING.replace("RANGE PT10S STEP PT5S", "ALL"), Retention(bytes=9000), {}, "all mess"),
        (STATELESS, Retention(count=1), {}, None),
    ],
)
async def test_a_stream_that_keeps_less_than_windows_hold(
    store: StreamStore, text: str, retention: Retention, options: Any, error: str | None
) -> None:
    """It is refused at registration, when its retention changes, and not found out at the next restart."""
    async with running(store) as registry:
        await registry.register("seen", over_a(text, **options), Description())
        if error is None:
            registry.check_retention("a", retention)
        else:
            with pytest.raises(Conflict, match=re.escape(error)):
                registry.check_retention("a", retention)
        await registry.remove("seen")
        store.describe("a", Description(retention=retention))
        if error is None:
            await registry.register("seen", over_a(text, **options), Description())
        else:
            with pytest.raises(Conflict, match=re.escape(error)):
                await registry.register("seen", over_a(text, **options), Description())
            assert [state.name for state in store.streams()] == ["a"]
            assert store.owners() == []


async def test_a_stream_that_keeps_just_what_windows_hold(store: StreamStore) -> None:
    """It is resumed after each message, which came meanwhile; with one less, it cannot be, and says why."""
    store.describe("a", Description(retention=Retention(count=6)))
    async with running(store) as registry:
        await registry.register("seen", over_a(LAST_THREE), Description())
    for number in range(9):
        store.append("a", numbered(number))
        async with running(store) as registry:
            assert await _first_step(registry) is None
    assert given(store) == [f"x{each}" for each in range(9)]
    for number in (9, 10):
        store.append("a", numbered(number))
        async with running(store) as registry:
            assert await _first_step(registry) is None
    store.describe("a", Description(retention=Retention(count=4)))  # the server would refuse it
    async with running(store) as registry:
        error = await _first_step(registry)
        assert "needs those of the last 6 messages of a, which keeps 4 messages" in str(error)


async def _first_step(registry: Registry) -> str | None:
    """What has failed before a message was taken."""
    query = registry.get("seen")
    assert query is not None
    await eventually(lambda: query.taken == 1 or query.registration.status == "failed")
    return query.error


async def test_an_input_that_is_made_anew_is_another(store: StreamStore) -> None:
    """Its first elements would be skipped, as they have the sequences of those that were read."""
    async with running(store) as registry:
        await registry.register("seen", over_a(STATELESS), Description())
        store.append_all("a", map(numbered, range(3)))
        await until(store, 3)
    store.delete("a")
    store.create("a")
    store.append_all("a", map(numbered, range(5)))
    async with running(store) as registry:
        query = registry.get("seen")
        assert query is not None
        for _ in range(2):
            await eventually(lambda: query.registration.status == "failed")
            assert "another stream of that name" in (query.error or "")
            await registry.resume("seen")
        await registry.remove("seen")
        await registry.register("seen", over_a(STATELESS), Description())
        await until(store, 5)


async def test_an_input_that_is_made_anew_while_it_runs(store: StreamStore) -> None:
    async with running(store) as registry:
        await registry.register("seen", over_a(STATELESS), Description())
        query = registry.get("seen")
        assert query is not None
        store.append_all("a", map(numbered, range(3)))
        await until(store, 3)
        store.delete("a")
        store.create("a")
        await eventually(lambda: query.registration.status == "failed")


async def test_removed_with_its_stream(store: StreamStore) -> None:
    async with running(store) as registry:
        await registry.register("seen", over_a(STATELESS), Description())
        await registry.remove("seen")
        assert (len(registry), [state.name for state in store.streams()], store.owners()) == (
            0,
            ["a"],
            [],
        )


def take_input_away(store: StreamStore) -> None:
    store.delete("a")


def add_one(store: StreamStore) -> None:
    store.append("a", Message(quad for each in range(100) for quad in numbered(each, 100)))


def let_elements_fade(store: StreamStore) -> None:
    store.append_all("a", map(numbered, range(5)))
    store.describe("a", Description(retention=Retention(count=1)))


PRODUCT = "".join(f"VALUES ?v{each} {{ {'1 ' * 99}}} " for each in range(9))
PAIRS = (
    " ".join(f"?s{each} ?p{each} ?n{each} ." for each in range(9))
    + " FILTER(CONCAT(?n0, ?n8) = 'no')"
)


@pytest.mark.parametrize(
    ("text", "limits", "cause", "error"),
    [
        pytest.param("?s ?p ?n", {}, take_input_away, "no stream a", id="input-deleted"),
        pytest.param("?s ?p ?n", {}, let_elements_fade, "removed by retention", id="input-faded"),
        pytest.param(
            f"?s ?p ?n . {PAIRS}",
            {"seconds": 5.0},
            add_one,
            "more than 5 seconds",
            id="slow",
        ),
        pytest.param(
            "?s ?p ?n",
            {"seconds": SECONDS, "output_bytes": 1000},
            add_one,
            "1000 bytes",
            id="too-much",
        ),
        pytest.param(
            f"?s ?p ?n {PRODUCT}",
            {"seconds": SECONDS, "memory_bytes": 1 << 28, "restart_seconds": 0.01},
            add_one,
            "more memory",
            id="memory",
        ),
    ],
)
async def test_a_query_that_fails_is_paused_and_says_why(
    store: StreamStore,
    text: str,
    limits: dict[str, float],
    cause: Callable[[StreamStore], object],
    error: str,
) -> None:
    async with running(store, QueryLimits(**limits)) as registry:  # type: ignore[arg-type] # as given
        await registry.register(
            "other",
            over_a("CONSTRUCT { ?s a <urn:Seen> } WHERE { ?s ?p ?n } LIMIT 1"),
            Description(),
        )
        await registry.register(
            "seen", over_a(f"CONSTRUCT {{ ?s <urn:q> ?n }} WHERE {{ {text} }}"), Description()
        )
        if cause is let_elements_fade:
            await registry.pause("seen")
            let_elements_fade(store)
            await registry.resume("seen")
        else:
            cause(store)
        query = registry.get("seen")
        assert query is not None
        await eventually(lambda: query.registration.status == "failed")
        assert error in (query.registration.error or "")
        if cause is add_one:
            await eventually(lambda: store.state("other").last == 1)  # which it did not hold up
    async with running(store) as registry:
        query = registry.get("seen")
        assert query is not None
        assert query.registration.status == "failed"


async def test_what_is_refused_leaves_nothing(store: StreamStore) -> None:
    async with running(store) as registry:
        with pytest.raises(QueryError):
            await registry.register(
                "seen", over_a("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }"), Description()
            )
        with pytest.raises(Conflict):
            await registry.register("a", over_a(STATELESS), Description())
        with pytest.raises(ConstructMessagesError, match="not the name of a stream"):
            await registry.register("a/b", over_a(STATELESS), Description())
        await registry.register("seen", over_a(STATELESS), Description())
        with pytest.raises(Conflict):
            await registry.register("seen", over_a(LAST_THREE), Description())
        store.append("a", Message())
        assert len(registry) == 1
    assert store.owners() == ["query:seen"]
    async with running(store) as registry:
        query = registry.get("seen")
        assert query is not None
        assert query.registration.text == STATELESS

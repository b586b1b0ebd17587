"""`sparql/sources/evaluators/pool.py`: every solution, whatever happens to the processes, and nothing of them left
behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path

import psutil
import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages import construct_messages
from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    QueryError,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.rdf import terms
from construct_messages.sparql.sources import Operation, Request
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from construct_messages.sparql.sources.files import open_directory
from construct_messages.sparql.sources.oxigraph import OxigraphSource
from tests.support.engines.evaluators import (
    ALL,
    COUNT,
    CROSS,
    EX,
    STUCK,
    aclosing_pool,
    children,
    collect,
    cpu_seconds,
    drain,
    quick,
    stuck,
)
from tests.support.places import ROOT
from tests.support.queries.message_cases import CASES, DATA, PREFIX
from tests.support.queries.options import arguments
from tests.support.queries.requests import request
from tests.support.waiting import SECONDS, eventually, settled

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/fd").exists(), reason="counts processes and descriptors in /proc"
    ),
]


module = pytest.mark.asyncio(loop_scope="module")


# --- solutions ---


@module
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1500])
async def test_the_same_solutions_as_in_this_process(
    count: int, steady: EvaluatorPool, directory: Path
) -> None:
    asked = request("s n missing", f"{{ SELECT * {{ ?s ?p ?n }} ORDER BY ?n LIMIT {count} }}")
    found = await collect(steady, asked)
    assert len(found) == count
    assert found == await collect(OxigraphSource(open_directory(directory)), asked)


@module
async def test_datasets(steady: EvaluatorPool) -> None:
    async def found(group: str, **options: object) -> set[str]:
        return {
            terms.literal_parts(o)[0]
            for (o,) in await collect(steady, request("o", group, **options))
        }

    plain, named = "{ ?s ?p ?o FILTER(LANG(?o) = 'en') }", "{ GRAPH ?g { ?s ?p ?o } }"
    assert await found(plain) == set()
    assert await found(plain, default_graphs=("union",)) == {"g", "h"}
    assert await found(plain, default_graphs=(f"{EX}g",)) == {"g"}
    assert await found(named, named_graphs=(f"{EX}h",)) == {"h"}


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        (
            request("s", "{ ?s ?p"),
            QueryError,
            "^line 1, column .*: this { is never closed\n  hint: add the }",
        ),
        (
            request("s", "{ ?s foo:p ?o }"),
            QueryError,
            "^line 1, column .*prefix foo: is not declared",
        ),
        (request("s", ALL, default_graphs=("relative",)), UsageError, "must be absolute IRIs"),
        (request("s", ALL, default_graphs=("union", f"{EX}g")), UsageError, "union is all graphs"),
        (
            request("s", "{ SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"),
            SourceError,
            "evaluation failed",
        ),
        (
            request("s", f"{{ {ALL} UNION {{ SERVICE <http://127.0.0.1:9/> {ALL} }} }}"),
            SourceError,
            "evaluation fail",
        ),
    ],
    ids=[
        "syntax",
        "prefix",
        "relative graph",
        "union and more",
        "fails at once",
        "fails after solutions",
    ],
)
async def test_errors_are_those_of_the_engine_in_this_process(
    asked: Request, kind: type[ConstructMessagesError], words: str, pool: EvaluatorPool
) -> None:
    before = children()
    for _ in range(3):
        with pytest.raises(kind, match=words):
            await collect(pool, asked)
    assert children().keys() == before.keys(), "a query that fails costs no process"
    await quick(pool)


@module
async def test_long_queries_arrive(steady: EvaluatorPool) -> None:
    """Longer than what a socket holds."""
    values = " ".join(f"<{EX}s{n}>" for n in range(COUNT)) + " " * 1_000_000
    assert (
        len(await collect(steady, request("s", f"{{ VALUES ?s {{ {values} }} ?s ?p ?o }}")))
        == COUNT
    )


def test_no_blocking_form(directory: Path) -> None:
    with pytest.raises(UsageError, match="asyncio only"):
        EvaluatorPool(directory).solutions(request("s", ALL))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def case_pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EvaluatorPool]:
    """The data of the table of messages."""
    path = tmp_path_factory.mktemp("cases") / "store"
    store = ox.Store(str(path))
    store.load(DATA, ox.RdfFormat.TURTLE)
    del store
    async with aclosing_pool(path, size=1) as opened:
        yield opened


@module
@pytest.mark.parametrize(
    ("query", "options", "messages"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_messages(
    query: str, options: dict[str, object], messages: list[list[str]], case_pool: EvaluatorPool
) -> None:
    async with construct_messages(
        PREFIX + query, case_pool, label_prefix="x", **arguments(options)
    ) as stream:  # type: ignore[arg-type]
        found = [sorted(map(str, message)) async for message in stream]
    assert found == [sorted(message) for message in messages]


# --- time, cancellation and death ---


async def test_past_its_time_an_evaluation_is_stopped(pool: EvaluatorPool) -> None:
    before = children()
    for _ in range(2):
        with pytest.raises(SourceTimeout, match="time allowed"):
            await collect(pool, request("s", STUCK, timeout=0.2))
    await eventually(
        lambda: not before.keys() & children().keys() and len(children()) == len(before)
    )
    await quick(pool)


async def test_a_reader_that_leaves_gives_the_process_back(
    pool: EvaluatorPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that finds solutions meets the closed pipe, and lives, if it is not too slow."""
    monkeypatch.setattr("construct_messages.sparql.sources.evaluators.pool._GRACE", SECONDS)
    before = children()
    for _ in range(10):
        async with aclosing(pool.asolutions(request("s s2", CROSS))) as batches:
            await anext(batches)
    await quick(pool)
    assert children().keys() == before.keys()


async def test_two_hundred_cancelled_evaluations_leave_nothing_running(directory: Path) -> None:
    """Those that wait for their turn, those that begin, those that are stuck and those that stream."""
    processes, descriptors = set(children()), len(os.listdir("/proc/self/fd"))
    chance = random.Random(3)
    pool = EvaluatorPool(directory, size=3, queue_seconds=600)
    tasks = []
    for number in range(200):
        group = (STUCK, CROSS, ALL)[number % 3]
        tasks.append(asyncio.create_task(collect(pool, request("s", group))))
        await asyncio.sleep(chance.random() * 0.02)
        if len(tasks) > 6:
            tasks.pop(chance.randrange(len(tasks))).cancel()
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, (asyncio.CancelledError, list)) for outcome in outcomes)
    await asyncio.gather(*(quick(pool) for _ in range(6)))

    def started() -> list[str]:
        return [state for child, state in children().items() if child not in processes]

    assert 1 <= len(started()) <= 3
    # one that was given up may yet be replaced
    await eventually(
        lambda: started() and all(state == psutil.STATUS_SLEEPING for state in started())
    )
    await pool.aclose()
    assert set(children()) <= processes
    assert len(os.listdir("/proc/self/fd")) <= descriptors


async def test_heavy_queries_starve_nobody(directory: Path) -> None:
    """Thirty at once over two processes: those that are stuck reach their time limit, the others are answered."""
    async with aclosing_pool(directory, size=2) as pool:
        heavy = [
            asyncio.create_task(collect(pool, request("s", STUCK, timeout=0.3))) for _ in range(5)
        ]
        light = [asyncio.create_task(quick(pool)) for _ in range(25)]
        await asyncio.gather(*light)
        for task in heavy:
            with pytest.raises(SourceTimeout):
                await task


async def test_one_stuck_query_holds_up_no_other(pool: EvaluatorPool) -> None:
    async with stuck(pool) as [evaluation]:
        for _ in range(10):
            await quick(pool)
        assert not evaluation.done()


async def test_turns_are_taken_in_the_order_of_asking(directory: Path) -> None:
    order: list[int] = []
    async with aclosing_pool(directory, size=1) as pool:

        async def ask(number: int) -> None:
            await quick(pool)
            order.append(number)

        await asyncio.gather(*(ask(number) for number in range(20)))
    assert order == list(range(20))


async def test_who_waits_too_long_is_told_to_come_back(directory: Path) -> None:
    async with aclosing_pool(directory, size=1, queue_seconds=0.2) as pool:
        async with aclosing(pool.asolutions(request("s s2", CROSS))) as batches:
            await anext(batches)
            with pytest.raises(
                SourceError, match=r"none became free within 0\.2 seconds"
            ) as caught:
                await quick(pool)
            assert (caught.value.status, caught.value.retry_after) == (503, 0.2)
        async with asyncio.timeout(SECONDS):
            while True:  # the process may need longer to be idle again than others wait for it here
                with suppress(SourceError):
                    await quick(pool)
                    break


async def test_a_killed_process_ends_its_evaluation_only(pool: EvaluatorPool) -> None:
    before = children()
    async with (
        aclosing(pool.asolutions(request("s s2", CROSS))) as first,
        aclosing(pool.asolutions(request("s s2", CROSS))) as second,
    ):
        received = len(await anext(first))
        await anext(second)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        outcomes = await asyncio.gather(
            drain(first, 200), drain(second, 200), return_exceptions=True
        )
    broken = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(broken) == 1
    assert isinstance(broken[0], IncompleteResult)
    assert "was ended by SIGKILL" in str(broken[0])
    assert broken[0].status == 502
    assert received
    await eventually(lambda: victim not in children() and len(children()) == len(before))
    await asyncio.gather(*(quick(pool) for _ in range(4)))


async def test_a_stuck_process_that_is_killed(pool: EvaluatorPool) -> None:
    before = children()
    async with stuck(pool) as [evaluation]:
        for child in before:
            os.kill(child, signal.SIGKILL)
        with pytest.raises(IncompleteResult, match="was ended by SIGKILL"):
            await evaluation
    await eventually(lambda: not before.keys() & children().keys())  # the idle one was killed, too
    await quick(pool)


async def test_processes_killed_before_their_turn(pool: EvaluatorPool) -> None:
    """What is asked meanwhile is answered whole by another process, or fails."""
    for child in children():
        os.kill(child, signal.SIGKILL)
    outcomes = await asyncio.gather(
        *(collect(pool, request("s", ALL)) for _ in range(6)), return_exceptions=True
    )
    assert all(
        isinstance(outcome, IncompleteResult) or len(outcome) == COUNT for outcome in outcomes
    )
    assert sum(isinstance(outcome, list) for outcome in outcomes) >= 4


async def test_idle_processes_that_die_are_replaced(pool: EvaluatorPool) -> None:
    before = children()
    for child in before:
        os.kill(child, signal.SIGKILL)
    await eventually(
        lambda: not before.keys() & children().keys() and len(children()) == len(before)
    )
    await quick(pool)


@pytest.mark.parametrize(
    "signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name
)
async def test_signals_to_the_whole_service_leave_the_processes_to_their_pool(
    signal_number: int, pool: EvaluatorPool
) -> None:
    before = children()
    for child in before:
        os.kill(child, signal_number)
    await asyncio.gather(*(quick(pool) for _ in range(4)))
    assert children().keys() == before.keys()


@pytest.mark.parametrize("use", ["stuck(pool, 2)", "aclosing(pool)"], ids=["evaluating", "idle"])
async def test_processes_end_with_the_one_that_started_them(use: str, directory: Path) -> None:
    script = f"""
import asyncio, sys
from contextlib import aclosing, suppress
from pathlib import Path
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from tests.support.engines.evaluators import children, stuck

async def main():
    pool = EvaluatorPool(Path(sys.argv[1]), size=2)
    await pool.start()
    async with {use}:
        print(*children(), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    root = str(ROOT)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, str(directory)), stdout=subprocess.PIPE, cwd=root
    )
    assert process.stdout is not None
    started = [int(child) for child in (await process.stdout.readline()).split()]
    assert len(started) == 2
    process.kill()
    await process.wait()
    await eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in started))


async def test_a_process_past_its_memory_ends_its_evaluation_only(directory: Path) -> None:
    async with aclosing_pool(directory, size=1, memory_bytes=300 << 20) as pool:
        with pytest.raises(IncompleteResult, match="was ended by SIGABRT"):
            await collect(
                pool, request("s s2", "{ ?s ?p ?o . ?s2 ?p2 ?o2 } ORDER BY ?s2 ?s", timeout=600)
            )
        await quick(pool)


async def test_a_slow_reader_holds_back_its_own_process_only(pool: EvaluatorPool) -> None:
    answer = await pool.answer(Operation(f"SELECT * {CROSS}"))
    async with aclosing(answer.body):
        await anext(answer.body)
        await settled(lambda: sum(map(cpu_seconds, children())))  # it waits for its reader
        for _ in range(5):
            await quick(pool)
    await quick(pool)


# --- the pool itself ---


async def test_a_pool_needs_no_start_and_starts_what_is_needed(directory: Path) -> None:
    before = len(children())
    async with aclosing_pool(directory, size=4) as pool:
        assert len(children()) == before
        await quick(pool)
        assert len(children()) == before + 1
        await pool.check()
        async with (
            aclosing(pool.asolutions(request("s s2", CROSS))) as first,
            aclosing(pool.asolutions(request("s s2", CROSS))) as second,
            aclosing(pool.asolutions(request("s s2", CROSS))) as third,
        ):
            for batches in (first, second, third):
                await anext(batches)
            assert len(children()) == before + 3


async def test_closing_ends_what_is_under_way(directory: Path) -> None:
    before, descriptors = len(children()), len(os.listdir("/proc/self/fd"))
    pool = EvaluatorPool(directory, size=2)
    await pool.start()
    async with stuck(pool, 2) as evaluations:
        waiting = [asyncio.create_task(collect(pool, request("s", ALL))) for _ in range(3)]
        await asyncio.sleep(0)  # they begin to wait
        await pool.aclose()
        outcomes = await asyncio.gather(*waiting, *evaluations, return_exceptions=True)
    assert all(isinstance(outcome, SourceError) for outcome in outcomes)
    await pool.aclose()
    assert len(children()) == before
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    with pytest.raises(SourceError, match="is closed"):
        await quick(pool)


async def test_what_is_no_store(tmp_path: Path, directory: Path) -> None:
    with pytest.raises(UsageError, match="is not an Oxigraph store directory"):
        EvaluatorPool(tmp_path)
    with pytest.raises(UsageError, match="at least 1"):
        EvaluatorPool(directory, size=0)


async def test_a_store_that_is_gone(tmp_path: Path) -> None:
    ox.Store(str(tmp_path / "store")).flush()
    pool = EvaluatorPool(tmp_path / "store")
    (tmp_path / "store" / "CURRENT").unlink()
    for use in (pool.start, pool.check, lambda: quick(pool)):
        with pytest.raises(SourceError, match="store") as caught:
            await use()
        assert caught.value.status == 503
    assert children() == {}
    await pool.aclose()

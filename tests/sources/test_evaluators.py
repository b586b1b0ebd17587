"""`sources/evaluators/pool.py`: every solution, whatever happens to the processes, and nothing of them left behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages import construct_messages, terms
from construct_messages.errors import (
    ConstructMessagesError,
    Forbidden,
    IncompleteResult,
    NotAcceptable,
    QueryError,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.sources import Request
from construct_messages.sources.evaluators.pool import EvaluatorPool
from construct_messages.sources.files import open_directory
from construct_messages.sources.operations import Answer, Operation
from construct_messages.sources.oxigraph import OxigraphSource
from construct_messages.terms import Term
from tests.sources.test_oxigraph import request
from tests.support.places import ROOT
from tests.test_construct import CASES, DATA, PREFIX

EX = "http://example.org/"
COUNT = 2000

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts processes and descriptors in /proc")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with numbers in its default graph, and two named graphs."""
    path = tmp_path_factory.mktemp("evaluators") / "store"
    p = ox.NamedNode(f"{EX}p")
    store = ox.Store(str(path))
    store.bulk_extend(ox.Quad(ox.NamedNode(f"{EX}s{n}"), p, ox.Literal(n)) for n in range(COUNT))
    store.extend(ox.Quad(ox.NamedNode(EX + g), p, ox.Literal(g, language="en"), ox.NamedNode(EX + g)) for g in "gh")
    del store
    return path


_others: set[int] = set()


@pytest.fixture(autouse=True)
def _only_processes_of_this_test_count() -> None:
    """Engines that other tests started go on."""
    _others.clear()
    _others.update(children())


def children() -> dict[int, str]:
    """The state of each process that this one started, by its number; Z is a zombie."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in _others:
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            if int(after_name[1]) == os.getpid():
                found[int(entry.name)] = after_name[0]
    return found


async def eventually(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


@pytest_asyncio.fixture
async def pool(directory: Path) -> AsyncIterator[EvaluatorPool]:
    """Two processes; at the end of a test nothing is left of them."""
    processes, descriptors = set(children()), len(os.listdir("/proc/self/fd"))
    opened = EvaluatorPool(directory, size=2, queue_seconds=30)
    await opened.start()
    yield opened
    await opened.aclose()
    assert set(children()) <= processes
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def steady(directory: Path) -> AsyncIterator[EvaluatorPool]:
    """For tests that leave the processes alone."""
    async with aclosing_pool(directory, size=2) as opened:
        yield opened


module = pytest.mark.asyncio(loop_scope="module")

ALL = "{ ?s ?p ?n }"
CROSS = "{ ?s ?p ?o . ?s2 ?p2 ?o2 }"
# finds nothing, for minutes
STUCK = "{ ?s ?p ?o . ?a ?q ?b . ?c ?r ?d FILTER(CONCAT(STR(?o), STR(?b), STR(?d)) = '') }"


async def collect(source: EvaluatorPool | OxigraphSource, asked: Request) -> list[tuple[Term, ...]]:
    async with aclosing(source.asolutions(asked)) as batches:
        return [solution async for batch in batches for solution in batch]


async def quick(pool: EvaluatorPool) -> None:
    assert await collect(pool, request("n", "{ ?s ?p ?n }", timeout=20)), "a quick query is answered"


# --- solutions ---


@module
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1500])
async def test_the_same_solutions_as_in_this_process(count: int, steady: EvaluatorPool, directory: Path) -> None:
    asked = request("s n missing", f"{{ SELECT * {{ ?s ?p ?n }} ORDER BY ?n LIMIT {count} }}")
    found = await collect(steady, asked)
    assert len(found) == count
    assert found == await collect(OxigraphSource(open_directory(directory)), asked)


@module
async def test_datasets(steady: EvaluatorPool) -> None:
    async def found(group: str, **options: object) -> set[str]:
        return {terms.literal_parts(o)[0] for (o,) in await collect(steady, request("o", group, **options))}

    plain, named = "{ ?s ?p ?o FILTER(LANG(?o) = 'en') }", "{ GRAPH ?g { ?s ?p ?o } }"
    assert await found(plain) == set()
    assert await found(plain, default_graphs=("union",)) == {"g", "h"}
    assert await found(plain, default_graphs=(f"{EX}g",)) == {"g"}
    assert await found(named, named_graphs=(f"{EX}h",)) == {"h"}


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        (request("s", "{ ?s ?p"), QueryError, "^line 1, column .*unexpected token\n  hint: lines are those"),
        (request("s", "{ ?s foo:p ?o }"), QueryError, "^line 1, column .*prefix foo: is not declared"),
        (request("s", ALL, default_graphs=("relative",)), UsageError, "must be absolute IRIs"),
        (request("s", ALL, default_graphs=("union", f"{EX}g")), UsageError, "union is all graphs"),
        (request("s", "{ SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"), SourceError, "evaluation failed"),
        (request("s", f"{{ {ALL} UNION {{ SERVICE <http://127.0.0.1:9/> {ALL} }} }}"), SourceError, "evaluation fail"),
    ],
    ids=["syntax", "prefix", "relative graph", "union and more", "fails at once", "fails after solutions"],
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
    assert len(await collect(steady, request("s", f"{{ VALUES ?s {{ {values} }} ?s ?p ?o }}"))) == COUNT


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
    async with construct_messages(PREFIX + query, case_pool, label_prefix="x", **options) as stream:  # type: ignore[arg-type]
        found = [sorted(map(str, message)) async for message in stream]
    assert found == [sorted(message) for message in messages]


# --- time, cancellation and death ---


async def test_past_its_time_an_evaluation_is_stopped(pool: EvaluatorPool) -> None:
    before = children()
    for _ in range(2):
        started = time.monotonic()
        with pytest.raises(SourceTimeout, match="time allowed"):
            await collect(pool, request("s", STUCK, timeout=0.2))
        assert time.monotonic() - started < 2
    await eventually(lambda: not before.keys() & children().keys() and len(children()) == len(before))
    await quick(pool)


async def test_a_reader_that_leaves_gives_the_process_back(pool: EvaluatorPool) -> None:
    """A process that finds solutions meets the closed pipe, and lives."""
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
    pool = EvaluatorPool(directory, size=3, queue_seconds=30)
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
    started = set(children()) - processes
    assert 1 <= len(started) <= 3
    await eventually(lambda: all(children()[child] == "S" for child in started))
    await pool.aclose()
    assert set(children()) <= processes
    assert len(os.listdir("/proc/self/fd")) <= descriptors


async def test_heavy_queries_starve_nobody(directory: Path) -> None:
    """Thirty at once over two processes: those that are stuck reach their time limit, the others are answered."""
    async with aclosing_pool(directory, size=2) as pool:
        heavy = [asyncio.create_task(collect(pool, request("s", STUCK, timeout=0.3))) for _ in range(5)]
        light = [asyncio.create_task(quick(pool)) for _ in range(25)]
        await asyncio.gather(*light)
        for task in heavy:
            with pytest.raises(SourceTimeout):
                await task


def aclosing_pool(directory: Path, **options: object) -> aclosing[EvaluatorPool]:
    return aclosing(EvaluatorPool(directory, **options))  # type: ignore[arg-type]


async def test_one_stuck_query_holds_up_no_other(pool: EvaluatorPool) -> None:
    stuck = asyncio.create_task(collect(pool, request("s", STUCK)))
    await asyncio.sleep(0.1)
    started = time.monotonic()
    for _ in range(10):
        await quick(pool)
    assert time.monotonic() - started < 5
    assert not stuck.done()
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck


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
            with pytest.raises(SourceError, match=r"none ended within 0\.2 seconds") as caught:
                await quick(pool)
            assert (caught.value.status, caught.value.retry_after) == (503, 0.2)
        await quick(pool)


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
        outcomes = await asyncio.gather(drain(first, 200), drain(second, 200), return_exceptions=True)
    broken = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(broken) == 1
    assert isinstance(broken[0], IncompleteResult)
    assert "was ended by SIGKILL" in str(broken[0])
    assert broken[0].status == 502
    assert received
    await eventually(lambda: victim not in children() and len(children()) == len(before))
    await asyncio.gather(*(quick(pool) for _ in range(4)))


async def drain(batches: AsyncGenerator[object], count: int) -> None:
    for _ in range(count):
        await anext(batches)


async def test_a_stuck_process_that_is_killed(pool: EvaluatorPool) -> None:
    before = children()
    task = asyncio.create_task(collect(pool, request("s", STUCK)))
    await asyncio.sleep(0.2)
    for child in before:
        os.kill(child, signal.SIGKILL)
    with pytest.raises(IncompleteResult, match="was ended by SIGKILL"):
        await task
    await eventually(lambda: not before.keys() & children().keys())  # the idle one was killed, too
    await quick(pool)


async def test_idle_processes_that_die_are_replaced(pool: EvaluatorPool) -> None:
    before = children()
    for child in before:
        os.kill(child, signal.SIGKILL)
    await eventually(lambda: not before.keys() & children().keys() and len(children()) == len(before))
    await quick(pool)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
async def test_signals_to_the_whole_service_leave_the_processes_to_their_pool(
    signal_number: int, pool: EvaluatorPool
) -> None:
    before = children()
    for child in before:
        os.kill(child, signal_number)
    await quick(pool)
    await asyncio.sleep(0.1)
    assert children().keys() == before.keys()


@pytest.mark.parametrize("group", [STUCK, "{ BIND(1 AS ?s) }"], ids=["evaluating", "idle"])
async def test_processes_end_with_the_one_that_started_them(group: str, directory: Path) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from construct_messages.sources.evaluators.pool import EvaluatorPool
from tests.sources.test_evaluators import children, collect, request

async def main():
    pool = EvaluatorPool(Path(sys.argv[1]), size=2)
    await pool.start()
    tasks = [asyncio.create_task(collect(pool, request("s", {group!r}))) for _ in range(2)]
    await asyncio.sleep(0.2)
    print(*children(), flush=True)
    await asyncio.sleep(60)

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
            await collect(pool, request("s s2", "{ ?s ?p ?o . ?s2 ?p2 ?o2 } ORDER BY ?s2 ?s", timeout=50))
        await quick(pool)


async def test_a_slow_reader_holds_back_its_own_process_only(pool: EvaluatorPool) -> None:
    answer = await pool.answer(Operation(f"SELECT * {CROSS}"))
    async with aclosing(answer.body):
        await anext(answer.body)
        await asyncio.sleep(0.3)
        spent = {child: cpu_seconds(child) for child in children()}
        await asyncio.sleep(0.5)
        assert all(cpu_seconds(child) - spent[child] < 0.1 for child in children()), "it waits for its reader"
        for _ in range(5):
            await quick(pool)
    await quick(pool)


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    tasks = [asyncio.create_task(collect(pool, request("s", STUCK))) for _ in range(5)]
    await asyncio.sleep(1)
    await pool.aclose()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
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


# --- answers ---


async def body_of(answer: Answer) -> bytes:
    async with aclosing(answer.body) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def ask(pool: EvaluatorPool, text: str, accept: str | None = None, **options: object) -> tuple[str, bytes]:
    headers = {} if accept is None else {"Accept": accept}
    answer = await pool.answer(Operation(text, headers=headers, **options))  # type: ignore[arg-type]
    assert answer.status == 200
    ((name, content_type),) = answer.headers
    assert name == "Content-Type"
    return content_type, await body_of(answer)


@module
async def test_head_evaluates_nothing(steady: EvaluatorPool) -> None:
    assert await ask(steady, f"SELECT ?s {STUCK}", head=True) == ("application/sparql-results+json", b"")
    with pytest.raises(QueryError):
        await ask(steady, "SELECT", head=True)


@module
@pytest.mark.parametrize(
    ("operation", "kind", "status", "words"),
    [
        (Operation("SELECT ?s {\n ?s ?p"), QueryError, 400, "^line 2, column .*: the embedded engine refuses[^\n]*$"),
        (Operation("ASK {}", default_graphs=("relative",)), UsageError, 400, "absolute IRIs"),
        (Operation("SELECT * { SERVICE <http://127.0.0.1:9/> {} }"), SourceError, 502, "evaluation failed"),
        (Operation(f"SELECT ?s {STUCK}", timeout=0.2), SourceTimeout, 504, "time allowed"),
        (Operation(f"ASK {STUCK}", timeout=0.2), SourceTimeout, 504, "time allowed"),
        (Operation("CLEAR ALL", update=True), Forbidden, 403, "read-only"),
        (Operation("ASK {}", headers={"Accept": "text/turtle"}), NotAcceptable, 406, "takes no format"),
        (Operation("CONSTRUCT {} {}", parameters=(("format", "csv"),)), NotAcceptable, 406, "takes no format"),
        (Operation(None), UsageError, 400, "no query"),
    ],
    ids=["syntax", "graphs", "fails", "late solutions", "late ask", "update", "results", "triples", "nothing"],
)
async def test_the_status_is_known_before_the_answer(
    operation: Operation, kind: type[ConstructMessagesError], status: int, words: str, steady: EvaluatorPool
) -> None:
    with pytest.raises(kind, match=words) as caught:
        await steady.answer(operation)
    assert caught.value.status == status
    await quick(steady)


async def test_an_answer_that_breaks_does_not_end(pool: EvaluatorPool) -> None:
    answer = await pool.answer(Operation(f"SELECT * {CROSS}"))
    await anext(answer.body)
    for child in children():
        os.kill(child, signal.SIGKILL)
    with pytest.raises(IncompleteResult, match="SIGKILL"):
        await body_of(answer)
    await quick(pool)
    late = await pool.answer(Operation(f"SELECT * {CROSS}", timeout=0.5))
    with pytest.raises(SourceTimeout):
        await body_of(late)
    await quick(pool)


async def test_an_answer_that_nobody_reads_is_let_go(directory: Path) -> None:
    async with aclosing_pool(directory, size=1, queue_seconds=5) as pool:
        for _ in range(3):
            answer = await pool.answer(Operation(f"SELECT * {CROSS}"))
            await answer.body.aclose()
        del answer
        await quick(pool)

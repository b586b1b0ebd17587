"""Evaluating processes: which there are, what they spend, and asking them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import psutil

from construct_messages.rdf.terms import Term
from construct_messages.sparql.sources import Answer, Operation, Request
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from construct_messages.sparql.sources.oxigraph import OxigraphSource
from tests.support.queries.requests import request
from tests.support.waiting import SECONDS, eventually

EX = "http://example.org/"
COUNT = 2000


_others: set[int] = set()


def children() -> dict[int, str]:
    """The state of each process that this one started, by its number."""
    found = {}
    for child in psutil.Process().children():
        if child.pid not in _others:
            with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                found[child.pid] = child.status()
    return found


ALL = "{ ?s ?p ?n }"
CROSS = "{ ?s ?p ?o . ?s2 ?p2 ?o2 }"
# finds nothing, for an hour
STUCK = "{ ?s ?p ?o . ?a ?q ?b . ?c ?r ?d FILTER(CONCAT(STR(?o), STR(?b), STR(?d)) = '') }"


async def collect(source: EvaluatorPool | OxigraphSource, asked: Request) -> list[tuple[Term, ...]]:
    async with aclosing(source.asolutions(asked)) as batches:
        return [solution async for batch in batches for solution in batch]


@asynccontextmanager
async def stuck(
    pool: EvaluatorPool, count: int = 1
) -> AsyncGenerator[list[asyncio.Task[list[tuple[Term, ...]]]]]:
    """Evaluations that find nothing, under way in processes of a pool that is started; leaving gives them up."""
    spent = {child: cpu_seconds(child) for child in children()}
    tasks = [asyncio.create_task(collect(pool, request("s", STUCK))) for _ in range(count)]
    try:
        await eventually(
            lambda: sum(cpu_seconds(child) - spent[child] > 0.2 for child in spent) == count
        )
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def quick(pool: EvaluatorPool) -> None:
    assert await collect(pool, request("n", "{ ?s ?p ?n }", timeout=SECONDS)), (
        "a quick query is answered"
    )


def aclosing_pool(directory: Path, **options: object) -> aclosing[EvaluatorPool]:
    """A pool where nobody waits in vain for a turn, however slow the machine."""
    return aclosing(EvaluatorPool(directory, **{"queue_seconds": 600.0, **options}))  # type: ignore[arg-type]


async def drain(batches: AsyncGenerator[object], count: int) -> None:
    for _ in range(count):
        await anext(batches)


def cpu_seconds(process: int) -> float:
    return sum(psutil.Process(process).cpu_times()[:2])


# --- answers ---


async def body_of(answer: Answer) -> bytes:
    async with aclosing(answer.body) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def ask(
    pool: EvaluatorPool, text: str, accept: str | None = None, **options: object
) -> tuple[str, bytes]:
    headers = {} if accept is None else {"Accept": accept}
    answer = await pool.answer(Operation(text, headers=headers, **options))  # type: ignore[arg-type]
    assert answer.status == 200
    ((name, content_type),) = answer.headers
    assert name == "Content-Type"
    return content_type, await body_of(answer)

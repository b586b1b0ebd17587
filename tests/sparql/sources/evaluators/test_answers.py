"""`sparql/sources/evaluators/pool.py`: answers to whole requests, their status before their body."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

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
from construct_messages.sparql.sources import Operation
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from tests.support.engines.evaluators import (
    CROSS,
    STUCK,
    aclosing_pool,
    ask,
    body_of,
    children,
    quick,
)
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        not Path("/proc/self/fd").exists(), reason="counts processes and descriptors in /proc"
    ),
]


@pytest.mark.asyncio(loop_scope="module")
async def test_head_evaluates_nothing(steady: EvaluatorPool) -> None:
    assert await ask(steady, f"SELECT ?s {STUCK}", head=True) == (
        "application/sparql-results+json",
        b"",
    )
    with pytest.raises(QueryError):
        await ask(steady, "SELECT", head=True)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("operation", "kind", "status", "words"),
    [
        (
            Operation("SELECT ?s {\n ?s ?p"),
            QueryError,
            400,
            r"^line 1, column 11: the embedded engine refuses the query: this \{ is never closed",
        ),
        (Operation("ASK {}", default_graphs=("relative",)), UsageError, 400, "absolute IRIs"),
        (
            Operation("SELECT * { SERVICE <http://127.0.0.1:9/> {} }"),
            SourceError,
            502,
            "evaluation failed",
        ),
        (Operation(f"SELECT ?s {STUCK}", timeout=0.2), SourceTimeout, 504, "time allowed"),
        (Operation(f"ASK {STUCK}", timeout=0.2), SourceTimeout, 504, "time allowed"),
        (Operation("CLEAR ALL", update=True), Forbidden, 403, "read-only"),
        (
            Operation("ASK {}", headers={"Accept": "text/turtle"}),
            NotAcceptable,
            406,
            "accepts no format",
        ),
        (
            Operation("CONSTRUCT {} {}", parameters=(("format", "csv"),)),
            NotAcceptable,
            406,
            "accepts no format",
        ),
        (Operation(None), UsageError, 400, "no query"),
    ],
    ids=[
        "syntax",
        "graphs",
        "fails",
        "late solutions",
        "late ask",
        "update",
        "results",
        "triples",
        "nothing",
    ],
)
async def test_the_status_is_known_before_the_answer(
    operation: Operation,
    kind: type[ConstructMessagesError],
    status: int,
    words: str,
    steady: EvaluatorPool,
) -> None:
    with pytest.raises(kind, match=words) as caught:
        await steady.answer(operation)
    assert caught.value.status == status
    await quick(steady)


async def test_an_answer_that_breaks_does_not_end(pool: EvaluatorPool) -> None:
    answer = await pool.answer(Operation(f"SELECT * {CROSS}"))
    await anext(answer.body)
    before = children().keys()
    for child in before:
        os.kill(child, signal.SIGKILL)
    with pytest.raises(IncompleteResult, match="SIGKILL"):
        await body_of(answer)
    await eventually(
        lambda: not before & children().keys()
    )  # the idle one, too, has ended and is known to have
    await quick(pool)
    with pytest.raises(SourceTimeout):
        await body_of(await pool.answer(Operation(f"SELECT * {CROSS}", timeout=0.5)))
    await quick(pool)


async def test_an_answer_that_nobody_reads_is_let_go(directory: Path) -> None:
    async with aclosing_pool(directory, size=1, queue_seconds=60) as pool:
        for _ in range(3):
            answer = await pool.answer(Operation(f"SELECT * {CROSS}"))
            await answer.body.aclose()
        del answer
        await quick(pool)

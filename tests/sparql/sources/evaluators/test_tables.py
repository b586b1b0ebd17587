"""Evaluating processes over a table of quads: answers as over a store, and readers who leave."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pyoxigraph as ox
import pytest

pytest.importorskip("duckdb")

from construct_messages.errors import (
    Forbidden,
    NotAcceptable,
    QueryError,
    SourceError,
    SourceTimeout,
)
from construct_messages.rdf.options import UNION
from construct_messages.sparql.relational.quads import load
from construct_messages.sparql.sources import Operation
from tests.support.engines.evaluators import (
    ALL,
    COUNT,
    EX,
    STUCK,
    aclosing_pool,
    body_of,
    children,
    collect,
    cpu_seconds,
    drain,
    quick,
    stuck,
)
from tests.support.queries.requests import request
from tests.support.waiting import eventually

TRIPLES = ox.RdfFormat.N_TRIPLES


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    lines = [
        f'<{EX}s{n}> <{EX}p> "0{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        for n in range(COUNT)
    ]
    (folder / "a.nq").write_text("".join(lines) + f"<{EX}s> <{EX}q> _:b <{EX}g> .\n")
    load([folder / "a.nq"], folder / "t")
    return folder / "t"


async def test_solutions_and_their_labels(table: Path) -> None:
    async with aclosing_pool(table, size=1) as pool:
        await pool.start()
        found = await collect(pool, request("s n", ALL))
        assert len(found) == COUNT
        assert (f"<{EX}s7>", '"07"^^<http://www.w3.org/2001/XMLSchema#integer>') in found
        graph = f"{{ GRAPH <{EX}g> {{ ?s ?p ?n }} }}"
        (one,), (other,) = [await collect(pool, request("n", graph)) for _ in range(2)]
        assert one[0].startswith("_:")
        assert one != other  # the labels of each request are its own


ANSWERS = {
    "SELECT ?n { ?s ?p ?n } ORDER BY ?n LIMIT 1": ("text/tab-separated-values", "?n\n00\n"),
    "SELECT ?n ?u { ?s ?p ?n } ORDER BY ?n LIMIT 1": ("text/csv", "n,u\r\n00,\r\n"),
    "ASK { ?s ?p ?n }": ("application/sparql-results+json", '{"head":{},"boolean":true}'),
    "ASK { ?s <urn:x> ?n }": ("application/sparql-results+json", '{"head":{},"boolean":false}'),
    f"CONSTRUCT {{ <{EX}a> ?p <{EX}b> }} WHERE {{ ?s ?p ?n }}": (
        "application/n-triples",
        f"<{EX}a> <{EX}p> <{EX}b> .\n",
    ),
}


async def test_answers(table: Path) -> None:
    async with aclosing_pool(table, size=1) as pool:
        for query, (accept, whole) in ANSWERS.items():
            answer = await pool.answer(Operation(query, headers={"Accept": accept}))
            assert (await body_of(answer)).decode() == whole


async def test_large_answers_and_datasets(table: Path) -> None:
    async with aclosing_pool(table, size=1) as pool:
        everything = "CONSTRUCT { ?s ?p ?n } WHERE { ?s ?p ?n }"
        headers = {"Accept": "application/n-triples"}
        for graphs, count in (((), COUNT), ((UNION,), COUNT + 1), ((f"{EX}g",), 1)):
            answer = await pool.answer(Operation(everything, False, graphs, headers=headers))
            assert len(list(ox.parse(await body_of(answer), TRIPLES))) == count


REFUSED = {
    "SELECT * { ?s ?p ?n FILTER(<urn:f>(?n)) }": (SourceError, 501),
    "SELECT * { ?s ?p ": (QueryError, 400),
    "CONSTRUCT { GRAPH <urn:g> { ?s ?p ?n } } WHERE { ?s ?p ?n }": (QueryError, 400),
}


async def test_what_is_refused(table: Path) -> None:
    async with aclosing_pool(table, size=1) as pool:
        for query, (error, status) in REFUSED.items():
            with pytest.raises(error) as raised:
                await pool.answer(Operation(query))
            assert raised.value.status == status
        with pytest.raises(NotAcceptable):
            await pool.answer(Operation("ASK {}", headers={"Accept": "text/html"}))
        with pytest.raises(Forbidden):
            await pool.answer(Operation("CLEAR ALL", update=True))
        await quick(pool)


async def test_readers_who_leave_interrupt_their_evaluations(table: Path) -> None:
    async with aclosing_pool(table, size=2) as pool:
        await pool.start()
        before = children()
        async with stuck(pool, 2):
            pass
        await quick(pool)
        assert children().keys() == before.keys()  # none was killed
        async with aclosing(
            pool.asolutions(request("s s2", "{ ?s ?p ?o . ?s2 ?p2 ?o2 }"))
        ) as batches:
            await drain(batches, 2)
        answer = await pool.answer(Operation("SELECT * { ?s ?p ?o . ?s2 ?p2 ?o2 }"))
        await anext(answer.body)
        await answer.body.aclose()
        await quick(pool)
        spent = {child: cpu_seconds(child) for child in children()}
        await asyncio.sleep(0.3)
        assert all(cpu_seconds(child) - spent[child] < 0.2 for child in children())


async def test_time_limit(table: Path) -> None:
    async with aclosing_pool(table, size=1) as pool:
        await pool.start()
        with pytest.raises(SourceTimeout):
            await collect(pool, request("s", STUCK, timeout=0.5))
        await quick(pool)


async def test_the_memory_of_a_process(table: Path) -> None:
    async with aclosing_pool(table, size=1, memory_bytes=512 << 20) as pool:
        cross = "{ ?a ?p ?x . ?b ?q ?y } ORDER BY CONCAT(STR(?x), STR(?y))"
        with pytest.raises(SourceError):
            await collect(pool, request("a b", cross))
        await quick(pool)


async def test_a_file_that_is_loaded_meanwhile_is_seen(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.nt").write_text(f"<urn:{name}> <urn:p> <urn:o> .\n")
    load([tmp_path / "a.nt"], tmp_path / "t")
    async with aclosing_pool(tmp_path / "t", size=1) as pool:
        assert len(await collect(pool, request("s", ALL))) == 1
        (tmp_path / "a.nt").write_text("<urn:c> <urn:p> <urn:o> .\n")
        load([tmp_path / "a.nt", tmp_path / "b.nt"], tmp_path / "t")
        assert {s for (s,) in await collect(pool, request("s", ALL))} == {"<urn:c>", "<urn:b>"}


async def test_data_beyond_the_memory_is_removed(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with aclosing_pool(table, size=1) as pool:
        await quick(pool)
        assert os.listdir(tmp_path)
    await eventually(lambda: not os.listdir(tmp_path))

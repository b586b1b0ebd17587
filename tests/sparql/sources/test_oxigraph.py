"""`sparql/sources/oxigraph.py`: every solution, as soon as it exists, and an end that can be trusted."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import QueryError, SourceError, SourceTimeout, UsageError
from construct_messages.rdf import terms
from construct_messages.rdf.terms import Term
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.oxigraph import OxigraphSource
from tests.support.queries.requests import request
from tests.support.strategies import TERMS
from tests.support.waiting import ENOUGH, settled, wait_until

pytestmark = pytest.mark.slow

EX = "http://example.org/"


def numbers(count: int) -> ox.Store:
    store = ox.Store()
    store.bulk_extend(
        ox.Quad(ox.NamedNode(f"{EX}s{n}"), ox.NamedNode(f"{EX}p"), ox.Literal(n))
        for n in range(count)
    )
    return store


def collect(store: ox.Store, asked: Request, asynchronous: bool) -> list[tuple[Term, ...]]:
    source = OxigraphSource(store)
    if not asynchronous:
        return [solution for batch in source.solutions(asked) for solution in batch]

    async def run() -> list[tuple[Term, ...]]:
        return [solution async for batch in source.asolutions(asked) for solution in batch]

    return asyncio.run(run())


both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@both
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 5000])
def test_all_solutions_in_order(count: int, asynchronous: bool) -> None:
    asked = request("s n missing", "{ ?s ?p ?n } ORDER BY ?n")
    found = collect(numbers(count), asked, asynchronous)
    assert found == [(f"<{EX}s{n}>", f'"{n}"^^<{terms.XSD}integer>', "") for n in range(count)]


@given(st.lists(st.tuples(TERMS, TERMS), min_size=1, max_size=100))
def test_every_term_comes_as_pyoxigraph_shows_it(rows: list[tuple[Term, Term]]) -> None:
    """Through the first document and, past 64 solutions, through the bulk one: the same terms."""
    store = ox.Store()
    p = ox.NamedNode(f"{EX}p")
    for number, pair in enumerate(rows * (80 // len(rows) + 1)):
        for position, term in enumerate(pair):
            store.add(
                ox.Quad(
                    ox.NamedNode(f"{EX}{number}"),
                    p,
                    terms.to_pyoxigraph(term),
                    ox.NamedNode(f"{EX}{position}"),
                )
            )
    asked = request(
        "a b", f"{{ GRAPH <{EX}0> {{ ?s ?p ?a }} GRAPH <{EX}1> {{ ?s ?p ?b }} }} ORDER BY STR(?s)"
    )
    expected = [
        tuple(terms.from_pyoxigraph(solution[name], asked.labels.of_data) for name in "ab")
        for solution in store.query(str(asked.select))
    ]
    assert collect(store, asked, asynchronous=False) == expected


@both
def test_blank_nodes_keep_their_identity_between_the_documents(asynchronous: bool) -> None:
    store, shared = ox.Store(), ox.BlankNode()
    store.extend(
        ox.Quad(ox.NamedNode(f"{EX}{n}"), ox.NamedNode(f"{EX}p"), shared) for n in range(300)
    )
    asked = request("o", "{ ?s ?p ?o }")
    labels = {solution[0] for solution in collect(store, asked, asynchronous)}
    assert labels == {f"_:{asked.labels.of_data}{shared.value}"}


@both
def test_a_query_that_stalls_has_delivered_what_it_found(asynchronous: bool) -> None:
    """Ten solutions at once; whether there is another, an endpoint should say that takes connections and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = f"EXISTS {{ SERVICE <http://127.0.0.1:{silent.getsockname()[1]}/> {{ ?s ?p ?o }} }}"
        stalls = f"{{ VALUES ?x {{ {' '.join(map(str, range(11)))} }} FILTER(IF(?x < 10, true, {asked})) }}"
        source = OxigraphSource(ox.Store())
        found = (
            _found_in_time(source, request("x", stalls, timeout=seconds), asynchronous)
            for seconds in ENOUGH
        )
        assert any(count == 10 for count in found)


def _found_in_time(source: OxigraphSource, asked: Request, asynchronous: bool) -> int:
    got = 0
    if asynchronous:

        async def run() -> None:
            nonlocal got
            async for batch in source.asolutions(asked):
                got += len(batch)

        with pytest.raises(SourceTimeout, match="time allowed"):
            asyncio.run(run())
    else:
        with pytest.raises(SourceTimeout, match="time allowed"):  # noqa: PT012 - counts what came before
            for batch in source.solutions(asked):
                got += len(batch)
    return got


def evaluations() -> set[threading.Thread]:
    return {
        thread for thread in threading.enumerate() if thread.name == "construct-messages evaluation"
    }


@pytest.fixture(autouse=True)
def _no_descriptor_is_left() -> Iterator[None]:
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    yield
    gc.collect()
    # an evaluation lets go when it finds something, or ends
    wait_until(lambda: len(os.listdir("/dev/fd")) <= before, seconds=600)


CROSS = "{ ?s ?p ?o . ?s2 ?p2 ?o2 }"


def test_closing_stops_the_evaluation() -> None:
    before = evaluations()
    with closing(OxigraphSource(numbers(3000)).solutions(request("s s2", CROSS))) as batches:
        next(batches)
        assert evaluations() - before
    wait_until(lambda: not evaluations() - before)


def test_a_dropped_generator_stops_the_evaluation() -> None:
    before = evaluations()
    batches = OxigraphSource(numbers(3000)).solutions(request("s s2", CROSS))
    next(batches)
    del batches
    wait_until(lambda: not evaluations() - before)


def test_cancelling_a_task_stops_the_evaluation() -> None:
    before = evaluations()

    async def run(begun: asyncio.Event) -> None:
        async for _ in OxigraphSource(numbers(3000)).asolutions(request("s s2", CROSS)):
            begun.set()
            await asyncio.sleep(0)

    async def cancel() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(run(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    wait_until(lambda: not evaluations() - before)


def test_a_slow_consumer_holds_the_evaluation_back() -> None:
    before = evaluations()
    with closing(OxigraphSource(numbers(3000)).solutions(request("s s2", CROSS))) as batches:
        next(batches)
        (evaluation,) = evaluations() - before
        clock = time.pthread_getcpuclockid(evaluation.ident or 0)
        # nine million solutions would take minutes
        asyncio.run(settled(lambda: time.clock_gettime(clock)))


@both
@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("{ ?s ?p", "refuses the query: this { is never closed"),
        (
            "{ ?s foo:p ?o }",
            "line 1, column .*: the embedded engine refuses the query: prefix foo: is not declared",
        ),
        ("{ ?s ?p ?o BIND(1 AS ?s) }", "refuses the query"),
    ],
)
def test_a_refused_query(group: str, words: str, asynchronous: bool) -> None:
    with pytest.raises(QueryError, match=words):
        collect(numbers(1), request("s", group), asynchronous)


@both
@pytest.mark.parametrize("before", [0, 10, 1000])
def test_an_evaluation_that_fails_never_ends_cleanly(before: int, asynchronous: bool) -> None:
    """Nothing listens at the SERVICE's port; solutions before it are delivered, the end is an error."""
    failing = "{ { ?s ?p ?o } UNION { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } }"
    with pytest.raises(SourceError, match="evaluation failed"):
        collect(numbers(before), request("s", failing), asynchronous)


@both
def test_datasets(asynchronous: bool) -> None:
    store = ox.Store()
    p = ox.NamedNode(f"{EX}p")
    for graph in ("g", "h"):
        store.add(ox.Quad(ox.NamedNode(EX + graph), p, ox.Literal(graph), ox.NamedNode(EX + graph)))
    store.add(ox.Quad(ox.NamedNode(f"{EX}default"), p, ox.Literal("default")))

    def found(group: str, **options: object) -> set[str]:
        return {
            terms.literal_parts(o)[0]
            for (o,) in collect(store, request("o", group, **options), asynchronous)
        }

    plain, named = "{ ?s ?p ?o }", "{ GRAPH ?g { ?s ?p ?o } }"
    assert found(plain) == {"default"}
    assert found(plain, default_graphs=("union",)) == {"default", "g", "h"}
    assert found(plain, default_graphs=(f"{EX}g",)) == {"g"}
    assert found(plain, default_graphs=(f"{EX}g", f"{EX}h")) == {"g", "h"}
    assert found(named) == {"g", "h"}
    assert found(named, named_graphs=(f"{EX}g",)) == {"g"}
    assert found(plain, named_graphs=(f"{EX}g",)) == set()
    assert found(named, default_graphs=(f"{EX}g",)) == set()


@pytest.mark.parametrize(
    ("graphs", "words"),
    [(("union", f"{EX}g"), "union is all graphs"), (("relative",), "must be absolute IRIs")],
)
def test_bad_datasets(graphs: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        collect(ox.Store(), request("o", "{ ?s ?p ?o }", default_graphs=graphs), asynchronous=False)

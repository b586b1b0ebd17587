"""`sparql/sources/rdflib.py`: rdflib's own evaluation as a source."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import rdflib
from rdflib.plugins.stores.memory import Memory

from construct_messages.construct.messages import construct_messages
from construct_messages.errors import (
    QueryError,
    SourceError,
    SourceTimeout,
    TermError,
    UsageError,
)
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import XSD
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.rdflib import RdflibSource
from tests.support.queries.requests import request
from tests.support.waiting import SECONDS

EX = rdflib.Namespace("http://example.org/")


def collect(
    graph: rdflib.Graph, asked: Request, asynchronous: bool = False
) -> list[tuple[str, ...]]:
    source = RdflibSource(graph)
    if not asynchronous:
        return [solution for batch in source.solutions(asked) for solution in batch]

    async def run() -> list[tuple[str, ...]]:
        return [solution async for batch in source.asolutions(asked) for solution in batch]

    return asyncio.run(run())


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_solutions(asynchronous: bool) -> None:
    graph = rdflib.Graph()
    graph.add((EX.a, EX.p, rdflib.Literal("chat", lang="FR")))
    graph.add((EX.b, EX.p, rdflib.Literal(5)))
    graph.add((EX.c, EX.q, rdflib.BNode("x")))
    asked = request("s o missing", "{ ?s ?p ?o } ORDER BY ?s", labels=Labels("x"))
    assert collect(graph, asked, asynchronous) == [
        ("<http://example.org/a>", '"chat"@fr', ""),
        ("<http://example.org/b>", f'"5"^^<{XSD}integer>', ""),
        ("<http://example.org/c>", "_:x_dx", ""),
    ]


def test_the_graphs_prefixes_are_predefined() -> None:
    graph = rdflib.Graph()
    graph.bind("mine", EX)
    graph.add((EX.a, EX.p, EX.b))
    assert RdflibSource(graph).predefined["mine"] == str(EX)
    assert collect(graph, request("s", "{ ?s mine:p ?o }")) == [("<http://example.org/a>",)]


def test_datasets() -> None:
    dataset = rdflib.Dataset()
    dataset.add((EX.default, EX.p, EX.o))
    for name in ("g", "h"):
        dataset.graph(EX[name]).add((EX[name], EX.p, EX.o))

    def found(group: str, **options: object) -> set[str]:
        return {
            s.removeprefix("<http://example.org/")[:-1]
            for (s,) in collect(dataset, request("s", group, **options))
        }

    plain, named = "{ ?s ?p ?o }", "{ GRAPH ?g { ?s ?p ?o } }"
    assert found(plain) == {"default"}
    assert found(plain, default_graphs=("union",)) == {"default", "g", "h"}
    assert found(plain, default_graphs=(str(EX.g),)) == {"g"}
    assert found(plain, default_graphs=(str(EX.g), str(EX.h))) == {"g", "h"}
    assert found(named, named_graphs=(str(EX.h),)) == {"h"}
    assert found(plain, named_graphs=(str(EX.h),)) == set()


def test_a_graph_has_no_graphs() -> None:
    with pytest.raises(UsageError, match="pass a Dataset"):
        collect(rdflib.Graph(), request("s", "{ ?s ?p ?o }", default_graphs=(str(EX.g),)))


def test_errors() -> None:
    graph = rdflib.Graph()
    graph.add((EX.a, EX.p, EX.b))
    with pytest.raises(QueryError, match="line 1, column"):
        collect(graph, request("s", "{ ?s ?p }"))
    with pytest.raises(QueryError, match="prefix nowhere: is not declared"):
        collect(graph, request("s", "{ ?s nowhere:p ?o }"))
    with pytest.raises(SourceTimeout, match="time allowed"):
        collect(graph, request("s", "{ ?s ?p ?o }", timeout=1e-9))


def test_stopping_early_in_asyncio() -> None:
    graph = rdflib.Graph()
    for number in range(100):
        graph.add((EX[str(number)], EX.p, EX.o))

    async def first() -> int:
        batches = RdflibSource(graph).asolutions(request("s", "{ ?s ?p ?o }"))
        async for batch in batches:
            await batches.aclose()
            return len(batch)
        return 0

    assert asyncio.run(first()) == 1


class Held(Memory):
    """A store that finds nothing more until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()

    def triples(self, *pattern: Any, **options: Any) -> Iterator[Any]:
        try:
            for triple in super().triples(*pattern, **options):
                yield triple
                self.asked.set()
                self.go_on.wait(SECONDS)
        finally:
            self.ended.set()


@pytest.fixture
def held() -> Iterator[rdflib.Graph]:
    graph = rdflib.Graph(Held())
    for name in "ab":
        graph.add((EX[name], EX.p, EX.o))
    yield graph
    graph.store.go_on.set()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_time_limit_does_not_wait_for_the_next_solution(
    held: rdflib.Graph, asynchronous: bool
) -> None:
    """Issue 13, 14."""
    with pytest.raises(SourceTimeout, match="time allowed"):
        collect(held, request("s", "{ ?s ?p ?o }", timeout=0.2), asynchronous)
    assert not held.store.ended.is_set(), "it was not waited for"
    held.store.go_on.set()
    assert held.store.ended.wait(SECONDS), "and it ends at its next solution"


@pytest.mark.slow
def test_a_task_that_is_cancelled_lets_the_evaluation_go(held: rdflib.Graph) -> None:
    """Issue 13, 14: nothing is printed, and nothing is waited for or left behind."""
    complaints: list[dict[str, Any]] = []
    before = set(threading.enumerate())

    async def leave() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context)
        )
        batches = RdflibSource(held).asolutions(request("s", "{ ?s ?p ?o }"))
        assert len(await anext(batches)) == 1
        task = asyncio.create_task(anext(batches))  # type: ignore[arg-type] # any awaitable will do
        assert await asyncio.to_thread(held.store.asked.wait, SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert not held.store.ended.is_set(), "it was not waited for"
    held.store.go_on.set()
    assert held.store.ended.wait(SECONDS)
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        if thread.name == "construct-messages evaluation":
            thread.join(SECONDS)
            assert not thread.is_alive()
    assert complaints == []


def test_without_a_time_limit_the_store_is_asked_in_the_caller_s_thread() -> None:
    """Stores over SQLite answer no other."""

    class Own(Memory):
        def triples(self, *pattern: Any, **options: Any) -> Iterator[Any]:
            assert threading.current_thread() is threading.main_thread()
            return super().triples(*pattern, **options)

    graph = rdflib.Graph(Own())
    graph.add((EX.a, EX.p, EX.o))
    assert collect(graph, request("s", "{ ?s ?p ?o }")) == [(f"<{EX.a}>",)]
    with pytest.raises(SourceError, match="evaluation failed"):
        collect(graph, request("s", "{ ?s ?p ?o }"), asynchronous=True)


def test_prefixes_that_no_query_can_use() -> None:
    """Issue 13, 11: they stop no query, as RDF/XML and JSON-LD files bind them to a graph."""
    graph = rdflib.Graph()
    for prefix, namespace in (("1a.", EX), ("_x", EX), ("rel", "#"), ("ex", EX)):
        graph.bind(prefix, namespace)
    graph.add((EX.a, EX.p, EX.o))
    (message,) = construct_messages("CONSTRUCT { ?s ex:q ?o } WHERE { ?s ex:p ?o }", graph)
    assert len(message) == 1


MALFORMED = ("http://e/100%", "http://e/[", "", "a", "http://e/##")


@pytest.mark.parametrize("value", MALFORMED)
def test_malformed_iris(value: str) -> None:
    """Issue 13, 9: rdflib takes any text for an IRI; no term is made of what is none."""
    graph = rdflib.Graph()
    graph.add((EX.a, EX.p, rdflib.URIRef(value)))
    with pytest.raises(TermError, match=r"is no IRI|is relative"):
        collect(graph, request("o", "{ ?s ?p ?o }"))

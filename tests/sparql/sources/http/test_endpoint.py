"""Endpoints of real engines over real sockets, through both HTTP clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest

from construct_messages.errors import SourceError
from construct_messages.query.select import Select
from construct_messages.rdf.terms import Term, from_pyoxigraph
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource

SIZE = 100
DATA = "@prefix : <http://example.org/> .\n" + "".join(
    f':s{n} :label "étiquette {n}"@fr, "tab\\there {n}" ; :number {n + 1} ; :ratio {n}.5 ; :is true .\n'
    f":g{n % 3} {{ :s{n} :in :g{n % 3} . }}\n"
    for n in range(SIZE)
)
ORDERED = Select(
    "PREFIX : <http://example.org/>\n",
    "SELECT ?s ?p ?o ?none ",
    ("s", "p", "o", "none"),
    "WHERE ",
    "{ ?s ?p ?o }",
    order=" ORDER BY ?s ?p ?o",
)


def all_at_once(source: EndpointSource, request: Request) -> list[tuple[Term, ...]]:
    return [solution for batch in source.solutions(request) for solution in batch]


def all_async(source: EndpointSource, request: Request) -> list[tuple[Term, ...]]:
    async def gather() -> list[tuple[Term, ...]]:
        return [solution async for batch in source.asolutions(request) for solution in batch]

    return asyncio.run(gather())


each_client = pytest.mark.parametrize("read", [all_at_once, all_async], ids=["blocking", "asyncio"])
each_engine = pytest.mark.parametrize("engine", ["oxigraph_server", "rdflib_server"])
Read = Callable[[EndpointSource, Request], list[tuple[Term, ...]]]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("endpoint") / "data.trig"
    file.write_text(DATA)
    return file


def expected(
    select: Select, *, union: bool = False, **dataset: list[ox.NamedNode]
) -> list[tuple[Term, ...]]:
    store = ox.Store()
    store.load(DATA, ox.RdfFormat.TRIG)
    solutions = store.query(str(select), use_default_graph_as_union=union, **dataset)
    assert isinstance(solutions, ox.QuerySolutions)
    return [
        tuple(
            Term("") if solution[name] is None else from_pyoxigraph(solution[name], "d")
            for name in select.variables
        )
        for solution in solutions
    ]


@each_client
@pytest.mark.parametrize("method", ["post", "get"])
@pytest.mark.parametrize("results", ["auto", "json", "xml", "tsv"])
def test_oxigraph(
    request: pytest.FixtureRequest, data: Path, read: Read, method: str, results: str
) -> None:
    url = request.getfixturevalue("oxigraph_server")(data)
    source = EndpointSource(Endpoint.at(url, method=method), results=results, profile="oxigraph")
    assert read(source, Request(ORDERED, timeout=120)) == expected(ORDERED)


@each_client
@pytest.mark.parametrize("method", ["post", "get"])
@pytest.mark.parametrize("results", ["auto", "json", "xml", "tsv"])
def test_rdflib(
    request: pytest.FixtureRequest, data: Path, read: Read, method: str, results: str
) -> None:
    # asked for TSV, it answers in XML: the decoder is that of the answer
    url = request.getfixturevalue("rdflib_server")(data)
    source = EndpointSource(Endpoint.at(url, method=method), results=results)
    # its default graph is the union of all
    assert read(source, Request(ORDERED, timeout=120)) == expected(ORDERED, union=True)


@each_client
@pytest.mark.parametrize("page_size", [1000, 5 * SIZE, 77])
def test_pages_are_the_whole(
    oxigraph_server: Callable[[Path], str], data: Path, read: Read, page_size: int
) -> None:
    source = EndpointSource(oxigraph_server(data), profile="oxigraph")
    for select in (ORDERED, replace(ORDERED, slice=" LIMIT 300 OFFSET 9", limit=300, offset=9)):
        assert read(source, Request(select, page_size=page_size, timeout=120)) == expected(select)


@each_client
def test_dataset(oxigraph_server: Callable[[Path], str], data: Path, read: Read) -> None:
    source = EndpointSource(oxigraph_server(data), profile="oxigraph")
    graphs = [ox.NamedNode(f"http://example.org/g{n}") for n in range(2)]
    request = Request(ORDERED, default_graphs=tuple(graph.value for graph in graphs), timeout=120)
    assert read(source, request) == expected(ORDERED, default_graph=graphs)
    select = replace(ORDERED, group="{ GRAPH ?none { ?s ?p ?o } }")
    request = Request(select, named_graphs=("http://example.org/g1",), timeout=120)
    assert read(source, request) == expected(select, named_graphs=graphs[1:])


@each_client
@each_engine
def test_the_engine_refuses(
    request: pytest.FixtureRequest, data: Path, read: Read, engine: str
) -> None:
    source = EndpointSource(request.getfixturevalue(engine)(data))
    with pytest.raises(SourceError, match=r"refused the query|HTTP status") as caught:
        read(source, Request(replace(ORDERED, group="{ ?s ?p"), timeout=120))
    assert caught.value.status in (400, 502)  # rdflib-endpoint's 500 is its own affair


@each_client
@each_engine
def test_no_solutions(request: pytest.FixtureRequest, data: Path, read: Read, engine: str) -> None:
    source = EndpointSource(request.getfixturevalue(engine)(data))
    assert read(source, Request(replace(ORDERED, group="{ ?s <urn:none> ?o }"), timeout=120)) == []


def test_many_at_once(oxigraph_server: Callable[[Path], str], data: Path) -> None:
    source = EndpointSource(oxigraph_server(data), profile="oxigraph")

    async def count() -> int:
        return sum([len(batch) async for batch in source.asolutions(Request(ORDERED, timeout=120))])

    async def gather() -> list[int]:
        return list(await asyncio.gather(*(count() for _ in range(8))))

    assert asyncio.run(gather()) == [len(expected(ORDERED))] * 8


def test_leaving_early(oxigraph_server: Callable[[Path], str], data: Path) -> None:
    # a product that would take hours
    select = replace(ORDERED, group="{ ?s ?p ?o . ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", order="")
    source = EndpointSource(oxigraph_server(data), profile="oxigraph")

    async def leave() -> int:
        batches = source.asolutions(Request(select, timeout=120))
        try:
            return len(await anext(batches))
        finally:
            await batches.aclose()

    assert asyncio.run(leave()) > 0
    batches = source.solutions(Request(select, timeout=120))
    assert len(next(batches)) > 0
    batches.close()

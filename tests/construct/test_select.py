"""SELECT queries as tables, of sources of several kinds."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyoxigraph as ox
import pytest
import rdflib

from construct_messages import QuerySolutions, select
from construct_messages.errors import ColumnError, QueryError, UsageError
from construct_messages.query.rewrite import parse_select
from construct_messages.sparql.relational.quads import load

DATA = """
PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:a :size 3 ; :price 1.50 ; :weight 1e3 ; :new true ; :day "2024-05-01"^^xsd:date ; :name "A"@en ; :age 41 .
:b :size 4 ; :price 2.5 ; :weight 2.5e0 ; :new false ; :day "2024-05-02"^^xsd:date ; :name "B" ; :age "unknown" .
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?thing ?size ?price ?weight ?new ?day ?name ?gone ?age
WHERE {
  ?thing :size ?size ; :price ?price ; :weight ?weight ; :new ?new ; :day ?day ; :name ?name ; :age ?age
  OPTIONAL { ?thing :gone ?gone }
} ORDER BY ?thing"""


def in_store(path: Path) -> Any:
    store = ox.Store()
    store.load(path.read_bytes(), format=ox.RdfFormat.TURTLE)
    return store


def in_graph(path: Path) -> Any:
    return rdflib.Graph().parse(path)


def in_table(path: Path) -> Any:
    load([path], path.parent / "quads")
    return path.parent / "quads"


@pytest.fixture(params=[str, in_store, in_graph, in_table], ids=lambda make: make.__name__)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    make: Callable[[Path], Any] = request.param
    (tmp_path / "data.ttl").write_text(DATA, encoding="utf-8")
    return make(tmp_path / "data.ttl")


def test_columns_have_types(source: Any) -> None:
    found = select(QUERY, source).to_duckdb(languages=["name"])
    connection_types = dict(zip(found.columns, map(str, found.types), strict=True))
    assert connection_types == {
        "thing": "VARCHAR",
        "size": "BIGINT",
        "price": "DECIMAL(38,18)",
        "weight": "DOUBLE",
        "new": "BOOLEAN",
        "day": "DATE",
        "name": "VARCHAR",
        "name_language": "VARCHAR",
        "gone": "VARCHAR",
        "age": "VARCHAR",
    }
    first, second = found.fetchall()
    day = dt.date(2024, 5, 1)
    assert first == (
        "http://example.org/a", 3, Decimal("1.5"), 1000.0, True, day, "A", "en", None, "41",
    )  # fmt: skip
    assert second[-4:] == ("B", None, None, "unknown")
    assert len(found.fetchall()) == 2  # a relation is asked again


def test_all_frames_are_equal(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text(DATA, encoding="utf-8")

    def ask() -> QuerySolutions:
        return select(QUERY, tmp_path / "data.ttl")

    rows = ask().to_arrow(invalid="string").read_all().to_pylist()
    assert ask().to_pandas(dtype_backend="pyarrow").to_dict("records")[0]["size"] == 3
    assert ask().to_polars().to_dicts() == rows
    with duckdb.connect() as connection:
        named = [
            dict(zip(rows[0], row, strict=True)) for row in ask().to_duckdb(connection).fetchall()
        ]
    assert named == rows
    with pytest.raises(ColumnError, match="solution 2: \\?age is"):
        ask().to_polars(invalid="error")


def test_solutions_are_terms(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text(DATA, encoding="utf-8")
    query = "SELECT * { ?s <http://example.org/name> ?name OPTIONAL { ?s <urn:none> ?none } } ORDER BY ?s"
    solutions = select(query, tmp_path / "data.ttl")
    assert solutions.variables == ("s", "name", "none")
    found = list(solutions)
    assert found[0] == {"s": "<http://example.org/a>", "name": '"A"@en'}
    with pytest.raises(UsageError, match="solutions can be read once"):
        list(solutions)

    async def read() -> list[Any]:
        return [each async for each in select(query, tmp_path / "data.ttl")]

    assert asyncio.run(read()) == found


def test_bindings_prefixes_and_layouts(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text(DATA, encoding="utf-8")
    query = "SELECT ?s { ?s ex:size ?size }"
    given = {"bindings": {"size": 4}, "prefixes": {"ex": "http://example.org/"}}
    assert list(select(query, tmp_path / "data.ttl", **given)) == [{"s": "<http://example.org/b>"}]
    with pytest.raises(UsageError, match="no layout 'quads'"):
        select(query, tmp_path / "data.ttl", **given).to_arrow(layout="quads")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT*{?s ?p ?o}", "SELECT ?s ?p ?o {?s ?p ?o}"),
        ("SELECT DISTINCT * WHERE { ?s ?p ?o }", "SELECT DISTINCT ?s ?p ?o WHERE { ?s ?p ?o }"),
        ("SELECT REDUCED ?s ?s { ?s ?p ?o }", "SELECT REDUCED ?s { ?s ?p ?o }"),
        (
            "SELECT ?s (COUNT(*) # all\n AS ?n) # of them\nFROM <urn:g>\n{ ?s ?p ?o } GROUP BY ?s LIMIT 3",
            "SELECT ?s (COUNT(*) # all\n AS ?n) # of them\nFROM <urn:g>\n{ ?s ?p ?o } GROUP BY ?s LIMIT 3",
        ),
        ("SELECT * { ?s ?p 1 } VALUES ?z { 1 }", "SELECT ?s ?p ?z { ?s ?p 1 } VALUES ?z { 1 }"),
    ],
)
def test_the_projection_is_written_out(query: str, text: str) -> None:
    select = parse_select(query)
    assert str(select) == text
    assert parse_select(text).variables == select.variables
    assert str(select.nested()).count("{") == str(select).count("{") + 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("CONSTRUCT WHERE { ?s ?p ?o }", "expected a SELECT query, got CONSTRUCT"),
        ("ASK {}", "got ASK"),
        ("SELECT * {}", "has no variables"),
        ("SELECT * { ?s ?p ?o . WINDOW 3 { ?x ?y ?z } }", "line 1, column"),
        ("SELECT ?s (1 AS ?s) { ?s ?p ?o }", "in the projection already"),
        ("SELECT ?s ?p { ?s", "line 1, column"),
    ],
)
def test_other_queries_are_refused(query: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        select(query, ox.Store())

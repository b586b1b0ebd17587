"""CONSTRUCT queries found in the wild on DuckDB: over quads that they match, and over real data, as pyoxigraph's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pyoxigraph as ox
import pytest

pytest.importorskip("duckdb")

from construct_messages.errors import QueryError, UnsupportedQuery
from construct_messages.query.optimizer.optimize import Hints, Statistics, optimize
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import UNBOUND, Term, from_pyoxigraph, map_blanks
from construct_messages.sparql.engine import StoreQuery
from construct_messages.sparql.relational.duckdb import DuckDbEngine
from construct_messages.sparql.relational.evaluation import PlanSelect
from construct_messages.sparql.relational.quads import load
from construct_messages.sparql.relational.scans import Quads
from construct_messages.sparql.sources.duckdb import DuckDbSource
from tests.support.conformance.wild import VOLATILE, Wild, invented, wild
from tests.support.places import shared_path
from tests.support.queries.relational import connection_of
from tests.support.queries.w3c import canonical

pytestmark = [pytest.mark.suite, pytest.mark.slow]

MANY = 2000
DATA = ("qudt-units.ttl", "brick-mediumOffice.ttl", "spb-football.ttl", "dbpedia-countries.nt")


def planned() -> list[Wild]:
    """The queries with a plan, whose solutions are determined."""
    return [
        query
        for query in wild()
        if not isinstance(query.outcome, Exception)
        and not any(word in query.select.upper() for word in VOLATILE)
    ]


def by_pyoxigraph(query: Wild, store: ox.Store) -> Counter[tuple[Term, ...]] | None:
    """Its solutions; None where it does not read the query, or where there are many."""
    try:
        results = StoreQuery(query.select).begin(store)  # whose orders have no cycles
    except (SyntaxError, RuntimeError, QueryError):
        return None
    assert isinstance(results, ox.QuerySolutions)
    names = [variable.value for variable in results.variables]
    found = Counter(
        comparable(
            UNBOUND if (term := one[name]) is None else from_pyoxigraph(term) for name in names
        )
        for one in islice(results, MANY)
    )
    return None if found.total() == MANY else found


def comparable(solution: Iterable[Term | None]) -> tuple[Term, ...]:
    """A solution without labels of blank nodes, and with numbers as pyoxigraph stores them."""
    return tuple(
        map_blanks(canonical(term), lambda _: Term("_:b")) if term else UNBOUND for term in solution
    )


def by_duckdb(query: Wild, connection: object, *, distinct: bool) -> Counter[tuple[Term, ...]]:
    assert not isinstance(query.outcome, Exception)
    plan = optimize(query.outcome, Statistics(), hints=Hints(join="joins"))
    engine = DuckDbEngine(connection)  # type: ignore[arg-type]
    quads = Quads("quads", distinct, plan.dataset, engine.dialect)
    select = PlanSelect(engine, quads).select(plan)
    return Counter(map(comparable, engine.connection.execute(select).fetchall()))


def test_over_quads_that_they_match() -> None:
    compared = fruitful = 0
    wrong = []
    for query in planned():
        quads = invented(query.outcome)  # type: ignore[arg-type]
        store = ox.Store()
        store.extend(Message(quads).to_pyoxigraph())
        wanted = by_pyoxigraph(query, store)
        if wanted is None:
            continue
        try:
            found = by_duckdb(query, connection_of([tuple(quad) for quad in quads]), distinct=True)
        except UnsupportedQuery:
            continue
        compared, fruitful = compared + 1, fruitful + bool(wanted)
        if found != wanted:
            wrong.append(query.name)
    assert wrong == []
    assert compared > 200
    assert fruitful > 150


def test_over_real_data(tmp_path: Path) -> None:
    paths = [shared_path(f"data/{name}") for name in DATA]
    load(paths, tmp_path / "t")
    store = ox.Store()
    for path in paths:
        store.bulk_load(path=path, base_iri=path.as_uri())
    source = DuckDbSource(tmp_path / "t")
    fruitful, wrong = 0, []
    for query in planned():
        wanted = by_pyoxigraph(query, store)
        if wanted is None:
            continue
        try:
            found = by_duckdb(query, source._connection.cursor(), distinct=False)
        except UnsupportedQuery:
            continue
        fruitful += bool(wanted)
        if found != wanted:
            wrong.append(query.name)
    assert wrong == []
    assert fruitful > 20

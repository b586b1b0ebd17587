"""Queries over tables of quads by DuckDB, for tests: their plans, without a source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import duckdb
import pyarrow as pa

from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.optimizer.optimize import Hints, Statistics, optimize
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term
from construct_messages.sparql.relational.duckdb import DuckDbEngine
from construct_messages.sparql.relational.evaluation import PlanSelect
from construct_messages.sparql.relational.scans import COLUMNS, Quads
from tests.support.queries.algebra_text import translate_query
from tests.support.queries.w3c import Answer, Case

NOW: Final = Term('"2024-02-29T12:34:56.789Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')


def connection_of(quads: Sequence[tuple[Term | None, ...]]) -> duckdb.DuckDBPyConnection:
    """A connection with these rows as its temporary table `quads`."""
    connection = _database().cursor()
    arrays = [pa.array([row[place] for row in quads], pa.string()) for place in range(4)]
    connection.register("given", pa.table(dict(zip(COLUMNS, arrays, strict=True))))
    connection.execute("CREATE TEMP TABLE quads AS SELECT * FROM given")
    connection.unregister("given")
    return connection


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database for all, which takes longer to open than a small query to answer."""
    database = duckdb.connect()
    database.execute("SET threads = 1")
    return database


def evaluated(
    plan: Plan, quads: Sequence[tuple[Term | None, ...]], *, asks: bool = False
) -> list[tuple[Term, ...]]:
    """The solutions of a plan over rows, which may hold a quad twice; `asks` as in `Quads`, and as on Spark."""
    connection = connection_of(quads)
    engine = DuckDbEngine(connection)
    table = Quads("quads", False, plan.dataset, engine.dialect, asks=asks)
    select = PlanSelect(engine, table).select(plan)
    found = connection.execute(select).fetchall()
    connection.close()
    return [tuple(Term(value or "") for value in row) for row in found]


def planned(text: str, base: str | None = None) -> Plan:
    """The plan of a SELECT or ASK."""
    plan = translate_query(text, base=base, now=NOW)
    return optimize(plan, Statistics(), hints=Hints(join="joins"))


def answer(case: Case) -> Answer:
    """DuckDB's answer to a test of the W3C."""
    is_construct = query_form(case.text) == "CONSTRUCT"
    construct = ConstructQuery.parse(case.text, base=case.base) if is_construct else None
    plan = planned(str(construct.select) if construct else case.text, case.base)
    found = evaluated(plan, [tuple(quad) for quad in case.quads()])
    if construct is not None:
        order = [plan.variables.index(name) for name in construct.template.variables]
        return Answer(triples=_triples(construct, [[row[n] for n in order] for row in found]))
    if plan.form == "ASK":
        return Answer(truth=bool(found))
    return Answer(plan.variables, tuple(found), ordered=plan.ordered)


def _triples(construct: ConstructQuery, rows: Sequence[Sequence[Term]]) -> frozenset[Quad]:
    return frozenset(
        quad
        for number, row in enumerate(rows)
        for quad in construct.template.instantiate(row, number)
    )

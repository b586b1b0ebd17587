"""The solutions of each node, against another engine and against the plain evaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from construct_messages.spark.algebra import Node, Plan, Project, Var
from construct_messages.terms import Term, from_pyoxigraph
from tests import algebra_reference
from tests.algebra_trees import QUADS, VARIABLES, trees, written

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

from construct_messages.spark.relations import evaluate
from construct_messages.spark.table import QuadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "subject string, predicate string, object string, graph string"
Bag = Counter[tuple[Term | None, ...]]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> QuadTable:
    # each quad twice: a graph is a set
    return QuadTable.of(spark.createDataFrame([tuple(quad) for quad in QUADS * 2], SCHEMA))


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    lines = "".join(f"{' '.join(filter(None, quad))} .\n" for quad in QUADS)
    store.load(lines.encode(), format=ox.RdfFormat.N_QUADS)
    return store


def evaluated(nodes: Sequence[Node], table: QuadTable) -> list[Bag]:
    """The solutions of several nodes, in one job."""
    frames: list[DataFrame] = [
        evaluate(Plan("SELECT", node, tuple(variable.name for variable in VARIABLES)), table).select(
            "*", F.lit(number).alias("number")
        )
        for number, node in enumerate(nodes)
    ]
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionByName(frame)
    bags: list[Bag] = [Counter() for _ in nodes]
    for *solution, number in together.collect():
        bags[number][tuple(solution)] += 1
    return bags


def by_oxigraph(node: Node, store: ox.Store) -> Bag:
    answer = store.query(f"SELECT ?x ?y ?z WHERE {written(node)}")
    assert isinstance(answer, ox.QuerySolutions)
    return Counter(tuple(term and from_pyoxigraph(term) for term in solution) for solution in answer)


def by_reference(node: Node) -> Bag:
    plan = Plan("SELECT", Project(node, VARIABLES), ())
    return Counter(tuple(map(solution.get, VARIABLES)) for solution in algebra_reference.solutions(plan, QUADS))


def agree(nodes: Sequence[Node], table: QuadTable, wanted: Sequence[Bag]) -> None:
    for node, given, expected in zip(nodes, evaluated(nodes, table), wanted, strict=True):
        assert given == expected, written(node)


_NARROW = trees(minus=False)  # the engine takes what is known outside EXISTS as shared by the sides of a MINUS inside
_TREES = st.lists(trees(), min_size=12, max_size=12)
_ASKING = st.lists(trees(_NARROW, minus=False), min_size=6, max_size=6)
_NESTED = st.lists(trees(trees(trees())), min_size=6, max_size=6)
_few = settings(
    max_examples=4,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large, HealthCheck.too_slow],
)


@_few
@given(_TREES)
def test_patterns_give_what_another_engine_gives(table: QuadTable, store: ox.Store, nodes: list[Node]) -> None:
    agree(nodes, table, [by_oxigraph(node, store) for node in nodes])


@_few
@given(_ASKING)
def test_exists_gives_what_another_engine_gives(table: QuadTable, store: ox.Store, nodes: list[Node]) -> None:
    agree(nodes, table, [by_oxigraph(node, store) for node in nodes])


@_few
@given(_NESTED)
def test_exists_sees_what_is_bound_outside(table: QuadTable, nodes: list[Node]) -> None:
    agree(nodes, table, [by_reference(node) for node in nodes])

"""One triple pattern over a table of quads, and what tables of quads may look like."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import QuadsError
from construct_messages.query.algebra.nodes import Bgp, Dataset, Graphs, Plan, Triple, Var
from construct_messages.query.optimizer.optimize import Statistics
from construct_messages.rdf.terms import Term
from construct_messages.sparql.relational.relation import column
from tests.support.spark.sessions import executed, optimized

pytest.importorskip("pyspark")
from construct_messages.spark.evaluation import evaluate
from construct_messages.spark.quads.table import QuadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

SCHEMA = "subject string, predicate string, object string, graph string"
S, P, O, G = map(Var, "spog")  # noqa: E741  # as the positions are called
A, B, C, H, PRED = (Term(f"<urn:{name}>") for name in ("a", "b", "c", "h", "p"))
ODD = Term(r""""it's \"${spark.app.name}\" \\ \n %s"@en""")
QUADS = [
    (A, PRED, B, None),
    (A, PRED, B, None),
    (A, PRED, A, None),
    (B, PRED, ODD, None),
    (A, PRED, B, A),
    (A, PRED, C, A),
    (A, PRED, B, B),
    (C, C, C, C),
]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> QuadTable:
    return QuadTable.of(spark.createDataFrame([tuple(quad) for quad in QUADS], SCHEMA))


def scan(pattern: Triple, table: QuadTable, dataset: Dataset) -> DataFrame:
    names = tuple(variable.name for variable in sorted(pattern.variables))
    return evaluate(Plan("SELECT", Bgp((pattern,)), names, dataset), table)


def bag(frame: DataFrame, *variables: Var) -> Counter[tuple[str | None, ...]]:
    assert sorted(frame.columns) == sorted(map(column, variables))
    return Counter(tuple(solution) for solution in frame.select(*map(column, variables)).collect())


EVERYTHING = Dataset()
PATTERNS = {
    "variables": (Triple(S, PRED, O), EVERYTHING, (S, O), [(A, B), (A, A), (B, ODD)]),
    "all variables": (
        Triple(S, P, O),
        EVERYTHING,
        (S, P, O),
        [(A, PRED, B), (A, PRED, A), (B, PRED, ODD)],
    ),
    "constants": (Triple(A, PRED, O), EVERYTHING, (O,), [(B,), (A,)]),
    "a literal with all that SQL quotes": (Triple(S, PRED, ODD), EVERYTHING, (S,), [(B,)]),
    "nothing there": (Triple(S, PRED, C), EVERYTHING, (S,), []),
    "a variable twice": (Triple(S, PRED, S), EVERYTHING, (S,), [(A,)]),
    "a triple that is there": (Triple(A, PRED, B), EVERYTHING, (), [()]),
    "a triple that is not": (Triple(A, PRED, C), EVERYTHING, (), []),
    "one graph": (Triple(S, PRED, O, A), EVERYTHING, (S, O), [(A, B), (A, C)]),
    "an unknown graph": (Triple(S, PRED, O, H), EVERYTHING, (S, O), []),
    "any graph": (Triple(S, PRED, O, G), EVERYTHING, (S, O, G), [(A, B, A), (A, C, A), (A, B, B)]),
    "the graph's own name": (Triple(G, PRED, O, G), EVERYTHING, (G, O), [(A, B), (A, C)]),
    "one variable everywhere": (Triple(S, S, S, S), EVERYTHING, (S,), [(C,)]),
    "FROM one": (Triple(S, PRED, O), Dataset((A,), ()), (S, O), [(A, B), (A, C)]),
    "FROM two, merged": (Triple(S, PRED, O), Dataset((A, B), ()), (S, O), [(A, B), (A, C)]),
    "FROM NAMED alone empties the default graph": (
        Triple(S, PRED, O),
        Dataset((), (A,)),
        (S, O),
        [],
    ),
    "FROM alone empties the named graphs": (
        Triple(S, PRED, O, G),
        Dataset((A,), ()),
        (S, O, G),
        [],
    ),
    "FROM NAMED": (Triple(S, PRED, O, G), Dataset((), (B,)), (S, O, G), [(A, B, B)]),
    "GRAPH of FROM NAMED": (Triple(S, PRED, O, B), Dataset((), (B,)), (S, O), [(A, B)]),
    "GRAPH of no FROM NAMED": (Triple(S, PRED, O, A), Dataset((), (B,)), (S, O), []),
}


@pytest.mark.parametrize(
    ("pattern", "dataset", "variables", "expected"), PATTERNS.values(), ids=PATTERNS
)
def test_patterns(
    table: QuadTable,
    pattern: Triple,
    dataset: Dataset,
    variables: tuple[Var, ...],
    expected: list[tuple[Term, ...]],
) -> None:
    assert bag(scan(pattern, table, dataset), *variables) == Counter(expected)


@pytest.mark.parametrize(
    ("pattern", "dataset", "removes"),
    [
        pytest.param(Triple(S, PRED, O), EVERYTHING, False, id="the default graph"),
        pytest.param(Triple(S, PRED, O, A), EVERYTHING, False, id="one graph"),
        pytest.param(Triple(S, PRED, O, G), EVERYTHING, False, id="any graph"),
        pytest.param(Triple(S, PRED, O), Dataset((A, A), ()), False, id="FROM one, twice"),
        pytest.param(Triple(S, PRED, O), Dataset((A, B), ()), True, id="FROM two, merged"),
    ],
)
def test_a_table_of_distinct_quads_is_not_made_distinct_again(
    table: QuadTable, pattern: Triple, dataset: Dataset, removes: bool
) -> None:
    distinct = QuadTable(table.frame.distinct().localCheckpoint(), Statistics(distinct=True))
    frame = scan(pattern, distinct, dataset)
    assert ("Aggregate" in optimized(frame)) is removes
    variables = tuple(sorted({place for place in pattern.positions if isinstance(place, Var)}))
    assert bag(frame, *variables) == bag(scan(pattern, table, dataset), *variables)


def test_constants_reach_the_files(table: QuadTable, spark: SparkSession, tmp_path: Path) -> None:
    table.frame.write.parquet(str(tmp_path / "quads"))
    stored = QuadTable(spark.read.parquet(str(tmp_path / "quads")))
    for pattern, condition in [
        (Triple(S, PRED, O), f"EqualTo(predicate,{PRED})"),
        (Triple(A, P, O), f"EqualTo(subject,{A})"),
    ]:
        frame = scan(pattern, stored, EVERYTHING)
        plan = executed(frame)
        pushed = plan[plan.index("PushedFilters") :].splitlines()[0]
        assert "IsNull(graph)" in pushed
        assert condition in pushed


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        pytest.param(EVERYTHING, {A, B, C}, id="those of quads"),
        pytest.param(Dataset((), (H, A, A)), {A, H}, id="FROM NAMED, also of no quads"),
        pytest.param(Dataset((A,), ()), set(), id="FROM alone"),
    ],
)
def test_named_graphs(table: QuadTable, dataset: Dataset, names: set[Term]) -> None:
    assert Counter(
        name for (name,) in evaluate(Plan("SELECT", Graphs(G), ("g",), dataset), table).collect()
    ) == Counter(names)


def test_a_table_under_other_names(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(A, PRED, B, 1)], "`s.1` string, `p``2` string, o string, graph int"
    )
    columns = {"subject": "s.1", "predicate": "p`2", "object": "o"}
    with pytest.raises(QuadsError, match="column 'graph' holds int"):
        QuadTable.of(frame, columns)
    table = QuadTable.of(frame.drop("graph"), columns, assume_distinct=True)
    assert table.statistics.distinct
    assert [tuple(quad) for quad in table.frame.collect()] == [(A, PRED, B, None)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"subject": "s"}, "no column 's'"),
        ({"graph": "g"}, "no column 'g'"),
        ({"verb": "predicate"}, "'verb' is not a position"),
    ],
)
def test_columns_that_are_not_there(
    table: QuadTable, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(QuadsError, match=message):
        QuadTable.of(table.frame, columns)

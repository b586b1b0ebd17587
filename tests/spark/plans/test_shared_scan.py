"""Quads that are read once for several patterns: which they are, and that Spark does read them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from construct_messages.query.optimizer.optimize import (
    Hints,
    PredicateStatistics,
    Statistics,
    optimize,
)
from construct_messages.rdf.terms import iri
from tests.support.queries.algebra_text import NOW, translate_query
from tests.support.spark.sessions import executed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from construct_messages.spark.quads.table import QuadTable

pytestmark = pytest.mark.slow

_KNOWN = Statistics(rows=1, predicates={iri("urn:p"): PredicateStatistics(1, 1, 1)})

# a query, and the predicates of the patterns that are read together
CASES = [
    ("two patterns", "?a <urn:p> ?b . ?b <urn:q> ?c", ["urn:p", "urn:q"]),
    ("one pattern", "?a <urn:p> ?b", []),
    ("one pattern twice", "{ ?a <urn:p> ?b } UNION { ?a <urn:p> ?b }", []),
    ("one predicate", "?a <urn:p> ?b . ?b <urn:p> ?c", ["urn:p", "urn:p"]),
    ("a star and another", "?a <urn:p> ?b ; <urn:q> ?c . ?c <urn:r> ?d", ["urn:p", "urn:q", "urn:r"]),
    ("any predicate", "?a <urn:p> ?b . ?b <urn:q> ?c . ?c ?any ?d", ["urn:p", "urn:q"]),
    ("any predicate, and one", "?a <urn:p> ?b . ?b ?any ?c", []),
    ("a path", "?a <urn:p> ?b . ?b <urn:q>* ?c . ?c <urn:r> ?d", ["urn:p", "urn:r"]),
    ("EXISTS", "?a <urn:p> ?b FILTER EXISTS { ?b <urn:q> ?c }", ["urn:p", "urn:q"]),
    ("everywhere", "{ SELECT * { ?a <urn:p> ?b } } MINUS { ?a <urn:q> ?b } OPTIONAL { ?b <urn:r> ?c . ?c <urn:r> 1 }",
     ["urn:p", "urn:q", "urn:r", "urn:r"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "wanted"), [pytest.param(*case, id=name) for name, *case in CASES]
)
def test_which_patterns_share_a_scan(pattern: str, wanted: list[str]) -> None:
    planned = translate_query(f"SELECT * {{ {pattern} }}", now=NOW)
    for table, join in ((Statistics(), "auto"), (Statistics(), "joins"), (_KNOWN, "star")):
        found = optimize(planned, table, hints=Hints(join=join)).shared_scan
        assert sorted(one.pattern.predicate for one in found) == [iri(name) for name in wanted]
    for join in ("auto", "joins"):
        assert optimize(planned, _KNOWN, hints=Hints(join=join)).shared_scan == ()


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> QuadTable:
    from construct_messages.spark.quads.table import QuadTable

    names = [iri(f"urn:{letter}") for letter in "abcdpqrg"]
    quads = [
        (s, p, o, g)
        for s in names[:4]
        for p in names[4:7]
        for o in names[:4]
        for g in (None, names[7])
    ]
    schema = "subject string, predicate string, object string, graph string"
    return QuadTable(spark.createDataFrame(quads, schema).localCheckpoint(), Statistics())


# what decides which quads a query wants, and how many they are: each subject has four objects for each predicate
WANTED = [
    ("?a <urn:p> ?b . ?b <urn:q> ?c", 32),
    ("?a <urn:p> ?b . ?b <urn:q> <urn:c>", 20),
    ("?a <urn:p> ?b . <urn:a> <urn:q> ?c", 20),
    ("?a <urn:p> ?b . ?b <urn:p> <urn:c>", 16),
    ("?a <urn:p> <urn:b> . ?a <urn:p> <urn:c>", 8),
    ("?a <urn:p> ?b . GRAPH <urn:g> { ?b <urn:q> <urn:c> }", 20),
    ("GRAPH ?g { ?a <urn:p> ?b . ?b <urn:p> <urn:c> }", 16),
    ("?a <urn:p> ?b GRAPH <urn:none> { ?b <urn:q> ?c }", 16),
    ("?a <urn:p> ?b . ?b <urn:q> ?c FILTER (?c = <urn:c>)", 20),
    ("?a <urn:p> ?b . ?b <urn:q> ?c FILTER (?b = <urn:a>)", 8),
    ("?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c FILTER (?c != <urn:c> && ?c != <urn:d>) }", 24),
    ("?a <urn:p> ?b . ?c <urn:p> ?d FILTER (?b = <urn:a> && ?d = <urn:b>)", 8),
    ("GRAPH ?g { ?a <urn:p> ?b . ?b <urn:q> ?c } FILTER (?g = <urn:none>)", 0),
    # filters sink to where all that they read is bound
    ("?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c } FILTER (?b = <urn:a>)", 20),
    ("{ SELECT ?b { ?a <urn:p> ?b } } ?b <urn:q> ?c FILTER (?c = <urn:a>)", 20),
    # what may end a job is asked of solutions only
    ("?a <urn:p> ?b . ?b <urn:q> ?c FILTER (?c + 1 > 1)", 32),
]


@pytest.mark.parametrize(("pattern", "count"), WANTED, ids=[pattern for pattern, _ in WANTED])
def test_no_other_quads_are_shuffled(table: QuadTable, pattern: str, count: int) -> None:
    from construct_messages.spark.engine import SparkEngine
    from construct_messages.spark.scans import quads_of, shared_scan

    planned = optimize(translate_query(f"SELECT * {{ {pattern} }}", now=NOW), Statistics())
    quads = quads_of(planned, table, SparkEngine(table.frame.sparkSession, 1))
    assert shared_scan(planned.shared_scan, table.frame, quads).count() == count


# some need fewer columns of the quads than others
ONCE = [
    "SELECT * { ?a <urn:p> ?b ; <urn:q> ?c . ?c <urn:r> ?d }",
    "SELECT ?a { ?a <urn:p> ?b ; <urn:q> ?c . ?c <urn:r> ?d }",
    "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?b <urn:q> ?c }",
    "SELECT * { ?a <urn:p> ?b FILTER NOT EXISTS { ?b <urn:q> <urn:a> } }",
    "SELECT * { GRAPH ?g { ?a <urn:p> ?b ; <urn:q> ?c } ?c <urn:r> ?d }",
    "SELECT ?a { ?a <urn:p> ?b FILTER (?b = <urn:a>) OPTIONAL { ?a <urn:q> ?c } MINUS { ?a <urn:r> ?d } }",
]


@pytest.mark.parametrize("query", ONCE)
def test_the_quads_are_read_and_shuffled_once(table: QuadTable, query: str) -> None:
    from construct_messages.spark.evaluation import evaluate

    frame = evaluate(optimize(translate_query(query, now=NOW), Statistics()), table)
    frame.collect()
    assert executed(frame).partition("Initial Plan")[0].count("Scan ExistingRDD") == 1


def test_columns_that_are_never_null_are_read_once(table: QuadTable) -> None:
    from pyspark.sql import functions as F

    from construct_messages.spark.evaluation import evaluate
    from construct_messages.spark.quads.table import COLUMNS, QuadTable

    never = table.frame.select(
        *(F.coalesce(name, F.lit(iri("urn:g"))).alias(name) for name in COLUMNS)
    )
    assert not any(field.nullable for field in never.schema)
    query = "SELECT * { GRAPH ?g { ?a <urn:p> ?b ; <urn:q> ?c . ?c <urn:r> ?d } }"
    frame = evaluate(
        optimize(translate_query(query, now=NOW), Statistics()), QuadTable(never, Statistics())
    )
    frame.collect()
    assert executed(frame).partition("Initial Plan")[0].count("Scan ExistingRDD") == 1


def test_patterns_that_share_no_scan_match_in_the_table(table: QuadTable) -> None:
    from construct_messages.spark.evaluation import evaluate

    planned = optimize(
        translate_query(
            "SELECT * { ?a <urn:p> <urn:b> ; <urn:q> <urn:c> . ?a ?any <urn:d> }", now=NOW
        ),
        Statistics(),
    )
    assert {scan.pattern.predicate for scan in planned.shared_scan} == {iri("urn:p"), iri("urn:q")}
    found = {(row.v_a, row.v_any) for row in evaluate(planned, table).collect()}
    assert found == {(iri(f"urn:{s}"), iri(f"urn:{p}")) for s in "abcd" for p in "pqr"}

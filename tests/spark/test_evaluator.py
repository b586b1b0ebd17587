"""The exact evaluator in Spark's workers: the values are those that it gives here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("regex")
pytest.importorskip("pyspark")

from construct_messages.errors import ValueOutOfRange
from construct_messages.query.algebra.nodes import Call, Expression, Var
from construct_messages.spark.evaluator import with_values
from construct_messages.spark.session import translated
from construct_messages.sparql.relational.expressions import PythonEvaluator
from tests.support.queries.edges import EXACT, read
from tests.support.spark.terms import TERMS, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

EVALUATOR = PythonEvaluator()


def test_terms_and_truths(spark: SparkSession) -> None:
    terms = [*TERMS, None]
    inputs = spark.createDataFrame([(term,) for term in terms], "v_x string")
    for text in ("?x + 1", 'REGEX(STR(?x), "^[a-z-[aeiou]]")', "COALESCE(?x, 1)", "?x = ?y"):
        for kind, evaluate in (("string", EVALUATOR.terms), ("boolean", EVALUATOR.truths)):
            found = with_values(inputs, partial(evaluate, read(text), ["x"]), kind).collect()
            expected = evaluate(read(text), ["x"], [(term,) for term in terms])
            assert {tuple(row) for row in found} == set(zip(terms, expected, strict=True))
            assert len(found) == len(terms)


def _each(expressions: dict[int, Expression], rows: Iterable[Sequence[Any]]) -> list[str | None]:
    return [EVALUATOR.terms(expressions[number], [], [()])[0] for (number,) in rows]


def test_edges(spark: SparkSession) -> None:
    expressions = {number: read(text) for number, text in enumerate(EXACT)}
    numbers = spark.range(len(EXACT)).selectExpr("CAST(id AS INT) AS number")
    found = with_values(numbers, partial(_each, expressions), "string").collect()
    assert {row.number: row.value for row in found} == dict(enumerate(EXACT.values()))


def test_each_row_has_a_random_value_of_its_own(spark: SparkSession) -> None:
    numbers = spark.range(5000).withColumnRenamed("id", "v_u")
    found = with_values(numbers, partial(EVALUATOR.terms, read("STRUUID()"), ["u"]), "string")
    assert len({row.value for row in found.collect()}) == 5000


def _joined(rows: Iterable[Sequence[Any]]) -> list[str]:
    return ["-".join(sorted(texts)) for _, texts in rows]


def test_columns_that_are_not_kept(spark: SparkSession) -> None:
    groups = spark.sql(
        "SELECT k, array_agg(v) AS texts FROM VALUES (1, 'b'), (2, 'c'), (1, 'a') AS t(k, v) GROUP BY k"
    )
    found = with_values(groups, _joined, "string", kept=["k"])
    assert sorted(map(tuple, found.collect())) == [(1, "a-b"), (2, "c")]


def test_what_is_refused_ends_the_job(spark: SparkSession) -> None:
    inputs = spark.createDataFrame([(typed("9" * 4000, "decimal"),)], "v_x string")
    square = partial(EVALUATOR.terms, Call("*", (Var("x"), Var("x"))), ["x"])
    with pytest.raises(ValueOutOfRange, match="too many digits"), translated():
        with_values(inputs, square, "string").collect()

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
from construct_messages.spark.evaluator import with_value
from construct_messages.spark.session import translated
from construct_messages.sparql.relational.expressions import terms, truths
from tests.support.queries.edges import EXACT, read
from tests.support.spark.terms import TERMS, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def test_terms_and_truths(spark: SparkSession) -> None:
    given = [*TERMS, None] * 2
    unbound = [term or "" for term in given]
    inputs = spark.createDataFrame(list(enumerate(unbound)), "place INT, v_x STRING")
    for text in ("?x + 1", 'REGEX(STR(?x), "^[a-z-[aeiou]]")', "COALESCE(?x, 1)", "?x = ?y"):
        for kind, evaluate in (("string", terms), ("boolean", truths)):
            function = partial(evaluate, read(text), ["x"])
            found = with_value(inputs, ["place"], function, kind).collect()
            expected = evaluate(read(text), ["x"], [(term,) for term in given])
            assert dict(map(tuple, found)) == dict(enumerate(expected))


def _each(expressions: dict[int, Expression], rows: Iterable[Sequence[Any]]) -> list[str | None]:
    return [terms(expressions[int(number)], [], [()])[0] for (number,) in rows]


def test_edges(spark: SparkSession) -> None:
    expressions = {number: read(text) for number, text in enumerate(EXACT)}
    numbers = spark.range(len(EXACT)).selectExpr("id AS place", "CAST(id AS STRING) AS number")
    found = with_value(numbers, ["place"], partial(_each, expressions), "string")
    assert {row.place: row.value for row in found.collect()} == dict(enumerate(EXACT.values()))


@pytest.mark.parametrize("inputs", [[], ["v_u"]], ids=["no inputs", "equal inputs"])
def test_each_row_has_a_random_value_of_its_own(spark: SparkSession, inputs: list[str]) -> None:
    numbers = spark.range(5000).selectExpr("id", *(f"'1' AS {name}" for name in inputs))
    strings = partial(terms, read("STRUUID()"), ["u"])
    found = with_value(numbers, ["id"], strings, "string", volatile=True)
    assert len({row.value for row in found.collect()}) == 5000


def test_what_is_refused_ends_the_job(spark: SparkSession) -> None:
    inputs = spark.createDataFrame([(typed("9" * 4000, "decimal"),)], "v_x string")
    square = partial(terms, Call("*", (Var("x"), Var("x"))), ["x"])
    with pytest.raises(ValueOutOfRange, match="too many digits"), translated():
        with_value(inputs, [], square, "string").collect()

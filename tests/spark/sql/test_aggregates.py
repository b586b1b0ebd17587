"""Aggregates over groups of hostile values, beside pyoxigraph, and sums at the edge of what their types hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from construct_messages.query.algebra.nodes import Aggregation, Var
from construct_messages.rdf.terms import Term, iri, literal, number
from construct_messages.spark.sql import expressions
from tests.support.spark.sessions import executed
from tests.support.spark.terms import typed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.slow

X = Var("x")
AGGREGATES = {
    f"{name} {'DISTINCT' if distinct else ''}".strip(): Aggregation(name, X, distinct=distinct)
    for name in ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
    for distinct in (False, True)
}
# the least and the greatest value of each in the form that pyoxigraph writes it
GROUPS: dict[str, tuple[Term | None, ...]] = {
    "integers": (number("1"), number("2"), number("-5")),
    "an error": (number("1"), None),
    "only errors": (None, None),
    "a text": (number("1"), literal("a")),
    "texts": (literal("b"), literal("a", language="en")),
    "texts of a language": (
        literal("c", language="en"),
        literal("b", language="en"),
        literal("b", language="en"),
    ),
    "an IRI": (iri("urn:a"), number("1")),
    "ill-typed": (typed("abc", "integer"), number("1")),
    "decimals": (number("0.1"), number("0.2"), number("1")),
    "thirds": (number("1"), number("1"), number("2")),
    "doubles": (number("1"), number("1.5"), typed("2.5", "double")),
    "floats": (number("1"), typed("0.5", "float")),
    "NaN": (typed("NaN", "double"), number("1")),
    "infinities": (typed("INF", "double"), typed("-INF", "double")),
    "booleans": (typed("true", "boolean"), typed("false", "boolean")),
    "derived": (number("1"), typed("2", "byte"), number("3")),
    "duplicates": (number("3"), number("3"), number("4")),
    "beyond doubles": (number("9007199254740993"), number("9007199254740992")),
}
# which of several is free
FREE = ("SAMPLE", "SAMPLE DISTINCT", "GROUP_CONCAT", "GROUP_CONCAT DISTINCT")


def columns(names: Iterable[str]) -> list[Column]:
    from pyspark.sql import functions as F

    return [F.expr(expressions.aggregate(AGGREGATES[name])).alias(name) for name in names]


def aggregated(frame: DataFrame) -> list[dict[str, str | None]]:
    return [
        row.asDict()
        for row in frame.groupBy("number").agg(*columns(AGGREGATES)).orderBy("number").collect()
    ]


def groups(spark: SparkSession) -> DataFrame:
    values = [(number, term) for number, terms in enumerate(GROUPS.values()) for term in terms]
    return spark.createDataFrame(values, "number INT, v_x STRING").repartition(3)


def by_pyoxigraph(name: str, terms: tuple[Term | None, ...]) -> str | None:
    function, _, distinct = name.partition(" ")
    values = " ".join(term or "UNDEF" for term in terms)
    results = ox.Store().query(
        f"SELECT ({function}({distinct} ?x) AS ?r) {{ VALUES ?x {{ {values} }} }}"
    )
    assert isinstance(results, ox.QuerySolutions)
    answer = next(results)["r"]
    return None if answer is None else str(answer)


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> list[dict[str, str | None]]:
    return aggregated(groups(spark))


def test_aggregates_are_pyoxigraphs(answers: list[dict[str, str | None]]) -> None:
    for name in AGGREGATES:
        if name not in FREE:
            got = {group: answer[name] for group, answer in zip(GROUPS, answers, strict=True)}
            assert got == {group: by_pyoxigraph(name, terms) for group, terms in GROUPS.items()}, (
                name
            )


def test_sample_is_a_value_of_the_group(answers: list[dict[str, str | None]]) -> None:
    for terms, answer in zip(GROUPS.values(), answers, strict=True):
        assert answer["SAMPLE"] in (set(terms) - {None} or {None})


def test_group_concat_takes_strings_in_order(answers: list[dict[str, str | None]]) -> None:
    got = {group: answer["GROUP_CONCAT"] for group, answer in zip(GROUPS, answers, strict=True)}
    assert {group: text for group, text in got.items() if text is not None} == {
        "texts": '"a b"',
        "texts of a language": '"b b c"',
    }
    distinct = dict(
        zip(GROUPS, (answer["GROUP_CONCAT DISTINCT"] for answer in answers), strict=True)
    )
    assert distinct["texts of a language"] == '"b c"'


def test_aggregates_are_the_same_under_other_settings(
    answers: list[dict[str, str | None]], other: SparkSession
) -> None:
    certain = [
        {name: answer[name] for name in AGGREGATES if "SAMPLE" not in name} for answer in answers
    ]
    again = aggregated(groups(other))
    assert [
        {name: answer[name] for name in AGGREGATES if "SAMPLE" not in name} for answer in again
    ] == certain


def one(spark: SparkSession, aggregation: Aggregation, terms: list[Term]) -> str | None:
    from pyspark.sql import functions as F

    frame = spark.createDataFrame([(term,) for term in terms], "v_x STRING")
    [row] = frame.agg(F.expr(expressions.aggregate(aggregation)).alias("r")).collect()
    result: str | None = row.r
    return result


def test_aggregates_of_nothing(other: SparkSession) -> None:
    [row] = other.createDataFrame([], "v_x STRING").agg(*columns(AGGREGATES)).collect()
    got = row.asDict()
    zero = str(number("0"))
    assert {name.split()[0]: value for name, value in got.items()} == {
        **dict.fromkeys(("COUNT", "SUM", "AVG"), zero),
        **dict.fromkeys(("MIN", "MAX", "SAMPLE"), None),
        "GROUP_CONCAT": '""',
    }


def test_count_of_solutions_and_separator(spark: SparkSession) -> None:
    assert one(spark, Aggregation("COUNT", None), [literal("a"), literal("a")]) == number("2")
    joined = one(
        spark, Aggregation("GROUP_CONCAT", X, separator="'\\\n"), [literal("a"), literal("b")]
    )
    assert joined == literal("a'\\\nb")


def test_distinct_means_terms(spark: SparkSession) -> None:
    ones = [number("1"), number("1"), number("1.0")]
    assert one(spark, Aggregation("SUM", X, distinct=True), ones) == typed("2", "decimal")


def test_equal_values_always_give_the_same_term(spark: SparkSession) -> None:
    ones = [number("1"), number("1.0"), number("1e0")]
    answers = []
    for terms in (ones, ones[::-1]):
        frame = spark.createDataFrame([(term,) for term in terms], "v_x STRING")
        answers += frame.agg(*columns(["MIN", "MAX"])).collect()
    assert answers[0] == answers[1]


NINES = "9" * 38
TOO_LARGE = {
    "integers": ("SUM", [NINES, "1"]),
    "decimals": ("SUM", ["9" * 19 + ".0", "9" * 19 + ".0"]),
    "many decimals": ("SUM", ["9" * 19 + ".5"] * 12),
    "mixed": ("SUM", [NINES, "0.5"]),
    "mean": ("AVG", [NINES, "0"]),
    "a value": ("SUM", ["9" * 39]),
}


@pytest.mark.parametrize("case", TOO_LARGE.values(), ids=TOO_LARGE)
def test_sums_that_do_not_fit_fail(spark: SparkSession, case: tuple[str, list[str]]) -> None:
    name, values = case
    with pytest.raises(Exception, match=r"ValueOutOfRange: .* does not fit DECIMAL"):
        one(spark, Aggregation(name, X), [number(value) for value in values])


def test_sums_at_the_edge(spark: SparkSession) -> None:
    assert one(spark, Aggregation("SUM", X), [number(NINES[:-1] + "8"), number("1")]) == number(
        NINES
    )


def test_sums_are_made_in_part_before_the_shuffle(spark: SparkSession) -> None:
    plan = executed(groups(spark).groupBy("number").agg(*columns(["SUM", "AVG", "COUNT"])))
    assert "partial_sum" in plan or "partial_try_sum" in plan
    assert "collect" not in plan

"""Casts of hostile terms to each type, beside pyoxigraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from construct_messages.query.algebra.nodes import Call, Var
from construct_messages.rdf.terms import XSD, Term, literal, literal_parts
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.casts import CASTS
from tests.support.spark.terms import TERMS, by_pyoxigraph, by_spark, same, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

X = Var("x")
STRINGS = tuple(
    map(
        literal,
        (
            "+01",
            "1.50",
            "1e0",
            " 1 ",
            "true",
            "TRUE",
            "INF",
            "NaN",
            "0x1p3",
            "1d",
            '1"x',
            "2000-01-01T00:00:00Z",
        ),
    )
)
# a lexical form in the wrong case, and a value beyond its type
LAX = (typed("inf", "double"), typed("300", "byte"))
LARGE = typed("1.5E20", "double")
SOURCES = (
    *(term for term in TERMS if term != LARGE),
    *STRINGS,
    typed("1.9", "decimal"),
    typed("-1.9e0", "double"),
    typed("300", "byte"),
)


def name_of(cast: str) -> str:
    return cast.rpartition("#")[2].rstrip(">")


def casts(spark: SparkSession) -> list[dict[str, str | None]]:
    sql = {name_of(name): expressions.term(Call(name, (X,))) for name in sorted(CASTS)}
    return by_spark(spark, sql, [(term,) for term in SOURCES])


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> list[dict[str, str | None]]:
    return casts(spark)


def right(name: str, term: Term, expected: str | None) -> str | None:
    """What pyoxigraph answers, but for what it reads more laxly or writes anew."""
    if term in LAX:
        return str(literal(literal_parts(term)[0])) if name == "string" else None
    if name != "date" and term.endswith(("#dateTime>", "#time>")) and expected is not None:
        return str(
            literal(
                literal_parts(term)[0], datatype=XSD + "dateTime" if name == "dateTime" else None
            )
        )
    return {
        ("string", literal("\uffff")): str(literal("\uffff")),
        # the digits that pyoxigraph has beyond the shortest form are not those of the float
        ("decimal", typed("0.1", "float")): typed("0.10000000149011612", "decimal"),
    }.get((name, term), expected)


def test_casts_are_pyoxigraphs(answers: list[dict[str, str | None]]) -> None:
    names = [name_of(name) for name in sorted(CASTS)]
    oracle = by_pyoxigraph(
        {name: f"xsd:{name}(?x)" for name in names}, [(term,) for term in SOURCES]
    )
    wrong = [
        f"xsd:{name}({term}): {got[name]}, not {expected[name]}"
        for term, got, expected in zip(SOURCES, answers, oracle, strict=True)
        for name in names
        if not same(got[name], right(name, term, expected[name]))
    ]
    assert not wrong, "\n".join(wrong)


def test_casts_are_the_same_under_other_settings(
    answers: list[dict[str, str | None]], other: SparkSession
) -> None:
    assert casts(other) == answers


@pytest.mark.parametrize("name", ["integer", "decimal"])
def test_what_does_not_fit_fails(spark: SparkSession, name: str) -> None:
    sql = expressions.term(Call(f"<{XSD}{name}>", (X,)))
    with pytest.raises(Exception, match=r"ValueOutOfRange: 1"):
        by_spark(spark, {"r": sql}, [(LARGE,)])

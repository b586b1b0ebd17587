"""Value keys: terms that are equal share one, terms that share one are nearly all equal, and none ends a job."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest

from construct_messages.query.algebra.nodes import Call, Constant, Var
from construct_messages.rdf.terms import Term, iri, literal
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.comparisons import key
from construct_messages.spark.sql.values import Scalar
from tests.support.spark.terms import BLANK, TERMS, by_spark, date, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

pytest.importorskip("pyspark")

X, Y = Var("x"), Var("y")
HOLDS = {name: expressions.condition(Call(name, (X, Y))) for name in ("=", "SAMEKEY")}
KEY = {"key": key(Scalar("v_x"))}
MORE = (
    *(typed(form, "integer") for form in ("16777216", "16777218", "-0", "123456789", "123456790")),
    *(typed(form, "decimal") for form in ("16777217.000000001", "0.10", "-0.0", "1.00")),
    *(
        typed(form, "float")
        for form in ("16777218", "16777217.000000001", "-0", "1e39", "1e40", "INF")
    ),
    *(typed(form, "double") for form in ("16777217.000000001", "0", "NAN", "1.0E0")),
    *(
        typed("NaN", "integer"),
        typed("300", "byte"),
        literal("a>"),
        literal("1", datatype="urn:x#integer"),
    ),
    *(
        typed("2000-01-01T00:00:00Z", "dateTimeStamp"),
        typed("P1D", "duration"),
        typed("PT24H", "duration"),
    ),
    *(
        literal("a", language="en-GB"),
        Term('"a"@en--ltr'),
        BLANK,
        Term("<<( <urn:s> <urn:p> <urn:o> )>>"),
    ),
)


def _near_ties(random: Random) -> list[Term]:
    """Numbers that rounding to a float or double takes up or down, according to their type and last digits."""
    terms = []
    for _ in range(40):
        tie = random.getrandbits(24) * 2 + 1 + 2**25
        for digits in ("", ".0", ".000000001", ".0000000000000001"):
            form = (
                f"{tie}{digits}"
                if random.random() < 0.7
                else f"{tie - 1}.{'9' * random.choice((3, 9, 17))}"
            )
            terms += [typed(form, name) for name in ("decimal", "float", "double")]
        terms += [
            typed(str(tie + more), name) for more in (-1, 0, 1) for name in ("integer", "float")
        ]
    return terms


def test_equal_terms_share_a_key(spark: SparkSession) -> None:
    """Issue 13, 27: what `=` holds between meets; what meets beside that are numbers of one float."""
    everything = (*TERMS, *MORE)
    pairs = list(product(everything, everything))
    held = by_spark(spark, HOLDS, pairs)
    apart = [pair for pair, one in zip(pairs, held, strict=True) if one["="] and not one["SAMEKEY"]]
    assert apart == []
    keys = dict(
        zip(
            everything,
            (one["key"] for one in by_spark(spark, KEY, [(t,) for t in everything])),
            strict=True,
        )
    )
    equal = sum(bool(one["="]) for one in held)
    assert equal > len(everything)
    for (x, y), one in zip(pairs, held, strict=True):
        if one["SAMEKEY"] and not one["="]:
            assert keys[x] == keys[y], (x, y)
            assert (keys[x] or "").startswith("n"), (x, y, keys[x])


def test_numbers_near_ties_share_a_key(spark: SparkSession) -> None:
    """Equality of numbers is by the type of both, and no equivalence: a key has to bridge that."""
    random = Random(27)
    terms = _near_ties(random)
    pairs = [
        (x, y) for index, x in enumerate(terms) for y in terms[max(0, index - 18) : index + 18]
    ]
    held = by_spark(spark, HOLDS, pairs)
    assert [
        pair for pair, one in zip(pairs, held, strict=True) if one["="] and not one["SAMEKEY"]
    ] == []
    assert sum(bool(one["="]) for one in held) > 2 * len(terms)


@pytest.mark.parametrize(
    ("terms", "number"),
    [
        pytest.param(
            [
                typed("1", "integer"),
                typed("01", "int"),
                typed("1.0", "decimal"),
                typed("1e0", "float"),
            ],
            1,
        ),
        pytest.param(
            [
                typed("0", "integer"),
                typed("-0.0", "double"),
                typed("-0", "float"),
                typed("+0", "byte"),
            ],
            1,
        ),
        pytest.param([typed("1", "boolean"), typed("true", "boolean")], 1),
        pytest.param(
            [
                date("2000-01-01T00:00:00Z"),
                date("2000-01-01T02:00:00+02:00"),
                date("1999-12-31T24:00:00Z"),
            ],
            1,
        ),
        pytest.param(
            [date("2000-01-01T00:00:00"), date("2000-01-01T00:00:00Z"), date("2000-01-01")], 3
        ),
        pytest.param(
            [literal("a"), literal("a", language="en"), literal("a", language="fr"), iri("a:a")], 4
        ),
        pytest.param(
            [typed("many", "integer"), typed("lots", "integer"), typed("2000-02-30", "date")], 3
        ),
        pytest.param([typed("NaN", "double"), typed("NaN", "float")], 0),
        pytest.param([None], 0),
    ],
    ids=[
        "numbers",
        "zeros",
        "booleans",
        "points",
        "zones",
        "strings",
        "ill-typed",
        "nan",
        "unbound",
    ],
)
def test_keys(
    spark: SparkSession, other: SparkSession, terms: list[Term | None], number: int
) -> None:
    for session in (spark, other):
        keys = [one["key"] for one in by_spark(session, KEY, [(term,) for term in terms])]
        assert len({key for key in keys if key is not None}) == number, keys


def test_keys_are_compared_where_spark_finds_it() -> None:
    """An equality of two expressions, of one side each, however long their SQL is."""
    left, right = (key(Scalar(f"v_{name}")) for name in "xy")
    assert HOLDS["SAMEKEY"] == f"({left} = {right})"


def test_no_key_ends_a_job(spark: SparkSession) -> None:
    """Points that cannot be told apart meet, and are refused where they are compared."""
    far = [
        date("300000-01-01T00:00:00Z"),
        date("300000-01-01T01:00:00+01:00"),
        date("-300000-01-01T00:00:00"),
    ]
    keys = [
        one["key"]
        for one in by_spark(spark, KEY, [(term,) for term in (*far, typed("9" * 400, "integer"))])
    ]
    assert keys[0] == keys[1]
    assert None not in keys


@pytest.mark.parametrize(
    ("left", "right", "sql"),
    [
        pytest.param(
            Call("STRLEN", (X,)), Call("STRLEN", (Y,)), None, id="what Spark compares itself"
        ),
        pytest.param(
            Call("+", (X, Constant(typed("1", "integer")))), Y, "true", id="what may end the job"
        ),
        pytest.param(Call("IRI", (X,)), Y, None, id="what gives a term"),
    ],
)
def test_keys_of_values_that_are_computed(left: Call, right: Call | Var, sql: str | None) -> None:
    condition = expressions.condition(Call("SAMEKEY", (left, right)))
    assert condition == sql if sql else "= " in condition

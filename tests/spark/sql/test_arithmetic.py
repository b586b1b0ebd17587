"""Arithmetic over pairs of numbers, beside pyoxigraph, beyond its range, and under other settings of the session."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal, localcontext
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.query.algebra.nodes import Call, Constant, Var
from construct_messages.rdf.terms import Term, iri, literal, number
from construct_messages.spark.sql import expressions
from tests.support.spark.sessions import new_session
from tests.support.spark.terms import NO_NUMBERS, NUMBERS, by_pyoxigraph, by_spark, same, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

X, Y = Var("x"), Var("y")
OPERATORS = ("+", "-", "*", "/")
# products of two large ones are beyond what a decimal holds
LARGE = typed("9007199254740992.0", "decimal")
OPERANDS = (
    *(term for term in NUMBERS if term != LARGE),
    NO_NUMBERS[0],
    typed("300", "byte"),
    literal("1"),
    typed("true", "boolean"),
    iri("urn:a"),
)
# by pyoxigraph, any integer is a byte
LAX = typed("300", "byte")


def square(spark: SparkSession, step: int = 1) -> list[dict[str, str | None]]:
    """Returns the results of all operators for each pair of operands, or for one pair in `step`."""
    sql = {operator: expressions.term(Call(operator, (X, Y))) for operator in OPERATORS}
    sql |= {name: expressions.term(Call(name, (X,))) for name in ("u+", "u-")}
    return by_spark(spark, sql, list(product(OPERANDS, OPERANDS))[::step])


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> list[dict[str, str | None]]:
    return square(spark)


# where pyoxigraph is not followed: what is right instead
DIFFERENCES = {
    "a product beyond 64 bits is an integer as any other": {
        ("*", "9007199254740993", "9007199254740993"): typed(
            "81129638414606699710187514626049", "integer"
        ),
        ("*", "9007199254740993", "16777217"): typed("151115736459027918356481", "integer"),
        ("*", "16777217", "9007199254740993"): typed("151115736459027918356481", "integer"),
    },
    "zero may be divided by a decimal": {
        ("/", "0", divisor): typed("0", "decimal") for divisor in ("1.5", ".5", "-0.1", "0.3333")
    },
}


def test_square_is_pyoxigraphs(answers: list[dict[str, str | None]]) -> None:
    pairs = list(product(OPERANDS, OPERANDS))
    texts = {operator: f"?x {operator} ?y" for operator in OPERATORS} | {"u+": "+?x", "u-": "-?x"}
    oracle = by_pyoxigraph(texts, pairs)
    exceptions = {
        (operator, number(x), number(y)): term
        for cases in DIFFERENCES.values()
        for (operator, x, y), term in cases.items()
    }

    def right(operator: str, x: Term, y: Term, expected: str | None) -> str | None:
        if LAX in ((x,) if operator[0] == "u" else (x, y)):
            return None
        return exceptions.get((operator, x, y), expected)

    wrong = [
        f"{x} {operator} {y}: {got[operator]}, not {expected[operator]}"
        for (x, y), got, expected in zip(pairs, answers, oracle, strict=True)
        for operator in texts
        if not same(got[operator], right(operator, x, y, expected[operator]))
    ]
    assert not wrong, "\n".join(wrong)


def test_square_is_the_same_under_other_settings(
    answers: list[dict[str, str | None]], other: SparkSession
) -> None:
    assert square(other, 5) == answers[::5]


DECIMALS = st.decimals(-(10**8), 10**8, places=9) | st.sampled_from(
    [
        Decimal(text)
        for text in ("0", "1", "-1", "0.5", "3", "7", "1e-18", "-0.000000000000000007", "99999999")
    ]
)
PAIRS = st.lists(st.tuples(DECIMALS, DECIMALS), min_size=30, max_size=60)


@given(PAIRS)
@settings(max_examples=1)
def test_decimals_are_exact(spark: SparkSession, pairs: list[tuple[Decimal, Decimal]]) -> None:
    terms = [(typed(f"{x:f}", "decimal"), typed(f"{y:f}", "decimal")) for x, y in pairs]
    # what does not fit has a test of its own
    fitting = [
        (pair, term)
        for pair, term in zip(pairs, terms, strict=True)
        if not pair[1] or abs(pair[0] / pair[1]) < 10**18
    ]
    sql = {operator: expressions.term(Call(operator, (X, Y))) for operator in OPERATORS}
    answers = by_spark(spark, sql, [term for _, term in fitting])
    for ((x, y), _), got in zip(fitting, answers, strict=True):
        with localcontext(prec=80):
            exact = {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else None}
            for operator, value in exact.items():
                assert got[operator] == (None if value is None else decimal(value)), (
                    x,
                    operator,
                    y,
                )


def decimal(value: Decimal) -> str:
    """The canonical term of a value cut at 18 digits behind the point."""
    text = f"{value.quantize(Decimal(1).scaleb(-18), ROUND_DOWN):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return typed("0" if text == "-0" else text, "decimal")


BEYOND = {
    "integer": ("+", "9" * 38, "1"),
    "product": ("*", "9" * 20, "9" * 20),
    "operand": ("+", "9" * 39, "1"),
    "decimal": ("+", "9" * 19 + ".5", "0.5"),
    "decimal operand": ("+", "1" * 20 + ".5", "1"),
    "digits behind the point": ("+", "0." + "1" * 19, "1"),
    "quotient": ("/", "1000000000000000000", "0.001"),
    "quotient beyond BIGINT": ("/", "9223372036854775807", "0.000000000000000001"),
}


@pytest.mark.parametrize("case", BEYOND.values(), ids=BEYOND)
def test_what_does_not_fit_fails(spark: SparkSession, case: tuple[str, str, str]) -> None:
    operator, x, y = case
    sql = expressions.term(Call(operator, (X, Constant(number(y)))))
    with pytest.raises(Exception, match=r"ValueOutOfRange: .* does not fit DECIMAL"):
        by_spark(spark, {"r": sql}, [(number(x),)])


WITHIN = {
    "integers": ("+", "9" * 37, "1", "1" + "0" * 37),
    "quotient": ("/", "1000000000000000000", "1000000000000000", "1000"),
    "large divisor": ("/", "1", "9999999999999", "0.000000000000100000"),
    "large divisor with digits behind the point": (
        "/",
        "1",
        "1000000000000.5",
        "0.000000000000999999",
    ),
    "trailing zeros": ("*", "0.100", "10.0", "1"),
}


@pytest.mark.parametrize("case", WITHIN.values(), ids=WITHIN)
def test_what_fits_is_exact(spark: SparkSession, case: tuple[str, str, str, str]) -> None:
    operator, x, y, expected = case
    [answer] = by_spark(
        spark, {"r": expressions.term(Call(operator, (X, Y)))}, [(number(x), number(y))]
    )
    kind = "integer" if operator == "+" else "decimal"
    assert answer["r"] == (
        typed(expected, kind) if kind == "integer" else decimal(Decimal(expected))
    )


SUMS = "FILTER(?a + ?b > ?c && ?b * ?c > ?d && ?c - ?d <= ?a && ?a / 2 < ?b)"
BOUND = "BIND(?a + ?b AS ?x) BIND(?b * ?c AS ?y) BIND(?c - ?d AS ?z) BIND(?a / 2 AS ?w) FILTER(?x > ?z && ?y > ?w)"
MANY = f"FILTER({' && '.join(f'?{name} > -{n}' for n in range(4) for name in 'abcd')})"


@pytest.mark.parametrize("filters", [SUMS, BOUND, MANY], ids=["sums", "bound", "many"])
def test_expressions_are_short_enough_for_java(spark: SparkSession, filters: str) -> None:
    """Issue 13, 29: no method of a query's code exceeds 64 KB; where one does, this session raises Java's error."""
    from construct_messages.spark.construct import construct_messages

    session = new_session(spark, {"spark.sql.codegen.fallback": "false"})
    quads = [(f"<urn:s{n}>", f"<urn:{name}>", number(str(n))) for n in range(5) for name in "abcd"]
    frame = session.createDataFrame(
        quads, "subject string, predicate string, object string"
    ).coalesce(1)
    where = f"?s <urn:a> ?a ; <urn:b> ?b ; <urn:c> ?c ; <urn:d> ?d {filters}"
    assert construct_messages(
        f"CONSTRUCT {{ ?s <urn:p> ?a }} WHERE {{ {where} }}", frame
    ).frame.collect()

"""The forms of expressions that do not simply take their arguments' values, and what is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.nodes import Call, Constant, Exists, Expression, Unit, Var
from construct_messages.rdf.terms import Term, boolean, iri, literal, number
from construct_messages.spark.sql import expressions
from tests.support.spark.terms import by_pyoxigraph, by_spark, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

X, Y = Var("x"), Var("y")
TRUE, FALSE, ERROR = boolean("true"), boolean("false"), iri("urn:no-truth")
LOGICAL = (TRUE, FALSE, ERROR, literal("a"), literal(""), number("0"), typed("NaN", "double"))
PAIRS = [(x, y) for x in LOGICAL for y in LOGICAL]


def c(text: str) -> Constant:
    return Constant(number(text) if text[0].isdigit() else boolean(text))


DIVIDED_BY_ZERO = Call("/", (c("1"), c("0")))
FORMS: dict[str, tuple[str, Expression]] = {
    "and": ("?x && ?y", Call("&&", (X, Y))),
    "or": ("?x || ?y", Call("||", (X, Y))),
    "not": ("!?x", Call("!", (X,))),
    "not equal": ("?x != ?y", Call("!=", (X, Y))),
    "if": ("IF(?x, ?y, 2)", Call("IF", (X, Y, c("2")))),
    "if of one type": (
        "IF(?x, STRLEN(STR(?y)), 7)",
        Call("IF", (X, Call("STRLEN", (Call("STR", (Y,)),)), c("7"))),
    ),
    "if in one branch": ("IF(true, ?x, 1/0)", Call("IF", (c("true"), X, DIVIDED_BY_ZERO))),
    "coalesce": (
        "COALESCE(1/0, ?x && ?y, ?y)",
        Call("COALESCE", (DIVIDED_BY_ZERO, Call("&&", (X, Y)), Y)),
    ),
    "coalesce of errors": ("COALESCE(1/0)", Call("COALESCE", (DIVIDED_BY_ZERO,))),
    "in": ("?x IN (?y, 0)", Call("IN", (X, Y, c("0")))),
    "in with an error": ("?x IN (1/0, ?y)", Call("IN", (X, DIVIDED_BY_ZERO, Y))),
    "constant in": ("0 IN (?x, ?y)", Call("IN", (c("0"), X, Y))),
    "bound": ("BOUND(?x)", Call("BOUND", (X,))),
    "same term": ("SAMETERM(?x, ?y)", Call("SAMETERM", (X, Y))),
    "nested": (
        "(STRLEN(STR(?x)) + 1) * 2 > STRLEN(STR(?y))",
        Call(
            ">",
            (
                Call("*", (Call("+", (Call("STRLEN", (Call("STR", (X,)),)), c("1"))), c("2"))),
                Call("STRLEN", (Call("STR", (Y,)),)),
            ),
        ),
    ),
    "a number of unknown type": (
        "(?x + ?y) * 2 + ?x",
        Call("+", (Call("*", (Call("+", (X, Y)), c("2"))), X)),
    ),
    "constants": ("1 + 2.5", Call("+", (c("1"), c("2.5")))),
    "promotion of constants": (
        "1e0 * 2 + 0.5",
        Call("+", (Call("*", (c("1e0"), c("2"))), c("0.5"))),
    ),
    "a constant as it is written": (
        "COALESCE(1/0, 01)",
        Call("COALESCE", (DIVIDED_BY_ZERO, Constant(typed("1", "integer")))),
    ),
}


# to compile them all takes longer than all the rest: the session that compiles gets these
COMPILED = ("and", "or", "not", "if of one type", "nested", "constants")


@pytest.mark.parametrize("session", ["spark", "other"])
def test_forms_are_pyoxigraphs(session: str, request: pytest.FixtureRequest) -> None:
    spark: SparkSession = request.getfixturevalue(session)
    forms = {name: form for name, form in FORMS.items() if session == "other" or name in COMPILED}
    sql = {name: expressions.term(expression) for name, (_, expression) in forms.items()}
    got = by_spark(spark, sql, PAIRS)
    expected = by_pyoxigraph({name: text for name, (text, _) in forms.items()}, PAIRS)
    wrong = [
        f"{name} of {pair}: {answer[name]}, not {right[name]}"
        for pair, answer, right in zip(PAIRS, got, expected, strict=True)
        for name in forms
        if answer[name] != right[name]
    ]
    assert not wrong, "\n".join(wrong)


def test_unbound_is_an_error_but_for_those_that_take_it(spark: SparkSession) -> None:
    one: Expression = c("1")
    takes: dict[str, tuple[Expression, Term | None]] = {
        "bound": (Call("BOUND", (X,)), FALSE),
        "coalesce": (Call("COALESCE", (X, one)), number("1")),
        "or": (Call("||", (X, c("true"))), TRUE),
        "and": (Call("&&", (X, c("false"))), FALSE),
        "in": (Call("IN", (one, X, one)), TRUE),
        "in nothing": (Call("IN", (X,)), FALSE),
        "if": (Call("IF", (X, one, one)), None),
        "same term": (Call("SAMETERM", (X, X)), None),
        "equal": (Call("=", (X, one)), None),
        "equal to an IRI": (Call("!=", (X, Constant(iri("urn:a")))), None),
        "equal to a text": (Call("!=", (X, Constant(literal("a")))), None),
        "equal to a variable": (Call("=", (X, Y)), None),
        "less": (Call("<", (X, one)), None),
        "plus": (Call("+", (X, one)), None),
        "not": (Call("!", (X,)), None),
    }
    sql = {name: expressions.term(expression) for name, (expression, _) in takes.items()}
    [answer] = by_spark(spark, sql, [(None, iri("urn:a"))])
    assert answer == {name: expected for name, (_, expected) in takes.items()}


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(UnsupportedQuery) as caught:
        expressions.term(Call("LANGDIR", (X,)))
    assert caught.value.fragment == "LANGDIR"


def test_exists_is_refused() -> None:
    with pytest.raises(UnsupportedQuery):
        expressions.condition(Call("!", (Exists(Unit()),)))

"""The exact evaluator: beside pyoxigraph where that is exact, and with the specifications' answers where it is not."""

from __future__ import annotations

from itertools import product

import pyoxigraph as ox
import pytest

pytest.importorskip("regex")

from construct_messages.errors import UnsupportedQuery, ValueOutOfRange
from construct_messages.query.algebra.nodes import Call, Var
from construct_messages.rdf.terms import UNBOUND, Term, from_pyoxigraph, iri, literal
from construct_messages.sparql.relational.expressions import PythonEvaluator
from tests.support.queries.edges import EXACT, FALSE, TRUE, XSD_PREFIX, read
from tests.support.spark.function_cases import EXPRESSIONS
from tests.support.spark.terms import BOOLEANS, OTHERS, typed

EVALUATOR = PythonEvaluator()
STRINGS = (
    *map(literal, ("", "abc", 'ab"c\\d\n\té', "\\n", "a😀b😀", "straße ŉ ﬁ", "İSTANBUL ΣΑΣ")),
    *(literal(text, language=tag) for text, tag in (("abc", "en"), ("b", "en-gb"), ("", "de"))),
)


def by_pyoxigraph(text: str, rows: list[tuple[Term, ...]]) -> list[Term | None]:
    values = "".join(
        f"({number} {' '.join(term or 'UNDEF' for term in row)})" for number, row in enumerate(rows)
    )
    names = " ".join(f"?{name}" for name in "xyz"[: len(rows[0])])
    query = (
        f"{XSD_PREFIX}SELECT ({text} AS ?r) {{ VALUES (?n {names}) {{ {values} }} }} ORDER BY ?n"
    )
    answers = ox.Store().query(query)
    assert isinstance(answers, ox.QuerySolutions)
    return [None if (found := one["r"]) is None else from_pyoxigraph(found) for one in answers]


def ours(text: str, rows: list[tuple[Term, ...]]) -> list[str | None]:
    names = list("xyz"[: len(rows[0])])
    return EVALUATOR.terms(read(text), names, [[term or None for term in row] for row in rows])


@pytest.mark.parametrize(
    "text", [one.strip() for one in EXPRESSIONS if "RAND" not in one and "REGEX" not in one]
)
def test_functions_are_pyoxigraphs(text: str) -> None:
    rows = [(term,) for term in (*STRINGS, iri("urn:a"), typed("12", "integer"), UNBOUND)]
    assert ours(text, rows) == by_pyoxigraph(text, rows)


@pytest.mark.parametrize("operator", ["=", "!=", "&&", "||"])
def test_operators_are_pyoxigraphs(operator: str) -> None:
    numbers = tuple(typed(n, "integer") for n in ("0", "1", "-5"))
    # pyoxigraph takes an ill-typed boolean to have no truth, which section 17.2.2 says is false
    terms = (*(OTHERS if operator in "!=" else OTHERS[:6]), *BOOLEANS[:4], *numbers, UNBOUND)
    rows = list(product(terms, repeat=2))
    assert ours(f"?x {operator} ?y", rows) == by_pyoxigraph(f"?x {operator} ?y", rows)


@pytest.mark.parametrize("text", EXACT)
def test_what_the_specifications_say(text: str) -> None:
    assert EVALUATOR.terms(read(text), [], [[]]) == [EXACT[text]]


def test_too_many_digits_are_refused() -> None:
    huge = typed("9" * 4000, "decimal")
    product = Call("*", (Var("x"), Var("x")))
    with pytest.raises(ValueOutOfRange):
        EVALUATOR.terms(product, ["x"], [[huge]])


@pytest.mark.parametrize("text", ['REGEX(?x, "(?=a)")', 'REGEX(?x, "\\\\bfoo")'])
def test_patterns_of_other_engines_are_refused_before(text: str) -> None:
    with pytest.raises(UnsupportedQuery):
        EVALUATOR.check(read(text))


def test_aggregates() -> None:
    one, half, many = typed("1", "integer"), typed("0.5", "decimal"), typed("10", "integer")
    assert EVALUATOR.aggregate("SUM", [(one, 3), (half, 2)]) == typed("4", "decimal")
    assert EVALUATOR.aggregate("AVG", [(one, 1), (many, 1)]) == typed("5.5", "decimal")
    assert EVALUATOR.aggregate("MAX", [(many, 1), (one, 1)]) == many
    assert EVALUATOR.aggregate("SUM", []) == typed("0", "integer")
    assert EVALUATOR.aggregate("MIN", []) is None
    assert EVALUATOR.aggregate("SUM", [(one, 1), (literal("a"), 1)]) is None
    assert EVALUATOR.aggregate("GROUP_CONCAT", [(literal("b"), 2), (literal("a"), 1)], "-") == (
        literal("a-b-b")
    )


def test_order() -> None:
    ordered = [
        Term("_:b"), iri("urn:a"), typed("-1", "integer"), typed("0.5", "decimal"), typed("9", "integer"),
        typed("10", "double"), literal("B"), literal("a"), literal("a", language="en"), FALSE, TRUE,
    ]  # fmt: skip
    ranks = EVALUATOR.ranks(ordered[::-1])
    assert ranks == sorted(ranks, reverse=True)
    assert EVALUATOR.ranks([typed("1", "integer"), typed("1.0", "decimal")]) == [0, 0]

"""Native SQL on DuckDB beside the exact evaluator, over hostile terms: what it claims to decide must be right."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("duckdb")

import duckdb
import pyarrow as pa

from construct_messages.query.algebra.nodes import Call, Constant, Expression, Var
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal
from construct_messages.sparql.relational import native
from construct_messages.sparql.relational.dialects import DuckDb
from construct_messages.sparql.relational.expressions import PythonEvaluator
from tests.support.spark.terms import BLANK, TERMS, typed

X, Y = Var("x"), Var("y")
MORE = (
    *(typed(form, "decimal") for form in ("123456789012345678.123456789", "0.1234567891", "-0")),
    *(typed(form, "integer") for form in ("999999999999999999", "1000000000000000000", "-0", "+7")),
    *(typed(form, "double") for form in ("1e22", "123456789.125", "0.1", "1E-7")),
    *(typed(form, "date") for form in ("2023-02-29", "2024-02-29", "2023-04-31", "2023-04-30")),
    *(typed(f"{day}T08:00:00Z", "dateTime") for day in ("2023-02-29", "2024-02-29", "2023-06-30")),
    *(literal("x", language="en-gb"), literal("", language="de"), literal('a"b\\"@en')),
    *(literal(text) for text in ("http://ex.org/x", "a\u0000b", "é", "Z", " !", "a\\b", "@en")),
    *(Term('"a"@en--ltr'), Term('<<( <urn:a> <urn:p> "x" )>>'), iri(XSD + "string"), BLANK),
    *(iri("http://ex.org/x"), literal("x", datatype="urn:t>".rstrip(">"))),
)
EVERY: tuple[Term | None, ...] = (*dict.fromkeys((*TERMS, *MORE)), None)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
TRUE, FALSE = typed("true", "boolean"), typed("false", "boolean")


def call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments)


def text(value: str) -> Constant:
    return Constant(literal(value))


OF_ONE = [
    *(call(name, X) for name in ("BOUND", "ISIRI", "ISBLANK", "ISLITERAL", "STR", "LANG")),
    *(
        call(name, operand, text(part))
        for name in ("STRSTARTS", "STRENDS", "CONTAINS")
        for operand in (X, call("STR", X))
        for part in ("", "a", "é", "http://ex.org/", "0", "\\")
    ),
    *(call("REGEX", X, text(pattern)) for pattern in ("a", "^a", "^http", "x y")),
    *(call("LANGMATCHES", call("LANG", X), text(tag)) for tag in ("*", "en", "EN-gb", "")),
    *(
        call(name, call("LANG", X), text(tag))
        for name in ("=", "!=")
        for tag in ("", "en", "en-gb")
    ),
    *(
        call(name, call("DATATYPE", X), Constant(datatype))
        for name in ("=", "!=")
        for datatype in (
            iri(XSD + "string"),
            iri(XSD + "integer"),
            iri(RDF + "langString"),
            iri("urn:t"),
        )
    ),
    *(call(name, call("STR", X), text(value)) for name in ("=", "!=") for value in ("a", "urn:a")),
    call("IN", X, Constant(iri("urn:a")), text("a"), Constant(typed("1", "integer"))),
]


def asked(
    expressions: list[Expression], rows: list[tuple[Term | None, ...]]
) -> list[list[tuple[str | None, bool | None, bool | None]]]:
    """The value and the truth that DuckDB gives, and whether it decides, for each row."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    names = [f"v_{name}" for name in "xy"[: len(rows[0])]]
    arrays = [pa.array([row[n] for row in rows], pa.string()) for n in range(len(names))]
    numbers = pa.array(range(len(rows)))
    connection.register("given", pa.table({"n": numbers, **dict(zip(names, arrays, strict=True))}))
    answers = []
    for expression in expressions:
        term = native.term(expression, DuckDb())
        truth = native.condition(expression, DuckDb())
        term_sql = term or native.Native("NULL", "FALSE")
        truth_sql = truth or native.Native("NULL", "FALSE")
        assert term or truth, expression
        select = ", ".join(
            f"coalesce({one.decided}, FALSE), CASE WHEN {one.decided} THEN {one.sql} END"
            for one in (term_sql, truth_sql)
        )
        answers.append(connection.execute(f"SELECT {select} FROM given AS t ORDER BY n").fetchall())
    return answers


def check(expressions: list[Expression], rows: list[tuple[Term | None, ...]]) -> None:
    evaluator, names = PythonEvaluator(), ["x", "y"][: len(rows[0])]
    wrong = []
    for expression, answers in zip(expressions, asked(expressions, rows), strict=True):
        terms = evaluator.terms(expression, names, rows)
        truths = evaluator.truths(expression, names, rows)
        for row, answer, term, truth in zip(rows, answers, terms, truths, strict=True):
            decides_term, found_term, decides_truth, found_truth = answer
            if decides_term and found_term != term:
                wrong.append((expression, row, found_term, term))
            # of a filter, an error is as good as false
            if decides_truth and bool(found_truth) != bool(truth):
                wrong.append((expression, row, found_truth, truth))
    assert wrong == []


def test_of_one_term() -> None:
    check(OF_ONE, [(term,) for term in EVERY])


def test_negated() -> None:
    check(
        [call("!", one) for one in OF_ONE if one.name not in ("STR", "LANG")],
        [(term,) for term in EVERY],
    )


@pytest.mark.parametrize("name", COMPARISONS)
def test_with_a_constant(name: str) -> None:
    known = [
        call(name, X, Constant(term))
        for term in EVERY
        if term is not None and native.condition(call(name, X, Constant(term)), DuckDb())
    ]
    assert len(known) > 10
    check([*known[::6], *(call("!", one) for one in known[3::6])], [(term,) for term in EVERY])


@pytest.mark.parametrize("name", COMPARISONS)
def test_of_two_variables(name: str) -> None:
    check([call(name, X, Y)], list(product(EVERY[::3], EVERY[1::3])))


def test_most_usual_filters_are_decided() -> None:
    usual = [
        (call(">", X, Constant(typed("5", "integer"))), typed("7", "integer")),
        (call(">", X, Constant(typed("5", "integer"))), typed("7.25", "decimal")),
        (call("<", X, Constant(typed("0.5", "decimal"))), typed("1.5E0", "double")),
        (
            call("=", X, Constant(typed("2023-05-31T08:00:00Z", "dateTime"))),
            typed("2023-05-31T08:00:00Z", "dateTime"),
        ),
        (call("<", X, text("b")), literal("a")),
        (call("REGEX", X, text("^http")), literal("http")),
    ]
    for expression, term in usual:
        [[answer]] = asked([expression], [(term,)])
        assert answer[2], (expression, term)

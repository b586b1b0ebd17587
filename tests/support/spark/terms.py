"""Hostile terms, and SQL over them evaluated beside pyoxigraph: what the tests of Spark's expressions share."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyoxigraph as ox

from construct_messages.rdf.terms import XSD, Term, blank, iri, literal, literal_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def typed(lexical: str, datatype: str) -> Term:
    """A literal of an XSD datatype, well-formed or not."""
    return literal(lexical, datatype=XSD + datatype)


OTHERS = (
    *(iri("urn:a"), iri("urn:b"), literal("a"), literal("b"), literal(""), literal("1")),
    *(literal("a", language="en"), literal("b", language="en"), literal("a", language="fr")),
    *(literal('"\\n\n'), literal("😀"), literal("\uffff"), literal("\u0001\\u0001")),
    *(literal("a", datatype="urn:t"), literal("b", datatype="urn:t"), typed("a", "token")),
)
BOOLEANS = tuple(typed(form, "boolean") for form in ("true", "1", "false", "0", "yes", "TRUE"))
NUMBERS = (
    *(
        typed(form, "integer")
        for form in ("1", "01", "+1", "2", "0", "-5", "9007199254740993", "16777217")
    ),
    *(
        typed(form, "decimal")
        for form in ("1.0", "1.5", ".5", "5.", "-0.1", "0.3333", "9007199254740992.0")
    ),
    *(
        typed(form, "double")
        for form in ("1", "1e0", "0.1", "-0", "9007199254740992", "NaN", "INF", "-INF", "+INF")
    ),
    *(typed(form, "double") for form in ("1e400", "1e-400", "1.5E20")),
    *(typed(form, "float") for form in ("1", "0.1", "16777216", "NaN", "-2.5e3")),
    *(typed("1", "byte"), typed("1", "nonNegativeInteger"), typed("-1", "negativeInteger")),
)
NO_NUMBERS = (
    *(typed(form, "integer") for form in ("abc", " 1 ", "1.0", "1e0", "")),
    *(
        typed("1e0", "decimal"),
        typed("1d", "double"),
        typed("0x1p3", "double"),
        typed("inf", "double"),
    ),
)
DATES = (
    *(
        f"2000-01-01T{time}"
        for time in ("00:00:00", "00:00:00Z", "14:00:00Z", "14:00:01Z", "05:00:00+05:00")
    ),
    *(
        f"2000-01-01T{time}"
        for time in ("00:00:00.000000001Z", "00:00:00.0Z", "23:59:60Z", "24:00:00Z")
    ),
    *(
        "2000-01-02T00:00:00Z",
        "2000-02-30T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "-0001-01-01T00:00:00Z",
    ),
    *(
        "12345-01-01T00:00:00Z",
        "2000-01-01",
        "2000-01-01Z",
        "2000-01-02",
        "2001-01-01",
        "2001-01-01+14:00",
    ),
    *("10:00:00", "10:00:00Z", "11:00:00+01:00", "23:00:00", "24:00:00", "00:00:00"),
    *("2000", "2001", "2000-01", "--01", "--02-28", "---01"),
)


def date(form: str) -> Term:
    """A date or time of the type that has such a form."""
    types = {4: "gYear", 7: "gYearMonth"}
    if "T" in form:
        return typed(form, "dateTime")
    if form.startswith("--"):
        return typed(form, {4: "gMonth", 5: "gDay", 7: "gMonthDay"}[len(form)])
    return typed(form, types.get(len(form)) or ("time" if form[2] == ":" else "date"))


TERMS: tuple[Term, ...] = (*OTHERS, *BOOLEANS, *NUMBERS, *NO_NUMBERS, *map(date, DATES))
BLANK = blank("b0", "d")


def by_spark(
    spark: SparkSession,
    expressions: Mapping[str, str],
    solutions: Sequence[tuple[Term | None, ...]],
) -> list[dict[str, str | None]]:
    """The values of SQL expressions for each solution, whose values are the columns `v_x`, `v_y` and so on."""
    width = max(map(len, solutions))
    names = [f"v_{name}" for name in "xyz"[:width]]
    frame = spark.createDataFrame(
        [(number, *values) for number, values in enumerate(solutions)],
        ", ".join(["number INT", *(f"{name} STRING" for name in names)]),
    )
    selected = frame.selectExpr(
        "number", *(f"{sql} AS `{name}`" for name, sql in expressions.items())
    )
    rows = sorted(selected.collect(), key=lambda row: row.number)
    return [{name: row[name] for name in expressions} for row in rows]


def by_pyoxigraph(
    expressions: Mapping[str, str], solutions: Sequence[tuple[Term, ...]]
) -> list[dict[str, str | None]]:
    """The same for SPARQL expressions over `?x`, `?y` and so on."""
    values = " ".join(f"({number} {' '.join(terms)})" for number, terms in enumerate(solutions))
    variables = " ".join(f"?{name}" for name in "xyz"[: max(map(len, solutions))])
    selected = " ".join(f"({text} AS ?r{index})" for index, text in enumerate(expressions.values()))
    query = f"PREFIX xsd: <{XSD}> SELECT ?number {selected} {{ VALUES (?number {variables}) {{ {values} }} }}"
    answers: dict[int, dict[str, str | None]] = {}
    results = ox.Store().query(query)
    assert isinstance(results, ox.QuerySolutions)
    for solution in results:
        bound = [solution[f"r{index}"] for index in range(len(expressions))]
        number = solution["number"]
        assert isinstance(number, ox.Literal)
        answers[int(number.value)] = {
            name: None if value is None else str(value)
            for name, value in zip(expressions, bound, strict=True)
        }
    return [answers[number] for number in range(len(solutions))]


def same(got: str | None, expected: str | None) -> bool:
    """The same term, or another form of the same float or double: Java 17 does not always write the shortest."""
    if got is None or expected is None or not expected.endswith(("double>", "float>")):
        return got == expected
    (form, datatype, *_), (other, other_datatype, *_) = (
        literal_parts(Term(got)),
        literal_parts(Term(expected)),
    )
    width = "f" if expected.endswith("float>") else "d"
    return datatype == other_datatype and struct.pack(width, float(form)) == struct.pack(
        width, float(other)
    )

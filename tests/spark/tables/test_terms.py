"""Functions over columns of terms, beside the functions of Python for single terms."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from construct_messages.errors import QuadsError, TermError, UsageError
from construct_messages.rdf import terms
from construct_messages.rdf.terms import RDF, XSD, Term, is_literal, is_triple, literal_parts
from construct_messages.spark import terms as T
from construct_messages.spark import translated
from tests.support.strategies import HOSTILE_IRIS, TERMS, TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, SparkSession

pytestmark = pytest.mark.slow

MANY = settings(max_examples=3)


def evaluated(
    spark: SparkSession, values: Sequence[Any], kind: str, *columns: Column
) -> list[tuple[Any, ...]]:
    """The columns over a frame of one column, `v`."""
    frame = spark.createDataFrame([(each,) for each in values], f"v {kind}").repartition(1)
    with translated():
        return [tuple(row) for row in frame.select(*columns).collect()]


def parts(term: Term | None) -> tuple[str | None, ...]:
    """The kind, characters, language and datatype of a term."""
    if term is None:
        return None, None, None, None
    if is_triple(term):
        return "triple term", term, None, None
    if not is_literal(term):
        is_node = term.startswith("_:")
        return "blank node" if is_node else "iri", term if is_node else term[1:-1], None, None
    value, datatype, language, direction = literal_parts(term)
    if language is not None:
        datatype = RDF + ("dirLangString" if direction else "langString")
    return "literal", value, language, datatype or f"{XSD}string"


@MANY
@given(found=st.lists(TERMS | st.none(), min_size=150, max_size=150))
def test_parts_of_terms(found: list[Term | None], quick: SparkSession) -> None:
    functions = (T.term_kind("v"), T.term_value("v"), T.language("v"), T.datatype("v"))
    expected = [parts(term) for term in found]
    assert evaluated(quick, found, "STRING", *functions) == expected


@MANY
@given(texts=st.lists(TEXT | st.none(), min_size=150, max_size=150))
def test_literals(texts: list[str | None], quick: SparkSession) -> None:
    made = (
        T.to_term("v"),
        T.literal("v", language=F.lit("FR")),
        T.literal("v", datatype="urn:t"),
        T.term_value(T.to_term("v")),
    )
    assert evaluated(quick, texts, "STRING", *made) == [
        (None,) * 4
        if text is None
        else (
            terms.literal(text),
            terms.literal(text, language="fr"),
            terms.literal(text, datatype="urn:t"),
            text,
        )
        for text in texts
    ]


@MANY
@given(values=st.lists(HOSTILE_IRIS, min_size=60, max_size=60))
def test_iris(values: list[str], quick: SparkSession) -> None:
    values = [value for value in values if not any(0xD800 <= ord(char) < 0xE000 for char in value)]
    sound = [value for value in values if terms.is_iri(value)]
    assert evaluated(quick, sound, "STRING", T.iri("v")) == [(terms.iri(value),) for value in sound]
    # which rows would end the job
    wrong = F.when(F.col("v").rlike(T._IRI), F.lit(True)).otherwise(F.lit(False))
    assert evaluated(quick, values, "STRING", wrong) == [(terms.is_iri(value),) for value in values]


DAY = dt.datetime(2024, 5, 1, 23, 59, 59, 500_000)
VALUES: list[tuple[str, list[Any]]] = [
    ("BIGINT", [0, -5, 2**63 - 1]),
    ("TINYINT", [7]),
    ("DECIMAL(20,3)", [Decimal("1.500"), Decimal("-0.001")]),
    ("DOUBLE", [1.5, 1e300, 1e-7, float("inf"), float("-inf"), float("nan"), -0.0]),
    ("BOOLEAN", [True, False]),
    ("DATE", [dt.date(2024, 5, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("TIMESTAMP_NTZ", [DAY, dt.datetime(1, 1, 1)]),
    ("TIMESTAMP", [DAY.replace(tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[kind for kind, _ in VALUES])
def test_values_have_terms(kind: str, values: list[Any], other: SparkSession) -> None:
    """In a session with another time zone, and without ANSI mode."""
    found = [row[0] for row in evaluated(other, [*values, None], kind, T.to_term("v"))]
    assert found.pop() is None
    for term, value in zip(found, values, strict=True):
        expected = terms.literal(value)
        assert literal_parts(term)[1] == literal_parts(expected)[1]
        assert repr(terms.to_python(term)) == repr(terms.to_python(expected))


def test_times_before_christ(quick: SparkSession) -> None:
    frame = quick.sql(
        "SELECT timestamp'-0044-03-15 10:00:00Z' AS old, timestamp'+12024-01-01 00:00:00Z' AS far"
    )
    assert frame.select(T.to_term("old"), T.to_term("far")).collect()[0] == (
        f'"-0044-03-15T10:00:00Z"^^<{XSD}dateTime>',
        f'"12024-01-01T00:00:00Z"^^<{XSD}dateTime>',
    )


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: T.iri(F.lit("a b")), "a b is not an absolute IRI"),
        (lambda: T.iri(F.lit("http://example.org/100%")), "is not an absolute IRI"),
        (lambda: T.literal(F.lit("a"), language=F.lit("en_US")), "en_US is not a language tag"),
        (lambda: T.to_term(F.array(F.lit(1))), "array<int> has no datatype of RDF"),
    ],
)
def test_what_is_no_term_ends_the_job(made: Any, words: str, quick: SparkSession) -> None:
    with pytest.raises((QuadsError, UsageError), match=words), translated():
        quick.range(1).select(made()).collect()


def test_names_and_refusals(quick: SparkSession) -> None:
    frame = quick.range(1)
    assert frame.select(T.to_term("id"), T.term_kind(T.to_term("id"))).columns == [
        "to_term(id)",
        "term_kind",
    ]
    assert frame.filter(T.term_value(T.to_term("id")) == "0").count() == 1
    with pytest.raises(UsageError, match="no other datatype"):
        T.literal("id", datatype="urn:t", language=F.lit("en"))
    for datatype in ("no iri", f"{RDF}langString"):
        with pytest.raises((UsageError, TermError)):
            T.literal("id", datatype=datatype)

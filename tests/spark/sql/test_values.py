"""Text in SQL and in terms: literals under every setting of the parser, escapes both ways, parts of terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import ValueOutOfRange
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal, literal_parts
from construct_messages.spark.sql import values
from construct_messages.spark.sql.values import Scalar, Type
from tests.support.spark.terms import BLANK, TERMS, by_spark, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\\\"'\n\t\0\x7fnu0${}")),
    min_size=1,
    max_size=40,
)
HOSTILE = (
    "",
    "'",
    "\\",
    "\\n",
    "\\\\n",
    "\\\\\\n",
    'a"b',
    "${env:HOME}",
    "\0",
    "\x7f",
    "é😀\ufffe\uffff",
    "\r\n",
    "--",
    "/*",
    "`",
    "%_",
)


@pytest.mark.parametrize("text", ["a", "it's", "\\", "${x}", "\n"])
def test_literal_holds_no_backslash(text: str) -> None:
    assert "\\" not in values.literal(text)


@given(TEXTS)
@settings(max_examples=3)
def test_texts_survive(spark: SparkSession, texts: list[str]) -> None:
    check_texts(spark, texts)


def test_hostile_texts_survive(spark: SparkSession, other: SparkSession) -> None:
    check_texts(spark, HOSTILE)
    check_texts(other, HOSTILE)


def check_texts(spark: SparkSession, texts: tuple[str, ...] | list[str]) -> None:
    """As literals of SQL, and through a term and back."""
    written = spark.range(1).selectExpr(
        *(f"{values.literal(text)} AS c{index}" for index, text in enumerate(texts))
    )
    assert list(written.collect()[0]) == list(texts)
    terms = [(literal(text),) for text in texts]
    there_and_back = {
        "text": values.lexical_form("v_x"),
        "term": values.as_term(Scalar("v_y", Type.STRING)),
    }
    answers = by_spark(
        spark,
        there_and_back,
        [(Term(term), Term(text)) for (term,), text in zip(terms, texts, strict=True)],
    )
    assert answers == [
        {"text": text, "term": str(term)} for (term,), text in zip(terms, texts, strict=True)
    ]


def test_parts_of_terms(spark: SparkSession) -> None:
    directed = Term('"a"@he--rtl')
    terms = (
        *TERMS,
        BLANK,
        directed,
        Term("<<( <urn:s> <urn:p> <urn:o> )>>"),
        literal('x"^^<' + XSD + "integer>"),
    )
    sql = {
        "text": values.lexical_form("v_x"),
        "datatype": values.datatype("v_x"),
        "language": values.language("v_x"),
        "iri": values.is_iri("v_x"),
        "string": values.text_of("v_x"),
    }
    for term, got in zip(terms, by_spark(spark, sql, [(term,) for term in terms]), strict=True):
        expected = dict.fromkeys(("text", "datatype", "language", "string"), None)
        if term.startswith('"'):
            text, datatype, language, direction = literal_parts(term)
            tagged = f"{RDF}{'dirLangString' if direction else 'langString'}" if language else None
            is_string = datatype is None
            expected = {
                "text": text,
                "datatype": iri(tagged or datatype or f"{XSD}string"),
                "language": language or "",
                "string": text if is_string else None,
            }
        assert got == {**expected, "iri": term.startswith("<urn:")}, term


def test_what_may_stand_escaped_or_not(spark: SparkSession) -> None:
    [answer] = by_spark(
        spark, {"text": values.lexical_form("v_x")}, [(Term('"\\uFFFE\\\\uFFFF\\uFFFF"'),)]
    )
    assert answer["text"] == "\ufffe\\uFFFF\uffff"


NATIVE = (
    (Scalar("CAST(2 AS DECIMAL(38,0))", Type.INTEGER), typed("2", "integer")),
    (
        Scalar("CAST('0.000000000000000001' AS DECIMAL(37,18))", Type.DECIMAL),
        typed("0.000000000000000001", "decimal"),
    ),
    (Scalar("CAST('-0.5' AS DECIMAL(37,18))", Type.DECIMAL), typed("-0.5", "decimal")),
    (Scalar("CAST('20' AS DECIMAL(37,18))", Type.DECIMAL), typed("20", "decimal")),
    (Scalar("CAST('0' AS DECIMAL(37,18))", Type.DECIMAL), typed("0", "decimal")),
    (Scalar("CAST('1e7' AS DOUBLE)", Type.DOUBLE), typed("10000000", "double")),
    (Scalar("CAST('1.5e20' AS DOUBLE)", Type.DOUBLE), typed("150000000000000000000", "double")),
    (Scalar("CAST('-1.25e-7' AS DOUBLE)", Type.DOUBLE), typed("-0.000000125", "double")),
    (Scalar("CAST('100' AS DOUBLE)", Type.DOUBLE), typed("100", "double")),
    (Scalar("CAST('-0' AS DOUBLE)", Type.DOUBLE), typed("-0", "double")),
    (Scalar("CAST('-Infinity' AS FLOAT)", Type.FLOAT), typed("-INF", "float")),
    (Scalar("CAST('NaN' AS FLOAT)", Type.FLOAT), typed("NaN", "float")),
    (Scalar("CAST('0.1' AS FLOAT)", Type.FLOAT), typed("0.1", "float")),
    (Scalar("false", Type.BOOLEAN), typed("false", "boolean")),
    (Scalar("CAST(NULL AS BOOLEAN)", Type.BOOLEAN), None),
    (Scalar("CAST(NULL AS DECIMAL(37,18))", Type.DECIMAL), None),
    (Scalar("CAST(NULL AS DOUBLE)", Type.DOUBLE), None),
)


def test_native_values_as_terms(spark: SparkSession, other: SparkSession) -> None:
    for session in (spark, other):
        sql = [f"{values.as_term(scalar)} AS c{index}" for index, (scalar, _) in enumerate(NATIVE)]
        assert list(session.range(1).selectExpr(*sql).collect()[0]) == [term for _, term in NATIVE]


def test_failure_names_its_class(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ValueOutOfRange: 7 is too much"):
        spark.range(1).selectExpr(
            values.fail(ValueOutOfRange, "concat(7 + id, ' is too much')")
        ).collect()


def test_let_nests() -> None:
    inner = values.let("upper(x)", lambda x: values.let("lower(y)", lambda y: f"{x}{y}"))
    assert inner == "transform(array(upper(x)), x0 -> transform(array(lower(y)), x1 -> x0x1)[0])[0]"


def test_let_interpreted() -> None:
    assert (
        values.let("v_x", lambda x: x, interpreted=True)
        == "zip_with(array(v_x), array(0), (x0, zero) -> x0)[0]"
    )

"""SELECT on Spark: columns have the types and values that they have for every other source."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages import select as select_anywhere
from construct_messages.errors import ColumnError, QueryError, UsageError
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.solutions import SolutionRows
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import XSD, Term, literal
from construct_messages.spark import QuadTable, load_quads, select, translated, write_quads
from construct_messages.spark.tables.columns import ColumnPlan
from construct_messages.spark.tables.selection import typed
from tests.support.strategies import TERMS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

FORMS = {
    "integer": ["1", " -5 ", "9" * 19, str(1 << 70), "x"],
    "byte": ["1", "300"],
    "decimal": ["1.5", "2", "0.1234567890123456789"],
    "double": ["1e0", "NaN", "INF"],
    "boolean": ["true", "0"],
    "date": ["2024-05-01", "2024-05-01Z", "2023-02-29"],
    "dateTime": ["2024-05-01T00:00:00Z", "2024-05-01T00:00:00", "2024-05-01T00:00:00.5-05:00"],
    "time": ["10:00:00"],
    "dayTimeDuration": ["PT1H", "P1DT0.5S"],
    "gYear": ["1999"],
}
UNBOUND = Term("")


def of_kind(name: str) -> st.SearchStrategy[list[Term]]:
    forms = st.sampled_from([literal(form, datatype=XSD + name) for form in FORMS[name]])
    return st.lists(forms | st.just(UNBOUND), min_size=6, max_size=6)


NUMBERS = st.sampled_from(
    [literal(form, datatype=XSD + kind) for kind in ("integer", "decimal", "double") for form in FORMS[kind][:2]]
)  # fmt: skip
COLUMN = st.one_of(
    *map(of_kind, FORMS),
    st.lists(NUMBERS, min_size=6, max_size=6),
    st.lists(TERMS | st.just(UNBOUND), min_size=6, max_size=6),
)


def in_utc(value: Any, kind: pa.DataType) -> Any:
    return (
        value.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(kind) and kind.tz else value
    )


def rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = [in_utc(table.column(at), field.type) for at, field in enumerate(table.schema)]
    found: list[dict[str, Any]] = pa.Table.from_arrays(columns, table.column_names).to_pylist()
    return [{name: repr(value) for name, value in row.items()} for row in found]  # NaN is NaN


@settings(max_examples=4)
@given(columns=st.lists(COLUMN, min_size=30, max_size=30), doubles=st.booleans())
def test_types_and_values_are_those_of_arrow(
    columns: list[list[Term]], doubles: bool, quick: SparkSession
) -> None:
    names = [f"v{number}" for number in range(len(columns))]
    options = ColumnOptions(
        "solutions",
        languages=names[:3],
        decimals="double" if doubles else "decimal",
        invalid="string",
    )
    expected = SolutionRows(names, options, {})
    batches = [*expected.add(Solutions(columns)), *expected.finish()]
    table = pa.Table.from_batches(batches)
    for at, field in enumerate(table.schema):
        if pa.types.is_time(field.type):  # which Spark does not have: its characters
            forms = [term.split('"')[1] if term else None for term in columns[int(field.name[1:])]]
            table = table.set_column(at, field.name, pa.array(forms))
    rows_of_terms = [[term or None for term in row] for row in zip(*columns, strict=True)]
    terms = quick.createDataFrame(rows_of_terms, ", ".join(f"{name} STRING" for name in names))
    found = typed(terms.repartition(3), ColumnPlan.all_of(names, options)).toArrow()
    assert [str(field.type) for field in found.schema if "timestamp" not in str(field.type)] == [
        str(field.type) for field in table.schema if "timestamp" not in str(field.type)
    ]
    key = str
    assert sorted(rows(found), key=key) == sorted(rows(table), key=key)


DATA = """
PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:a :size 3 ; :name "A"@en ; :age 41 ; :at "2024-05-01T12:00:00+02:00"^^xsd:dateTime ; :knows _:x .
:b :size 4.5 ; :name "B" ; :age "unknown" ; :at "2024-05-02T12:00:00Z"^^xsd:dateTime .
_:x :name "X" .
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?who ?size ?name ?age ?at ?friend {
  ?who :name ?name OPTIONAL { ?who :size ?size ; :age ?age ; :at ?at } OPTIONAL { ?who :knows ?friend }
} ORDER BY ?name"""


@pytest.fixture
def dump(tmp_path: Path) -> str:
    (tmp_path / "data.ttl").write_text(DATA, encoding="utf-8")
    return str(tmp_path / "data.ttl")


def test_a_query_gives_what_it_gives_elsewhere(
    dump: str, quick: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "construct_messages.logs.columns"):
        found = select(quick, QUERY, dump, languages=["name"])
    assert found.dtypes == [
        ("who", "string"),
        ("size", "decimal(38,18)"),
        ("name", "string"),
        ("name_language", "string"),
        ("age", "string"),
        ("at", "timestamp"),
        ("friend", "string"),
    ]
    assert (
        '?age has "41"^^xsd:integer, of xsd:integer, and "unknown", a string; therefore'
        in caplog.text
    )
    expected = select_anywhere(QUERY, dump).to_arrow(languages=["name"], invalid="string")
    blank = {"who": None, "friend": None}  # whose labels are others
    named = [
        row | {k: v for k, v in blank.items() if str(row[k]).startswith("_:")}
        for row in rows_of(found)
    ]
    assert named[:2] == [row | {"friend": None} for row in expected.read_all().to_pylist()[:2]]
    assert named[2]["name"] == "X"
    friend, who = (
        frame.collect()[at][0] for frame, at in ((found.select("friend"), 0), (found, 2))
    )
    assert friend == who  # one node in all columns
    write_quads(load_quads(quick, dump), tmp_path / "quads")
    again = select(quick, QUERY, str(tmp_path / "quads"), types={"size": "double"})
    assert [row.size for row in again.select("size").collect()] == [3.0, 4.5, None]


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return rows_as_dicts(frame.toArrow())


def rows_as_dicts(table: pa.Table) -> list[dict[str, Any]]:
    columns = [in_utc(table.column(at), field.type) for at, field in enumerate(table.schema)]
    found: list[dict[str, Any]] = pa.Table.from_arrays(columns, table.column_names).to_pylist()
    return found


def test_values_that_do_not_fit(
    dump: str, quick: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    query = "SELECT ?age { ?who <http://example.org/age> ?age }"
    with pytest.raises(ColumnError, match='\\?age has "41"') as caught:
        select(quick, query, dump, invalid="error")
    assert caught.value.variable == "age"
    declared = select(quick, query, dump, types={"age": "int64"})
    with (
        pytest.raises(ColumnError, match='\\?age is "unknown", in a column of int64') as caught,
        translated(),
    ):
        declared.collect()
    assert caught.value.variable == "age"
    with caplog.at_level(logging.WARNING, "construct_messages.logs.columns"):
        lenient = select(quick, query, dump, types={"age": "int64"}, invalid="null")
    assert sorted(str(row.age) for row in lenient.collect()) == ["41", "None"]
    raw = select(quick, query, dump, raw=True)
    assert {row.age for row in raw.collect()} == {f'"41"^^<{XSD}integer>', '"unknown"'}


def test_what_is_refused(dump: str, quick: SparkSession) -> None:
    with pytest.raises(QueryError, match="expected a SELECT query, got CONSTRUCT"):
        select(quick, "CONSTRUCT WHERE { ?s ?p ?o }", dump)
    with pytest.raises(UsageError, match="there is no column \\?x"):
        select(quick, "SELECT * { ?s ?p ?o }", dump, types={"x": "int64"})
    with pytest.raises(UsageError, match="\\?o cannot be a column of times of day"):
        select(quick, "SELECT * { ?s ?p ?o }", dump, types={"o": "time"})
    table = QuadTable.of(load_quads(quick, dump))
    with pytest.raises(UsageError, match="\\?a and \\?A are one name"):
        select(quick, "SELECT * { ?a ?A ?o }", table)

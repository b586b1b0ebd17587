"""Tables whose cells are checked at once: each fault is found, and no canonical term is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import QuadsError, UsageError
from construct_messages.rdf.terms import XSD, Term, iri, literal
from construct_messages.spark import QuadTable, construct_messages
from construct_messages.spark.quads.checking import fault_of
from construct_messages.sparql.relational import documents
from construct_messages.sparql.relational.documents import suspects
from tests.support.strategies import HOSTILE_IRIS, TERMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

PLACES = ("subject", "predicate", "object", "graph")
SCHEMA = ", ".join(f"{place} STRING" for place in PLACES)
TEXT = [
    *("Berlin", "", "_:", "_:a.", "_:é", "<a>", "<urn:a b>", "<http://[::1]/>", "<http://e/%zz>"),
    *('"a', '"a"b', '"\\u0041"', '"\\u0001"', '"\\u000A"', '"\\x"', '"tab\t"', '"a"@EN', '"a"@en'),
    *('"a"@en_US', '"a"@en--ltr', '"a"@en--up', '"a"@', '"a"@i-klingon', '"1"^^<x>', '"1"^^<urn:t>'),
    *(f'"a"^^<{XSD}string>', f'"1"^^<{XSD}integer>', "42", "true", "'a'", "<urn:a> ", " <urn:a>"),
    *("<<( <urn:s> <urn:p> <urn:o> )>>", '<<( <urn:s> <urn:p> "a b"@EN )>>', "<<( _:s <urn:p> 1 )>>"),
    *('<<( "s" <urn:p> <urn:o> )>>', "<<( <urn:s> <urn:p> <<( <urn:s> <urn:p> <urn:o> )>> )>>"),
]  # fmt: skip
IRIS = HOSTILE_IRIS.map(lambda value: f"<{value}>")
CELLS = st.one_of(TERMS, IRIS, IRIS.map(lambda iri: f'"a"^^{iri}'))


def has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) < 0xE000 for char in text)


GOOD = (iri("urn:s"), iri("urn:p"), literal("o", language="en"), None)
NESTED = Term("<<( <urn:s> <urn:p> <<( <urn:s> <urn:p> <urn:o> )>> )>>")
ROWS = st.tuples(CELLS, CELLS, CELLS, CELLS | st.none())


@given(drawn=st.lists(ROWS, min_size=20, max_size=40))
def test_no_fault_is_missed(drawn: list[tuple[str | None, ...]]) -> None:
    rows = [(*[cell] * 3, graph) for cell in TEXT for graph in (None, cell)]
    rows += [("<urn:s> <urn:p>", '"a', 'b"', None), ("<urn:s>", "<urn:p>", '"a" .\n', None)]
    rows += [row for row in drawn if not any(map(has_surrogate, filter(None, row)))]
    faulty = [row for row in rows if any(map(fault_of, row, PLACES))]
    # one batch with them all, and batches whose other cells are sound
    for found in (suspected(rows), [row for each in rows for row in suspected([GOOD, each])]):
        assert not {*faulty} - {*found}


def suspected(rows: list[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    found = suspects(pa.RecordBatch.from_arrays(columns, schema=documents.SCHEMA))
    return [tuple(row.values()) for row in found.to_pylist()]


def test_usual_terms_are_no_suspects() -> None:
    objects = ('"é"@en', f'"1"^^<{XSD}integer>', '"\\t"', "_:b", "<http://e.example/é%20?q#f>")
    rows = [(*GOOD[:2], object, graph) for object in objects for graph in (None, "<urn:g>", "_:g")]
    assert suspected(rows) == []
    assert suspected([*rows, (*GOOD[:2], NESTED, None)]) == [(*GOOD[:2], NESTED, None)]


def table(spark: SparkSession, *rows: tuple[str | None, ...]) -> DataFrame:
    return spark.createDataFrame([*rows], SCHEMA)


@pytest.mark.parametrize(
    ("row", "message", "hint"),
    [
        (
            ("Berlin", *GOOD[1:]),
            "column 'subject' holds Berlin: 'Berlin' is not an RDF term, in the row",
            "write an IRI",
        ),
        ((GOOD[2], *GOOD[1:]), "'subject' holds \"o\"@en, which cannot be a subject", "leave"),
        ((*GOOD[:2], None, None), "column 'object' holds NULL", "leave the row out"),
        (
            (*GOOD[:2], '"a"@EN', None),
            'holds "a"@EN, which is not in canonical form',
            'write "a"@en',
        ),
        ((*GOOD[:3], "_:b c"), "column 'graph' holds _:b c", "write an IRI"),
        ((*GOOD[:2], "<http://e/100%>", None), "Invalid IRI percent encoding", "percent-encode"),
    ],
)
def test_a_fault_names_the_value_and_the_fix(
    row: tuple[str | None, ...], message: str, hint: str, quick: SparkSession
) -> None:
    frame = table(quick, GOOD, row, GOOD)
    with pytest.raises(QuadsError) as caught:
        QuadTable.of(frame, check=True)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_a_checked_table_is_queried(quick: SparkSession) -> None:
    frame = table(quick, GOOD, (*GOOD[:2], NESTED, "_:g")).withColumnRenamed("object", "o")
    checked = QuadTable.of(frame, {"object": "o"}, check=True)
    assert checked.frame.columns == [*PLACES]
    messages = construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", checked)
    assert [row.message for row in messages.frame.collect()] == ['<urn:s> <urn:p> "o"@en .']
    wrong = table(quick, (*GOOD[:2], "<urn:a b>", None)).withColumnRenamed("object", "o")
    with pytest.raises(QuadsError, match="column 'o' holds <urn:a b>"):
        QuadTable.of(wrong, {"object": "o"}, check=True)
    with pytest.raises(UsageError, match="assumed, and checked"):
        QuadTable.of(frame, {"object": "o"}, assume_terms=True, check=True)

"""Solutions as typed columns: what the types are, what does not fit, languages, batches and metadata."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import ColumnError, UsageError
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.solutions import SolutionRows
from construct_messages.logs.columns.types import characters, term_array
from construct_messages.rdf.solutions import ArrowSolutions, Solutions
from construct_messages.rdf.terms import XSD, Term, is_literal, is_triple, literal, literal_parts
from tests.support.strategies import TERMS

WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"


def typed(form: object, datatype: str) -> Term:
    return Term(f'"{form}"^^<{datatype if ":" in datatype else XSD + datatype}>')


def table(columns: Sequence[list[Term]], options: ColumnOptions | None = None) -> Any:
    names = [f"v{place}" for place in range(len(columns))]
    rows = SolutionRows(names, options or ColumnOptions(), {"query": "CONSTRUCT …"})
    batches = [*rows.add(Solutions(columns)), *rows.finish()]
    return pa.Table.from_batches(batches)


def column(terms: list[Term], options: ColumnOptions | None = None) -> Any:
    return table([terms], options).column(0)


IRI = Term("<urn:i>")
MAY = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
DECIDED: list[tuple[list[Term], Any, list[Any]]] = [
    ([IRI, Term("_:b"), Term("")], pa.string(), ["urn:i", "_:b", None]),
    ([literal("a"), literal("é\n", language="en")], pa.string(), ["a", "é\n"]),
    ([Term('<<( <urn:s> <urn:p> "o" )>>')], pa.string(), ['<<( <urn:s> <urn:p> "o" )>>']),
    ([typed(1, "integer"), typed(2, "byte")], pa.int64(), [1, 2]),
    ([typed(1 << 70, "integer"), typed(2, "int")], pa.decimal128(38, 0), [Decimal(1 << 70), 2]),
    ([typed(f" {1 << 70} ", "integer")], pa.decimal128(38, 0), [Decimal(1 << 70)]),
    ([typed("1.5", "decimal"), typed(2, "integer")], pa.decimal128(38, 18), [Decimal("1.5"), 2]),
    ([typed("1.5", "decimal"), typed("1e0", "float"), typed(3, "int")], pa.float64(), [1.5, 1, 3]),
    ([typed("true", "boolean")], pa.bool_(), [True]),
    ([typed("2024-05-01", "date")], pa.date32(), [dt.date(2024, 5, 1)]),
    ([typed("2024-05-01", "date"), typed("2024-05-01Z", "date")], pa.string(), ["2024-05-01", "2024-05-01Z"]),
    ([typed("2024-05-01T00:00:00", "dateTime")], pa.timestamp("us"), [dt.datetime(2024, 5, 1)]),
    ([typed("2024-04-30T19:00:00-05:00", "dateTime")], pa.timestamp("us", "UTC"), [MAY]),
    ([typed("2024-05-01T00:00:00Z", "dateTimeStamp")], pa.timestamp("us", "UTC"), [MAY]),
    ([typed("PT1H", "dayTimeDuration")], pa.duration("us"), [dt.timedelta(hours=1)]),
    ([typed("P1Y", "duration")], pa.string(), ["P1Y"]),
    ([typed("1999", "gYear")], pa.string(), ["1999"]),
    ([typed("POINT(1 2)", WKT)], pa.string(), ["POINT(1 2)"]),
    ([Term(""), Term("")], pa.string(), [None, None]),
]  # fmt: skip


@pytest.mark.parametrize(("terms", "kind", "values"), DECIDED)
def test_datatypes_decide(terms: list[Term], kind: Any, values: list[Any]) -> None:
    found = column(terms)
    assert found.type == kind
    assert found.to_pylist() == values


MIXED = [
    ([IRI, literal("a")], 'solution 2: ?v0 is "a", a string, where solution 1 has <urn:i>, an IRI'),
    (
        [Term(""), typed(1, "integer"), typed("true", "boolean")],
        'solution 3: ?v0 is "true"^^xsd:boolean, of xsd:boolean, where solution 2',
    ),
    ([typed("1", "x:a"), typed("1", "x:b")], "of <x:b>, where solution 1"),
    ([typed(1, "integer"), typed("2024-05-01", "date"), typed("1.5", "decimal")], "solution 2: ?v0 is"),
    ([typed("x", "integer")], 'solution 1: ?v0 is "x"^^xsd:integer, in a column of int64: no xsd:integer'),
    ([typed("9" * 5000, "integer")], "more than 38 digits before the point"),
    ([typed(1, "integer"), typed(300, "byte")], '?v0 is "300"^^xsd:byte, in a column of int64: not between'),
    ([typed("1.5", "double"), typed(-1, "unsignedInt")], "not between 0 and"),
    ([typed("P99999999999999D", "dayTimeDuration")], "in a column of duration"),
    ([typed("2023-02-29", "date")], "no xsd:date"),
    (
        [typed("2024-05-01T00:00:00", "dateTime"), typed("2024-05-01T00:00:00Z", "dateTime")],
        "with a time zone, such as 2024-05-01T00:00:00Z, and without",
    ),
    (
        [typed("2024-05-01T00:00:00", "dateTime"), typed("2024-05-01T00:00:00-05:00", "dateTime")],
        "with a time zone, such as 2024-05-01T00:00:00-05:00, and without",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("terms", "message"), MIXED)
def test_what_does_not_fit_is_an_error(terms: list[Term], message: str) -> None:
    with pytest.raises(ColumnError, match=re.escape(message)) as caught:
        column(terms)
    assert caught.value.variable == "v0"
    assert "v0=string" in (caught.value.hint or "")


LATER = [
    ([typed(1, "integer")], [typed("1.5", "decimal")], "of xsd:decimal, in a column of int64"),
    ([typed(1, "integer")], [typed(1 << 63, "integer")], "out of the range of int64"),
    ([typed("1.5", "decimal")], [typed("1e0", "double")], "in a column of decimal"),
    ([IRI], [literal("a")], "a string, in a column of IRIs"),
    ([literal("a")], [IRI], "an IRI, in a column of strings"),
    ([Term("")], [typed(1, "integer")], "of xsd:integer, in a column of strings"),
    (
        [typed("2024-05-01T00:00:00Z", "dateTime")],
        [typed("2024-05-01T00:00:00", "dateTime")],
        "no time zone",
    ),
]


@pytest.mark.parametrize(("first", "later", "message"), LATER)
def test_a_later_batch_changes_no_type(first: list[Term], later: list[Term], message: str) -> None:
    with pytest.raises(ColumnError, match=re.escape(message)) as caught:
        column(first + first + later, ColumnOptions(batch_rows=2))
    assert caught.value.number == 3
    fitting = column(
        first + first + later + first, ColumnOptions(batch_rows=2, invalid="null")
    ).to_pylist()
    assert fitting[2] is None
    assert fitting[3] == fitting[0]


WHOLE = [
    ([typed(1, "integer"), typed("1.5", "decimal")], pa.decimal128(38, 18)),
    ([typed(1, "integer"), typed("1.5", "decimal"), typed("1e0", "double")], pa.float64()),
    ([typed(1, "integer"), typed(1 << 70, "integer")], pa.decimal128(38, 0)),
    ([Term(""), typed(1, "integer")], pa.int64()),
    ([literal("a"), typed(1, "integer")], pa.string()),
    ([typed(1, "integer"), typed(300, "byte")], pa.string()),
    ([typed("2024-05-01", "date"), typed("2024-05-01Z", "date")], pa.string()),
    ([Term('<<( <urn:s> <urn:p> "o" )>>'), IRI], pa.string()),
]


@pytest.mark.parametrize(("terms", "kind"), WHOLE)
def test_all_batches_decide_where_strings_are_the_way_out(terms: list[Term], kind: Any) -> None:
    for rows in (1, 2, 100):
        found = column(terms, ColumnOptions(batch_rows=rows, invalid="string"))
        assert found.type == kind
        if kind == pa.string():
            assert found.to_pylist() == [text(term) for term in terms]


@given(st.lists(TERMS | st.just(Term("")), max_size=6), st.integers(1, 7))
def test_strings_are_a_way_out_for_all_terms(terms: list[Term], rows: int) -> None:
    found = column(terms, ColumnOptions(batch_rows=rows, invalid="string"))
    assert found.equals(column(terms, ColumnOptions(invalid="string")))
    try:
        assert found.equals(column(terms, ColumnOptions()))
    except ColumnError:
        assert found.to_pylist() == [text(term) for term in terms]


NUMBERS = [typed(form, "integer") for form in ("1", "-20", "007", "1" * 20)]
COLUMNS = st.lists(st.sampled_from([*NUMBERS, Term("")]), min_size=1, max_size=9) | st.lists(
    TERMS | st.just(Term("")), min_size=1, max_size=6
)


@given(
    st.lists(COLUMNS, min_size=1, max_size=3),
    st.integers(1, 7),
    st.sampled_from(["error", "null", "string"]),
)
def test_arrays_of_arrow_give_what_their_terms_give(
    batches: list[list[Term]], most: int, invalid: str
) -> None:
    options = ColumnOptions.of({"batch_rows": most, "invalid": invalid})

    def of_terms(terms: list[Term]) -> Solutions:
        return Solutions([terms])

    def of_arrays(terms: list[Term]) -> Solutions:
        return ArrowSolutions([pa.array([term or None for term in terms], pa.string())])

    def made(convert: Callable[[list[Term]], Solutions]) -> str:
        rows, found = SolutionRows(["v"], options, {}), []
        try:
            for terms in batches:
                found += rows.add(convert(terms))
            found += rows.finish()
        except ColumnError as error:
            return str(error)
        return f"{found[0].schema} {[batch.to_pylist() for batch in found]}"

    assert made(of_arrays) == made(of_terms)


def text(term: Term) -> str | None:
    """The characters of a term, as SPARQL's STR returns them; triple terms as they are."""
    if is_literal(term):
        return literal_parts(term)[0]
    return str(term)[1:-1] if term.startswith("<") and not is_triple(term) else term or None


def test_what_is_unbound_at_first_may_be_text_later() -> None:
    found = column([Term(""), Term(""), IRI], ColumnOptions(batch_rows=2))
    assert found.to_pylist() == [None, None, "urn:i"]


def test_values_that_do_not_fit_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    terms = [typed(1, "integer"), typed("x", "integer"), literal("y"), typed(2, "integer")]
    assert column(terms, ColumnOptions(invalid="null")).to_pylist() == [1, None, None, 2]
    assert "null in place of 2 values of ?v0" in caplog.text


DECLARED = [
    ("string", [IRI, typed("01", "integer"), literal("a", language="en")], ["urn:i", "01", "a"]),
    ("raw", [IRI, literal('"')], ["<urn:i>", '"\\""']),
    ("int64", [literal("42"), typed("1999", "gYear")], [42, 1999]),
    ("double", [typed(1, "integer")], [1.0]),
    (
        "timestamptz",
        [typed("2024-05-01T00:00:00", "dateTime"), typed("2024-05-01T00:00:00Z", "dateTime")],
        [dt.datetime(2024, 5, 1, tzinfo=dt.UTC)] * 2,
    ),
]


@pytest.mark.parametrize(("name", "terms", "values"), DECLARED)
def test_declared_types_read_the_characters(
    name: str, terms: list[Term], values: list[Any]
) -> None:
    assert column(terms, ColumnOptions(types={"?v0": name})).to_pylist() == values


def test_an_iri_is_no_number() -> None:
    with pytest.raises(ColumnError, match="an IRI, in a column of int64"):
        column([IRI], ColumnOptions(types={"v0": "int64"}))


def test_languages() -> None:
    terms = [literal("a", language="en"), literal("b"), Term(""), Term('"c"@ar--rtl')]
    found = table([terms], ColumnOptions(languages=["v0"]))
    assert found.to_pydict() == {
        "v0": ["a", "b", None, "c"],
        "v0_language": ["en", None, None, "ar--rtl"],
    }
    assert column(terms[:1] * 3, ColumnOptions(languages=["v0"])).to_pylist() == ["a"] * 3


def test_raw() -> None:
    assert column([IRI, Term(""), literal("a")], ColumnOptions(raw=True)).to_pylist() == [
        "<urn:i>", None, '"a"'
    ]  # fmt: skip


def test_batches_are_bounded() -> None:
    rows = SolutionRows(("v",), ColumnOptions(batch_rows=3), {})
    sizes = [
        batch.num_rows
        for size in (2, 8, 1)
        for batch in rows.add(Solutions([[typed(1, "integer")] * size]))
    ]
    sizes += [batch.num_rows for batch in rows.finish()]
    assert sizes == [3, 3, 3, 2]


def test_the_schema_tells_where_it_is_from() -> None:
    schema = table([[typed(1, "integer")]]).schema
    assert schema.metadata[b"construct_messages.query"].decode() == "CONSTRUCT …"
    assert schema.metadata[b"construct_messages.layout"] == b"solutions"
    assert schema.field("v0").metadata[b"datatypes"].decode() == f"{XSD}integer"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"types": {"x": "int64"}}, "there is no column ?x"),
        ({"types": {"v0": "int32"}}, "is no type"),
        ({"languages": ["v1"], "types": {"v1": "int64"}}, "gets a column of languages"),
        ({"raw": True, "types": {"v0": "int64"}}, "raw keeps all terms"),
        ({"layout": "quads", "languages": ["v0"]}, "are for the layout solutions"),
        ({"layout": "rows"}, "must be"),
        ({"invalid": "skip"}, "must be"),
        ({"batch_rows": 0}, "at least 1"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        table([[IRI]], ColumnOptions(**given))


def test_two_columns_of_one_name() -> None:
    with pytest.raises(UsageError, match="is a variable"):
        SolutionRows(("a", "a_language"), ColumnOptions(languages=["a"]), {})


@given(terms=st.lists(st.one_of(TERMS, st.just(Term(""))), min_size=1, max_size=6))
def test_columns_are_taken_apart_as_terms_are(terms: list[Term]) -> None:
    def expected(term: Term) -> tuple[str | None, str | None]:
        if is_literal(term):
            value, datatype, language, _ = literal_parts(term)
            return value, datatype if language is None else None
        if is_triple(term) or term.startswith("_:"):
            return term, None
        return term[1:-1] or None, None

    taken = characters(term_array([term.encode() for term in terms]))
    for term, form, kind in zip(terms, taken.forms, taken.kinds, strict=True):
        value, datatype = expected(term)
        assert form == (value if term else None)
        if datatype is not None:
            assert kind is not None
            assert kind.datatype == datatype
    # alone, each term goes the quick way
    for term, form, kind in zip(terms, taken.forms, taken.kinds, strict=True):
        alone = characters(term_array([term.encode()]))
        assert (alone.forms[0], alone.kinds[0]) == (form, kind)

"""The census of a column: taken part by part, it decides the type that all terms together decide."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import ColumnError
from construct_messages.logs.columns.solutions import Census, TypedColumn
from construct_messages.logs.columns.types import term_array
from construct_messages.rdf.terms import XSD, Term, literal
from tests.support.strategies import TERMS

FORMS = {
    "integer": ["1", "-5", "9" * 18, "9" * 19, str(1 << 70), "x"],
    "decimal": ["1.5", "2"],
    "double": ["1e0", "NaN"],
    "date": ["2024-05-01", "2024-05-01Z", "2024-05-01-05:00"],
    "dateTime": ["2024-05-01T00:00:00Z", "2024-05-01T00:00:00", "2024-05-01T00:00:00-05:00"],
    "time": ["10:00:00", "10:00:00Z"],
}
LITERALS = st.sampled_from(
    [literal(form, datatype=XSD + name) for name, forms in FORMS.items() for form in forms]
)
PARTS = st.lists(
    st.lists(st.one_of(LITERALS, TERMS, st.just(Term(""))), max_size=4), min_size=1, max_size=4
)


def outcome(parts: list[list[Term]], invalid: str) -> Any:
    merged = Census()
    for part in parts:
        census = Census()
        census.add(term_array([term.encode() for term in part]))
        merged.update(census)
    column = TypedColumn("v", invalid=invalid)
    try:
        column.decide_by(merged)
    except ColumnError as error:
        return str(error)
    return column.fields[0].type, column.fields[0].metadata


@given(parts=PARTS, invalid=st.sampled_from(["error", "null"]))
def test_parts_add_up(parts: list[list[Term]], invalid: str) -> None:
    assert outcome(parts, invalid) == outcome([[term for part in parts for term in part]], invalid)

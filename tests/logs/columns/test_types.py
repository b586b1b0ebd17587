"""Types of columns: lexical forms that fit and do not, and the quick way beside the plain one."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import UsageError
from construct_messages.logs.columns.types import (
    TYPES,
    Characters,
    characters,
    column_type,
    term_array,
)
from construct_messages.rdf.terms import literal

UTC = dt.UTC
FITS: list[tuple[str, str, Any]] = [
    ("boolean", "true", True),
    ("boolean", "0", False),
    ("int64", "-42", -42),
    ("int64", " +007\n", 7),
    ("int64", "-9223372036854775808", -(1 << 63)),
    ("double", "1e3", 1000.0),
    ("double", "-INF", float("-inf")),
    ("double", ".5", 0.5),
    ("decimal", "1.50", Decimal("1.5")),
    ("decimal", "-12345678901234567890.123456789012345678", Decimal("-12345678901234567890.123456789012345678")),
    ("decimal", "1.5000000000000000000000", Decimal("1.5")),
    ("decimal(5,2)", "+100.10", Decimal("100.1")),
    ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("timestamp", "2024-05-01T12:00:00.000001", dt.datetime(2024, 5, 1, 12, 0, 0, 1)),
    ("timestamp", "2024-12-31T24:00:00", dt.datetime(2025, 1, 1)),
    ("timestamptz", "2024-05-01T12:00:00Z", dt.datetime(2024, 5, 1, 12, tzinfo=UTC)),
    ("timestamptz", "2024-05-01T12:00:00+14:00", dt.datetime(2024, 4, 30, 22, tzinfo=UTC)),
    ("timestamptz", "2024-05-01T12:00:00", dt.datetime(2024, 5, 1, 12, tzinfo=UTC)),
    ("time", "12:30:00.5", dt.time(12, 30, 0, 500_000)),
    ("duration", "-P1DT2H", -dt.timedelta(days=1, hours=2)),
    ("string", " as it is ", " as it is "),
]  # fmt: skip
REFUSED = [
    ("boolean", "TRUE", "no xsd:boolean"),
    ("int64", "1.0", "no xsd:integer"),
    ("int64", "0x10", "no xsd:integer"),
    ("int64", "9223372036854775808", "out of the range"),
    ("double", "infinity", "no xsd:double"),
    ("decimal", "0.1234567890123456789", "more than 18 digits after"),
    ("decimal", "123456789012345678901", "more than 20 digits before"),
    ("decimal", "399893615759283454239", "more than 20 digits before"),  # 128 bits overflow
    ("decimal", "340282366920938463463374607431768211457", "more than 20 digits before"),
    ("decimal(38,0)", "340282366920938463463374607431768211457", "more than 38 digits"),
    ("decimal", "1e3", "no xsd:decimal"),
    ("decimal(3,0)", "1000", "more than 3 digits"),
    ("date", "2023-02-29", "no xsd:date"),
    ("date", "2024-05-01Z", "time zone"),
    ("timestamp", "2024-05-01T12:00:00Z", "time zone"),
    ("timestamp", "2024-05-01", "no xsd:dateTime"),
    ("timestamptz", "2024-05-01T12:00:00.1234567Z", "more digits than microseconds"),
    ("timestamptz", "999999999-05-01T12:00:00Z", "out of the range"),
    ("time", "12:00:00Z", "time zone"),
    ("duration", "P1Y", "no xsd:dayTimeDuration"),
]


def column(*forms: str | None) -> Characters:
    return characters(
        term_array([b"" if form is None else literal(form).encode() for form in forms])
    )


@pytest.mark.parametrize(("name", "form", "value"), FITS)
def test_forms_that_fit(name: str, form: str, value: Any) -> None:
    array = column_type(name).array(column(form, None))
    assert array.to_pylist() == [value, None]


@pytest.mark.parametrize(("name", "form", "reason"), REFUSED)
def test_forms_that_do_not_fit(name: str, form: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        column_type(name).array(column(form))


def test_years_that_python_does_not_have() -> None:
    dates = column_type("date").array(column("-0044-03-15", "10000-01-01"))
    assert dates.cast(pa.int32()).to_pylist() == [-735_525, 2_932_897]
    times = column_type("timestamptz").array(column("-0044-03-15T00:00:00Z"))
    assert times.cast(pa.int64()).to_pylist() == [-735_525 * 86_400_000_000]


FORMS = {
    "boolean": r"true|false|1|0",
    "int64": r"[+-]?[0-9]{1,20}",
    "double": r"[+-]?(?:[0-9]{1,20}(?:[.][0-9]{0,20})?|[.][0-9]{1,9})(?:[eE][+-]?[0-9]{1,3})?|INF|NaN",
    "decimal": r"[+-]?[0-9]{1,45}(?:[.][0-9]{0,20})?",
    "date": r"-?[0-9]{4}-(?:0[0-9]|1[0-3])-(?:[0-2][0-9]|3[0-2])",
    "timestamp": r"[0-9]{4}-0[1-9]-[0-3][0-9]T(?:[01][0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9](?:[.][0-9]{1,7})?",
    "timestamptz": r"[0-9]{4}-0[1-9]-[0-3][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?(?:Z|[+-]0[0-9]:00)?",
}


@pytest.mark.parametrize("name", FORMS)
@given(data=st.data())
def test_the_quick_way_equals_the_plain_one(name: str, data: st.DataObject) -> None:
    forms = data.draw(st.lists(st.from_regex(FORMS[name], fullmatch=True), max_size=4))
    forms = [form for form in forms if form.isascii()]
    kind = TYPES[name]
    try:
        plain = kind.values([kind.value(form) for form in forms])
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            kind.array(column(*forms))
        return
    quick = kind.array(column(*forms))
    assert quick.type == plain.type
    assert repr(quick.cast(pa.string()).to_pylist() if name == "double" else quick.to_string()) == repr(
        plain.cast(pa.string()).to_pylist() if name == "double" else plain.to_string()
    )  # fmt: skip


@pytest.mark.parametrize("name", ["int32", "decimal(39,0)", "decimal(2,3)", ""])
def test_unknown_types(name: str) -> None:
    with pytest.raises(UsageError, match="is no type of a column"):
        column_type(name)

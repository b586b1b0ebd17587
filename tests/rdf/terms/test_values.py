"""Terms as values of Python, and back; rdflib is the witness where it has a type of Python for the datatype."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import TermError, UsageError, WrongType
from construct_messages.rdf.terms import XSD, Term, as_term, iri, literal, parse_term, to_python
from tests.support.strategies import TEXT

CASES: list[tuple[str, str, object]] = [
    ("integer", "+007", 7),
    ("integer", " 7\n", 7),
    ("byte", "-128", -128),
    ("unsignedLong", "18446744073709551615", (1 << 64) - 1),
    ("positiveInteger", "1", 1),
    ("boolean", "1", True),
    ("boolean", "false", False),
    ("decimal", ".5", Decimal("0.5")),
    ("decimal", "1.", Decimal(1)),
    ("double", "1e3", 1000.0),
    ("float", "-INF", -math.inf),
    ("dateTime", "2026-11-24T12:00:00.123456789Z", datetime(2026, 11, 24, 12, 0, 0, 123456, UTC)),
    ("dateTime", "2026-11-24T12:00:00", datetime(2026, 11, 24, 12)),
    ("dateTime", "2026-12-31T24:00:00Z", datetime(2027, 1, 1, tzinfo=UTC)),
    ("dateTimeStamp", "2026-11-24T12:00:00-14:00", datetime(2026, 11, 25, 2, tzinfo=UTC)),
    ("date", "2026-11-24", date(2026, 11, 24)),
    ("date", "2026-11-24Z", "2026-11-24Z"),
    ("time", "12:00:00.5", time(12, 0, 0, 500_000)),
    ("time", "12:00:00+01:00", time(12, tzinfo=timezone(timedelta(hours=1)))),
    ("time", "24:00:00", time(0)),
    ("dayTimeDuration", "-P1DT2H3M4.5S", -timedelta(1, 4.5, 0, 0, 3, 2)),
    ("base64Binary", "YW I=", b"ab"),
    ("hexBinary", "6162", b"ab"),
    ("gYear", "2026", "2026"),
    ("duration", "P1Y", "P1Y"),
    ("anyURI", "urn:x", "urn:x"),
    ("string", "7", "7"),
]

NO_VALUES = [
    ("integer", "1.0"),
    ("integer", "1_000"),
    ("integer", "٣"),
    ("integer", "9" * 5000),
    ("byte", "128"),
    ("boolean", "TRUE"),
    ("decimal", "1e3"),
    ("decimal", "NaN"),
    ("double", "nan"),
    ("double", "inf"),
    ("double", "1_0"),
    ("dateTime", "2026-11-24"),
    ("dateTime", "20261124T120000Z"),
    ("dateTime", "2026-11-24T12:00Z"),
    ("dateTime", "2026-02-29T12:00:00Z"),
    ("dateTime", "12026-01-01T12:00:00Z"),
    ("dateTime", "9999-12-31T24:00:00Z"),
    ("dateTime", "2026-11-24T24:30:00Z"),
    ("date", "2026-W01-1"),
    ("date", "2026-13-01Z"),
    ("time", "25:00:00"),
    ("dayTimeDuration", "P"),
    ("dayTimeDuration", "P1DT"),
    ("dayTimeDuration", "P1Y"),
    ("dayTimeDuration", "P99999999999D"),
    ("base64Binary", "YW*="),
    ("hexBinary", "616"),
]


@pytest.mark.parametrize(("kind", "lexical", "value"), CASES, ids=lambda part: str(part))
def test_values(kind: str, lexical: str, value: object) -> None:
    found = to_python(literal(lexical, datatype=XSD + kind))
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(("kind", "lexical"), NO_VALUES, ids=lambda part: part[:30])
def test_what_has_no_value(kind: str, lexical: str) -> None:
    with pytest.raises(TermError, match="has no value") as refused:
        to_python(literal(lexical, datatype=XSD + kind))
    assert len(str(refused.value)) < 1000


def test_what_is_no_literal_of_xml_schema() -> None:
    term = parse_term('<<( <urn:s> <urn:p> "7"^^<http://www.w3.org/2001/XMLSchema#int> )>>')
    assert to_python(term) == ("urn:s", "urn:p", 7)
    assert to_python(iri("urn:é")) == "urn:é"
    assert to_python(Term("_:b0")) == "_:b0"
    assert to_python(literal('a "b"\n', language="en", direction="rtl")) == 'a "b"\n'
    assert to_python(literal("x", datatype="urn:t")) == "x"


VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False),
    st.datetimes(
        timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-3, minutes=-30))])
    ),
    st.dates(),
    st.times(timezones=st.sampled_from([None, UTC])),
    st.timedeltas(),
    st.binary(max_size=20),
    TEXT,
)


@given(VALUES)
def test_a_value_is_a_term_and_a_value_again(value: Any) -> None:
    term = literal(value)
    assert to_python(term) == value
    assert type(to_python(term)) is type(value)
    if not isinstance(value, str):
        assert as_term(value) == term == parse_term(term)


@given(VALUES)
def test_rdflib_reads_the_same_value(value: Any) -> None:
    term = rdflib.util.from_n3(literal(value))
    assert isinstance(term, rdflib.Literal)
    if isinstance(value, timedelta) and abs(value) > timedelta(days=1000):
        return  # rdflib counts microseconds in a float
    if not isinstance(value, (str, bytes)):
        assert term.toPython() == value


def test_values_that_are_no_literals() -> None:
    for value in (None, [], Decimal("NaN"), object()):
        with pytest.raises(WrongType, match="literal"):
            literal(value)
        with pytest.raises(UsageError, match="no term"):
            as_term(value)
    with pytest.raises(WrongType, match="literal"):
        literal(5, datatype=XSD + "byte")


def test_a_value_as_pyoxigraph_writes_it() -> None:
    for value in (True, 7, 0.5, math.inf, -math.inf):
        assert as_term(value) == str(ox.Literal(value))
    assert as_term(math.nan) == str(ox.Literal(math.nan))


def test_prefixes() -> None:
    prefixes = {"ex": "http://example.org/", "": "urn:default:"}
    assert iri("ex:a", prefixes=prefixes) == "<http://example.org/a>"
    assert iri(":a", prefixes=prefixes) == "<urn:default:a>"
    assert iri("http://example.org/a", prefixes=prefixes) == "<http://example.org/a>"
    assert iri("other:a", prefixes=prefixes) == "<other:a>"
    with pytest.raises(TermError, match="relative"):
        iri("a", prefixes=prefixes)

"""xsd:dateTime: its lexical space and its time line, against W3C's tables, Python's calendar and Oxigraph."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from construct_messages.rdf.terms import XSD
from construct_messages.rdf.terms.values import date_time_of, microseconds_of_date_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# from XML Schema 1.1 Part 2: 3.3.7 and its examples, appendix D.2.1; and what ISO 8601 and Python take beside it
NO_TIMES = [
    "20260101T000000Z",
    "2026-W01-1T00:00:00Z",
    "2026-001T00:00:00Z",
    "2026-01-01 00:00:00Z",
    "2026-01-01t00:00:00z",
    "2026-01-01T00:00Z",
    "2026-01-01T00Z",
    "2026-01-01T00:00:00+1400",
    "2026-01-01T00:00:00+14",
    "2026-01-01T00:00:00+14:01",
    "2026-01-01T00:00:00+15:00",
    "2026-01-01T00:00:00+00:00:30",
    "2026-01-01T00:00:00,5Z",
    "2026-01-01T00:00:00.Z",
    "2026-01-01T24:00:01Z",
    "2026-01-01T24:00:00.01Z",
    "2026-01-01T23:60:00Z",
    "2026-01-01T23:59:60Z",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "02026-01-01T00:00:00Z",
    "+2026-01-01T00:00:00Z",
    "226-01-01T00:00:00Z",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
    "٢٠٢٦-01-01T00:00:00Z",
    "2026-01-01",
    "2026-01-01Z",
    "",
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_date_time(text: str) -> None:
    assert microseconds_of_date_time(text) is None
    literal = ox.Literal(text, datatype=ox.NamedNode(f"{XSD}dateTime"))
    assert _of_oxigraph(literal) is None


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00", f"{'9' * 5000}-01-01T00:00:00Z"], ids=["no zone", "far"]
)
def test_what_is_not_on_the_time_line(text: str) -> None:
    assert microseconds_of_date_time(text) is None


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-01-01T24:00:00Z", "2026-01-02T00:00:00Z"),
        ("2025-12-31T24:00:00.000-00:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00+14:00", "2025-12-31T10:00:00Z"),
        ("2026-01-01T00:00:00-14:00", "2026-01-01T14:00:00Z"),
        ("2026-01-01T00:00:00.500Z", "2026-01-01T00:00:00.5Z"),
        ("0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
        ("-0004-02-29T00:00:00Z", "-0004-02-29T00:00:00Z"),
        ("12026-03-01T00:00:00+00:30", "12026-02-28T23:30:00Z"),
        ("999999999-12-31T23:59:59.999999Z", "999999999-12-31T23:59:59.999999Z"),
    ],
)
def test_the_same_instant(text: str, same: str) -> None:
    time = microseconds_of_date_time(text)
    assert time is not None
    assert (microseconds_of_date_time(same), date_time_of(time)) == (time, same)


def test_digits_behind_microseconds_are_cut() -> None:
    for text, expected in (
        ("1970-01-01T00:00:00.0000019Z", 1),
        ("1969-12-31T23:59:59.99999999Z", -1),
    ):
        assert microseconds_of_date_time(text) == expected


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_the_calendar_of_python(time: datetime) -> None:
    microseconds = (time - EPOCH) // MICROSECOND
    assert microseconds_of_date_time(time.isoformat()) == microseconds
    assert datetime.fromisoformat(date_time_of(microseconds)) == time


@given(st.integers(-(10**22), 10**22))
@example(-62_167_219_200_000_000)
def test_there_and_back(microseconds: int) -> None:
    assert microseconds_of_date_time(date_time_of(microseconds)) == microseconds


@given(st.integers(-(10**18), 10**18))
def test_agrees_with_the_calendar_of_oxigraph(microseconds: int) -> None:
    """And it is written as a store gives it back."""
    literal = ox.Literal(date_time_of(microseconds), datatype=ox.NamedNode(f"{XSD}dateTime"))
    assert _of_oxigraph(literal) == microseconds
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), literal))
    assert [quad.object for quad in store] == [literal]


def _of_oxigraph(literal: ox.Literal) -> int | None:
    """Microseconds since 1970 by SPARQL; None where the value is no dateTime."""
    epoch = f'"1970-01-01T00:00:00Z"^^<{XSD}dateTime>'
    query = f"SELECT (({literal} - {epoch}) AS ?d) {{}}"
    (row,) = ox.Store().query(query)  # type: ignore[misc] # a SELECT
    duration = row["d"]
    if duration is None:
        return None
    assert isinstance(duration, ox.Literal)
    return _duration(duration.value)


def _duration(text: str) -> int:
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    days, _, clock = text.removeprefix("P").partition("T")
    total = int(days.removesuffix("D") or 0) * 86_400 * 10**6
    for unit, scale in (("H", 3_600), ("M", 60), ("S", 1)):
        if unit in clock:
            number, _, clock = clock.partition(unit)
            whole, _, fraction = number.partition(".")
            total += int(whole) * scale * 10**6 + int(fraction.ljust(6, "0")[:6] or 0)
    return sign * total

"""The time of an element: when it was committed, or a time in its message.

A time is an xsd:dateTime with a zone; several forms of one instant are one time. No windows here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyoxigraph as ox

from construct_messages.query.tokens import QueryText
from construct_messages.rdf.errors import QueryError, UsageError
from construct_messages.rdf.options import UNION
from construct_messages.rdf.terms.date_times import TYPES, microseconds_of_date_time
from construct_messages.sparql.engine.query import StoreQuery
from construct_messages.streams.element import Element, generated_at

ARRIVAL = "arrival"
GENERATED = "generated"

TimeOf: TypeAlias = Callable[[Element], int | None]
"""A function for the time of an element, in microseconds since 1970 in UTC; None if it has none, or several."""


def time_of(time: str, query: str) -> TimeOf:
    """Returns a function for the time of elements.

    Args:
        time: see `WindowOptions`.
        query: its prefixes apply to a property path.

    Raises:
        UsageError: `time` is not a property path.

    >>> quad = b'<urn:o> <urn:at> "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    >>> element = Element("s", 1, 7, quad)
    >>> time_of("arrival", "")(element), time_of("<urn:at>", "")(element), time_of("<urn:seen>/<urn:at>", "")(element)
    (7, 1000000, None)
    """
    if time == ARRIVAL:
        return _arrival
    if time == GENERATED:
        return _generated
    return _Path(time, query)


def _arrival(element: Element) -> int:
    return element.microseconds


def _generated(element: Element) -> int | None:
    text = element.generated or generated_at(element.message)
    return None if text is None else microseconds_of_date_time(text)


class _Path:
    """Finds the only time at the end of a property path from any node of a message, in any of its graphs."""

    def __init__(self, path: str, query: str) -> None:
        self._query = StoreQuery(
            f"{_prologue(query)} SELECT DISTINCT ?time {{ ?node ({path}) ?time }}"
        )
        try:
            self._query.begin(ox.Store())
        except SyntaxError as error:
            raise UsageError(
                f"time={path!r} is not a property path: {error}",
                hint='use "arrival", "generated" or a path, such as <http://www.w3.org/ns/sosa/resultTime>',
            ) from error

    def __call__(self, element: Element) -> int | None:
        store = ox.Store()
        store.load(element.nquads, format=ox.RdfFormat.N_QUADS, lenient=True)
        instants: set[int | None] = set()
        for row in self._query.begin(store, (UNION,)):  # type: ignore[union-attr] # a SELECT
            time = row["time"]
            is_time = isinstance(time, ox.Literal) and time.datatype.value in TYPES
            instants.add(microseconds_of_date_time(time.value) if is_time else None)
            if len(instants) > 1:
                return None
        return instants.pop() if instants else None


def _prologue(query: str) -> str:
    """The declarations of a query, without comments."""
    declared: list[str] = []
    try:
        tokens = QueryText.of(query).tokens
    except QueryError:
        return ""
    for index, token in enumerate(tokens):
        if token.keyword in ("CONSTRUCT", "SELECT"):
            break
        declared.append(tokens[index].text)
    return " ".join(declared)

"""Aggregates of groups whose values change: COUNT, SUM, AVG, MIN and MAX.

SPARQL 1.1 Query, section 18.5.1 (set functions). Sums of integers and decimals are exact, so that values can be
subtracted again. Sums of other numbers depend on their order, and values of several types are not ordered: the query is
then no longer maintained.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from heapq import heapify, heappop, heappush
from typing import Any, Final

from construct_messages.continuous.incremental.expressions import (
    Moment,
    NotMaintained,
    Text,
    Undecided,
    value_of,
)
from construct_messages.query.algebra.nodes import Aggregation
from construct_messages.rdf.terms import XSD

_MOST: Final = 10**18  # sums below it do not overflow in the engine, in any order of the values
_FRACTION: Final = 10**18  # the digits of a decimal in the engine
_SPARE: Final = 16
_INTEGER: Final = f'"^^<{XSD}integer>'
_DECIMAL: Final = f'"^^<{XSD}decimal>'


class Count:
    """COUNT: the number of bound values."""

    def __init__(self) -> None:
        self._count = 0

    def change(self, term: str, count: int) -> None:
        """Adds a number of equal values; a negative number removes them."""
        if term:
            self._count += count

    @property
    def result(self) -> str:
        """The value of the aggregate; the empty string is unbound."""
        return f'"{self._count}{_INTEGER}'


class Sum:
    """SUM and AVG of integers and decimals.

    Args:
        average: whether it is AVG.

    >>> mean = Sum(average=True)
    >>> for value in (1, 2, 2): mean.change(f'"{value}"^^<{XSD}integer>', 1)
    >>> mean.result
    '"1.666666666666666666"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """

    def __init__(self, *, average: bool = False) -> None:
        self._average = average
        self._sum = self._magnitude = Decimal(0)
        self._integers = self._magnitude_of_integers = 0
        self._count = self._decimals = 0

    def change(self, term: str, count: int) -> None:
        """Adds a number of equal values; a negative number removes them.

        Raises:
            NotMaintained: the value is neither an integer nor a decimal, or the sum is very large.
        """
        try:
            value = value_of(term)
        except Undecided:
            value = None
        if type(value) is int:
            self._integers += value * count
            self._magnitude_of_integers += abs(value) * count
        elif type(value) is Decimal:
            self._decimals += count
            self._sum += value * count
            self._magnitude += abs(value) * count
        else:
            raise NotMaintained("SUM or AVG of other values than integers and decimals")
        self._count += count
        if self._magnitude_of_integers >= _MOST or self._magnitude >= _MOST:
            raise NotMaintained("SUM or AVG of very large numbers")

    @property
    def result(self) -> str:
        """The value of the aggregate; the empty string is unbound."""
        if not self._count:
            return f'"0{_INTEGER}'
        if not self._average and not self._decimals:
            return f'"{self._integers}{_INTEGER}'
        digits = int(self._sum * _FRACTION) + self._integers * _FRACTION
        if self._average:  # the engine truncates further digits
            digits = abs(digits) // self._count * (1 if digits >= 0 else -1)
        whole, fraction = divmod(abs(digits), _FRACTION)
        text = f"{whole}.{fraction:018}".rstrip("0").rstrip(".")
        return f'"{"-" if digits < 0 else ""}{text}{_DECIMAL}'


class Extreme:
    """MIN and MAX of values of one type.

    Args:
        largest: whether it is MAX.

    >>> largest = Extreme(largest=True)
    >>> for value in ("a", "c", "b"): largest.change(f'"{value}"', 1)
    >>> largest.change('"c"', -1)
    >>> largest.result
    '"b"'
    """

    def __init__(self, *, largest: bool) -> None:
        self._key: Callable[[Any], Any] = _Descending if largest else _itself
        self._counts: dict[str, int] = {}
        self._heap: list[tuple[Any, str]] = []  # some of them may have been removed
        self._kind: object = None

    def change(self, term: str, count: int) -> None:
        """Adds a number of equal values; a negative number removes them.

        Raises:
            NotMaintained: its type differs from the others, or its order is unknown here.
        """
        before = self._counts.get(term, 0)
        if before + count:
            self._counts[term] = before + count
        else:
            del self._counts[term]
        if before or count < 0:
            return
        kind, value = _ordered(term)
        if len(self._counts) == 1:
            self._heap, self._kind = [], kind
        if kind != self._kind:
            raise NotMaintained("MIN or MAX of values of several types")
        if len(self._heap) > 2 * len(self._counts) + _SPARE:
            left = {known: key for key, known in self._heap if known in self._counts}
            self._heap = [(key, known) for known, key in left.items()]
            heapify(self._heap)
        heappush(self._heap, (self._key(value), term))

    @property
    def result(self) -> str:
        """The value of the aggregate; the empty string is unbound."""
        while self._heap and self._heap[0][1] not in self._counts:
            heappop(self._heap)
        return self._heap[0][1] if self._heap else ""


class DistinctAggregate:
    """An aggregate that counts equal terms once.

    Args:
        aggregate: the aggregate.
    """

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._counts: dict[str, int] = {}

    def change(self, term: str, count: int) -> None:
        """Adds a number of equal values; a negative number removes them.

        Raises:
            NotMaintained: see `aggregate`.
        """
        before = self._counts.get(term, 0)
        if now := before + count:
            self._counts[term] = now
        else:
            self._counts.pop(term, None)
        if (now > 0) != (before > 0):
            self._aggregate.change(term, 1 if now > 0 else -1)

    @property
    def result(self) -> str:
        """The value of the aggregate; the empty string is unbound."""
        return self._aggregate.result


Aggregate = Count | Sum | Extreme | DistinctAggregate


def aggregate_of(aggregation: Aggregation) -> Aggregate:
    """Returns the state of an aggregate without values.

    Args:
        aggregation: COUNT, SUM, AVG, MIN or MAX.
    """
    made: Aggregate
    match aggregation.name:
        case "COUNT":
            made = Count()
        case "SUM" | "AVG":
            made = Sum(average=aggregation.name == "AVG")
        case _:
            return Extreme(largest=aggregation.name == "MAX")  # DISTINCT changes nothing
    return DistinctAggregate(made) if aggregation.distinct else made


class _Descending:
    """A value with reversed order."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(other.value == self.value)

    __hash__ = None  # type: ignore[assignment] # it is only ordered


def _itself(value: Any) -> Any:
    return value


def _ordered(term: str) -> tuple[object, Any]:
    """Returns the type of a value, and its sort key among the values of this type.

    Raises:
        NotMaintained: its order is unknown here.
    """
    try:
        value = value_of(term)
    except Undecided:
        value = None
    if type(value) in (int, Decimal, float, Moment, Text):
        return type(value), value
    raise NotMaintained("MIN or MAX of values with an order of the engine")

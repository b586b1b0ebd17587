"""Operators over counted rows: each turns the changes of its operands' rows into the changes of its own.

SPARQL 1.1 Query, section 18.5: the solutions of a pattern are a multiset. A change is a row with the difference of its
count. Joins, unions and projections are linear: they pass changes on one by one, also those that cancel each other out.
What depends on whether a row is there at all (OPTIONAL, MINUS, EXISTS, DISTINCT, groups) first adds up its changes.
`maintenance.py` composes the operators. Delta rules: Gupta, Mumick, Subrahmanian, "Maintaining Views Incrementally"
(1993).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Enum
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from construct_messages.continuous.expressions import (
    Counted,
    Moment,
    NotMaintained,
    Row,
    Step,
    Steps,
    Text,
    Undecided,
    value_of,
)
from construct_messages.query.algebra.calls import mentioned
from construct_messages.query.algebra.nodes import Aggregation, Expression, Var
from construct_messages.rdf.terms import XSD

# --- aggregates -----------------------------------------------------------------------------------
# Aggregates of groups whose values change: COUNT, SUM, AVG, MIN and MAX.
#
# SPARQL 1.1 Query, section 18.5.1 (set functions). Sums of integers and decimals are exact, so that values can be
# subtracted again. Sums of other numbers depend on their order, and values of several types are not ordered: the
# query is then no longer maintained.

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
        """Adds a number of equal values; a negative number removes them. See `NotMaintained`."""
        if term:
            self._count += count

    @property
    def result(self) -> str:
        """The value of the aggregate; the empty string is unbound."""
        return f'"{self._count}{_INTEGER}'


class Sum:
    """SUM, or AVG, of integers and decimals.


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
        """Adds a number of equal values; a negative number removes them. See `NotMaintained`."""
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
    """MIN, or MAX, of values of one type.


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
        """Adds a number of equal values; a negative number removes them. See `NotMaintained`."""
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
    """An aggregate that counts equal terms once."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._counts: dict[str, int] = {}

    def change(self, term: str, count: int) -> None:
        """Adds a number of equal values; a negative number removes them. See `NotMaintained`."""
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
    """Returns the state of an aggregate without values."""
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
    """Returns the type of a value, and its sort key among the values of this type."""
    try:
        value = value_of(term)
    except Undecided:
        value = None
    if type(value) in (int, Decimal, float, Moment, Text):
        return type(value), value
    raise NotMaintained("MIN or MAX of values with an order of the engine")


# --- operators ------------------------------------------------------------------------------------

Names: TypeAlias = "tuple[str, ...]"
Test: TypeAlias = Callable[[Row], bool]


class CountedRows:
    """A part of a plan, which keeps what it needs to know of its operands' rows.

    Args:
        names: the variables of its rows.
        certain: those that are bound in all rows.

    Attributes:
        is_net: whether `changes` returns each row once.
        is_set: whether no row is there several times.
    """

    is_net = is_set = False

    def __init__(self, names: Names, certain: frozenset[str]) -> None:
        self.names, self.certain = names, certain.intersection(names)

    def changes(self) -> list[Counted]:
        """Returns the changes of its rows since the last call; at first, all of its rows."""
        raise NotImplementedError


def netted(operator: CountedRows) -> list[Counted]:
    """The changes of an operator with one change for each row."""
    rows = operator.changes()
    return rows if operator.is_net or len(rows) < 2 else net(rows)


def net(rows: Iterable[Counted]) -> list[Counted]:
    """Adds up the changes of each row.

    >>> net([(("a",), 1), (("b",), 2), (("a",), -1)])
    [(('b',), 2)]
    """
    counts: dict[Row, int] = {}
    get = counts.get
    for row, count in rows:
        counts[row] = get(row, 0) + count
    return [counted for counted in counts.items() if counted[1]]


# --- relations ------------------------------------------------------------------------------------

Bucket: TypeAlias = "Row | dict[Row, int]"
Take: TypeAlias = Callable[[Row], Any]


def taking(columns: Sequence[int]) -> Take:
    """Returns a function for the values of some columns: () for none, the value itself for one, a tuple for several.

    >>> taking([1])(("a", "b")), taking([1, 0])(("a", "b")), taking([])(("a", "b"))
    ('b', ('b', 'a'), ())
    """
    if not columns:
        return lambda _: ()
    return cast(Take, itemgetter(*columns))


def picking(columns: Sequence[int]) -> Callable[[Row], Row]:
    """Returns a function for the row of some columns."""
    if len(columns) == 1:
        (column,) = columns
        return cast("Callable[[Row], Row]", itemgetter(slice(column, column + 1)))
    return taking(columns)


def projection(names: Names, wanted: Names) -> Callable[[Row], Row] | None:
    """Returns a function for the values of some variables; missing ones are unbound. None: the rows have just these.

    >>> projection(("x", "y"), ("y", "z"))(('"1"', '"2"'))
    ('"2"', '')
    """
    if names == wanted:
        return None
    if all(name in names for name in wanted):
        return picking([names.index(name) for name in wanted])
    columns = [names.index(name) if name in names else None for name in wanted]
    return lambda row: tuple("" if column is None else row[column] for column in columns)


class IndexedRelation:
    """Rows with their counts, found by hash indexes: a change costs what it meets, not what is there.

    >>> relation = IndexedRelation(("s", "o"))
    >>> found = relation.finder(("o",))
    >>> relation.add([(("<urn:a>", '"1"'), 1), (("<urn:b>", '"1"'), 2), (("<urn:a>", '"1"'), -1)])
    >>> list(found('"1"')), list(found('"2"'))
    ([(('<urn:b>', '"1"'), 2)], [])
    """

    __slots__ = ("_indexes", "names")

    def __init__(self, names: Names) -> None:
        self.names = names
        self._indexes: dict[Names, tuple[Take, dict[Any, Bucket]]] = {}

    def buckets(self, names: Names) -> Callable[[Any], Bucket | None]:
        """Returns a function for the rows with some values, see `taking`: one that is there once, several with their
        counts, or None. Call this before adding the first row.
        """
        if names not in self._indexes:
            self._indexes[names] = (taking([self.names.index(name) for name in names]), {})
        return self._indexes[names][1].get

    def finder(self, names: Names) -> Callable[[Any], Collection[Counted]]:
        """Returns a function for the rows with some values and their counts; see `buckets`."""
        bucket_of = self.buckets(names)

        def find(key: Any) -> Collection[Counted]:
            found = bucket_of(key)
            if found is None:
                return ()
            # most keys have one row, counted once, which takes less memory than a collection of one
            return ((found, 1),) if type(found) is tuple else cast("dict[Row, int]", found).items()

        return find

    def count(self, row: Row) -> int:
        """The number of times that a row is there."""
        take, index = next(iter(self._indexes.values()))
        found = index.get(take(row))
        if found is None or type(found) is tuple:
            return int(found == row)
        return cast("dict[Row, int]", found).get(row, 0)

    def add(self, rows: Iterable[Counted]) -> None:
        """Changes the counts of rows."""
        for take, index in self._indexes.values():
            for row, count in rows:
                key = take(row)
                found = index.get(key)
                if found is None:
                    index[key] = row if count == 1 else {row: count}
                    continue
                if type(found) is tuple:
                    if count == -1 and found == row:
                        del index[key]
                        continue
                    found = index[key] = {found: 1}
                counts = cast("dict[Row, int]", found)
                if now := counts.get(row, 0) + count:
                    counts[row] = now
                    continue
                del counts[row]
                if not counts:
                    del index[key]


class Pairing:
    """How rows of two relations are compared and merged (section 18.3, compatible mappings).

    Rows are found by the variables that both sides always bind, the `key`. The other shared ones may be unbound on
    either side; an unbound variable is compatible with every value, which no index can find. `shared` has the columns
    of each shared variable, `names` those of merged rows, and `more` takes the values that a right row adds.
    """

    def __init__(
        self, names: Names, certain: Container[str], right: Names, right_certain: Container[str]
    ) -> None:
        self.shared = {
            name: (names.index(name), right.index(name)) for name in right if name in names
        }
        self.key = tuple(name for name in self.shared if name in certain and name in right_certain)
        self.take = taking([self.shared[name][0] for name in self.key])
        new = [place for place, name in enumerate(right) if name not in self.shared]
        self.names: Names = (*names, *(right[place] for place in new))
        self._unsure = [self.shared[name] for name in self.shared if name not in self.key]
        self.is_sure = not self._unsure
        self.more = picking(new)

    def merge(self, row: Row, other: Row) -> Row | None:
        """Returns both rows as one; None if they are not compatible. They agree about the key."""
        merged: list[str] | None = None
        for place, place_other in self._unsure:
            value = other[place_other]
            if value and row[place] != value:
                if row[place]:
                    return None
                merged = merged or list(row)
                merged[place] = value
        return (row if merged is None else tuple(merged)) + self.more(other)


# --- leaves ---------------------------------------------------------------------------------------


class ScannedRows(CountedRows):
    """The matches of a triple pattern: changes are put into `pending` as quads appear and vanish."""

    is_net = is_set = True  # a row has all variables of the pattern, so it is the match of one quad

    def __init__(self, names: Names) -> None:
        super().__init__(names, frozenset(names))
        self.pending: list[Counted] = []

    def changes(self) -> list[Counted]:
        rows, self.pending = self.pending, []
        return rows


class TableRows(CountedRows):
    """Inline data, which never changes after it has appeared."""

    is_net = True

    def __init__(self, names: Names, certain: frozenset[str], rows: Iterable[Row]) -> None:
        super().__init__(names, certain)
        self._rows = net((row, 1) for row in rows)

    def changes(self) -> list[Counted]:
        rows, self._rows = self._rows, []
        return rows


# --- linear operators -----------------------------------------------------------------------------


_Find: TypeAlias = Callable[[Any], "Bucket | None"]
_Pick: TypeAlias = Callable[[Row], Row]
_Merge: TypeAlias = Callable[[Row, Row], "Row | None"]


class _Way(NamedTuple):
    """How a row of one operand becomes rows of the join."""

    steps: Sequence[tuple[Take, _Find, _Pick | None, _Merge | None]]
    order: _Pick | None


class JoinedRows(CountedRows):
    """The join of operands, with the variables `needed` only. `test` creates the filter of rows from their
    variables."""

    def __init__(
        self,
        operands: Sequence[CountedRows],
        test: Callable[[Names], Test | None],
        needed: Container[str] | None = None,
    ) -> None:
        every = tuple(dict.fromkeys(name for each in operands for name in each.names))
        kept = tuple(name for name in every if needed is None or name in needed)
        super().__init__(kept, frozenset().union(*(each.certain for each in operands)))
        self._operands = operands
        self._relations = [IndexedRelation(each.names) for each in operands]
        self._ways = [self._way(number) for number in range(len(operands))]
        self._test = test(self.names)
        is_sure = all(merge is None for way in self._ways for *_, merge in way.steps)
        self.is_set = kept == every and is_sure and all(each.is_set for each in operands)
        # each combination of rows then comes or goes once, see `changes`
        self.is_net = self.is_set and all(each.is_net for each in operands)

    def changes(self) -> list[Counted]:
        # not list[Counted](), which takes as long as two steps of a join with few rows
        found: list[Counted] = []
        later: list[tuple[int, list[Counted]]] = []
        # the rows that leave any operand go first, so that they do not meet those that enter
        for number, operand in enumerate(self._operands):
            if rows := operand.changes():
                leaving: list[Counted] = []
                entering: list[Counted] = []
                for counted in rows:
                    (leaving if counted[1] < 0 else entering).append(counted)
                if leaving:
                    self._relations[number].add(leaving)
                    found += self._combinations(number, leaving)
                if entering:
                    later.append((number, entering))
        for number, entering in later:
            self._relations[number].add(entering)
            found += self._combinations(number, entering)
        test = self._test
        return found if test is None else [counted for counted in found if test(counted[0])]

    def _combinations(self, number: int, rows: list[Counted]) -> list[Counted]:
        """The combinations of rows of one operand with the present rows of the others.

        Where a window moves by one message, there is one row, which mostly meets one or none.
        """
        steps, order = self._ways[number]
        for take, find, more, merge in steps:
            found: list[Counted] = []
            for row, count in rows:
                bucket = find(take(row))
                if bucket is None:
                    continue
                if type(bucket) is tuple:
                    if more is None:
                        found.append((row, count))
                    elif merge is None:
                        found.append((row + more(bucket), count))
                    elif (merged := merge(row, bucket)) is not None:
                        found.append((merged, count))
                    continue
                others = bucket.items()  # type: ignore[union-attr] # it is a dict
                if more is None:
                    if total := sum([times for _, times in others]):
                        found.append((row, count * total))
                elif merge is None:
                    found += [(row + more(other), count * times) for other, times in others]
                else:
                    found += [
                        (merged, count * times)
                        for other, times in others
                        if (merged := merge(row, other)) is not None
                    ]
            if not found:
                return found
            rows = found
        return rows if order is None else [(order(row), count) for row, count in rows]

    def _way(self, first: int) -> _Way:
        operands, wanted = self._operands, frozenset(self.names)
        names, certain = operands[first].names, operands[first].certain
        left = [number for number in range(len(operands)) if number != first]
        steps = []
        while left:
            number = max(left, key=lambda number: _selectivity(operands[number].names, names))
            left.remove(number)
            operand = operands[number]
            pairing = Pairing(names, certain, operand.names, operand.certain)
            later = wanted.union(*(operands[other].names for other in left))
            # where nothing of the matches is read any more, their number is enough
            is_read = not pairing.is_sure or any(
                name in later and name not in names for name in operand.names
            )
            find = self._relations[number].buckets(pairing.key)
            merge = None if pairing.is_sure else pairing.merge
            steps.append((pairing.take, find, pairing.more if is_read else None, merge))
            if is_read:
                names, certain = pairing.names, certain | operand.certain
        return _Way(steps, projection(names, self.names))


def _selectivity(names: Names, known: Names) -> tuple[int, int]:
    """Operands with fewer remaining columns have fewer matches; among them, those that share columns come first."""
    shared = sum(name in known for name in names)
    return (shared - len(names) if shared else -len(names) - 1, shared)


class UnitedRows(CountedRows):
    """UNION: the rows of all operands; also a projection, if there is one operand."""

    def __init__(
        self, operands: Sequence[CountedRows], names: Names, certain: frozenset[str]
    ) -> None:
        super().__init__(names, certain)
        self._operands = [(each, projection(each.names, names)) for each in operands]
        if len(operands) == 1 and operands[0].names == names:
            self.is_net, self.is_set = operands[0].is_net, operands[0].is_set

    def changes(self) -> list[Counted]:
        found: list[Counted] = []
        for operand, project in self._operands:
            rows = operand.changes()
            found += rows if project is None else [(project(row), count) for row, count in rows]
        return found


class SteppedRows(CountedRows):
    """FILTER and BIND: applies steps to each row."""

    is_net = True

    def __init__(
        self, operand: CountedRows, steps: Sequence[Step], certain: frozenset[str]
    ) -> None:
        self._operand = operand
        self._steps = Steps(steps, operand.names)
        super().__init__(self._steps.names, certain)
        self.is_set = operand.is_set

    def changes(self) -> list[Counted]:
        rows = netted(self._operand)
        return self._steps.made(rows) if rows else rows


# --- operators that ask whether rows are there ----------------------------------------------------


class DistinctRows(CountedRows):
    """Each row once."""

    is_net = is_set = True

    def __init__(self, operand: CountedRows) -> None:
        super().__init__(operand.names, operand.certain)
        self._operand = operand
        self._counts: dict[Row, int] = {}

    def changes(self) -> list[Counted]:
        found: list[Counted] = []
        counts = self._counts
        for row, count in netted(self._operand):
            before = counts.get(row, 0)
            if now := before + count:
                counts[row] = now
            else:
                del counts[row]
            if (now > 0) != (before > 0):
                found.append((row, 1 if now else -1))
        return found


class Dependence(Enum):
    """How a row depends on matches in another operand."""

    OPTIONAL = "OPTIONAL"
    """It is extended by each match, or unchanged without a match."""
    MINUS = "MINUS"
    """It is left out if there is a match: MINUS, NOT EXISTS."""
    EXISTS = "EXISTS"
    """It is left out if there is no match."""


class DependentRows(CountedRows):
    """Rows of the left operand that depend on matches in the right one.

    `condition` creates the filter of merged rows from their variables. A match must bind one of the variables
    `sharing`.
    """

    def __init__(
        self,
        kind: Dependence,
        left: CountedRows,
        right: CountedRows,
        condition: Callable[[Names], Test] | None = None,
        sharing: frozenset[str] | None = None,
    ) -> None:
        pairing = Pairing(left.names, left.certain, right.names, right.certain)
        super().__init__(pairing.names if kind is Dependence.OPTIONAL else left.names, left.certain)
        self._kind, self._left, self._right = kind, left, right
        self._rows, self._others = IndexedRelation(left.names), IndexedRelation(right.names)
        self._of_row, self._of_other = (
            self._rows.finder(pairing.key),
            self._others.finder(pairing.key),
        )
        self._key = pairing.take
        self._key_of_other = taking([right.names.index(name) for name in pairing.key])
        self._nothing = ("",) * (len(pairing.names) - len(left.names))
        self._match = _matching(pairing, condition, sharing)
        self.is_set = kind is not Dependence.OPTIONAL and left.is_set

    def changes(self) -> list[Counted]:
        found: list[Counted] = []
        rows, others = netted(self._left), netted(self._right)
        # in this order, as few rows as possible come only to go again
        for row, count in rows:
            if count < 0:
                self._change(row, count, found)
        for entering in (False, True):
            for other, count in others:
                if (count > 0) is entering:
                    self._change_other(other, count, found)
        for row, count in rows:
            if count > 0:
                self._change(row, count, found)
        return found

    def _change(self, row: Row, count: int, found: list[Counted]) -> None:
        """A row is there more or less often."""
        self._rows.add(((row, count),))
        matches = self._matches(row)
        first = next(matches, None)
        if self._kind is not Dependence.OPTIONAL:
            if (first is None) is (self._kind is Dependence.MINUS):
                found.append((row, count))
        elif first is None:
            found.append((row + self._nothing, count))
        else:
            found.append((first[0], count * first[1]))
            found += ((merged, count * times) for merged, times in matches)

    def _change_other(self, other: Row, count: int, found: list[Counted]) -> None:
        """A row that others depend on is there more or less often."""
        kind, before = self._kind, self._others.count(other)
        turns = before == 0 or before + count == 0  # it comes or goes
        if count < 0:
            self._others.add(((other, count),))
        if turns or kind is Dependence.OPTIONAL:
            for row, times in self._of_row(self._key_of_other(other)):
                merged = self._match(row, other)
                if merged is None:
                    continue
                # `other` is not among the matches now, whether it comes or goes
                is_only = turns and next(self._matches(row), None) is None
                if kind is Dependence.OPTIONAL:
                    found.append((merged, times * count))
                    if is_only:
                        found.append((row + self._nothing, -times if count > 0 else times))
                elif is_only:
                    appears = (count > 0) is (kind is Dependence.EXISTS)
                    found.append((row, times if appears else -times))
        if count > 0:
            self._others.add(((other, count),))

    def _matches(self, row: Row) -> Iterator[Counted]:
        for other, times in self._of_other(self._key(row)):
            merged = self._match(row, other)
            if merged is not None:
                yield merged, times


def _matching(
    pairing: Pairing,
    condition: Callable[[Names], Test] | None,
    sharing: frozenset[str] | None,
) -> Callable[[Row, Row], Row | None]:
    """Returns a function for two rows as one; None if the second is no match of the first. See `DependentRows`."""
    test = None if condition is None else condition(pairing.names)
    merge, more = pairing.merge, pairing.more
    if sharing is not None and sharing.isdisjoint(pairing.key):
        shared = [pairing.shared[name] for name in sharing if name in pairing.shared]

        def shared_match(row: Row, other: Row) -> Row | None:
            found = any(row[place] and other[place_other] for place, place_other in shared)
            return merge(row, other) if found else None

        assert test is None  # MINUS has no condition on both rows
        return shared_match

    def match(row: Row, other: Row) -> Row | None:
        merged = merge(row, other)
        return merged if merged is None or test is None or test(merged) else None

    def sure_match(row: Row, other: Row) -> Row | None:
        merged = row + more(other)
        return merged if test is None or test(merged) else None

    return sure_match if pairing.is_sure else match


class _Members:
    """The state of a group: the number of its rows, and its aggregates."""

    __slots__ = ("aggregates", "count", "row")

    def __init__(self, aggregates: list[Aggregate]) -> None:
        self.aggregates = aggregates
        self.count = 0
        self.row: Row | None = None  # the row that was passed on


class GroupedRows(CountedRows):
    """GROUP BY (sections 11 and 18.5): a row for each group, of its keys and aggregates.

    Without keys, there is always one group.
    """

    is_net = is_set = True

    def __init__(
        self,
        operand: CountedRows,
        keys: Sequence[Var],
        aggregates: Sequence[tuple[Var, Aggregation]],
        certain: frozenset[str],
    ) -> None:
        names = (*(key.name for key in keys), *(variable.name for variable, _ in aggregates))
        super().__init__(names, certain)
        arguments = [one.argument for _, one in aggregates if one.argument is not None]
        read = [variable.name for argument in arguments for variable in mentioned(argument)]
        wanted = tuple(dict.fromkeys((*names[: len(keys)], *read)))
        self._operand = UnitedRows([operand], wanted, operand.certain)
        computed = {
            argument: Var(f".c{place}")
            for place, argument in enumerate(arguments)
            if not isinstance(argument, Var)
        }
        self._before = Steps([(variable, one) for one, variable in computed.items()], wanted)
        column = self._before.names.index

        def column_of(argument: Expression) -> int:
            return column((argument if isinstance(argument, Var) else computed[argument]).name)

        self._columns = [
            None if one.argument is None else column_of(one.argument) for _, one in aggregates
        ]
        self._key = picking([column(key.name) for key in keys])
        self._aggregations = [one for _, one in aggregates]
        self._groups: dict[Row, _Members] = {}
        self._changed: dict[Row, _Members] = {}
        self._is_single = not keys
        if self._is_single:
            self._changed[()] = self._group(())

    def changes(self) -> list[Counted]:
        changed, columns = self._changed, self._columns
        for row, count in self._before.made(netted(self._operand)):
            key = self._key(row)
            group = changed[key] = self._groups.get(key) or self._group(key)
            group.count += count
            for column, aggregate in zip(columns, group.aggregates, strict=True):
                aggregate.change("*" if column is None else row[column], count)
        found: list[Counted] = []
        for key, group in changed.items():
            before, now = group.row, None
            if group.count or self._is_single:
                now = (*key, *(aggregate.result for aggregate in group.aggregates))
            else:
                del self._groups[key]
            if before != now:
                found += [(row, sign) for row, sign in ((before, -1), (now, 1)) if row is not None]
            group.row = now
        changed.clear()
        return found

    def _group(self, key: Row) -> _Members:
        group = self._groups[key] = _Members([aggregate_of(one) for one in self._aggregations])
        return group

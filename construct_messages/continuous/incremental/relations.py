"""Relations whose rows change, and their joins by difference.

Adding or removing a row of one relation changes a join by its combinations with the current rows of the others. Rows
are found by hash indexes, so that the cost of a change depends on the number of combinations, not on the number of
rows. Delta rules of joins: Gupta, Mumick, Subrahmanian, "Maintaining Views Incrementally" (1993). No SPARQL here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias, cast

from construct_messages.continuous.incremental.plan import Row

Names: TypeAlias = "tuple[str, ...]"
Bucket: TypeAlias = "Row | dict[Row, None]"
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
        return lambda row: (row[column],)
    return taking(columns)


class IndexedRelation:
    """A set of rows.

    Args:
        variables: the names of its columns.

    >>> relation = IndexedRelation(("s", "o"))
    >>> found = relation.finder(("o",))
    >>> relation.insert(("<urn:a>", '"1"')); relation.insert(("<urn:b>", '"1"')); relation.remove(("<urn:a>", '"1"'))
    >>> list(found('"1"')), list(found('"2"'))
    ([('<urn:b>', '"1"')], [])
    """

    __slots__ = ("_indexes", "variables")

    def __init__(self, variables: Names) -> None:
        self.variables = variables
        self._indexes: dict[Names, tuple[Take, dict[Any, Bucket]]] = {}

    def finder(self, names: Names) -> Callable[[Any], Iterable[Row]]:
        """Returns a function for the rows with some values, see `taking`; call this before adding the first row."""
        if names not in self._indexes:
            self._indexes[names] = (taking([self.variables.index(name) for name in names]), {})
        index = self._indexes[names][1]

        def find(key: Any) -> Iterable[Row]:
            found = index.get(key)
            if found is None:
                return ()
            # most keys have one row, which takes less memory than a collection of one
            return (found,) if type(found) is tuple else cast("dict[Row, None]", found)

        return find

    def insert(self, row: Row) -> None:
        """Adds a row, which must be new."""
        for take, index in self._indexes.values():
            key = take(row)
            found = index.get(key)
            if found is None:
                index[key] = row
            elif type(found) is tuple:
                index[key] = {found: None, row: None}
            else:
                cast("dict[Row, None]", found)[row] = None

    def remove(self, row: Row) -> None:
        """Removes a row, which must exist."""
        for take, index in self._indexes.values():
            key = take(row)
            found = index[key]
            if type(found) is tuple:
                del index[key]
                continue
            rows = cast("dict[Row, None]", found)
            del rows[row]
            if not rows:
                del index[key]


class IncrementalJoin:
    """The natural join of relations.

    Args:
        relations: at least one.
        needed: the names of the columns of the combinations; None: all.

    Attributes:
        variables: these names, in the order of the relations.

    >>> left, right = IndexedRelation(("s", "x")), IndexedRelation(("x", "o"))
    >>> join = IncrementalJoin([left, right])
    >>> left.insert(("<urn:a>", "<urn:x>"))
    >>> join.rows_of(1, ("<urn:x>", '"1"'))
    [('<urn:a>', '<urn:x>', '"1"')]
    """

    def __init__(
        self, relations: Sequence[IndexedRelation], needed: Container[str] | None = None
    ) -> None:
        self._relations = relations
        self.variables: Names = tuple(
            name
            for name in dict.fromkeys(name for each in relations for name in each.variables)
            if needed is None or name in needed
        )
        self._ways = [self._way(number) for number in range(len(relations))]

    def rows_of(self, number: int, row: Row) -> list[Row]:
        """Returns the combinations of a row of one relation with the current rows of the others."""
        steps, pick = self._ways[number]
        rows = [row]
        for take, find, more in steps:
            if more is None:
                rows = [row for row in rows if find(take(row))]
            else:
                rows = [row + more(other) for row in rows for other in find(take(row))]
            if not rows:
                return rows
        return rows if pick is None else list(map(pick, rows))

    def _way(
        self, first: int
    ) -> tuple[
        list[tuple[Take, Callable[[Any], Iterable[Row]], Callable[[Row], Row] | None]],
        Callable[[Row], Row] | None,
    ]:
        """The steps from a row of one relation to rows of the join, and the function that orders their columns."""
        names = self._relations[first].variables
        left = [relation for number, relation in enumerate(self._relations) if number != first]
        steps = []
        while left:
            relation = max(left, key=lambda relation: _selectivity(relation.variables, names))
            left.remove(relation)
            shared = tuple(name for name in relation.variables if name in names)
            new = [name for name in relation.variables if name not in names]
            steps.append(
                (
                    taking([names.index(name) for name in shared]),
                    relation.finder(shared),
                    picking([relation.variables.index(name) for name in new]) if new else None,
                )
            )
            names += tuple(new)
        order = [names.index(name) for name in self.variables]
        return steps, None if order == list(range(len(names))) else picking(order)


def _selectivity(variables: Names, known: Names) -> tuple[int, int]:
    """Relations with fewer remaining columns have fewer matches; among them, those that share columns come first."""
    shared = sum(name in known for name in variables)
    return (shared - len(variables) if shared else -len(variables) - 1, shared)

"""The differences between engines: their SQL, and how they compute. The rest of a plan is the same text for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Function = Callable[[Iterable[Sequence[Any]]], list[Any]]
"""A function of Python: the values of rows. It may be pickled."""


class Dialect(Protocol):
    """The SQL of one engine."""

    @property
    def null(self) -> str:
        """An unbound variable: NULL of the type of strings."""
        ...

    def text(self, value: str) -> str:
        """A string literal."""
        ...

    def array(self, *values: str) -> str: ...

    def explode(self, array: str) -> str:
        """A row for each member of an array, in SELECT."""
        ...

    def matches(self, value: str, pattern: str) -> str:
        """Whether a regular expression, of the syntax that RE2 and Java share, matches the whole value."""
        ...

    @property
    def number(self) -> str:
        """A number that no other row of the SELECT has."""
        ...

    def once(self, value: str) -> str:
        """A value that the engine's optimizer must not copy to the places that name its column."""
        ...


class Engine(Protocol):
    """An engine of SQL, for one query."""

    @property
    def dialect(self) -> Dialect: ...

    def table(self, sql: str, *, stable: bool = True) -> str:
        """Names the rows of a SELECT that is read more than once; returns the name.

        Args:
            stable: two readings of the SELECT give the same rows.
        """
        ...

    def evaluated(
        self,
        rows: str,
        inputs: Sequence[str],
        function: Function,
        kind: str,
        *,
        where: str = "",
        light: bool = False,
        volatile: bool = False,
    ) -> str:
        """Adds the column `value` to rows, a function of some of their columns; returns the source for FROM.

        Args:
            rows: a name or SELECT, as after FROM.
            inputs: the columns that the function reads: strings, and if `volatile` of any type.
            function: it is called for distinct inputs, in batches.
            kind: the type of the values, `string` or `boolean`.
            where: only for rows `t` that meet this condition; the value of others is NULL.
            light: it costs little to read the rows twice.
            volatile: it is called for each row.
        """
        ...

    def batches(self, sql: str) -> Iterator[Sequence[list[Any]]]:
        """Yields the rows of a SELECT, as columns of equal length."""
        ...

    def reached(self, begin: str, steps: str, keys: Sequence[str], path: str) -> str:
        """Extends the pairs `s`, `e` of a SELECT by any number of steps of a SELECT, within equal `keys`.

        Returns the name of a table with each pair once.

        Args:
            path: its text, for errors.
        """
        ...

    def filled(self, types: Mapping[str, str], batches: Iterator[Sequence[list[Any]]]) -> str:
        """Makes a temporary table of columns, each of type `string`, `boolean` or `integer`; returns its name."""
        ...


class DuckDb:
    """DuckDB's SQL.

    >>> DuckDb().text("it's"), DuckDb().array("a", "'b'")
    ("'it''s'", "[a, 'b']")
    """

    @property
    def null(self) -> str:
        return "CAST(NULL AS VARCHAR)"

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def array(self, *values: str) -> str:
        return f"[{', '.join(values)}]"

    def explode(self, array: str) -> str:
        return f"unnest({array})"

    def matches(self, value: str, pattern: str) -> str:
        return f"regexp_full_match({value}, {self.text(pattern)})"

    @property
    def number(self) -> str:
        return "row_number() OVER ()"

    def once(self, value: str) -> str:
        return value

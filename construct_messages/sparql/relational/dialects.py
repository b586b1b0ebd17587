"""The differences between engines: their SQL, and how they compute. The rest of a plan is the same text for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol


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


class Engine(Protocol):
    """An engine of SQL, for one query."""

    @property
    def dialect(self) -> Dialect: ...

    def table(self, sql: str) -> str:
        """Computes a SELECT, here and now; returns the name of a temporary table."""
        ...

    def batches(self, sql: str) -> Iterator[Sequence[list[Any]]]:
        """Yields the rows of a SELECT, as columns of equal length."""
        ...

    def reached(self, begin: str, steps: str, keys: Sequence[str]) -> str:
        """Extends the pairs `s`, `e` of a SELECT by any number of steps of a table, within equal `keys`.

        Returns the name of a table with each pair once.
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

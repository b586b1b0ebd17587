"""Converts batches of solutions to record batches with a typed column for each variable.

The first batch decides the schema: see `typed.py`. Batches are limited by rows, fields and bytes, to limit memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from construct_messages.logs.columns.arrow import arrow, joined
from construct_messages.logs.columns.characters import term_array
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.typed import TypedColumn
from construct_messages.logs.columns.types import RAW, STRING, TYPES, column_type
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.solutions import Solutions

MOST_FIELDS: Final = 1 << 19
"""The maximal number of values of a batch."""
MOST_BYTES: Final = 1 << 25
"""The number of bytes of terms that are held before a batch is made of them."""
SCHEMA_VERSION: Final = "1"


def metadata(layout: str, raw: bool, origin: Mapping[str, str]) -> dict[str, str]:
    """Returns the metadata of a schema.

    Args:
        layout: see `ColumnOptions`.
        raw: whether terms are N-Triples.
        origin: the query and the source, by these names, as far as they are known.

    >>> metadata("quads", False, {"source": "log.nq"})["construct_messages.source"]
    'log.nq'
    """
    known = {
        "version": SCHEMA_VERSION,
        "layout": layout,
        "terms": "n-triples" if raw else "values",
        **origin,
    }
    return {f"construct_messages.{name}": value for name, value in known.items()}


class SolutionRows:
    """Solutions as rows of typed columns.

    Args:
        variables: their names, without `?`, in the order of the columns.
        options: see `ColumnOptions`.
        origin: see `metadata`.
        typed: whether columns have types; else all are strings, as for CSV.

    Raises:
        UsageError: an option for a variable that the solutions do not have, or two columns of one name.

    >>> rows = SolutionRows(("s", "n"), ColumnOptions(), {})
    >>> rows.add(Solutions.of([("<urn:a>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>')]))
    []
    >>> [batch.to_pylist() for batch in rows.finish()]
    [[{'s': 'urn:a', 'n': 1}]]
    """

    def __init__(
        self,
        variables: Sequence[str],
        options: ColumnOptions,
        origin: Mapping[str, str],
        *,
        typed: bool = True,
    ) -> None:
        for name in (*options.types, *options.languages):
            if name not in variables:
                raise UsageError(
                    f"there is no column ?{name}",
                    hint=f"the variables are {', '.join(f'?{each}' for each in variables)}",
                )
        for name in options.languages:
            if f"{name}_language" in variables:
                raise UsageError(
                    f"?{name}_language is a variable, and would be the column of languages of ?{name}",
                    hint="rename it in the query",
                )
        otherwise = TYPES[RAW] if options.raw else None if typed else TYPES[STRING]
        self._columns = [
            TypedColumn(
                name,
                column_type(options.types[name]) if name in options.types else otherwise,
                languages=name in options.languages,
                invalid=options.invalid,
            )
            for name in variables
        ]
        self._metadata = metadata("solutions", options.raw, origin)
        self._most_rows = max(1, min(options.batch_rows, MOST_FIELDS // len(variables)))
        self._held: list[list[Any]] = [[] for _ in variables]  # the arrays of terms of each column
        self._rows = self._bytes = self._count = 0
        self._schema: Any = None

    def add(self, solutions: Solutions) -> list[Any]:
        """Returns the record batches that further solutions complete.

        Raises:
            ColumnError: a value that does not fit into its column.
        """
        batches = []
        while self._rows + len(solutions) > self._most_rows:
            room = self._most_rows - self._rows
            if room:
                self._hold(solutions.head(room))
                solutions = solutions.tail(len(solutions) - room)
            batches.append(self._batch())
        self._hold(solutions)
        if self._bytes > MOST_BYTES:
            batches.append(self._batch())
        return batches

    def finish(self) -> list[Any]:
        """Returns the last record batch, which is empty without solutions.

        Raises:
            ColumnError: see `add`.
        """
        batches = [self._batch()] if self._rows or self._schema is None else []
        for column in self._columns:
            if column.nulls:
                import logging  # imported here because most programs do not need it

                logging.getLogger(__name__).warning(
                    "null in place of %d value%s of ?%s that did not fit into the column",
                    column.nulls,
                    "" if column.nulls == 1 else "s",
                    column.variable,
                )
        return batches

    def _hold(self, solutions: Solutions) -> None:
        if not len(solutions):
            return
        for held, column in zip(self._held, solutions.utf8, strict=True):
            terms = term_array(column)
            held.append(terms)
            self._bytes += terms.nbytes
        self._rows += len(solutions)

    def _batch(self) -> Any:
        pa = arrow()
        columns = list(map(joined, self._held))
        self._held = [[] for _ in columns]
        if self._schema is None:
            for column, terms in zip(self._columns, columns, strict=True):
                column.decide(terms)
            self._schema = pa.schema(
                [field for column in self._columns for field in column.fields],
                metadata=self._metadata,
            )
        arrays = [
            array
            for column, terms in zip(self._columns, columns, strict=True)
            for array in column.arrays(terms, self._count)
        ]
        self._count += self._rows
        self._rows = self._bytes = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


_OTHER_ROWS: Final = 'choose the layout "quads" or "nested" (ColumnOptions, --layout)'


def no_solutions() -> UsageError:
    """Returns the error for messages without solutions."""
    return UsageError(
        "the layout solutions is for the solutions of a query, and these are messages",
        hint=f"{_OTHER_ROWS}, without types and languages",
    )


def other_solutions() -> UsageError:
    """Returns the error for solutions that are grouped or changed into messages."""
    return UsageError(
        "the layout solutions has a row for each solution, and here solutions are grouped, left out or changed",
        hint=_OTHER_ROWS,
    )

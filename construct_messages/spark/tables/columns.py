"""Typed columns in Spark's Python workers: the census, misfits and the conversion.

The rules are those of `logs/columns`. No pyspark here: a worker imports this module.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from construct_messages.errors import ColumnError
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.solutions import Census, TypedColumn, warn_of_nulls
from construct_messages.logs.columns.types import STRING, arrow, warn

Mapped: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
"""A function for `DataFrame.mapInArrow`."""

CENSUSES: Final = "censuses BINARY"
"""The schema of `censuses`."""
MISFITS: Final = "variable STRING, reason STRING, nulls BIGINT"
"""The schema of `misfits`."""


@dataclass
class ColumnPlan:
    """A column to be made: its declared type, and the census that decides its type otherwise.

    >>> options = ColumnOptions("solutions", types={"n": "int64"})
    >>> [plan.declared for plan in ColumnPlan.all_of(("n", "s"), options)]
    ['int64', None]
    """

    variable: str
    options: ColumnOptions
    declared: str | None  # the name of its type
    census: Census = field(default_factory=Census)

    @classmethod
    def all_of(cls, variables: Sequence[str], options: ColumnOptions) -> list[ColumnPlan]:
        """Returns the plans of all columns."""
        return [cls(name, options, options.types.get(name)) for name in variables]

    def typed(self) -> TypedColumn:
        """Returns the column; raises `ColumnError` if its terms do not fit together."""
        column = TypedColumn.of(self.variable, self.options, self.declared)
        column.decide_by(self.census)
        return column

    @property
    def type(self) -> Any:
        """Its type of Arrow."""
        return self.typed().fields[0].type

    @property
    def may_refuse(self) -> bool:
        """Whether some values may not fit into the column: those of its kinds in forms that its type does not have."""
        return self.declared is None and self.type != arrow().string()

    def fall_back(self, reason: str, hint: str | None) -> None:
        """Makes the column one of strings, because some values do not fit."""
        if self.options.invalid != "string":
            raise ColumnError(reason, variable=self.variable, hint=hint)
        warn("%s; therefore ?%s is a column of strings", reason, self.variable)
        self.declared = STRING


def censuses(batches: Iterator[Any]) -> Iterator[Any]:
    """Yields the censuses of all columns of a partition, as one value."""
    found: list[Census] = []
    for batch in batches:
        found = found or [Census() for _ in batch.columns]
        for census, terms in zip(found, batch.columns, strict=True):
            census.add(_strings(terms))
    if found:
        yield arrow().RecordBatch.from_pydict({"censuses": [pickle.dumps(found)]})


def misfits(columns: Sequence[ColumnPlan]) -> Mapped:
    """Returns a function that yields, for each column with values that do not fit, the reason for the first one, and
    how many they are if they are to be null.
    """

    def find(batches: Iterator[Any]) -> Iterator[Any]:
        pa = arrow()
        schema = pa.schema({"variable": pa.string(), "reason": pa.string(), "nulls": pa.int64()})
        typed = {column.variable: column.typed() for column in columns}
        reasons: dict[str, str] = {}
        for batch in batches:
            for name, column in typed.items():
                if name not in reasons:
                    try:
                        column.arrays(_strings(batch.column(name)), 0)
                    except ColumnError as error:
                        reasons[name] = error.message
        for name, column in typed.items():
            if name in reasons or column.nulls:
                row = {"variable": name, "reason": reasons.get(name), "nulls": column.nulls}
                yield pa.RecordBatch.from_pylist([row], schema=schema)

    return find


def converted(columns: Sequence[ColumnPlan]) -> Mapped:
    """Returns a function that yields batches of typed columns for batches of terms.

    It logs how many values are null because they do not fit into a declared type.
    """

    def convert(batches: Iterator[Any]) -> Iterator[Any]:
        typed = [column.typed() for column in columns]
        names = [each.name for column in typed for each in column.fields]
        for batch in batches:
            arrays = list[Any]()
            for column, terms in zip(typed, batch.columns, strict=True):
                try:
                    arrays += column.arrays(_strings(terms), 0)
                except ColumnError as error:
                    message, name = error.message, error.variable
                    # solutions have no numbers here
                    raise ColumnError(
                        f"?{name} is {message}", variable=name, hint=error.hint
                    ) from error
            yield arrow().RecordBatch.from_arrays(arrays, names)
        for plan, column in zip(columns, typed, strict=True):
            # those of other columns were counted when their types were decided
            if column.nulls and plan.variable in plan.options.types:
                warn_of_nulls(plan.variable, column.nulls)

    return convert


def _strings(terms: Any) -> Any:
    """Returns an array of terms as `logs/columns` takes them, whatever the session's settings are."""
    return terms.cast(arrow().string())

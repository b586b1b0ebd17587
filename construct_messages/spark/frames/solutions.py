"""Solutions as a DataFrame, and the operations on one bag or sequence of them.

SPARQL 1.1 Query, section 15 (solution sequences and modifiers). Joins are in `joins`. No algebra nodes here, and
expressions only as SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import Var, Vars
from construct_messages.spark.sql.values import column

_RANK: Final = "rank"


@dataclass(frozen=True)
class Solutions:
    """A bag or sequence of solutions."""

    frame: DataFrame  # a string column for each possible variable (`values.column`), and those of `order`
    possible: Vars
    certain: Vars  # bound in every solution
    deterministic: bool = True  # whether two evaluations have the same solutions, see `materialize`
    order: tuple[tuple[str, bool], ...] = ()  # columns, each with whether it descends

    # --- which variables ------------------------------------------------------------------------------------------

    def only(self, variables: Vars) -> Solutions:
        """Projects to some variables; keeps duplicates, and drops the order."""
        kept = self.possible & variables
        if kept == self.possible and not self.order:
            return self
        return Solutions(
            self.frame.select(*names(kept)), kept, self.certain & kept, self.deterministic
        )

    def unordered(self) -> Solutions:
        return self.only(self.possible)

    def without(self, variables: Vars) -> Solutions:
        """Drops some variables; keeps the order."""
        gone = self.possible & variables
        if not gone:
            return self
        frame = self.frame.drop(*names(gone))
        return replace(
            self, frame=frame, possible=self.possible - gone, certain=self.certain - gone
        )

    def with_columns_of(self, variables: Vars) -> Solutions:
        """Adds columns for variables that have none, unbound in every solution."""
        new = variables - self.possible
        if not new:
            return self
        frame = self.frame.select("*", *map(null, sorted(new)))
        return replace(self, frame=frame, possible=self.possible | new)

    def bind(self, variable: Var, value: Column, certain: bool = False) -> Solutions:
        """Binds a variable; drops solutions that bind it to another value already. NULL leaves it unbound.

        If `certain`, the value is never NULL.
        """
        name = column(variable)
        if variable in self.possible:
            frame = self.frame.select("*", value.alias("new"))
            there, new = F.col(name), F.col("new")
            frame = frame.filter(there.isNull() | new.isNull() | (there == new))
            frame = frame.withColumn(name, F.coalesce(there, new)).drop("new")
        else:
            frame = self.frame.select("*", value.alias(name))
        bound = frozenset({variable})
        sure = self.certain | bound if certain else self.certain
        return replace(self, frame=frame, possible=self.possible | bound, certain=sure)

    def with_key(self, by: Vars, key: Var) -> Solutions:
        """Binds `key` to a value that solutions share if they have the same bindings of `by`; it is never unbound."""
        bindings = [F.coalesce(F.col(name), F.lit("")) for name in names(self.possible & by)]
        return self.bind(
            key, F.concat_ws("\n", *bindings), certain=True
        )  # no term holds a line feed

    # --- which solutions ------------------------------------------------------------------------------------------

    def materialize(self) -> Solutions:
        """Computes solutions that are not deterministic, here and now, so that two uses of them read the same.

        Random numbers, and the solutions that LIMIT keeps, would otherwise differ between two branches of one query.
        """
        return (
            self
            if self.deterministic
            else replace(self, frame=checkpointed(self.frame), deterministic=True)
        )

    def distinct(self) -> Solutions:
        """Drops duplicates; in an order, all but the first."""
        if not self.possible:
            return replace(
                self, frame=self.frame.limit(1)
            )  # Spark's distinct returns a row for an empty frame here
        if not self.order:
            return replace(self, frame=self.frame.distinct())
        first = Window.partitionBy(*names(self.possible)).orderBy(*self.ordering())
        return replace(self, frame=self._ranked(first).filter(f"{_RANK} = 1").drop(_RANK))

    def slice(self, offset: int, limit: int | None, within: Vars = frozenset()) -> Solutions:
        """Keeps at most `limit` solutions from `offset` on, for each value of the variables `within`."""
        ordering = self.ordering()
        if within:
            window = Window.partitionBy(*names(within)).orderBy(*(ordering or [F.lit(0)]))
            frame = self._ranked(window).filter(f"{_RANK} > {offset}")
            frame = (frame if limit is None else frame.filter(f"{_RANK} <= {offset + limit}")).drop(
                _RANK
            )
        else:
            frame = self.in_order()
            frame = frame.offset(offset) if offset else frame
            frame = frame if limit is None else frame.limit(limit)
        return replace(self, frame=frame, deterministic=False)

    # --- in which order -------------------------------------------------------------------------------------------

    def order_by(self, keys: Sequence[tuple[str, bool]], number: int) -> Solutions:
        """Orders by SQL, each with whether it descends; the number, unique in the query, is in the columns' names."""
        order = tuple(
            (f"o{number}_{index}", descending) for index, (_, descending) in enumerate(keys)
        )
        columns = [F.expr(sql).alias(name) for (sql, _), (name, _) in zip(keys, order, strict=True)]
        return replace(self, frame=self.frame.select("*", *columns), order=order)

    def ordering(self) -> list[Column]:
        return [
            F.col(name).desc_nulls_last() if descending else F.col(name).asc_nulls_first()
            for name, descending in self.order
        ]

    def in_order(self) -> DataFrame:
        """Returns the frame, sorted if the solutions have an order."""
        return self.frame.orderBy(*self.ordering()) if self.order else self.frame

    def _ranked(self, window: WindowSpec) -> DataFrame:
        return self.frame.select("*", F.row_number().over(window).alias(_RANK))


def checkpointed(frame: DataFrame) -> DataFrame:
    """Computes a frame, here and now, and keeps its rows without the plan that they came from.

    They are kept in `spark.checkpoint.dir`, if a session has one; otherwise by the executors, and on a cluster by two
    of them each: rows that were lost with one could not be computed again.
    """
    settings = frame.sparkSession.conf
    if settings.get("spark.checkpoint.dir", ""):
        return frame.checkpoint()
    one_process = re.match(r"local(\[|\Z)", settings.get("spark.master", "") or "")
    level = StorageLevel.MEMORY_AND_DISK if one_process else StorageLevel.MEMORY_AND_DISK_2
    return frame.localCheckpoint(storageLevel=level)


def names(variables: Iterable[Var]) -> list[str]:
    """Returns the columns of some variables, sorted."""
    return sorted(map(column, variables))


def null(variable: Var) -> Column:
    """Returns the column of a variable that nothing binds."""
    return F.lit(None).cast("string").alias(column(variable))

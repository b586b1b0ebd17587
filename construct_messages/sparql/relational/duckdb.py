"""DuckDB as the engine of a plan: temporary tables, batches of Arrow, and recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import duckdb
import pyarrow as pa

from construct_messages.errors import UsageError, shown
from construct_messages.sparql.relational.dialects import Dialect, DuckDb, Function
from construct_messages.sparql.relational.documents import strings

_TYPES: Final = {"string": "VARCHAR", "boolean": "BOOLEAN", "integer": "BIGINT"}
BATCH: Final = 20_000  # rows


def connected(**settings: Any) -> duckdb.DuckDBPyConnection:
    """Opens a database in memory with some settings; None is the default.

    Raises:
        UsageError: a value that is none of the setting.
    """
    connection = duckdb.connect()
    for name, value in settings.items():
        if value is None:
            continue
        text = str(value).replace("'", "''")
        try:
            connection.execute(f"SET {name} = '{text}'")
        except duckdb.Error as error:
            raise UsageError(
                f"{shown(str(value))} is no {name} of DuckDB",
                hint="write a size as 1500MB or 4GB, and threads as a number",
            ) from error
    return connection


class DuckDbEngine:
    """See `evaluation.Engine`.

    Args:
        connection: its temporary tables are those of this query only.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.dialect: Dialect = DuckDb()
        self.connection = connection
        self.stopped = False  # set by another thread, which also interrupts the connection
        self._numbers = count()

    def _name(self) -> str:
        if self.stopped:
            raise duckdb.InterruptException("the evaluation was stopped")
        return f"stage{next(self._numbers)}"

    def table(self, sql: str, *, stable: bool = True) -> str:  # noqa: ARG002  # it is computed once
        """Computes the rows, here and now."""
        name = self._name()
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")
        return name

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
        """Evaluates here and now, and joins the values: DuckDB would call a function for each row."""
        if volatile:
            rows = self.table(f"SELECT t.*, {self.dialect.number} AS place FROM {rows} AS t")
        elif not light:
            rows = self.table(f"SELECT * FROM {rows} AS t")
        keys = ["place"] if volatile else list(inputs)
        names = ", ".join(["place", *inputs] if volatile else inputs)
        read = f"SELECT {'' if volatile else 'DISTINCT '}{names} FROM {rows} AS t"
        found = 0

        def values() -> Iterator[Sequence[list[Any]]]:
            nonlocal found
            for batch in self.batches(read + (f" WHERE {where}" if where else "")):
                found += len(batch[0])
                if volatile:
                    given = zip(*batch[1:], strict=True) if inputs else [()] * len(batch[0])
                    yield [batch[0], function(given)]
                else:
                    yield [*batch, function(zip(*batch, strict=True))]

        types = dict.fromkeys(keys, "integer" if volatile else "string")
        table = self.filled({**types, "value": kind}, values())
        if where and not found:
            null = self.dialect.null if kind == "string" else "CAST(NULL AS BOOLEAN)"
            return f"(SELECT t.*, {null} AS value FROM {rows} AS t)"
        on = " AND ".join(f"t.{key} IS NOT DISTINCT FROM e.{key}" for key in keys)
        return f"(SELECT t.*, e.value FROM {rows} AS t LEFT JOIN {table} AS e ON {on})"

    def batches(self, sql: str) -> Iterator[Sequence[list[Any]]]:
        # another result of the connection would end this one
        for batch in self.connection.sql(sql).to_arrow_reader(BATCH):
            if self.stopped:
                raise duckdb.InterruptException("the evaluation was stopped")
            if batch.num_rows:
                yield [column.to_pylist() for column in batch.columns]

    def filled(self, types: Mapping[str, str], batches: Iterator[Sequence[list[Any]]]) -> str:
        schema = pa.schema([(name, pa.string()) for name in types])
        made = [
            pa.RecordBatch.from_arrays(
                [
                    strings(values if kind == "string" else map(_text, values))
                    for values, kind in zip(batch, types.values(), strict=True)
                ],
                schema=schema,
            )
            for batch in batches
        ]
        columns = ", ".join(
            f"CAST({name} AS {_TYPES[kind]}) AS {name}" for name, kind in types.items()
        )
        name = self._name()
        self.connection.register("filled", pa.Table.from_batches(made, schema))
        try:
            self.connection.execute(f"CREATE TEMP TABLE {name} AS SELECT {columns} FROM filled")
        finally:
            self.connection.unregister("filled")
        return name

    def reached(
        self,
        begin: str,
        steps: str,
        keys: Sequence[str],
        path: str,  # noqa: ARG002  # there is no limit that an error would tell
    ) -> str:
        steps = self.table(f"SELECT DISTINCT * FROM ({steps}) AS t")
        pair = ", ".join([*keys, "s", "e"])
        same = "".join(f" AND r.{key} = n.{key}" for key in keys)
        further = ", ".join([*(f"r.{key}" for key in keys), "r.s", "n.e"])
        return self.table(
            f"WITH RECURSIVE r({pair}) AS (SELECT {pair} FROM ({begin}) AS t "
            f"UNION SELECT {further} FROM r JOIN {steps} AS n ON r.e = n.s{same}) SELECT {pair} FROM r"
        )


def _text(value: object) -> str | None:
    return None if value is None else str(value)

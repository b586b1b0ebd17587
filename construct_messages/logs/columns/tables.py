"""Tables of pyarrow, pandas, Polars and DuckDB: the shared interface of query results and log readers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, Unpack

from construct_messages.errors import UsageError
from construct_messages.logs.columns.types import arrow, needed, warn
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.single_use import SingleUse, T

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from construct_messages.logs.columns.options import ColumnArguments, ColumnOptions

_FIRST_DAY, _LAST_DAY = -719162, 2932896  # 0001-01-01 and 9999-12-31, in days since 1970
_BACKENDS: Final = ("numpy", "numpy_nullable", "pyarrow")


class Tabular(SingleUse[T]):
    """Messages or solutions that can be read once, as columns instead."""

    @abstractmethod
    def _record_batches(self, options: ColumnOptions) -> Generator[Any]:
        """Yields record batches, at least one."""

    def to_arrow(self, **columns: Unpack[ColumnArguments]) -> pa.RecordBatchReader:
        """Returns the rows as a reader of Arrow's record batches.

        A reader is a stream: pass it to DuckDB, Polars or pyarrow, or call `read_all()`. Memory is bounded by a batch.

        Args:
            columns: the fields of `ColumnOptions`: `layout`, `raw`, `types`, `languages`, `decimals`, `invalid` and
                `batch_rows`.

        Returns:
            A `pyarrow.RecordBatchReader`. The first batch has been read already, as it determines the schema. An error
                of a later one is raised where the reader is read.

        Raises:
            UsageError: pyarrow is not installed, or invalid options.
            ColumnError: a value does not fit into its column.
            SourceError, LogError: the result is incomplete.
        """
        self._begin()
        from construct_messages.logs.columns.options import ColumnOptions

        options = ColumnOptions(**columns)
        batches = self._running = self._record_batches(options)
        first = next(batches)
        reader: pa.RecordBatchReader = arrow().RecordBatchReader.from_batches(
            first.schema, _all(first, batches)
        )
        return reader

    @checked
    def to_pandas(
        self, *, dtype_backend: str = "numpy_nullable", **columns: Unpack[ColumnArguments]
    ) -> pd.DataFrame:
        """Returns the rows as a DataFrame of pandas.

        A column whose values are of several types is one of strings, with a warning of `logging`; `invalid="error"`
        raises an error instead. So is one of dates before the year 1, or after 9999, unless its types are Arrow's.

        Args:
            dtype_backend: the types of pandas: `"numpy_nullable"` has integers and booleans that can be missing;
                `"pyarrow"` has those of Arrow; `"numpy"` turns integers with missing values into floats.
            columns: the fields of `ColumnOptions`; see `to_arrow`.

        Raises:
            UsageError: pandas or pyarrow is not installed, or invalid options.
            ColumnError, SourceError, LogError: see `to_arrow`.
        """
        if dtype_backend not in _BACKENDS:
            raise UsageError(
                f"dtype_backend={dtype_backend!r} is unknown",
                hint='choose "numpy_nullable", "pyarrow" or "numpy"',
            )
        pandas = needed("pandas", "pip install pandas")
        table = self._table(columns)
        mapper = None
        if dtype_backend == "pyarrow":
            mapper = pandas.ArrowDtype
        else:
            table = _with_dates_of_python(table)
        if dtype_backend == "numpy_nullable":
            pa = arrow()
            mapper = {
                pa.int64(): pandas.Int64Dtype(),
                pa.float64(): pandas.Float64Dtype(),
                pa.bool_(): pandas.BooleanDtype(),
                pa.string(): pandas.StringDtype(),
            }.get
        frame: pd.DataFrame = table.to_pandas(types_mapper=mapper)
        return frame

    def to_polars(self, **columns: Unpack[ColumnArguments]) -> pl.DataFrame:
        """Returns the rows as a DataFrame of Polars.

        A column whose values are of several types is one of strings, as in `to_pandas`.

        Args:
            columns: the fields of `ColumnOptions`; see `to_arrow`.

        Raises:
            UsageError: Polars or pyarrow is not installed, or invalid options.
            ColumnError, SourceError, LogError: see `to_arrow`.
        """
        polars = needed("polars", "pip install polars")
        frame: pl.DataFrame = polars.from_arrow(self._table(columns))
        return frame

    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        **columns: Unpack[ColumnArguments],
    ) -> duckdb.DuckDBPyRelation:
        """Returns the rows as a relation of DuckDB, which can be queried any number of times.

        A column whose values are of several types is one of strings, as in `to_pandas`.

        Args:
            connection: the connection to use; None: DuckDB's default one, so that `duckdb.sql` sees the relation.
            columns: the fields of `ColumnOptions`; see `to_arrow`.

        Raises:
            UsageError: DuckDB or pyarrow is not installed, or invalid options.
            ColumnError, SourceError, LogError: see `to_arrow`.
        """
        engine = needed("duckdb", "pip install duckdb") if connection is None else connection
        relation: duckdb.DuckDBPyRelation = engine.from_arrow(self._table(columns))
        return relation

    def _table(self, columns: ColumnArguments) -> Any:
        columns.setdefault("invalid", "string")
        with self:
            return self.to_arrow(**columns).read_all()


def _with_dates_of_python(table: Any) -> Any:
    """The table with strings for dates that Python does not have, as pandas has its dates in columns of dates."""
    pa, compute = arrow(), arrow("compute")
    for place, field in enumerate(table.schema):
        if field.type != pa.date32():
            continue
        days = table.column(place).cast(pa.int32())
        least, most = compute.min_max(days).as_py().values()
        if least is not None and not (least >= _FIRST_DAY and most <= _LAST_DAY):
            warn(
                "?%s is a column of strings: Python has no dates before the year 1 and after 9999",
                field.name,
            )
            text = table.column(place).cast(pa.string())
            table = table.set_column(place, pa.field(field.name, pa.string()), text)
    return table


def _all(first: Any, rest: Generator[Any]) -> Generator[Any]:
    try:
        yield first
        yield from rest
    finally:
        rest.close()

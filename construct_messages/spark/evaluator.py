"""Values that Python computes from the rows of a DataFrame, in Spark's workers.

So is the exact evaluator of expressions called, for the distinct inputs of an expression. Workers import this package:
it must be installed there, as for logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPES: Final = {"string": (StringType(), pa.string()), "boolean": (BooleanType(), pa.bool_())}


def with_values(
    rows: DataFrame,
    function: Callable[[Iterable[Sequence[Any]]], list[Any]],
    kind: str,
    kept: Sequence[str] | None = None,
) -> DataFrame:
    """Adds a column `value` to a DataFrame.

    Spark may call the function again for the same rows: where values are random, the result is to be kept.

    Args:
        rows: they come to the function in batches, as tuples of their columns; NULL is None.
        function: returns the value of each row. It is pickled: `partial(evaluator.terms, expression, names)`.
        kind: `string` or `boolean`, the type of values.
        kept: the columns of the result beside `value`; None: all.

    >>> from construct_messages.query.algebra.nodes import Call, Var
    >>> from construct_messages.sparql.relational.expressions import PythonEvaluator
    >>> inputs = spark.createDataFrame([('"a"',), ("<urn:a>",), (None,)], "v_x string")
    >>> lengths = partial(PythonEvaluator().terms, Call("LCASE", (Var("x"),)), ["x"])
    >>> sorted(with_values(inputs, lengths, "string").collect(), key=str)
    [Row(v_x='"a"', value='"a"'), Row(v_x='<urn:a>', value=None), Row(v_x=None, value=None)]
    """
    names = list(rows.columns if kept is None else kept)
    of_spark, of_arrow = _TYPES[kind]
    fields = [rows.schema[name] for name in names]
    schema = StructType([*fields, StructField("value", of_spark)])
    return rows.mapInArrow(partial(_batches, function, names, of_arrow), schema)


def _batches(
    function: Callable[[Iterable[Sequence[Any]]], list[Any]],
    names: list[str],
    kind: pa.DataType,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        values = pa.array(function(rows), kind)
        columns = [batch.column(name) for name in names]
        yield pa.RecordBatch.from_arrays([*columns, values], [*names, "value"])

"""Values that Python computes from columns of a DataFrame, in Spark's workers.

So is the exact evaluator of expressions called. Workers import this package: it must be installed there, as for logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from construct_messages.sparql.relational.dialects import Function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEPARATOR: Final = "\n"
"""Between the inputs of a function in one string: no term holds it."""
_TYPES: Final = {"string": pa.string(), "boolean": pa.bool_()}


def with_value(
    rows: DataFrame, kept: Sequence[str], function: Function, kind: str, *, volatile: bool = False
) -> DataFrame:
    """Returns the columns `kept`, and the column `value`.

    Args:
        rows: the function reads the other columns, as tuples in which NULL is None; if not `volatile`, one
            column of terms, `SEPARATOR` between them and nothing for NULL. Where that is NULL itself, so is the value.
        function: returns the value of each tuple. It is pickled.
        kind: `string` or `boolean`, the type of values.
        volatile: it is called for each row, and not for the distinct inputs of a batch.
    """
    arguments = [name for name in rows.columns if name not in set(kept)]
    type = _TYPES[kind]

    def evaluated(*columns: pa.Array) -> pa.Array:
        if not arguments:
            return pa.array(function([()] * len(columns[0])), type)
        if volatile:
            return pa.array(function(zip(*map(pa.Array.to_pylist, columns), strict=True)), type)
        if columns[0].null_count == len(columns[0]):
            return pa.nulls(len(columns[0]), type)
        found = columns[0].dictionary_encode()
        terms = (text.split(SEPARATOR) for text in found.dictionary.to_pylist())
        values = function([tuple(term or None for term in row) for row in terms])
        return pa.array(values, type).take(found.indices)

    # Spark neither copies a nondeterministic call nor moves it to where there are more rows
    # its types have no functions of any number of columns
    call = arrow_udf(evaluated, kind).asNondeterministic()  # type: ignore[call-overload]
    columns = [F.col(name) for name in arguments] or [F.lit(0)]
    value = call(*columns)
    return rows.select(*kept, value.alias("value"))

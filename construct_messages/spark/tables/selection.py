"""SELECT on Spark: the solutions of a query over a table of quads as a DataFrame of typed columns.

The types and the conversion are those of `logs/columns`, in Python workers, as for every other source. Types that are
not declared depend on all solutions, so these are computed first, and kept until they are read.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from construct_messages.errors import ColumnError, UsageError
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.solutions import check_variables, warn_of_nulls
from construct_messages.logs.columns.types import STRING
from construct_messages.query.optimizer.optimize import Hints, optimize
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.options import Dataset
from construct_messages.spark.engine import checkpointed
from construct_messages.spark.evaluation import EvaluationOptions, check, evaluate
from construct_messages.spark.planning import plan_select
from construct_messages.spark.quads.loading import is_table, load_quads, read_quads
from construct_messages.spark.quads.table import QuadTable, quoted
from construct_messages.spark.session import translated
from construct_messages.spark.tables.columns import (
    CENSUSES,
    MISFITS,
    ColumnPlan,
    censuses,
    converted,
    misfits,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_TIME: Final = pa.time64("us")
"""The type of columns of times of day, which Spark does not take from its Python workers."""


@checked
def select(
    spark: SparkSession,
    query: str,
    quads: DataFrame | QuadTable | str | os.PathLike[str] | Sequence[str],
    *,
    raw: bool = False,
    types: Mapping[str, str] | None = None,
    languages: Sequence[str] = (),
    decimals: Literal["decimal", "double"] = "decimal",
    invalid: Literal["error", "null", "string"] = "string",
    bindings: Mapping[str, Any] | None = None,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    dataset: Dataset = Dataset(),
    max_path_rounds: int = 1000,
    allow_full_closure: bool = False,
    hints: Hints | None = None,
) -> DataFrame:
    """Runs a SELECT query over a table of quads and returns a DataFrame with a typed column for each variable.

    Columns have the types of `ColumnOptions`: integers are `bigint`, or `decimal(38,0)` if one is too large; decimals
    `decimal(38,18)`; doubles and floats `double`; then there are `boolean`, `date`, `timestamp` (dateTimes with a time
    zone), `timestamp_ntz` (without one) and `interval day to second`. IRIs, blank nodes, strings, times of day and all
    other values are strings. Unbound is NULL. Blank nodes have the labels of the table.

    The query runs immediately, to find the types, and its solutions are kept on the executors until the DataFrame is
    no longer used. With `raw`, or with `types` for all variables, it runs with the first action.

    Args:
        spark: the session.
        query: the text of a SELECT query.
        quads: a table of `read_quads` or `load_quads`, or a DataFrame of terms, see `QuadTable.of`; or the path of a
            table of `write_quads`, or of dumps.
        raw: whether columns have terms as canonical N-Triples strings. `construct_messages.spark.terms` has functions
            for them.
        types, languages, decimals, invalid: see `ColumnOptions`. A column of several types is one of strings by
            default, with a warning of `logging`. With `invalid="null"`, executors log the values that do not fit into
            declared types.
        bindings, prefixes, base, dataset, max_path_rounds, allow_full_closure, hints: see
            `construct_messages.spark.construct_messages`.

    Raises:
        QueryError: the query is not a valid SELECT query.
        UnsupportedQuery: a part of it is not supported on Spark.
        UsageError: an invalid option; variables that differ only in case, unless `spark.sql.caseSensitive` is true.
        QuadsError: the table does not have the columns, or has cells that are no terms.
        ColumnError: a value does not fit into its column; from an action, for a column whose type is declared.

    >>> age = '"41"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> quads = spark.createDataFrame([("<urn:a>", "<urn:age>", age)], ["subject", "predicate", "object"])
    >>> ages = select(spark, "SELECT ?who ?age WHERE { ?who <urn:age> ?age }", quads)
    >>> ages.dtypes, ages.collect()
    ([('who', 'string'), ('age', 'bigint')], [Row(who='urn:a', age=41)])
    """
    options = ColumnOptions(
        raw=raw, types=types or {}, languages=languages, decimals=decimals, invalid=invalid
    )
    plan = plan_select(query, bindings=bindings, dataset=dataset, prefixes=prefixes, base=base)
    check_variables(plan.variables, options)
    if times := [name for name, each in options.types.items() if each == "time"]:
        raise UsageError(
            f"?{times[0]} cannot be a column of times of day: Spark takes none from Python",
            hint='declare it as "string"',
        )
    table = _table(spark, quads)
    plan = optimize(plan, table.statistics, hints=hints)
    check(plan, allow_full_closure=allow_full_closure)
    evaluation = EvaluationOptions(max_path_rounds, allow_full_closure, Labels())
    with translated():  # the evaluation of a path runs jobs, to find out when no new nodes appear
        terms = named(evaluate(plan, table, evaluation), plan.variables)
    return terms if raw else typed(terms, ColumnPlan.all_of(plan.variables, options))


def named(solutions: DataFrame, variables: Sequence[str]) -> DataFrame:
    """Returns a frame of solutions whose columns have the names of the variables, in their order.

    Raises:
        UsageError: variables that differ only in case, unless `spark.sql.caseSensitive` is true.
    """
    if solutions.sparkSession.conf.get("spark.sql.caseSensitive") == "false":
        first: dict[str, str] = {}
        for name in variables:
            if (other := first.setdefault(name.lower(), name)) != name:
                raise UsageError(
                    f"?{other} and ?{name} are one name for Spark's columns",
                    hint="rename one of them, or set spark.sql.caseSensitive to true; messages can use both",
                )
    return solutions.toDF(*variables)


def _table(spark: SparkSession, quads: Any) -> QuadTable:
    if isinstance(quads, QuadTable):
        return quads
    if isinstance(quads, str | os.PathLike | Sequence):
        if isinstance(quads, str | os.PathLike) and is_table(spark, quads):
            return read_quads(spark, quads)
        quads = load_quads(spark, quads)
    return QuadTable.of(quads)


# --- types ----------------------------------------------------------------------------------------


def typed(terms: DataFrame, columns: Sequence[ColumnPlan]) -> DataFrame:
    """Returns a frame of terms with typed columns."""
    undecided = [column for column in columns if column.declared is None]
    with translated():
        if undecided:
            terms = checkpointed(terms)
            _decide(terms.select(*(quoted(column.variable) for column in undecided)), undecided)
        return terms.mapInArrow(converted(columns), _schema(columns))


def _decide(terms: DataFrame, columns: Sequence[ColumnPlan]) -> None:
    """Decides the types of columns. One with values that do not fit becomes one of strings, if the options allow it."""
    for row in terms.mapInArrow(censuses, CENSUSES).collect():
        for column, census in zip(columns, pickle.loads(row[0]), strict=True):
            column.census.update(census)
    for column in columns:
        column.census.forget_numbers()
        try:
            if column.type == _TIME:
                column.declared = STRING
        except ColumnError as error:
            column.fall_back(error.message, error.hint)
    others = [column for column in columns if column.may_refuse]
    if not others:
        return
    nulls, by_name = Counter[str](), {column.variable: column for column in others}
    for name, reason, count in terms.mapInArrow(misfits(others), MISFITS).collect():
        if count:
            nulls[name] += count
        elif by_name[name].declared is None:
            by_name[name].fall_back(f"?{name} is {reason}", None)
    for name, count in nulls.items():
        warn_of_nulls(name, count)


def _schema(columns: Sequence[ColumnPlan]) -> StructType:
    fields = [field for column in columns for field in column.typed().fields]
    return StructType([StructField(each.name, from_arrow_type(each.type)) for each in fields])

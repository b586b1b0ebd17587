"""A table of quads: the DataFrame that queries are evaluated over, with its statistics.

RDF 1.2 Concepts, section 4: an RDF dataset, a row a quad. The columns of a caller's DataFrame are checked here; files
are read and written by `loading`, patterns matched by `scans`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from construct_messages.errors import QuadsError
from construct_messages.query.optimizer.statistics import Statistics

COLUMNS: Final = ("subject", "predicate", "object", "graph")


@dataclass(frozen=True)
class QuadTable:
    """Quads as a DataFrame of the string columns `subject`, `predicate`, `object` and `graph`.

    A cell is a canonical N-Triples term (see `construct_messages.terms`); NULL as the graph is the default graph. The
    terms are not checked. `load_quads` creates such tables from RDF.

    Args:
        frame: a DataFrame with exactly these columns.
        statistics: the statistics of the table; `distinct` if it has no duplicates.

    >>> frame = spark.createDataFrame([("<urn:a>", "<urn:p>", "<urn:b>")], ["s", "predicate", "object"])
    >>> QuadTable.of(frame, {"subject": "s"}).frame.columns
    ['subject', 'predicate', 'object', 'graph']
    """

    frame: DataFrame
    statistics: Statistics = field(default_factory=Statistics)

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        columns: Mapping[str, str] | None = None,
        assume_distinct: bool = False,
    ) -> QuadTable:
        """Uses a table, view or DataFrame as quads.

        Args:
            frame: any DataFrame, of any source.
            columns: the names of the columns for `subject`, `predicate`, `object` and `graph`, if they differ; a frame
                without a graph column contains triples of the default graph.
            assume_distinct: there are no duplicates; this is not checked. Otherwise each pattern of a query removes
                them.

        Raises:
            QuadsError: a column is missing or does not contain strings, or `columns` names an unknown position.
        """
        names = dict(columns or {})
        if unknown := sorted(names.keys() - set(COLUMNS)):
            raise QuadsError(
                f"{unknown[0]!r} is no position of a quad",
                hint=f"map {', '.join(COLUMNS)} to the names of columns",
            )
        types = {column.name: column.dataType for column in frame.schema.fields}

        def selected(position: str) -> Column:
            name = names.get(position, position)
            if position == "graph" and position not in names and name not in types:
                return F.lit(None).cast("string").alias(position)
            if name not in types:
                raise QuadsError(
                    f"the quads have no column {name!r} (there are {', '.join(types) or 'none'})",
                    hint=f"name the column of the {position}: QuadTable.of(frame, columns={{'{position}': …}})",
                )
            if not isinstance(types[name], StringType):
                raise QuadsError(
                    f"column {name!r} holds {types[name].simpleString()}",
                    hint="a column of quads holds terms in N-Triples syntax, as strings",
                )
            return F.col(quoted(name)).alias(position)

        wanted = [selected(position) for position in COLUMNS]
        if names or frame.columns != list(COLUMNS):
            frame = frame.select(*wanted)
        return cls(frame, Statistics(distinct=assume_distinct))


def quoted(name: str) -> str:
    """Returns a column's name as Spark's resolver takes it verbatim.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"

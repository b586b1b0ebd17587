"""Evaluation of the leaves of a plan, except for stars (`stars`) and paths (`paths`).

SPARQL 1.1 Query, sections 10.2.2 (VALUES), 13.3 (GRAPH) and 18.3.1 (triple patterns). Nothing is joined here.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import Triple, Values, Var, VarOrTerm
from construct_messages.query.algebra.plan import Dataset
from construct_messages.rdf.terms import Term
from construct_messages.spark.frames.scans import named_graphs, scan
from construct_messages.spark.frames.solutions import Solutions, null
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql.values import ERROR, column, literal


def unit(table: QuadTable) -> Solutions:
    """Returns one solution that binds nothing."""
    return Solutions(table.frame.sparkSession.range(1).select(), frozenset(), frozenset())


def triples(pattern: Triple, table: QuadTable, dataset: Dataset) -> Solutions:
    """Returns the solutions of a triple pattern."""
    bound = pattern.variables
    return Solutions(scan(pattern, table, dataset), bound, bound)


def graphs(graph: VarOrTerm, table: QuadTable, dataset: Dataset) -> Solutions:
    """Returns the names of named graphs as a variable; for a term one empty solution if it is such a name, or none."""
    names = named_graphs(table, dataset)
    if isinstance(graph, Var):
        bound = frozenset({graph})
        return Solutions(names.withColumnRenamed("graph", column(graph)), bound, bound)
    return Solutions(
        names.filter(F.col("graph") == F.lit(graph)).limit(1).select(), frozenset(), frozenset()
    )


def values(node: Values, table: QuadTable) -> Solutions:
    """Inline data, as an inline table, whose size Spark's optimizer knows."""
    session = table.frame.sparkSession
    if not node.solutions:
        frame = session.range(0).select(*map(null, node.variables))
    elif not node.variables:
        frame = session.range(len(node.solutions)).select()
    else:
        solutions = ", ".join(
            f"({', '.join(map(_literal_or_null, solution))})" for solution in node.solutions
        )
        columns = ", ".join(map(column, node.variables))
        frame = session.sql(f"SELECT * FROM VALUES {solutions} AS t({columns})")
    return Solutions(frame, node.possible, node.certain)


def _literal_or_null(term: Term | None) -> str:
    return ERROR.sql if term is None else literal(term)

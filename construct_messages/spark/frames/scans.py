"""Triple patterns over a table of quads: constants are filtered, variables become columns, duplicates go.

SPARQL 1.1 Query, sections 18.3.1 (a basic graph pattern of one triple pattern) and 13 (datasets: FROM, FROM NAMED and
GRAPH). Patterns are not joined here. RDF graphs are sets and a DataFrame is a bag: a quad that is in the table twice,
or a triple in two graphs that FROM merges, is returned once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.correlation import mentions
from construct_messages.query.algebra.nodes import Dataset, Scan, Triple, Var, VarOrTerm
from construct_messages.rdf.terms import Term
from construct_messages.spark.quads.table import COLUMNS, QuadTable
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.values import any_of, column, literal, may_fail


def scan(pattern: Triple, table: QuadTable, dataset: Dataset) -> DataFrame:
    """Returns the solutions of a triple pattern: a column for each of its variables, none of them NULL.

    Args:
        pattern: its graph decides where it matches: the default graph, one named graph, or any.
        table: the quads.
        dataset: the graphs of FROM and FROM NAMED.
    """
    condition, columns = matching(pattern, dataset)
    found = table.frame.filter(condition).selectExpr(*columns)
    if not columns:
        return found.limit(1)  # a pattern without variables has one solution or none
    return found if is_distinct(pattern.graph, table, dataset) else found.distinct()


def matching(
    pattern: Triple, dataset: Dataset, needed_for: Iterable[Scan] = ()
) -> tuple[str, list[str]]:
    """Returns SQL over a table's columns: the condition and the columns of the quads that match a pattern, with
    duplicates.

    Args:
        pattern, dataset: as for `scan`.
        needed_for: leave out quads that none of these patterns needs; none: keep all.

    >>> matching(Triple(Var("s"), Term("<urn:p>"), Var("o")), Dataset())
    ("graph IS NULL AND predicate = '<urn:p>'", ['subject AS v_s', 'object AS v_o'])
    """
    conditions = [_condition(pattern, dataset)]
    if needed := _needed(needed_for, dataset):
        conditions.append(f"({needed})")
    columns = [f"{place} AS {column(variable)}" for variable, place in _places(pattern).items()]
    return " AND ".join(conditions), columns


def needed_quads(scans: Iterable[Scan], table: QuadTable, dataset: Dataset) -> QuadTable:
    """Returns the quads of a table that some of the patterns need.

    Filters only reduce the quads that are read: a quad that fails the filters of one pattern may be needed for another.
    A filter whose SQL may end the job is left out.
    """
    return replace(table, frame=table.frame.filter(_needed(scans, dataset)))


def _needed(scans: Iterable[Scan], dataset: Dataset) -> str:
    return " OR ".join(dict.fromkeys(f"({_scan_condition(scan, dataset)})" for scan in scans))


def _scan_condition(scan: Scan, dataset: Dataset) -> str:
    """Returns SQL over a table's columns that tests whether a pattern needs a quad."""
    conditions = [_condition(scan.pattern, dataset)]
    read = _places(scan.pattern)
    for one in scan.filters:
        (variable,) = mentions(one)
        sql = expressions.condition(one)
        # A lambda, as Spark does not compile it to code: that of some comparisons is so large that Java would never
        # compile the method in which lines are read.
        if not may_fail(sql):
            conditions.append(f"exists(array({read[variable]}), {column(variable)} -> {sql})")
    return " AND ".join(conditions)


def _places(pattern: Triple) -> dict[Var, str]:
    """Returns the column that each variable of a pattern is read from: the first, if it is in several."""
    places: dict[Var, str] = {}
    for name, position in zip(COLUMNS, pattern.positions, strict=True):
        if isinstance(position, Var):
            places.setdefault(position, name)
    return places


def _condition(pattern: Triple, dataset: Dataset) -> str:
    """Returns SQL over a table's columns that tests whether a quad matches a pattern.

    >>> s, o, p, q = Var("s"), Var("o"), Term("<urn:p>"), Term("<urn:q>")
    >>> print(_condition(Triple(s, p, o), Dataset()))
    graph IS NULL AND predicate = '<urn:p>'
    >>> print(_condition(Triple(s, p, s, q), Dataset()))
    graph = '<urn:q>' AND predicate = '<urn:p>' AND object = subject
    """
    read = _places(pattern)
    conditions = [in_graph(pattern.graph, dataset)]
    for name, position in zip(COLUMNS, pattern.positions, strict=True):
        if isinstance(position, Var):
            if read[position] != name:
                conditions.append(f"{name} = {read[position]}")
        elif position is not None and name != "graph":
            conditions.append(f"{name} = {literal(position)}")
    return " AND ".join(conditions)


def in_graph(graph: VarOrTerm | None, dataset: Dataset) -> str:
    """Returns SQL over the column `graph` that selects the quads that a pattern sees; `graph` as in `Triple`."""
    match graph:
        case None:
            return "graph IS NULL" if dataset.default is None else _one_of(dataset.default)
        case Var():
            return "graph IS NOT NULL" if dataset.named is None else _one_of(dataset.named)
    return (
        f"graph = {literal(graph)}" if dataset.named is None or graph in dataset.named else "FALSE"
    )


def is_distinct(graph: VarOrTerm | None, table: QuadTable, dataset: Dataset) -> bool:
    """Returns whether no two rows that `in_graph` selects are one triple of one graph.

    They may be where the table holds duplicates, and where FROM merges several graphs into one.
    """
    merges = graph is None and dataset.default is not None and len(set(dataset.default)) > 1
    return table.statistics.distinct and not merges


def named_graphs(table: QuadTable, dataset: Dataset) -> DataFrame:
    """Returns the names of the dataset's named graphs, each once, in a column `graph`.

    FROM NAMED lists them, with or without quads; otherwise they are those that hold quads.
    """
    if dataset.named is None:
        return table.frame.select("graph").filter(F.col("graph").isNotNull()).distinct()
    listed = F.array(*map(F.lit, dict.fromkeys(dataset.named))).cast("array<string>")
    return table.frame.sparkSession.range(1).select(F.explode(listed).alias("graph"))


def _one_of(names: tuple[Term, ...]) -> str:
    return any_of("graph", names) if names else "FALSE"

"""Groups of solutions and their aggregates. SPARQL 1.1 Query, section 18.5.1.

Where Spark cannot aggregate an expression itself, `evaluation.py` binds it to a variable before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import NOTHING, Aggregation, Group, Var, Vars
from construct_messages.rdf.terms import XSD
from construct_messages.spark.frames.exists import OuterBindings
from construct_messages.spark.frames.joins import join, semi_join, union
from construct_messages.spark.frames.leaf_nodes import unit
from construct_messages.spark.frames.solutions import Solutions, names
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.values import column, literal

_INTEGER: Final = f'"^^<{XSD}integer>'
_NONDETERMINISTIC: Final = {"SUM", "AVG", "SAMPLE", "GROUP_CONCAT"}
"""Aggregates whose value depends on the order in which a group is read."""


def group(
    node: Group,
    solutions: Solutions,
    aggregates: Sequence[tuple[Var, Aggregation]],
    outer: OuterBindings | None,
    table: QuadTable,
) -> Solutions:
    """Returns a solution for each group, and for each of the outer bindings.

    Args:
        node: the node, for its keys and the variables of its pattern.
        solutions: the solutions of the pattern, with columns for all keys and all aggregated variables.
        aggregates: the variables to bind, each with its aggregate.
        outer: the bindings that a body of EXISTS is evaluated for; None: outside of such bodies.
        table: the quads, for the session that they are in.
    """
    keys = frozenset(node.keys)
    if outer:
        keys |= {outer.key}
    columns = [
        F.expr(_aggregate(one, node.pattern.possible)).alias(column(variable))
        for variable, one in aggregates
    ]
    deterministic = solutions.deterministic and not any(
        one.name in _NONDETERMINISTIC for _, one in aggregates
    )
    counts = frozenset(variable for variable, one in aggregates if one.name == "COUNT")
    bound = frozenset(variable for variable, _ in aggregates)

    def grouped(keys: Vars, frame: DataFrame) -> Solutions:
        if columns:
            frame = frame.groupBy(*names(keys)).agg(*columns)
        elif keys:
            frame = frame.select(*names(keys)).distinct()
        else:
            frame = unit(table).frame
        return Solutions(frame, keys | bound, (keys & solutions.certain) | counts, deterministic)

    groups = grouped(keys, solutions.frame)
    if outer and not node.keys:
        # an empty group for each outer binding without solutions
        empty = grouped(NOTHING, solutions.frame.limit(0))
        groups = groups.materialize()
        rest = semi_join(outer.solutions.only(frozenset({outer.key})), groups, keep=False)
        groups = union(groups, join(rest, empty))
    return groups


def _aggregate(aggregation: Aggregation, inside: Vars) -> str:
    """Returns the SQL of an aggregate, also of `COUNT(DISTINCT *)`, which needs the columns of a solution.

    Args:
        inside: the variables of the pattern that is grouped.
    """
    if aggregation.argument is not None or not aggregation.distinct:
        return expressions.aggregate(aggregation)
    solution = names(variable for variable in inside if not variable.hidden)
    counted = f"COUNT(DISTINCT STRUCT({', '.join(solution)}))" if solution else "LEAST(COUNT(*), 1)"
    return f"CONCAT('\"', CAST({counted} AS STRING), {literal(_INTEGER)})"

"""Results a second of ours beside those of the others: over all queries, and over those with many results.

Over all queries, what a program takes to start decides where a query has few results.
"""

from __future__ import annotations

from typing import Final

from benchmarks.suite.records import Row
from benchmarks.suite.report.figures import Ratio, cell, measured, ratio
from benchmarks.suite.report.standings import Field, Standing

# numbers of results from which on queries are compared
THRESHOLDS: Final = (0, 1_000, 10_000)


def rates(field: Field, standing: Standing) -> list[Ratio | None]:
    """Ours to theirs, geometric means over the queries that both finished, for each threshold; None without such."""
    return [_ratio(field, standing, least) for least in THRESHOLDS]


def _seconds_per_result(row: Row) -> float | None:
    """Return the seconds that each result took which came."""
    return 1 / row.results_per_second if row.results_per_second else None


def _ratio(field: Field, standing: Standing, least: int) -> Ratio | None:
    """The seconds that theirs take for a result to ours, which is results a second of ours to theirs."""
    return ratio(
        (
            measured(row, _seconds_per_result),
            measured(standing.ours[cell(row)], _seconds_per_result),
        )
        for row in standing.rows
        if row.size >= field.smallest
        and cell(row) in standing.ours
        and standing.solutions.get((row.dataset, row.size, row.query), 0) >= least
    )

"""Results a second of ours beside those of the others: over all queries, over those with many results, and marginal.

Over all queries, what a program takes to start decides where a query has few results.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

from benchmarks.suite.records import Row
from benchmarks.suite.report.figures import Measure, Ratio, cell, measured, ratio
from benchmarks.suite.report.standings import MEASURES, Field, Standing

# numbers of results from which on queries are compared
THRESHOLDS: Final = (0, 1_000, 10_000)
# for a marginal rate, a query has this many times as many solutions over the largest data as over the smallest
_GROWN: Final = 10


class Rates(NamedTuple):
    """Ours to those of another competitor, geometric means; None where no pair of runs has both."""

    delivered: tuple[Ratio | None, ...]  # results a second that came, for each threshold
    right: Ratio | None  # results a second that came right, at the last threshold
    marginal: Ratio | None


def rates(field: Field, standing: Standing) -> Rates:
    """Compare results a second over the queries that both finished."""
    delivered = tuple(_ratio(field, standing, _seconds_per_result, least) for least in THRESHOLDS)
    right = _ratio(field, standing, _seconds_per_right_result, THRESHOLDS[-1])
    ours = _marginal(field.ours) if field.ours else {}
    theirs = _marginal(standing)
    return Rates(
        delivered, right, ratio((value, ours.get(query)) for query, value in theirs.items())
    )


def _seconds_per_result(row: Row) -> float | None:
    """Return the seconds that each result took which came."""
    return 1 / row.results_per_second if row.results_per_second else None


def _seconds_per_right_result(row: Row) -> float | None:
    right = row.groups.right if row.groups else 0
    return row.seconds / right if row.seconds is not None and right else None


def _ratio(field: Field, standing: Standing, measure: Measure, least: int) -> Ratio | None:
    """The seconds that theirs take for a result to ours, which is results a second of ours to theirs."""
    return ratio(
        (measured(row, measure), measured(standing.ours[cell(row)], measure))
        for row in standing.rows
        if row.size >= field.smallest
        and cell(row) in standing.ours
        and standing.solutions.get((row.dataset, row.size, row.query), 0) >= least
    )


def _marginal(standing: Standing) -> dict[str, float]:
    """The seconds for each further result, by query: from the smallest data that it was run over to the largest."""
    of_query: dict[str, list[tuple[int, int, float, int]]] = defaultdict(list)
    for row in standing.rows:
        seconds, expected = (
            measured(row, MEASURES["time"]),
            standing.solutions.get((row.dataset, row.size, row.query)),
        )
        if seconds is not None and row.delivered is not None and expected is not None:
            of_query[row.query].append((row.size, expected, seconds, row.delivered))
    found = {}
    for query, runs in of_query.items():
        (_, few, start, first), (_, many, end, last) = min(runs), max(runs)
        if many >= max(THRESHOLDS[-1], _GROWN * few) and end > start and last > first:
            found[query] = (end - start) / (last - first)
    return found

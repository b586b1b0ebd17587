"""Figures computed from rows of results: best cells, penalised means, ratios and scaling exponents.

Nothing is read, formatted or drawn here. A figure that cannot be had from the rows is None, never 0.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from benchmarks.suite.records import Groups, Row

Measure = Callable[[Row], float | None]

# what a run that failed counts as, in time limits: the convention of IGUANA's penalised metrics
PENALTY = 2


class Cell(NamedTuple):
    """What competitors are compared in: the same query over the same data, got the same way."""

    dataset: str
    engine: str
    size: int
    query: str


class Ratio(NamedTuple):
    """What another competitor takes to what ours takes, over the cells that both finished; above 1, ours is ahead."""

    mean: float  # geometric
    low: float
    high: float
    cells: int
    ahead: int  # cells in which ours takes less


class Fit(NamedTuple):
    """The exponent of a power law y = c · xᵉ, with a factor c for each query."""

    exponent: float
    points: int
    low: int  # smallest and largest x
    high: int
    centre: tuple[float, float]  # geometric means of x and y

    def at(self, x: float) -> float:
        """Return y on the fitted line through the centre."""
        middle_x, middle_y = self.centre
        return middle_y * math.exp(self.exponent * math.log(x / middle_x))


def cell(row: Row) -> Cell:
    """Return the cell that a row belongs to."""
    return Cell(row.dataset, row.engine, row.size, row.query)


def by_cell(rows: Iterable[Row]) -> dict[Cell, list[Row]]:
    """Return the rows of each cell, in the order of the rows."""
    cells: dict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        cells[cell(row)].append(row)
    return dict(cells)


def is_right(row: Row) -> bool:
    """Tell whether a run ended and gave every group as expected, and nothing else."""
    groups = row.groups
    return (
        row.status == "ok"
        and row.counts_match is not False
        and groups is not None
        and groups.right == groups.expected
        and not (groups.wrong or groups.merged or groups.split or groups.missing)
    )


def has_failed(row: Row) -> bool:
    """Tell whether a row counts as a failure: the run did not end, or it gave another number of groups than expected.

    An absent competitor has not failed: nothing was run.
    """
    return row.status in ("failed", "timeout", "skipped") or (
        row.status == "ok" and row.counts_match is False
    )


def failure(row: Row) -> str | None:
    """Return how a row failed: its status, `cannot` for a program that has no way to ask the query, or `count`."""
    if not has_failed(row):
        return None
    if row.status == "failed" and (row.reason or "").startswith("cannot"):
        return "cannot"
    return "count" if row.status == "ok" else row.status


def measured(row: Row, measure: Measure) -> float | None:
    """Return a figure of a run that ended; None for others, which may have figures up to their end."""
    return measure(row) if row.status == "ok" else None


def best(rows: Iterable[Row], measure: Measure) -> float | None:
    """Return the smallest figure of a cell among the competitors that gave all groups right."""
    return min(
        (value for row in rows if is_right(row) and (value := measure(row)) is not None),
        default=None,
    )


def penalised_mean(rows: Iterable[Row], limit: float) -> float | None:
    """Return the arithmetic mean of the seconds of rows, where each failure counts as twice the time limit.

    Args:
        rows: of one competitor; those of an absent one do not count.
        limit: of a run, in seconds.
    """
    seconds = []
    for row in rows:
        if has_failed(row):
            seconds.append(PENALTY * limit)
        elif row.status == "ok" and row.seconds is not None:
            seconds.append(row.seconds)
    return statistics.fmean(seconds) if seconds else None


def ratio(pairs: Iterable[tuple[float | None, float | None]]) -> Ratio | None:
    """Compare figures of other competitors with ours, by cell.

    Args:
        pairs: theirs and ours; pairs without a positive figure on both sides are left out.
    """
    ratios = [theirs / ours for theirs, ours in pairs if theirs and ours]
    if not ratios:
        return None
    return Ratio(
        statistics.geometric_mean(ratios),
        min(ratios),
        max(ratios),
        len(ratios),
        sum(each > 1 for each in ratios),
    )


def exponent(points: Iterable[tuple[str, int, float | None]]) -> Fit | None:
    """Fit a line to the logarithms of points, with an intercept of its own for each query.

    The slope is that of the deviations from the query's means, so that queries of different cost can be pooled.

    Args:
        points: the query, x (solutions) and y; points without positive x and y are left out.

    Returns:
        None unless a query has two different x.
    """
    of_query: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for query, x, y in points:
        if x > 0 and y is not None and y > 0:
            of_query[query].append((x, y))
    usable = [of for of in of_query.values() if len({x for x, _ in of}) > 1]
    if not usable:
        return None
    xs: list[float] = []
    ys: list[float] = []
    for of in usable:
        logs = [(math.log(x), math.log(y)) for x, y in of]
        middle_x, middle_y = (statistics.fmean(each) for each in zip(*logs, strict=True))
        xs += [x - middle_x for x, _ in logs]
        ys += [y - middle_y for _, y in logs]
    slope = statistics.linear_regression(xs, ys, proportional=True).slope
    used = [point for of in usable for point in of]
    every_x = [x for x, _ in used]
    centre = statistics.geometric_mean(every_x), statistics.geometric_mean(y for _, y in used)
    return Fit(slope, len(used), min(every_x), max(every_x), centre)


def solutions(rows: Iterable[Row]) -> dict[tuple[str, int, str], int]:
    """Return the number of solutions by dataset, size and query: that of the truth, from whichever row has it."""
    found: dict[tuple[str, int, str], int] = {}
    for row in rows:
        if row.groups is not None:
            found[row.dataset, row.size, row.query] = row.groups.expected
    return found


def total(rows: Sequence[Row]) -> Groups | None:
    """Add up the groups of all runs that ended; None where there is none."""
    found = [row.groups for row in rows if row.status == "ok" and row.groups is not None]
    if not found:
        return None
    return Groups(*(sum(values) for values in zip(*map(_values, found), strict=True)))


def _values(groups: Groups) -> tuple[int, ...]:
    return (
        groups.expected,
        groups.right,
        groups.wrong,
        groups.merged,
        groups.split,
        groups.missing,
    )

"""What each competitor did over the same data, and how that compares with ours: the rows of the report's tables.

Competitors that load a file are compared with ours over files, those that ask an endpoint with ours over the same
endpoint. No text here.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from benchmarks.suite.records import Groups, Results, Row
from benchmarks.suite.report.figures import (
    Cell,
    Fit,
    Measure,
    Ratio,
    best,
    by_cell,
    cell,
    exponent,
    failure,
    is_right,
    measured,
    penalised_mean,
    ratio,
    solutions,
    total,
)

# what is compared, by the words of the tables; less is better
MEASURES: Final[Mapping[str, Measure]] = {
    "time": lambda row: row.seconds,
    "time to the first": lambda row: row.first_seconds,
    "memory": lambda row: row.peak_bytes,
}
# the size from which on ours is to be ahead
LARGE: Final = 100_000
# the competitor that is our server
_SERVER: Final = "ours-server"


def is_ours(row: Row) -> bool:
    """Tell whether a row is of this package."""
    return row.group == "ours"


@dataclass(frozen=True)
class Standing:
    """A competitor over one data set, got one way."""

    rows: Sequence[Row]
    ours: Mapping[Cell, Row]  # what it is compared with
    limits: Mapping[str, float]  # seconds, by size
    solutions: Mapping[tuple[str, int, str], int]

    @property
    def title(self) -> str:
        return self.rows[0].title

    @property
    def competitor(self) -> str:
        return self.rows[0].competitor

    @property
    def is_ours(self) -> bool:
        return is_ours(self.rows[0])

    @cached_property
    def groups(self) -> Groups | None:
        """The groups of all runs that ended."""
        return total(self.rows)

    @cached_property
    def failures(self) -> Counter[str]:
        """How many rows failed, by how."""
        return Counter(how for row in self.rows if (how := failure(row)) is not None)

    @property
    def gets_all_right(self) -> bool:
        """Whether every run that ended and whose groups are known gave all of them right, and there is one."""
        known = [row for row in self.rows if row.status == "ok" and row.groups is not None]
        return bool(known) and all(map(is_right, known))

    def at(self, size: int) -> list[Row]:
        """Return the rows of a size."""
        return [row for row in self.rows if row.size == size]

    def penalised_mean(self, size: int) -> float | None:
        """Return the mean seconds at a size, where a failure counts as twice the limit."""
        return penalised_mean(self.at(size), self.limits[str(size)])

    def median(self, size: int, measure: Measure) -> float | None:
        """Return the median of a figure over the queries that ended at a size."""
        values = [value for row in self.at(size) if (value := measured(row, measure)) is not None]
        return statistics.median(values) if values else None

    def beside_ours(self, measure: Measure, smallest: int = 0) -> Ratio | None:
        """Compare with ours over the cells that both finished, of data of `smallest` triples and more."""
        return ratio(
            (measured(row, measure), measured(self.ours[cell(row)], measure))
            for row in self.rows
            if row.size >= smallest and cell(row) in self.ours
        )

    def fit(self, measure: Measure) -> Fit | None:
        """Fit the exponent of a figure in the number of solutions."""
        return exponent(
            (
                row.query,
                self.solutions.get((row.dataset, row.size, row.query), 0),
                measured(row, measure),
            )
            for row in self.rows
        )


class Field(NamedTuple):
    """All competitors over one data set, got one way; ours first."""

    dataset: str
    engine: str
    sizes: Sequence[int]
    standings: Sequence[Standing]

    @property
    def ours(self) -> Standing | None:
        """What the others are compared with: the first of ours."""
        return next((standing for standing in self.standings if standing.is_ours), None)

    @property
    def served(self) -> Field | None:
        """The same, where the others are compared with our server, which is started before anything is measured."""
        server = next(
            (standing for standing in self.standings if standing.competitor == _SERVER), None
        )
        if server is None or server is self.ours:
            return None
        ours = {cell(row): row for row in server.rows}
        standings = sorted(self.standings, key=lambda standing: standing is not server)
        return self._replace(standings=[replace(standing, ours=ours) for standing in standings])

    @property
    def smallest(self) -> int:
        """The size from which on others are compared with ours: a large one, if there is one."""
        return LARGE if self.sizes[-1] >= LARGE else 0

    @property
    def large_sizes(self) -> Sequence[int]:
        """The sizes at which others are compared with ours."""
        return [size for size in self.sizes if size >= self.smallest]

    @property
    def others(self) -> Sequence[Standing]:
        """The competitors that are not ours."""
        return [standing for standing in self.standings if not standing.is_ours]


def fields(results: Results) -> list[Field]:
    """Return the fields of results in the order of their rows; competitors of which nothing was run are in none."""
    numbers = solutions(results.rows)
    of_field: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in results.rows:
        if row.status != "absent":
            of_field[row.dataset, row.engine][row.competitor].append(row)
    found = []
    for (dataset, engine), of_competitor in of_field.items():
        first_of_ours = next((rows for rows in of_competitor.values() if is_ours(rows[0])), [])
        ours = {cell(row): row for row in first_of_ours}
        standings = [
            Standing(rows, ours, results.limits, numbers) for rows in of_competitor.values()
        ]
        sizes = sorted({row.size for rows in of_competitor.values() for row in rows})
        found.append(
            Field(
                dataset, engine, sizes, sorted(standings, key=lambda standing: not standing.is_ours)
            )
        )
    return found


class Race(NamedTuple):
    """Ours beside the best of the others that gave all groups right, cell by cell."""

    ratio: Ratio | None  # over the cells that both got right, if there are any
    rivals: Counter[str]  # titles of the best others, and in how many cells each is it
    alone: int  # cells that only ours got right
    failed: int  # cells that another one got right and ours did not


def race(field: Field, measure: Measure, sizes: Container[int]) -> Race:
    """Compare ours with the best of the others that gave all groups right, cell by cell."""
    of_cell = by_cell(row for standing in field.others for row in standing.rows)
    pairs, rivals, alone, failed = [], Counter[str](), 0, 0
    for row in field.ours.rows if field.ours else ():
        if row.size not in sizes:
            continue
        others = of_cell.get(cell(row), [])
        own, theirs = best([row], measure), best(others, measure)
        if own is not None and theirs is not None:
            pairs.append((theirs, own))
            rivals[
                next(each.title for each in others if is_right(each) and measure(each) == theirs)
            ] += 1
        alone += theirs is None and own is not None
        failed += own is None and theirs is not None
    return Race(ratio(pairs), rivals, alone, failed)


class Loss(NamedTuple):
    """Another competitor takes less than ours of something, in some cells of one field and size."""

    title: str
    field: Field
    size: int
    measure: str
    cells: int  # in which it takes less
    compared: int  # which both finished
    factor: float  # geometric mean of theirs to ours over the cells in which it takes less
    right: int  # of these cells, those in which it gave all groups right


def losses(found: Iterable[Field]) -> list[Loss]:
    """Return where others take less than ours, by field, size, measure and competitor."""
    return [
        loss
        for field in found
        for standing in field.others
        for name in MEASURES
        for size in field.sizes
        if (loss := _loss(field, standing, name, size)) is not None
    ]


def _loss(field: Field, standing: Standing, name: str, size: int) -> Loss | None:
    measure = MEASURES[name]
    pairs = [
        (row, theirs / own)
        for row in standing.at(size)
        if cell(row) in standing.ours
        and (theirs := measured(row, measure))
        and (own := measured(standing.ours[cell(row)], measure))
    ]
    ahead = [(row, factor) for row, factor in pairs if factor < 1]
    if not ahead:
        return None
    factor = statistics.geometric_mean(factor for _, factor in ahead)
    right = sum(is_right(row) for row, _ in ahead)
    return Loss(standing.title, field, size, name, len(ahead), len(pairs), factor, right)

"""The goals that the suite was built to check, and whether the results meet them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from benchmarks.suite.records import Row
from benchmarks.suite.report.figures import Ratio, cell, measured, ratio
from benchmarks.suite.report.headline import THROUGH_SERVER, way
from benchmarks.suite.report.standings import MEASURES, Field, Standing, race
from benchmarks.suite.report.text import escape, times

# how many times as many results a second as another competitor, by its name
_RATES: Final = {"comunica-cli": 8.0, "flat-shape": 100.0}
# how fast time and memory may grow with the number of solutions
_GROWTH: Final = {"time": 1.05, "memory": 0.05}


class Goal(NamedTuple):
    """A goal, what came out, and whether that meets it."""

    what: str
    wanted: str
    found: str
    met: bool


def goals(fields: Sequence[Field]) -> list[Goal]:
    """Return the goals that the results say something about."""
    found: list[Goal] = []
    for field in fields:
        found += _of_field(way(field), field)
        if served := field.served:
            found += _of_field(f"{way(field)}{THROUGH_SERVER}", served)
    return found


def _of_field(where: str, field: Field) -> Iterator[Goal]:
    ours = field.ours
    if ours is None or field.engine not in ("file", "oxigraph"):
        return
    for name in ("time", "memory"):
        found = race(field, MEASURES[name], field.large_sizes)
        if found.ratio is not None:
            ahead, cells = found.ratio.ahead, found.ratio.cells + found.failed
            what = f"{where}: least {name} of all with all groups right"
            yield Goal(what, "all pairs of query and size", f"{ahead} of {cells}", ahead == cells)
    for standing in field.others:
        wanted = _RATES.get(standing.competitor)
        if wanted is None:
            continue
        if (rate := rates(field, standing)) is not None:
            what = f"{where}: results a second, to those of {escape(standing.title)}"
            yield Goal(what, f"≥ {wanted:g} ×", times(rate.mean), rate.mean >= wanted)
    for name, most in _GROWTH.items():
        if (fit := ours.fit(MEASURES[name])) is not None:
            what = f"{where}: growth of {name}, as a power of the number of solutions"
            yield Goal(what, f"≤ {most:g}", f"{fit.exponent:.2f}", fit.exponent <= most)


def rates(field: Field, standing: Standing) -> Ratio | None:
    """Compare results a second of ours to theirs over the queries that both finished; None without such."""
    # the seconds that theirs take for a result to those of ours are results a second of ours to theirs
    return ratio(
        (
            measured(row, _seconds_per_result),
            measured(standing.ours[cell(row)], _seconds_per_result),
        )
        for row in standing.rows
        if row.size >= field.smallest and cell(row) in standing.ours
    )


def _seconds_per_result(row: Row) -> float | None:
    return 1 / row.results_per_second if row.results_per_second else None

"""The figures of the benchmark suite's report: computed from rows that are made up, beside what they must be."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.suite.records import Groups, Row
from benchmarks.suite.report.figures import (
    best,
    exponent,
    has_failed,
    is_right,
    penalised_mean,
    ratio,
    solutions,
    total,
)
from benchmarks.suite.report.goals import rates
from benchmarks.suite.report.standings import MEASURES, Field, fields, losses, race
from tests.support.benchmarks import groups, many, results, row

SECONDS = MEASURES["time"]


@pytest.mark.parametrize(
    ("changed", "right", "failed"),
    [
        ({}, True, False),
        ({"groups": groups(3, wrong=1)}, False, False),
        ({"groups": groups(3, merged=1)}, False, False),
        ({"groups": groups(3, right=2, split=1)}, False, False),
        ({"groups": groups(3, right=2, missing=1)}, False, False),
        ({"groups": None}, False, False),
        ({"groups": groups(0)}, True, False),
        ({"groups": groups(3, wrong=1), "counts_match": False}, False, True),
        ({"groups": None, "counts_match": None}, False, False),
        ({"status": "failed"}, False, True),
        ({"status": "timeout"}, False, True),
        ({"status": "skipped"}, False, True),
        ({"status": "absent", "counts_match": None}, False, False),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_what_is_right_and_what_has_failed(
    changed: dict[str, object], right: bool, failed: bool
) -> None:
    changed_row = row(**changed)  # type: ignore[arg-type]
    assert (is_right(changed_row), has_failed(changed_row)) == (right, failed)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], None),
        ([row(seconds=3), row("flat", 2), row("cli", 5)], 2),
        ([row(seconds=3), row("flat", 2, groups=groups(9, wrong=1))], 3),
        ([row(seconds=3), row("flat", 2, status="timeout")], 3),
        ([row(seconds=None)], None),
        ([row("flat", 2, groups=None)], None),
    ],
    ids=[
        "nothing",
        "fastest",
        "faster with wrong groups",
        "faster until it failed",
        "all failed",
        "groups unknown",
    ],
)
def test_the_best_of_those_with_all_groups_right(rows: list[Row], expected: float | None) -> None:
    assert best(rows, SECONDS) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(seconds=2), row(seconds=4)], 3),
        ([row(seconds=2), row(seconds=None)], 31),
        ([row(seconds=2), row(seconds=1, counts_match=False)], 31),
        ([row(seconds=None, status="skipped"), row(seconds=None, status="failed")], 60),
        ([row(seconds=2), row(seconds=None, status="absent")], 2),
        ([row(seconds=None, status="absent")], None),
        ([], None),
    ],
    ids=["ended", "timeout", "wrong count", "all failed", "absent", "only absent", "nothing"],
)
def test_a_failure_counts_as_twice_the_limit(rows: list[Row], expected: float | None) -> None:
    assert penalised_mean(rows, limit=30) == expected


def test_ratios_are_geometric_and_leave_out_what_was_not_measured() -> None:
    found = ratio([(8.0, 1.0), (1.0, 2.0), (None, 1.0), (1.0, None)])
    assert found is not None
    assert (found.mean, found.low, found.high, found.cells, found.ahead) == (
        pytest.approx(2),
        0.5,
        8,
        2,
        1,
    )
    assert ratio([(None, 1.0)]) is None


@given(
    st.floats(-1, 2),
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(st.floats(0.01, 100), st.sets(st.integers(1, 10**7), min_size=1, max_size=4)),
        min_size=1,
    ),
)
def test_the_exponent_of_a_power_law_is_found_whatever_each_query_costs(
    power: float, queries: dict[str, tuple[float, set[int]]]
) -> None:
    points = [(query, x, factor * x**power) for query, (factor, xs) in queries.items() for x in xs]
    found = exponent([*points, ("a", 100, None), ("b", 0, 1.0), ("c", 5, 0.0)])
    if all(len(xs) == 1 for _, xs in queries.values()):
        assert found is None
        return
    assert found is not None
    # two numbers of solutions next to each other leave few digits
    assert found.exponent == pytest.approx(power, abs=1e-6)
    used = [point for point in points if len(queries[point[0]][1]) > 1]
    assert found.points == len(used)
    assert (found.low, found.high) == (min(x for _, x, _ in used), max(x for _, x, _ in used))
    x, y = (
        statistics.fmean(map(math.log, values))
        for values in zip(*[point[1:] for point in used], strict=True)
    )
    assert math.log(found.at(math.exp(x))) == pytest.approx(y, abs=1e-6)


def test_the_exponent_of_noisy_points_is_that_of_least_squares() -> None:
    points = [(10, 1.0), (100, 3.0), (1000, 40.0)]
    logs = [(math.log(x), math.log(y)) for x, y in points]
    expected = statistics.linear_regression(*zip(*logs, strict=True)).slope  # type: ignore[arg-type]
    found = exponent([("a", x, y) for x, y in points])
    assert found is not None
    assert found.exponent == pytest.approx(expected)


def test_numbers_of_solutions_are_those_of_the_truth_also_for_rows_that_failed() -> None:
    rows = [row("slow", None), row(groups=groups(12))]
    assert solutions(rows) == {("dbpedia-shaped", 100_000, "star"): 12}


def test_groups_are_added_over_the_runs_that_ended() -> None:
    rows = [
        row(groups=groups(3, wrong=2)),
        row(groups=groups(4, right=1, missing=3)),
        row(seconds=None),
    ]
    assert total(rows) == Groups(expected=7, right=4, wrong=2, merged=0, split=0, missing=3)
    assert total([row(seconds=None)]) is None


def field(*rows: Row) -> Field:
    (found,) = fields(results(*rows))
    return found


def test_competitors_are_compared_with_ours_over_the_same_data_got_the_same_way() -> None:
    rows = [
        row("cli", 2),
        row("ours", 1),
        row("ours-endpoint", 4, engine="oxigraph"),
        row("flat", 2, engine="oxigraph"),
        row("gone", None, status="absent", engine="nowhere"),
    ]
    files, endpoint = fields(results(*rows))
    assert [each.competitor for each in files.standings] == ["ours", "cli"]  # ours first
    (cli,), (flat,) = files.others, endpoint.others
    assert [
        found and found.mean for found in (cli.beside_ours(SECONDS), flat.beside_ours(SECONDS))
    ] == [2, 0.5]


def test_a_field_without_ours_compares_with_nothing() -> None:
    found = field(row("cli", 2))
    assert found.ours is None
    assert found.others[0].beside_ours(SECONDS) is None
    assert race(found, SECONDS, found.sizes) == (None, {}, 0, 0)
    assert losses([found]) == []


def test_the_race_is_against_the_best_with_all_groups_right_in_each_cell() -> None:
    rows = [
        *(row(query="lost", seconds=2), row("cli", 1, query="lost"), row("flat", 8, query="lost")),
        *(row(query="won", seconds=1), row("cli", 8, query="won")),
        *(row(query="alone", seconds=1), row("cli", 0.5, query="alone", groups=groups(3, wrong=1))),
        *(row(query="failed", seconds=None), row("cli", 1, query="failed")),
        *(row(query="wrong", seconds=1, groups=groups(3, wrong=1)), row("cli", 2, query="wrong")),
        *(row(query="small", size=10_000, seconds=9), row("cli", 1, query="small", size=10_000)),
    ]
    found = race(field(*rows), SECONDS, [100_000])
    assert found.ratio is not None
    assert (found.ratio.mean, found.ratio.ahead, found.ratio.cells) == (pytest.approx(2), 1, 2)
    assert (found.alone, found.failed) == (1, 2)
    alone = race(field(*rows[5:9]), SECONDS, [100_000])
    assert (alone.ratio, alone.alone, alone.failed) == (None, 1, 1)


def test_losses_are_told_by_size_measure_and_competitor() -> None:
    rows = [
        *(row(query="one"), row(query="two"), row(query="three")),
        *(
            row("cli", 0.25, query="one"),
            row("cli", 4, query="two"),
            row("cli", None, query="three"),
        ),
        row("flat", 0.5, query="one", groups=groups(3, wrong=1), peak_bytes=2**30),
    ]
    told = [
        (loss.title, loss.measure, loss.cells, loss.compared, loss.factor, loss.right)
        for loss in losses([field(*rows)])
    ]
    assert told == [
        ("Cli", "time", 1, 2, pytest.approx(0.25), 1),
        ("Cli", "time to the first", 1, 2, pytest.approx(0.25), 1),
        ("Flat", "time", 1, 1, pytest.approx(0.5), 0),
        ("Flat", "time to the first", 1, 1, pytest.approx(0.5), 0),
    ]


def test_standings_of_many_rows() -> None:
    files = fields(many())[0]
    slow, flat = (
        next(each for each in files.others if each.competitor == name) for name in ("slow", "flat")
    )
    assert slow.failures == {"timeout": 4}
    assert flat.failures == {"count": 12}
    assert slow.gets_all_right
    assert not flat.gets_all_right
    assert slow.penalised_mean(1_000_000) == 60
    assert slow.median(1_000_000, SECONDS) is None
    assert slow.median(10_000, SECONDS) == pytest.approx(1.25)
    memory = slow.fit(MEASURES["memory"])
    assert memory is not None
    assert memory.exponent == pytest.approx(1, abs=0.01)
    assert race(files, SECONDS, files.large_sizes).rivals == {"Cli": 8}


def test_rates_of_results() -> None:

    def run(competitor: str, size: int, query: str, count: int, seconds: float) -> Row:
        figures = {"results_per_second": count / seconds, "groups": groups(count)}
        return row(competitor, seconds, size=size, query=query, engine="oxigraph", **figures)

    found = fields(
        results(
            run("ours", 10_000, "many", 1_000, 1.1),
            run("ours", 1_000_000, "many", 100_000, 2.1),
            run("ours", 100_000, "few", 10, 1.0),
            row("ours", None, query="slow", engine="oxigraph"),
            run("flat", 10_000, "many", 1_000, 1.2),
            run("flat", 1_000_000, "many", 100_000, 11.2),
            run("flat", 100_000, "few", 10, 0.5),
            run("flat", 100_000, "slow", 5_000, 9.0),
            row("none", None, query="many", size=1_000_000, engine="oxigraph"),
        )
    )
    (field,) = found
    flat, none = (rates(field, standing) for standing in field.others)
    assert flat is not None
    assert (flat.mean, flat.cells) == (pytest.approx(math.sqrt(11.2 / 2.1 * 0.5)), 2)
    assert none is None

"""CSRBench: the recorded answers of C-SPARQL, SPARQLstream and CQELS that can be had again, and why others cannot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from construct_messages.continuous import Bounds
from construct_messages.query.continuous.values import Report
from tests.support.places import shared_path
from tests.support.windows.csrbench import READINGS, REASONS, Benchmark, Reading, Relation

pytestmark = [pytest.mark.suite, pytest.mark.slow]


@pytest.fixture(scope="module")
def benchmark_() -> Benchmark:
    return Benchmark(shared_path("suites/csrbench"))


def answers(reasons: bool) -> list[object]:
    known = REASONS if reasons else READINGS
    return [pytest.param(*key, id=f"{key[0]} {key[1]}") for key in known]


def recorded(relations: list[Relation], reading: Reading) -> list[Relation]:
    return [relation for relation in relations if relation.solutions or reading.empty]


@pytest.mark.parametrize(("engine", "query"), answers(reasons=False))
def test_answer(benchmark_: Benchmark, engine: str, query: int) -> None:
    reading = READINGS[engine, query]
    theirs, ours = (
        benchmark_.answer(engine, query),
        recorded(list(benchmark_.evaluate(query, reading)), reading),
    )
    if engine == "csparql":
        ours = [
            relation for relation in ours if relation.time > 0
        ]  # it has nothing to say of the first element alone
    assert [relation.solutions for relation in ours] == [relation.solutions for relation in theirs]
    for their, our in zip(theirs, ours, strict=True):
        if engine == "cqels":  # which tells when it was ready, within the second
            assert our.time <= their.time < our.time + 1
        elif (
            their is theirs[-1] and engine == "sparqlstream"
        ):  # at the end of the stream, it does not wait
            assert our.time - 1 <= their.time <= our.time
        else:
            assert our.time == their.time


def test_every_answer_is_explained() -> None:
    engines = ("csparql", "sparqlstream", "cqels")
    assert {*READINGS, *REASONS} == {(engine, query) for engine in engines for query in range(1, 8)}
    assert len(READINGS) == 14
    assert not READINGS.keys() & REASONS.keys()


def by_second(relations: list[Relation]) -> Counter[tuple[int, tuple[str, ...]]]:
    return Counter(
        (int(relation.time), solution) for relation in relations for solution in relation.solutions
    )


@pytest.mark.parametrize("query", [3, 5])
def test_csparql_at_the_ends_of_windows(benchmark_: Benchmark, query: int) -> None:
    theirs = by_second(benchmark_.answer("csparql", query))
    closed_open, open_closed = (
        by_second(list(benchmark_.evaluate(query, Reading(bounds=bounds))))
        for bounds in (Bounds.CLOSED_OPEN, Bounds.OPEN_CLOSED)
    )
    assert theirs not in (closed_open, open_closed)
    assert closed_open & open_closed <= theirs <= closed_open | open_closed


def test_sparqlstream_averages_of_nothing(benchmark_: Benchmark) -> None:
    theirs, ours = benchmark_.answer("sparqlstream", 4), list(benchmark_.evaluate(4, Reading()))
    averages = [relation for relation in theirs if relation.solutions != [("null",)]]
    assert averages == [relation for relation in ours if relation.solutions != [("0.000000000",)]]
    assert [relation.time for relation in theirs[len(averages) :]] == [39, 43, 47]
    assert [relation.time for relation in ours[: -len(averages)]] == [4, 8, 12]


def test_cqels_gives_solutions_singly(benchmark_: Benchmark) -> None:
    theirs, ours = benchmark_.answer("cqels", 3), list(benchmark_.evaluate(3, READINGS["cqels", 1]))
    assert all(len(relation.solutions) == 1 for relation in theirs)
    assert any(len(relation.solutions) > 1 for relation in ours)
    assert by_second(theirs) == by_second(ours)


def test_cqels_averages_over_three_or_four_seconds(benchmark_: Benchmark) -> None:
    theirs = by_second(benchmark_.answer("cqels", 4))
    sliding = Reading(report=Report.CONTENT_CHANGE, step=0)
    three, four = (
        by_second(list(benchmark_.evaluate(4, replace(sliding, range=width)))) for width in (3, 4)
    )
    assert theirs <= three | four
    assert theirs - three
    assert theirs - four


def test_cqels_joins_50_seconds(benchmark_: Benchmark) -> None:
    reading = replace(READINGS["cqels", 1], range=50, step=50)
    theirs, ours = (
        by_second(benchmark_.answer("cqels", 6)),
        by_second(list(benchmark_.evaluate(6, reading))),
    )
    assert theirs < ours
    assert (ours - theirs).total() == 13


def test_cqels_gives_every_temperature(benchmark_: Benchmark) -> None:
    theirs = {values[0] for _, values in by_second(benchmark_.answer("cqels", 7))}
    property = b" <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#observedProperty> "
    temperature = b"<http://knoesis.wright.edu/ssw/ont/weather.owl#_AirTemperature>"
    observed = {
        line.partition(b" ")[0][1:-1].decode()
        for element in benchmark_.elements
        for line in element.nquads.split(b"\n")
        if property + temperature in line
    }
    assert theirs == observed

"""Every query evaluation test of the W3C's SPARQL 1.0 and 1.1 on Spark: passed, or refused for a listed reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from construct_messages.errors import UnsupportedQuery, ValueOutOfRange
from tests.support.places import shared_path
from tests.support.queries.w3c import Answer, Case, agree, ask_oxigraph, cases, expected
from tests.support.spark.sessions import LARGEST, PLANNED
from tests.support.spark.w3c import REFUSED, Runner

pytestmark = [pytest.mark.suite, pytest.mark.slow]

ROOT = "suites/w3c/sparql"


@cache
def all_cases() -> list[Case]:
    return cases(shared_path(ROOT))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        try:
            found = all_cases()
        except (pytest.skip.Exception, pytest.fail.Exception):
            found = []
        if metafunc.function.__name__ == "test_as_spark_comes":
            found = found[::50]
        elif metafunc.config.getoption("--w3c") == "some":
            found = found[::8]
        metafunc.parametrize("case", found, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def runner(quick):
    return Runner(quick)


@pytest.fixture(scope="module")
def usual(spark):
    return Runner(spark.newSession())


def check(runner: Runner, case: Case, record: Callable[[str, object], None]) -> None:
    wanted = expected(case)
    try:
        planned = runner.plan(case)
        record(PLANNED, planned.seconds)
        assert planned.operators <= LARGEST
        answer = planned.answer()
    except (UnsupportedQuery, ValueOutOfRange) as refusal:
        if case.name not in REFUSED:
            pytest.fail(f"refused, and not listed: {refusal}")
        return
    assert case.name not in REFUSED, "listed as refused, and answered"
    if not agree(answer, wanted, lax=case.lax):
        pytest.fail(
            f"{case.text}\ngives    {answer}\nexpected {wanted}\npyoxigraph {second_opinion(case)}"
        )


def second_opinion(case: Case) -> Answer | str:
    try:
        return ask_oxigraph(case)
    except SyntaxError as error:
        return str(error)


def test_all_are_there() -> None:
    names = [case.name for case in cases(shared_path(ROOT))]
    assert len(names) == len(set(names)) == 518
    assert set(REFUSED) <= set(names)
    assert len(REFUSED) <= len(names) / 10


def test_evaluation(
    runner: Runner, case: Case, record_property: Callable[[str, object], None]
) -> None:
    check(runner, case, record_property)


def test_as_spark_comes(
    usual: Runner, case: Case, record_property: Callable[[str, object], None]
) -> None:
    """A sample with Spark's own settings: compiled, and adapted while it runs."""
    check(usual, case, record_property)


def test_the_comparison_can_fail() -> None:
    """The oracle itself: where it differs from the expected results, comparing says so."""
    found = cases(shared_path(ROOT))
    differ = []
    for case in found:
        try:
            answer = ask_oxigraph(case)
        except SyntaxError:
            continue
        if not agree(answer, expected(case), lax=case.lax):
            differ.append(case.name)
    # it writes numbers anew where a test keeps apart how they are written, and has GRAPH and zero lengths its own way
    assert 0 < len(differ) < 30, differ

"""The query evaluation tests of the W3C's SPARQL 1.0 and 1.1 on DuckDB: an eighth of them, or all by `--w3c all`."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.places import shared_path
from tests.support.queries.w3c import Case, agree, cases, expected

pytest.importorskip("duckdb")

from tests.support.queries.relational import answer

pytestmark = pytest.mark.suite

ROOT = "suites/w3c/sparql"


@cache
def all_cases() -> list[Case]:
    return cases(shared_path(ROOT))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "folder" in metafunc.fixturenames:
        try:
            found = sorted({case.folder for case in all_cases()})
        except (pytest.skip.Exception, pytest.fail.Exception):
            found = []
        metafunc.parametrize("folder", found)


def test_all_are_there() -> None:
    assert len(cases(shared_path(ROOT))) == 518


def test_evaluation(folder: str, request: pytest.FixtureRequest) -> None:
    wrong = []
    step = 8 if request.config.getoption("--w3c") == "some" else 1
    for case in all_cases()[::step]:
        if case.folder == folder:
            found, wanted = answer(case), expected(case)
            if not agree(found, wanted, lax=case.lax):
                wrong.append(f"{case.name}\n{case.text}\ngives    {found}\nexpected {wanted}")
    assert not wrong, "\n\n".join(wrong)

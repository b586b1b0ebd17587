"""The implementation report: it has every case of the suite, names tests that exist, and is up to date."""

from __future__ import annotations

import ast
import json
import re

import pytest

from tests.support.conformance.report import CASES, DRAFT, FIRST, LIVE, PAGE, TESTS, Case, page
from tests.support.places import ROOT, shared_path

NAMED = sorted({test for each in (*CASES, *DRAFT, *TESTS, *LIVE, *FIRST) for test in each.tests})


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run python -m tests.support.conformance.report"
    )


@pytest.mark.suite
def test_every_case_is_in_the_report() -> None:
    suite = json.loads(shared_path("suites/rdf-messages/cases.json").read_text(encoding="utf-8"))
    given = {case["id"]: case["name"] for case in suite["cases"]}
    assert {case.id: case.name for case in CASES} == given
    assert len(CASES) == len(given) == 28


@pytest.mark.parametrize("test", NAMED)
def test_each_named_test_is_run(test: str) -> None:
    """It exists, and is neither skipped nor expected to fail."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    marks = " ".join(map(ast.unparse, function.decorator_list))
    assert "skip" not in marks
    assert "xfail" not in marks


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_case_is_named_where_it_is_run(case: Case) -> None:
    for path in {test.partition("::")[0] for test in case.tests}:
        assert re.search(
            rf"(?<![\d.]){re.escape(case.id)}(?!\d)", (ROOT / path).read_text(encoding="utf-8")
        ), path

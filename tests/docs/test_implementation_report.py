"""The implementation report: it has every case of the suite, and names tests that are run."""

from __future__ import annotations

import ast
import json
import re

import pytest

from tests.support.conformance.report import CASES, DRAFT, FIRST, LIVE, TESTS, page
from tests.support.places import ROOT, shared_path

NAMED = sorted({test for each in (*CASES, *DRAFT, *TESTS, *LIVE, *FIRST) for test in each.tests})


def test_the_report_has_every_case_and_requirement() -> None:
    rows = [line for line in page().splitlines() if re.match(r"\| (?!section|case|-)", line)]
    assert len(rows) == len((*CASES, *DRAFT, *TESTS, *LIVE, *FIRST))


@pytest.mark.suite
def test_every_case_is_in_the_report() -> None:
    suite = json.loads(shared_path("suites/rdf-messages/cases.json").read_text(encoding="utf-8"))
    given = {case["id"]: case["name"] for case in suite["cases"]}
    assert {case.id: case.name for case in CASES} == given
    assert len(CASES) == len(given) == 28


def test_each_named_test_is_run() -> None:
    """It exists, and is neither skipped nor expected to fail."""
    functions = {
        f"{path}::{node.name}": node
        for path in {test.partition("::")[0] for test in NAMED}
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert [test for test in NAMED if test not in functions] == []
    marks = {test: " ".join(map(ast.unparse, functions[test].decorator_list)) for test in NAMED}
    assert [test for test, mark in marks.items() if "skip" in mark or "xfail" in mark] == []


def test_each_case_is_named_where_it_is_run() -> None:
    assert [
        (case.id, path)
        for case in CASES
        for path in {test.partition("::")[0] for test in case.tests}
        if not re.search(
            rf"(?<![\d.]){re.escape(case.id)}(?!\d)", (ROOT / path).read_text(encoding="utf-8")
        )
    ] == []

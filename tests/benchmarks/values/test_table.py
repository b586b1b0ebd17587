"""`benchmarks/suite/values/table.py`: programs over an endpoint, and what is wrong with the suite itself."""

from __future__ import annotations

import pytest

from benchmarks.suite.values.table import (
    FOR_DOCUMENTS,
    FOR_ROWS,
    Outcome,
    findings,
    measure,
    tables,
)
from benchmarks.suite.values.truth import Documents, Rows
from tests.support.places import absent

OURS = FOR_DOCUMENTS[0].title


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (Outcome("star", OURS, Documents(2, 2, 0, 0, 0)), False),
        (Outcome("star", OURS, Documents(2, 1, 1, 0, 0)), True),
        (Outcome("star", "another", Documents(2, 1, 1, 0, 0)), False),
        (Outcome("rows", OURS, Rows(2, 2, 3, 3)), False),
        (Outcome("rows", OURS, Rows(2, 2, 2, 3)), True),
        (Outcome("rows", OURS, Rows(2, 1, 3, 3)), True),
        (Outcome("star", "another", None, "failed: out of memory"), True),
        (Outcome("star", "another", None, "cannot: a schema has no BIND"), False),
        (Outcome("star", "another", None, "absent"), False),
    ],
)
def test_findings(outcome: Outcome, found: bool) -> None:
    assert bool(list(findings([outcome]))) is found


@pytest.mark.slow
@pytest.mark.engine
def test_only_messages_keep_results_apart() -> None:
    """An author of two works has an age for each: in one graph, both documents have both."""
    outcomes = list(measure(5_000, 42, ["ages"]))
    for each, program in zip(outcomes, (*FOR_DOCUMENTS, *FOR_ROWS), strict=True):
        if each.reason == "absent" and program.title.startswith(("Comunica", "LDkit")):
            absent(each.program)
    assert list(findings(outcomes)) == []
    found = {each.program: each.found for each in outcomes}
    assert found["SPARQLWrapper, rdflib + PyLD"] == Documents(10, 7, 3, 0, 0)
    assert found["Comunica CONSTRUCT + jsonld.js"] == Documents(10, 7, 3, 0, 0)
    assert found["LDkit"] is None
    assert [table.row_count for table in tables(outcomes)] == [4, 4]

"""The W3C's syntax tests of SPARQL 1.0, 1.1 and 1.2, and the queries of its evaluation tests."""

from __future__ import annotations

from typing import Final

import pytest

from construct_messages.errors import QueryError
from construct_messages.query.checks import check
from construct_messages.query.syntax.parser import parse
from tests.support.queries.mutants import BASE
from tests.support.queries.syntax_cases import syntax_cases

pytestmark = pytest.mark.suite

EXCEPTIONS: Final[dict[str, str]] = {}
"""Tests with another outcome here, and why."""


def is_read(text: str) -> bool:
    try:
        check(parse(text, base=BASE))
    except QueryError as refused:
        return refused.position is None  # which an error must have
    return True


def test_legal_queries_are_read_and_others_refused() -> None:
    cases = syntax_cases()
    assert len(cases) > 1100
    wrong = {case.name for case in cases if is_read(case.text) != case.legal}
    assert wrong == set(EXCEPTIONS)

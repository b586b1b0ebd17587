"""Triple patterns and property paths as leaves of the algebra."""

from __future__ import annotations

import pytest

from tests.support.queries.algebra_text import NOW, cases, text, translate_query


@pytest.mark.parametrize(("query", "wanted"), cases("patterns"))
def test_patterns(query: str, wanted: str) -> None:
    assert text(translate_query(query, now=NOW).pattern) == wanted

"""Rewrites the assertions of what tests share, before any of it is imported, so that one that fails says why."""

import pytest
from _pytest.doctest import DoctestItem

pytest.register_assert_rewrite("tests.support")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out the examples of docstrings that tests/docs/test_api.py runs."""
    from tests.support.docs import needed

    items[:] = [
        each for each in items if not (isinstance(each, DoctestItem) and needed(each.dtest))
    ]

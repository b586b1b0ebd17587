"""Rewrites the assertions of what tests share, before any of it is imported, so that one that fails says why."""

import pytest

pytest.register_assert_rewrite("tests.support")

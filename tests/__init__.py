"""The tests, in rooms of the same names as those of the package."""

import pytest

# so that a failed assertion in what the tests share says why
pytest.register_assert_rewrite("tests.support")

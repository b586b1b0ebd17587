"""Each test of this folder runs twice: with the compiled module, and by Python alone."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _both(reader: None) -> None:
    pass

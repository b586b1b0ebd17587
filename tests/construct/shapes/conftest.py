"""Shapes of a text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from construct_messages.construct.shapes import Shapes
from tests.support.conformance.shapes import PREFIXES


@pytest.fixture
def shapes_of(tmp_path: Path) -> Callable[..., Shapes]:
    """Makes shapes of Turtle, with the prefixes of `support/conformance/shapes.py`, and of static data."""

    def make(turtle: str, data: str = "", **options: Any) -> Shapes:
        (tmp_path / "shapes.ttl").write_text(PREFIXES + turtle)
        (tmp_path / "data.ttl").write_text(PREFIXES + data)
        files = [tmp_path / "data.ttl"] if data else []
        return Shapes(tmp_path / "shapes.ttl", data=files, **options)

    return make

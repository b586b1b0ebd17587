"""Fixtures that several test modules use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_SUITES = Path(os.environ.get("CONSTRUCT_MESSAGES_SUITES") or Path(__file__).parents[2] / "shared")


def shared_path(name: str) -> Path:
    """A file or folder of the test suites, which lie beside the project; skips the test where they are absent."""
    path = _SUITES / name
    if not path.exists():
        message = f"{name} is absent: set CONSTRUCT_MESSAGES_SUITES to the folder that holds it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path

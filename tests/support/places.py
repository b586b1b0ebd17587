"""Where the project lies and where the test suites do, and what becomes of a test that misses something."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).parents[2]
_SUITES: Final = Path(os.environ.get("CONSTRUCT_MESSAGES_SUITES") or ROOT.parent / "shared")


def absent(message: str) -> NoReturn:
    """Skips a test for want of what it needs; fails it where everything is to be there; ends a benchmark."""
    if "pytest" not in sys.modules:  # benchmarks use some of what tests share, and do without
        raise SystemExit(message)
    import pytest

    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def shared_path(name: str) -> Path:
    """A file or folder of the test suites, which lie beside the project; skips the test where they are absent."""
    path = _SUITES / name
    if not path.exists():
        absent(f"{name} is absent: set CONSTRUCT_MESSAGES_SUITES to the folder that holds it")
    return path

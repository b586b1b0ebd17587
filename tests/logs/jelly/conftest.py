"""Each test of this folder runs twice: with the compiled module, and by Python alone."""

from __future__ import annotations

from tests.logs.lines.conftest import reader

__all__ = ["reader"]

"""Readers and writers of logs with the compiled module, and by Python alone."""

from __future__ import annotations

import pytest

from construct_messages.rdf import compiled
from tests.support.logs.lines import the_compiled_module

# by Python alone in the slow tests, or always where there is no compiled module
_PYTHON = pytest.param("Python", marks=pytest.mark.slow if compiled.wire else ())


@pytest.fixture(params=["compiled", _PYTHON])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that use it run twice."""
    if request.param == "Python":
        monkeypatch.setattr(compiled, "wire", None)
    else:
        the_compiled_module()

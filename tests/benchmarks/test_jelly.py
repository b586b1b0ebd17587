"""`benchmarks/micro/jelly.py`: it runs, on little data, and logs that differ stop it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.micro import jelly
from construct_messages.logs.text_encoder import PlainTemplateEncoder
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "make"),
    [(jelly.COMPANY, jelly.company), (jelly.OBSERVATION, jelly.observation)],
    ids=["triples", "quads"],
)
def test_it_runs(
    template: Template, make: Callable[[int], tuple[Term, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    solutions = [make(number) for number in range(30)]
    figures = jelly.measure("small", template, solutions, rounds=1)
    assert [figure.goal for figure in figures] == ["", "≥ 4", "≥ 4", "", "≥ 2.5"]
    monkeypatch.setattr(PlainTemplateEncoder, "encode", lambda *_: b"")
    with pytest.raises(SystemExit, match="small: the logs differ"):
        jelly.measure("small", template, solutions, rounds=1)

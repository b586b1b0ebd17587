"""The first screen of the README: an endpoint that cuts its answers, here a Virtuoso with the limits of DBpedia's."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.docs import BLOCKS, printed
from tests.support.places import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.process, pytest.mark.slow]

COUNT = 25_000
LOCATION = "http://dbpedia.org/ontology/location"
QUERY = f"CONSTRUCT {{ ?company <{LOCATION}> ?in }} WHERE {{ ?company <{LOCATION}> ?in }}"


def test_an_endpoint_with_a_cap(tmp_path: Path, serve_with: Callable[[str, Path], str]) -> None:
    block = next(each for each in BLOCKS if each.page == "README.md")
    resource = "http://dbpedia.org/resource"
    (tmp_path / "companies.nt").write_text(
        "".join(
            f"<{resource}/Company_{number}> <{LOCATION}> <{resource}/Belgium> .\n"
            for number in range(COUNT)
        )
    )
    (tmp_path / "companies.rq").write_text(QUERY)
    url = serve_with("virtuoso", tmp_path / "companies.nt")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    prompt, *sessions = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert (prompt, len(sessions)) == ("", 3)
    for session in sessions:
        command, _, output = session.replace("http://localhost:8890/sparql", url).partition("\n")
        assert printed(command, tmp_path, environment) == output
    assert not (tmp_path / "companies.nq").exists()

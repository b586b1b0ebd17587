"""The example scripts run as they are, and print what the page about them shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
PAGE = (ROOT / "docs" / "guides" / "examples.md").read_text(encoding="utf-8")


def test_every_example_is_shown() -> None:
    assert EXAMPLES
    assert sorted(re.findall(r'^--8<-- "examples/(\w+\.py)"$', PAGE, re.MULTILINE)) == [
        path.name for path in EXAMPLES
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(example: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    printed = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    ).stdout
    shown = re.search(
        rf'^--8<-- "examples/{example.name}"\n```\n\nOutput:\n\n```text\n(.*?)^```$',
        PAGE,
        re.M | re.S,
    )
    assert shown is not None
    assert printed == shown[1]

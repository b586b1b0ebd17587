"""The example scripts for Spark run as they are, in one process and one session, and print what their page shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from construct_messages.errors import SparkUnavailable
from construct_messages.spark.session import require
from tests.support.places import ROOT, absent
from tests.support.spark.sessions import QUICK

pytestmark = [pytest.mark.process, pytest.mark.slow]

EXAMPLES = sorted((ROOT / "docs" / "examples" / "spark").glob("*.py"))
PAGE = (ROOT / "docs" / "guides" / "spark-scripts.md").read_text(encoding="utf-8")
SHOWN = re.findall(r'^--8<-- "examples/spark/(\w+)\.(py|txt)"$', PAGE, re.MULTILINE)
PROGRAM = """
import json, runpy, sys
from construct_messages.spark import local_session

session = local_session("local[2]", json.loads(sys.argv[1]), input_bytes=0)
session.sparkContext.setLogLevel("OFF")
for example in sys.argv[2:]:
    print("=====", flush=True)
    runpy.run_path(example, run_name="__main__")
session.stop()
"""


def test_every_example_is_shown() -> None:
    assert sorted(SHOWN) == [(path.stem, kind) for path in EXAMPLES for kind in ("py", "txt")]
    assert len(EXAMPLES) == 10


@pytest.mark.parametrize("word", [".rdd", "regexp_", ".rlike", "import re", "_jvm", "._"])
def test_examples_need_no(word: str) -> None:
    """Neither regular expressions over terms, nor the insides of a package."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES}
    assert [name for name, text in texts.items() if word in text] == []
    imported = {
        line for text in texts.values() for line in re.findall(r"from (construct\S+) import", text)
    }
    assert imported == {"construct_messages.spark"}


def test_examples_print_what_the_page_shows(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    place = tmp_path_factory.mktemp("examples")
    (place / "queries").symlink_to(ROOT / "queries")
    settings = QUICK | {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings), *map(str, EXAMPLES)],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    _, *printed = done.stdout.split("=====\n")
    found = dict(zip((path.stem for path in EXAMPLES), printed, strict=False))
    assert {name: text.rstrip("\n") for name, text in found.items()} == {
        path.stem: path.with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n")
        for path in EXAMPLES
    }, done.stderr[-2000:]

"""The code blocks of the README and the docs."""

import re
from typing import NamedTuple

from tests.support.places import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def blocks() -> list[Block]:
    return [
        Block(
            str(page.relative_to(ROOT)),
            text.count("\n", 0, match.start()) + 1,
            match["language"],
            match["text"],
        )
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for match in re.finditer(r"^```(?P<language>.*)\n(?P<text>(?s:.*?))^```$", text, re.MULTILINE)
    ]


# the commands of this page run where a session is there already: tests/cli/test_spark.py
SPARK = "docs/spark.md"

BLOCKS = blocks()

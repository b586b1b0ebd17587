"""The code blocks of the README and the docs."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.places import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(
    r"""^```(?P<language>\S*)(?: title="(?P<title>[^"\n]*)")?[^\n]*\n(?P<text>(?s:.*?))^```$""",
    re.MULTILINE,
)


class Block(NamedTuple):
    """A code block; its title is the name of the file that it stands for, or empty."""

    page: str
    line: int
    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    return [
        Block(
            str(page.relative_to(ROOT)),
            text.count("\n", 0, match.start()) + 1,
            match["language"],
            match["title"] or "",
            match["text"],
        )
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for match in _FENCE.finditer(text)
    ]


# the commands of this page run where a session is there already: tests/cli/test_spark.py
SPARK = "docs/guides/spark.md"
# all blocks of this page are one session: tests/docs/test_tutorial.py
TUTORIAL = "docs/tutorial.md"

BLOCKS = blocks()

ONE_PROGRAM = "The Python blocks of this page are one program"


def continues(block: Block) -> bool:
    """Whether the page says of a Python block that it continues those above it."""
    text = (ROOT / block.page).read_text(encoding="utf-8")
    *_, before = "\n".join(text.splitlines()[: block.line - 1]).rsplit("```\n", 1)
    return ONE_PROGRAM in " ".join(text.split()) or "This continues the program above" in before


def printed(command: str, place: Path, environment: Mapping[str, str]) -> str:
    """What a command prints on both outputs, and its exit status where that is not 0."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    return done.stdout + (f"[exit status {done.returncode}]\n" if done.returncode else "")

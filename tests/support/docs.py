"""The code blocks of the README and the docs, and the names that examples need."""

import builtins
import doctest
import re
import subprocess
import symtable
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.places import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "tests" / "support" / "engines" / "upstream-reports.md",
]

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


# the commands of this page run where a session is there already: tests/cli/spark/test_spark.py
SPARK = "docs/guides/spark.md"
# all blocks of this page are one session: tests/docs/guides/test_tutorial.py
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


PROVIDED = {"spark", "server"}
"""What examples of docstrings may need: a session of Spark, the URL of a server. tests/docs/test_api.py runs those."""


def undefined(program: str) -> set[str]:
    """The names that a program uses and neither defines nor imports."""
    top = symtable.symtable(program, "block", "exec")
    tables, names = [top], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table is top or symbol.is_global())
        }
    known = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    return names - known - {*vars(builtins), "__name__", "__file__"}


def needed(test: doctest.DocTest) -> set[str]:
    """Which of `PROVIDED` the examples of a docstring need."""
    program = "".join(example.source for example in test.examples)
    return (undefined(program) & PROVIDED) - test.globs.keys() if program else set()

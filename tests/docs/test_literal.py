"""Pages can be followed to the letter: what commands and programs name is there, or the page says where it comes from.

`tests/test_docs.py` and its neighbours run what runs without other machines; here is what holds for all blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.docs import BLOCKS, TUTORIAL, Block, continues, undefined
from tests.support.places import ROOT

SHELL = [block for block in BLOCKS if block.language in ("sh", "console")]
PYTHON = [block for block in BLOCKS if block.language in ("python", "py")]


def name(block: Block) -> str:
    return f"{block.page}:{block.line}"


@pytest.mark.parametrize("block", PYTHON, ids=name)
def test_a_program_is_whole_or_the_page_says_what_it_continues(block: Block) -> None:
    above = [other.text for other in PYTHON if other.page == block.page and other.line < block.line]
    program = "".join(above) + block.text if continues(block) else block.text
    assert undefined(program) == set()


def commands(block: Block) -> Iterator[str]:
    """The commands of a block, without what they print."""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language == "sh" or line.startswith("$ "):
            yield re.sub(r"\s# .*", "", line.removeprefix("$ "))


@pytest.mark.parametrize("block", SHELL, ids=name)
def test_this_package_is_installed_from_a_checkout(block: Block) -> None:
    """It is on no index of packages."""
    for command in commands(block):
        if re.search(r"\bpip (install|wheel|download)\b", command):
            assert not re.search(r"(?<![/.\w-])construct[-_]messages\b", command), command


# queries, settings and programs; data and logs are mostly written by the commands themselves
GIVEN = re.compile(r"(?<![\w/.:*-])[\w./-]*\w\.(?:rq|rspql|toml|py|jsonld)\b")


@pytest.mark.parametrize("block", [block for block in SHELL if block.page != TUTORIAL], ids=name)
def test_files_that_commands_read_are_there(block: Block) -> None:
    """In the checkout, as a block with that title, written by a command above, or yours, as the page says."""
    text = (ROOT / block.page).read_text(encoding="utf-8")
    titles = {other.title for other in BLOCKS if other.page == block.page}
    said = "\n".join(
        command
        for other in SHELL
        if other.page == block.page and other.line <= block.line
        for command in commands(other)
    )
    for command in commands(block):
        for file in GIVEN.findall(command):
            written = re.search(rf"> ?{re.escape(file)}\b", said)
            yours = re.search(rf"`{re.escape(file)}` is your", text)
            assert file in titles or (ROOT / file).exists() or written or yours, (
                f"{file} in {command}"
            )


EXTRAS = {"construct-messages serve": "server", "construct-messages spark": "spark"}


@pytest.mark.parametrize("page", sorted({block.page for block in SHELL}))
def test_a_page_says_which_extra_its_commands_need(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for command, extra in EXTRAS.items():
        if any(
            command in line for block in SHELL if block.page == page for line in commands(block)
        ):
            assert re.search(rf"\.\[[\w,]*\b{extra}\b[\w,]*\]", text), (
                f"{command} needs the extra {extra}"
            )


def test_the_checks_find_what_is_wrong() -> None:
    """What pages had (issue 26, 27)."""
    assert undefined("print(len(list(read_log(b''))))") == {"read_log"}
    assert undefined("def f():\n    return store\n") == {"store"}
    assert undefined("import x\ny = x.z\nprint([y for _ in y])\n") == set()
    wheel = Block(
        "docs/reference/spark.md", 1, "sh", "", "pip wheel --no-deps construct-messages\n"
    )
    with pytest.raises(AssertionError):
        test_this_package_is_installed_from_a_checkout(wheel)
    with pytest.raises(AssertionError):
        test_files_that_commands_read_are_there(
            Block("docs/reference/logs.md", 1, "sh", "", "curl --data-binary @hot.rq http://h/\n")
        )

"""What holds for every page and every code block: a rule yields the places that break it, a test lists them all.

`tests/test_docs.py` and its neighbours run the blocks; here is what needs no run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.support.docs import BLOCKS, PAGES, TUTORIAL, Block, continues, undefined
from tests.support.places import ROOT

SHELL = [block for block in BLOCKS if block.language in ("sh", "console")]
PYTHON = [block for block in BLOCKS if block.language in ("python", "py")]
TEXTS = {
    str(page.relative_to(ROOT)): re.sub(
        r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for page in PAGES
}
# queries, settings and programs; data and logs are mostly written by the commands themselves
GIVEN = re.compile(r"(?<![\w/.:*-])[\w./-]*\w\.(?:rq|rspql|toml|py|jsonld)\b")
EXTRAS = {"construct-messages serve": "server", "construct-messages spark": "spark"}


def commands(block: Block) -> Iterator[str]:
    """The commands of a block, without what they print."""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language == "sh" or line.startswith("$ "):
            yield re.sub(r"\s# .*", "", line.removeprefix("$ "))


def broken_links(page: str) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXTS[page]):
        if not target.startswith("http") and not (ROOT / page).parent.joinpath(target).exists():
            yield target


def long_lines(page: str) -> Iterator[str]:
    """Prose wraps at 120."""
    for line in TEXTS[page].splitlines():
        wraps = not line.lstrip().startswith(("|", "#", "<"))
        if wraps and len(line) > 120 and " " in line.strip()[3:]:
            yield line


ROOMS = "|".join(path.name for path in (ROOT / "construct_messages").iterdir() if path.is_dir())


def missing_modules(page: str) -> Iterator[str]:
    """Files and folders of the package that a page names are there."""
    for path in re.findall(rf"`((?:{ROOMS})/[\w./]*)`", TEXTS[page]):
        if page != "CHANGELOG.md" and not (ROOT / "construct_messages" / path).exists():
            yield path


def long_decisions(page: str) -> Iterator[str]:
    """A decision has at most 400 words: context, decision, consequences. What else there is to say is reference."""
    count = len((ROOT / page).read_text(encoding="utf-8").split())
    if page.startswith("docs/decisions/") and count > 400:
        yield f"{count} words"


def missing_extras(page: str) -> Iterator[str]:
    """A page names the extra that its commands need."""
    lines = [line for block in SHELL if block.page == page for line in commands(block)]
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {extra for extras in re.findall(r"\.\[([\w,]+)\]", text) for extra in extras.split(",")}
    for command, extra in EXTRAS.items():
        if extra not in named and any(command in line for line in lines):
            yield f"{command} needs the extra {extra}"


def unbound_names(block: Block) -> Iterator[str]:
    """A program is whole, or its page says which one it continues."""
    if block in PYTHON:
        above = [
            other.text for other in PYTHON if other.page == block.page and other.line < block.line
        ]
        yield from undefined("".join(above) + block.text if continues(block) else block.text)


def installed_from_an_index(block: Block) -> Iterator[str]:
    """This package is installed from a checkout: it is on no index of packages."""
    for command in commands(block):
        if re.search(
            r"\bpip (install|wheel|download)\b.*(?<![/.\w-])construct[-_]messages\b", command
        ):
            yield command


def missing_files(block: Block) -> Iterator[str]:
    """A file is in the checkout, a block with that title, written by a command above, or yours, as the page says."""
    if block.page == TUTORIAL or block.language not in ("sh", "console"):
        return
    text = (ROOT / block.page).read_text(encoding="utf-8")
    titles = {other.title for other in BLOCKS if other.page == block.page}
    above = "\n".join(
        command
        for other in SHELL
        if other.page == block.page and other.line <= block.line
        for command in commands(other)
    )
    for command in commands(block):
        for file in GIVEN.findall(command):
            written = re.search(rf"> ?{re.escape(file)}\b", above)
            yours = re.search(rf"`{re.escape(file)}` is your", text)
            if not (file in titles or (ROOT / file).exists() or written or yours):
                yield f"{file} in {command}"


@pytest.mark.parametrize(
    "rule", [broken_links, long_lines, missing_modules, long_decisions, missing_extras]
)
def test_pages(rule: Callable[[str], Iterator[str]]) -> None:
    assert [f"{page}: {found}" for page in TEXTS for found in rule(page)] == []


def test_the_documentation_stays_short() -> None:
    """Say a thing once. A new page replaces a part of another one."""
    words = {
        page: len((ROOT / page).read_text(encoding="utf-8").split())
        for page in TEXTS
        if page.startswith("docs/")
    }
    assert sum(words.values()) <= 94_000, sorted(words.items(), key=lambda each: -each[1])[:10]


@pytest.mark.parametrize("rule", [unbound_names, installed_from_an_index, missing_files])
def test_blocks(rule: Callable[[Block], Iterator[str]]) -> None:
    assert [f"{b.page}:{b.line}: {found}" for b in BLOCKS for found in rule(b)] == []


def test_the_rules_find_mistakes() -> None:
    """For example, those that pages had."""
    assert undefined("print(len(list(read_log(b''))))") == {"read_log"}
    assert undefined("def f():\n    return store\n") == {"store"}
    assert undefined("import x\ny = x.z\nprint([y for _ in y])\n") == set()
    wheel = "pip wheel --no-deps construct-messages"
    assert [*installed_from_an_index(Block("README.md", 1, "sh", "", wheel))] == [wheel]
    post = "curl --data-binary @hot.rq http://h/"
    page = "docs/reference/logs.md"
    assert [*missing_files(Block(page, 1, "sh", "", post))] == [f"hot.rq in {post}"]

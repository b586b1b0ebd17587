"""Pages and docstrings use plain words: those that turn a sentence around are as rare as in the docs of other projects.

The rates of httpx, starlette and oxigraph (their docs, docstrings and doc comments, November 2026) for 10,000 words:
*behind* 0 to 1, *say* 0, *tell* 0 to 1, *give* 7 to 18, *whatever* 0 to 2, *stand* 0, *nobody* 0, *what* 0 to 8.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import construct_messages
from tests.support.docs import PAGES
from tests.support.places import ROOT

FORMS = {
    "behind": "behind",
    "say": "say|says|said|saying",
    "tell": "tell|tells|told|telling",
    "give": "give|gives|given|gave|giving",
    "whatever": "whatever|whichever|whoever|wherever",
    "stand": "stand|stands|stood|standing",
    "hear": "hear|hears|heard",
    "nobody": "nobody|somebody",
    "beside": "beside|besides",
    "but for": "but for",
    "so many": "so many|so much",
    "anew": "anew",
    "what": "what",
}
# at most, for 10,000 words
IN_PAGES = {
    "behind": 2.0,
    "say": 1.0,
    "tell": 1.0,
    "give": 6.0,
    "whatever": 1.0,
    "stand": 1.0,
    "hear": 0.5,
    "nobody": 1.0,
    "beside": 2.0,
    "but for": 0.5,
    "so many": 0.5,
    "anew": 0.5,
    "what": 18.0,
}
# decisions are records of their day; new ones are held to the rates that all have together
IN_DECISIONS = {
    "behind": 12.0,
    "say": 31.0,
    "tell": 22.0,
    "give": 27.0,
    "whatever": 16.0,
    "stand": 14.0,
}
IN_THE_PACKAGE = {
    "behind": 1.0,
    "say": 1.0,
    "tell": 1.0,
    "give": 2.0,
    "whatever": 1.0,
    "stand": 1.0,
    "hear": 1.0,
    "nobody": 1.0,
    "beside": 1.0,
    "but for": 1.0,
    "so many": 1.0,
    "anew": 1.0,
    "what": 8.0,
}

_NAMES = {form: name for name, forms in FORMS.items() for form in forms.split("|")}
_FOUND = re.compile(rf"(?<![\w-])(?:{'|'.join(_NAMES)})(?![\w-])")
_CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# a string, or a comment as the group: the tokenizer of the standard library takes ten times as long
_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(#[^\n]*)''', re.DOTALL
)
_DOCTEST = re.compile(r"^\s*>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


def words(text: str) -> str:
    """The words of a text, without code and the targets of links."""
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", " ", text))


def prose(source: str) -> Iterator[str]:
    """The docstrings of a module, those after names as well, without their examples, and its comments."""
    for node in ast.walk(ast.parse(source)):
        for child in ast.iter_child_nodes(node):
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                yield _DOCTEST.sub("", child.value.value)
    yield from filter(None, _COMMENT.findall(source))


def rates(texts: Iterator[str]) -> dict[str, float]:
    """How often each word occurs for 10,000 words."""
    counts, total = Counter[str](), 0
    for text in texts:
        text = words(text)
        total += len(re.findall(r"[A-Za-z][A-Za-z'’-]*", text))
        counts.update(_NAMES[found] for found in _FOUND.findall(text.lower()))
    assert total
    return {name: counts[name] * 10_000 / total for name in FORMS}


def pages(*, decisions: bool) -> Iterator[str]:
    for page in PAGES:
        if page.name != "CHANGELOG.md" and ("decisions" in page.parts) is decisions:
            yield _CODE.sub("", page.read_text(encoding="utf-8"))


def package() -> Iterator[str]:
    for path in sorted(Path(construct_messages.__file__).parent.rglob("*.py")):
        yield from prose(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "bounds"),
    [
        (pages(decisions=False), IN_PAGES),
        (pages(decisions=True), IN_DECISIONS),
        (package(), IN_THE_PACKAGE),
    ],
    ids=["pages", "decisions", "package"],
)
def test_words_are_plain(texts: Iterator[str], bounds: dict[str, float]) -> None:
    found = rates(texts)
    assert {word: found[word] for word, bound in bounds.items() if found[word] > bound} == {}


def test_the_count_finds_words() -> None:
    source = '"""What nobody says.\n\n>>> said = 1\n"""\nx = "#"  # behind\n"""Tells `told`."""\n'
    assert list(prose(source)) == ["What nobody says.\n\n", "Tells `told`.", "# behind"]
    found = rates(prose(source))
    assert {word for word, rate in found.items() if rate} == {
        "what",
        "nobody",
        "say",
        "tell",
        "behind",
    }
    assert ROOT in PAGES[0].parents

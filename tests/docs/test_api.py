"""The reference of the Python API: its names can be imported from where its pages say."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import construct_messages
import construct_messages.errors
from tests.support.places import ROOT

PAGES = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))
PACKAGE = re.compile(r"\bfrom\s+`(construct_messages[\w.]*)`")
ENTRY = re.compile(r"^::: (construct_messages[\w.]*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_are_where_the_page_says(page: Path) -> None:
    """Each is in one of the packages that the sentence "Import these names from …" above it names."""
    before = ""
    for part in re.split(
        r"(?=^Import|\. Import)", page.read_text(encoding="utf-8"), flags=re.MULTILINE
    ):
        packages = [import_module(name) for name in PACKAGE.findall(part.partition(":::")[0])]
        for entry in ENTRY.findall(part):
            name = entry.rpartition(".")[2]
            assert packages, f"{page.name} says not where {name} is imported from"
            if entry == "construct_messages.errors":
                continue  # see the next test
            found = [
                name in getattr(package, "__all__", [name]) and hasattr(package, name)
                for package in packages
            ]
            assert any(found), entry
        before += part
    assert ENTRY.search(before)


def test_every_error_is_imported_from_the_package() -> None:
    public = {
        name
        for name, found in vars(construct_messages.errors).items()
        if isinstance(found, type)
        and found.__module__ == "construct_messages.errors"
        and not name.startswith("_")
    }
    assert {"Position", "StoreLocked"} <= public
    assert public <= set(construct_messages.__all__)
    assert {
        name
        for name in public
        if getattr(construct_messages, name) is getattr(construct_messages.errors, name)
    }
    for name in construct_messages.__all__:
        assert getattr(construct_messages, name) is not None

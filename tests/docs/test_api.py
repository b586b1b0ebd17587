"""The reference of the Python API: its names can be imported from where its pages say."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import construct_messages
import construct_messages.errors
from tests.support.docs import needed
from tests.support.http.streams import serving_streams
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    # the others are imported from `construct_messages.errors`
    assert public & {*construct_messages.__all__} == {"ConstructMessagesError"}
    for name in construct_messages.__all__:
        assert getattr(construct_messages, name) is not None


MODULES = ["", ".options", ".continuous", ".feeds", ".spark", ".spark.terms", ".streams"]


def public() -> Iterator[tuple[str, Any]]:
    """The public functions and classes but for errors, of which one shows how all are shown."""
    seen = set()
    for module in (import_module(f"construct_messages{name}") for name in MODULES):
        for name in module.__all__:
            found = getattr(module, name)
            is_error = inspect.isclass(found) and issubclass(found, Exception)
            if (inspect.isfunction(found) or inspect.isclass(found)) and not is_error:
                if found not in seen:
                    yield f"{module.__name__}.{name}", found
                seen.add(found)


PUBLIC = dict(public())
SHOWN_BY_OTHERS = {"Subscription", "Checkpoint"}  # what `subscribe` returns, and has


def examples(name: str, found: Any) -> list[doctest.DocTest]:
    """The docstrings with examples of a function or class, and of what is in it."""
    module = inspect.getmodule(found)
    assert module is not None
    tests = doctest.DocTestFinder(recurse=True, exclude_empty=True).find(
        inspect.unwrap(found), name, module=module
    )
    return [test for test in tests if test.examples]


def test_every_public_name_has_a_docstring_with_an_example() -> None:
    assert [name for name, found in PUBLIC.items() if not inspect.getdoc(found)] == []
    assert [
        name
        for name, found in PUBLIC.items()
        if name.rpartition(".")[2] not in SHOWN_BY_OTHERS and not examples(name, found)
    ] == []


def test_every_public_method_has_a_docstring() -> None:
    assert [
        f"{name}.{member}"
        for name, cls in PUBLIC.items()
        if inspect.isclass(cls)
        for member in vars(cls)
        if not member.startswith("_") and callable(getattr(cls, member))
        if member not in vars(cls).get("__annotations__", {})
        if not inspect.getdoc(getattr(cls, member))
    ] == []


def outside() -> list[str]:
    """The names whose examples need a session or a server."""
    return [name for name, found in PUBLIC.items() if any(map(needed, examples(name, found)))]


def run(name: str, **provided: object) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples(name, PUBLIC[name]):
        test.globs.update(provided)
        said: list[str] = []
        runner.run(test, out=said.append)
        assert said == [], "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in outside() if ".spark." in name])
def test_examples_on_spark(name: str, quick: SparkSession) -> None:
    run(name, spark=quick)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in outside() if ".spark." not in name])
async def test_examples_at_a_server(name: str, tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db") as server:
        await asyncio.to_thread(run, name, server=server.url)

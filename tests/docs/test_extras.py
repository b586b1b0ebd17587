"""Extras install what needs them: benchmarks import nothing but what `.[bench]` installs, by what tests share too."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.places import ROOT

OURS = ("benchmarks", "tests")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required(requirements: list[str]) -> Iterator[str]:
    """The distributions of requirements, those of extras of this project among them."""
    for requirement in requirements:
        found = re.match(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?", requirement)
        assert found is not None
        if normalized(found[1]) != PROJECT["name"]:
            yield normalized(found[1])
        for extra in (found[2] or "").split(",") if normalized(found[1]) == PROJECT["name"] else ():
            yield from required(PROJECT["optional-dependencies"][extra])


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports at its top and in functions, but for those that only type checkers see."""
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert not node.level
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        todo += ast.iter_child_nodes(node)


def files_of(module: str) -> Iterator[Path]:
    """The files that run when one of our modules is imported."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        path = ROOT.joinpath(*parts[:count])
        yield from (
            file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()
        )


@pytest.mark.slow
def test_benchmarks_import_what_their_extra_installs() -> None:
    allowed = {
        *required(PROJECT["dependencies"]),
        *required(PROJECT["optional-dependencies"]["bench"]),
    }
    distributions = packages_distributions()
    todo, seen = sorted((ROOT / "benchmarks").rglob("*.py")), set[Path]()
    missing: dict[str, str] = {}
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in imported(path):
            top = module.partition(".")[0]
            if top in OURS:
                todo += files_of(module)
            elif top not in sys.stdlib_module_names and top != "construct_messages":
                names = {normalized(name) for name in distributions.get(top, [top])}
                # `absent` of tests/support/places.py asks first whether pytest runs
                if not names & allowed and (top, path.name) != ("pytest", "places.py"):
                    missing[top] = str(path.relative_to(ROOT))
    assert missing == {}
    assert any(path.is_relative_to(ROOT / "tests") for path in seen)

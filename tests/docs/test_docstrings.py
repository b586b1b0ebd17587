"""Docstrings: what their first verb and their sections say agrees with what a function returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import construct_messages
from tests.support.places import ROOT

PACKAGE = Path(construct_messages.__file__).parent
Function = ast.FunctionDef | ast.AsyncFunctionDef
NOTHING = {"None", "NoReturn"}
# in text without any of these no docstring says what a function returns or yields
SAYS = re.compile(r'""(Returns|Yields) |^ *(Returns|Yields):$', re.MULTILINE)
ITERATES = re.compile(r"\b(Async)?(Iterator|Iterable|Generator)\b")
GENERATES = (ast.Yield, ast.YieldFrom)


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def own(function: Function) -> Iterator[ast.AST]:
    """What is in a function, but not in those within it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(node)


def faults(source: str) -> Iterator[str]:
    """What docstrings of a module say that their functions do not do."""
    tree = ast.parse(source)
    # of this package, such as `Batches = Iterator[…]`
    aliases = {
        target.id: ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for function in functions(tree):
        says = ast.get_docstring(function) or ""
        verb = says.partition(" ")[0]
        sections = set(re.findall(r"^(Returns|Yields):$", says, re.MULTILINE))
        if function.returns is None or not sections | {verb} & {"Returns", "Yields"}:
            continue
        returns = ast.unparse(function.returns).strip("'\"")
        returns = aliases.get(returns, returns)
        yields = ITERATES.search(returns) is not None or any(
            isinstance(node, GENERATES) for node in own(function)
        )
        if returns in NOTHING and ("Returns" in sections or verb == "Returns"):
            yield f"{function.name}: returns {returns}: {says.splitlines()[0]}"
        if not yields and ("Yields" in sections or verb == "Yields"):
            yield f"{function.name}: is no iterator but {returns}: {says.splitlines()[0]}"


MODULES = sorted(
    path
    for top in ("construct_messages", "benchmarks", "tests")
    for path in (ROOT / top).rglob("*.py")
)


@pytest.mark.slow
def test_first_verbs_say_what_functions_return() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in MODULES
        if SAYS.search(source := path.read_text(encoding="utf-8"))
        for fault in faults(source)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("signature", "docstring", "wrong"),
    [
        ("def f() -> None", "Returns the page.", True),
        ("def f() -> list[int]", "Yields numbers.", True),
        ("def f() -> set[int]", "Yields numbers.", True),
        ("async def f() -> None", "Sends.\n\n    Returns:\n        the answer.\n    ", True),
        ("def f() -> Iterator[int]", "Yields numbers.", False),
        ("async def f() -> AsyncIterator[int]", "Yields numbers.", False),
        ("def f() -> int", "Returns a number.", False),
        ("def f() -> None", "Writes the page.", False),
    ],
)
def test_the_check_finds_what_is_wrong(signature: str, docstring: str, wrong: bool) -> None:
    assert bool(list(faults(f'{signature}:\n    """{docstring}"""\n'))) is wrong

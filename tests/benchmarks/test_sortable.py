"""The table of all rows in a real browser: sorted and filtered with the keyboard, and axe-core finds nothing wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchmarks.suite.report.sortable import COLUMNS, sortable
from tests.support.benchmarks import many
from tests.support.pages.browser import Browser, browsing, node_folder

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

ROWS = many().rows[::3]

PRESS = """
const button = page.getByRole("button", { name: given.column, exact: true });
await button.focus();
await page.keyboard.press("Enter");
"""
FILTER = "await page.getByLabel(given.label).selectOption(given.value);"
SHOWN = """
return page.$$eval("tbody tr", (rows, index) =>
  rows.filter((row) => !row.hidden).map((row) => row.cells[index].dataset.value ?? null), given.index);
"""
SORTED = """
return page.$$eval("thead th", (heads) => heads.map((head) => head.getAttribute("aria-sort")));
"""
AXE = """
await page.evaluate(given.axe);
const { violations, passes } = await page.evaluate(() => window.axe.run());
return { passed: passes.length, violations: violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]) };
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def browser(chromium: Browser, tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser that shows the table, from a file."""
    path = tmp_path / "table.html"
    path.write_text(sortable(ROWS), encoding="utf-8")
    await chromium.open(path.as_uri())
    yield chromium
    assert await chromium.errors() == []
    assert await chromium.asked() == [path.as_uri()]


def index(title: str) -> int:
    return [column.title for column in COLUMNS].index(title)


async def shown(browser: Browser, title: str) -> list[Any]:
    return list(await browser.run(SHOWN, index=index(title)))


async def test_columns_are_sorted_with_the_keyboard(browser: Browser) -> None:
    before = await shown(browser, "seconds")
    values = [float(value) for value in before if value is not None]
    missing = [None] * (len(before) - len(values))
    for order, expected in (("ascending", sorted(values)), ("descending", sorted(values)[::-1])):
        await browser.run(PRESS, column="seconds")
        told = await browser.run(SORTED)
        assert told == ["none"] * index("seconds") + [order] + ["none"] * (
            len(COLUMNS) - index("seconds") - 1
        )
        found = await shown(browser, "seconds")
        assert [None if value is None else float(value) for value in found] == [
            *expected,
            *missing,
        ]  # none: last
    await browser.run(PRESS, column="program")
    assert (await browser.run(SORTED))[index("seconds")] == "none"
    programs = await shown(browser, "program")
    assert [programs[0], programs[-1]] == ["Broken", "Slow"]


async def test_rows_are_filtered_by_data_engine_and_query(browser: Browser) -> None:
    for label, value in (("engine", "oxigraph"), ("query", "tree"), ("triples", "100000")):
        await browser.run(FILTER, label=label, value=value)
    expected = [
        row for row in ROWS if (row.engine, row.query, row.size) == ("oxigraph", "tree", 100_000)
    ]
    assert await shown(browser, "program") == [row.title for row in expected]
    assert (
        await browser.run('return page.textContent("#count")')
        == f"{len(expected)} of {len(ROWS)} rows"
    )
    await browser.run(FILTER, label="query", value="")
    assert set(await shown(browser, "query")) == {row.query for row in ROWS}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(browser: Browser, scheme: str) -> None:
    _, folder = node_folder("axe-core")
    axe = (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    await browser.run("await page.emulateMedia({ colorScheme: given.scheme })", scheme=scheme)
    found = await browser.run(AXE, axe=axe)
    assert found["passed"] > 10
    assert found["violations"] == []

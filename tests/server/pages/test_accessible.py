"""The page for everybody, in a real browser: axe-core finds nothing wrong in its states, light, dark and narrow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.http.serving import Served, serving
from tests.support.pages.axe import AXE
from tests.support.pages.browser import Browser, node_folder
from tests.support.pages.stores import PEOPLE, store_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
OTHER = "another query than was asked, a filter without match, and a refused download"
STATES = {
    "at first": "",
    "a picture": "await run(given.query); await page.click('.card header button');",
    "an error": "await run('CONSTRUCT { ?s } WHERE }'); await page.waitForSelector('.cm-lintRange-error');",
    "completion": (
        "await page.fill('#query', 'SELECT * { ?s ex:'); await page.focus('#query');"
        "await page.keyboard.press('Control+End'); await page.keyboard.type('k');"
        "await page.waitForSelector('.cm-tooltip-autocomplete li');"
    ),
    "a search": "await page.press('#query', 'Control+f'); await page.waitForSelector('.cm-search');",
    "a table": "await run('SELECT * { ?s ?p ?o }'); await page.waitForSelector('table');",
    "one graph": (
        "await run(given.query); await page.click('#tab-graph'); await page.waitForSelector('#graph-view .message');"
    ),
    OTHER: (
        "await run(given.query); await page.fill('#filter', 'nothing'); await page.fill('#query', 'SELECT nothing');"
        "await page.click('#download'); await page.waitForSelector('#download-state.bad');"
        "await page.waitForSelector('#asked:not([hidden])'); await page.waitForSelector('#kept:text(\"no match\")');"
    ),
    "no messages": "await page.fill('#filter', ''); await run('CONSTRUCT WHERE { <urn:none> <urn:none> ?o }');",
    "a copy": "await page.click('#copy-curl'); await page.waitForSelector('dialog[open]');",
}
LOOKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "light": ({"colorScheme": "light"}, tuple(STATES)),
    "dark": (
        {"colorScheme": "dark"},
        ("a picture", "an error", "completion", "a search", "a table", OTHER, "a copy"),
    ),
    "narrow": (
        {"viewport": {"width": 360, "height": 740}, "hasTouch": True},
        ("a picture", "a table", OTHER),
    ),
}
RUN = """
const run = async (query) => {
  await page.fill("#query", query);
  await page.press("#query", "Control+Enter");
  await page.waitForSelector("#banner:not([hidden]), #table-view:not([hidden])");
};
await page.waitForSelector("html[data-ready]");
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    store = store_of(tmp_path_factory.mktemp("store"), PEOPLE)
    async with serving(store, prefixes={"ex": "http://example.org/"}) as server:
        yield server


@pytest.mark.parametrize("look", LOOKS)
async def test_axe_finds_nothing(browser: Browser, served: Served, look: str) -> None:
    _, folder = node_folder("axe-core")
    axe = (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    options, states = LOOKS[look]
    await browser.open(f"{served.url}/", **options)
    for state in states:
        found = await browser.run(
            RUN + STATES[state] + AXE,
            axe=axe,
            query=QUERY,
        )
        assert found.pop("passes") > 10
        assert found == {"described": [], "wide": False}, (look, state)
        assert await browser.errors() == []


async def test_nothing_moves(browser: Browser, served: Served) -> None:
    """There is nothing to reduce for those who prefer that."""
    await browser.open(f"{served.url}/")
    animated = await browser.run(
        RUN
        + """
        await run(given.query);
        return page.locator("*").evaluateAll((all) => all.filter((each) => {
          const style = getComputedStyle(each);
          return style.animationName !== "none" || style.transitionDuration !== "0s";
        }).length);
        """,
        query=QUERY,
    )
    assert animated == 0

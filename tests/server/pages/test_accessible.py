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
PLACES = """PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?s geo:lat ?y ; geo:long ?x ; ex:on ?d } WHERE { VALUES (?s ?x ?y ?d) {
(ex:a 1 2 "2024-01-01"^^xsd:date) (ex:b 4.5 50.5 "2025-01-01"^^xsd:date) (ex:c 4.6 50.6 "-0043-03-15"^^xsd:date)
(ex:d 500 123 "2024-02-30"^^xsd:date) } }"""
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
        "await run(given.query); await page.click('#tab-graph'); await page.waitForSelector('#other-view .message');"
    ),
    "messages as a table": "await run(given.query); await page.click('#tab-table'); await page.waitForSelector('td');",
    "text": "await run(given.query); await page.click('#tab-log'); await page.waitForSelector('pre.text');",
    "JSON": "await run(given.query); await page.click('#tab-documents'); await page.waitForSelector('pre.text');",
    "a map": "await run(given.places); await page.click('#tab-map'); await page.waitForSelector('svg.map');",
    "a mark of several places": (
        "await run(given.places); await page.click('#tab-map'); await page.click('.mark-button:has(.count)');"
        "await page.waitForSelector('.chart h3'); await page.click('.left-out summary');"
    ),
    "a timeline": (
        "await run(given.places); await page.click('#tab-timeline'); await page.waitForSelector('svg.timeline');"
    ),
    OTHER: (
        "await run(given.query); await page.fill('#filter', 'nothing'); await page.fill('#query', 'SELECT nothing');"
        "await page.click('#download'); await page.waitForSelector('#download-state.bad');"
        "await page.waitForSelector('#asked:not([hidden])');"
        "await page.waitForSelector('#kept:text(\"0 of 3 match\")');"
    ),
    "no messages": "await page.fill('#filter', ''); await run('CONSTRUCT WHERE { <urn:none> <urn:none> ?o }');",
    "several queries": (
        "await page.click('#new-query'); await run(given.query); await page.fill('#group-by', '?s');"
        "await page.click('#new-query'); await page.fill('#query', 'ASK {}');"
    ),
    "saved queries": (
        "await page.click('#to-library'); await page.fill('#save-name', 'mine'); await page.keyboard.press('Enter');"
        "await page.waitForSelector('#saved-list button');"
    ),
    "without the editor": "await page.click('#library-close'); await page.click('#fold');",
    "a copy": "await page.click('#copy-curl'); await page.waitForSelector('dialog[open]');",
}
LOOKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "light": ({"colorScheme": "light"}, tuple(STATES)),
    "dark": (
        {"colorScheme": "dark"},
        (
            "at first",
            "a picture",
            "an error",
            "completion",
            "a search",
            "a table",
            "a map",
            "a timeline",
            OTHER,
            "several queries",
            "saved queries",
            "without the editor",
            "a copy",
        ),
    ),
    "forced colours": ({"forcedColors": "active"}, ("at first", "a picture", "a table", "a map")),
    "200 %": (
        {"viewport": {"width": 640, "height": 450}, "deviceScaleFactor": 2},
        ("at first", "a picture", "a table", "text", "a timeline", OTHER),
    ),
    "narrow": (
        {"viewport": {"width": 360, "height": 740}, "hasTouch": True},
        (
            "at first",
            "a picture",
            "a table",
            "messages as a table",
            "JSON",
            "a mark of several places",
            "a timeline",
            OTHER,
            "several queries",
            "saved queries",
            "without the editor",
        ),
    ),
}
RUN = """
const run = async (query) => {
  await page.fill("#query", query);
  await page.press("#query", "Control+Enter");
  await page.waitForSelector("#banner:not([hidden])");
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
            places=PLACES,
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

"""Cards, tables and what the page shows at first, in a real browser."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings, ExampleSettings
from tests.support.http.serving import UNHURRIED, Served, serving
from tests.support.pages.asking import BANNER, ENDED, RUN, shown
from tests.support.pages.browser import Browser
from tests.support.pages.stores import store_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

DATA = """
PREFIX ex: <http://example.org/long/path/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
ex:one foaf:name "One"@en ; foaf:depiction <http://images.example/one.png> ; ex:count 1234567 ; ex:knows ex:two ;
  ex:since "2024-02-03"^^xsd:date ; ex:has [ ex:is true ] , _:x ; ex:also _:x ; ex:text "a\\u202eb" .
ex:two foaf:name "Two, or \\"2\\""@en ; ex:count 9 .
ex:three ex:count 10 .
"""
ALL = ExampleSettings(
    name="Each thing",
    sentence="All that is known of a thing.",
    query="CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(isIRI(?s)) } ORDER BY ?s ?p ?o",
    group_by=("s",),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    source = (str(store_of(tmp_path_factory.mktemp("store"), DATA)),)
    endpoints = {"": EndpointSettings(source=source, limits=UNHURRIED, examples=(ALL,))}
    async with serving(endpoints=endpoints) as server:
        yield server


async def test_the_first_minute(page: Browser) -> None:
    """What a message is, with the served data; an example of the settings is run with its grouping."""
    seen = await page.run(
        """
        await page.waitForSelector(".comparison .card");
        const before = {
          query: await page.innerText("#query"), heap: await page.locator(".heap li").count(),
          cards: await page.locator(".comparison .card").count(), sample: await page.textContent(".comparison > .note"),
        };
        await page.click(".example");
        """
        + ENDED
        + shown(3)
        + """
        return {
          ...before, banner: await page.textContent("#banner"), landing: await page.locator(".comparison").count(),
          titles: await page.locator(".card .subject").allInnerTexts(),
        };
        """
    )
    assert seen.pop("heap") > 4
    assert seen.pop("cards") in (2, 3)
    assert seen.pop("sample").endswith("of “Each thing” at /sparql.")
    assert seen == {
        "query": ALL.query,
        "banner": "Complete: 3 messages, grouped by ?s.",
        "landing": 0,
        "titles": ["One path:one", "path:three", 'Two, or "2" path:two'],
    }


async def test_a_card(page: Browser) -> None:
    """Values are set as what they are, blank nodes have short names, and an image is not asked for."""
    seen = await page.run(
        """
        await page.selectOption("#examples", "0");
        await page.click("#run");
        """
        + ENDED
        + shown(3)
        + """
        const card = page.locator(".card").first();
        const attribute = (selector, name) => card.locator(selector).getAttribute(name);
        return {
          digits: await card.locator(".literal.number .digits").allTextContents(),
          count: await card.locator(".literal.number").textContent(),
          date: await attribute("time", "datetime"), image: await attribute("a.image", "href"),
          blanks: [...new Set(await card.locator(".blank").allTextContents())], mark: await attribute(".mark", "title"),
          images: await page.locator("#results img").count(),
        };
        """
    )
    assert seen == {
        "digits": ["234", "567"],
        "count": "1234567",
        "date": "2024-02-03",
        "image": "http://images.example/one.png",
        "blanks": ["_:b1", "_:b2"],
        "mark": "U+202E right-to-left override",
        "images": 0,
    }


async def test_what_is_copied_is_whole(page: Browser) -> None:
    copied = await page.run(
        """
        await context.grantPermissions(["clipboard-read", "clipboard-write"]);
        """
        + RUN
        + ENDED
        + shown(1)
        + """
        const select = (all) => document.getSelection().selectAllChildren(document.querySelector(all));
        const copy = async (selector) => {
          await page.evaluate(select, selector);
          await page.keyboard.press("Control+c");
          return page.evaluate(() => navigator.clipboard.readText());
        };
        await page.evaluate(() => document.activeElement.blur());
        const parts = [await copy(".card .subject .iri"), await copy(".card .row")];
        await page.click(".card header button:text-is('copy')");
        await page.waitForSelector(".card header button:text-is('copied')");
        return [...parts, await page.evaluate(() => navigator.clipboard.readText())];
        """,
        query='CONSTRUCT { <http://example.org/long/path/one> <http://xmlns.com/foaf/0.1/name> "One"@en } WHERE {}',
    )
    line = '<http://example.org/long/path/one> <http://xmlns.com/foaf/0.1/name> "One"@en'
    assert copied[0] == "<http://example.org/long/path/one>"
    assert copied[1].split() == ["<http://xmlns.com/foaf/0.1/name>", '"One"@en']
    assert copied[2].strip() == f"{line} ."


async def test_a_table_is_sorted_filtered_and_saved(page: Browser, tmp_path: Path) -> None:
    columns = await page.run(
        """
        await page.selectOption("#examples", "0");
        await page.click("#run");
        """
        + ENDED
        + """
        await page.click("#tab-table");
        await page.waitForSelector("tbody tr:nth-child(3)");
        const heads = await page.locator("th").allInnerTexts();
        const at = heads.indexOf("path:count");
        const values = () => page.locator(`td:nth-child(${at + 1})`).allTextContents();
        await page.click(`th:nth-child(${at + 1}) button`);
        const up = await values();
        await page.click(`th:nth-child(${at + 1}) button`);
        const down = await values();
        await page.fill(".data-table input", "two, or");
        await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
        const saved = page.waitForEvent("download");
        await page.click("text=Save as CSV");
        await (await saved).saveAs(given.path);
        const marked = page.waitForEvent("download");
        await page.click("text=CSV for Excel");
        await (await marked).saveAs(given.excel);
        return [up, down];
        """,
        path=str(tmp_path / "table.csv"),
        excel=str(tmp_path / "excel.csv"),
    )
    assert columns == [["9", "10", "1234567"], ["1234567", "10", "9"]]
    plain = (tmp_path / "table.csv").read_bytes()
    assert (tmp_path / "excel.csv").read_bytes() == codecs.BOM_UTF8 + plain
    head, row = plain.decode().splitlines()
    assert head.startswith("message,subject,")
    assert '"Two, or ""2"""' in row


async def test_the_bound_of_a_query_makes_a_bar(page: Browser) -> None:
    """A sentence, and how much of it there is, while it runs; neither after it."""
    seen = await page.run(
        """
        await page.evaluate(() => {
          window.bars = [];
          const bar = document.getElementById("bar");
          new MutationObserver(() => window.bars.push([bar.hidden, bar.max])).observe(bar, { attributes: true });
        });
        """
        + RUN
        + ENDED
        + """
        return [await page.evaluate(() => window.bars), await page.locator("#bar").isHidden()];
        """,
        query="CONSTRUCT WHERE { ?s ?p ?o } LIMIT 7",
    )
    assert [False, 7] in seen[0]
    assert seen[1] is True
    assert (await page.run(BANNER))["text"] == "Complete: 7 messages."

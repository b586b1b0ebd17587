"""The main ways through the page and through the views of streams, in Debian's Firefox."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from construct_messages.server.config import StreamsSettings
from construct_messages.streams import open_store
from tests.support.http.serving import Served, serving
from tests.support.pages.asking import ENDED, RUN, shown
from tests.support.pages.browser import Browser, browsing
from tests.support.pages.stores import PEOPLE, store_of
from tests.support.streams import numbered

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?s"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing("firefox-esr") as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server of a few triples and of a stream."""
    streams = tmp_path_factory.mktemp("streams") / "streams.db"
    with open_store(streams) as store:
        store.create("a")
        store.append_all("a", map(numbered, range(1, 6)))
    settings = {"streams": StreamsSettings(file=str(streams), publish="allow", register="allow")}
    path = store_of(tmp_path_factory.mktemp("store"), PEOPLE)
    async with serving(path, settings=settings, prefixes={"ex": "http://example.org/"}) as server:
        yield server


async def nothing_wrong(browser: Browser, served: Served) -> None:
    assert await browser.errors() == []
    asked = [url for url in await browser.asked() if not url.startswith("blob:")]
    assert all(url.startswith(f"{served.url}/") for url in asked), asked


async def test_a_query_from_the_landing_to_its_views(browser: Browser, served: Served) -> None:
    await browser.open(f"{served.url}/", viewport={"width": 1280, "height": 900})
    await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.waitForSelector(".comparison .card");
        await page.fill("#query", "");
        await page.locator("#query").pressSequentially(given.query);
        """,
        query=QUERY,
    )
    await browser.run(RUN + ENDED + shown(3), query=QUERY)
    seen = await browser.run(
        """
        const banner = await page.textContent("#banner");
        await page.fill("#filter", "bea");
        await page.waitForFunction(() => document.querySelectorAll("#cards .card").length === 1);
        const found = await page.innerText("#cards .card .message");
        await page.fill("#filter", "");
        await page.waitForFunction(() => document.querySelectorAll("#cards .card").length === 3);
        await page.click(".card header button:text-is('picture')");
        const drawn = await page.locator(".card .picture svg").count();
        await page.click("#tab-table");
        await page.waitForSelector("#other-view tbody tr");
        const rows = await page.locator("#other-view tbody tr").count();
        await page.click("#tab-log");
        await page.waitForSelector("pre.text");
        return { banner, found: found.split(/\\s+/), drawn, rows, text: await page.textContent("pre.text") };
        """
    )
    assert seen["banner"] == "Complete: 3 messages."
    assert seen["found"][-3:] == ["ex:name", "Bea", "en"]
    assert (seen["drawn"], seen["rows"]) == (1, 3)
    assert "<http://example.org/c> <http://example.org/age>" in seen["text"]
    await nothing_wrong(browser, served)


async def test_an_error_and_a_copy(browser: Browser, served: Served) -> None:
    await browser.open(f"{served.url}/")
    copied = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.fill("#query", "CONSTRUCT { ?s } WHERE }");
        await page.press("#query", "Control+Enter");
        await page.waitForSelector(".cm-lintRange-error");
        await page.fill("#query", given.query);
        await page.click("#copy-curl");
        await page.waitForSelector("dialog[open]");
        return page.inputValue("#text-dialog-text");
        """,
        query=QUERY,
    )
    assert copied.startswith("curl ")
    assert served.url in copied
    await nothing_wrong(browser, served)


async def test_a_stream_is_followed_published_to_and_queried(
    browser: Browser, served: Served
) -> None:
    await browser.open(f"{served.url}/streams")
    seen = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        const rate = await page.textContent("#stream-a figcaption");
        await page.click("#stream-a h3 a");
        await page.waitForURL("**/streams/a");
        await page.waitForSelector("html[data-ready]");
        const cards = (tab, count) => tab.waitForFunction(
          (most) => document.querySelectorAll("#follow .card").length === most, count);
        await page.waitForSelector("#follow .state[data-state=live]");
        await cards(page, 5);
        const other = await context.newPage();
        await other.goto(page.url());
        await cards(other, 5);

        await page.click("summary:has-text('Publish')");
        const publish = page.locator("form[data-form=publish]");
        await publish.locator("select").selectOption("text/turtle");
        await publish.locator("textarea").fill("<urn:s> <urn:number> 6 .");
        await publish.locator("button[value=check]").click();
        const checked = await publish.locator(".tried .card .message").innerText();
        await publish.locator("button[value=publish]").click();
        await cards(page, 6);
        await cards(other, 6);
        await other.close();

        await page.click("summary:has-text('Register')");
        await page.waitForSelector("#editor .cm-editor");
        await page.selectOption("select.examples", "0");
        // playwright-core fills no field of numbers in Firefox
        await page.locator("input[name=preview]").evaluate((field) => (field.value = "2"));
        await page.press("#query", "Control+Enter");
        const register = page.locator("form[data-form=register]");
        await register.locator(".result .good").waitFor();
        const said = await register.locator(".result").textContent();
        return { rate, checked: checked.split(/\\s+/), said, tried: await register.locator(".tried .card").count() };
        """
    )
    assert seen["rate"] == "5 in the last hour, up to 5 a minute"
    assert seen["checked"] == ["urn:s", "urn:number", "6"]
    assert (
        seen["said"] == "It has read 2 elements, and gives out 2 messages. Nothing was registered."
    )
    assert seen["tried"] == 2
    await nothing_wrong(browser, served)

"""Following in many tabs of a real browser, which share a connection, and behind proxies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support.http.relay import relay
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.pages.browser import Browser
from tests.support.pages.prefix import prefixed
from tests.support.streams import numbered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

ALLOWED: dict[str, Any] = {"publish": "allow", "register": "allow"}
TABS: Final = 7
LIVE = """
const follow = async (tab) => {
  await tab.waitForSelector("html[data-ready]");
  await tab.waitForSelector("#follow .state[data-state=live]");
};
const cards = (tab, count) => tab.waitForFunction(
  (most) => document.querySelectorAll("#follow .card").length === most, count);
const titles = (tab) => tab.locator("#follow .card h3").allTextContents();
const see = (tab, seen) => tab.evaluate((seen) => {
  Object.defineProperty(document, "hidden", { value: !seen, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, seen);
"""


@pytest_asyncio.fixture(loop_scope="module")
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    async with serving_streams(tmp_path / "streams.db", **ALLOWED) as server:
        await server.ask("PUT", "/streams/a")
        await server.publish(map(numbered, range(1, 4)))
        yield server


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def nothing_wrong(browser: Browser) -> AsyncIterator[None]:
    """The page throws no error, and is refused nothing by its policy."""
    yield
    assert await browser.errors() == []


async def test_seven_tabs_follow_and_an_eighth_is_loaded(
    browser: Browser, served: StreamsServer
) -> None:
    await browser.open(f"{served.url}/streams/a")
    await browser.run(
        LIVE
        + """
        await follow(page);
        state.tabs = [page];
        while (state.tabs.length < given.tabs) {
          const tab = await context.newPage();
          await tab.goto(page.url());
          await follow(tab);
          state.tabs.push(tab);
        }
        """,
        tabs=TABS,
    )
    assert served.followers() == 1
    await served.publish([numbered(4), numbered(5)])
    seen = await browser.run(
        LIVE
        + """
        const seen = [];
        for (const tab of state.tabs) {
          await cards(tab, 5);
          seen.push(await titles(tab));
        }
        const other = await context.newPage();
        await other.goto(page.url());
        await other.waitForSelector("html[data-ready]");
        return [seen, await other.textContent("[data-fact=kept]")];
        """
    )
    assert seen == [[[f"element {number}" for number in range(1, 6)]] * TABS, "5: 1 to 5"]


async def test_a_tab_catches_up_and_tabs_are_closed(
    browser: Browser, served: StreamsServer
) -> None:
    """A tab that begins before what the others have got joins them when it has it."""
    await served.publish(map(numbered, range(4, 31)))
    await browser.open(f"{served.url}/streams/a")
    early = await browser.run(
        LIVE
        + """
        await follow(page);
        await cards(page, 20);
        const early = state.early = await context.newPage();
        await early.goto(page.url());
        await follow(early);
        await early.selectOption("#follow select >> nth=0", "after");
        await cards(early, 30);
        return titles(early);
        """
    )
    assert early == [f"element {number}" for number in range(1, 31)]
    await eventually(lambda: served.followers() == 1)
    await served.publish([numbered(31)])
    await browser.run(LIVE + "await cards(page, 21); await cards(state.early, 31);")
    await browser.run("await page.close();")
    await served.publish([numbered(32)])
    await browser.run(LIVE + "await cards(state.early, 32);")
    assert served.followers() == 1
    await browser.run("await state.early.goto('about:blank'); state.page = state.early;")
    await eventually(lambda: served.followers() == 0)


async def test_a_hidden_tab_behind_a_proxy_without_websockets(
    browser: Browser, served: StreamsServer, tmp_path: Path
) -> None:
    """It gives back its connection, as it is one of six, and misses nothing."""
    async with relay() as between:
        between.target = served.url
        with prefixed(between.url, "/data/", tmp_path) as url:
            await browser.open(f"{url}streams/a")
            await browser.run(
                LIVE + "await follow(page); await cards(page, 3); await see(page, false);"
            )
            await eventually(lambda: served.followers() == 0)
            said = await browser.run("return page.textContent('#follow .state')")
            assert said == "not connected while this tab is hidden"
            await served.publish(map(numbered, range(4, 9)))
            seen = await browser.run(
                LIVE
                + "await see(page, true); await cards(page, 8); return [await titles(page), await page.url()];"
            )
            assert seen[0] == [f"element {number}" for number in range(1, 9)]
            await served.publish([numbered(9)])
            await browser.run(LIVE + "await cards(page, 9);")
            asked = [each.removeprefix(url) for each in await browser.asked() if "/events" in each]
            assert asked == [
                "streams/a/events?format=nq&after=0",
                "streams/a/events?format=nq&after=3",
            ]
            between.target = None


async def test_a_hidden_tab_with_a_websocket_goes_on(
    browser: Browser, served: StreamsServer
) -> None:
    await browser.open(f"{served.url}/streams/a")
    await browser.run(LIVE + "await follow(page); await see(page, false);")
    await served.publish([numbered(4)])
    await browser.run(LIVE + "await cards(page, 4);")
    assert served.followers() == 1
    assert [each for each in await browser.asked() if "/events" in each] == []


async def test_the_page_says_how_many_elements_there_are_now(
    browser: Browser, tmp_path: Path
) -> None:
    """What it said when it was written is put right while elements come, and after publishing."""
    async with serving_streams(tmp_path / "streams.db", **ALLOWED) as served:
        await served.ask("PUT", "/streams/a", b'{"retainedElements": 30}', "application/json")
        await browser.open(f"{served.url}/streams/a")
        kept = """
            const kept = () => page.textContent("[data-fact=kept]");
            const until = (text) => page.waitForFunction(
              (wanted) => document.querySelector("[data-fact=kept]").textContent === wanted, text);
        """
        before = await browser.run(LIVE + kept + "await follow(page); return kept();")
        assert before == "0"
        await served.publish(map(numbered, range(1, 34)))
        await browser.run(LIVE + kept + "await until('30: 4 to 33');")
        await browser.open(f"{served.url}/streams/a")
        newer = await browser.run(
            kept
            + """
            await page.waitForSelector("html[data-ready]");
            await page.click("summary:has-text('Publish')");
            await page.fill("form[data-form=publish] textarea", "<urn:s> <urn:p> <urn:o> .");
            await page.click("form[data-form=publish] button[value=publish]");
            await until("30: 5 to 34");
            await page.waitForSelector("#follow .card:last-child a:text-is('element 34')");
            return [await page.textContent("#newest-time"), await page.textContent("#rate figcaption")];
            """
        )
        assert newer[0] == "just now"
        assert newer[1].startswith("31 in the last hour, up to ")


async def test_what_is_paused_can_be_seen_after_the_end(
    browser: Browser, served: StreamsServer
) -> None:
    await browser.open(f"{served.url}/streams/a")
    await browser.run(
        LIVE
        + "await follow(page); await cards(page, 3); await page.click('#follow >> text=Pause');"
    )
    await served.publish([numbered(4)])
    seen = await browser.run(
        LIVE
        + """
        await page.waitForFunction(() => /^4 received/.test(document.querySelector("#follow .counts").textContent));
        await page.click("#follow button:text-is('Stop')");
        await page.click("#follow >> text=Pause");
        await cards(page, 4);
        return page.isDisabled("#follow button:text-is('Pause')");
        """
    )
    assert seen is True


async def test_what_is_typed_into_forms_is_there_after_reload_and_back(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the token, which is kept nowhere."""
    monkeypatch.setenv("PUBLISH", "secret")
    async with serving_streams(
        tmp_path / "streams.db", publish="PUBLISH", register="allow"
    ) as served:
        await browser.open(f"{served.url}/streams")
        typed = {
            "create name": "b",
            "create label": "a label",
            "register query": "CONSTRUCT",
            "create token": "",
        }
        held = """
            const held = () => page.evaluate((names) => Object.fromEntries(names.map((name) => {
              const [form, field] = name.split(" ");
              return [name, document.querySelector(`form[data-form=${form}] [name=${field}]`).value];
            })), Object.keys(given.typed));
            await page.waitForSelector("html[data-ready]");
        """
        seen = await browser.run(
            held
            + """
            for (const each of await page.locator("summary").all()) await each.click();
            await page.waitForSelector("#editor .cm-editor");
            for (const [name, text] of Object.entries(given.typed)) {
              const [form, field] = name.split(" ");
              const place = field === "query" ? "#query" : `form[data-form=${form}] [name=${field}]`;
              await page.fill(place, text || "secret");
            }
            await page.locator("#query").focus();
            await page.reload();
            await page.waitForSelector("html[data-ready]");
            const reloaded = await held();
            await page.goto(given.elsewhere);
            await page.goBack();
            await page.waitForSelector("html[data-ready]");
            return [reloaded, await held(), await page.evaluate(() => JSON.stringify(history.state))];
            """,
            typed=typed,
            elsewhere=f"{served.url}/-/static/page.css",
        )
    assert seen[:2] == [typed, typed]
    assert "secret" not in seen[2]


async def test_a_stream_that_is_there_is_not_created_again(
    browser: Browser, served: StreamsServer
) -> None:
    await browser.open(f"{served.url}/streams")
    create = """
        await page.waitForSelector("html[data-ready]");
        if (!await page.isVisible("form[data-form=create]")) await page.click("summary:has-text('Create')");
        await page.fill("form[data-form=create] [name=name]", given.name);
        await page.click("form[data-form=create] button");
        await page.waitForSelector("form[data-form=create] .result p");
        return page.textContent("form[data-form=create] .result p");
    """
    taken = "There is a stream a already. Try: another name."
    assert await browser.run(create, name="a") == taken
    assert await browser.run(create, name="b") == "Created b."
    await browser.run("await page.waitForSelector('#stream-b')")

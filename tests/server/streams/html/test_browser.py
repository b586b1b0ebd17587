"""Streams in a real browser: following, publishing, creating and registering, over restarts and hostile messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from construct_messages import Message, Quad, iri, literal
from construct_messages.server.config import StreamsSettings
from construct_messages.streams import Description, Retention, open_store
from tests.support.http.relay import relay
from tests.support.http.serving import serving
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.pages.browser import Browser
from tests.support.pages.prefix import prefixed
from tests.support.pages.stores import PEOPLE, store_of
from tests.support.streams import numbered

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

ALLOWED: dict[str, Any] = {"publish": "allow", "register": "allow"}
FOLLOW = """
await page.waitForSelector("html[data-ready]");
await page.selectOption("#follow select >> nth=0", given.begin);
await page.waitForSelector("#follow .state[data-state=live]");
"""
ATTACH = """
const cards = (count) => page.waitForFunction(
  (least) => document.querySelectorAll("#follow .card").length >= least, count);
const titles = () => page.locator("#follow .card h3").allTextContents();
"""
QUERY = "CONSTRUCT { ?s <urn:twice> ?n } WHERE { ?s <urn:number> ?n }"


@pytest_asyncio.fixture(loop_scope="module")
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    async with serving_streams(tmp_path / "streams.db", **ALLOWED) as server:
        await server.ask("PUT", "/streams/a", b'{"label": "Rooms"}', "application/json")
        yield server


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def nothing_wrong(browser: Browser) -> AsyncIterator[None]:
    """The page throws no error, and is refused nothing by its policy."""
    yield
    assert await browser.errors() == []


async def test_elements_come_as_they_are_published(browser: Browser, served: StreamsServer) -> None:
    await served.publish(map(numbered, range(1, 16)))
    await browser.open(f"{served.url}/streams/a")
    await browser.run(FOLLOW + ATTACH + "await cards(15);", begin="20")
    await served.publish([numbered(16), Message(), numbered(18)])
    seen = await browser.run(ATTACH + "await cards(18); return titles();")
    assert seen == [f"element {number}" for number in range(1, 19)]
    text = await browser.run("return page.locator('#follow .card').allInnerTexts()")
    assert "x17" not in text[-2]
    assert "an empty message" in text[-2]
    assert "x18" in text[-1]
    assert all(url.startswith(f"{served.url}/") for url in await browser.asked())


async def test_following_from_an_element_on(browser: Browser, served: StreamsServer) -> None:
    await served.publish(map(numbered, range(1, 8)))
    await browser.open(f"{served.url}/streams/a")
    seen = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.selectOption("#follow select >> nth=0", "after");
        await page.fill("#follow input[type=number]", "4");
        await page.press("#follow input[type=number]", "Enter");
        """
        + ATTACH
        + """
        await page.waitForSelector("#follow .card:first-child h3 a:text-is('element 5')");
        await cards(3);
        await page.click("#follow button:text-is('Stop')");
        await page.waitForSelector("#follow .state[data-state=ended]");
        return titles();
        """
    )
    assert seen == ["element 5", "element 6", "element 7"]


async def test_the_page_for_queries_leads_to_streams(browser: Browser, tmp_path: Path) -> None:
    settings = {"streams": StreamsSettings(file=str(tmp_path / "streams.db"))}
    async with serving(store_of(tmp_path / "store", PEOPLE), settings=settings) as server:
        await browser.open(f"{server.url}/")
        headings = await browser.run(
            """
            await page.waitForSelector("html[data-ready]");
            await page.click("#to-streams");
            await page.waitForURL("**/streams");
            const there = await page.textContent("h1");
            await page.click(".top nav a:text-is('Query')");
            await page.waitForSelector("#query");
            return there;
            """
        )
        assert headings == "Streams"


async def test_pause_filter_and_bounds(browser: Browser, served: StreamsServer) -> None:
    await browser.open(f"{served.url}/streams/a")
    await browser.run(FOLLOW + "await page.click('text=Pause');", begin="next")
    await served.publish(map(numbered, range(1, 301)))
    counted = await browser.run(
        """
        const counts = page.locator("#follow .counts");
        await page.waitForFunction(() => /^300 received/.test(document.querySelector("#follow .counts").textContent));
        return [await counts.textContent(), await page.locator("#follow .card").count()];
        """
    )
    assert counted == ["300 received, 300 of them since the pause", 0]
    count = await browser.run(
        """
        await page.click('text=Pause');
        await page.waitForSelector("#follow .card:last-child h3 a:text-is('element 300')");
        return page.locator("#follow .card").count();
        """
    )
    assert 12 <= count <= 100
    filtered = await browser.run(
        """
        await page.fill("#follow input[type=search]", 'X25');
        await page.waitForFunction(() => document.querySelectorAll("#follow .card").length === 11);
        return page.locator("#follow .card h3").allTextContents();
        """
    )
    assert filtered == ["element 25", *(f"element {number}" for number in range(250, 260))]
    first = await browser.run(
        """
        await page.fill("#follow input[type=search]", "");
        await page.waitForSelector("#follow .card:last-child h3 a:text-is('element 300')");
        for (let count = 0; count < 100; count += 1) {
          await page.locator("#follow .tail").evaluate((tail) => { tail.scrollTop = 0; });
          if ((await page.textContent("#follow .card h3")) === "element 1") break;
          await page.waitForTimeout(50);
        }
        return page.textContent("#follow .card h3");
        """
    )
    assert first == "element 1"


async def test_each_element_once_over_restarts(browser: Browser, tmp_path: Path) -> None:
    """The server goes and comes back; what was published meanwhile is there, and what was seen is not there again."""
    async with relay() as between:
        for first, last in ((1, 3), (4, 7), (8, 12)):
            async with serving_streams(tmp_path / "streams.db", **ALLOWED) as server:
                between.target = server.url
                await server.ask("PUT", "/streams/a")
                await server.publish(map(numbered, range(first, last + 1)))
                if first == 1:
                    await browser.open(f"{between.url}/streams/a")
                    await browser.run(FOLLOW, begin="20")
                await browser.run(ATTACH + "await cards(given.count);", count=last)
                between.target = None
            await browser.run("await page.waitForSelector('#follow .state[data-state=waiting]')")
    assert await browser.run(ATTACH + "return titles()") == [
        f"element {number}" for number in range(1, 13)
    ]
    assert "connected again" in await browser.run("return page.textContent('#follow .counts')")
    assert await browser.run("return page.locator('#follow .gaps p').count()") == 0


async def test_what_retention_took_meanwhile_is_named(browser: Browser, tmp_path: Path) -> None:
    with open_store(tmp_path / "streams.db") as store:
        store.create("a", Description(retention=Retention(count=5)))
        store.append_all("a", map(numbered, range(1, 4)))
    async with relay() as between:
        async with serving_streams(tmp_path / "streams.db", **ALLOWED) as server:
            between.target = server.url
            await browser.open(f"{between.url}/streams/a")
            await browser.run(FOLLOW + ATTACH + "await cards(3);", begin="20")
            between.target = None
        with open_store(tmp_path / "streams.db") as store:
            store.append_all("a", map(numbered, range(4, 21)))
        async with serving_streams(tmp_path / "streams.db", **ALLOWED) as server:
            between.target = server.url
            seen = await browser.run(ATTACH + "await cards(8); return titles();")
            assert seen == [f"element {number}" for number in (1, 2, 3, 16, 17, 18, 19, 20)]
            said = await browser.run("return page.textContent('#follow .gaps')")
            assert said == "Elements 4 to 15 are missing: retention removed them before they came."
            await server.ask("DELETE", "/streams/a")
            ended = "await page.waitForSelector('#follow .state[data-state=ended]');"
            assert "no such stream" in await browser.run(
                ended + "return page.textContent('#follow .state')"
            )


async def test_publishing(browser: Browser, served: StreamsServer) -> None:
    await browser.open(f"{served.url}/streams/a")
    publish = """
        await page.waitForSelector("html[data-ready]");
        const form = page.locator("form[data-form=publish]");
        if (!await form.isVisible()) await page.click("summary:has-text('Publish')");
        await form.locator("select").selectOption(given.type);
        await form.locator("textarea").fill(given.body);
        await form.locator("button[value=publish]").click();
        const said = form.locator(".result p");
        await said.waitFor();
        const link = said.locator("a").first();
        const chosen = await form.locator("textarea").evaluate((area) => area.value.slice(area.selectionStart));
        return [await said.textContent(), await link.count() ? await link.evaluate((each) => each.href) : chosen];
    """
    one = await browser.run(publish, type="text/turtle", body="<urn:s> <urn:p> 1 .")
    assert one == ["Stored as element 1.", f"{served.url}/streams/a/output/1"]
    log = "# @message\n<urn:s> <urn:p> 1 .\n# @message\n<urn:s> <urn:p> 2 .\n"
    two = await browser.run(publish, type="text/turtle; version=1.2; messages=rdfm", body=log)
    assert two == ["Stored as 2 elements, 2 to 3.", f"{served.url}/streams/a/output/2"]
    said, rest = await browser.run(
        publish, type="text/turtle", body="<urn:s> <urn:p> 1 .\n<urn:s> é ."
    )
    assert "line 2" in said
    assert rest.startswith("<urn:s> é .") or rest.startswith("é")
    assert (await served.ask("GET", "/streams/a")).json["lastSequence"] == 3


async def test_a_token_is_sent_and_not_kept(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBLISH", "secret")
    async with serving_streams(
        tmp_path / "streams.db", publish="PUBLISH", register="deny"
    ) as server:
        await browser.open(f"{server.url}/streams")
        create = """
            await page.waitForSelector("html[data-ready]");
            const form = page.locator("form[data-form=create]");
            if (!await form.isVisible()) await page.click("summary:has-text('Create')");
            await form.locator("[name=name]").fill("b");
            await form.locator("[name=retainedElements]").fill("7");
            await form.locator("[name=token]").fill(given.token);
            await form.locator("button").click();
            await form.locator(".result p").waitFor();
            return form.locator(".result p").textContent();
        """
        assert "needs a token" in await browser.run(create, token="wrong")
        assert await browser.run(create, token="secret") == "Created b."
        kept = "return page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]))"
        assert await browser.run(kept) == '[{},{},""]'
        await browser.run(
            "await page.click('form[data-form=create] .result a'); await page.waitForURL('**/streams/b')"
        )
        assert "at most 7 elements" in await browser.run("return page.textContent('main')")


async def test_a_query_is_registered_paused_resumed_and_deleted(
    browser: Browser, served: StreamsServer
) -> None:
    await browser.open(f"{served.url}/streams/a")
    register = """
        await page.waitForSelector("html[data-ready]");
        const form = page.locator("form[data-form=register]");
        if (!await form.isVisible()) await page.click("summary:has-text('Register')");
        await page.waitForSelector("#editor .cm-editor");
        await page.fill("#query", given.query);
        await form.locator("[name=name]").fill("twice");
        await form.locator("button[value=register]").click();
        const said = form.locator(".result p");
        await said.waitFor();
        return said.textContent();
    """
    assert "line 1, column" in await browser.run(register, query="CONSTRUCT { ?s } WHERE")
    assert "elements of twice" in await browser.run(register, query=QUERY)
    await browser.run(
        "await page.click('form[data-form=register] .result a'); await page.waitForURL('**/twice')"
    )
    change = """
        await page.waitForSelector("html[data-ready]");
        await page.click(`form[data-form=manage] button:has-text('${given.button}')`);
        await page.waitForSelector(`.status.${given.status}`);
    """
    await browser.run(change, button="Pause", status="paused")
    await browser.run(change, button="Resume", status="running")
    await browser.run(FOLLOW, begin="next")
    await served.publish([numbered(1)])
    text = await browser.run(ATTACH + "await cards(1); return page.innerText('#follow .card')")
    assert "urn:twice" in text
    await browser.run(
        """
        await page.evaluate(() => { window.confirm = () => true; });
        await page.click("summary:has-text('Delete')");
        await page.click("form[data-form=manage] button.danger");
        await page.waitForURL("**/streams");
        """
    )
    assert (await served.ask("GET", "/streams/twice")).status == 404


async def test_hostile_messages(browser: Browser, tmp_path: Path) -> None:
    """Nothing runs, live or stored; a literal of ten million characters and 5,000 triples are cut."""
    script = '</script><script>document.title = "run"</script><img src=x onerror="document.title=\'run\'">'
    text = [script, "‮txet desrever", "\u2066\u2067", "{{ 7 * 7 }}"]
    said = [Quad(iri("urn:s"), iri("urn:p"), literal(each)) for each in text]
    said.append(
        Quad(
            iri("urn:s"),
            iri("javascript:document.title='run'"),
            iri("javascript:document.title='run'"),
        )
    )
    many = [Quad(iri(f"urn:{number}"), iri("urn:p"), literal("o")) for number in range(5000)]
    long = [Quad(iri("urn:s"), iri("urn:p"), literal("x" * 10_000_000))]
    with open_store(tmp_path / "streams.db") as store:
        store.create("a")
        store.append_all("a", map(Message, (said, many, long)))
    async with serving_streams(tmp_path / "streams.db", **ALLOWED) as served:
        await browser.open(f"{served.url}/streams/a")
        await browser.run(FOLLOW + ATTACH + "await cards(3);", begin="20")
        for path in (
            None,
            "/streams/a",
            "/streams/a/output/1",
            "/streams/a/output/2",
            "/streams/a/output/3",
            "/streams/a/ldes/1-1000",
        ):
            if path is not None:
                await browser.open(served.url + path)
            shown = await browser.run(
                """
                await page.waitForSelector(".card > .message");
                const bad = await page.evaluate(() => [document.title === "run",
                  document.querySelectorAll("main img, main script").length,
                  [...document.links].filter((each) => !/^(?:https?:|blob:)/.test(each.href)).length]);
                const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
                return { bad, wide, text: (await page.innerText("main")).length };
                """
            )
            assert shown["bad"] == [False, 0, 0], path
            assert not shown["wide"], path
            assert shown["text"] < 200_000
            assert await browser.errors() == []


@pytest.mark.parametrize("public", [True, False], ids=["public_url", "without"])
async def test_behind_a_prefix(browser: Browser, tmp_path: Path, public: bool) -> None:
    """All links, forms and live connections keep the prefix, also where the server does not know of it."""
    async with relay() as between:
        with prefixed(between.url, "/data/linked/", tmp_path) as url:
            settings = {"public_url": url.rstrip("/")} if public else {}
            async with serving_streams(
                tmp_path / "streams.db", server=settings, **ALLOWED
            ) as server:
                between.target = server.url
                await server.ask("PUT", "/streams/a")
                await server.publish(map(numbered, range(1, 4)))
                await browser.open(url)  # which has no endpoint to show
                await browser.run("await page.waitForURL('**/streams');")
                await browser.run(
                    "await page.click('main a:text-is(\"a\")'); await page.waitForURL('**/streams/a')"
                )
                await browser.run(FOLLOW + ATTACH + "await cards(3);", begin="20")
                seen = await browser.run(
                    ATTACH
                    + """
                    await page.click("summary:has-text('Publish')");
                    await page.fill("form[data-form=publish] textarea", "<urn:s> <urn:p> <urn:o> .");
                    await page.click("form[data-form=publish] button[value=publish]");
                    await cards(4);
                    await page.click("form[data-form=publish] .result a");
                    await page.waitForURL("**/output/4");
                    await page.click(".crumbs a:text-is('elements')");
                    await page.waitForURL("**/output");
                    await page.click(".sequences a >> nth=0");
                    await page.waitForURL("**/output/1");
                    return page.url();
                    """
                )
                assert seen == f"{url}streams/a/output/1"
                assert all(each.startswith(url) for each in await browser.asked())
                between.target = None

"""Hostile data in a real browser: it neither runs nor breaks the page, which stays within its policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings
from tests.support.http.serving import UNHURRIED, Served, serving
from tests.support.pages.asking import ENDED, shown
from tests.support.pages.browser import Browser
from tests.support.pages.stores import store_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

MARKUP: Final = "<img src=x onerror=alert(1)><script>alert(2)</script><a href='javascript:alert(3)'>x</a>&lt;b&gt;"
LONG: Final = 10_000_000
STATEMENTS: Final = 5_000

DATA: Final = f"""
PREFIX x: <urn:x:>
x:markup x:p "{MARKUP}" , "{MARKUP}"@en , "{MARKUP}"^^<javascript:alert(4)> .
<javascript:alert(5)> <javascript:alert(6)> <data:text/html,alert(7)> .
<http://example.org/'onclick='alert(8)> x:p <http://example.org/a> .
x:right x:p "\\u0645\\u0631\\u062d\\u0628\\u0627 \\u202e evil"@ar--rtl , "\\u202e\\u2066 turned" .
x:circle x:p _:a . _:a x:p _:b . _:b x:p _:a .
x:term x:p <<( x:a x:b "{MARKUP}" )>> .
x:strange x:p "\\u0000\\u0001\\ufffe\\uFEFF\\u2028" .
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    data = {
        "hostile": DATA,
        "long": f'<urn:s> <urn:p> "{"é" * 1000}{"x" * LONG}" .',
    }
    stores = {
        name: store_of(tmp_path_factory.mktemp(name), turtle) for name, turtle in data.items()
    }
    endpoints = {
        name: EndpointSettings(source=(str(store),), limits=UNHURRIED)
        for name, store in stores.items()
    }
    async with serving(endpoints=endpoints) as server:
        yield server


async def ask(page: Browser, endpoint: str, query: str) -> str:
    return str(
        await page.run(
            """
            await page.selectOption("#endpoint", given.path);
            await page.fill("#query", given.query);
            await page.press("#query", "Control+Enter");
            """
            + ENDED
            + 'return page.textContent("#banner");',
            path=f"{endpoint}/sparql",
            query=query,
        )
    )


async def test_nothing_runs(page: Browser) -> None:
    assert await ask(page, "hostile", "CONSTRUCT WHERE { ?s ?p ?o }") == "Complete: 12 messages."
    seen = await page.run(
        shown(12)
        + """
        for (const button of await page.locator(".card header button").all()) await button.click();
        return {
          made: await page.locator("#results script, #results img, #results iframe, #results style").count(),
          links: await page.locator("#cards a").evaluateAll((all) => all.map((each) => each.getAttribute("href"))),
          handlers: await page.locator("#results *").evaluateAll(
            (all) => all.filter((each) => each.getAttributeNames().some((name) => name.startsWith("on"))).length),
          text: await page.locator("#cards").innerText(),
          pictures: await page.locator("#cards svg").count(),
        };
        """
    )
    assert seen["made"] == seen["handlers"] == 0
    assert seen["links"]
    assert all(link.startswith(("http://", "https://")) for link in seen["links"])
    assert seen["text"].count(MARKUP) == 4
    assert "javascript:alert(5)" in seen["text"]
    assert seen["pictures"] == 12


async def test_nothing_runs_in_tables_and_graphs(page: Browser) -> None:
    await ask(page, "hostile", "SELECT * { ?s ?p ?o }")
    seen = await page.run(
        """
        await page.waitForSelector("tbody tr");
        return [
          await page.locator("#results script, #results img").count(),
          await page.locator("#results a").evaluateAll((all) => all.every((each) => /^https?:/.test(each.href))),
          (await page.locator("#other-view").innerText()).includes(given.markup),
        ];
        """,
        markup=MARKUP,
    )
    assert seen == [0, True, True]
    await ask(page, "hostile", "CONSTRUCT WHERE { ?s ?p ?o }")
    graph = await page.run(
        """
        await page.click("#tab-graph");
        await page.waitForSelector("#other-view .message");
        return [await page.locator("#other-view img").count(), await page.innerText("#other-view")];
        """
    )
    assert graph[0] == 0
    assert MARKUP in graph[1]


async def test_what_is_shared_does_not_run(page: Browser, served: Served) -> None:
    """A fragment is text for the editor, whatever it holds."""
    await page.open(
        f"{served.url}/#endpoint=javascript:alert(1)&query={MARKUP.replace('&', '%26')}"
    )
    seen = await page.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.waitForFunction((text) => document.querySelector("#query").textContent.includes(text), given.markup);
        return [await page.inputValue("#endpoint"), await page.locator("#editor img, #editor script").count()];
        """,
        markup=MARKUP,
    )
    assert seen == ["hostile/sparql", 0]


async def test_text_from_right_to_left_is_isolated(page: Browser) -> None:
    await ask(
        page, "hostile", "CONSTRUCT { <urn:x:right> <urn:x:p> ?o } WHERE { <urn:x:right> ?p ?o }"
    )
    seen = await page.run(
        shown(2)
        + """
        return page.locator(".literal bdi").evaluateAll((all) => all.map((each) => [
          each.getAttribute("dir"), each.getAttribute("lang"), getComputedStyle(each).unicodeBidi, each.textContent]));
        """
    )
    assert sorted(each[:3] for each in seen) == [
        ["auto", None, "isolate"],
        ["rtl", "ar", "isolate"],
    ]
    assert any("\u0645" in each[3] for each in seen)


async def test_a_long_literal_is_cut_with_a_way_on(page: Browser) -> None:
    assert await ask(page, "long", "CONSTRUCT WHERE { ?s ?p ?o }") == "Complete: 1 message."
    seen = await page.run(
        """
        const lengths = async () => (await page.locator(".card").evaluate((card) => card.textContent.length));
        await page.waitForSelector(".card");
        const before = await lengths();
        const note = await page.locator(".rest").innerText();
        await page.click(".rest button");
        return [before, await lengths(), note];
        """
    )
    assert seen[0] < 2_000
    assert 20_000 < seen[1] < 30_000
    assert seen[2].startswith("… 10,000,720 more characters")


async def test_a_message_of_thousands_of_statements(page: Browser) -> None:
    template = " ".join(f"<urn:s> <urn:p{number}> ?o ." for number in range(STATEMENTS))
    query = f"CONSTRUCT {{ {template} }} WHERE {{ BIND(1 AS ?o) }}"
    assert await ask(page, "hostile", query) == "Complete: 1 message."
    seen = await page.run(
        """
        await page.waitForSelector(".card dd");
        const before = await page.locator(".card dd").count();
        const label = await page.innerText(".card .message > button");
        await page.click(".card .message > button");
        const after = await page.locator(".card dd").count();
        await page.click(".card header button");
        const picture = [await page.locator(".card svg").count(), await page.innerText(".card .picture .note")];
        return [before, after, label, ...picture];
        """
    )
    assert seen[:2] == [60, 360]
    assert seen[2] == "show more: 4,940 statements are left"
    assert seen[3] == 1
    assert "left out" in seen[4]

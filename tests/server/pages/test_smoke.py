"""The page in a real browser, once: a query is typed, and its messages come."""

import pytest

from tests.support.http.serving import serving
from tests.support.pages.asking import ENDED, shown
from tests.support.pages.browser import browsing
from tests.support.pages.stores import PEOPLE, store_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]


async def test_a_query_is_typed_and_its_messages_are_seen(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = store_of(tmp_path_factory.mktemp("store"), PEOPLE)
    async with (
        serving(store, prefixes={"ex": "http://example.org/"}) as server,
        browsing() as browser,
    ):
        await browser.open(f"{server.url}/")
        seen = await browser.run(
            """
            await page.waitForSelector("html[data-ready]");
            await page.fill("#query", "");
            await page.locator("#query").pressSequentially(given.query);
            await page.keyboard.press("Control+Enter");
            """
            + ENDED
            + shown(3)
            + """
            return { banner: await page.textContent("#banner"), cards: await page.locator(".card").allInnerTexts() };
            """,
            query="CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?s",
        )
        assert seen["banner"] == "Complete: 3 messages."
        assert [card.split() for card in seen["cards"]] == [
            ["1", "1", "statement", "picture", "copy", "ex:a", "ex:knows", "ex:b"],
            ["2", "1", "statement", "picture", "copy", "ex:b", "ex:name", "Bea", "en"],
            ["3", "1", "statement", "picture", "copy", "ex:c", "ex:age", "7"],
        ]
        assert await browser.errors() == []
        assert all(url.startswith(f"{server.url}/") for url in await browser.asked())

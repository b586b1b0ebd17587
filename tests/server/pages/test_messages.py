"""The query section in a real browser: messages as they come, and how answers end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http.fault_server import HOLD, RESET, FaultServer, response
from tests.support.pages.asking import (
    BANNER,
    ENDED,
    EVERYTHING,
    RUN,
    TYPED,
    ask,
    choose,
    shown,
    solutions,
)
from tests.support.pages.browser import Browser

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]


# --- messages as they come -------------------------------------------------------------------------------------------


async def test_a_message_is_seen_before_the_next_is_made(
    page: Browser, upstream: FaultServer
) -> None:
    whole = response(solutions(20), framing="close")
    half = whole.index(b"value 10")
    upstream.play([whole[:half], HOLD, whole[half:]])
    await choose(page, "remote")
    seen = await page.run(
        RUN + 'await page.waitForSelector(".card"); return page.locator("#banner").isHidden();',
        query=EVERYTHING,
    )
    assert seen is True
    upstream.go_on.set()
    assert (await page.run(ENDED + BANNER))["text"] == "Complete: 20 messages."


async def test_ten_thousand_messages_in_a_bounded_list(page: Browser) -> None:
    """All of them can be gone to, and few of them are elements of the page."""
    await page.run(
        """
        await page.evaluate(() => {
          window.most = 0;
          const cards = document.getElementById("cards");
          new MutationObserver(() => { window.most = Math.max(window.most, cards.childElementCount); })
            .observe(cards, { childList: true });
          window.said = 0;
          new MutationObserver(() => { window.said += 1; })
            .observe(document.getElementById("announcement"), { childList: true });
        });
        """
    )
    assert (await ask(page, "many"))["text"] == "Complete: 10,000 messages."
    seen = await page.run(
        shown(10)
        + """
        const inSight = (number) => page.waitForFunction((wanted) => {
          const card = document.querySelector(`.card[data-number="${wanted}"]`);
          const box = card?.getBoundingClientRect();
          return box && box.top >= 0 && box.top < innerHeight;
        }, number);
        const numbers = [await page.textContent(".card h3")];
        await page.fill("#jump", "5000");
        await page.press("#jump", "Enter");
        await inSight(5000);
        await page.evaluate(() => scrollBy(0, -3000));
        await page.waitForFunction(() => document.querySelector(".card[data-number='4980']"));
        await page.locator("#place").evaluate((range) => {
          range.value = "10000";
          range.dispatchEvent(new Event("input"));
        });
        await inSight(10000);
        return {
          most: await page.evaluate(() => window.most), said: await page.evaluate(() => window.said), numbers,
          banner: await page.textContent("#banner"), of: await page.textContent("#of"),
        };
        """
    )
    assert seen.pop("most") <= 100
    assert seen.pop("said") <= 4
    assert seen == {"numbers": ["1"], "banner": "Complete: 10,000 messages.", "of": "of 10,000"}


async def test_filter_and_jump(page: Browser) -> None:
    await ask(page, "many", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 900")
    found = await page.run(
        """
        await page.fill("#filter", "EXAMPLE.ORG/77");
        await page.waitForFunction(() => document.querySelectorAll(".card").length === 11);
        const filtered = await page.locator(".card h3").allTextContents();
        await page.fill("#jump", "500");
        await page.press("#jump", "Enter");
        await page.waitForFunction(() => {
          const box = document.querySelector(".card[data-number='500']")?.getBoundingClientRect();
          return box && box.top >= 0 && box.top < innerHeight;
        });
        await page.fill("#jump", "901");
        await page.press("#jump", "Enter");
        await page.waitForFunction(() => /901/.test(document.getElementById("kept").textContent));
        return { filtered, said: await page.textContent("#announcement") };
        """
    )
    assert found == {
        "filtered": ["77", *map(str, range(770, 780))],
        "said": "message 901 is not kept",
    }


FOUND = {
    "ex:knows": ["1"],
    "EX:KNOWS ex:b": ["1"],
    '"bea"@en': ["2"],
    '"7"^^xsd:integer': ["3"],
    "http://example.org/age": ["3"],
    "XMLSchema#integer": ["3"],
    'say "hi"': ["4"],
    "ex:e a ex:thing": ["5"],
    "<urn:x:y>": ["5"],
    "ex:": ["1", "2", "3", "4", "5"],
    "foaf:knows": [],
    "": ["1", "2", "3", "4", "5"],
}
"""The messages that a filter finds, as cards show their text, with the prefixes of query and endpoint, or N-Quads."""


async def test_the_filter_finds_what_is_shown(page: Browser) -> None:
    query = """PREFIX ex: <http://example.org/> CONSTRUCT { ?s ?p ?o . ?x a ex:Thing ; ex:in <urn:x:y> }
    WHERE { { ?s ?p ?o } UNION { VALUES (?s ?p ?o) { (ex:d ex:says 'say "hi"') } } UNION { VALUES ?x { ex:e } } }
    ORDER BY DESC(BOUND(?s)) ?s"""
    assert (await ask(page, "people", query))["text"] == "Complete: 5 messages."
    for text, found in FOUND.items():
        seen = await page.run(
            """
            await page.fill("#filter", given.text);
            // cards are made in the frames after it is said what is kept
            await page.waitForFunction(
              ({ said, found }) => document.getElementById("kept").textContent === said
                && document.querySelectorAll(".card").length >= found,
              given,
            );
            return [await page.locator(".card h3").allTextContents(), await page.textContent("#announcement")];
            """,
            text=text,
            found=len(found),
            said=(said := f"{len(found)} of 5 match" if text else ""),
        )
        assert seen == [found, said], text


async def test_the_filter_searches_all_messages(page: Browser) -> None:
    await ask(page, "many")
    numbers = await page.run(
        """
        await page.fill("#filter", "http://example.org/1234>");
        await page.waitForFunction(() => document.getElementById("kept").textContent === "1 of 10,000 match");
        await page.waitForSelector(".card");
        return page.locator(".card h3").allTextContents();
        """
    )
    assert len(numbers) == 1


async def test_a_new_query_takes_the_place_of_the_one_before(
    page: Browser, upstream: FaultServer
) -> None:
    whole = response(solutions(20), framing="close")
    upstream.play([whole[: len(whole) // 2], HOLD])
    await choose(page, "remote")
    await page.run(RUN + 'await page.waitForSelector(".card");', query=EVERYTHING)
    assert (await ask(page, "people"))["text"] == "Complete: 3 messages."
    upstream.go_on.set()
    assert await page.run(shown(3) + 'return page.locator(".card").count()') == 3


# --- how answers end -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [(), (RESET,)], ids=["closed", "reset"])
async def test_a_cut_answer_is_never_shown_as_complete(
    page: Browser, upstream: FaultServer, end: tuple[Any, ...]
) -> None:
    whole = response(solutions(200), framing="chunked")
    upstream.play([whole[: whole.index(b"value 150")], HOLD, *end])
    await choose(page, "remote")
    await page.run(RUN + 'await page.waitForSelector(".card");', query=EVERYTHING)
    upstream.go_on.set()
    banner = await page.run(ENDED + BANNER)
    assert banner["kind"] == "banner bad"
    cut = "The answer was cut: the connection ended within it. It is not complete. Only its beginning is below: "
    assert banner["text"].startswith(cut)
    seen = await page.run(
        """
        return {
          role: await page.getAttribute("#banner", "role"), announced: await page.textContent("#announcement"),
        };
        """
    )
    assert seen == {"role": "alert", "announced": "The first message is here."}


async def test_an_answer_that_is_cut_at_once(page: Browser, upstream: FaultServer) -> None:
    """The browser may throw away what it has got."""
    whole = response(solutions(200), framing="chunked")
    upstream.play([whole[: whole.index(b"value 150")]])
    banner = await ask(page, "remote")
    assert banner["kind"] == "banner bad"
    assert banner["text"].startswith(("The answer was cut", "Refused (502)"))


async def test_a_source_that_fails_at_once(page: Browser, upstream: FaultServer) -> None:
    upstream.play(response(b"no", "text/plain", status="500 No"))
    banner = await ask(page, "remote")
    assert banner["kind"] == "banner bad"
    assert banner["text"].startswith("Refused (5")


async def test_stopped(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(200), framing="close")
    upstream.play([whole[: whole.index(b"value 100")], HOLD])
    await choose(page, "remote")
    banner = await page.run(
        RUN + 'await page.waitForSelector(".card"); await page.click("#stop");' + ENDED + BANNER,
        query=EVERYTHING,
    )
    upstream.go_on.set()
    assert banner["kind"] == "banner warn"
    assert banner["text"].startswith("Stopped: the answer is not complete.")


async def test_an_error_is_shown_at_its_place(page: Browser) -> None:
    query = "# 😀\nCONSTRUCT { ?s ?p ?o }\nWHERE { '😀' nope:x ?o"
    banner = await ask(page, "people", query)
    assert banner["text"].startswith("Refused (400)")
    seen = await page.run(
        TYPED
        + """
        await page.waitForSelector(".cm-lintRange-error, .cm-lintPoint-error", { state: "attached" });
        return {
          error: await page.textContent("#query-error"), line: await page.textContent(".cm-activeLineGutter"),
          cursor: (await typed()).cursor,
        };
        """
    )
    line, column = (
        int(word) for word in seen["error"].replace(",", "").replace(":", "").split()[1:4:2]
    )
    assert str(line) == seen["line"]
    before = (
        "".join(f"{each}\n" for each in query.split("\n")[: line - 1])
        + query.split("\n")[line - 1][: column - 1]
    )
    assert seen["cursor"] == len(before.encode("utf-16-le")) // 2
    assert (
        await page.run(
            'await page.type("#query", " "); return page.locator("#query-error").isHidden();'
        )
        is True
    )

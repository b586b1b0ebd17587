"""The query section in a real browser: messages as they come, and what can be done with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio

from construct_messages.formats import LOGS, content_type
from construct_messages.server.config import EndpointSettings
from tests.support.http.fault_server import HOLD, RESET, FaultServer, response
from tests.support.http.serving import Served, serving, unlabelled
from tests.support.pages.browser import Browser, browsing
from tests.support.pages.stores import PEOPLE, store_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

MANY = 10_000
EVERYTHING = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?o"
RUN = """
await page.fill("#query", given.query);
await page.press("#query", "Control+Enter");
"""
ENDED = 'await page.waitForSelector("#banner:not([hidden])");'
BANNER = 'return { kind: await page.getAttribute("#banner", "class"), text: await page.textContent("#banner") };'


def solutions(count: int) -> bytes:
    """A SPARQL result of so many solutions."""
    bindings = [
        {
            "s": {"type": "uri", "value": f"http://example.org/{number}"},
            "p": {"type": "uri", "value": "urn:p"},
            "o": {"type": "literal", "value": f"value {number}"},
        }
        for number in range(1, count + 1)
    ]
    return json.dumps({"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": bindings}}).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    many = "".join(f"<http://example.org/{number}> <urn:p> {number} .\n" for number in range(1, MANY + 1))
    endpoints = {
        "people": EndpointSettings(
            source=(str(store_of(tmp_path_factory.mktemp("people"), PEOPLE)),),
            prefixes={"ex": "http://example.org/"},
        ),
        "many": EndpointSettings(source=(str(store_of(tmp_path_factory.mktemp("many"), many)),)),
        "remote": EndpointSettings(source=(upstream.url,), retries=0),
    }
    async with serving(endpoints=endpoints) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, served: Served) -> AsyncIterator[Browser]:
    """An open page, which must throw no error and ask no other host."""
    await browser.open(f"{served.url}/")
    await browser.run('await page.waitForSelector("html[data-ready]")')
    yield browser
    assert await browser.errors() == []
    assert [url for url in await browser.asked() if not url.startswith((f"{served.url}/", "blob:"))] == []


async def choose(page: Browser, endpoint: str) -> None:
    await page.run('await page.selectOption("#endpoint", given.path)', path=f"{endpoint}/sparql")


async def ask(page: Browser, endpoint: str, query: str = EVERYTHING) -> Any:
    """Runs a query to its end; gives the banner."""
    await choose(page, endpoint)
    return await page.run(RUN + ENDED + BANNER, query=query)


async def log_of(served: Served, endpoint: str, query: str, accept: str) -> bytes:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.url}/{endpoint}/sparql", data={"query": query}, headers={"Accept": accept}) as answer,
    ):
        assert answer.status == 200
        return await answer.read()


# --- messages as they come -------------------------------------------------------------------------------------------


async def test_a_message_is_seen_before_the_next_is_made(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(20), framing="close")
    half = whole.index(b"value 10")
    upstream.play([whole[:half], HOLD, whole[half:]])
    await choose(page, "remote")
    seen = await page.run(
        RUN + 'await page.waitForSelector(".card"); return page.locator("#banner").isHidden();', query=EVERYTHING
    )
    assert seen is True
    upstream.go_on.set()
    assert (await page.run(ENDED + BANNER))["text"] == "Complete: 20 messages."


async def test_ten_thousand_messages_in_a_bounded_list(page: Browser) -> None:
    await ask(page, "people")
    await page.run(
        """
        await page.selectOption("#keep", "100");
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
        """
        await page.waitForFunction(() => document.querySelector(".card:last-child h3")?.textContent === "10,000");
        return {
          most: await page.evaluate(() => window.most), said: await page.evaluate(() => window.said),
          count: await page.locator(".card").count(), first: await page.textContent(".card h3"),
          figure: await page.textContent("#figure-count"), kept: await page.textContent("#kept"),
        };
        """
    )
    assert seen.pop("most") <= 200  # those that came are added before those that went are removed
    assert seen.pop("said") <= 4
    assert seen == {"count": 100, "first": "9,901", "figure": "10,000", "kept": "kept: 9,901 to 10,000"}


async def test_pause_goes_on_receiving(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(200), framing="close")
    half = whole.index(b"value 100")
    upstream.play([whole[:half], HOLD, whole[half:]])
    await choose(page, "remote")
    before = await page.run(
        RUN
        + """
        await page.waitForSelector(".card");
        await page.click("#pause");
        return page.locator(".card").count();
        """,
        query=EVERYTHING,
    )
    upstream.go_on.set()
    paused = await page.run(
        ENDED
        + """
        await page.waitForFunction(() => document.getElementById("figure-count").textContent === "200");
        return { cards: await page.locator(".card").count(), kept: await page.textContent("#kept") };
        """
    )
    assert paused == {"cards": before, "kept": "kept: 1 to 200; paused, and still receiving"}
    assert before < 200
    await page.run(
        """
        await page.click("#pause");
        await page.waitForFunction(() => document.querySelectorAll(".card").length === 200);
        """
    )


async def test_filter_and_jump(page: Browser) -> None:
    await ask(page, "many", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 900")
    found = await page.run(
        """
        await page.waitForFunction(() => document.querySelectorAll(".card").length === 900);
        await page.fill("#filter", "EXAMPLE.ORG/77");
        await page.waitForFunction(() => document.querySelectorAll(".card").length === 11);
        const filtered = await page.locator(".card h3").allInnerTexts();
        await page.fill("#jump", "500");
        await page.press("#jump", "Enter");
        const card = page.locator(".card:focus");
        await card.waitFor();
        const at = await card.getAttribute("aria-label");
        await page.fill("#jump", "901");
        await page.click("#go");
        return { filtered, at, all: await page.locator(".card").count(), said: await page.textContent("#kept") };
        """
    )
    assert found == {
        "filtered": ["77", *map(str, range(770, 780))],
        "at": "message 500",
        "all": 900,
        "said": "message 901 is not among those that are kept",
    }


async def test_a_new_query_takes_the_place_of_the_one_before(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(20), framing="close")
    upstream.play([whole[: len(whole) // 2], HOLD])
    await choose(page, "remote")
    await page.run(RUN + 'await page.waitForSelector(".card");', query=EVERYTHING)
    assert (await ask(page, "people"))["text"] == "Complete: 3 messages."
    upstream.go_on.set()
    assert await page.run('return page.locator(".card").count()') == 3


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
    cut = "The answer was cut: the connection ended within it. It is not complete. What is below are the first "
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
        RUN + 'await page.waitForSelector(".card"); await page.click("#stop");' + ENDED + BANNER, query=EVERYTHING
    )
    upstream.go_on.set()
    assert banner["kind"] == "banner warn"
    assert banner["text"].startswith("Stopped: the answer is not complete.")


async def test_an_error_is_shown_at_its_place(page: Browser) -> None:
    query = "# 😀\nCONSTRUCT { ?s ?p ?o }\nWHERE { '😀' nope:x ?o"
    banner = await ask(page, "people", query)
    assert banner["text"].startswith("Refused (400)")
    seen = await page.run(
        """
        await page.waitForSelector(".paint .token-error");
        return {
          error: await page.textContent("#query-error"), line: await page.textContent(".lines .token-error"),
          cursor: await page.evaluate(() => document.activeElement.selectionStart),
        };
        """
    )
    line, column = (int(word) for word in seen["error"].replace(",", "").replace(":", "").split()[1:4:2])
    assert str(line) == seen["line"]
    before = "".join(f"{each}\n" for each in query.split("\n")[: line - 1]) + query.split("\n")[line - 1][: column - 1]
    assert seen["cursor"] == len(before.encode("utf-16-le")) // 2
    assert await page.run('await page.type("#query", " "); return page.locator("#query-error").isHidden();') is True


# --- what is no log --------------------------------------------------------------------------------------------------


async def test_select_and_ask(page: Browser) -> None:
    select = "SELECT ?s ?o ?none { ?s ?p ?o } ORDER BY ?s"
    seen = await page.run(
        'await page.selectOption("#endpoint", "people/sparql");'
        + RUN
        + 'await page.waitForSelector("table"); return page.locator("tr").allInnerTexts();',
        query=select,
    )
    assert [row.split() for row in seen] == [
        ["?s", "?o", "?none"],
        ["ex:a", "ex:b"],
        ["ex:b", '"Bea"@en'],
        ["ex:c", '"7"^^xsd:integer'],
    ]
    asked = RUN + 'await page.waitForSelector("#table-view .good"); return page.textContent("#table-view");'
    assert await page.run(asked, query="ASK {}") == "yes (true)"


async def test_a_table_of_many_rows_grows_on_demand(page: Browser) -> None:
    await choose(page, "many")
    rows = await page.run(
        RUN
        + """
        await page.waitForSelector("table");
        const before = await page.locator("tbody tr").count();
        await page.click("#table-view button");
        return [before, await page.locator("tbody tr").count(), await page.textContent("#table-view .note")];
        """,
        query="SELECT * { ?s ?p ?o }",
    )
    assert rows == [500, 1000, "10,000 solutions"]


async def test_a_cut_table_is_no_table(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(20), framing="chunked")
    upstream.play([whole[: len(whole) // 2]])
    banner = await ask(page, "remote", "SELECT * { ?s ?p ?o }")
    assert banner["kind"] == "banner bad"
    assert await page.run('return page.locator("#table-view").isHidden()') is True


async def test_the_same_as_one_graph(page: Browser) -> None:
    query = "PREFIX ex: <http://example.org/> CONSTRUCT { ?s a ex:Thing . ex:all ex:has ex:one } WHERE { ?s ?p ?o }"
    await ask(page, "people", query)
    seen = await page.run(
        """
        await page.click("#tab-graph");
        await page.waitForSelector("#graph-view .message");
        const graph = await page.innerText("#graph-view");
        await page.click("#tab-messages");
        return [graph, await page.locator(".card").count(), await page.locator("#graph-view").isHidden()];
        """
    )
    note, *lines = seen[0].splitlines()
    words = ["ex:a", "a", "ex:Thing", "ex:b", "a", "ex:Thing", "ex:c", "a", "ex:Thing", "ex:all", "ex:has", "ex:one"]
    assert note == "4 triples, 4 of them distinct"
    assert sorted(" ".join(lines).split()) == sorted(words)
    assert seen[1:] == [3, True]


# --- taking it away --------------------------------------------------------------------------------------------------


async def test_downloads_are_what_the_server_gives(page: Browser, served: Served, tmp_path: Path) -> None:
    """Byte for byte, in every format of logs."""
    types = [content_type(*type) for type in LOGS]
    await choose(page, "people")
    await page.run('await page.fill("#query", given.query)', query=EVERYTHING)
    assert (
        await page.run(
            'return page.locator("#format optgroup:first-child option").evaluateAll('
            "(all) => all.map((each) => each.value))"
        )
        == types
    )
    for number, type in enumerate(types):
        name = await page.run(
            """
            await page.selectOption("#format", given.type);
            const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
            await download.saveAs(given.path);
            await page.waitForSelector("#download:not([disabled])");
            return download.suggestedFilename();
            """,
            type=type,
            path=str(tmp_path / str(number)),
        )
        assert name == f"messages.{LOGS[number].format.extension}"
        expected = await log_of(served, "people", EVERYTHING, type)
        assert (tmp_path / str(number)).read_bytes() == expected, type
        assert expected


async def test_a_cut_download_is_not_saved(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(200), framing="chunked")
    upstream.play([whole[: whole.index(b"value 150")]])
    await choose(page, "remote")
    text = await page.run(
        """
        let saved = 0;
        page.on("download", () => { saved += 1; });
        await page.fill("#query", given.query);
        await page.click("#download");
        await page.waitForSelector("#banner:not([hidden])");
        await page.waitForSelector("#download:not([disabled])");
        return [await page.textContent("#banner"), saved];
        """,
        query=EVERYTHING,
    )
    assert text == ["The answer was cut or failed: nothing is saved.", 0]


@pytest.mark.parametrize("kind", ["curl", "command", "python"])
async def test_copies_can_be_run(page: Browser, served: Served, kind: str, tmp_path: Path) -> None:
    query = '# it\'s \\ "quoted"\nCONSTRUCT { ?s ?p "it\'s $HOME `x` \\\\ é😀" }\nWHERE { ?s ?p ?o }\nORDER BY ?s'
    await choose(page, "people")
    text = await page.run(
        """
        await page.fill("#query", given.query);
        await page.selectOption("#copy", given.kind);
        await page.waitForSelector("#text-dialog[open]");
        const text = await page.inputValue("#text-dialog-text");
        await page.click("#text-dialog-close");
        return text;
        """,
        query=query,
        kind=kind,
    )
    program = ("python", "-c", text) if kind == "python" else ("bash", "-euo", "pipefail", "-c", text)
    process = await asyncio.create_subprocess_exec(*program, stdout=-1, stderr=-1, cwd=tmp_path)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    log = await log_of(served, "people", query, content_type(*LOGS[0]))
    if kind == "python":
        assert out.splitlines() == [line.replace(b"# @message", b"1 quads") for line in log.splitlines()]
    else:
        assert unlabelled(out) == unlabelled(log)


async def test_the_fragment_shares_query_and_endpoint(page: Browser, served: Served) -> None:
    await ask(page, "people")
    shared = await page.run("return page.url()")
    assert (
        shared == f"{served.url}/#{urlencode({'endpoint': 'people/sparql', 'query': EVERYTHING}).replace('%2A', '*')}"
    )
    await page.open(shared)
    seen = await page.run(
        """
        await page.waitForSelector("html[data-ready]");
        const values = [await page.inputValue("#query"), await page.inputValue("#endpoint")];
        return [...values, await page.locator(".card").count()];
        """
    )
    assert seen == [EVERYTHING, "people/sparql", 0]  # what somebody else wrote is not run unasked


@pytest.mark.parametrize(("path", "endpoint"), [("/many/", "many/sparql"), ("/remote/sparql", "remote/sparql")])
async def test_the_endpoint_is_that_of_the_address(page: Browser, served: Served, path: str, endpoint: str) -> None:
    await page.open(served.url + path)
    value = await page.run('await page.waitForSelector("html[data-ready]"); return page.inputValue("#endpoint");')
    assert value == endpoint


# --- the editor ------------------------------------------------------------------------------------------------------


async def test_the_editor_paints_what_is_typed(page: Browser) -> None:
    await choose(page, "people")
    seen = await page.run(
        """
        await page.fill("#query", "CONSTRUCT { ?s ex:p 'a' } # x\\nWHERE { ?s ex:q <urn:x> }");
        await page.locator("#query").evaluate((area) => { area.focus(); area.setSelectionRange(11, 11); });
        await page.waitForSelector(".paint .match");
        await page.click("#add-prefixes");
        await page.waitForFunction(() => document.querySelector(".lines").textContent.startsWith("1\\n2\\n3"));
        return {
          text: await page.inputValue("#query"), painted: await page.textContent(".paint"),
          kinds: await page.locator(".paint span").evaluateAll((all) => all.map((each) => each.className)),
          hidden: await page.locator("#add-prefixes").isHidden(),
        };
        """
    )
    assert seen["text"] == (
        "PREFIX ex: <http://example.org/>\nCONSTRUCT { ?s ex:p 'a' } # x\nWHERE { ?s ex:q <urn:x> }"
    )
    assert seen["painted"].rstrip("\n") == seen["text"]
    kinds = {"token-keyword", "token-variable", "token-name", "token-string", "token-comment", "token-iri"}
    assert kinds <= set(seen["kinds"])
    assert seen["hidden"] is True


async def test_examples_run(page: Browser) -> None:
    count = await page.run('return page.locator("#examples option").count()')
    assert count > 3
    await choose(page, "people")
    for number in range(count - 1):
        failed = await page.run(
            """
            await page.selectOption("#examples", String(given.number));
            await page.click("#run");
            await page.waitForSelector("#results:not([aria-busy])");
            await page.waitForSelector("#banner:not([hidden]), #table-view:not([hidden])");
            return page.locator("#banner.bad").isVisible();
            """,
            number=number,
        )
        assert failed is False


async def test_everything_is_reached_by_keyboard(page: Browser) -> None:
    await ask(page, "people")
    reached = await page.run(
        """
        await page.evaluate(() => document.activeElement.blur());
        const reached = new Set();
        for (let number = 0; number < 60; number += 1) {
          await page.keyboard.press("Tab");
          reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
        }
        return [...reached];
        """
    )
    wanted = {
        *("skip", "to-query", "endpoint", "examples", "query", "run", "format", "download", "copy"),
        *("tab-messages", "tab-graph", "pause", "filter", "jump", "go", "keep", "quiet", "iri"),
    }
    assert wanted <= set(reached)

"""What the page keeps, in a real browser: links, open queries, runs, saved queries, and the room of the editor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from tests.support.http.serving import Served
from tests.support.pages.asking import ENDED, EVERYTHING, TYPED, ask
from tests.support.pages.browser import Browser

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

READY: Final = 'await page.waitForSelector("html[data-ready]");'
KEPT: Final = "await page.evaluate(() => dispatchEvent(new Event('pagehide')));"
HOSTILE: Final = '# <img src=x onerror="alert(1)">\nASK { <javascript:alert(2)> ?p ?o }'
STEPS: Final = """
const write = async (target, query) => { await target.fill("#query", query); await target.locator("#query").blur(); };
const run = async (query) => {
  await page.fill("#query", query);
  await page.press("#query", "Control+Enter");
  await page.waitForSelector("#banner:not([hidden])");
};
const listed = (target, list) => target.locator(`#${list} li .row-open`).allTextContents();
const opened = (target) => target.locator("#open-queries button").allTextContents();
"""


async def test_a_link_to_an_endpoint_is_answered(browser: Browser, served: Served) -> None:
    """As a browser opens it; a reload asks again, and Back brings the query of the link back after another one."""
    # line ends as forms of HTML send them, and parameters in another order and spelling than those of the page
    asked = {
        "max-messages": "2",
        "default-graph-uri": "urn:none",
        "distinct": "perhaps",
        "query": f"{EVERYTHING}\r\n",
        "group-by": "?p",
    }
    url = f"{served.url}/people/sparql?{urlencode(asked)}#view=table"
    await browser.open(url)
    seen = await browser.run(
        READY
        + ENDED
        + TYPED
        + """
        const said = async () => [await page.textContent("#banner"), await page.textContent("#further-text")];
        const refused = await said();
        await page.click("#leave-out");
        await page.click("#run");
        await page.waitForSelector("#banner.good");
        const address = await page.evaluate(() => location.href);
        const pressed = await page.getAttribute("#tab-table", "aria-pressed");
        const fields = [await page.inputValue("#group-by"), await page.inputValue("#max-messages")];
        const answered = await said();
        await page.goBack();
        await until(given.query);
        await page.reload();
        """
        + READY
        + ENDED
        + """
        return { refused, answered, address, pressed, fields, again: await said() };
        """,
        query=f"{EVERYTHING}\n",
    )
    more = "default-graph-uri=urn:none, distinct"
    refused = ["Refused (400): distinct=perhaps is neither true nor false.", more]
    assert seen["refused"][0].startswith(refused[0])
    assert seen["refused"][1].startswith("default-graph-uri=urn:none")
    assert seen["again"] == seen["refused"]
    assert seen["answered"] == ["Complete: 2 messages, grouped by ?p.", ""]
    assert seen["fields"] == ["?p", "2"]
    assert seen["pressed"] == "true"
    permalink = [
        ("endpoint", "people/sparql"),
        ("query", f"{EVERYTHING}\n"),
        ("group-by", "p"),
        ("max-messages", "2"),
        ("view", "table"),
    ]
    assert seen["address"] == (
        f"{served.url}/people/sparql#{urlencode(permalink).replace('%2A', '*')}"
    )
    assert await browser.errors() == []
    await browser.open(seen["address"])
    seen = await browser.run(
        READY
        + """
        const before = await page.locator("#tabs").isVisible();
        await page.click("#run");
        await page.waitForSelector("#other-view td");
        await page.click("#tab-messages");
        return [before, await page.textContent("#banner"), await page.evaluate(() => location.hash.includes("view"))];
        """
    )
    assert seen == [False, "Complete: 2 messages, grouped by ?p.", False]


async def test_back_brings_the_query_before(page: Browser) -> None:
    seen = await page.run(
        STEPS
        + TYPED
        + """
        await run("ASK { ?first ?p ?o }");
        await run("ASK { ?second ?p ?o }");
        await write(page, "ASK { ?second ?p ?o } # typed");
        await page.goBack();
        await until("ASK { ?first ?p ?o }");
        const differs = await page.locator("#asked").isVisible();
        await page.click("#bring-back");
        const brought = (await typed()).text;
        await page.goForward();
        await until("ASK { ?second ?p ?o } # typed");
        return [differs, brought];
        """
    )
    assert seen == [True, "ASK { ?second ?p ?o }"]


async def test_open_queries(page: Browser, served: Served) -> None:
    """What is typed is there after a reload and in another window; what is closed is in the history."""
    seen = await page.run(
        STEPS
        + READY
        + """
        await write(page, "ASK { ?one ?p ?o }");
        await page.click("#new-query");
        await write(page, given.hostile);
        await page.click("#new-query");
        await write(page, "ASK { ?three ?p ?o }");
        """
        + KEPT
        + """
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        const reloaded = await opened(page);
        const other = await context.newPage();
        await other.goto(given.url);
        await other.waitForSelector("html[data-ready]");
        const there = await opened(other);
        // both type into the same one
        await write(page, "ASK { ?three ?p 1 }");
        await write(other, "ASK { ?three ?p 2 }");
        await other.waitForTimeout(700);
        await other.close();
        const third = await context.newPage();
        await third.goto(given.url);
        await third.waitForSelector("html[data-ready]");
        const both = await opened(third);
        await third.close();
        await page.locator("#open-queries button").nth(1).click();
        const pressed = await page.locator("#open-queries [aria-pressed=true]").textContent();
        await page.click("#close-query");
        const left = await opened(page);
        await page.click("#to-library");
        const closed = await listed(page, "run-list");
        const made = await page.locator("dialog img, #open-queries img").count();
        await page.click("#run-list .row-open");
        return { reloaded, there, both: both.sort(), pressed, left, closed, made, again: await opened(page) };
        """,
        url=f"{served.url}/",
        hostile=HOSTILE,
    )
    one, two, three = "ASK { ?one ?p ?o }", '<img src=x onerror="alert(1)…', "ASK { ?three ?p ?o }"
    assert seen == {
        "reloaded": [one, two, three],
        "there": [one, two, three],
        "both": [two, one, "ASK { ?three ?p 1 }", "ASK { ?three ?p 2 }"],
        "pressed": two,
        "left": [one, "ASK { ?three ?p 1 }"],
        "closed": ['<img src=x onerror="alert(1)">'],
        "made": 0,
        "again": [one, "ASK { ?three ?p 1 }", two],
    }


async def test_saved_queries_and_history(page: Browser, served: Served, tmp_path: Path) -> None:
    """Two windows save, and lose nothing; a file takes all of it to another browser."""
    await ask(page, "people")
    seen = await page.run(
        STEPS
        + """
        const save = async (target, name) => {
          await target.click("#to-library");
          await target.fill("#save-name", name);
          await target.keyboard.press("Enter");
        };
        await run("CONSTRUCT { ?s ?p }");
        await run("SELECT * { ?s ?p ?o } LIMIT 2");
        const other = await context.newPage();
        await other.goto(given.url);
        await other.waitForSelector("html[data-ready]");
        await save(page, "of one");
        await write(other, given.hostile);
        await save(other, "<b>of the other</b>");
        await page.locator("#saved-list li").nth(1).waitFor();
        const saved = await listed(page, "saved-list");
        const notes = await page.locator("#run-list .note").allTextContents();
        const runs = await listed(page, "run-list");
        await page.fill("#library-filter", "onerror");
        const found = await listed(page, "saved-list");
        await page.fill("#library-filter", "");
        await page.click("#saved-list .quiet >> nth=0");
        const deleted = await listed(page, "saved-list");
        await page.click("#undo-remove");
        const download = page.waitForEvent("download");
        await page.click("#export-queries");
        await (await download).saveAs(given.path);
        await page.click("#saved-list .row-open >> nth=1");
        return { saved, notes, runs, found, deleted, open: await page.inputValue("#endpoint") };
        """,
        url=f"{served.url}/many/",
        hostile=HOSTILE,
        path=str(tmp_path / "queries.json"),
    )
    assert seen["saved"] == ["<b>of the other</b>", "of one"]
    assert seen["runs"] == ["SELECT * { ?s ?p ?o } LIMIT 2", "CONSTRUCT { ?s ?p }", EVERYTHING]
    assert [note.partition(" · ")[2] for note in seen["notes"]] == [
        "2 solutions · /people/sparql",
        "0 messages · refused · /people/sparql",
        "3 messages · /people/sparql",
    ]
    assert seen["found"] == ["<b>of the other</b>"]
    assert seen["deleted"] == ["of one"]
    assert seen["open"] == "people/sparql"
    file = json.loads((tmp_path / "queries.json").read_text(encoding="utf-8"))
    assert (len(file["saved"]), len(file["history"]), file["open"] != []) == (2, 3, True)
    broken = [None, {"name": "x"}, {"name": 1, "endpoint": "a", "query": "b"}, {"name": "y", "endpoint": "a",
        "query": "b", "parameters": [["c"]]}]  # fmt: skip
    file["saved"] += broken
    (tmp_path / "queries.json").write_text(json.dumps(file), encoding="utf-8")
    (tmp_path / "other.json").write_text("[1", encoding="utf-8")
    await page.open(f"{served.url}/")
    seen = await page.run(
        STEPS
        + READY
        + """
        await page.click("#to-library");
        const told = [];
        for (const path of [given.path, given.path, given.other]) {
          const before = await page.textContent("#library-note");
          await page.setInputFiles("#import-file", path);
          await page.waitForFunction((text) => document.getElementById("library-note").textContent !== text, before);
          told.push(await page.textContent("#library-note"));
        }
        const made = await page.locator("dialog b, dialog img").count();
        return { told, saved: await listed(page, "saved-list"), made };
        """,
        path=str(tmp_path / "queries.json"),
        other=str(tmp_path / "other.json"),
    )
    assert seen["saved"] == ["<b>of the other</b>", "of one"]
    assert seen["made"] == 0
    assert seen["told"][0].startswith("5 added, 2 of them saved queries")
    assert seen["told"][1].startswith("0 added, 0 of them saved queries")
    assert seen["told"][2] == "other.json is no file of queries that this page has exported."


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "switched off"])
async def test_without_storage(browser: Browser, served: Served, is_full: bool) -> None:
    """The page works, and says what is not kept."""
    await browser.open("about:blank")
    seen = await browser.run(
        STEPS
        + """
        await page.addInitScript((isFull) => {
          if (isFull) {
            Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
          } else {
            for (const name of ["localStorage", "sessionStorage"]) {
              Object.defineProperty(window, name, { get() { throw new DOMException("off", "SecurityError"); } });
            }
          }
        }, given.isFull);
        await page.goto(given.url);
        await page.waitForSelector("html[data-ready]");
        await run("ASK { ?s ?p ?o }");
        await page.click("#new-query");
        await write(page, "ASK { ?typed ?p ?o }");
        """
        + KEPT
        + """
        const noted = await page.locator("#storage-note").isVisible();
        await page.click("#to-library");
        const told = await page.textContent("#library-note");
        await page.fill("#save-name", "mine");
        await page.keyboard.press("Enter");
        const saved = [await page.textContent("#library-note"), await listed(page, "saved-list")];
        await page.click("#library-close");
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        """
        + TYPED
        + "return { noted, told, saved, text: (await typed()).text };",
        url=f"{served.url}/people/",
        isFull=is_full,
    )
    assert seen["noted"] is is_full
    assert ("keeps nothing" in seen["told"]) is not is_full
    assert seen["saved"] == [
        "“mine” is saved until this page is closed: export it to keep it.",
        ["mine"],
    ]
    assert seen["text"] == "ASK { ?typed ?p ?o }"
    assert await browser.errors() == []


async def test_what_others_wrote_into_the_storage(page: Browser) -> None:
    """Other pages of the origin can write anything there: what is no request is passed over."""
    seen = await page.run(
        STEPS
        + """
        await write(page, given.hostile);
        await page.waitForFunction(() => Object.keys(localStorage).some((key) => key.includes(" open ")));
        const values = ["", "{", "null", "[]", "7", '{"query": 1}', '{"endpoint": "a", "query": "b", "parameters": {}}',
          '{"request": null}', '{"open": [null, {"id": 1}], "active": {}}', '{"width": "x"}',
          '{"name": {}, "at": "x", "count": "x", "endpoint": "<b>", "query": "ASK {} # <b>", ' +
            '"parameters": [["a", "<b>"]]}'];
        await page.evaluate((values) => {
          for (const [kind, area] of [["open", localStorage], ["run", localStorage], ["saved", localStorage],
            ["layout", localStorage], ["window", sessionStorage]]) {
            const id = { layout: "query", window: "open" }[kind];
            for (const [index, value] of values.entries()) {
              area.setItem(`construct-messages / ${kind} ${id ?? index}`, value);
            }
          }
          history.replaceState({ draft: { query: 1 } }, "");
        }, values);
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await run("ASK { ?s ?p ?o }");
        await page.click("#to-library");
        return [(await listed(page, "saved-list")).length, (await listed(page, "run-list")).length,
          await page.locator("dialog b, #open-queries b").count()];
        """,
        hostile=HOSTILE,
    )
    assert seen == [1, 2, 0]


async def test_the_oldest_runs_go_where_there_is_no_more_room(page: Browser) -> None:
    """Before anything that was typed or saved does."""
    seen = await page.run(
        STEPS
        + """
        const large = (name) => `ASK { ?${name} ?p "${"x".repeat(900_000)}" }`;
        for (const name of ["a", "b", "c"]) {
          await page.click("#new-query");
          await run(large(name));
        }
        await page.click("#new-query");
        await run("ASK { ?last ?p ?o }");
        const keys = await page.evaluate(() => Object.keys(localStorage).map((key) => key.split(" ")[2]));
        await page.click("#to-library");
        return [keys.filter((kind) => kind === "open").length, (await listed(page, "run-list"))[0]];
        """
    )
    assert seen == [4, "ASK { ?last ?p ?o }"]


async def test_the_room_of_the_editor(page: Browser) -> None:
    """The border moves by keyboard and mouse, the editor can be hidden, and both stay so."""
    seen = await page.run(
        READY
        + """
        await page.setViewportSize({ width: 1280, height: 900 });
        const width = () => page.locator("#ask-column").evaluate((column) => Math.round(column.clientWidth));
        const widths = [await width()];
        await page.focus("#splitter");
        for (let count = 0; count < 5; count += 1) await page.keyboard.press("ArrowRight");
        widths.push(await width());
        const { x, y } = await page.locator("#splitter").boundingBox();
        await page.mouse.move(x + 5, y + 100);
        await page.mouse.down();
        await page.mouse.move(x - 195, y + 100, { steps: 3 });
        await page.mouse.up();
        widths.push(await width());
        await page.click("#fold");
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        const hidden = [await page.locator("#editor").isVisible(), await page.getAttribute("#fold", "aria-expanded")];
        await page.click("#run");
        await page.waitForSelector("#banner:not([hidden])");
        await page.click("#fold");
        const shown = await page.locator("#query").isVisible();
        widths.push(await width());
        return { widths, hidden, shown, now: await page.getAttribute("#splitter", "aria-valuenow") };
        """
    )
    first, wider, narrower, kept = seen["widths"]
    assert 100 < wider - first < 150
    assert 180 < wider - narrower < 220
    assert kept == narrower
    assert (seen["hidden"], seen["shown"]) == ([False, "false"], True)
    assert 30 < int(seen["now"]) < 40

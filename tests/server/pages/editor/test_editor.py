"""The editor in a real browser: completion, edits, long queries, and the form without JavaScript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import Served
from tests.support.pages.asking import TYPED, choose
from tests.support.pages.browser import Browser

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

WRITE = """
const posts = [];
page.on("request", (request) => {
  if (request.method() === "POST") posts.push(new URLSearchParams(request.postData()).get("query"));
});
const write = async (text, more) => {
  await page.fill("#query", text);
  await page.press("#query", "Control+End");
  await page.keyboard.type(more);
};
const offered = async (hasText) => page.locator(".cm-completionLabel", { hasText }).first().waitFor();
"""


@pytest_asyncio.fixture(loop_scope="module")
async def plain(browser: Browser, served: Served) -> AsyncIterator[Browser]:
    """The page of `people` in a browser without JavaScript."""
    await browser.open(f"{served.url}/people/", javaScriptEnabled=False)
    yield browser
    assert await browser.errors() == []


async def test_predicates_are_asked_for_once(page: Browser) -> None:
    """Where one is expected only, within bounds; a prefix that a completion needs is declared with it."""
    await choose(page, "people")
    seen = await page.run(
        TYPED
        + WRITE
        + """
        await write("SELECT * { ?s", " ");
        await page.keyboard.type("?");
        await page.keyboard.type("x");
        const asked = () => posts.filter((text) => text.endsWith("LIMIT 1000"));  // the landing asks, too
        const before = asked().length;
        await write("SELECT * { ?s ", "ex:k");
        await offered("ex:knows");
        await write("SELECT * { ?s ", "ex:n");
        await offered("ex:name");
        await page.waitForTimeout(100);  // what comes at once may have been typed: keys accept nothing then
        await page.keyboard.press("Enter");
        return [before, asked().length, asked()[0], (await typed()).text];
        """
    )
    assert seen[:2] == [0, 1]
    assert "LIMIT 10000" in seen[2]
    assert seen[2].endswith("LIMIT 1000")
    assert seen[3] == "PREFIX ex: <http://example.org/>\nSELECT * { ?s ex:name"


async def test_a_late_completion_belongs_to_its_text(page: Browser) -> None:
    """The endpoint answers after another, shorter text was opened, in which the completion has no place."""
    await choose(page, "people")
    seen = await page.run(
        TYPED
        + WRITE
        + """
        let asked, answer;
        const asking = new Promise((resolve) => { asked = resolve; });
        const answering = new Promise((resolve) => { answer = resolve; });
        await page.route("**/people/sparql", async (route) => {
          if (route.request().postData()?.includes("LIMIT+1000")) { asked(); await answering; }
          await route.continue();
        });
        await write("SELECT * { ?subject ?predicate ?object . ?subject ", "ex:k");
        await asking;
        await page.evaluate(() => { location.hash = "endpoint=people%2Fsparql&query=ASK+%7B%7D"; });
        while ((await typed()).text !== "ASK {}") await page.waitForTimeout(10);
        const answered = page.waitForResponse((response) => response.url().endsWith("/people/sparql"));
        answer();
        // where the page has left the request, Chromium does not always tell that its answer has ended
        await Promise.race([(await answered).finished(), page.waitForTimeout(2000)]);
        await page.waitForTimeout(200);  // the editor waits up to 100 ms to show completions
        await page.unroute("**/people/sparql");
        return [(await typed()).text, await page.locator(".cm-tooltip-autocomplete").count()];
        """
    )
    assert seen == ["ASK {}", 0]


async def test_a_frame_that_is_due_is_drawn_before_another_text(page: Browser) -> None:
    """Completions are placed with each frame, by their position in a text that is longer than the next one."""
    await choose(page, "people")
    seen = await page.run(
        TYPED
        + WRITE
        + """
        await write("SELECT * { ?subject ?predicate ?object . ?subject ", "ex:k");
        await offered("ex:knows");
        await page.evaluate(async () => {
          const real = window.requestAnimationFrame;
          window.due = [];
          window.requestAnimationFrame = (frame) => window.due.push(frame);
          window.frames = () => {
            window.requestAnimationFrame = real;
            window.due.splice(0).forEach((frame) => frame());
          };
          window.dispatchEvent(new Event("resize"));
          await new Promise((done) => setTimeout(done, 100));  // the editor waits for 50 ms
          location.hash = "endpoint=people%2Fsparql&query=ASK+%7B%7D";
        });
        await until("ASK {}");
        const due = await page.evaluate(() => window.due.length);
        await page.evaluate(() => window.frames());
        return [due > 0, (await typed()).text];
        """
    )
    assert seen == [True, "ASK {}"]


async def test_an_endpoint_that_fails_completes_nothing(
    page: Browser, upstream: FaultServer
) -> None:
    upstream.play(response(b"no", "text/plain", status="500 No"))
    await choose(page, "remote")
    seen = await page.run(
        WRITE
        + """
        const answered = page.waitForResponse((answer) => answer.request().method() === "POST");
        await write("SELECT * { ?s ", "kn");
        await answered;
        await write("SELECT * { ?s ", "no");
        const asked = posts.filter((text) => text.endsWith("LIMIT 1000"));  // the landing asks, too
        return [asked.length, await page.locator("#banner").isVisible(), await page.textContent("#announcement")];
        """
    )
    assert seen == [1, False, ""]


async def test_edits(page: Browser) -> None:
    """Comments, formatting, undo and brackets; Tab leaves the editor."""
    seen = await page.run(
        TYPED
        + """
        const text = async () => (await typed()).text;
        await page.fill("#query", "select * where { ?s ?p ?o . optional { ?o a ?c } }");
        await page.press("#query", "Control+/");
        const commented = await text();
        await page.keyboard.press("Control+/");
        await page.click("#format-query");
        const formatted = await text();
        await page.keyboard.press("Control+z");
        const undone = await text();
        await page.keyboard.press("Tab");
        return [commented, formatted, undone, await page.evaluate(() => document.activeElement.id)];
        """
    )
    written = "select * where { ?s ?p ?o . optional { ?o a ?c } }"
    formatted = "SELECT * WHERE {\n  ?s ?p ?o .\n  OPTIONAL { ?o a ?c }\n}\n"
    assert seen == [f"# {written}", formatted, written, "run"]


async def test_two_thousand_lines_do_not_freeze_it(page: Browser) -> None:
    """Half of the keys are answered within a tenth of a second, on a machine that does other work as well."""
    lines = "\n".join(
        f'  ?s <http://example.org/{number}> "value {number}"@en ; ex:p{number} ?o{number} .'
        for number in range(2000)
    )
    seen = await page.run(
        TYPED
        + """
        await page.fill("#query", given.query);
        await page.press("#query", "Control+End");
        const taken = await page.evaluate(async () => {
          const { EditorView } = await import(document.querySelector("link[rel=modulepreload]").href);
          const view = EditorView.findFromDOM(document.getElementById("editor"));
          const taken = [];
          for (let number = 0; number < 20; number += 1) {
            const begun = performance.now();
            view.dispatch(view.state.replaceSelection("x"));
            taken.push(performance.now() - begun);
            await new Promise((done) => requestAnimationFrame(done));
          }
          return taken.sort((one, other) => one - other)[10];
        });
        return [(await typed()).text.length, taken];
        """,
        query=f"SELECT * {{\n{lines}\n}}",
    )
    assert seen[0] == len(f"SELECT * {{\n{lines}\n}}") + 20
    assert seen[1] < 100


async def test_the_whole_page_is_small(browser: Browser, served: Served) -> None:
    """As it is sent: 350 kB at most."""
    await browser.open(f"{served.url}/people/")
    sizes = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        return page.evaluate(() => performance.getEntriesByType("resource").map((each) => each.encodedBodySize));
        """
    )
    assert len(sizes) > 10
    assert sum(sizes) < 350_000


async def test_what_is_typed_before_the_editor_came_is_kept(
    browser: Browser, served: Served
) -> None:
    await browser.open("about:blank")
    seen = await browser.run(
        TYPED
        + """
        const come = new Promise((go) => { state.go = go; });
        await page.route("**/codemirror.js", async (route) => { await come; await route.continue(); });
        await page.goto(given.url, { waitUntil: "commit" });
        await page.fill("textarea#query", "ASK { ?early ?p ?o }");
        await page.focus("textarea#query");
        state.go();
        await page.waitForSelector("html[data-ready]");
        await page.keyboard.type("x");
        return [(await typed()).text, await page.evaluate(() => document.activeElement.id)];
        """,
        url=f"{served.url}/people/",
    )
    assert seen == ["ASK { ?early ?p ?o }x", "query"]


async def test_the_form_works_without_javascript(plain: Browser, tmp_path: Path) -> None:
    place = tmp_path / "answer"
    await plain.run(
        """
        await page.fill("#query", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }");
        const saved = page.waitForEvent("download");
        await page.click("#messages-of");
        await (await saved).saveAs(given.place);
        """,
        place=str(place),
    )
    assert place.read_bytes().count(b"# @message") == 3

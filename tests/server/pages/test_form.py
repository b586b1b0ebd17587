"""What the form holds and what the results answer, in a real browser: told apart, and what is typed kept."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.support.http.fault_server import HOLD, FaultServer, response
from tests.support.http.serving import Served
from tests.support.pages.asking import (
    BANNER,
    ENDED,
    EVERYTHING,
    FRAMES,
    RUN,
    TYPED,
    ask,
    choose,
    shown,
    solutions,
)
from tests.support.pages.browser import Browser

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

MARKED = ".cm-lintRange-error, .cm-lintPoint-error"
READY = 'await page.waitForSelector("html[data-ready]");'
HELD = f'{TYPED}const differs = () => page.locator("#asked").isVisible();\n'
GRAPH = """
const posted = page.waitForRequest((request) => request.method() === "POST");
await page.click("#tab-graph");
const request = await posted;
await page.waitForSelector("#other-view .note");
const asked = [request.url(), new URLSearchParams(request.postData()).get("query")];
"""


# --- what the results answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        'await page.selectOption("#endpoint", "many/sparql");',
        'await page.fill("#query", "CONSTRUCT WHERE { ?s ?p 1 }");',
        "await page.evaluate(() => { location.hash = 'endpoint=many%2Fsparql&query=ASK+%7B%7D'; });"
        'await until("ASK {}");',
    ],
    ids=["another endpoint", "another query", "another link"],
)
async def test_one_graph_is_of_what_was_asked(page: Browser, served: Served, change: str) -> None:
    await ask(page, "people")
    seen = await page.run(
        HELD
        + "const before = await differs();"
        + change
        + "const after = await differs();"
        + GRAPH
        + 'await page.waitForSelector("#other-view .message");'
        + """
        const graph = await page.textContent("#other-view .note");
        await page.click("#bring-back");
        return { differ: [before, after, await differs()], asked, graph, held: await held() };
        """
    )
    assert seen == {
        "differ": [False, True, False],
        "asked": [f"{served.url}/people/sparql", EVERYTHING],
        "graph": "3 triples as one graph, as clients without messages get it",
        "held": [EVERYTHING, "people/sparql"],
    }


async def test_one_graph_is_asked_anew_with_each_answer(page: Browser, served: Served) -> None:
    """And that of another answer, which is still under way, takes no place of it."""
    await ask(page, "people")
    await page.run(GRAPH)
    await ask(page, "many", f"{EVERYTHING} LIMIT 7")
    seen = await page.run(
        GRAPH + 'await page.waitForSelector("#other-view .message");return asked;'
    )
    assert seen == [f"{served.url}/many/sparql", f"{EVERYTHING} LIMIT 7"]
    assert (
        await page.run('return page.textContent("#other-view .note")')
        == "7 triples as one graph, as clients without messages get it"
    )


async def test_one_graph_can_be_stopped(page: Browser, upstream: FaultServer) -> None:
    upstream.play(
        response(solutions(3)),
        [HOLD],
        response(b"<urn:s> <urn:p> <urn:o> .\n", "application/n-triples"),
    )
    await ask(page, "remote")
    said = await page.run(
        """
        await page.click("#tab-graph");
        const running = await page.textContent("#other-view .busy");
        await page.click("#other-view button");
        const stopped = await page.textContent("#other-view .banner");
        await page.click("#tab-graph");
        await page.waitForSelector("#other-view .message");
        return [running, stopped, await page.textContent("#other-view .note")];
        """
    )
    upstream.go_on.set()
    assert said[0].startswith("The query runs again, without messages: 0 triples in ")
    assert said[1:] == [
        "Stopped: the answer is not complete.",
        "1 triple as one graph, as clients without messages get it",
    ]


async def test_a_download_says_nothing_of_the_results(page: Browser, upstream: FaultServer) -> None:
    upstream.play(response(b"no", "text/plain", status="500 No"))
    await ask(page, "people")
    await choose(page, "remote")
    seen = await page.run(
        """
        await page.click("#download");
        await page.waitForSelector("#download-state.bad");
        return [await page.textContent("#banner"), await page.textContent("#download-state")];
        """
    )
    assert seen[0] == "Complete: 3 messages."
    assert seen[1].startswith("Refused (50")


async def test_an_error_is_not_marked_in_another_query(page: Browser) -> None:
    """The query was edited after it was run, and before the error came."""
    await page.run(
        """
        const gone = new Promise((go) => { state.go = go; });
        await page.route("**/remote/sparql", async (route) => {
          await gone;
          await route.fulfill({
            status: 400, contentType: "application/problem+json",
            body: JSON.stringify({ title: "Bad Request", status: 400, detail: "wrong", line: 1, column: 8 }),
          });
        });
        """
    )
    await choose(page, "remote")
    mark = """
        const marked = await page.locator(".cm-lintRange-error").allTextContents();
        await page.unroute("**/remote/sparql");
        return [await page.textContent("#query-error"), marked];
    """
    edit = 'await page.fill("#query", "SELECT * { ?s ?p ?o }"); state.go();' + ENDED + FRAMES + mark
    assert await page.run(RUN + edit, query="SELECT nope { ?s ?p ?o }") == [
        "Line 1, column 8: wrong.",
        [],
    ]


@pytest.mark.parametrize(
    ("query", "at", "token"),
    [
        ("SELECT *\r\n{ ?s '\U0001f600' nope:x }", "nope:x", "nope:x"),
        ("SELECT * {\n  ?s ?p\n}", "\n}", ""),
        ("SELECT * { ?s ?p", "", ""),
        (f"SELECT * {{ VALUES ?s {{ {'1 ' * 30_000}}} ?s nope:x ?o }}", "nope:x", "nope:x"),
    ],
    ids=["behind CR LF and an astral character", "the end of a line", "the end", "in a long query"],
)
async def test_an_error_is_marked_at_its_place(
    page: Browser, query: str, at: str, token: str
) -> None:
    """By the problem document that the server sends; the browser makes LF of CR LF before it sends the query."""
    sent = query.replace("\r\n", "\n")
    before = sent[: sent.rindex(at) if at else len(sent)].split("\n")
    await page.run(
        """
        await page.route("**/people/sparql", (route) => route.fulfill({
          status: 400, contentType: "application/problem+json; charset=utf-8",
          body: JSON.stringify({ title: "Bad Request", status: 400, detail: "wrong", ...given.place }),
        }));
        """,
        place={"line": len(before), "column": len(before[-1]) + 1},
    )
    await choose(page, "people")
    seen = await page.run(
        TYPED
        + RUN
        + """
        await page.waitForSelector(given.marked, { state: "attached" });
        await page.unroute("**/people/sparql");
        const { text, cursor } = await typed();
        return { before: text.slice(0, cursor), marked: await page.textContent(given.marked) };
        """,
        marked=MARKED,
        query=query,
    )
    assert seen == {"before": "\n".join(before), "marked": token}


# --- what was typed --------------------------------------------------------------------------------------------------


async def test_what_is_typed_is_there_after_reload_and_back(page: Browser, served: Served) -> None:
    """And so is the answer of what was run in this entry of the history, which is asked for again."""
    await ask(page, "people")
    typed = [f"{EVERYTHING} # typed \U0001f600", "many/sparql"]
    await choose(page, "many")
    after = await page.run(
        HELD
        + """
        await page.fill("#query", given.typed);
        await page.locator("#query").blur();
        await page.reload();"""
        + READY
        + """
        const reloaded = await held();
        await page.fill("#query", given.typed + " more");
        await page.locator("#query").blur();
        await page.goto(given.elsewhere);
        await page.goBack();"""
        + READY
        + """
        const url = await page.evaluate(() => location.href);"""
        + ENDED
        + shown(3)
        + """
        return [reloaded, await held(), await page.textContent("#banner"), await differs(), url];
        """,
        typed=typed[0],
        elsewhere=f"{served.url}/-/static/page.css",
    )
    ran = urlencode({"endpoint": "people/sparql", "query": EVERYTHING}).replace("%2A", "*")
    held = [f"{typed[0]} more", typed[1]]
    assert after == [typed, held, "Complete: 3 messages.", True, f"{served.url}/#{ran}"]


async def test_what_is_typed_is_there_after_a_link(page: Browser, served: Served) -> None:
    """A link to another query opens that one; Back brings the typed one, and Forward the other."""
    shared = f"{served.url}/#{urlencode({'endpoint': 'many/sparql', 'query': 'ASK {}'})}"
    seen = await page.run(
        HELD
        + """
        await page.selectOption("#endpoint", "people/sparql");
        await page.fill("#query", "SELECT * {} # typed");
        await page.locator("#query").blur();
        await page.evaluate((url) => { location.href = url; }, given.shared);
        await until("ASK {}");
        const there = await held();
        await page.goBack();
        await until("SELECT * {} # typed");
        const back = await held();
        await page.goForward();
        await until("ASK {}");
        return [there, back];
        """,
        shared=shared,
    )
    assert seen == [["ASK {}", "many/sparql"], ["SELECT * {} # typed", "people/sparql"]]


async def test_what_is_kept_soon_is_of_the_entry_that_is_shown(
    page: Browser, served: Served
) -> None:
    """A link sets the form, which is kept soon: on the way back that takes no place of what was typed there."""
    seen = await page.run(
        HELD
        + """
        await page.fill("#query", "SELECT * {} # typed");
        await page.locator("#query").blur();
        const back = await page.evaluate(async (url) => {
          const gone = () => new Promise((done) => addEventListener("hashchange", done, { once: true }));
          location.href = url;
          await gone();
          // between the change of the entry and the event of the change of the fragment, as a timer may come there
          addEventListener("popstate", () => dispatchEvent(new Event("pagehide")));
          history.back();
          await gone();
          return history.state.draft.query;
        }, given.shared);
        return [back, (await held())[0]];
        """,
        shared=f"{served.url}/#{urlencode({'query': 'ASK {}'})}",
    )
    assert seen == ["SELECT * {} # typed"] * 2


async def test_a_query_that_no_url_holds_is_run_and_kept(page: Browser) -> None:
    query = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }} # {'é' * 300_000}"
    assert (await ask(page, "people", query))["text"] == "Complete: 3 messages."
    kept = await page.run("await page.reload();" + READY + TYPED + "return (await typed()).text;")
    assert kept == query


# --- what a query can be answered in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "groups", "file", "copies"),
    [
        (
            EVERYTHING,
            ["messages", "messages, other versions", "one graph"],
            "messages.nq",
            ["curl", "python", "command", "javascript", "spark", "link"],
        ),
        ("PREFIX a: <urn:a>\nDESCRIBE <urn:a>", ["one graph"], "graph.ttl", ["curl", "link"]),
        (
            "# CONSTRUCT\nBASE <urn:b> SELECT * { ?s ?p ?o }",
            ["solutions"],
            "results.json",
            ["curl", "link"],
        ),
        ("ASK {}", ["solutions"], "results.json", ["curl", "link"]),
    ],
    ids=["CONSTRUCT", "DESCRIBE", "SELECT", "ASK"],
)
async def test_the_formats_are_those_of_the_query(
    page: Browser, query: str, groups: list[str], file: str, copies: list[str]
) -> None:
    """What is chosen without a choice can be downloaded, and what is copied asks for the same."""
    await choose(page, "people")
    seen = await page.run(
        """
        await page.fill("#query", given.query);
        const saved = page.waitForEvent("download");
        await page.click("#download");
        const download = await saved;
        await page.waitForSelector("#download-state:not(.bad):has-text('is downloaded')");
        const shown = [];
        for (const kind of ["curl", "python", "command", "javascript", "spark", "link"]) {
          if (await page.locator(`#copy-${kind}`).isVisible()) shown.push(kind);
        }
        await page.click("#copy-curl");
        const text = await page.inputValue("#text-dialog-text");
        await page.click("#text-dialog-close");
        return {
          groups: await page.locator("#format optgroup:not([disabled])").evaluateAll((all) => all.map((g) => g.label)),
          file: download.suggestedFilename(), shown, accepts: text.includes(await page.inputValue("#format")),
        };
        """,
        query=query,
    )
    assert seen == {"groups": groups, "file": file, "shown": copies, "accepts": True}


async def test_a_download_can_be_cancelled(page: Browser, upstream: FaultServer) -> None:
    upstream.play([HOLD])
    await choose(page, "remote")
    said = await page.run(
        """
        const told = () => page.textContent("#download-state");
        await page.click("#download");
        await page.waitForSelector("#download:text-is('Cancel download')");
        const running = await told();
        await page.click("#download");
        await page.waitForSelector("#download:text-is('Download')");
        return [running, await told()];
        """
    )
    upstream.go_on.set()
    assert said[0].startswith("The query runs: ")
    assert said[1] == "The download was cancelled: nothing is saved."


# --- while a query runs ----------------------------------------------------------------------------------------------


async def test_a_query_is_seen_to_run_before_the_first_byte(
    page: Browser, upstream: FaultServer
) -> None:
    upstream.play([HOLD, response(solutions(3))])
    await choose(page, "remote")
    said = await page.run(
        RUN
        + """
        await page.waitForSelector("#progress:not([hidden])");
        const first = await page.textContent("#progress");
        await page.waitForFunction((text) => document.getElementById("progress").textContent !== text, first);
        return [first, await page.textContent("#progress"), await page.getAttribute("#results", "aria-busy")];
        """,
        query=EVERYTHING,
    )
    assert said[0].startswith("The query runs at /remote/sparql: no answer yet, after ")
    assert said[1].startswith("The query runs at /remote/sparql: no answer yet, after ")
    assert said[2] == "true"
    upstream.go_on.set()
    assert (await page.run(ENDED + BANNER))["text"] == "Complete: 3 messages."
    assert await page.run('return page.locator("#progress").isHidden()') is True


async def test_prefixes_are_declared_before_a_long_query(page: Browser) -> None:
    """As one edit, which can be undone."""
    lines = "\n".join(f"  ?s ex:p{number} 'value {number}' ." for number in range(800))
    query = f"CONSTRUCT {{ ?s ex:p 1 }}\nWHERE {{\n{lines}\n}}"
    await choose(page, "people")
    seen = await page.run(
        TYPED
        + """
        await page.fill("#query", given.query);
        await page.click("#add-prefixes");
        const declared = (await typed()).text;
        await page.keyboard.press("Control+z");
        return [declared, (await typed()).text];
        """,
        query=query,
    )
    assert seen == [f"PREFIX ex: <http://example.org/>\n{query}", query]

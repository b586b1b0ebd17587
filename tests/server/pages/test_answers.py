"""The query section in a real browser: answers that are no log, what can be taken away, and the editor."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from construct_messages.rdf.formats import LOGS, content_type
from tests.support.http.fault_server import HOLD, FaultServer, response
from tests.support.http.serving import Served
from tests.support.pages.asking import (
    BANNER,
    ENDED,
    EVERYTHING,
    RUN,
    TYPED,
    ask,
    choose,
    packed,
    packed_solutions,
    shown,
    solutions,
)
from tests.support.pages.browser import Browser

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]


async def log_of(served: Served, endpoint: str, query: str, accept: str) -> bytes:
    """The log as any client gets it."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{served.url}/{endpoint}/sparql", data={"query": query}, headers={"Accept": accept}
        ) as answer,
    ):
        assert answer.status == 200
        return await answer.read()


# --- what is no log --------------------------------------------------------------------------------------------------


async def test_select_and_ask(page: Browser) -> None:
    select = "SELECT ?s ?o ?none { ?s ?p ?o } ORDER BY ?s"
    seen = await page.run(
        'await page.selectOption("#endpoint", "people/sparql");'
        + RUN
        + ENDED
        + 'return page.locator("tr").allInnerTexts();',
        query=select,
    )
    assert [row.split() for row in seen] == [
        ["?s", "?o", "?none"],
        ["ex:a", "ex:b"],
        ["ex:b", "Bea", "en"],
        ["ex:c", "7"],
    ]
    asked = (
        RUN
        + 'await page.waitForSelector("#other-view .good"); return page.textContent("#other-view");'
    )
    assert await page.run(asked, query="ASK {}") == "yes (true)"


EX = "PREFIX ex: <http://example.org/> "
NOTHING = "The data have no solutions of the query. "
CAUSES = {
    "a misspelt variable": (
        "CONSTRUCT { ?s ex:q ?oo, ?t, ?o } WHERE { ?s ex:knows ?o }",
        "No solution binds ?oo and ?t of the template, so its triples are left out.",
    ),
    "a misspelt property": (
        "PREFIX x: <http://www.w3.org/2001/XMLSchema#> CONSTRUCT { ?s ex:nothing ?o } "
        'WHERE { ?s ex:nmae ?o FILTER(?o > "1"^^x:int || x:integer(?o) > 1) }',
        f"{NOTHING}ex:nmae (http://example.org/nmae) occurs nowhere in the data.",
    ),
    "a class and a namespace": (
        "PREFIX o: <http://other.example/> CONSTRUCT WHERE { ?s a <http://example.org/Person> ; o:p ?o }",
        f"{NOTHING}<http://example.org/Person> and o:p (http://other.example/p) occur nowhere in the data.",
    ),
    "a combination": (
        "CONSTRUCT { ?s ?p ?o } WHERE { ex:a ex:age ?o ; ?p ?s }",
        f"{NOTHING}Each IRI of its pattern occurs there, but not as the pattern and its filters have them together.",
    ),
    "no IRI": ("CONSTRUCT WHERE { ?s ?p 8 }", NOTHING.strip()),
    "subjects that are literals": (
        "CONSTRUCT { ?o ex:of ?s } WHERE { ?s ex:name ?o }",
        "Each triple of the template has an unbound variable, or a term that may not stand there.",
    ),
    "a table": (
        f"{EX}SELECT * {{ ?s ex:nmae ?o }}",
        f"{NOTHING}ex:nmae (http://example.org/nmae) occurs nowhere in the data.",
    ),
    "a graph": (
        f"{EX}SELECT * {{ GRAPH ex:g {{ ?s ?p ?o }} }}",
        f"{NOTHING}ex:g (http://example.org/g) occurs nowhere in the data.",
    ),
}


@pytest.mark.parametrize("case", CAUSES)
async def test_an_empty_answer_has_its_likely_cause(page: Browser, case: str) -> None:
    query, cause = CAUSES[case]
    assert (await ask(page, "people", query))["kind"] == "banner warn"
    await page.run(
        "await page.waitForFunction((cause) => document.getElementById('cause').textContent === cause, given.cause);",
        cause=cause,
    )


@pytest.mark.parametrize(
    "query",
    [EVERYTHING, f"{EVERYTHING} LIMIT 0", f"{EX}ASK {{ ?s ex:nmae ?o }}", "SELECT * { ?s ?p 7 }"],
)
async def test_other_answers_have_none(page: Browser, query: str) -> None:
    await ask(page, "people", f"{EX}SELECT * {{ ?s ex:nmae ?o }}")
    assert (await ask(page, "people", query))["kind"] == "banner good"
    assert await page.run('return page.locator("#cause").isHidden()') is True


async def test_a_table_of_many_rows_grows_on_demand(page: Browser) -> None:
    await choose(page, "many")
    rows = await page.run(
        RUN
        + ENDED
        + """
        const before = await page.locator("tbody tr").count();
        await page.click(".data-table > button");
        return [before, await page.locator("tbody tr").count(), await page.textContent("#banner"),
          await page.textContent("#other-view .note")];
        """,
        query="SELECT * { ?s ?p ?o }",
    )
    assert rows == [200, 400, "Complete: 10,000 solutions.", ""]  # the number is said once


async def test_a_cut_table_is_never_shown_as_complete(page: Browser, upstream: FaultServer) -> None:
    whole = response(solutions(200), framing="chunked")
    upstream.play([whole[: whole.index(b"value 150")], HOLD])
    await choose(page, "remote")
    seen = 'return page.locator("tbody tr").count();'
    before = await page.run(
        RUN + 'await page.waitForSelector("tbody tr");' + seen, query="SELECT * { ?s ?p ?o }"
    )
    upstream.go_on.set()
    banner = await page.run(ENDED + BANNER)
    assert banner["kind"] == "banner bad"
    assert banner["text"].startswith(
        "The answer was cut: the connection ended within it. It is not complete. "
    )
    after = await page.run(seen)
    assert before <= after < 200
    assert banner["text"].endswith(f"Only its beginning is below: {after} solutions.")
    assert (
        await page.run('return page.textContent("#announcement")') == "The first solution is here."
    )


async def test_solutions_are_seen_before_the_next_ones_come(
    page: Browser, upstream: FaultServer
) -> None:
    whole = response(solutions(20), framing="close")
    half = whole.index(b"value 10")
    upstream.play([whole[:half], HOLD, whole[half:]])
    await choose(page, "remote")
    shown = 'return page.locator("tbody tr").count();'
    nine = 'await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 9);'
    assert await page.run(RUN + nine + shown, query="SELECT * { ?s ?p ?o }") == 9
    assert await page.run('return page.locator("#banner").isHidden()') is True
    upstream.go_on.set()
    assert await page.run(ENDED + BANNER) == {
        "kind": "banner good",
        "text": "Complete: 20 solutions.",
    }
    assert await page.run(shown) == 20


async def test_a_select_beyond_the_longest_string_is_complete(
    page: Browser, upstream: FaultServer
) -> None:
    """540 MB, as no string of Chromium holds: packed, so that they are not sent through sockets."""
    upstream.play(
        response(
            packed_solutions(540, 1_000_000), headers={"Content-Encoding": "gzip"}, framing="length"
        )
    )
    banner = await ask(page, "remote", "SELECT * { ?s ?p ?o }")
    assert banner == {"kind": "banner good", "text": "Complete: 540 solutions."}
    note, rows, size = await page.run(
        """
        return [await page.textContent("#other-view .note"), await page.locator("tbody tr").count(),
          await page.textContent("#figure-bytes")];
        """
    )
    assert note == "540 solutions; the first 67 are kept here, and Download saves all"
    assert rows == 67
    assert int(size.split()[0].replace(",", "")) > 540_000_000


@pytest.mark.parametrize(
    ("content_type", "query", "expected"),
    [
        ("text/csv", "SELECT * { ?s ?p ?o }", "Complete: 536,870,912 bytes."),
        ("application/n-triples", "DESCRIBE <urn:s>", "Nothing matched: 0 triples."),
    ],
)
async def test_other_answers_beyond_the_longest_string(
    page: Browser, upstream: FaultServer, content_type: str, query: str, expected: str
) -> None:
    line = b"# %s\n" % (b"x" * ((1 << 20) - 3))
    body = packed([line] * 512)
    upstream.play(
        response(body, content_type, headers={"Content-Encoding": "gzip"}, framing="length")
    )
    assert (await ask(page, "remote", query))["text"] == expected


async def test_the_same_as_one_graph(page: Browser) -> None:
    query = "PREFIX ex: <http://example.org/> CONSTRUCT { ?s a ex:Thing . ex:all ex:has ex:one } WHERE { ?s ?p ?o }"
    await ask(page, "people", query)
    seen = await page.run(
        """
        await page.click("#tab-graph");
        await page.waitForSelector("#other-view .message");
        const graph = await page.innerText("#other-view");
        await page.click("#tab-messages");
        """
        + shown(3)
        + """
        return [graph, await page.locator(".card").count(), await page.locator("#other-view").isHidden()];
        """
    )
    note, *lines = seen[0].splitlines()
    words = [
        "ex:a",
        "a",
        "ex:Thing",
        "ex:b",
        "a",
        "ex:Thing",
        "ex:c",
        "a",
        "ex:Thing",
        "ex:all",
        "ex:has",
        "ex:one",
    ]
    assert note == "4 triples as one graph, as clients without messages get it"
    assert sorted(" ".join(lines).split()) == sorted(words)
    assert seen[1:] == [3, True]


# --- taking it away --------------------------------------------------------------------------------------------------


async def test_downloads_are_what_the_server_gives(
    page: Browser, served: Served, tmp_path: Path
) -> None:
    """Byte for byte, in every format of logs, and every syntax of the first."""
    types = [content_type(*type) for type in LOGS]
    firsts = {type.format.name: number for number, type in reversed(list(enumerate(LOGS)))}
    chosen = {
        *firsts.values(),
        *(number for number, type in enumerate(LOGS) if type.format == LOGS[0].format),
    }
    assert await page.run(
        'return page.locator("#format optgroup[label^=messages] option").evaluateAll('
        "(all) => all.map((each) => each.value).sort())"
    ) == sorted(types)
    await choose(page, "people")
    for number in sorted(chosen):
        type = types[number]
        name = await page.run(
            """
            await page.fill("#query", given.query);
            await page.selectOption("#format", given.type);
            const failed = page.waitForSelector("#download-state.bad").then((banner) => banner.textContent());
            failed.catch(() => {});  // the page is closed without one
            const saved = page.waitForEvent("download");
            await page.press("#download", "Enter");
            const download = await Promise.race([saved, failed]);
            if (typeof download === "string") throw new Error(download);
            await download.saveAs(given.path);
            return download.suggestedFilename();
            """,
            query=EVERYTHING,
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
        await page.waitForSelector("#download-state.bad");
        await page.waitForSelector("#download:text-is('Download')");
        return [await page.textContent("#download-state"), saved];
        """,
        query=EVERYTHING,
    )
    assert text == ["The answer was cut or failed: nothing is saved.", 0]


async def test_the_fragment_shares_query_and_endpoint(page: Browser, served: Served) -> None:
    await ask(page, "people")
    shared = await page.run("return page.evaluate(() => location.href)")
    assert (
        shared
        == f"{served.url}/#{urlencode({'endpoint': 'people/sparql', 'query': EVERYTHING}).replace('%2A', '*')}"
    )
    await page.open(shared)
    seen = await page.run(
        TYPED
        + """
        await page.waitForSelector("html[data-ready]");
        return [...await held(), await page.locator(".card").count()];
        """
    )
    assert seen == [EVERYTHING, "people/sparql", 0]  # what somebody else wrote is not run unasked


@pytest.mark.parametrize(
    ("path", "endpoint"), [("/many/", "many/sparql"), ("/many/sparql", "many/sparql")]
)
async def test_the_endpoint_is_that_of_the_address(
    page: Browser, served: Served, path: str, endpoint: str
) -> None:
    await page.open(served.url + path)
    value = await page.run(
        'await page.waitForSelector("html[data-ready]"); return page.inputValue("#endpoint");'
    )
    assert value == endpoint


# --- the editor ------------------------------------------------------------------------------------------------------


async def test_the_editor_paints_what_is_typed(page: Browser) -> None:
    await choose(page, "people")
    seen = await page.run(
        TYPED
        + """
        await page.fill("#query", "CONSTRUCT { ?s ex:p 'a' } # x\\nWHERE { ?s ex:q <urn:x> }");
        await page.press("#query", "Control+End");
        await page.waitForSelector(".cm-matchingBracket");
        await page.click("#add-prefixes");
        await page.waitForSelector(".cm-lineNumbers :text('3')");
        return {
          text: (await typed()).text, painted: (await page.locator(".cm-line").allTextContents()).join("\\n"),
          kinds: await page.locator(".cm-line span").evaluateAll((all) => all.map((each) => each.className)),
          hidden: await page.locator("#add-prefixes").isHidden(),
        };
        """
    )
    assert seen["text"] == (
        "PREFIX ex: <http://example.org/>\nCONSTRUCT { ?s ex:p 'a' } # x\nWHERE { ?s ex:q <urn:x> }"
    )
    assert seen["painted"] == seen["text"]
    kinds = {
        "token-keyword",
        "token-variable",
        "token-name",
        "token-string",
        "token-comment",
        "token-iri",
    }
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
            await page.waitForSelector("#banner:not([hidden]), #other-view:not([hidden])");
            return page.locator("#banner.bad").isVisible();
            """,
            number=number,
        )
        assert failed is False


async def test_an_example_can_be_undone(page: Browser) -> None:
    kept = await page.run(
        TYPED
        + """
        await page.fill("#query", "ASK { ?mine ?p ?o }");
        await page.selectOption("#examples", "1");
        const example = (await typed()).text;
        await page.keyboard.press("Control+z");
        return [example.includes("CONSTRUCT"), (await typed()).text];
        """
    )
    assert kept == [True, "ASK { ?mine ?p ?o }"]


async def test_everything_is_reached_by_keyboard(page: Browser) -> None:
    await ask(page, "people")
    reached = await page.run(
        """
        await page.evaluate(() => document.activeElement.blur());
        const reached = new Set();
        for (let number = 0; number < 60; number += 1) {
          await page.keyboard.press("Tab");  // which leaves the editor, too
          reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
        }
        return [...reached];
        """
    )
    wanted = {
        *(
            "skip",
            "endpoint",
            "examples",
            "query",
            "run",
            "format",
            "download",
            "copy-curl",
            "copy-link",
        ),
        *("tab-messages", "tab-graph", "filter", "jump", "quiet", "iri"),
    }
    assert wanted <= set(reached)

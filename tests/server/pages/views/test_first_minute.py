"""The first minute with any data and on any screen: examples that fit, results in view, and why nothing matched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings
from tests.support.http.serving import UNHURRIED, Served, serving
from tests.support.pages.asking import BANNER, ENDED, RUN, choose, shown
from tests.support.pages.browser import Browser
from tests.support.pages.stores import store_of
from tests.support.places import ROOT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

DATA: Final = {
    "companies": (ROOT / "queries" / "data" / "companies.ttl").read_text(encoding="utf-8"),
    # no classes, no labels that are known, nothing in English
    "trains": """
        PREFIX ex: <http://example.org/vocabulary/> PREFIX t: <http://data.example.org/trains/>
        PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX gsp: <http://www.opengis.net/ont/geosparql#>
        t:1 ex:trainName "Oostende – Eupen" ; ex:departs "2024-05-01T10:00:00Z"^^xsd:dateTime ; ex:stopsAt t:a , t:b .
        t:2 ex:trainName "Antwerpen – Charleroi" ; ex:departs "2024-05-01T11:00:00Z"^^xsd:dateTime ; ex:stopsAt t:b .
        t:a ex:position "POINT(2.9 51.2)"^^gsp:wktLiteral . t:b ex:position "POINT(6.0 50.6)"^^gsp:wktLiteral .
    """,
    "graphs": """
        PREFIX ex: <http://example.org/vocabulary/>
        ex:g { ex:a ex:knows ex:b ; ex:name "A" . ex:b ex:name "B" } ex:h { ex:c ex:knows ex:a }
    """,
    "literals": 'PREFIX x: <urn:x:> x:a x:p "1" . x:b x:p "2" .',
}
NAMES: Final = {
    "trains": {
        "Things with their name",
        "Geometries on a map",
        "Dates on a line",
        "Links between things",
    },
    "graphs": {"Things with their name", "Links between things"},
    "literals": set(),
}
"""The examples that need more than triples."""
LONG: Final = f"http://long.example/{'path/' * 30}end"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    stores = {name: store_of(tmp_path_factory.mktemp(name), data) for name, data in DATA.items()}
    endpoints = {
        name: EndpointSettings(source=(str(store),), limits=UNHURRIED)
        for name, store in stores.items()
    }
    async with serving(endpoints=endpoints) as server:
        yield server


SCREENS: Final = {"phone": (390, 844), "tablet": (1024, 768), "desktop": (1440, 900)}


@pytest.mark.parametrize("screen", SCREENS)
async def test_results_come_into_view(browser: Browser, served: Served, screen: str) -> None:
    """The banner and the first card are in the upper half after a click, and nothing of the query is out of sight."""
    width, height = SCREENS[screen]
    await browser.open(f"{served.url}/companies/", viewport={"width": width, "height": height})
    condition = " || ".join(f'LANG(?name) = "{code}"' for code in ("en", "nl", "fr", "de", "ja"))
    seen = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.fill("#query", given.query);
        await page.locator("#run").evaluate((run) => run.click());  // the driver's own click would scroll
        """
        + ENDED
        + shown(1)
        + """
        return page.evaluate(() => {
          const top = (selector) => document.querySelector(selector).getBoundingClientRect().top;
          const { scrollWidth, clientWidth } = document.querySelector("#editor .cm-scroller");
          const { height } = document.querySelector("#editor").getBoundingClientRect();
          return { banner: top("#banner"), card: top(".card"), isCut: scrollWidth > clientWidth, height };
        });
        """,
        query=f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o ; ?label ?name FILTER({condition}) }}",
    )
    assert 0 <= seen["banner"] < 120
    assert seen["banner"] < seen["card"] < 300
    assert seen["isCut"] is False
    assert 100 < seen["height"] < 200  # what the text needs
    assert await browser.errors() == []


@pytest.mark.parametrize("endpoint", NAMES)
async def test_every_example_finds_something(
    browser: Browser, served: Served, endpoint: str
) -> None:
    """Also where the endpoint is chosen after the first example of another one was offered."""
    await browser.open(f"{served.url}/")
    seen = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.selectOption("#endpoint", given.path);
        await page.waitForFunction(() => document.querySelectorAll(".comparison .card").length);
        const found = [];
        for (const name of await page.locator(".example").allTextContents()) {
          if (!found.length) await page.click("#run");  // which is of the first one
          else {
            await page.selectOption("#examples", { label: name });
            await page.click("#run");
          }
          await page.waitForSelector("#results:not([aria-busy])");
          found.push([name, await page.getAttribute("#banner", "class"), await page.textContent("#banner")]);
        }
        return found;
        """,
        path=f"{endpoint}/sparql",
    )
    assert {(kind, text[:9]) for _, kind, text in seen} == {("banner good", "Complete:")}
    basic = {
        "Ten things, each with all its properties",
        "Blank nodes of the template",
        "Properties and how often they are used (SELECT)",
        "Whether there is anything (ASK)",
    }
    assert {name for name, *_ in seen} == NAMES[endpoint] | basic
    assert await browser.errors() == []


EMPTY: Final = {
    "named graphs": (
        *("graphs", "CONSTRUCT WHERE { ?s ?p ?o }", "Nothing matched: 0 messages."),
        "The data have no solutions of the query. "
        "Its default graph is empty: GRAPH ?g { … } asks the named graphs.",
    ),
    "all of them": (
        *("trains", "CONSTRUCT { ?s <urn:p> ?l } WHERE { ?s ?p 'x' OPTIONAL { ?s ?p ?l } }"),
        *("Nothing matched: 0 messages.", "The data have no solutions of the query."),
    ),
    "each one": (
        "trains",
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> CONSTRUCT { ?s rdfs:label ?l } "
        "WHERE { ?s ?p ?o OPTIONAL { ?s rdfs:label ?l } }",
        "9 messages, but all of them are empty.",
        "Each triple of the template has an unbound variable, or a term that may not stand there. "
        "rdfs:label (http://www.w3.org/2000/01/rdf-schema#label) occurs nowhere in the data.",
    ),
    "some": (
        "trains",
        "CONSTRUCT { ?s <urn:p> ?l } WHERE { ?s ?p ?o OPTIONAL { ?o ?q ?l } } ORDER BY ?s",
        "Complete: 9 messages, 6 of them empty.",
        "",
    ),
}


@pytest.mark.parametrize("case", EMPTY)
async def test_nothing_is_not_called_complete(browser: Browser, served: Served, case: str) -> None:
    endpoint, query, banner, cause = EMPTY[case]
    await browser.open(f"{served.url}/{endpoint}/")
    seen: Any = await browser.run(
        'await page.waitForSelector("html[data-ready]");' + RUN + ENDED + BANNER, query=query
    )
    assert seen["text"] == banner
    await browser.run(
        "await page.waitForFunction((cause) => document.getElementById('cause').textContent === cause, given.cause);",
        cause=cause,
    )
    assert seen["kind"] == ("banner warn" if cause else "banner good")


async def test_a_long_iri_is_cut_in_a_table(browser: Browser, served: Served) -> None:
    await browser.open(f"{served.url}/")
    await choose(browser, "trains")
    seen = await browser.run(
        RUN
        + ENDED
        + """
        return page.locator("td .iri").first().evaluate((iri) =>
          [iri.title, iri.getBoundingClientRect().width < 400, iri.getBoundingClientRect().height < 30]);
        """,
        query=f"SELECT (<{LONG}> AS ?iri) {{}}",
    )
    assert seen == [LONG, True, True]


async def test_a_reload_asks_again(browser: Browser, served: Served) -> None:
    """What was run here, and not what a link has."""
    await browser.open(f"{served.url}/trains/")
    seen = await browser.run(
        'await page.waitForSelector("html[data-ready]");'
        + RUN
        + ENDED
        + 'await page.reload(); await page.waitForSelector("html[data-ready]");'
        + ENDED
        + """
        const again = await page.textContent("#banner");
        const other = await context.newPage();
        await other.goto(page.url());
        await other.waitForSelector("html[data-ready]");
        const isAsked = await other.locator("#banner").isVisible();
        await other.close();
        return [again, isAsked];
        """,
        query="CONSTRUCT WHERE { ?s <http://example.org/vocabulary/trainName> ?o }",
    )
    assert seen == ["Complete: 2 messages.", False]

"""Screenshots of the page for the documentation; `make screenshots` writes them into docs/images."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings, ExampleSettings
from tests.support.http.serving import Served, serving
from tests.support.pages.asking import ENDED, RUN, shown
from tests.support.pages.browser import Browser
from tests.support.pages.stores import store_of
from tests.support.places import ROOT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def query_of(name: str) -> str:
    """A query of the folder of queries, without its first line, which says what it is for."""
    return (ROOT / "queries" / name).read_text(encoding="utf-8").partition("\n")[2].strip()


EXAMPLES = (
    ExampleSettings(
        name="Companies with their country",
        sentence="One message for each company, with what is known of its country.",
        query=query_of("companies.rq"),
    ),
    ExampleSettings(
        name="Countries with their companies",
        sentence="All companies of a country stay together in one message.",
        query=query_of("companies-by-country.rq"),
        group_by=("country",),
    ),
)
PLACES = """PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX dbr: <http://dbpedia.org/resource/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?city rdfs:label ?name ; geo:lat ?lat ; geo:long ?long ; dbo:foundingDate ?date }
WHERE {
  VALUES (?city ?name ?lat ?long ?date) {
    (dbr:Brussels "Brussels"@en 50.85 4.35 "0979-01-01"^^xsd:date)
    (dbr:Lisbon "Lisbon"@en 38.71 -9.14 "1147-10-25"^^xsd:date)
    (dbr:Tokyo "Tokyo"@en 35.68 139.69 "1457-03-18"^^xsd:date)
    (dbr:Porto "Porto"@en 41.15 -8.61 "1123-01-01"^^xsd:date)
    (dbr:Osaka "Osaka"@en 34.69 135.50 "1496-01-01"^^xsd:date)
    (dbr:Antwerp "Antwerp"@en 51.22 4.40 "1106-01-01"^^xsd:date)
  }
}"""
PREFIXES = {
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dbr": "http://dbpedia.org/resource/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
PICTURE = "await page.click('.card header button');"
VIEWS = {
    "cards": PICTURE,
    "table": "await page.click('#tab-table'); await page.waitForSelector('tbody tr');",
    "text": "await page.click('#tab-log'); await page.waitForSelector('pre.text');",
    "json": "await page.click('#tab-documents'); await page.waitForSelector('pre.text');",
    "graph": "await page.click('#tab-graph'); await page.waitForSelector('#other-view .message');",
    "map": "await page.click('#tab-map'); await page.waitForSelector('svg.map');",
    "timeline": "await page.click('#tab-timeline'); await page.waitForSelector('svg.timeline');",
    "landing": "",
}
SIZES = {"": WIDE, "-phone": PHONE}
LOOKS = [
    (f"page-{view}{size}{'' if scheme == 'light' else '-dark'}", view, scheme, SIZES[size])
    for view in VIEWS
    for size in SIZES
    for scheme in ("light", "dark")
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    data = (ROOT / "queries" / "data" / "companies.ttl").read_text(encoding="utf-8")
    source = (str(store_of(tmp_path_factory.mktemp("store"), data)),)
    endpoints = {"companies": EndpointSettings(source=source, prefixes=PREFIXES, examples=EXAMPLES)}
    async with serving(endpoints=endpoints) as server:
        yield server


def size_of(picture: Path) -> tuple[int, int]:
    """The width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:])  # type: ignore[return-value] # two of them


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "view", "scheme", "size"), LOOKS, ids=[look[0] for look in LOOKS])
async def test_of_a_query(
    *,
    browser: Browser,
    served: Served,
    screenshots: Path,
    name: str,
    view: str,
    scheme: str,
    size: dict[str, int],
) -> None:
    path = screenshots / f"{name}.png"
    await browser.open(f"{served.url}/", colorScheme=scheme, viewport=size)
    ready = 'await page.waitForSelector("html[data-ready]");'
    if view == "landing":
        script = ready + 'await page.waitForSelector(".comparison .card");'
    else:
        below = "await page.locator('#results').evaluate((results) => results.scrollIntoView());"
        narrow = below if size is PHONE else ""
        script = ready + RUN + ENDED + shown(1) + VIEWS[view] + narrow
    await browser.run(
        script
        + """
        await page.evaluate(() => document.activeElement.blur());
        await page.mouse.move(0, 0);
        await page.screenshot({ path: given.path });
        """,
        query=PLACES if view in ("map", "timeline") else EXAMPLES[0].query,
        path=str(path),
    )
    assert size_of(path) == tuple(size.values())
    assert await browser.errors() == []

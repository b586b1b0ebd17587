"""Maps and timelines: geometries and dates as others write them are shown, or named with the reason.

Geometries are from the GeoSPARQL benchmark, the tests of QLever, Jena and Wikibase, Flemish road data, and DBpedia.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, Literal

import pytest
import pytest_asyncio

from tests.support.http.serving import Served, serving
from tests.support.pages.asking import ENDED, RUN
from tests.support.pages.browser import Browser, browsing
from tests.support.pages.modules import Modules
from tests.support.pages.stores import store_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]
in_browsers = pytest.mark.asyncio(loop_scope="module")
in_one = pytest.mark.parametrize("browser", ["chromium"], indirect=True)

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
GEOSPARQL: Final = "http://www.opengis.net/ont/geosparql#"
EPSG: Final = "http://www.opengis.net/def/crs/EPSG/0/"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    return Modules(tmp_path_factory.mktemp("modules"))


# --- geometries ------------------------------------------------------------------------------------------------------

SQUARE: Final = [[7, 47], [8, 47], [8, 48], [7, 48], [7, 47]]
OTHER: Final = [[8, 48], [9, 48], [9, 49], [8, 49], [8, 48]]
GEOMETRIES: Final = {
    # Wikibase
    ("wkt", "Point(4.35 50.85)"): [[[4.35, 50.85]]],
    ("wkt", "<http://www.wikidata.org/entity/Q2> Point(1 2)"): [[[1, 2]]],
    ("wkt", "<http://www.wikidata.org/entity/Q405> Point(23.47 0.67)"): "its reference system, http",
    # QLever
    ("wkt", "<http://www.opengis.net/def/crs/OGC/1.3/CRS84> MULTIPOLYGON(((7 47, 8 47, 8 48, 7 48, 7 47)), "
     "((8 48, 9 48, 9 49, 8 49, 8 48)))"): [SQUARE, OTHER],
    ("wkt", f"<{EPSG}4326> MULTIPOLYGON(((47 7, 47 8, 48 8, 48 7, 47 7)), ((48 8, 48 9, 49 9, 49 8, 48 8)))"):
        [SQUARE, OTHER],
    ("wkt", f"<{EPSG}3857> POINT(779236.435552915 5942074.072431109)"): [[[7, 47]]],
    # the standard of simple features, PostGIS, Virtuoso
    ("wkt", "MULTIPOINT((1 2),(3 4))"): [[[1, 2]], [[3, 4]]],
    ("wkt", "multipoint(1 2,3 4)"): [[[1, 2]], [[3, 4]]],
    ("wkt", "POINT Z (1 2 3)"): [[[1, 2]]],
    ("wkt", "POINTZM(1 2 3 4)"): [[[1, 2]]],
    ("wkt", "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1e1 -10))"): [[[1, 2]], [[0, 0], [10, -10]]],
    ("wkt", "SRID=4326;POINT(1 2)"): [[[1, 2]]],
    ("wkt", "LINESTRING(178 -17, -179 -16)"): [[[178, -17], [181, -16]]],
    ("wkt", "POINT EMPTY"): "it is empty",
    ("wkt", "POINT(500 123)"): "out of range: longitude 500, latitude 123",
    ("wkt", "POLYGON((7 47, 8 47, 8 48, 7 470, 7 47))"): "out of range: longitude 7, latitude 470",
    ("wkt", "POINT(1 2"): "it is not WKT",
    ("wkt", "POINT(1, 2)"): "it is not WKT",
    ("wkt", "somewhere"): "it is not WKT",
    ("wkt", f"<{EPSG}28992> POINT(155000 463000)"): f"reference system, {EPSG}28992",
    # the GeoSPARQL benchmark, Jena, Flemish roads, OGC
    ("gml", '<gml:Polygon xmlns:gml="http://www.opengis.net/ont/gml" '
     'srsName="http://www.opengis.net/def/crs/OGC/1.3/CRS84"><gml:exterior><gml:LinearRing><gml:posList>-83.6 34.1 '
     "-83.2 34.1 -83.2 34.5 -83.6 34.1</gml:posList></gml:LinearRing></gml:exterior></gml:Polygon>"):
        [[[-83.6, 34.1], [-83.2, 34.1], [-83.2, 34.5], [-83.6, 34.1]]],
    ("gml", "<gml:Point srsName='urn:ogc:def:crs:EPSG::27700' xmlns:gml='http://www.opengis.net/ont/gml'>"
     "<gml:coordinates>-83.4,34.4</gml:coordinates></gml:Point>"): "urn:ogc:def:crs:EPSG::27700",
    ("gml", '<gml:Point srsName="http:\\//www.opengis.net/def/crs/EPSG/0/4326"><gml:coordinates>50.93 4.04,50.94 4.05'
     "</gml:coordinates><gml:Point>"): [[[4.04, 50.93], [4.05, 50.94]]],
    ("gml", '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>39.5 -105.0</gml:pos></gml:Point>'):
        [[[-105, 39.5]]],
    ("gml", '<gml:Envelope srsName="urn:ogc:def:crs:EPSG::4326"><gml:lowerCorner>39 -106</gml:lowerCorner>'
     "<gml:upperCorner>40 -105</gml:upperCorner></gml:Envelope>"):
        [[[-106, 39], [-106, 40], [-105, 40], [-105, 39], [-106, 39]]],
    ("kml", '<Point xmlns="http://www.opengis.net/kml/2.2"><coordinates>-83.38,33.95,0</coordinates></Point>'):
        [[[-83.38, 33.95]]],
    ("geoJSON", '{"type": "Polygon", "coordinates": [[[-128, 55], [-128, 56], [-126, 58], [-128, 55]]]}'):
        [[[-128, 55], [-128, 56], [-126, 58], [-128, 55]]],
    ("geoJSON", '{"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]}'): [[[1, 2]], [[3, 4]]],
    ("geoJSON", "POINT(1 2)"): "it is not JSON",
    ("dggs", "<https://w3id.org/dggs/auspix> CELLLIST ((R0))"): "a cell of a grid",
}  # fmt: skip
"""By datatype and text: the parts in longitude and latitude, or what is said of it."""

READ_GEOMETRIES = """
import { geometryOf } from "./geometry.js";
const main = (literals) => literals.map(([datatype, value]) => geometryOf({ datatype, value }));
"""


def test_geometries(modules: Modules) -> None:
    given = [[f"{GEOSPARQL}{kind}Literal", text] for kind, text in GEOMETRIES]
    read = modules.run(READ_GEOMETRIES, given)
    for (case, expected), found in zip(GEOMETRIES.items(), read, strict=True):
        if isinstance(expected, str):
            assert expected in found["problem"], case
            assert found["parts"] == [], case
        else:
            assert found["problem"] is None, (case, found)
            parts = [
                [[round(each, 6) for each in point] for point in part] for part in found["parts"]
            ]
            assert parts == expected, case


# --- dates -----------------------------------------------------------------------------------------------------------

DATES: Final = {
    ("1970-01-02", "date"): (86_400_000, "1970"),
    ("1970-01-01T01:00:00+01:00", "dateTime"): (0, "1970"),
    ("1970-01-01T24:00:00Z", "dateTime"): (86_400_000, "1970"),
    ("1971", "gYear"): (31_536_000_000, "1971"),
    ("2024-02-29", "date"): (1_709_164_800_000, "2024"),
    ("0000", "gYear"): (-62_167_219_200_000, "1 BC"),
    ("-0753-04-21", "date"): (-85_920_048_000_000, "754 BC"),
    ("-66000000-01-01T00:00:00Z", "dateTime"): (-2_082_820_999_219_200_000, "66 million BC"),
    ("-13798000000", "gYear"): (-435_422_885_863_219_200_000, "13.8 billion BC"),
    ("0079-08-24", "date"): (-59_653_843_200_000, "AD 79"),
    ("2024-02-30", "date"): "the calendar does not have it",
    ("2024-13-01", "date"): "the calendar does not have it",
    ("soon", "date"): "it is not written as a date",
    ("12:00:00", "time"): "it has no year",
    ("--05-01", "gMonthDay"): "it has no year",
    ("9" * 20, "gYear"): "its year is too far away",
    ("1970-01-02", "string"): None,
}  # fmt: skip
TICKS: Final = {
    ("-0753-04-21", "0880-01-01"): ["500 BC", "AD 1", "500"],
    ("-66000000", "2024"): ["60 million BC", "40 million BC", "20 million BC", "AD 1"],
    ("-0009-01-01", "0005-01-01"): ["10 BC", "5 BC", "AD 1", "AD 5"],
    ("2024-01-01", "2025-01-01"): ["Jan 2024", "Apr 2024", "Jul 2024", "Oct 2024", "Jan 2025"],
    ("2024-03-01", "2024-03-15"): ["7 Mar 2024", "14 Mar"],
    ("1970-01-01", "1970-01-02"): ["1 Jan 1970 00:00", "06:00", "12:00", "18:00", "2 Jan 00:00"],
}
"""The marks of an axis between two dates."""

READ_DATES = """
import { ticksOf, timeOf, yearText } from "./dates.js";
const main = ({ dates, ticks }) => ({
  dates: dates.map(([value, datatype]) => {
    const found = timeOf({ value, datatype });
    if (found === null || found.problem !== null) return found?.problem ?? null;
    return [found.time, yearText(found.year)];
  }),
  ticks: ticks.map((ends) => {
    const [first, last] = ends.map((value) => timeOf({ value, datatype: value.length > 9 ? TYPES[0] : TYPES[1] }).time);
    const found = ticksOf(first, last, 6);
    const isNext = ({ time }, index) => time >= first && time <= last && (!index || time > found[index - 1].time);
    return [found.every(isNext), found.map(({ text }) => text)];
  }),
});
const TYPES = ["date", "gYear"].map((name) => `http://www.w3.org/2001/XMLSchema#${name}`);
"""


def test_dates_and_marks_of_axes(modules: Modules) -> None:
    read = modules.run(
        READ_DATES,
        {
            "dates": [[value, XSD + name] for value, name in DATES],
            "ticks": [list(each) for each in TICKS],
        },
    )
    found = [tuple(each) if isinstance(each, list) else each for each in read["dates"]]
    assert found == list(DATES.values())
    assert read["ticks"] == [[True, texts] for texts in TICKS.values()]


def test_days_are_those_of_javascript(modules: Modules) -> None:
    """Which counts the same calendar, in a part of these years."""
    script = """import { timeOf } from "./dates.js";
    const main = (days) => days.filter((day) => {
      const date = new Date(day * 86_400_000);
      const year = date.getUTCFullYear();
      const digits = String(Math.abs(year)).padStart(4, "0");
      const [month, ofMonth] = [date.getUTCMonth() + 1, date.getUTCDate()].map((each) => String(each).padStart(2, "0"));
      const value = `${year < 0 ? "-" : ""}${digits}-${month}-${ofMonth}`;
      return timeOf({ value, datatype: "http://www.w3.org/2001/XMLSchema#date" }).time !== day * 86_400_000;
    });"""
    assert modules.run(script, list(range(-90_000_000, 90_000_000, 9_973))) == []


# --- what is in messages ---------------------------------------------------------------------------------------------

PREFIXES: Final = """
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> PREFIX gsp: <http://www.opengis.net/ont/geosparql#>
PREFIX schema: <http://schema.org/> PREFIX sdo: <https://schema.org/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wikibase: <http://wikiba.se/ontology#> PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX georss: <http://www.georss.org/georss/> PREFIX vcard: <http://www.w3.org/2006/vcard/ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX ex: <http://example.org/>
"""
ODD: Final = f"""{PREFIXES}
ex:rome rdfs:label "Rom"@de , "Rome"@en ; geo:lat 41.9 ; geo:long 12.5 ; ex:founded "-0753-04-21"^^xsd:date .
ex:far rdfs:label "Far out" ; geo:lat 123 ; geo:long 500 .
wd:Q220 rdfs:label "Roma" ; wdt:P625 "Point(12.482777777 41.893055555)"^^gsp:wktLiteral .
wd:Q1 rdfs:label "Tranquility Base"@en ;
 wdt:P625 "<http://www.wikidata.org/entity/Q405> Point(23.47 0.67)"^^gsp:wktLiteral .
ex:pilbara rdfs:label "Pilbara" ; gsp:hasGeometry [ gsp:asWKT '''<{EPSG}4326>
 MULTIPOLYGON(((-22.30 118.20, -22.30 118.30,
 -22.20 118.30, -22.20 118.20, -22.30 118.20)),((-22.45 118.45, -22.45 118.55, -22.35 118.55, -22.35 118.45,
 -22.45 118.45)))'''^^gsp:wktLiteral ] .
ex:gml gsp:asGML
 "<gml:Point srsName='urn:ogc:def:crs:EPSG::4326'><gml:pos>39.5 -105.0</gml:pos></gml:Point>"^^gsp:gmlLiteral .
ex:grid rdfs:label "British grid" ; gsp:asGML
 "<gml:Point srsName='urn:ogc:def:crs:EPSG::27700'><gml:pos>1 2</gml:pos></gml:Point>"^^gsp:gmlLiteral .
ex:berlin schema:name "Berlin" ; schema:geo [ schema:latitude "52.520008"^^xsd:float ; schema:longitude "13.404954" ] .
ex:words sdo:name "In words" ; sdo:latitude "50°51′N" ; sdo:longitude "4°21′E" .
ex:half rdfs:label "Half" ; geo:lat 10 .
ex:fiji rdfs:label "Fiji" ; gsp:asWKT "LINESTRING(178 -17, -179 -16)"^^gsp:wktLiteral .
ex:brussels rdfs:label "Brussels" ; georss:point "50.8467 4.3517" ;
 geo:lat "50.8467"^^xsd:float ; geo:long "4.3517"^^xsd:float .
ex:card vcard:hasGeo <geo:37.386013,-122.082932> .
ex:two rdfs:label "Two" ; geo:lat 1 , 2 ; geo:long 3 .
ex:kt rdfs:label "Dinosaurs" ; ex:date "-66000000"^^xsd:gYear .
ex:caesar rdfs:label "Caesar" ; ex:date "-0043-03-15"^^xsd:date .
ex:bad rdfs:label "February" ; ex:date "2024-02-30"^^xsd:date .
ex:noon rdfs:label "Noon" ; ex:date "12:00:00"^^xsd:time .
"""
SHOWN: Final = {
    *(
        "Berlin",
        "Brussels",
        "Fiji",
        "Pilbara",
        "Roma",
        "Rome",
        "Two",
        "example:card",
        "example:gml",
    ),
}
LEFT_OUT: Final = {
    "Far out": "out of range: longitude 500, latitude 123",
    "Tranquility Base": "the map does not know its reference system, http://www.wikidata.org/entity/Q405",
    "British grid": "the map does not know its reference system, urn:ogc:def:crs:EPSG::27700",
    "In words": "it has no pairs of numbers",
    "Half": "a half of it is missing",
    "Two": "which of them belong together is not known; the first two are shown",
}
QUERY: Final = (
    "CONSTRUCT { ?s ?p ?o . ?o ?q ?v } WHERE { ?s ?p ?o FILTER(isIRI(?s)) OPTIONAL { ?o ?q ?v } }"
)
ASKED: Final = (
    'await page.waitForSelector("html[data-ready]");'
    'await page.locator("#options").evaluate((options) => { options.open = true; });'
    'await page.fill("#group-by", given.by ?? "");' + RUN + ENDED
)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["chromium", "firefox-esr"])
async def browser(request: pytest.FixtureRequest) -> AsyncIterator[Browser]:
    program: Literal["chromium", "firefox-esr"] = request.param
    async with browsing(program) as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    path = store_of(tmp_path_factory.mktemp("store"), ODD)
    async with serving(path) as server:
        yield server


async def look(browser: Browser, served: Served, script: str, **given: Any) -> Any:
    """What a script finds after a query has run; the page throws nothing and asks nobody else."""
    await browser.open(f"{served.url}/", viewport={"width": 1280, "height": 900})
    seen = await browser.run(ASKED + script, **given)
    assert await browser.errors() == []
    asked = [url for url in await browser.asked() if not url.startswith("blob:")]
    assert all(url.startswith(f"{served.url}/") for url in asked), asked
    return seen


@in_one
@in_browsers
async def test_every_place_is_shown_or_named(browser: Browser, served: Served) -> None:
    seen = await look(
        browser,
        served,
        """
        await page.click("#tab-map");
        const texts = (selector) => page.locator(selector).evaluateAll((all) => all.map((each) => each.textContent));
        const names = await texts(".chart > div .things button");
        const near = async (name) => {
          await page.click("text=Show all");
          await page.focus(`.mark-button[aria-label^="${name}"]`);
          for (let times = 0; times < 6; times += 1) await page.keyboard.press("+");
          return page.locator("svg.map .shape").evaluateAll((all) =>
            all.map((each) => each.getAttribute("d")).join(""));
        };
        const left = await page.locator(".left-out li").evaluateAll((all) =>
          all.map((each) => [each.querySelector("button").textContent, each.querySelector(".note").textContent]));
        return {
          names, left, said: await page.textContent(".chart > .note"),
          summary: await page.textContent(".left-out summary"),
          marks: await page.locator("svg.map .mark-button").evaluateAll((all) =>
            all.reduce((sum, mark) => sum + Number(mark.querySelector(".count")?.textContent ?? 1), 0)),
          area: await near("Pilbara"), line: await near("Fiji"),
        };
        """,
        query=QUERY,
        by="?s",
    )
    assert sorted(seen["names"]) == sorted(SHOWN)
    assert seen["marks"] == len(SHOWN)
    assert seen["said"] == "9 places."
    assert seen["summary"] == "6 places not in the picture, and why"
    assert {
        name: said.rpartition(": " + LEFT_OUT[name])[1][2:] for name, said in seen["left"]
    } == LEFT_OUT
    # two rings of one area, and a line that does not go around the globe
    assert (seen["area"].count("M"), seen["line"].count("M")) == (2, 1)
    start, end = (float(point.split()[0]) for point in seen["line"][1:].split("L"))
    assert 0 < end - start < 1000


@in_one
@in_browsers
async def test_every_date_is_shown_or_named(browser: Browser, served: Served) -> None:
    seen = await look(
        browser,
        served,
        """
        await page.click("#tab-timeline");
        const texts = (selector) => page.locator(selector).evaluateAll((all) => all.map((each) => each.textContent));
        const x = await page.locator("svg.timeline .degrees").evaluateAll((all) =>
          all.map((each) => Number(each.getAttribute("x"))));
        return {
          ticks: await texts("svg.timeline .degrees"), items: await texts(".chart > div .things li"),
          left: await texts(".left-out li"), rises: x.every((each, index) => !index || each > x[index - 1]),
          said: await page.textContent(".chart > .note"),
        };
        """,
        query=QUERY,
        by="?s",
    )
    assert seen["said"] == "3 dates. Years are those of XSD 1.1: -0001 is 2 BC, and 0000 is 1 BC."
    assert seen["items"] == [
        "Dinosaurs example:date -66000000 (66 million BC)",
        "Rome example:founded -0753-04-21 (754 BC)",
        "Caesar example:date -0043-03-15 (44 BC)",
    ]
    assert sorted(seen["left"]) == [
        "February 2024-02-30: the calendar does not have it",
        "Noon 12:00:00: it has no year",
    ]
    assert seen["rises"]
    assert all(tick.endswith("million BC") for tick in seen["ticks"][:-1])


DIGITS: Final = " ".join(f"({digit})" for digit in range(10))
THOUSAND: Final = f"""{PREFIXES} CONSTRUCT {{ ?s rdfs:label ?name ; geo:lat ?y ; geo:long ?x }}
WHERE {{ VALUES (?a) {{ {DIGITS} }} VALUES (?b) {{ {DIGITS} }} VALUES (?c) {{ {DIGITS} }}
BIND(?a + 10 * ?b + 100 * ?c AS ?n) BIND(IRI(CONCAT("http://example.org/", STR(?n))) AS ?s)
BIND(CONCAT("Place ", STR(?n)) AS ?name) BIND(IF(?n = 0, 60, 50) AS ?y) BIND(IF(?n = 0, 40, 4) AS ?x) }} ORDER BY ?n"""
"""One place, and 999 others at one point."""


@in_browsers
async def test_a_mark_reaches_all_of_its_messages_by_keyboard(
    browser: Browser, served: Served
) -> None:
    """From the tab of the view to the picture, from mark to mark, to the list of one, and to a card."""
    seen = await look(
        browser,
        served,
        """
        const focused = () => page.evaluate(() => {
          const { activeElement } = document;
          return activeElement.getAttribute("aria-label") ?? activeElement.textContent;
        });
        const press = async (key) => { await page.keyboard.press(key); return focused(); };
        const count = () => page.locator(".chart > div .things button").count();
        await page.focus("#tab-map");
        await page.keyboard.press("Enter");
        const isMark = () => page.evaluate(() => document.activeElement.matches(".mark-button"));
        while (!(await isMark())) await page.keyboard.press("Tab");
        const way = [await focused()];
        for (const key of ["ArrowRight", "ArrowLeft", "Home", "End", "+", "Enter"]) way.push(await press(key));
        const counts = [await count()];
        for (let more = page.locator(".chart button:has-text('show more')"); await more.isVisible(); ) {
          await more.press("Enter");
          counts.push(await count());
        }
        await page.locator(".chart > div .things button").last().press("Enter");
        await page.waitForSelector(".card[data-number='1000']");
        return { way, counts };
        """,
        query=THOUSAND,
    )
    one, others = "Place 0, 60.000°N, 40.000°E", "999 places, the first: Place 1"
    heading = "999 places at this mark"
    assert seen["way"] == [one, one, others, one, others, others, heading]
    assert seen["counts"] == [*range(100, 901, 100), 999]


@in_browsers
async def test_zoom(browser: Browser, served: Served) -> None:
    """What is out of sight is counted; a mouse moves the map, and a click on a single mark opens its message."""
    seen = await look(
        browser,
        served,
        """
        await page.click("#tab-map");
        const sight = () => page.textContent(".chart [role=status]");
        const states = [await sight()];
        for (let times = 0; times < 3; times += 1) await page.click("text=Zoom in");
        states.push(await sight());
        await page.click("text=Show all");
        states.push(await sight());
        const box = await page.locator("svg.map").boundingBox();
        await page.mouse.move(box.x + 20, box.y + 20);
        await page.mouse.down();
        await page.mouse.move(box.x + 20, box.y + box.height - 20, { steps: 4 });
        await page.mouse.up();
        states.push(await sight());
        await page.click("text=Show all");
        await page.locator(".mark-button[aria-label^='Fiji']").click();
        await page.waitForFunction(() => [...document.querySelectorAll("#cards .card")].some((card) => {
          const { top } = card.getBoundingClientRect();
          return card.querySelector(".label")?.textContent === "Fiji" && top >= 0 && top < innerHeight;
        }));
        return states;
        """,
        query=QUERY,
        by="?s",
    )
    first, zoomed, all, moved = seen
    assert (first, all) == ("", "")
    assert zoomed.endswith(" of them are in sight")
    assert moved.endswith(" of them are in sight")

"""The views of streams for everybody, in a real browser: axe-core finds nothing wrong, and no view is too wide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from construct_messages import Message, Quad, iri, literal
from construct_messages.rdf.formats import TURTLE
from construct_messages.rdf.terms import XSD
from construct_messages.streams import Description, Retention, open_store
from tests.support.http.streams import StreamsServer, read, serving_streams
from tests.support.pages.axe import AXE
from tests.support.pages.browser import Browser, node_folder

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

QUERY = (
    "CONSTRUCT { ?s <https://example.org/fahrenheit> ?f } WHERE "
    "{ ?s <https://example.org/celsius> ?c BIND(?c AS ?f) }"
)
NESTED = """
PREFIX ex: <https://example.org/>
ex:kitchen a ex:Room ; ex:celsius 21.5 ; ex:name "Küche"@de , "مطبخ"@ar--rtl ;
  ex:sensor [ ex:model "TX-7" ; ex:ranges ( 0 50 [ ex:unit ex:percent ] ) ] .
"""
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"colorScheme": "light"},
    "dark": {"colorScheme": "dark"},
    "phone": {"colorScheme": "light", "viewport": {"width": 360, "height": 740}, "hasTouch": True},
}
VIEWS = {
    "streams": "/streams",
    "stream": "/streams/rooms",
    "query": "/streams/warm",
    "listing": "/streams/rooms/output",
    "elements": "/streams/rooms/output?last=3",
    "element": "/streams/rooms/output/1",
    "event stream": "/streams/rooms/ldes",
    "page": "/streams/rooms/ldes/1-3",
    "problem": "/streams/none",
}
FOLLOWED = """
await page.waitForSelector("html[data-ready]");
await page.waitForFunction(() => document.querySelectorAll("#follow .card").length > 3);
await page.evaluate(() => { for (const each of document.querySelectorAll("details")) each.open = true; });
await page.waitForSelector("#editor .cm-editor");
await page.selectOption("select.examples", "0");
await page.click("button[value=preview]");
await page.waitForSelector("form[data-form=register] .tried .card");
await page.locator("form[data-form=publish] button[value=publish]").click();
await page.waitForSelector("form[data-form=publish] .result p");
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StreamsServer]:
    """A server with measurements of rooms, and a query over them."""
    path = tmp_path_factory.mktemp("streams") / "streams.db"
    with open_store(path) as store:
        store.create(
            "rooms", Description(label="Temperatures of rooms", retention=Retention(count=100_000))
        )
        store.append("rooms", read(NESTED, TURTLE))
        for number in range(2, 8):
            celsius = literal(f"{20 + number / 2}", datatype=f"{XSD}decimal")
            room = iri(f"https://example.org/room{number}")
            store.append(
                "rooms", Message([Quad(room, iri("https://example.org/celsius"), celsius)])
            )
    async with serving_streams(path, publish="allow", register="allow", ldes_page=3) as server:
        made = await server.ask(
            "POST", "/streams/rooms/query", QUERY.encode(), "application/sparql-query", Slug="warm"
        )
        assert made.status == 201
        yield server


@pytest.fixture(scope="module")
def axe() -> str:
    _, folder = node_folder("axe-core")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("look", ["light", "phone"])
async def test_screenshots(
    browser: Browser, served: StreamsServer, screenshots: Path, look: str
) -> None:
    """What the documentation shows."""
    await browser.open(f"{served.url}/streams/rooms", **LOOKS[look])
    file = screenshots / f"stream-{look}.png"
    await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        await page.waitForFunction(() => document.querySelectorAll("#follow .card").length > 3);
        await page.screenshot({ path: given.file });
        """,
        file=str(file),
    )
    assert file.read_bytes().startswith(b"\x89PNG")


async def test_no_control_is_dead_without_javascript(
    browser: Browser, served: StreamsServer
) -> None:
    for view, path in VIEWS.items():
        await browser.open(served.url + path, javaScriptEnabled=False)
        seen = await browser.run(
            """
            const controls = page.locator("main :is(button, input, select, textarea):visible");
            return [await controls.count(), await page.locator("main a:visible").count()];
            """
        )
        assert seen[0] == 0, view
        assert seen[1] > 0 or view == "problem"


# colours are the same in all views
LOOKED_AT = {"light": [*VIEWS], "dark": ["stream", "query"], "phone": ["streams", "stream"]}


@pytest.mark.parametrize("look", LOOKS)
async def test_axe_finds_nothing(
    browser: Browser, served: StreamsServer, axe: str, look: str
) -> None:
    for view in LOOKED_AT[look]:
        await browser.open(served.url + VIEWS[view], **LOOKS[look])
        found = await browser.run((FOLLOWED if view == "stream" else "") + AXE, axe=axe)
        assert found.pop("passes") > 10
        assert found == {"described": [], "wide": False}, (look, view)
        assert await browser.errors() == []
        assert all(url.startswith(f"{served.url}/") for url in await browser.asked())

"""Screenshots of the page for the documentation; `make screenshots` writes them into docs/images."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings
from tests.support.http.serving import Served, serving
from tests.support.pages.asking import ENDED, RUN, shown
from tests.support.pages.browser import Browser
from tests.support.pages.stores import store_of
from tests.support.places import ROOT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

WIDE, PHONE = {"width": 1160, "height": 960}, {"width": 390, "height": 1000}
QUERY = (ROOT / "queries" / "companies.rq").read_text(encoding="utf-8").partition("\n")[2].strip()
PREFIXES = {
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dbr": "http://dbpedia.org/resource/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}
PICTURE = "await page.click('.card header button');"
LOOKS: dict[str, tuple[dict[str, Any], str]] = {
    "page-light": ({"colorScheme": "light", "viewport": WIDE}, PICTURE),
    "page-dark": ({"colorScheme": "dark", "viewport": WIDE}, PICTURE),
    "page-phone": ({"colorScheme": "light", "viewport": PHONE}, ""),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    data = (ROOT / "queries" / "data" / "companies.ttl").read_text(encoding="utf-8")
    source = (str(store_of(tmp_path_factory.mktemp("store"), data)),)
    endpoints = {"companies": EndpointSettings(source=source, prefixes=PREFIXES)}
    async with serving(endpoints=endpoints) as server:
        yield server


def size_of(picture: Path) -> tuple[int, int]:
    """The width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:])  # type: ignore[return-value] # two of them


@pytest.mark.parametrize("look", LOOKS)
async def test_of_a_query(browser: Browser, served: Served, screenshots: Path, look: str) -> None:
    options, further = LOOKS[look]
    path = screenshots / f"{look}.png"
    await browser.open(f"{served.url}/", **options)
    await browser.run(
        'await page.waitForSelector("html[data-ready]");'
        + RUN
        + ENDED
        + shown(1)
        + further
        + """
        await page.locator("#query").blur();
        await page.locator("#editor").evaluate((editor, height) => { editor.style.height = height; }, given.height);
        await page.screenshot({ path: given.path });
        """,
        query=QUERY,
        path=str(path),
        height="11rem",
    )
    assert size_of(path) == tuple(options["viewport"].values())
    assert await browser.errors() == []

"""The page behind a path prefix of a reverse proxy, here nginx: all its paths are relative."""

from __future__ import annotations

from pathlib import Path

import pytest

from construct_messages.server.config import EndpointSettings
from tests.support.http.serving import serving
from tests.support.pages.browser import browsing
from tests.support.pages.prefix import prefixed
from tests.support.pages.stores import PEOPLE, store_of

pytestmark = [pytest.mark.engine, pytest.mark.slow]


async def test_behind_a_prefix(tmp_path: Path) -> None:
    endpoints = {
        name: EndpointSettings(source=(str(store_of(tmp_path / f"store{name}", PEOPLE)),))
        for name in ("", "a")
    }
    async with serving(endpoints=endpoints) as server, browsing() as browser:
        with prefixed(server.url, "/data/linked/", tmp_path) as url:
            for path, endpoint in (
                ("", "sparql"),
                ("sparql", "sparql"),
                ("a/", "a/sparql"),
                ("a/sparql", "a/sparql"),
            ):
                await browser.open(url + path)
                seen = await browser.run(
                    """
                    await page.waitForSelector("html[data-ready]");
                    const endpoint = await page.inputValue("#endpoint");
                    await page.click("#run");
                    await page.waitForSelector("#banner:not([hidden])");
                    return [endpoint, await page.getAttribute("#banner", "class")];
                    """
                )
                assert seen == [endpoint, "banner good"]
                assert await browser.errors() == []
                asked = await browser.asked()
                assert all(each.startswith(url) for each in asked), asked
                assert f"{url}{endpoint}" in asked

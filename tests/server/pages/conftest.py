"""A browser for the tests of a module, and a server whose endpoints it asks; a module may have a server of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings
from tests.support.http.fault_server import FaultServer
from tests.support.http.serving import UNHURRIED, Served, serving
from tests.support.pages.browser import Browser, browsing
from tests.support.pages.stores import PEOPLE, store_of

MANY = 10_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """What is behind the endpoint `remote`."""
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Served]:
    """A server of few messages (`people`), of many, and of what an upstream says."""
    many = "".join(
        f"<http://example.org/{number}> <urn:p> {number} .\n" for number in range(1, MANY + 1)
    )
    endpoints = {
        "people": EndpointSettings(
            source=(str(store_of(tmp_path_factory.mktemp("people"), PEOPLE)),),
            limits=UNHURRIED,
            prefixes={"ex": "http://example.org/"},
        ),
        "many": EndpointSettings(
            source=(str(store_of(tmp_path_factory.mktemp("many"), many)),), limits=UNHURRIED
        ),
        "remote": EndpointSettings(source=(upstream.url,), retries=0, limits=UNHURRIED),
    }
    async with serving(endpoints=endpoints) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, served: Served) -> AsyncIterator[Browser]:
    """An open page: it must throw no error, be refused nothing by its policy, and ask no other host."""
    await browser.open(f"{served.url}/")
    await browser.run('await page.waitForSelector("html[data-ready]")')
    yield browser
    assert await browser.errors() == []
    assert [
        url for url in await browser.asked() if not url.startswith((f"{served.url}/", "blob:"))
    ] == []

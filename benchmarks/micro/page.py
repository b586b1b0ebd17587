"""The page in a real browser: when the first card is seen, how long frames are, and what memory a minute takes.

`python -m benchmarks micro page [--seconds 60]` starts Chromium (`CONSTRUCT_MESSAGES_NODE` names the folder with npm's
playwright-core) on the page of an application whose endpoint gives messages of five triples at a rate of its own:

- the first message alone, and the rest a second later: from its bytes to its card;
- 10,000 messages as fast as they go: the longest frame;
- 1,000 messages a second for a minute: the longest frame, and the heap after a collection, early and late.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from benchmarks.harness import Figure, report
from construct_messages.server.config import Config
from construct_messages.server.http.app import make_app, runner_of
from construct_messages.server.http.endpoint import Endpoint, Route
from construct_messages.server.pages.endpoint import Listed, PagesEndpoint
from tests.support.pages.browser import Browser, browsing

ANNOUNCEMENT: Final = 'VERSION "1.2-messages"\n'
FIRSTS: Final = 11
BATCHES: Final = 50  # a second, of a steady flow

WATCH: Final = """
await page.waitForSelector("html[data-ready]");
await page.evaluate(() => {
  const seen = window.seen = { frames: [], first: null, collecting: false };
  let last = performance.now();
  const frame = (now) => {
    if (!seen.collecting) seen.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new MutationObserver(() => { seen.first ??= performance.timeOrigin + performance.now(); })
    .observe(document.getElementById("cards"), { childList: true });
});
"""
RUN: Final = 'await page.click("#run");'
ENDED: Final = """
await page.waitForSelector("#banner:not([hidden])", { timeout: 0 });
await page.waitForFunction((last) =>
  document.querySelector("#cards .card:last-child h3")?.textContent.replaceAll(",", "") === last, given.last);
"""
RESULT: Final = """
const seen = await page.evaluate(() => ({ longest: Math.max(...window.seen.frames), first: window.seen.first }));
return { ...seen, banner: await page.textContent("#banner"), cards: await page.locator(".card").count() };
"""
# the frame of a collection that is asked for here is not the page's own
HEAP: Final = """
const session = state.session ??= await context.newCDPSession(page);
await session.send("HeapProfiler.enable");
await page.evaluate(() => { window.seen.collecting = true; });
await session.send("HeapProfiler.collectGarbage");
const { usedSize } = await session.send("Runtime.getHeapUsage");
await page.evaluate(() => new Promise(requestAnimationFrame));
await page.evaluate(() => { window.seen.collecting = false; });
return usedSize;
"""


def message(number: int) -> str:
    """A message of five triples, with its delimiter."""
    thing = f"<http://example.org/thing/{number}>"
    return "".join(
        f'{thing} <http://example.org/p{each}> "value {number} {each}"@en .\n' for each in range(5)
    ) + ("MESSAGE\n")


class Flow(Endpoint):
    """An endpoint that answers each query with a log, whose pieces come when `pieces` gives them."""

    path = "/sparql"

    def __init__(self) -> None:
        self.count, self.rate = 1, 0.0
        self.first_sent = 0.0

    def routes(self) -> Iterable[Route]:
        return (Route(self.path, ("POST",), self._answer),)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/n-quads; version=1.2-messages"}
        )
        await response.prepare(request)
        await response.write((ANNOUNCEMENT + message(1)).encode())
        self.first_sent = time.time()
        begun = time.perf_counter()
        number, size = 2, round(self.rate / BATCHES) or 100
        while number <= self.count:
            last = min(self.count, number + size - 1)
            if self.rate:
                await asyncio.sleep(max(0.0, begun + last / self.rate - time.perf_counter()))
            await response.write("".join(map(message, range(number, last + 1))).encode())
            number = last + 1
        return response


@asynccontextmanager
async def serving(flow: Flow) -> AsyncIterator[str]:
    """The page over an endpoint, on a free port of loopback."""
    endpoints = (flow, PagesEndpoint([Listed("", flow.path, {})]))
    runner = runner_of(make_app(Config(endpoints={}, log_level="error"), endpoints))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield site.name
    finally:
        await runner.cleanup()


async def first_card(browser: Browser, url: str, flow: Flow) -> float:
    """Seconds from the bytes of the first message to its card, while the second is a second away."""
    flow.count, flow.rate = 2, 2.0
    await browser.open(url)
    seen = await browser.run(WATCH + RUN + ENDED + RESULT, last="2")
    return float(seen["first"] / 1000 - flow.first_sent)


async def burst(browser: Browser, url: str, flow: Flow, count: int) -> dict[str, Any]:
    """So many messages as fast as they go; the longest frame is in milliseconds."""
    flow.count, flow.rate = count, 0.0
    await browser.open(url)
    begun = time.perf_counter()
    seen: dict[str, Any] = await browser.run(WATCH + RUN + ENDED + RESULT, last=str(count))
    return seen | {"seconds": time.perf_counter() - begun}


async def steady(
    browser: Browser, url: str, flow: Flow, seconds: int
) -> tuple[dict[str, Any], list[int]]:
    """1,000 messages a second, and the bytes of the heap every ten seconds of them."""
    flow.count, flow.rate = 1000 * seconds, 1000.0
    await browser.open(url)
    await browser.run("state.session = null;" + WATCH + RUN)
    begun, heaps = time.perf_counter(), []
    for part in range(1, 7):
        await asyncio.sleep(max(0.0, begun + part * seconds / 6 - 1 - time.perf_counter()))
        heaps.append(await browser.run(HEAP))
    seen = await browser.run(ENDED + RESULT, last=str(flow.count))
    return seen, heaps


async def measure(seconds: int) -> list[Figure]:
    """All figures, checked against what was sent."""
    flow = Flow()
    async with serving(flow) as url, browsing() as browser:
        firsts = sorted([await first_card(browser, url, flow) for _ in range(FIRSTS)])
        many = await burst(browser, url, flow, 10_000)
        assert many["banner"] == "Complete: 10,000 messages.", many
        assert many["cards"] == 1000, many
        flowing, heaps = await steady(browser, url, flow, seconds)
        assert flowing["banner"] == f"Complete: {flow.count:,} messages.", flowing
        assert await browser.errors() == []
    print("heap in MB, every sixth of the time:", *(round(heap / 1e6, 1) for heap in heaps))
    return [
        Figure("first message sent → its card, median", firsts[FIRSTS // 2], goal="≤ 0.1 s"),
        Figure("the same, longest of 11", firsts[-1]),
        Figure("10,000 messages → the last card", many["seconds"]),
        Figure("the same, longest frame", many["longest"] / 1000, goal="≤ 0.1 s"),
        Figure("1,000 messages a second, longest frame", flowing["longest"] / 1000, goal="≤ 0.1 s"),
        Figure(
            "the same: heap at its end, against that after a sixth",
            float(seconds),
            heaps[-1] / heaps[0],
            "flat",
        ),
    ]


def main() -> None:
    """`python -m benchmarks micro page`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="of the steady flow")
    report("page", "The page in Chromium", asyncio.run(measure(parser.parse_args().seconds)))

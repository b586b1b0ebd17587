"""A page of a test's own in Debian's Chromium, which reports to the test."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from tests.support.engines.servers import NODE
from tests.support.pages.browser import chromium
from tests.support.places import absent

_OPEN: Final = """
import { chromium } from "playwright-core";
const [executablePath, url] = process.argv.slice(1);
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath, args, timeout: 0 });
const page = await browser.newPage();
page.on("pageerror", (error) => console.log(JSON.stringify({ error: String(error) })));
await page.exposeFunction("report", (said) => console.log(JSON.stringify(said)));
await page.goto(url, { timeout: 0 });
"""


@asynccontextmanager
async def reporting(body: str) -> AsyncIterator[list[dict[str, Any]]]:
    """A page in a browser, and all that its scripts have passed to `report` so far."""
    program, node = chromium(), Path(os.environ.get(NODE, "nowhere"))
    if program is None or not (node / "node_modules" / "playwright-core").exists():
        absent(f"Chromium or npm's playwright-core is absent: install them, and set {NODE}")
    said: list[dict[str, Any]] = []
    async with _a_page(body) as page:
        command = ("node", "--input-type=module", "--eval", _OPEN, program, page)
        process = await asyncio.create_subprocess_exec(*command, cwd=node, stdout=PIPE)
        assert process.stdout is not None

        async def listen(stdout: asyncio.StreamReader) -> None:
            async for line in stdout:
                said.append(json.loads(line))

        listening = asyncio.create_task(listen(process.stdout))
        try:
            yield said
        finally:
            if process.returncode is None:
                process.terminate()  # the browser ends with it
            await process.wait()
            await listening


@asynccontextmanager
async def _a_page(body: str) -> AsyncIterator[str]:
    """The URL of a page."""

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text=body, content_type="text/html")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    try:
        yield place.name
    finally:
        await runner.cleanup()

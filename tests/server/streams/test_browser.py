"""A page of another origin in a browser, Debian's Chromium, follows a stream by `EventSource` and `WebSocket`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from construct_messages import Message, Quad, iri, literal
from construct_messages.formats import N_QUADS, TURTLE
from tests.support.engines.servers import NODE
from tests.support.http.relay import relay
from tests.support.http.streams import read, serving_streams
from tests.support.places import absent
from tests.support.streams import numbered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.slow]

OPEN = """
import { chromium } from "playwright-core";
const [executablePath, url] = process.argv.slice(1);
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath, args, timeout: 0 });
const page = await browser.newPage();
page.on("pageerror", (error) => console.log(JSON.stringify({ error: String(error) })));
await page.exposeFunction("report", (said) => console.log(JSON.stringify(said)));
await page.goto(url, { timeout: 0 });
"""

PAGE = """<!DOCTYPE html>
<title>Streams</title>
<script type="module">
const stream = "URL/streams/a";
const source = new EventSource(`${stream}/events?after=0&format=ttl`);
source.addEventListener("rdf-message", (event) => report({ via: "sse", id: event.lastEventId, data: event.data }));
source.onopen = () => report({ via: "sse", open: true });
let last = 0;
function connect() {
  const socket = new WebSocket(`${stream.replace("http", "ws")}/socket?after=${last}`, ["rdfm.none", "rdfm.n-quads"]);
  socket.onopen = () => report({ via: "websocket", open: true, protocol: socket.protocol });
  socket.onmessage = (event) => report({ via: "websocket", id: String(++last), data: event.data });
  socket.onclose = () => setTimeout(connect, 20);
}
connect();
</script>
"""


@asynccontextmanager
async def browsing(url: str) -> AsyncIterator[list[dict[str, Any]]]:
    """What a page reports that follows a stream of a server."""
    chromium, node = shutil.which("chromium"), Path(os.environ.get(NODE, "nowhere"))
    if chromium is None or not (node / "node_modules" / "playwright-core").exists():
        absent(f"Chromium or npm's playwright-core is absent: install them, and set {NODE}")
    said: list[dict[str, Any]] = []
    async with a_page(PAGE.replace("URL", url)) as page:
        program = ("node", "--input-type=module", "--eval", OPEN, chromium, page)
        process = await asyncio.create_subprocess_exec(*program, cwd=node, stdout=PIPE)
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
async def a_page(body: str) -> AsyncIterator[str]:
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


def came(said: list[dict[str, Any]], via: str) -> list[tuple[str, Message]]:
    format = TURTLE if via == "sse" else N_QUADS
    return [
        (each["id"], read(each["data"], format))
        for each in said
        if each["via"] == via and "id" in each
    ]


async def test_each_message_once_over_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the browser's own `Last-Event-ID`, and by `?after=`."""
    monkeypatch.setattr("construct_messages.server.streams.push._RETRY_MILLISECONDS", 20)
    text = literal("\r\n\u2028é😀 data: x\n\n")
    sent = [
        numbered(1),
        Message(),
        Message([Quad(iri("urn:s"), iri("urn:p"), text)]),
        *map(numbered, range(4, 9)),
    ]
    async with relay() as between, AsyncExitStack() as stack:
        said: list[dict[str, Any]] = []
        for run, behind in enumerate((3, 6, 8)):
            # the page is of another origin
            async with serving_streams(tmp_path / "streams.db", server={"cors": ("*",)}) as server:
                between.target = server.url
                if run == 0:
                    await server.ask("PUT", "/streams/a")
                    await server.publish(sent[:3])
                    said = await stack.enter_async_context(browsing(between.url))
                else:
                    await server.publish(sent[len(came(said, "sse")) : behind])
                await both_have(said, behind)
                between.target = None
    for via in ("sse", "websocket"):
        assert came(said, via) == [(str(number), message) for number, message in enumerate(sent, 1)]
        assert sum("open" in each for each in said if each["via"] == via) >= 3
    assert {each["protocol"] for each in said if "protocol" in each} == {"rdfm.n-quads"}


async def both_have(said: list[dict[str, Any]], count: int) -> None:
    await eventually(
        lambda: all(len(came(said, via)) >= count for via in ("sse", "websocket")) or errors(said)
    )
    assert not errors(said), said


def errors(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in said if "error" in each]

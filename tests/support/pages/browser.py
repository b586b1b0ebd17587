"""Debian's Chromium or Firefox, driven by playwright-core in a process of Node.js: scripts go in, results come out.

Debian's Firefox is driven by WebDriver BiDi, as a build of Firefox for playwright comes from no registry. Versions of
playwright-core since 1.64 need a command for it that Firefox 153 does not have (`emulation.setMediaFeaturesOverride`).
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from tests.support.engines.servers import NODE
from tests.support.places import absent
from tests.support.waiting import SECONDS

_LINE_BYTES: Final = 1 << 26
_SCRIPT_SECONDS: Final = 240

_DRIVER: Final = """
import { createInterface } from "node:readline";
import { chromium, firefox } from "playwright-core";
const [executablePath, program, milliseconds] = process.argv.slice(1);
const args = [
  "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
  // pictures are drawn in the process of the browser, which takes a tenth less of the processor
  "--disable-gpu-compositing", "--disable-software-rasterizer", "--in-process-gpu",
];
const browser = program === "chromium"
  ? await chromium.launch({ executablePath, args, timeout: 0 })
  : await firefox.launch({ executablePath, channel: "moz-firefox", timeout: 0 });
const state = {};
const AsyncFunction = (async () => {}).constructor;
// a script without an end would hold up the scripts of all tests after it
const limited = async (running) => {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error("the script did not end")), milliseconds);
  });
  try {
    return await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
};
for await (const line of createInterface({ input: process.stdin })) {
  const { script, given } = JSON.parse(line);
  let answer;
  try {
    const made = new AsyncFunction("browser", "state", "given", script);
    answer = { value: (await limited(made(browser, state, given))) ?? null };
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\\n");
}
await browser.close();
"""

_OPEN: Final = """
await state.context?.close();
const context = state.context = await browser.newContext({ acceptDownloads: true, ...given.options });
context.setDefaultTimeout(given.milliseconds);
const page = state.page = await context.newPage();
state.asked = [];
state.errors = [];
page.on("request", (request) => state.asked.push(request.url()));
page.on("pageerror", (error) => state.errors.push(String(error)));
page.on("console", (said) => {
  // a status that is no success, or no status, is said by the browser as well, and checked where it is expected
  const refused = /^(Failed to load resource|WebSocket connection to '[^']*' failed)/.test(said.text());
  if (said.type() === "error" && !refused) state.errors.push(said.text());
});
page.on("dialog", (dialog) => { state.errors.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
await page.goto(given.url);
"""


class Failed(Exception):
    """A script threw an error in the browser's driver."""


class Browser:
    """A browser with one page at a time. A script is the body of an async function; `page` is the open page."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def open(self, url: str, **options: Any) -> None:
        """Opens a page in a context of its own, whose options are those of playwright's `newContext`."""
        await self._run(_OPEN, {"url": url, "options": options, "milliseconds": SECONDS / 2 * 1000})

    async def run(self, script: str, **given: Any) -> Any:
        """Runs a script on the page; `given` are values that it finds under that name.

        Raises:
            Failed: it threw an error.
        """
        return await self._run(f"const {{ page, context }} = state;\n{script}", given)

    async def errors(self) -> list[str]:
        """What the page threw, logged as an error (as refusals by its policy are), or opened as a dialog."""
        return list(await self.run("return state.errors"))

    async def asked(self) -> list[str]:
        """The URLs that the page asked for."""
        return list(await self.run("return state.asked"))

    async def _run(self, script: str, given: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"script": script, "given": given}).encode() + b"\n")
        async with asyncio.timeout(SECONDS):
            answer = json.loads(await self._process.stdout.readline())
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["value"]


def node_folder(*packages: str) -> tuple[str, Path]:
    """The program of Node.js, and the folder whose `node_modules` hold packages; skips the test where there is none."""
    node, folder = shutil.which("node"), Path(os.environ.get(NODE, "nowhere"))
    if node is None or not all(
        (folder / "node_modules" / package).exists() for package in packages
    ):
        absent(f"Node.js or npm's {' and '.join(packages)} is absent: install them, and set {NODE}")
    return node, folder


def chromium() -> str | None:
    """Chromium without windows, which takes half as much of the processor, or else the whole one."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


@asynccontextmanager
async def browsing(
    program: Literal["chromium", "firefox-esr"] = "chromium",
) -> AsyncIterator[Browser]:
    """A browser; skips the test where it is missing."""
    node, folder = node_folder("playwright-core")
    executable = chromium() if program == "chromium" else shutil.which(program)
    if executable is None:
        absent(f"{program} is not installed: apt-get install {program}")
    process = await asyncio.create_subprocess_exec(
        *(node, "--input-type=module", "--eval", _DRIVER),
        *(executable, program, str(_SCRIPT_SECONDS * 1000)),
        cwd=folder,
        stdin=PIPE,
        stdout=PIPE,
        limit=_LINE_BYTES,
    )
    assert process.stdin is not None
    try:
        yield Browser(process)
    finally:
        process.stdin.close()  # which ends the driver, and the browser with it
        await process.wait()

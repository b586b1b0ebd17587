"""What *Copy as* offers, run as it is: each command and program gets the messages that the page shows."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode

import aiohttp
import pytest
import pytest_asyncio

from construct_messages.rdf.formats import LOGS, content_type
from construct_messages.server.config import EndpointSettings
from tests.support.http.serving import UNHURRIED, Served, serving, unlabelled
from tests.support.pages.asking import ENDED
from tests.support.pages.browser import Browser
from tests.support.pages.stores import store_of
from tests.support.places import ROOT
from tests.support.spark.sessions import SHORT_LIVED

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.engine, pytest.mark.slow]

DATA: Final = """
<urn:1> <urn:p> "a" , "c" . <urn:2> <urn:p> "b" . <urn:3> <urn:p> "a" , "c" .
<urn:g> {
  <urn:4> <urn:p> "a" , "it's" . <urn:5> <urn:p> "a" , "it's" . <urn:6> <urn:p> "d" . <urn:7> <urn:p> "e" .
}
"""
QUOTED: Final = (
    '# it\'s \\ "quoted"\nCONSTRUCT { ?s ?p "it\'s $HOME `x` \\\\ é😀" }\n'
    "WHERE { ?s ?p ?o }\nORDER BY ?s ?o"
)
GROUPED: Final = "CONSTRUCT { <urn:x> ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?s ?o"
ASKED: Final = {
    "a query with quotes": ({"query": QUOTED}, 5),
    "options": (
        {
            "query": GROUPED,
            "group-by": "s",
            "distinct": "true",
            "lenient": "true",
            "max-messages": "2",
            "page-size": "3",
            "default-graph-uri": "urn:g",
        },
        2,
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    source = (str(store_of(tmp_path_factory.mktemp("store"), DATA)),)
    settings = EndpointSettings(source=source, limits=UNHURRIED)
    async with serving(endpoints={"people": settings}) as server:
        yield server


async def log_of(url: str, fields: list[tuple[str, str]]) -> list[list[bytes]]:
    """The messages that a request of the page gets, each as its statements."""
    headers = {"Accept": content_type(*LOGS[0])}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=fields, headers=headers) as answer,
    ):
        assert answer.status == 200
        return messages_of(await answer.read())


def messages_of(log: bytes) -> list[list[bytes]]:
    """The statements of each message of a log that comments delimit."""
    first, *messages = unlabelled(log).split(b"# @message\n")
    assert first == b""
    return [sorted(message.splitlines()) for message in messages]


def printed(out: bytes) -> list[list[bytes]]:
    """The statements of each message that a program has printed after their number."""
    messages: list[list[bytes]] = []
    for line in unlabelled(out).splitlines():
        if line.endswith(b" quads"):
            messages.append([])
        else:
            messages[-1].append(line)
    return [sorted(message) for message in messages]


async def done(program: tuple[str, ...], folder: Path) -> bytes:
    """What a program has written to standard output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | SHORT_LIVED | {"PATH": path, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *program, stdout=PIPE, stderr=PIPE, cwd=folder, env=environment
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out


@pytest.mark.parametrize("case", ASKED)
async def test_copies_can_be_run(
    browser: Browser, served: Served, case: str, tmp_path: Path
) -> None:
    """The page runs the query of a link, and sends what the copies send."""
    asked, count = ASKED[case]
    await browser.open(f"{served.url}/people/sparql?{urlencode(asked)}")
    seen = await browser.run(
        """
        await page.waitForSelector("html[data-ready]");
        """
        + ENDED
        + """
        const said = await page.textContent("#banner");
        const open = page.waitForRequest((each) => each.method() === "POST");
        await page.click("#run");
        const sent = (await open).postData();
        const copies = {};
        for (const kind of ["curl", "python", "command", "javascript", "spark"]) {
          await page.click(`#copy-${kind}`);
          copies[kind] = await page.inputValue("#text-dialog-text");
          await page.click("#text-dialog-close");
        }
        return { said, sent, copies };
        """
    )
    sent = parse_qsl(seen["sent"])
    assert sorted(sent) == sorted(asked.items())
    messages = await log_of(f"{served.url}/people/sparql", sent)
    assert len(messages) == count
    assert seen["said"].startswith(f"Complete: {count} messages")
    copies = seen["copies"]
    shell = ("bash", "-euo", "pipefail", "-c")
    assert messages_of(await done((*shell, copies["curl"]), tmp_path)) == messages
    assert messages_of(await done((*shell, copies["command"]), tmp_path)) == messages
    assert printed(await done((sys.executable, "-c", copies["python"]), tmp_path)) == messages
    node = shutil.which("node")
    assert node is not None
    (tmp_path / "copied.mjs").write_text(copies["javascript"], encoding="utf-8")
    assert printed(await done((node, "copied.mjs"), tmp_path)) == messages
    compile(copies["spark"], "copied.py", "exec")
    if case == "options":
        table = await done((sys.executable, "-c", copies["spark"]), tmp_path)
        assert messages_of((tmp_path / "messages.nq").read_bytes()) == messages
        assert [
            line.count(b"<urn:x>") for line in table.splitlines() if b"messages.nq" in line
        ] == [len(message) for message in messages]

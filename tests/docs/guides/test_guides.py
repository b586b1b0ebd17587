"""Guides work as printed: a page that follows a stream in a browser, and the backup of a store that is in use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from construct_messages import read_log
from tests.support.docs import BLOCKS, PAGES, Block
from tests.support.engines.servers import Missing, free_port, program
from tests.support.pages.browser import Browser, browsing
from tests.support.places import ROOT, absent
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.process, pytest.mark.slow]

ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
}
LONGEST_GUIDE = 200  # lines; what is longer belongs into docs/reference/


def of(guide: str) -> list[Block]:
    return [block for block in BLOCKS if block.page == f"docs/guides/{guide}.md"]


@contextmanager
def serving(command: str, place: Path, port: int) -> Iterator[str]:
    """A server that a command of a page starts, at a free port; its URL."""
    arguments = [*command.split(), "--bind", f"127.0.0.1:{port}"]
    with subprocess.Popen(
        arguments, cwd=place, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            assert any("listening on" in line for line in server.stderr)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.communicate(timeout=SECONDS)


@contextmanager
def started(command: str, place: Path) -> Iterator[None]:
    """Runs a command of Python until the block ends."""
    _, *arguments = command.split()
    with subprocess.Popen([sys.executable, *arguments], cwd=place) as process:
        try:
            yield
        finally:
            process.terminate()


def run(command: str, place: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=place,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def publish(messages: int, server: str, place: Path) -> None:
    lines = "".join(f"# @message\n<urn:s> <urn:p> <urn:o{each}> .\n" for each in range(messages))
    (place / "log.nq").write_text(lines, encoding="utf-8")
    run(
        f"construct-messages publish log.nq --to {server}/streams/companies --create --quiet", place
    )


def test_guides_are_short() -> None:
    guides = [page for page in PAGES if page.parent.name == "guides"]
    assert len(guides) > 12
    long = {page.name: page.read_text(encoding="utf-8").count("\n") for page in guides}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_GUIDE} == {}


def test_every_guide_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(docs/guides/([\w-]+)\.md\)", readme))
    assert named == {page.stem for page in PAGES if page.parent.name == "guides"}
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    (groups,) = (entry["Guides"] for entry in nav if "Guides" in entry)
    assert len(groups) > 3


async def test_a_page_follows_a_stream(tmp_path: Path) -> None:
    """The page is of another origin, and the server is started again."""
    (page,) = (block for block in of("event-source") if block.language == "html")
    serve, pages = (block.text.strip() for block in of("event-source") if block.language == "sh")
    port, other = free_port(), free_port()
    (tmp_path / page.title).write_text(page.text.replace(":8080", f":{port}"), encoding="utf-8")
    serve = serve.replace(":8000", f":{other}")
    with started(pages.replace("8000", str(other)), tmp_path):
        run(f"curl --silent --retry 100 --retry-all-errors http://127.0.0.1:{other}/", tmp_path)
        async with browsing() as browser:
            with serving(serve, tmp_path, port) as url:
                publish(12, url, tmp_path)
                await browser.open(f"http://127.0.0.1:{other}/{page.title}")
                await shown(browser, 10)
            with serving(serve, tmp_path, port) as url:
                publish(2, url, tmp_path)
                await shown(browser, 12)
            items = await browser.run(
                'return page.$$eval("li", (all) => all.map((item) => [item.value, item.textContent]))'
            )
    assert [number for number, _ in items] == list(range(3, 15))
    assert all('"urn:s"' in text for _, text in items)


async def shown(browser: Browser, count: int) -> None:
    await browser.run(
        "await page.waitForFunction((count) => document.querySelectorAll('li').length === count, given.count)",
        count=count,
    )


def test_back_up_and_restore(tmp_path: Path) -> None:
    """While a server has the store open; what was stored after the backup is gone when it is restored."""
    try:
        program("sqlite3", "apt-get install sqlite3")
    except Missing as missing:
        absent(str(missing))
    back_up, restore = (
        block.text.strip() for block in of("back-up-a-store") if block.language == "sh"
    )
    *replace, serve = restore.splitlines()
    port = free_port()
    with serving(serve, tmp_path, port) as url:
        publish(3, url, tmp_path)
        assert "elements 1 to 3\n" in run(back_up, tmp_path)
        publish(2, url, tmp_path)
    run("\n".join(replace), tmp_path)
    with serving(serve, tmp_path, port) as url:
        run(
            f"construct-messages subscribe {url}/streams/companies --after 0 --output all.nq --quiet",
            tmp_path,
        )
    assert [str(quad.object) for message in read_log(tmp_path / "all.nq") for quad in message] == [
        "<urn:o0>",
        "<urn:o1>",
        "<urn:o2>",
    ]

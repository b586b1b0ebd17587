"""The documentation site: it is built strictly, and reading it asks no other host for anything."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.places import ROOT, absent

pytestmark = [pytest.mark.process, pytest.mark.slow]

# what makes a browser load something, by element
LOADS = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}


class Loads(HTMLParser):
    """Collects the addresses that a page loads, as opposed to those that it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if (
            tag in LOADS
            and (address := values.get(LOADS[tag]))
            and values.get("rel") not in ("next", "prev", "canonical")
        ):
            self.found.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for library in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        try:
            found = importlib.util.find_spec(library)
        except ModuleNotFoundError:
            found = None
        if found is None:
            absent(f"{library} is not installed: pip install '.[docs]'")
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT,
        # no network: whatever asked for it would fail here
        env=os.environ
        | {
            "NO_MKDOCS_2_WARNING": "1",
            "https_proxy": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout
    return place


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 50
    assert [page for page in pages if not (site / page.with_suffix(".html")).is_file()] == []


def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        parser = Loads()
        parser.feed(page.read_text(encoding="utf-8"))
        # the table of the benchmarks is one file
        assert bool(parser.found) == (page != site / "benchmarks" / "table.html"), page
        assert [address for address in parser.found if urlsplit(address).netloc] == [], page
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "url(http" not in text, sheet
        assert "@import" not in text, sheet


def test_the_python_api_is_generated(site: Path) -> None:
    page = (site / "reference" / "api" / "queries.html").read_text(encoding="utf-8")
    assert 'id="construct_messages.construct_messages"' in page
    assert "&gt;&gt;&gt;" in page  # doctests are shown as code
    assert "<blockquote>\n<blockquote>" not in page


def test_the_home_page_is_the_readme(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'one <a href="https://w3c-cg.github.io/rsp/messages/">RDF Message</a>' in page
    assert page.index("<strong>follow a stream</strong>") < page.index("never cut in silence")
    assert 'href="guides/dbpedia.html"' in page
    assert 'src="images/page-cards.png"' in page
    assert "<code>CONTRIBUTING.md</code>" in page


def test_the_decisions_are_listed(site: Path) -> None:
    page = (site / "decisions" / "index.html").read_text(encoding="utf-8")
    for decision in (ROOT / "docs" / "decisions").glob("[0-9]*.md"):
        assert f'href="{decision.stem}.html"' in page


def test_the_folder_of_the_pages_does_not_count_as_built() -> None:
    """`make docs` builds although there is a folder of that name."""
    done = subprocess.run(
        ["make", "--dry-run", "docs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert "mkdocs build --strict" in done.stdout

"""Every code block of the README and the docs does what the page says."""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import construct_messages
from construct_messages.cli import build_parser
from construct_messages.formats import FORMATS, SYNTAXES, Format
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.sources.http.profiles import PROFILES
from tests.support.docs import BLOCKS, PAGES, SPARK, TUTORIAL, Block, printed
from tests.support.engines.servers import free_port
from tests.support.places import ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]

# Blocks that other tests run, or that are no code: what a query gives, the syntax of a command, settings.
SHOWN = {"text", "py", "turtle", "sh", "toml", "nginx", "ini", "dockerfile", "yaml"}


def of(*languages: str) -> pytest.MarkDecorator:
    chosen = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", chosen, ids=[f"{block.page}:{block.line}" for block in chosen])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in which the pages' relative paths hold, and nothing that a block writes does harm."""
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    return tmp_path


def shell(command: str, place: Path) -> str:
    """What a command prints on both outputs, and its exit status where that is not 0."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    return printed(command, place, environment)


def test_every_language_is_tested() -> None:
    assert {block.language for block in BLOCKS} - SHOWN <= {"console", "python", "rspql", "sparql"}


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language == "console" and block.page not in (SPARK, TUTORIAL)],
    ids=lambda block: f"{block.page}:{block.line}",
)
def test_console(block: Block, place: Path) -> None:
    prompt, *sessions = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert prompt == ""
    for session in sessions:
        command, _, output = session.partition("\n")
        assert shell(command, place) == output


@pytest.mark.parametrize(
    "page", sorted({block.page for block in BLOCKS if block.language == "python" and block.page != TUTORIAL})
)
def test_python(page: str, place: Path) -> None:
    """A page's Python blocks run one after the other, as a reader types them; a text block behind one is its output."""
    of_page = [block for block in BLOCKS if block.page == page]
    program, expected = "", ""
    for block, following in zip(of_page, [*of_page[1:], None], strict=True):
        if block.language == "python":
            program += block.text
            if following is not None and following.language == "text":
                expected += following.text
    (place / "page.py").write_text(program, encoding="utf-8")
    assert shell("python page.py", place) == expected


@of("sparql")
def test_sparql(block: Block) -> None:
    query = ConstructQuery.parse(block.text)
    assert query.template.patterns


@of("rspql")
def test_rspql(block: Block) -> None:
    assert parse_continuous(block.text).windows


def test_the_first_log_of_the_readme(place: Path) -> None:
    query, log = next((q, t) for q, t in pairwise(BLOCKS) if q.page == "README.md")
    assert (query.language, log.language) == ("sparql", "turtle")
    (place / "query.rq").write_text(query.text, encoding="utf-8")
    command = "construct-messages run query.rq --source queries/data/companies.ttl --format ttl"
    assert shell(command, place) == log.text


def test_the_two_commands_of_the_readme(place: Path) -> None:
    """Only what comes behind the installation runs here; `.ci/run` runs both as they stand."""
    run, test = (block.text.split(" && ") for block in BLOCKS if (block.page, block.language) == ("README.md", "sh"))
    assert run[:2] == ["python3 -m venv .venv", ".venv/bin/pip install ."]
    assert test == ["python3 -m venv .venv", ".venv/bin/pip install '.[test]'", ".venv/bin/pytest -n 3\n"]
    (main_job,) = run[2:]
    assert shell(main_job.replace(".venv/bin/", ""), place).count("# @message\n") == 5
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_five_commands_of_the_live_stream(place: Path) -> None:
    """As they stand, but for the port; the last one until the file has what was published before and after a stop."""
    commands = [block.text.strip() for block in BLOCKS if (block.page, block.language) == ("docs/streams.md", "sh")][:5]
    port = free_port()
    serve, make, publish, see, follow = (command.replace(":8080", f":{port}") for command in commands)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }

    def start(command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(command.split(), cwd=place, env=environment, stderr=subprocess.PIPE, text=True)

    def copied() -> int:
        log = place / "companies.trig"
        return log.read_text(encoding="utf-8").count("# @message\n") if log.exists() else 0

    with start(f"{serve} --bind 127.0.0.1:{port}") as server:
        try:
            assert server.stderr is not None
            assert any("listening on" in line for line in server.stderr)
            shell(make, place)
            assert shell(publish, place) == ""
            assert shell(see, place).count("# @message\n") == 2
            for count in (5, 10):
                with start(follow) as following:
                    wait_until(lambda count=count: copied() == count)
                    following.terminate()
                    assert following.wait(120) == 0
                assert shell(publish, place) == ""
        finally:
            server.terminate()


@pytest.mark.parametrize("query", sorted((ROOT / "queries").glob("*.rq")), ids=lambda path: path.name)
def test_the_queries_give_messages(query: Path, place: Path) -> None:
    log = shell(f"construct-messages run queries/{query.name} --source queries/data/companies.ttl", place)
    assert log.startswith("# @message\n<http://dbpedia.org/resource/")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_every_option_is_documented() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    options = {
        option
        for parser in parsers(build_parser())
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    documented = set(re.findall(r"`(--[a-z-]+)", page))
    assert options == documented
    assert all(f"`{profile}`" in page for profile in PROFILES)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
def test_every_format_is_documented(format: Format) -> None:
    overview = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    (row,) = re.findall(
        rf"^\| \[{re.escape(format.name)}\]\((formats/[a-z-]+\.md)\) \| (.*) \|$", overview, re.MULTILINE
    )
    file, cells = row
    name, media_types, extensions, _, graphs, triple_terms, directions = cells.split(" | ")
    carried = (
        format.graphs,
        format.own is None or format.own.triple_terms,
        format.own is None or format.own.directions,
    )
    assert name == f"`{format.extension}`"
    assert media_types == ", ".join(f"`{media_type}`" for media_type in format.media_types)
    assert extensions == ", ".join(f"`.{extension}`" for extension in format.extensions)
    assert (graphs, triple_terms, directions) == tuple("yes" if is_carried else "no" for is_carried in carried)
    page = (ROOT / "docs" / file).read_text(encoding="utf-8")
    for said in (format.name, *format.media_types, *(f".{extension}" for extension in format.extensions)):
        assert said in page


def test_every_syntax_is_documented() -> None:
    overview = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    for syntax in SYNTAXES:
        yes_or_no = " | ".join("yes" if can else "no" for can in (syntax.triple_terms, syntax.directions))
        assert re.search(rf"^\| `{re.escape(syntax.label)}`.* \| {re.escape(yes_or_no)} \|$", overview, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target


def navigated(entries: list[object]) -> Iterator[str]:
    """The pages of a part of the site's navigation."""
    for entry in entries:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, list):
                yield from navigated(target)
            else:
                assert isinstance(target, str)
                yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_wraps_at_120(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", "<"))]
    assert [line for line in lines if len(line) > 120 and " " in line.strip()[3:]] == []


def test_every_page_is_in_the_navigation() -> None:
    """Add a new page to `nav` in mkdocs.yml; decisions are listed on their index."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {*navigated(nav)} == {page for page in pages if not page.startswith("decisions/0")}


@pytest.mark.parametrize("package", ["", ".continuous", ".feeds", ".spark", ".streams"])
def test_every_public_name_is_in_the_reference(package: str) -> None:
    """Add a new name to a page of docs/api/."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    documented = set(re.findall(r"^::: construct_messages\S*\.(\w+)$", text, re.MULTILINE))
    module = import_module(f"construct_messages{package}")
    errors = {name for name in module.__all__ if hasattr(construct_messages.errors, name)}  # a page has them all
    assert set(module.__all__) - errors - documented == set()

"""The docs have every option, format, page and name."""

import argparse
import re
from collections.abc import Iterator
from importlib import import_module

import pytest
import yaml

import construct_messages
from benchmarks.micro import NAMES
from construct_messages.cli import build_parser
from construct_messages.rdf.formats import FORMATS, SYNTAXES, Format
from construct_messages.sparql.sources.http.profiles import PROFILES
from tests.support.places import ROOT


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_every_option_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
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
    overview = (ROOT / "docs" / "reference" / "logs.md").read_text(encoding="utf-8")
    (row,) = re.findall(
        rf"^\| \[{re.escape(format.name)}\]\((formats/[a-z-]+\.md)\) \| (.*) \|$",
        overview,
        re.MULTILINE,
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
    assert (graphs, triple_terms, directions) == tuple(
        "yes" if is_carried else "no" for is_carried in carried
    )
    page = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
    for said in (
        format.name,
        *format.media_types,
        *(f".{extension}" for extension in format.extensions),
    ):
        assert said in page


def test_every_syntax_is_documented() -> None:
    overview = (ROOT / "docs" / "reference" / "logs.md").read_text(encoding="utf-8")
    for syntax in SYNTAXES:
        yes_or_no = " | ".join(
            "yes" if can else "no" for can in (syntax.triple_terms, syntax.directions)
        )
        assert re.search(
            rf"^\| `{re.escape(syntax.label)}`.* \| {re.escape(yes_or_no)} \|$",
            overview,
            re.MULTILINE,
        )


def test_benchmarks_on_the_page_exist() -> None:
    page = (ROOT / "docs" / "benchmarks" / "micro.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)(?: [^`]*)?` \| (?!measured)", page, re.MULTILINE))
    assert len(named) > 10
    assert named <= NAMES.keys()


def navigated(entries: list[object]) -> Iterator[str]:
    """The pages of a part of the site's navigation."""
    for entry in entries:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, list):
                yield from navigated(target)
            else:
                assert isinstance(target, str)
                yield target


def test_every_page_is_in_the_navigation() -> None:
    """Add a new page to `nav` in mkdocs.yml; decisions are listed on their index."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {*navigated(nav)} == {page for page in pages if not re.match(r"decisions/[0-9]", page)}


@pytest.mark.parametrize("package", ["", ".continuous", ".feeds", ".spark", ".streams"])
def test_every_public_name_is_in_the_reference(package: str) -> None:
    """Add a new name to a page of docs/reference/api/."""
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "docs" / "reference" / "api").glob("*.md")
    )
    documented = set(re.findall(r"^::: construct_messages\S*\.(\w+)$", text, re.MULTILINE))
    module = import_module(f"construct_messages{package}")
    errors = {
        name for name in module.__all__ if hasattr(construct_messages.rdf.errors, name)
    }  # a page has them all
    assert set(module.__all__) - errors - documented == set()

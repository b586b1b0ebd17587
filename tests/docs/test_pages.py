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
from tests.support.docs import BLOCKS
from tests.support.places import ROOT

COMMAND_LINE = ROOT / "docs" / "reference" / "command-line.md"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_every_option_is_documented() -> None:
    page = COMMAND_LINE.read_text(encoding="utf-8")
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


def option_table(group: argparse._ArgumentGroup) -> str:
    """The options of a group, in Markdown."""
    lines = ["| option | meaning |", "|---|---|"]
    for action in group._group_actions:
        value = "|".join(action.choices) if action.choices else action.metavar or ""
        usage = f"{', '.join(action.option_strings)} {value}".strip()
        help = (action.help or "") % {"default": action.default}
        cells = [cell.replace("|", "\\|") for cell in (f"`{usage}`", help)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def with_option_tables(page: str) -> str:
    """The page about the command line, with the tables of option classes as `run --help` shows them."""
    for parser in parsers(build_parser()):
        for group in parser._action_groups if parser.prog.endswith("messages run") else ():
            if group.title in ("messages", "requests to the source"):
                heading = f"### {group.title.capitalize()}\n\n"
                before, found, rest = page.partition(heading)
                assert found
                page = before + found + option_table(group) + rest[rest.index("\n\n") :]
    return page


def test_tables_of_options_are_those_of_their_classes() -> None:
    """`python -m tests.docs.test_pages` writes them."""
    page = COMMAND_LINE.read_text(encoding="utf-8")
    assert page == with_option_tables(page)


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


@pytest.mark.parametrize(
    "package", ["", ".options", ".continuous", ".feeds", ".spark", ".spark.terms", ".streams"]
)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    """Add a new name to a page of docs/reference/api/."""
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "docs" / "reference" / "api").glob("*.md")
    )
    documented = set(re.findall(r"^::: construct_messages\S*\.(\w+)$", text, re.MULTILINE))
    module = import_module(f"construct_messages{package}")
    errors = {
        name for name in module.__all__ if hasattr(construct_messages.errors, name)
    }  # a page has them all
    assert set(module.__all__) - errors - documented == set()


def test_guides_use_every_name_of_the_package() -> None:
    """What no guide uses is imported from its room."""
    used = {
        word
        for block in BLOCKS
        if block.language in ("python", "py") and "reference" not in block.page
        for word in re.findall(r"\w+", block.text)
    }
    assert {*construct_messages.__all__} - used == set()


if __name__ == "__main__":
    COMMAND_LINE.write_text(
        with_option_tables(COMMAND_LINE.read_text(encoding="utf-8")), encoding="utf-8"
    )

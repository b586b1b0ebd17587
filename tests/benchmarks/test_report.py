"""The report of the benchmark suite: its pages say what the rows say; the stored ones are made of the stored rows."""

from __future__ import annotations

import csv
import doctest
import html
import importlib.util
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.suite.records import Results, Row
from benchmarks.suite.report import STORED, report, text, texts
from benchmarks.suite.report.goals import goals
from benchmarks.suite.report.headline import headline, races
from benchmarks.suite.report.plots import digest, plots, stored_digest
from benchmarks.suite.report.sortable import COLUMNS, sortable
from benchmarks.suite.report.standings import fields
from benchmarks.suite.report.text import escape, share
from tests.support.benchmarks import groups, many, results, row
from tests.support.places import absent

pytestmark = pytest.mark.slow

FIGURES = st.none() | st.floats(0.001, 1e4)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
ROWS = st.builds(
    lambda name, title, reason, query, engine, size, status, seconds, counted, ours: row(
        name,
        seconds,
        title=title,
        reason=reason,
        query=query,
        engine=engine,
        size=size,
        status=status,
        first_seconds=None,
        groups=counted,
        counts_match=None if counted is None else not counted.wrong,
        group="ours" if ours else "flat",
    ),
    st.sampled_from(["a", "b", "c"]),
    NAMES,
    st.none() | NAMES,
    st.sampled_from(["star", "a|b", "<i>"]),
    st.sampled_from(["file", "virtuoso-dbpedia", "new <engine>"]),
    st.sampled_from([10_000, 100_000]),
    st.sampled_from(["ok", "failed", "timeout", "absent", "skipped"]),
    FIGURES,
    st.none()
    | st.builds(
        lambda expected, wrong: groups(expected, wrong=wrong), st.integers(0, 9), st.integers(0, 2)
    ),
    st.booleans(),
)


def stored() -> Results | None:
    path = STORED / "results.json"
    return Results.read(path) if path.exists() else None


def test_the_stored_pages_are_made_of_the_stored_results() -> None:
    """`python -m benchmarks report` writes them again."""
    for name, page in texts(stored()).items():
        assert (STORED / name).read_text(encoding="utf-8") == page, (
            f"{name}: run `python -m benchmarks report`"
        )


def test_the_stored_table_of_rows_is_that_of_the_stored_results() -> None:
    found = stored()
    if found is None:
        assert not (STORED / "results.csv").exists()
        return
    with (STORED / "results.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["competitor"], line["query"], int(line["size"])) for line in lines] == [
        (row.competitor, row.query, row.size) for row in found.rows
    ]


def test_the_stored_plots_show_the_stored_results() -> None:
    """By what they show: other versions of matplotlib draw other bytes."""
    found = stored()
    expected = (
        {} if found is None else {name: digest(plot) for name, plot in plots(fields(found)).items()}
    )
    kept = {
        path.stem: stored_digest(path.read_text(encoding="utf-8")) for path in STORED.glob("*.svg")
    }
    assert kept == expected, "run `python -m benchmarks report`"


@settings(max_examples=25)
@given(st.lists(ROWS, max_size=8))
def test_any_rows_make_pages(rows: list[Row]) -> None:
    """Rows with nulls, one size only, everything failed, names with markup: tables stay tables."""
    written = texts(results(*rows))
    page = written["index.md"]
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1, table
    of_rows = re.sub(r"<!--.*?-->|</?sup>", "", page, flags=re.DOTALL)
    assert "<" not in of_rows
    prose = [line for line in of_rows.splitlines() if not line.startswith(("|", "#"))]
    assert [line for line in prose if len(line) > 120] == []
    assert written["table.html"].count("<tr>") == len(rows) + 1


@given(st.text(max_size=20))
def test_escaped_text_has_no_markup_and_is_the_same_text(text: str) -> None:
    escaped = escape(text)
    assert html.unescape(escaped) == " ".join(text.split())
    assert not re.search(r"[\\`*_{}\[\]<>|~\n]|^\s*(?:[-+=:]|\d+[.)](?: |$))", escaped)


@pytest.mark.parametrize(
    "text",
    [
        "a|b",
        "<script>alert(1)</script>",
        "`code` *and* _more_",
        "- item",
        "1. first",
        "[a](b)",
        "&amp;",
        "# x",
    ],
)
def test_markup_in_names_is_shown(text: str) -> None:
    assert html.unescape(escape(text)) == text
    assert escape(text) != text


def test_the_examples_of_numbers_hold() -> None:
    assert doctest.testmod(text).failed == 0


def test_no_share_is_rounded_to_all_or_nothing() -> None:
    assert [share(part, 1_000_000) for part in (0, 1, 999_999, 1_000_000)] == [
        "0 %",
        "0.1 %",
        "99.9 %",
        "100 %",
    ]
    assert share(0, 0) == "–"


def test_the_headline_says_what_the_rows_say() -> None:
    rows = [
        *(
            row(seconds=2.0),
            row("cli", 1.0, peak_bytes=200 * 2**20),
            row("flat", 1.0, groups=groups(10, right=4, missing=6)),
        ),
        *(row(query="path", seconds=1.0), row("cli", 8.0, query="path", peak_bytes=50 * 2**20)),
        row("flat", None, query="path"),
    ]
    found = fields(results(*rows))
    (line,) = races(found)[2:]
    assert line == (
        "| from files | 100k | **0.50 ×** (1/2) | **0.50 ×** (1/2) | **0.50 ×** (1/2) | *Cli* | 0 / 0 |"
    )
    assert headline(found) == [
        "**Where others win.** Faster with all groups right: *Cli* (from files) in 1 of 2 pairs."
        " [What we lose](#where-we-lose).",
        "**Wrong groups.** 1 of 2 other programs lose or change groups. Of the groups expected of these, 40.0 % came"
        " right: 60.0 % missing."
        " All groups right: *Cli*.",
        "This package gave all 2,000 groups right that were expected of it, and no others.",
        "**Failures.** 0 of 2 runs of this package failed, and 1 of 4 of the others: 1 ran into the time limit.",
    ]


def test_the_server_is_compared_beside_the_command_line() -> None:
    rows = [
        row("ours-endpoint", 2.0, engine="oxigraph", results_per_second=500.0),
        row(
            "ours-server", 0.5, engine="oxigraph", results_per_second=2000.0, peak_bytes=25 * 2**20
        ),
        row("flat-shape", 100.0, engine="oxigraph", results_per_second=10.0),
    ]
    (found,) = fields(results(*rows))
    command, server = races([found])[2:]
    start = "| from an Oxigraph endpoint"
    assert command.startswith(f"{start} | 100k | **0.02 ×** (1/1) |")
    assert command.endswith("| 1.00 × (0/1) | *Flat-shape* | 0 / 0 |")
    assert server.startswith(f"{start}, through the server | 100k | **0.01 ×** (1/1) |")
    assert server.endswith("| **0.50 ×** (1/1) | *Flat-shape* | 0 / 0 |")
    assert found.served is not None
    assert found.served.served is None
    rates = {goal.what: goal.found for goal in goals([found]) if goal.wanted == "≥ 100 ×"}
    place, end = (
        "from an Oxigraph endpoint (dbpedia-shaped)",
        ": results a second, to those of Flat-shape",
    )
    assert rates == {f"{place}{end}": "50.0 ×", f"{place}, through the server{end}": "200 ×"}


def test_the_headline_hides_neither_failures_nor_wrong_groups_of_ours() -> None:
    rows = [
        *(row(seconds=None), row("cli", 1.0)),
        *(
            row(query="path", seconds=2.0, groups=groups(10, right=9, missing=1)),
            row("cli", 1.0, query="path"),
        ),
        *(row(query="tree", seconds=2.0), row("cli", 1.0, query="tree")),
    ]
    found = fields(results(*rows))
    (line,) = races(found)[2:]
    assert line == (
        "| from files | 100k | 2.00 × (0/1) | 2.00 × (0/1) | 1.00 × (0/1) | *Cli* | 0 / 2 |"
    )
    wins, _, groups_, failures = headline(found)
    assert "*Cli* (from files) in 2 of 2 pairs" in wins
    assert groups_ == "This package gave 1,009 of 1,010 groups right: 0.1 % missing."
    assert failures == "**Failures.** 1 of 3 runs of this package failed, and 0 of 3 of the others."


def test_what_a_limited_endpoint_loses_is_told() -> None:
    rows = [
        row("ours-endpoint", engine="virtuoso-dbpedia"),
        row("flat", engine="virtuoso-dbpedia", groups=groups(10, right=4, missing=6)),
        row("flat-cbd", None, engine="virtuoso-dbpedia", status="failed"),
    ]
    told = headline(fields(results(*rows)))
    assert (
        "**Unnoticed.** From a Virtuoso with DBpedia’s limits (dbpedia-shaped), 1 of 1 runs of other programs that"
        " reported success had lost or changed groups: 60.0 % of the groups were missing. Of 1 such runs of this"
        " package, 0 had."
    ) in told


def test_goals_are_met_or_missed_by_the_rows() -> None:
    rows = [
        *(
            row(seconds=1.0, results_per_second=900.0),
            row("comunica-cli", 9.0, results_per_second=100.0),
        ),
        row(size=10_000, groups=groups(100), seconds=0.05),
        row("ours-endpoint", 1.0, engine="oxigraph", results_per_second=900.0),
        row(
            "flat-shape",
            50.0,
            engine="oxigraph",
            results_per_second=10.0,
            groups=groups(1000, wrong=1),
        ),
    ]
    found = [(goal.wanted, goal.found, goal.met) for goal in goals(fields(results(*rows)))]
    assert found == [
        ("all pairs of query and size", "1 of 1", True),
        ("all pairs of query and size", "0 of 1", False),  # as much memory is not less
        ("≥ 8 ×", "9.00 ×", True),
        ("≤ 1.05", "1.30", False),
        ("≤ 0.05", "0.00", True),
        ("≥ 100 ×", "90.0 ×", False),
    ]


def test_what_is_lost_is_told_by_program_data_and_size() -> None:
    rows = [
        *(row(query="one"), row(query="two")),
        *(row("cli", 0.25, query="one"), row("cli", 4, query="two")),
        row("flat", 2, query="one", groups=groups(3, wrong=1), peak_bytes=2**20),
        *(
            row(query="three", groups=groups(3, right=1, missing=2)),
            row(query="four", seconds=None, reason="a | b"),
        ),
    ]
    page = texts(results(*rows))["index.md"]
    _, _, lost = page.partition("## Where we lose\n\n")
    assert [line for line in lost.splitlines() if line.startswith("|")][2:7] == [
        "| Ours | three | dbpedia-shaped, 100k | 1 of 3 groups right, 0 split, 2 missing, 0 merged, 0 wrong |",
        "| Ours | four | dbpedia-shaped, 100k | timeout: a &#124; b |",
        "| program | data | triples | time | time to the first | memory |",
        "| --- | --- | --: | --: | --: | --: |",
        "| Cli | from files (dbpedia-shaped) | 100k | 1 of 2: 0.25 × | 1 of 2: 0.25 × |  |",
    ]


def test_absent_competitors_are_named() -> None:
    page = texts(many())["index.md"]
    _, _, absent = page.partition("## Absent\n\n")
    assert absent.startswith(
        "Not installed where this was measured, so not compared:\n\n- Gone &#42;tool&#42;: npm i"
    )


def test_the_pages_say_where_the_rows_come_from() -> None:
    page = texts(many())["index.md"]
    for fact in (
        "| seed | 7 |",
        "| commit | 0123abc |",
        "| cores | 2 |",
        "| versions | 0.1.0 |",
        "| 30.0 s |",
    ):
        assert fact in page
    assert "python -m benchmarks run --profile default --output results.json" in page


class Table(HTMLParser):
    """Collects the elements of a page and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


def test_the_sortable_table_holds_every_row_and_loads_nothing() -> None:
    found = many()
    text = sortable(found.rows)
    table = Table(text)
    assert Counter(tag for tag, _ in table.found)["tr"] == len(found.rows) + 1
    assert len(table.all("td")) == len(found.rows) * len(COLUMNS)
    assert [head["aria-sort"] for head in table.all("th")] == ["none"] * len(COLUMNS)
    assert len(table.all("button")) == len(COLUMNS)  # reached and pressed with the keyboard
    assert not [
        name
        for _, attributes in table.found
        for name in attributes
        if name in ("src", "srcset", "onclick")
    ]
    assert not table.all("link")
    assert "//" not in re.sub(
        r"(?m)\s// .*|  // .*$", "", text.replace("<!-- ", "")
    )  # no address of another host
    assert "<oh no>" not in text


def test_a_report_is_written_with_its_results_and_without_plots_of_earlier_ones(
    tmp_path: Path,
) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        absent("matplotlib is not installed: pip install '.[bench]'")
    source, output = tmp_path / "measured.json", tmp_path / "report"
    many().write(source)
    report(source, output)
    (output / "own.svg").write_text("<svg/>")
    first = {path.name: path.read_bytes() for path in output.iterdir()}
    assert Results.read(output / "results.json") == many()
    report(source, output)
    assert {path.name: path.read_bytes() for path in output.iterdir()} == first
    replace(many(), rows=many().rows[:7]).write(source)
    report(source, output)
    assert {path.name for path in output.glob("*.svg")} == {
        "own.svg",
        "groups-dbpedia-shaped-file.svg",
    }


def test_a_missing_file_of_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        report(tmp_path / "nothing.json", tmp_path)

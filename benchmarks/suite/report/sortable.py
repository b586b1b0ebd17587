"""The table of all rows as one HTML file, which can be sorted and filtered and loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple

from benchmarks.suite.records import Row
from benchmarks.suite.report.figures import best, by_cell, cell, has_failed, is_right, measured
from benchmarks.suite.report.standings import MEASURES
from benchmarks.suite.report.text import mebibytes, number, seconds

Value = str | int | float | None


class Column(NamedTuple):
    """A column: its title, what is sorted, and how that is shown; `filters` makes a filter of its values."""

    title: str
    value: Callable[[Row], Value]
    shown: Callable[[Any], str] | None = None  # None: text
    filters: bool = False
    measure: str = ""  # whose best cell is marked


def _groups(kind: str) -> Callable[[Row], Value]:
    return lambda row: None if row.groups is None else int(getattr(row.groups, kind))


def _whole(value: float) -> str:
    return f"{value:,.0f}"


COLUMNS: Final = (
    Column("program", lambda row: row.title, filters=True),
    Column("query", lambda row: row.query, filters=True),
    Column("shape", lambda row: row.shape, filters=True),
    Column("data", lambda row: row.dataset, filters=True),
    Column("triples", lambda row: row.size, _whole, filters=True),
    Column("engine", lambda row: row.engine, filters=True),
    Column("loads", lambda row: "yes" if row.loads else "no"),
    Column("status", lambda row: row.status, filters=True),
    Column("seconds", lambda row: measured(row, MEASURES["time"]), seconds, measure="time"),
    Column(
        "first result, s",
        lambda row: measured(row, MEASURES["time to the first"]),
        seconds,
        measure="time to the first",
    ),
    Column("results/s", lambda row: measured(row, lambda row: row.results_per_second), number),
    Column("CPU s", lambda row: measured(row, lambda row: row.cpu_seconds), seconds),
    Column("MiB", lambda row: measured(row, MEASURES["memory"]), mebibytes, measure="memory"),
    Column("requests", lambda row: row.requests, _whole),
    Column("received, bytes", lambda row: row.bytes_received, _whole),
    Column("sent, bytes", lambda row: row.bytes_sent, _whole),
    *(
        Column(kind, _groups(kind), _whole)
        for kind in ("expected", "right", "split", "missing", "merged", "wrong")
    ),
    Column("reason", lambda row: row.reason),
)


def sortable(rows: Sequence[Row]) -> str:
    """Return the HTML file of all rows."""
    rivals = by_cell(rows)
    least = {
        (key, name): best(of_cell, measure)
        for key, of_cell in rivals.items()
        for name, measure in MEASURES.items()
    }
    lines = []
    for row in rows:
        cells = [_cell(row, column, least.get((cell(row), column.measure))) for column in COLUMNS]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    template = Template(Path(__file__).with_name("table.html").read_text(encoding="utf-8"))
    return template.substitute(
        FILTERS="\n".join(
            _filter(rows, index, column) for index, column in enumerate(COLUMNS) if column.filters
        ),
        HEAD="\n".join(_head(column) for column in COLUMNS),
        BODY="\n".join(lines),
    )


def _head(column: Column) -> str:
    kind = "number" if column.shown else "text"
    return (
        f'<th scope="col" class="{kind}" data-kind="{kind}" aria-sort="none">'
        f'<button type="button">{escape(column.title)}</button></th>'
    )


def _filter(rows: Sequence[Row], index: int, column: Column) -> str:
    values = {value for row in rows if (value := column.value(row)) is not None}
    options = "".join(
        f'<option value="{escape(str(value))}">{escape(column.shown(value) if column.shown else str(value))}</option>'
        for value in sorted(values)
    )
    return (
        f'<label>{escape(column.title)} <select data-column="{index}"><option value="">all</option>'
        f"{options}</select></label>"
    )


def _cell(row: Row, column: Column, least: float | None) -> str:
    value = column.value(row)
    classes = [] if column.shown else ["text"]
    text = "" if value is None else column.shown(value) if column.shown else str(value)
    if column.title == "program" and row.group == "ours":
        classes.append("ours")
    if column.measure and value is not None and is_right(row) and value == least:
        classes.append("best")
    if column.title == "status":
        if has_failed(row):
            classes.append("bad")
            text = f"✗ {text}"
        if row.counts_match is False:
            text += " ≠"
        if row.status == "ok" and row.groups is not None and not is_right(row):
            classes += [] if "bad" in classes else ["doubt"]
            text += " †"
    attributes = f' class="{" ".join(classes)}"' if classes else ""
    key = "" if value is None else f' data-value="{escape(str(value))}"'
    return f"<td{attributes}{key}>{escape(text)}</td>"

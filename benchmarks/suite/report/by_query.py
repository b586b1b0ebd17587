"""The second page of the report, `queries.md`: each query, and a table of what every competitor took for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.suite.records import Results, Row
from benchmarks.suite.report.figures import best, failure, is_right, measured
from benchmarks.suite.report.headline import capital, way
from benchmarks.suite.report.pages import LOADS, WRITTEN, joined, named
from benchmarks.suite.report.standings import MEASURES, Field, fields
from benchmarks.suite.report.text import MISSING, escape, mebibytes, seconds, size, table
from benchmarks.suite.workload import Query

_MARKS: Final = (
    "**Bold**: best of those with all groups right. †: not all groups right. ≠: another number of groups than expected."
    " ✗: failed: beyond the time limit, an error, no way to ask the query, or left out because a smaller size had"
    f" failed or taken too long. {LOADS}: loads the file itself, in the time shown."
)
_FAILURES: Final = {
    "timeout": "✗ time",
    "failed": "✗ error",
    "cannot": "✗ cannot",
    "skipped": "✗ left out",
}


def by_query(results: Results | None, queries: Sequence[Query]) -> str:
    """Return the page.

    Args:
        results: None as long as nothing has been measured.
        queries: of the suite; their texts are shown.
    """
    return joined(_page(results, {query.name: query for query in queries}))


def _page(results: Results | None, queries: dict[str, Query]) -> Iterator[str]:
    yield from ("# Benchmarks by query", WRITTEN)
    if results is None:
        yield "The queries of the [benchmark suite](index.md). There are no results yet."
    else:
        yield f"Seconds to the last result and peak memory in the [benchmark suite](index.md). {_MARKS}"
    found = [] if results is None else fields(results)
    measured_queries = {
        row.query for field in found for standing in field.standings for row in standing.rows
    }
    for name in sorted({*queries, *measured_queries}):
        query = queries.get(name)
        yield f"## {escape(query.title if query else name)}"
        if query:
            yield f"Shape: {escape(query.shape)}. File: `{query.path.name}`."
            text = "\n".join(line for line in query.text.splitlines() if not line.startswith("#"))
            yield f"```sparql\n{text.strip()}\n```"
        for field in found:
            yield from _table(field, name)


def _table(field: Field, query: str) -> Iterator[str]:
    rows = [row for standing in field.standings for row in standing.rows if row.query == query]
    if not rows:
        return
    sizes = sorted({row.size for row in rows})
    rivals = {each: [row for row in rows if row.size == each] for each in sizes}
    expected = [
        next(
            (
                f"{row.groups.expected:,} at {size(each)}"
                for row in rivals[each]
                if row.groups is not None
            ),
            None,
        )
        for each in sizes
    ]
    known = [each for each in expected if each is not None]
    yield f"{capital(way(field))}; solutions: {', '.join(known) or 'unknown'}."
    lines = []
    for standing in field.standings:
        own = {row.size: row for row in standing.rows if row.query == query}
        if own:
            cells = [
                _cell(own.get(each), rivals[each], name)
                for name in ("time", "memory")
                for each in sizes
            ]
            lines.append([named(standing), *cells, _right(list(own.values()))])
    columns = [
        "program",
        *(f"{size(each)}: {unit}" for unit in ("s", "MiB") for each in sizes),
        "groups right",
    ]
    yield "\n".join(table(columns, lines))


def _right(rows: Sequence[Row]) -> str:
    ended = [row.groups for row in rows if row.status == "ok" and row.groups is not None]
    if not ended:
        return MISSING
    return (
        f"{sum(groups.right for groups in ended):,} of {sum(groups.expected for groups in ended):,}"
    )


def _cell(row: Row | None, rivals: Sequence[Row], name: str) -> str:
    if row is None:
        return ""
    if row.status != "ok":
        return _FAILURES[failure(row) or row.status] if name == "time" else ""
    value = measured(row, MEASURES[name])
    text = mebibytes(value) if name == "memory" else seconds(value)
    if value is not None and is_right(row) and value == best(rivals, MEASURES[name]):
        return f"**{text}**"
    if name == "time":
        text += " ≠" if row.counts_match is False else ""
        text += " †" if row.groups is not None and not is_right(row) else ""
    return text

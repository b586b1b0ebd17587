"""The first page of the report, `index.md`: what came out, in short and by how results are got."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from benchmarks.suite.records import Results, Row
from benchmarks.suite.report.figures import has_failed, is_right
from benchmarks.suite.report.goals import goals
from benchmarks.suite.report.headline import capital, headline, races, way
from benchmarks.suite.report.plots import KINDS, Plot, file_name
from benchmarks.suite.report.standings import LARGE, MEASURES, Field, Loss, Standing, fields, losses
from benchmarks.suite.report.text import (
    escape,
    mebibytes,
    number,
    seconds,
    share,
    size,
    table,
    times,
    wrapped,
)

WRITTEN: Final = "<!-- written by `python -m benchmarks report`; do not edit -->"
LOADS: Final = "⇣"

_INTRODUCTION: Final = """\
The job is always the same: **give me the results of this CONSTRUCT query one by one**. SPARQL gives one graph for all
of them, so people regroup it, ask again for each entity, or write their own code around a SELECT. The suite runs these
ways and this package on the same queries and data, measures time and memory of all their processes, and compares every
group of triples that comes out with the expected one.
"""

_UNMEASURED: Final = """\
**No results are stored yet.** `python -m benchmarks run` measures, and `python -m benchmarks report` writes these pages
from what it measured.
"""

_METHOD: Final = f"""\
## What is measured

- **Time** is from the start of a program to its end, **first result** until the first group is on its output. Each run
  is a new process: starting is included, and so is loading where a program reads the file itself ({LOADS}).
- **Memory** is the peak of all processes of a program, without the endpoint that it asks.
- **Groups.** For each solution of a query, a reference evaluator, which shares no code with this package, makes the
  triples that belong together. An expected group is *right* if a delivered one equals it, blank nodes up to
  isomorphism and numbers by their value, *split* if it was only delivered in pieces, and *missing* otherwise. A
  delivered group is *merged* if it contains several expected ones, and *wrong* if it is none of these: too much, too
  little, or once too often.
- **Failures** are errors, runs beyond the time limit, queries that a program has no way to ask, runs that were left out
  because a smaller size had failed or taken too long, and other numbers of groups than expected. In a **penalised
  mean** each counts as twice the time limit.
- **Ratios** are geometric means over the pairs of query and size that both programs finished, so a program that fails
  where it is slow looks better in them than it is. Programs that read a file are compared with this package over
  files, programs that ask an endpoint with this package over the same endpoint.
- **Growth** is the exponent *e* of *time = c · solutionsᵉ*, fitted with a factor *c* for each query: 1 is linear, 0 is
  constant. What a program takes to start makes small sizes slower, and so the exponent smaller.
"""

_REPEAT: Final = """\
## Run it yourself

```sh
{commands}
```

`run` makes the data from a seed, runs every program that is installed, names the others, and goes on where it was
interrupted. `--profile smoke` takes a few minutes, `default` twenty (at a million triples, ten queries by the programs
that get all groups right), `million` (all queries by all at a million triples) an hour, and `full` hours.
`--real FOLDER` adds real DBpedia files.
`--endpoint https://dbpedia.org/sparql --contact ADDRESS` asks a live endpoint a few queries, one request a second;
nothing else needs a network. `report` writes these pages. `make benchmark-suite` does both.
"""


def index(results: Results | None, plots: Mapping[str, Plot]) -> str:
    """Return the page.

    Args:
        results: None as long as nothing has been measured.
        plots: by the name of their file without `.svg`.
    """
    parts = _empty() if results is None else _full(results, plots)
    return joined(parts)


def joined(parts: Iterator[str]) -> str:
    """Return a page of blocks with an empty line between them; paragraphs and lists are wrapped."""
    return "\n".join(_block(part) for part in parts)


def _block(part: str) -> str:
    if part.endswith("\n"):  # as it is
        return part
    return f"{part if part.startswith(('|', '#', '`', '<')) else wrapped(part)}\n"


def named(standing: Standing) -> str:
    """Return a competitor's title, ours in bold, with a mark if it loads the file itself."""
    name = f"{escape(standing.title)}{f' {LOADS}' if standing.rows[0].loads else ''}"
    return f"**{name}**" if standing.is_ours else name


def _empty() -> Iterator[str]:
    yield from ("# Benchmarks", WRITTEN, _INTRODUCTION, _UNMEASURED)
    yield (
        "See [what is compared](competitors.md), the [data](data.md) and [micro-benchmarks](micro.md) of this package’s"
        " parts."
    )
    yield from (_METHOD, _repeat("default"))


def _full(results: Results, plots: Mapping[str, Plot]) -> Iterator[str]:
    found = fields(results)
    yield from ("# Benchmarks", WRITTEN, _INTRODUCTION, "## In short")
    if compared := races(found):
        yield (
            "This package beside the best other program with all groups right, query by query: what it takes, where the"
            " other takes 1, and in how many of the queries it takes less. **Bold**: it is ahead. Last: how many"
            " queries only this package, or only others, got right. Through the server: it was started before, as the"
            " endpoint was, where the command line and all others start anew."
        )
        yield "\n".join(compared)
    yield "\n".join(f"- {sentence}" for sentence in headline(found))
    if _is_busy(results):
        yield (
            f"**The machine may have been busy**: its load average was {results.machine['load']} when this was started."
        )
    yield (
        "Each run: [in a table to sort and filter](table.html), as [JSON](results.json) and as [CSV](results.csv). See"
        " also [what is compared](competitors.md), the [data](data.md) and [micro-benchmarks](micro.md) of this"
        " package’s parts."
    )
    for field in found:
        yield f"## {capital(way(field))}"
        yield from _overview(field)
        yield from _groups(field)
        for name in (file_name(kind, field) for kind in KINDS):
            if name in plots:
                yield f"![{plots[name].title}, {way(field)}]({name}.svg)"
    yield from _where_we_lose(found, results.rows)
    yield from _goals(found)
    yield from _absent(results.rows)
    yield from (_METHOD, _repeat(results.profile))
    yield from _provenance(results)


def _is_busy(results: Results) -> bool:
    load = results.machine.get("load")
    return isinstance(load, int | float) and load >= 1


def _repeat(profile: str) -> str:
    commands = (
        "pip install '.[bench]'",
        f"python -m benchmarks run --profile {profile} --output results.json",
        "python -m benchmarks report results.json",
    )
    return _REPEAT.format(commands="\n".join(commands))


def _overview(field: Field) -> Iterator[str]:
    at = LARGE if LARGE in field.sizes else field.sizes[-1]
    shown = [*[seconds] * (len(field.sizes) + 1), mebibytes]
    figures = [
        [
            *(standing.penalised_mean(each) for each in field.sizes),
            standing.median(at, MEASURES["time to the first"]),
            standing.median(at, MEASURES["memory"]),
        ]
        for standing in field.standings
    ]
    faultless = [
        values for each, values in zip(field.standings, figures, strict=True) if each.gets_all_right
    ]
    least = [
        min((value or math.inf for value in column), default=None)
        for column in zip(*faultless, strict=True)
    ]
    rows = []
    for standing, values in zip(field.standings, figures, strict=True):
        cells = [show(value) for show, value in zip(shown, values, strict=True)]
        if standing.gets_all_right:
            best = [value == smallest for value, smallest in zip(values, least, strict=True)]
            cells = [
                f"**{cell}**" if is_best else cell
                for cell, is_best in zip(cells, best, strict=True)
            ]
        mark = "" if standing.gets_all_right or standing.groups is None else " †"
        rows.append(
            [
                f"{named(standing)}{mark}",
                f"{standing.failures.total()} of {len(standing.rows)}",
                *cells,
            ]
        )
    means = [f"{size(each)}: mean s" for each in field.sizes]
    yield "\n".join(
        table(["program", "failures", *means, f"{size(at)}: first s", f"{size(at)}: MiB"], rows)
    )
    loads = f" {LOADS}: loads the file itself, in the time shown." if field.engine == "file" else ""
    yield (
        "Means over all queries, failures penalised; first results and memory are medians of the queries that ended."
        f" **Bold**: best of those with all groups right. †: not all groups right.{loads}"
    )


def _groups(field: Field) -> Iterator[str]:
    rows = []
    for standing in field.standings:
        groups = standing.groups
        if groups is None:
            continue
        ended = [row for row in standing.rows if row.status == "ok" and row.groups is not None]
        shares = (
            share(part, groups.expected) for part in (groups.right, groups.split, groups.missing)
        )
        unnoticed = f"{sum(not is_right(row) for row in ended)} of {len(ended)}"
        rows.append(
            [
                named(standing),
                f"{groups.expected:,}",
                *shares,
                f"{groups.merged:,}",
                f"{groups.wrong:,}",
                unnoticed,
            ]
        )
    if rows:
        yield "Groups in the runs that reported success; the last column counts those that had lost or changed some:"
        columns = [
            "program",
            "expected",
            "right",
            "split",
            "missing",
            "merged",
            "wrong",
            "unnoticed",
        ]
        yield "\n".join(table(columns, rows))


def _where_we_lose(found: Sequence[Field], rows: Sequence[Row]) -> Iterator[str]:
    yield "## Where we lose"
    own = [row for row in rows if row.group == "ours" and row.status != "absent"]
    bad = [row for row in own if has_failed(row) or (row.groups is not None and not is_right(row))]
    if bad:
        yield "Failures and wrong groups of this package:"
        lines = [
            [
                escape(row.title),
                escape(row.query),
                f"{escape(row.dataset)}, {size(row.size)}",
                _what(row),
            ]
            for row in bad
        ]
        yield "\n".join(table(["program", "query", "data", "what"], lines, left=4))
    elif own:
        yield f"None of the {len(own):,} runs of this package failed, and none gave a wrong group."
    lost = [loss for loss in losses(found) if loss.right == loss.cells]
    if not lost:
        yield (
            "No other program with all groups right took less time, to the first result or the last, or less memory."
        )
        return
    yield (
        "Who took less than this package with all groups right: in how many of the queries that both finished, and the"
        " ratio of theirs to ours in these."
    )
    of_line: dict[tuple[str, str, int], dict[str, Loss]] = defaultdict(dict)
    for loss in lost:
        of_line[loss.title, way(loss.field), loss.size][loss.measure] = loss
    lines = [
        [escape(title), data, size(triples), *(_lost(measures.get(name)) for name in MEASURES)]
        for (title, data, triples), measures in of_line.items()
    ]
    yield "\n".join(table(["program", "data", "triples", *MEASURES], lines, left=2))


def _lost(loss: Loss | None) -> str:
    if loss is None:
        return ""
    return f"{loss.cells} of {loss.compared}: {times(loss.factor)}"


def _what(row: Row) -> str:
    if row.status != "ok":
        return escape(f"{row.status}: {row.reason}" if row.reason else row.status)
    groups = row.groups
    if groups is None:
        return "another number of groups than expected"
    return (
        f"{groups.right:,} of {groups.expected:,} groups right, {groups.split:,} split, {groups.missing:,} missing,"
        f" {groups.merged:,} merged, {groups.wrong:,} wrong"
    )


def _goals(found: Sequence[Field]) -> Iterator[str]:
    if reached := goals(found):
        yield "## Goals"
        lines = [
            [capital(goal.what), goal.wanted, goal.found, "met" if goal.met else "**missed**"]
            for goal in reached
        ]
        yield "\n".join(table(["goal", "wanted", "found", ""], lines))


def _absent(rows: Sequence[Row]) -> Iterator[str]:
    absent = {row.title: row.reason for row in rows if row.status == "absent"}
    if absent:
        yield "## Absent"
        yield "Not installed where this was measured, so not compared:"
        yield "\n".join(
            f"- {escape(title)}{f': {escape(reason)}' if reason else ''}"
            for title, reason in absent.items()
        )


def _provenance(results: Results) -> Iterator[str]:
    yield "## Machine and versions"
    limits = ", ".join(f"{number(limit)} s" for limit in dict.fromkeys(results.limits.values()))
    facts = {
        **{
            name.removesuffix("_bytes"): _fact(name, value)
            for name, value in results.machine.items()
        },
        "profile": results.profile,
        "time limit of a run": limits,
        "seed": results.seed,
        "commit": results.commit,
        "started": results.started,
        "versions": ", ".join(dict.fromkeys(results.versions.values())),
    }
    yield "\n".join(
        table(
            ["fact", "value"],
            [[escape(str(each)) for each in fact] for fact in facts.items()],
            left=2,
        )
    )


def _fact(name: str, value: object) -> str:
    return (
        f"{mebibytes(value)} MiB"
        if name.endswith("_bytes") and isinstance(value, int)
        else str(value)
    )

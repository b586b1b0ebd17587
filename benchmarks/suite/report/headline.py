"""What stands on top of the report, each figure computed from the rows. What the rows do not hold is not claimed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.suite.records import Groups, Row
from benchmarks.suite.report.figures import Ratio, has_failed, is_right, total
from benchmarks.suite.report.standings import MEASURES, Field, Standing, losses, race
from benchmarks.suite.report.text import MISSING, escape, listed, share, size, table, times

# how results are got, in the words of the report
ENGINES: Final = {
    "file": "from files",
    "oxigraph": "from an Oxigraph endpoint",
    "virtuoso-dbpedia": "from a Virtuoso with DBpedia’s limits",
    "endpoint": "from a live endpoint",
}


THROUGH_SERVER: Final = ", through the server"


def way(field: Field) -> str:
    """Return how the results of a field were got, and from what data."""
    return f"{_engine(field.engine)} ({escape(field.dataset)})"


def _engine(name: str) -> str:
    return ENGINES.get(name) or escape(name)


def capital(text: str) -> str:
    """Return text with a capital first letter."""
    return text[:1].upper() + text[1:]


def headline(fields: Sequence[Field]) -> list[str]:
    """Return the sentences, as Markdown."""
    sentences: list[str] = []
    if any(field.others for field in fields):
        sentences += [*_wins(fields), *_groups(fields), *_silent(fields), _failures(fields)]
    return [*sentences, *_growth(fields)]


def races(fields: Sequence[Field]) -> list[str]:
    """Return the lines of a table: ours to the best other with all groups right, by how results are got and size."""
    rows: list[list[str]] = []
    datasets = {field.dataset for field in fields}
    for field in fields:
        name = way(field) if len(datasets) > 1 else _engine(field.engine)
        rows += _races(name, field)
        if served := field.served:
            rows += _races(f"{name}{THROUGH_SERVER}", served)
    columns = ["", "triples", *MEASURES, "fastest other, mostly", "only we / others right"]
    return table(columns, rows) if rows else []


def _races(name: str, field: Field) -> Iterator[list[str]]:
    for triples in field.sizes:
        found = [race(field, measure, [triples]) for measure in MEASURES.values()]
        time = found[0]
        if time.ratio or time.alone or time.failed:
            ratios = [
                MISSING if each.ratio is None else _ours_to_theirs(each.ratio) for each in found
            ]
            rival = ", ".join(_named(title) for title, _ in time.rivals.most_common(1)) or MISSING
            yield [name, size(triples), *ratios, rival, f"{time.alone} / {time.failed}"]


def _ours_to_theirs(ratio: Ratio) -> str:
    text = f"{times(1 / ratio.mean)}"
    return f"{f'**{text}**' if ratio.mean > 1 else text} ({ratio.ahead}/{ratio.cells})"


def _named(title: str) -> str:
    return f"*{escape(title)}*"  # titles have commas


def _wins(fields: Sequence[Field]) -> Iterator[str]:
    """Who was faster with all groups right, over all sizes."""
    cells: dict[tuple[str, str], int] = Counter()
    for loss in losses(fields):
        if loss.measure == "time" and loss.right:
            cells[loss.title, loss.field.engine] += loss.right
    compared: dict[tuple[str, str], int] = Counter()
    for field in fields:
        for standing in field.others:
            time = standing.beside_ours(MEASURES["time"])
            compared[standing.title, field.engine] += time.cells if time else 0
    winners = sorted(cells, key=lambda key: -cells[key])
    parts = [
        f"{_named(title)} ({_engine(engine)}) in {cells[title, engine]} of {compared[title, engine]} pairs"
        for title, engine in winners[:3]
    ]
    if len(winners) > 3:
        parts.append(f"{len(winners) - 3} more in fewer pairs")
    if parts:
        yield f"**Where others win.** Faster with all groups right: {listed(parts)}. [What we lose](#where-we-lose)."
    else:
        yield "**Where others win.** No other program was faster with all groups right. [What we lose](#where-we-lose)."


def _rows(standings: Sequence[Standing]) -> list[Row]:
    return [row for standing in standings for row in standing.rows]


def _groups(fields: Sequence[Field]) -> Iterator[str]:
    checked: dict[str, list[Standing]] = defaultdict(list)
    for field in fields:
        for standing in field.others:
            if standing.groups is not None:
                checked[standing.title].append(standing)
    if checked:
        faulty = {
            title: of
            for title, of in checked.items()
            if not all(each.gets_all_right for each in of)
        }
        faultless = [_named(title) for title in checked if title not in faulty]
        sentence = f"**Wrong groups.** {len(faulty)} of {len(checked)} other programs lose or change groups"
        delivered = total([row for of in faulty.values() for row in _rows(of)])
        if delivered is not None:
            right = share(delivered.right, delivered.expected)
            sentence += (
                f". Of the groups expected of these, {right} came right: {_faults(delivered)}"
            )
        right = (
            f"All groups right: {listed(faultless)}" if faultless else "None gives all groups right"
        )
        yield f"{sentence}. {right}."
    own = total(_rows([each for field in fields for each in field.standings if each.is_ours]))
    if own is not None:
        exact = own.right == own.expected and not own.wrong
        yield (
            f"This package gave all {own.expected:,} groups right that were expected of it, and no others."
            if exact
            else f"This package gave {own.right:,} of {own.expected:,} groups right: {_faults(own)}."
        )


def _faults(groups: Groups) -> str:
    lacking = [
        f"{share(each, groups.expected)} {kind}"
        for kind in ("split", "missing")
        if (each := getattr(groups, kind))
    ]
    instead = [
        f"{each:,} {kind}" for kind in ("merged", "wrong") if (each := getattr(groups, kind))
    ]
    came = [f"{listed(instead)} groups came instead"] if instead else []
    return (
        "; ".join([*([listed(lacking)] if lacking else []), *came])
        or "not as many came as expected"
    )


def _silent(fields: Sequence[Field]) -> Iterator[str]:
    """The groups that are lost without notice at an endpoint that limits its answers."""
    for field in fields:
        ours, others = (
            [
                row
                for row in _rows(field.standings)
                if (row.group == "ours") == own and row.status == "ok" and row.groups
            ]
            for own in (True, False)
        )
        found = total(others)
        if field.engine == "virtuoso-dbpedia" and found is not None:
            faulty, own_faulty = (sum(not is_right(row) for row in rows) for rows in (others, ours))
            yield (
                f"**Unnoticed.** {capital(way(field))}, {faulty} of {len(others)} runs of other programs that reported"
                f" success had lost or changed groups: {share(found.missing, found.expected)} of the groups were"
                f" missing. Of {len(ours)} such runs of this package, {own_faulty} had."
            )


_FAILED: Final = {
    "timeout": "ran into the time limit",
    "failed": "ended with an error",
    "cannot": "had no way to ask the query",
    "count": "gave another number of groups than expected",
    "skipped": "were left out because a smaller size had failed or taken too long",
}


def _failures(fields: Sequence[Field]) -> str:
    own, others = (
        _rows([each for field in fields for each in field.standings if each.is_ours == ours])
        for ours in (True, False)
    )
    kinds = Counter[str]()
    for field in fields:
        for standing in field.others:
            kinds.update(standing.failures)
    sentence = f"**Failures.** {sum(map(has_failed, own)):,} of {len(own):,} runs of this package failed, and"
    sentence += f" {sum(map(has_failed, others)):,} of {len(others):,} of the others"
    parts = [f"{kinds[kind]:,} {words}" for kind, words in _FAILED.items() if kinds[kind]]
    return f"{sentence}: {listed(parts)}." if parts else f"{sentence}."


def _growth(fields: Sequence[Field]) -> Iterator[str]:
    parts = []
    for field in fields:
        if field.ours is not None:
            time, memory = (field.ours.fit(MEASURES[name]) for name in ("time", "memory"))
            if time is not None and memory is not None:
                powers = (f"*n*<sup>{fit.exponent:.2f}</sup>" for fit in (time, memory))
                parts.append("{}, time as {} and memory as {}".format(way(field), *powers))
    if parts:
        yield f"**Growth** of this package with the number *n* of solutions: {'; '.join(parts)}."

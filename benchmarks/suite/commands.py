"""The subcommands `run` and `data` of the suite: from their arguments to a session and its progress."""

from __future__ import annotations

import argparse
import compileall
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import construct_messages
from benchmarks.suite.competitors.table import COMPETITORS
from benchmarks.suite.datasets import Dataset, generated
from benchmarks.suite.live import QUERIES, live, polite
from benchmarks.suite.real import place_of, real
from benchmarks.suite.records import Row
from benchmarks.suite.runs import PROFILES, Session, opened
from benchmarks.suite.truth import Reference
from benchmarks.suite.values import table as values
from benchmarks.suite.workload import expected, queries

_Named = TypeVar("_Named")
_BENCHMARKS = Path(__file__).parents[1]
_RESULTS = _BENCHMARKS / "results"


def run(arguments: argparse.Namespace) -> None:
    """Runs the suite.

    Raises:
        SystemExit: a name is unknown, or the output has rows of another run.
    """
    profile = PROFILES[arguments.profile]
    if arguments.sizes:
        profile = replace(profile, sizes=tuple(arguments.sizes))
    output = (
        arguments.output
        or _RESULTS / f"suite-{'endpoint' if arguments.endpoint else arguments.profile}.json"
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    competitors = _chosen("competitor", {each.name: each for each in COMPETITORS}, arguments.only)
    asked = _chosen("query", {query.name: query for query in queries()}, arguments.queries)
    results = opened(output, arguments.profile, arguments.seed, competitors, fresh=arguments.fresh)
    session = Session(results, output, profile, competitors, asked)
    for folder in (_BENCHMARKS, Path(construct_messages.__path__[0])):
        compileall.compile_dir(folder, quiet=1)  # as pip does for what it installs
    if arguments.endpoint:
        _live(session, arguments)
    else:
        place = place_of(arguments.real)
        generated_ones = [generated(size, arguments.seed) for size in sorted(profile.sizes)]
        _run_with_progress(session, [*generated_ones, *(real(place) if place else ())])
    counts = {
        status: sum(row.status == status for row in results.rows)
        for status in {r.status for r in results.rows}
    }
    print(
        f"{output}: {len(results.rows)} rows, "
        + ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
    )
    chosen = arguments.endpoint or arguments.only or arguments.queries
    if profile.documents and not chosen:
        values.run(profile.sizes[0], arguments.seed, profile.documents, check=arguments.check)
    if arguments.check and (found := list(findings(results.rows))):
        raise SystemExit("\n".join(["not as it should be:", *found]))


def findings(rows: Iterable[Row]) -> Iterator[str]:
    """What is wrong with the suite itself: a result of this package, or a program that is there and does not run."""
    for row in rows:
        cannot = (row.reason or "").startswith("cannot: ")  # what its method has no way to ask for
        failed = row.status in ("failed", "timeout") and not cannot
        capped = row.engine == "virtuoso-dbpedia"  # whose terms are not always those of the data
        if failed or (
            row.group == "ours" and not capped and row.groups and row.groups.right != row.delivered
        ):
            yield _line(row)


def _live(session: Session, arguments: argparse.Namespace) -> None:
    if not arguments.contact:
        raise SystemExit(
            "say by --contact whom the endpoint's operators can ask: a mail or web address"
        )
    few = arguments.queries or QUERIES
    handed_on = polite(arguments.endpoint, arguments.contact, arguments.every)
    with tempfile.TemporaryDirectory() as place, handed_on as url:
        queries = [query for query in session.queries if query.name in few]
        dataset, session.queries = live(url, queries, Path(place))
        _run_with_progress(session, [dataset])


def _run_with_progress(session: Session, datasets: Sequence[Dataset]) -> None:
    """Runs a session, and shows its progress and the rows that failed."""
    session.results.limits |= {str(dataset.size): session.profile.limit for dataset in datasets}
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        total = sum(len(session.planned(dataset)) for dataset in datasets)
        rows = progress.add_task("", total=total, completed=len(session.results.rows))

        def show_row(row: Row) -> None:
            progress.update(rows, advance=1, description=f"{row.size:,} triples, {row.query}")
            if row.status in ("failed", "timeout") or row.counts_match is False:
                progress.console.print(_line(row), highlight=False, soft_wrap=True)

        session.on_row = show_row
        try:
            session.run(datasets)
        except KeyboardInterrupt:
            raise SystemExit(
                f"interrupted: the same command continues after {len(session.results.rows)} rows"
            ) from None


def data(arguments: argparse.Namespace) -> None:
    """Writes the data sets, and prints how many solutions and messages each query has.

    Raises:
        SystemExit: the numbers are not those that are expected for the seed.
    """
    wrong = []
    for size in PROFILES[arguments.profile].sizes:
        path = generated(size, arguments.seed).path()
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
        reference, known = Reference(path), expected(size, arguments.seed)
        for query in queries():
            counts = reference.counts(query.text)
            print(f"  {query.name:16}{counts[0]:10,} solutions{counts[1]:10,} messages")
            if known and known.get(query.name) != counts:
                wrong.append(
                    f"{size:,} triples, {query.name}: {counts} instead of {known.get(query.name)}"
                )
    if wrong:
        raise SystemExit("\n".join(["not as expected:", *wrong]))


def _line(row: Row) -> str:
    if row.groups is None:
        return f"{row.size:,} {row.query}: {row.competitor}: {row.status}: {row.reason}"
    found = row.groups
    return (
        f"{row.size:,} {row.query}: {row.competitor}: {row.delivered} groups, of {found.expected} {found.right} right, "
        f"{found.split} split, {found.missing} missing; {found.merged} merged, {found.wrong} wrong"
    )


def _chosen(what: str, known: dict[str, _Named], names: list[str] | None) -> list[_Named]:
    for name in names or ():
        if name not in known:
            raise SystemExit(f"there is no {what} {name!r}; known are {', '.join(known)}")
    return [each for name, each in known.items() if not names or name in names]

"""Runs the programs for documents and rows over an endpoint, and prints what each delivered, and at what cost.

The endpoint is the suite's Oxigraph server over its DBpedia-shaped data. Rates are per second of CPU of all processes
of a program, without the endpoint: what else the machine does changes them least.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks import harness
from benchmarks.suite.competitors.table import ENVIRONMENT, npm, python
from benchmarks.suite.datasets import dbpedia_shaped
from benchmarks.suite.engines import engine
from benchmarks.suite.truth import Reference, select
from benchmarks.suite.values.truth import (
    Documents,
    Rows,
    compare_documents,
    compare_rows,
    expected_documents,
    expected_rows,
)
from benchmarks.suite.workload import FOLDER as QUERIES
from construct_messages import ConstructQuery

TASKS: Final = Path(__file__).parent / "tasks"
DOCUMENTS: Final = ("star", "tree", "optional", "ages")
_PACKAGE: Final = __name__.rpartition(".")[0]
_OURS: Final = "construct-messages"


@dataclass(frozen=True)
class Asked:
    """What a program is asked.

    Args:
        query: the file of the query.
        endpoint: its URL.
        output: the file for a frame of pandas.
        task: the file of `tasks/`, for documents.
        root: the variable of the entities, for documents.
        frame: the file of the frame, for documents.
    """

    query: Path
    endpoint: str
    output: Path
    task: Path = Path()
    root: str = ""
    frame: Path = Path()


@dataclass(frozen=True)
class Program:
    """A way to documents or rows.

    Args:
        title: as in the tables.
        version: its version, or None where it is not installed.
        command: the program and its arguments.
    """

    title: str
    version: Callable[[], str | None]
    command: Callable[[Asked], list[str]]


@dataclass(frozen=True)
class Outcome:
    """A line of the tables.

    Args:
        found: None where the program is absent or failed.
        reason: why.
    """

    task: str
    program: str
    found: Documents | Rows | None
    reason: str | None = None
    cpu_seconds: float = 0.0
    seconds: float = 0.0
    peak_bytes: int = 0


def _run(asked: Asked) -> list[str]:
    command = [sys.executable, "-m", "construct_messages", "run", str(asked.query), "--quiet"]
    source = ["--source", asked.endpoint, "--profile", "oxigraph", "--group-by", f"?{asked.root}"]
    return [*command, *source, "--format", "json", "--frame", str(asked.frame)]


def _module(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"{_PACKAGE}.{module}", *map(str, arguments)]


def _node(name: str, *arguments: object) -> list[str]:
    return ["node", str(Path(__file__).with_name(name)), *map(str, arguments)]


def _rows(way: str) -> Callable[[Asked], list[str]]:
    return lambda asked: _module("rows", way, asked.query, asked.endpoint, asked.output)


FOR_DOCUMENTS: Final = (
    Program(f"{_OURS} run --frame", python("construct-messages"), _run),
    Program(
        "Comunica CONSTRUCT + jsonld.js",
        npm("@comunica/query-sparql-file", "jsonld", "n3"),
        lambda asked: _node("comunica.cjs", asked.task, asked.query, asked.endpoint),
    ),
    Program(
        "SPARQLWrapper, rdflib + PyLD",
        python("SPARQLWrapper", "rdflib", "PyLD"),
        lambda asked: _module("framing", asked.task, asked.query, asked.endpoint),
    ),
    Program(
        "LDkit",
        npm("ldkit"),
        lambda asked: _node("ldkit.cjs", asked.task, asked.endpoint),
    ),
)
FOR_ROWS: Final = (
    Program(f"{_OURS}, to_pandas", python("construct-messages", "pandas"), _rows("ours")),
    Program(
        "SPARQLWrapper + conversion by hand",
        python("SPARQLWrapper", "pandas"),
        _rows("sparqlwrapper"),
    ),
    Program("rdflib + toPython", python("rdflib", "pandas"), _rows("rdflib")),
    Program("sparql-dataframe", python("sparql-dataframe", "pandas"), _rows("csv")),
)


def measure(triples: int, seed: int, documents: Sequence[str] = DOCUMENTS) -> Iterator[Outcome]:
    """Runs all programs that are installed, once each.

    Args:
        triples: size of the data set.
        seed: of the data set.
        documents: the queries that are asked for documents.
    """
    data = dbpedia_shaped(triples, seed)
    reference = Reference(data)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "engine").mkdir()
        with engine("oxigraph", data, place / "engine") as endpoint:
            for name in documents:
                yield from _documents(reference, name, endpoint, place)
            yield from _all_rows(reference, endpoint, place)


def _documents(reference: Reference, name: str, endpoint: str, place: Path) -> Iterator[Outcome]:
    task = TASKS / f"{name}.json"
    known = json.loads(task.read_text(encoding="utf-8"))
    own = TASKS / f"{name}.rq"
    query = own if own.exists() else QUERIES / own.name
    frame = place / f"{name}-frame.json"
    frame.write_text(json.dumps(known["frame"]), encoding="utf-8")
    asked = Asked(query, endpoint, place / "output", task, known["root"], frame)
    expected = expected_documents(
        reference, query.read_text(encoding="utf-8"), known["root"], known["frame"]
    )

    def compared() -> Documents:
        with asked.output.open("rb") as lines:
            return compare_documents(expected, lines)

    for program in FOR_DOCUMENTS:
        yield _outcome(name, program, asked, asked.output, compared)


def _all_rows(reference: Reference, endpoint: str, place: Path) -> Iterator[Outcome]:
    construct = (TASKS / "rows.rq").read_text(encoding="utf-8")
    names = ConstructQuery.parse(construct).template.variables
    selected = select(construct, " ".join(f"?{name}" for name in names))
    (place / "rows.rq").write_text(selected, encoding="utf-8")
    expected = expected_rows(reference.solutions(construct), names)
    for number, program in enumerate(FOR_ROWS):
        query = TASKS / "rows.rq" if program is FOR_ROWS[0] else place / "rows.rq"
        asked = Asked(query, endpoint, place / f"frame{number}")

        def compared(path: Path = asked.output) -> Rows:
            return compare_rows(expected, names, path)

        yield _outcome("rows", program, asked, place / "output", compared)


def _outcome(
    task: str,
    program: Program,
    asked: Asked,
    output: Path,
    compared: Callable[[], Documents | Rows],
) -> Outcome:
    if program.version() is None:
        return Outcome(task, program.title, None, "absent")
    done = harness.run(program.command(asked), output=output, env=os.environ | ENVIRONMENT)
    if done.ending != "ok":
        last = done.stderr.strip().rpartition("\n")[2]
        reason = last if last.startswith("cannot: ") else f"failed: {last or done.code}"
        return Outcome(task, program.title, None, reason)
    return Outcome(
        task, program.title, compared(), None, done.cpu_seconds, done.seconds, done.peak_bytes
    )


def findings(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What is wrong with the suite itself: a result of this package, or a program that is there and does not run."""
    for each in outcomes:
        if each.reason is not None and each.reason.startswith("failed"):
            yield f"{each.task}: {each.program}: {each.reason}"
        elif each.program.startswith(_OURS) and each.found is not None:
            found = each.found
            whole = not isinstance(found, Rows) or found.columns == found.all_columns
            if found.right != found.expected or not whole:
                yield f"{each.task}: {each.program}: {found}"


def tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    """A table for the documents of each query, and one for the rows."""
    for task in dict.fromkeys(each.task for each in outcomes):
        ours = [each for each in outcomes if each.task == task]
        kind = Rows if task == "rows" else Documents
        heads = (
            ("rows right", "columns right", "rows/s")
            if kind is Rows
            else ("right", "mixed", "wrong", "missing", "documents/s")
        )
        expected = next((each.found.expected for each in ours if each.found is not None), 0)
        table = Table(title=f"{task}: {expected:,} expected")
        table.add_column("")
        for head in (*heads, "CPU", "memory"):
            table.add_column(head, justify="right")
        for each in ours:
            table.add_row(each.program, *_cells(each))
        yield table


def _cells(outcome: Outcome) -> list[str]:
    found = outcome.found
    if found is None:
        return [(outcome.reason or "").partition(":")[0]]
    if isinstance(found, Rows):
        counts = [f"{found.right:,}", f"{found.columns} of {found.all_columns}"]
        delivered = found.expected
    else:
        counts = [f"{n:,}" for n in (found.right, found.mixed, found.wrong, found.missing)]
        delivered = found.right + found.mixed + found.wrong
    rate = f"{delivered / outcome.cpu_seconds:,.0f}"
    return [*counts, rate, f"{outcome.cpu_seconds:.1f} s", f"{outcome.peak_bytes / 2**20:,.0f} MiB"]


def run(
    triples: int, seed: int, documents: Sequence[str] = DOCUMENTS, *, check: bool = False
) -> None:
    """Measures, prints the tables, and writes benchmarks/results/values.json.

    Raises:
        SystemExit: with `check`, where a result of this package is wrong, or a program failed.
    """
    outcomes = list(measure(triples, seed, documents))
    console = Console(width=140)
    for table in tables(outcomes):
        console.print(table)
    harness.record("values", outcomes)
    if check and (found := list(findings(outcomes))):
        raise SystemExit("\n".join(["not as it should be:", *found]))

"""What the parts of the suite hand each other: a job, a competitor, a row of results, and the file of rows.

Plain values, and their JSON and CSV. Nothing here runs anything.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

Triple = tuple[str, str, str]  # terms in N-Triples; blank nodes `_:label`, of any labels
Group = frozenset[Triple]  # one result
Status = Literal["ok", "failed", "timeout", "absent", "skipped"]
Blanks = Literal["renamed", "kept", "lost"]


@dataclass(frozen=True)
class Job:
    """What a competitor is asked to do.

    Args:
        data: the data set, N-Triples.
        endpoint: URL of the SPARQL endpoint that has it loaded, or of the competitor's service before that; None for
            competitors that read the file.
        query: the text of the CONSTRUCT query.
        query_path: the file that holds that text.
        workdir: an empty folder for whatever it writes.
        engine: what answers at the endpoint, as in `Competitor`.
    """

    data: Path
    endpoint: str | None
    query: str
    query_path: Path
    workdir: Path
    engine: str


@dataclass(frozen=True)
class Service:
    """A server that runs between a competitor and an endpoint.

    Args:
        url: where the competitor finds it.
        process: its id; its memory and CPU seconds are the competitor's.
    """

    url: str
    process: int


@dataclass(frozen=True)
class Competitor:
    """A way to get the results of a CONSTRUCT query one by one.

    Args:
        name: as in commands and rows, such as "flat-cbd".
        title: as in tables.
        group: what kind it is, for the report: "ours", "flat", "per-entity", "engine" …
        engine: what it asks: "file", "oxigraph" or "virtuoso-dbpedia".
        loads: whether its time has the loading of the data in it.
        version: its pinned version, or None where it is not installed.
        install: what to do where it is not installed.
        command: the program and its arguments for a job.
        groups: the groups in what it wrote to standard output, read afterwards, untimed.
        first: the bytes on standard output that show that the first group is complete.
        environment: what is set for the process beside the present environment.
        smallest: triples from which it is run; Spark is not asked about less than a million.
        service: what runs between it and the endpoint, from the endpoint's URL and the engine's name; it is started
            before anything is measured, as the endpoint is.
    """

    name: str
    title: str
    group: str
    engine: str
    loads: bool
    version: Callable[[], str | None]
    install: str
    command: Callable[[Job], list[str]]
    groups: Callable[[bytes], Iterator[Group]]
    first: bytes = b"# group\n"
    blank: Blanks = "kept"
    environment: Mapping[str, str] = field(default_factory=dict)
    smallest: int = 0
    service: Callable[[str, str], AbstractContextManager[Service]] | None = None


@dataclass(frozen=True)
class Measured:
    """One run: seconds to its end and to the first group, CPU seconds and peak memory of all its processes."""

    seconds: float
    first_seconds: float | None
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Groups:
    """How a competitor's groups compare with the truth; `groups.py` defines each."""

    expected: int
    right: int
    wrong: int
    merged: int
    split: int
    missing: int


@dataclass(frozen=True)
class Row:
    """One competitor, one query, one data set. Medians are None unless it ran to its end.

    Args:
        delivered: groups that came, right or not.
        results_per_second: those in a second of `seconds`.
        counts_match: whether as many groups came as are expected.
    """

    competitor: str
    title: str
    query: str
    shape: str
    dataset: str
    size: int
    engine: str
    status: Status
    reason: str | None = None
    runs: tuple[Measured, ...] = ()
    seconds: float | None = None
    first_seconds: float | None = None
    cpu_seconds: float | None = None
    peak_bytes: int | None = None
    results_per_second: float | None = None
    requests: int | None = None
    bytes_received: int | None = None
    bytes_sent: int | None = None
    groups: Groups | None = None
    delivered: int | None = None
    counts_match: bool | None = None
    loads: bool = False
    group: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """What tells a row from others: a run that resumes keeps rows of the same key."""
        return self.competitor, self.query, self.dataset, self.size, self.engine


@dataclass
class Results:
    """A file of results: where and from what the rows come, and the rows.

    Args:
        machine: cores, memory, processor, system.
        versions: of each competitor and engine.
        limits: seconds a run may take, by size; a failure counts as twice that.
    """

    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str
    seed: int
    started: str
    profile: str
    limits: dict[str, float]
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Results:
        """Reads a file that `write` has written."""
        record = json.loads(path.read_text(encoding="utf-8"))
        rows = [_row(row) for row in record.pop("rows")]
        return cls(**record, rows=rows)

    def write(self, path: Path) -> None:
        """Writes the JSON file, and the CSV of the same rows beside it; each is whole or is not there."""
        _replace(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")
        _replace(path.with_suffix(".csv"), as_csv(self.rows))


def as_csv(rows: Iterable[Row]) -> str:
    """The rows as CSV: a column for each figure, those of the groups too; single runs are in the JSON alone."""
    plain = [each.name for each in fields(Row) if each.name not in ("runs", "groups")]
    groups = [each.name for each in fields(Groups)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*plain, *groups])
    for row in rows:
        of_groups = ["" if row.groups is None else getattr(row.groups, name) for name in groups]
        writer.writerow(
            ["" if (value := getattr(row, name)) is None else value for name in plain] + of_groups
        )
    return out.getvalue()


def _row(record: dict[str, Any]) -> Row:
    groups = record.pop("groups")
    runs = tuple(Measured(**run) for run in record.pop("runs"))
    return Row(**record, runs=runs, groups=None if groups is None else Groups(**groups))


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)

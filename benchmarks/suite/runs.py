"""Runs competitors over queries and sizes: profiles, time limits, resumption, and a row for each that is asked for.

What is measured is in `harness.py`, what is compared in `groups.py`; nothing here knows any competitor.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import harness
from benchmarks.suite.datasets import Dataset
from benchmarks.suite.engines import Missing, NotStarted, engine
from benchmarks.suite.groups import Parts, bag, verdict
from benchmarks.suite.records import Competitor, Group, Job, Measured, Results, Row, Service
from benchmarks.suite.relay import Relay, relay
from benchmarks.suite.truth import Reference
from benchmarks.suite.workload import Query, expected

# A row that would take longer than this many limits, did it grow as it grew before, is not tried.
_HOPELESS = 1.5
_MEMORY_SHARE = 0.6  # of the machine's memory: what one run may hold


@dataclass(frozen=True)
class Profile:
    """How much is run.

    Args:
        sizes: triples of the generated data sets.
        runs: how often each is measured.
        limit: seconds that one run may take.
        few: names of the queries that are run from `few_from` triples on; empty for all.
        few_from: the size from which on only `few` are run.
        capped: names of the queries that are also asked of Virtuoso with DBpedia's caps.
        capped_from: the size from which on they are.
        largest: names of competitors that are run from `largest_from` triples on; where answers are capped, all are.
        largest_from: the size from which on only `largest` are.
        documents: tasks of `values/` that are run after the rest, with rows; empty for none of them.
    """

    sizes: tuple[int, ...]
    runs: int
    limit: float
    few: tuple[str, ...] = ()
    few_from: int = 0
    capped: tuple[str, ...] = ("capped", "tree")
    capped_from: int = 0
    largest: tuple[str, ...] = ("ours", "ours-duckdb", "ours-spark", "oxigraph-cli")
    largest_from: int = 10_000_000
    documents: tuple[str, ...] = ()

    def asks(self, competitor: Competitor, query: Query, size: int) -> bool:
        """Whether the profile has a row of that size."""
        if size < competitor.smallest or (
            size >= self.largest_from and competitor.name not in self.largest
        ):
            return False
        return not self.few or size < self.few_from or query.name in self.few


PROFILES = {
    "smoke": Profile(
        sizes=(5_000,),
        runs=1,
        limit=300,  # it asserts what comes, however busy the machine
        few=("star", "tree", "blank-data", "blank-template", "optional", "aggregate", "capped"),
        documents=("ages",),
    ),
    "default": Profile(
        sizes=(10_000, 100_000, 1_000_000),
        runs=1,
        limit=30,
        few=(
            *("star", "star-wide", "tree", "path", "optional", "blank-data"),
            *("negation", "languages", "aggregate", "capped"),
        ),
        few_from=1_000_000,
        capped_from=1_000_000,
        # those which have all groups right in reasonable time, so that the others would only be waited for
        largest=(
            *(
                "ours",
                "ours-duckdb",
                "ours-python",
                "ours-endpoint",
                "ours-server",
                "select-pyoxigraph",
                "oxigraph-cli",
            ),
            *("select-sparqlwrapper", "select-pages", "flat-pyoxigraph"),
        ),
        largest_from=1_000_000,
    ),
    # what makes it long is a million triples: programs that load them take 80 s together for a query, others 15 s
    "million": Profile(sizes=(10_000, 100_000, 1_000_000), runs=1, limit=30, capped_from=1_000_000),
    "full": Profile(
        sizes=(10_000, 100_000, 1_000_000, 10_000_000), runs=3, limit=120, capped_from=1_000_000
    ),
}


@dataclass
class Session:
    """What is run, and the file that it goes to.

    Args:
        results: the rows so far; rows of the same key are not run again.
        output: the JSON file.
        profile: how much is run.
        competitors: in the order of the runs.
        queries: in the order of the runs.
        on_row: called with each row.
    """

    results: Results
    output: Path
    profile: Profile
    competitors: Sequence[Competitor]
    queries: Sequence[Query]
    on_row: Callable[[Row], None] = lambda _row: None

    def run(self, datasets: Iterable[Dataset]) -> None:
        """Runs what is not in the results yet, data set by data set, and writes the file also when interrupted."""
        try:
            for dataset in datasets:
                self._dataset(dataset)
        finally:
            self.results.write(self.output)

    def planned(self, dataset: Dataset) -> list[tuple[Query, Competitor]]:
        """The rows of a data set, query by query, the competitors of a query in turn."""
        profile, size, plan = self.profile, dataset.size, []
        for query in self.queries:
            if dataset.queries and query.name not in dataset.queries:
                continue
            if dataset.endpoint is not None:
                plan += [
                    (query, replace(each, engine="endpoint"))
                    for each in self.competitors
                    if each.engine != "file"
                ]
                continue
            asked = [each for each in self.competitors if profile.asks(each, query, size)]
            plan += [(query, each) for each in asked]
            if query.name in profile.capped and size >= profile.capped_from and size < 10_000_000:
                plan += [
                    (query, replace(each, engine="virtuoso-dbpedia"))
                    for each in self.competitors
                    if each.engine != "file"
                ]
        return plan

    def _dataset(self, dataset: Dataset) -> None:
        kept = {row.key for row in self.results.rows}
        plan = [
            (query, each)
            for query, each in self.planned(dataset)
            if (each.name, query.name, dataset.name, dataset.size, each.engine) not in kept
        ]
        if not plan:
            return
        data = dataset.path()
        truth = _Truth(dataset, self.results.seed)
        with ExitStack() as stack, tempfile.TemporaryDirectory() as place:
            endpoints = _Endpoints(stack, data, Path(place))
            if dataset.endpoint is not None:
                endpoints.add("endpoint", dataset.endpoint)
            for query in dict.fromkeys(query for query, _ in plan):
                rows = [
                    (each, self._empty(dataset, query, each))
                    for other, each in plan
                    if other == query
                ]
                for _ in range(self.profile.runs):
                    for number, (each, row) in enumerate(rows):
                        if row.status == "ok":
                            measured = self._measured(
                                row, each, query, data, endpoints, truth, Path(place)
                            )
                            rows[number] = each, measured
                for _, row in rows:
                    self.results.rows.append(_medians(row))
                    self.on_row(self.results.rows[-1])
                self.results.write(self.output)

    def _empty(self, dataset: Dataset, query: Query, competitor: Competitor) -> Row:
        """The row before it is measured; of another status than "ok" if it will not be."""
        row = Row(
            competitor.name, competitor.title, query.name, query.shape, dataset.name, dataset.size, competitor.engine,
            "ok", loads=competitor.loads, group=competitor.group,
        )  # fmt: skip
        if competitor.version() is None:
            return replace(row, status="absent", reason=f"not installed: {competitor.install}")
        smaller = [
            each for each in self.results.rows if each.key == (*row.key[:3], each.size, row.engine)
        ]
        smaller = sorted(
            (each for each in smaller if each.size < row.size), key=lambda each: each.size
        )
        for before in smaller:
            if before.status in ("timeout", "skipped") or (before.reason or "").startswith(
                "memory"
            ):
                return replace(
                    row,
                    status="skipped",
                    reason=f"not tried: {before.status} at {before.size:,} triples",
                )
        points = [(each.size, each.seconds) for each in smaller if each.seconds is not None]
        if points and (foreseen := _foreseen(points, row.size)) > _HOPELESS * self.profile.limit:
            size, seconds = points[-1]
            reason = f"not tried: {seconds:.0f} s at {size:,} triples, so about {foreseen:.0f} s"
            return replace(row, status="skipped", reason=reason)
        return row

    def _measured(
        self,
        row: Row,
        competitor: Competitor,
        query: Query,
        data: Path,
        endpoints: _Endpoints,
        truth: _Truth,
        place: Path,
    ) -> Row:
        """The row with one run more, or with why there is none."""
        with tempfile.TemporaryDirectory(dir=place) as workdir:
            through = service = None
            if competitor.engine != "file":
                try:
                    through = endpoints[competitor.engine]
                    service = endpoints.service(competitor)
                except Missing as missing:
                    return replace(row, status="absent", reason=str(missing))
                except NotStarted as error:
                    what = competitor.engine if through is None else "its server"
                    return replace(
                        row,
                        status="failed",
                        reason=f"{what} did not start: {_last_line(str(error))}",
                    )
                through.traffic()  # forgets what was before
            url = None if through is None else through.url if service is None else service.url
            job = Job(data, url, query.text, query.path, Path(workdir), competitor.engine)
            output = place / "output"
            done = harness.run(
                competitor.command(job),
                output=output,
                first=competitor.first,
                timeout=self.profile.limit,
                memory=int(_memory() * _MEMORY_SHARE),
                env=os.environ | competitor.environment,
                cwd=Path(workdir),
                beside=[] if service is None else [service.process],
            )
        if through is not None:
            passed = through.traffic()
            row = replace(
                row,
                requests=passed.requests,
                bytes_received=passed.received,
                bytes_sent=passed.sent,
            )
        match done.ending:
            case "timeout":
                return replace(row, status="timeout", reason=f"more than {self.profile.limit:g} s")
            case "memory":
                return replace(
                    row,
                    status="failed",
                    reason=f"memory: more than {done.peak_bytes / 2**30:.1f} GiB",
                )
            case "failed":
                return replace(
                    row,
                    status="failed",
                    reason=_last_line(done.stderr) or f"exit status {done.code}",
                )
        if row.groups is None:
            wanted, found = truth.of(query), bag(competitor.groups(output.read_bytes()))
            groups = verdict(wanted, found)
            row = replace(
                row,
                groups=groups,
                delivered=found.total(),
                counts_match=found.total() == groups.expected,
            )
        first = done.first_seconds
        if first is None and row.delivered:
            first = (
                done.seconds
            )  # there is no second result, whose beginning would have shown the first one's end
        return replace(
            row, runs=(*row.runs, Measured(done.seconds, first, done.cpu_seconds, done.peak_bytes))
        )


class _Endpoints:
    """The endpoints over a data set, each started when it is first asked for, with a relay before it."""

    def __init__(self, stack: ExitStack, data: Path, place: Path) -> None:
        self._stack, self._data, self._place = stack, data, place
        self._started: dict[str, Relay | Missing | NotStarted] = {}
        self._services: dict[tuple[str, str], Service] = {}

    def add(self, name: str, url: str) -> None:
        """Puts a relay before an endpoint that runs."""
        self._started[name] = self._stack.enter_context(relay(url))

    def __getitem__(self, name: str) -> Relay:
        """The relay before an engine.

        Raises:
            Missing: the engine is not installed.
            NotStarted: it does not run, or has not loaded the data.
        """
        if name not in self._started:
            place = self._place / name
            place.mkdir()
            try:
                url = self._stack.enter_context(engine(name, self._data, place))
            except (Missing, NotStarted) as error:
                self._started[name] = error
            else:
                self.add(name, url)
        found = self._started[name]
        if isinstance(found, Missing | NotStarted):
            raise found
        return found

    def service(self, competitor: Competitor) -> Service | None:
        """The service of a competitor before its engine, if it has one.

        Raises:
            Missing: its engine is not installed.
            NotStarted: its engine does not run, or it does not run itself.
        """
        if competitor.service is None:
            return None
        key = competitor.name, competitor.engine
        if key not in self._services:
            starting = competitor.service(self[competitor.engine].url, competitor.engine)
            self._services[key] = self._stack.enter_context(starting)
        return self._services[key]


class _Truth:
    """What each query must give over a data set, which is loaded when it is first asked for."""

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self._dataset = dataset
        is_generated = dataset.name == "dbpedia-shaped"
        self._known_counts = expected(dataset.size, seed) if is_generated else {}
        self._reference: Reference | None = None
        self._known: dict[str, Counter[Parts]] = {}

    def of(self, query: Query) -> Counter[Parts]:
        if query.name not in self._known:
            if self._dataset.truth is not None:
                groups: Sequence[Group] = self._dataset.truth[query.name]
            else:
                self._reference = self._reference or Reference(self._dataset.path())
                groups = self._reference.groups(query.text)
                if self._known_counts.get(query.name, (0, len(groups)))[1] != len(groups):
                    raise SystemExit(
                        f"{query.name} over {self._dataset.size:,} triples: not as expected.json says"
                    )
            self._known[query.name] = bag(groups)
        return self._known[query.name]


def _foreseen(points: Sequence[tuple[int, float]], size: int) -> float:
    """Seconds at a size, on the line through the two largest smaller ones: starting takes the same at any size."""
    last_size, last = points[-1]
    before_size, before = points[-2] if len(points) > 1 else (0, 0.0)
    return last + (last - before) / (last_size - before_size) * (size - last_size)


def _medians(row: Row) -> Row:
    """The row with the medians of its runs; as it is where one of them failed."""
    if row.status != "ok":
        return row
    seconds = statistics.median(run.seconds for run in row.runs)
    firsts = [run.first_seconds for run in row.runs if run.first_seconds is not None]
    return replace(
        row,
        seconds=seconds,
        first_seconds=statistics.median(firsts) if firsts else None,
        cpu_seconds=statistics.median(run.cpu_seconds for run in row.runs),
        peak_bytes=int(statistics.median(run.peak_bytes for run in row.runs)),
        results_per_second=(row.delivered or 0) / seconds,
    )


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:300]


# --- the file of results ---


def opened(
    output: Path, profile: str, seed: int, competitors: Sequence[Competitor], *, fresh: bool
) -> Results:
    """The results in a file, to go on with, or new ones.

    Raises:
        SystemExit: the file has results of another commit, profile or seed.
    """
    limits = {str(size): PROFILES[profile].limit for size in PROFILES[profile].sizes}
    versions = {each.name: each.version() or "absent" for each in competitors}
    started = datetime.now(UTC).isoformat(timespec="seconds")
    new = Results(machine(), versions, commit(), seed, started, profile, limits)
    if fresh or not output.exists():
        return new
    old = Results.read(output)
    for what in ("commit", "profile", "seed"):
        before, now = getattr(old, what), getattr(new, what)
        if before != now:
            raise SystemExit(
                f"{output} has results of {what} {before}, not {now}: --fresh replaces them"
            )
    old.versions |= versions
    return old


def machine() -> dict[str, object]:
    """What the figures depend on, and how busy it is at the start."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def commit() -> str:
    """The commit of this checkout; with "-dirty" where tracked files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=Path(__file__).parent, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or "unknown"


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

"""`benchmarks/suite/runs.py`: each outcome has its row, and a file of rows is gone on with."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks import harness
from benchmarks.__main__ import main
from benchmarks.suite import commands, runs
from benchmarks.suite.competitors.printing import printed_groups
from benchmarks.suite.competitors.server import serving
from benchmarks.suite.datasets import Dataset
from benchmarks.suite.engines import Missing, NotStarted
from benchmarks.suite.records import Competitor, Job, Results, Row, Service
from benchmarks.suite.runs import PROFILES, Profile, Session, commit, machine, opened
from benchmarks.suite.workload import Query

pytestmark = pytest.mark.slow

TEXT = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <urn:p> ?o }"
PROFILE = Profile(sizes=(), runs=1, limit=300, capped=())
PRINT = "import sys; [print(line + ' .\\n# group') for line in open(sys.argv[1]).read().split(' .\\n') if line]"


def program(name: str, text: str, version: str | None = "1.0") -> Competitor:
    def command(job: Job) -> list[str]:
        return [sys.executable, "-c", text, str(job.data)]

    return Competitor(
        name, name.title(), "flat", "file", True, lambda: version, "buy it", command, printed_groups
    )


GOOD = program("good", PRINT)
PROGRAMS = (
    GOOD,
    program("merging", PRINT.replace("\\n# group", "")),
    program("failing", "import sys; sys.exit('cannot: no such thing')"),
    program("absent", PRINT, None),
)


def dataset(folder: Path, size: int) -> Dataset:
    path = folder / f"{size}.nt"
    path.write_text("".join(f"<urn:s{number}> <urn:p> <urn:o> .\n" for number in range(size)))
    return Dataset("test", size, lambda: path)


def session(folder: Path, competitors: Sequence[Competitor], profile: Profile = PROFILE) -> Session:
    query = folder / "query.rq"
    query.write_text(TEXT)
    results = Results({}, {}, "abc", 42, "now", "smoke", {})
    return Session(
        results,
        folder / "results.json",
        profile,
        competitors,
        [Query("query", "star", "All", TEXT, query)],
    )


def row(rows: Sequence[Row], competitor: str, size: int = 4) -> Row:
    (found,) = [each for each in rows if (each.competitor, each.size) == (competitor, size)]
    return found


def test_each_outcome_has_a_row(tmp_path: Path) -> None:
    session(tmp_path, PROGRAMS).run([dataset(tmp_path, 4)])
    rows = Results.read(tmp_path / "results.json").rows
    assert [each.competitor for each in rows] == ["good", "merging", "failing", "absent"]
    good, merging, failing, absent = rows
    assert (good.status, good.groups and good.groups.right, good.counts_match, good.delivered) == (
        "ok",
        4,
        True,
        4,
    )
    assert good.seconds is not None
    assert good.first_seconds is not None
    assert good.first_seconds <= good.seconds
    assert good.results_per_second == pytest.approx(4 / good.seconds)
    assert good.peak_bytes is not None
    assert good.peak_bytes > 0, "a run so short may end before a busy machine looks a second time"
    assert (merging.status, merging.groups and merging.groups.merged, merging.counts_match) == (
        "ok",
        1,
        False,
    )
    assert merging.first_seconds == merging.seconds, "a single result is complete at the end"
    assert (failing.status, failing.reason, failing.seconds) == (
        "failed",
        "cannot: no such thing",
        None,
    )
    assert (absent.status, absent.reason) == ("absent", "not installed: buy it")
    with (tmp_path / "results.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(each["competitor"], each["status"], each["right"]) for each in table] == [
        ("good", "ok", "4"), ("merging", "ok", "0"), ("failing", "failed", ""), ("absent", "absent", ""),
    ]  # fmt: skip


def test_runs_are_repeated_and_medians_taken(tmp_path: Path) -> None:
    session(tmp_path, PROGRAMS[:2], Profile(sizes=(), runs=3, limit=300, capped=())).run(
        [dataset(tmp_path, 4)]
    )
    for each in Results.read(tmp_path / "results.json").rows:
        assert len(each.runs) == 3
        assert each.seconds == sorted(run.seconds for run in each.runs)[1]


def test_what_took_too_long_is_killed_and_skipped_at_larger_sizes(tmp_path: Path) -> None:
    slow = program("slow", "import time; time.sleep(600)")
    profile = Profile(sizes=(), runs=2, limit=0.5, capped=())
    session(tmp_path, [slow], profile).run([dataset(tmp_path, 4), dataset(tmp_path, 40)])
    rows = Results.read(tmp_path / "results.json").rows
    assert (row(rows, "slow").status, row(rows, "slow").reason) == ("timeout", "more than 0.5 s")
    assert (row(rows, "slow", 40).status, row(rows, "slow", 40).reason) == (
        "skipped",
        "not tried: timeout at 4 triples",
    )


def test_what_would_take_much_too_long_is_skipped(tmp_path: Path) -> None:
    one = session(tmp_path, [GOOD])
    measured = Row("good", "Good", "query", "star", "test", 4, "file", "ok", seconds=100.0)
    one.results.rows.append(measured)
    one.run([dataset(tmp_path, 4), dataset(tmp_path, 40), dataset(tmp_path, 8)])
    rows = Results.read(tmp_path / "results.json").rows
    assert row(rows, "good") == measured, "it was there"
    reason = "not tried: 100 s at 4 triples, so about 1000 s"
    assert (row(rows, "good", 40).status, row(rows, "good", 40).reason) == ("skipped", reason)
    assert row(rows, "good", 8).status == "ok"


def test_starting_is_not_taken_for_growth(tmp_path: Path) -> None:
    """What takes long at any size, and a little longer at a larger one, is tried at the next."""
    one = session(tmp_path, [GOOD])
    measured = Row("good", "Good", "query", "star", "test", 2, "file", "ok", seconds=100.0)
    one.results.rows += [measured, replace(measured, size=4, seconds=101.0)]
    one.run([dataset(tmp_path, 40)])
    assert row(Results.read(tmp_path / "results.json").rows, "good", 40).status == "ok"


def test_rows_that_are_there_are_kept_and_others_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Session._measured
    left = 2

    def interrupted(*arguments: object) -> Row:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        return measure(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_measured", interrupted)
    sizes = [dataset(tmp_path, 4), dataset(tmp_path, 5)]
    with pytest.raises(KeyboardInterrupt):
        session(tmp_path, PROGRAMS[:2]).run(sizes)
    before = Results.read(tmp_path / "results.json")
    kept = list(before.rows)
    assert [each.size for each in kept] == [4, 4]
    left = 100
    again = session(tmp_path, PROGRAMS[:2])
    again.results = before
    again.run(sizes)
    rows = Results.read(tmp_path / "results.json").rows
    assert [each.size for each in rows] == [4, 4, 5, 5]
    assert rows[:2] == kept
    assert left == 98


def test_results_of_another_commit_are_not_gone_on_with(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    new = opened(output, "smoke", 42, PROGRAMS, fresh=False)
    assert new.versions == {"good": "1.0", "merging": "1.0", "failing": "1.0", "absent": "absent"}
    new.write(output)
    assert opened(output, "smoke", 42, PROGRAMS, fresh=False) == new
    with pytest.raises(SystemExit, match="seed 42, not 43: --fresh"):
        opened(output, "smoke", 43, PROGRAMS, fresh=False)
    new.commit = "another"
    new.write(output)
    with pytest.raises(SystemExit, match="commit another"):
        opened(output, "smoke", 42, PROGRAMS, fresh=False)
    assert opened(output, "smoke", 42, PROGRAMS, fresh=True).rows == []


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (Missing("get it"), "absent", "get it"),
        (NotStarted("no port"), "failed", "oxigraph did not start: no port"),
    ],
    ids=["missing", "not started"],
)
def test_an_engine_that_does_not_run_is_told_once_for_each_that_asks_it(
    error: Exception, status: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(*_: object) -> object:
        raise error

    monkeypatch.setattr(runs, "engine", engine)
    asking = [replace(each, engine="oxigraph") for each in PROGRAMS[:2]]
    session(tmp_path, [*asking, GOOD]).run([dataset(tmp_path, 4)])
    rows = Results.read(tmp_path / "results.json").rows
    assert [(each.status, each.reason) for each in rows] == [(status, reason)] * 2 + [("ok", None)]


def test_a_service_is_started_once_before_its_engine_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked instead of the engine, and counts."""
    told: list[str] = []

    @contextmanager
    def engine(name: str, *_: object) -> Iterator[str]:
        yield f"http://127.0.0.1:9/{name}"

    @contextmanager
    def service(endpoint: str, name: str) -> Iterator[Service]:
        told.append(f"started {name} {urlsplit(endpoint).path}")
        yield Service("http://127.0.0.1:9/service", os.getpid())
        told.append("ended")

    def command(job: Job) -> list[str]:
        told.append(str(job.endpoint))
        return [sys.executable, "-c", PRINT, str(job.data)]

    monkeypatch.setattr(runs, "engine", engine)
    asking = replace(GOOD, engine="oxigraph", command=command, service=service)
    session(tmp_path, [asking], replace(PROFILE, runs=2)).run([dataset(tmp_path, 4)])
    assert told == ["started oxigraph /oxigraph", *["http://127.0.0.1:9/service"] * 2, "ended"]
    found = row(Results.read(tmp_path / "results.json").rows, "good")
    assert found.status == "ok"
    assert found.peak_bytes is not None
    assert (
        found.peak_bytes
        > sum(resident for _, resident, _ in harness.tree(os.getpid()) if resident) / 2
    )


def test_a_service_that_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "engine", lambda *_: nullcontext("http://127.0.0.1:9/"))
    options = ["--no-such-option"]
    broken = replace(
        GOOD, engine="oxigraph", service=lambda endpoint, _: serving(endpoint, *options)
    )
    session(tmp_path, [broken]).run([dataset(tmp_path, 4)])
    found = row(Results.read(tmp_path / "results.json").rows, "good")
    assert found.status == "failed"
    assert found.reason is not None
    assert found.reason.startswith("its server did not start: ")
    assert "--no-such-option" in found.reason


def test_the_machine_and_the_commit_are_named() -> None:
    assert machine()["cores"] == len(os.sched_getaffinity(0))
    assert {"processor", "memory_bytes", "system", "python", "load"} <= set(machine())
    assert commit()


def test_truth_that_is_not_as_expected_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "expected", lambda *_: {"query": (5, 5)})
    data = dataset(tmp_path, 4)
    with pytest.raises(SystemExit, match=r"query over 4 triples: not as expected\.json says"):
        session(tmp_path, [GOOD]).run([Dataset("dbpedia-shaped", 4, data.path)])


def test_what_is_wrong_with_the_suite_itself_is_found() -> None:
    def one(**given: object) -> Row:
        return Row(**{"competitor": "a", "title": "A", "query": "q", "shape": "s", "dataset": "d", "size": 1,
                      "engine": "file", "status": "ok", **given})  # type: ignore[arg-type] # fmt: skip

    fine = [
        one(),
        one(status="failed", reason="cannot: no"),
        one(status="absent"),
        one(group="flat", delivered=7),
    ]
    assert list(commands.findings(fine)) == []
    bad = [one(status="timeout", reason="more than 1 s"), one(status="failed", reason="crashed")]
    assert len(list(commands.findings(bad))) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "nobody"], "there is no competitor 'nobody'"),
        (["--queries", "nothing"], "there is no query 'nothing'"),
        (["--endpoint", "http://127.0.0.1:9/", "--queries", "star"], "--contact"),
    ],
    ids=["competitor", "query", "contact"],
)
def test_wrong_arguments_are_told(arguments: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=said):
        main(["run", "--profile", "smoke", "--output", str(tmp_path / "results.json"), *arguments])


def test_profiles_grow() -> None:
    smoke, default, million, full = PROFILES.values()
    assert max(smoke.sizes) < min(default.sizes)
    assert default.sizes == million.sizes
    assert set(default.sizes) < set(full.sizes)
    assert len(smoke.few) >= 5
    assert not million.few, "it has all queries at all sizes"


@pytest.mark.engine
def test_the_command_runs_the_suite_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.json"
    command = [
        "run",
        "--profile",
        "smoke",
        "--check",
        "--output",
        str(output),
        "--queries",
        "star",
        "blank-data",
    ]
    main([*command, "--only", "ours", "flat-cbd"])
    assert "4 rows, 4 ok" in capsys.readouterr().out
    main([*command, "--only", "ours", "flat-cbd", "select-pyoxigraph"])
    assert "6 rows, 6 ok" in capsys.readouterr().out
    rows = json.loads(output.read_text())["rows"]
    right = {(each["competitor"], each["query"]): each["groups"]["right"] for each in rows}
    assert (
        right["ours", "star"]
        == right["select-pyoxigraph", "star"]
        == 52
        > right["flat-cbd", "star"]
    )
    assert (
        right["ours", "blank-data"]
        == right["select-pyoxigraph", "blank-data"]
        == 28
        > right["flat-cbd", "blank-data"]
    )
    assert all(
        each["requests"] and each["bytes_received"] for each in rows if each["engine"] == "oxigraph"
    )

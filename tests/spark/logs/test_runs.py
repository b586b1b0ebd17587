"""Runs in one folder at once: each ends with all its logs there, or with an error; what a dead one left goes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import msgspec
import pytest

from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.spark.logs import runs
from construct_messages.spark.logs.files import Place, place_of
from construct_messages.spark.logs.runs import LogFile, Owner, Run, RunRecord
from construct_messages.spark.logs.verification import verify_folder

LINE = "# @message\n<urn:s> <urn:p> <urn:o> .\n"


def begin(folder: Path) -> Run:
    return Run.begin(place_of(str(folder)), Owner.this())


def prepared(run: Run, sizes: list[int]) -> tuple[list[str], RunRecord]:
    """Writes logs of so many messages into the hidden folder of a run."""
    paths, files = [], []
    for number, size in enumerate(sizes):
        path = Path(run.hidden, str(number))
        path.write_text(LINE * size)
        paths.append(str(path))
        files.append(LogFile(f"{run.id}-{number}.nq", path.stat().st_size, size))
    return paths, RunRecord(run.id, content_type(N_QUADS, RDFM), sum(sizes), sum(sizes), files)


def write(folder: Path, *sizes: int, overwrite: bool = False, alone: bool = False) -> Run:
    run = begin(folder)
    try:
        run.commit(*prepared(run, list(sizes)), overwrite=overwrite, alone=alone)
    finally:
        run.end()
    return run


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_a_run_leaves(tmp_path: Path) -> None:
    run = write(tmp_path, 2, 0, 1)
    assert names(tmp_path) == {
        "_SUCCESS",
        f"_run-{run.id}.json",
        *(f"{run.id}-{number}.nq" for number in range(3)),
    }
    assert json.loads((tmp_path / "_SUCCESS").read_text()) == {
        "run": run.id,
        "messages": 3,
        "quads": 3,
        "files": 3,
    }
    found = verify_folder(tmp_path)
    assert found == (f"file://{tmp_path}", [run.id], 3, 3, 3, [], [])


def test_runs_that_add_and_one_that_overwrites(tmp_path: Path) -> None:
    first, second = write(tmp_path, 1), write(tmp_path, 2)
    assert verify_folder(tmp_path)[1:6] == ([first.id, second.id], 2, 3, 3, [])
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path, 1, alone=True)
    assert verify_folder(tmp_path).problems == []
    (tmp_path / f".{first.id}-0.nq.crc").touch()
    third = write(tmp_path, 4, overwrite=True)
    assert names(tmp_path) == {"_SUCCESS", f"_run-{third.id}.json", f"{third.id}-0.nq"}
    assert verify_folder(tmp_path)[1:6] == ([third.id], 1, 4, 4, [])


@pytest.mark.parametrize("foreign", [["a.nt"], ["deep/old.nq"], list("abcde")], ids=str)
def test_files_of_others_are_not_overwritten(foreign: list[str], tmp_path: Path) -> None:
    write(tmp_path, 1)
    (tmp_path / "deep").mkdir()
    for name in foreign:
        (tmp_path / name).write_text(LINE)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=f"no earlier run has recorded: {foreign[0]}"):
        write(tmp_path, 4, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_record_names_no_files_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "other.nq").write_text(LINE)
    run = write(tmp_path / "logs", 1)
    record = tmp_path / "logs" / f"_run-{run.id}.json"
    record.write_text(
        record.read_text().replace('"files": [', '"files": [{"name":"../other.nq","bytes":9},')
    )
    write(tmp_path / "logs", 2, overwrite=True)
    assert names(tmp_path) == {"logs", "other.nq"}


def test_a_record_that_spark_has_written_as_a_folder(tmp_path: Path) -> None:
    """As over Spark Connect."""
    run = write(tmp_path, 1)
    record = tmp_path / f"_run-{run.id}.json"
    text = record.read_text()
    record.unlink()
    record.mkdir()
    (record / "part-00000-9d8f-c000.txt").write_text(text)
    (record / "_SUCCESS").touch()
    assert verify_folder(tmp_path)[1:6] == ([run.id], 1, 1, 1, [])
    after = write(tmp_path, 2, overwrite=True)
    assert names(tmp_path) == {"_SUCCESS", f"_run-{after.id}.json", f"{after.id}-0.nq"}


def test_adding_to_what_is_broken(tmp_path: Path) -> None:
    """It would look complete."""
    run = write(tmp_path, 1, 1)
    (tmp_path / f"{run.id}-0.nq").unlink()
    before = names(tmp_path)
    with pytest.raises(
        IncompleteResult, match=f"of run {run.id}, {run.id}-0.nq is missing"
    ) as caught:
        write(tmp_path, 1)
    assert "overwrite it" in (caught.value.hint or "")
    assert names(tmp_path) == before
    write(tmp_path, 1, overwrite=True)
    assert verify_folder(tmp_path).problems == []


def test_a_commit_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path, 1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    run = begin(tmp_path)
    paths, record = prepared(run, [1, 1])
    Path(paths[1]).unlink()
    with pytest.raises(FileNotFoundError):
        run.commit(paths, record, overwrite=True)
    run.end()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- at once ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [True, False])
def test_many_threads(overwrite: bool, tmp_path: Path) -> None:
    """Issue 26, 35: on a local file system, each run ends well, and the last one's logs are there."""
    for _ in range(5):
        starts, ended = Barrier(4), dict[int, Run]()

        def job(number: int, starts: Barrier = starts, ended: dict[int, Run] = ended) -> None:
            starts.wait()
            ended[number] = write(tmp_path, *[number + 1] * 5, overwrite=overwrite)

        threads = [Thread(target=job, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ended) == 4
        found = verify_folder(tmp_path)
        assert (found.problems, found.notes) == ([], [])
        last = json.loads((tmp_path / "_SUCCESS").read_text())["run"]
        assert last in {run.id for run in ended.values()}
        if overwrite:
            assert found.runs == [last]
    if not overwrite:
        assert found.messages == 5 * 5 * (1 + 2 + 3 + 4)


STEPS = ("write", "sizes", "records", "last_run", "_remove_file")
"""The functions of `runs` that look at the folder or change it."""


@pytest.mark.parametrize("steps", range(21))
@pytest.mark.parametrize(
    "overwrite", [(True, True), (True, False), (False, True), (False, False)], ids=str
)
def test_a_commit_within_another(
    steps: int, overwrite: tuple[bool, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26, 35: a whole commit after each step of another one, where there are no locks."""
    monkeypatch.setattr(Place, "is_local", property(lambda _: False))
    write(tmp_path, 5)
    run = begin(tmp_path)
    paths, record = prepared(run, [2, 2])
    left, ended = steps, list[bool]()

    def count() -> None:
        nonlocal left
        left -= 1
        if left == -1:
            ended.append(succeeds(lambda: write(tmp_path, 3, 3, overwrite=overwrite[1])))

    with monkeypatch.context() as patched:
        for name in STEPS:
            patched.setattr(runs, name, counted(getattr(runs, name), count))
        ended.append(succeeds(lambda: run.commit(paths, record, overwrite=overwrite[0])))
    run.end()
    found = verify_folder(tmp_path)
    assert found.notes == []
    if (tmp_path / "_SUCCESS").exists():
        assert found.problems == []
        assert found.messages in {5, 4, 6, 4 + 5, 6 + 5, 4 + 6, 4 + 6 + 5}
    else:
        assert not all(ended)


def counted(function: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        count()
        return function(*given)

    return call


def succeeds(commit: Callable[[], object]) -> bool:
    try:
        commit()
    except (IncompleteResult, OSError):
        return False
    return True


# --- what is left -----------------------------------------------------------------------------------------------------

BEGIN = (
    "import sys; from construct_messages.spark.logs.files import place_of; "
    "from construct_messages.spark.logs.runs import Owner; from construct_messages.spark.logs.runs import Run; "
    "print(Run.begin(place_of(sys.argv[1]), Owner.this()).id, flush=True); sys.stdin.read()"
)


def test_runs_that_were_killed_and_one_that_runs(tmp_path: Path) -> None:
    """Issue 26, 37."""

    def started() -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-c", BEGIN, str(tmp_path)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    (killed, left), (lives, kept) = started(), started()
    with killed, lives:
        killed.kill()
        killed.wait()
        (tmp_path / f".{left}" / "00000-1").write_text("half a log")
        elsewhere = tmp_path / ".20260101T000000000000Z-12ab"
        elsewhere.mkdir()
        (elsewhere / "owner.json").write_bytes(msgspec.json.encode(Owner("host.example", 7, "1")))
        silent = tmp_path / ".20260101T000000000000Z-34cd"
        silent.mkdir()
        host = Owner.this().machine.split()[0]
        assert verify_folder(tmp_path).notes == [
            ".20260101T000000000000Z-12ab: a run that still runs, or was stopped elsewhere (process 7 on host.example)",
            ".20260101T000000000000Z-34cd: a run that still runs, or was stopped; its place is unknown",
            f".{left}: a run that was stopped (process {killed.pid} on {host}); the next one removes it",
            f".{kept}: a run that still runs, or was stopped elsewhere (process {lives.pid} on {host})",
        ]
        write(tmp_path, 1, overwrite=True)
        hidden = {name for name in names(tmp_path) if name.startswith(".")}
        assert hidden == {f".{kept}", elsewhere.name, silent.name}
        lives.communicate()


def test_a_run_in_a_new_folder(tmp_path: Path) -> None:
    run = begin(tmp_path / "new")
    run.end(new=True)
    assert names(tmp_path) == set()
    run, other = begin(tmp_path / "new"), begin(tmp_path / "new")
    run.end(new=True)
    assert names(tmp_path / "new") == {f".{other.id}"}
    other.end(new=True)
    assert names(tmp_path) == set()

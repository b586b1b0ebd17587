"""Runs in one folder at once: each ends with all its logs there, or with an error; what a dead one left goes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.rdf.formats import N_QUADS, RDFM, content_type
from construct_messages.spark.logs import runs
from construct_messages.spark.logs.files import place_of
from construct_messages.spark.logs.runs import LogFile, Mode, Owner, Run, logs_at
from construct_messages.spark.logs.verification import verify_folder

LINE = "# @message\n<urn:s> <urn:p> <urn:o> .\n"


def begin(folder: Path, mode: Mode = "append") -> Run:
    return Run.begin(place_of(str(folder)), mode)


def prepared(run: Run, sizes: list[int]) -> tuple[str, tuple[int, int], list[LogFile]]:
    """Writes logs of so many messages into the folder of a run."""
    files = []
    folder = Path(run.logs.path)
    folder.mkdir()
    for number, size in enumerate(sizes):
        path = folder / f"{number}.nq"
        path.write_text(LINE * size)
        files.append(LogFile(path.name, path.stat().st_size, size))
    return content_type(N_QUADS, RDFM), (sum(sizes), sum(sizes)), files


def write(folder: Path, *sizes: int, mode: Mode = "append") -> Run:
    run = begin(folder, mode)
    try:
        run.commit(*prepared(run, list(sizes)))
    finally:
        run.close()
    return run


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_run_leaves(tmp_path: Path) -> None:
    run = write(tmp_path, 2, 0, 1)
    assert names(tmp_path) == {"_SUCCESS", run.id}
    assert names(tmp_path / run.id) == {"_run.json", *(f"{number}.nq" for number in range(3))}
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
        write(tmp_path, 1, mode="error")
    assert verify_folder(tmp_path).problems == []
    assert [Path(file.uri).parent.name for file in logs_at(str(tmp_path))] == [first.id, second.id]
    (tmp_path / first.id / ".0.nq.crc").touch()
    third = write(tmp_path, 4, mode="overwrite")
    assert names(tmp_path) == {"_SUCCESS", third.id}
    assert verify_folder(tmp_path)[1:6] == ([third.id], 1, 4, 4, [])


@pytest.mark.parametrize("foreign", [["a.nt"], ["deep/old.nq"], list("abcde")], ids=str)
def test_files_of_others_are_not_overwritten(foreign: list[str], tmp_path: Path) -> None:
    write(tmp_path, 1)
    (tmp_path / "deep").mkdir()
    for name in foreign:
        (tmp_path / name).write_text(LINE)
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=f"no earlier run has recorded: {foreign[0]}"):
        write(tmp_path, 4, mode="overwrite")
    assert contents(tmp_path) == before


def test_only_the_logs_of_records_are_read(tmp_path: Path) -> None:
    """A task that outlived its job, and was killed before it could notice, may have left one."""
    run = write(tmp_path, 2)
    (tmp_path / run.id / "1.nq").write_text(LINE)
    assert [Path(file.uri).name for file in logs_at(str(tmp_path))] == ["0.nq"]
    assert verify_folder(tmp_path).problems == [f"{run.id}/1.nq is of no run"]


def test_a_record_names_no_files_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "other.nq").write_text(LINE)
    run = write(tmp_path / "logs", 1)
    record = tmp_path / "logs" / run.id / "_run.json"
    record.write_text(
        record.read_text().replace('"files": [', '"files": [{"name":"../other.nq","bytes":9},')
    )
    write(tmp_path / "logs", 2, mode="overwrite")
    assert names(tmp_path) == {"logs", "other.nq"}


def test_a_record_that_spark_has_written_as_a_folder(tmp_path: Path) -> None:
    """As over Spark Connect."""
    run = write(tmp_path, 1)
    record = tmp_path / run.id / "_run.json"
    text = record.read_text()
    record.unlink()
    record.mkdir()
    (record / "part-00000-9d8f-c000.txt").write_text(text)
    (record / "_SUCCESS").touch()
    assert verify_folder(tmp_path)[1:6] == ([run.id], 1, 1, 1, [])
    after = write(tmp_path, 2, mode="overwrite")
    assert names(tmp_path) == {"_SUCCESS", after.id}


def test_adding_to_what_is_broken(tmp_path: Path) -> None:
    """It would look complete."""
    run = write(tmp_path, 1, 1)
    (tmp_path / run.id / "0.nq").unlink()
    before = names(tmp_path)
    with pytest.raises(
        IncompleteResult, match=f"of run {run.id}, {run.id}/0.nq is missing"
    ) as caught:
        write(tmp_path, 1)
    assert "overwrite it" in (caught.value.hint or "")
    assert names(tmp_path) == before
    write(tmp_path, 1, mode="overwrite")
    assert verify_folder(tmp_path).problems == []


def test_a_commit_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path, 1)
    before = contents(tmp_path)
    run = begin(tmp_path, "overwrite")
    log, counts, files = prepared(run, [1, 1])
    Path(run.logs.path, "1.nq").unlink()
    with pytest.raises(IncompleteResult, match="not all logs came to"):
        run.commit(log, counts, files)
    run.close()
    assert contents(tmp_path) == before


# --- at once ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("renames", [True, False])
def test_many_threads(
    mode: Mode, renames: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run ends well, and the folder has the logs of the last one, or of all."""
    monkeypatch.setattr(Run, "_renames", renames)
    if not renames:  # as in an object store
        monkeypatch.setattr(runs, "_locked", nullcontext)
    for _ in range(5):
        starts, ended = Barrier(4), dict[int, Run]()

        def job(number: int, starts: Barrier = starts, ended: dict[int, Run] = ended) -> None:
            starts.wait()
            ended[number] = write(tmp_path, *[number + 1] * 5, mode=mode)

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
        if mode == "overwrite":
            assert found.runs == [last]
            assert names(tmp_path) == {"_SUCCESS", last}
    if mode == "append":
        assert found.messages == 5 * 5 * (1 + 2 + 3 + 4)


def test_one_of_many_new_runs_wins(tmp_path: Path) -> None:
    ended = list[str | None]()

    def job() -> None:
        try:
            ended.append(write(tmp_path, 1, mode="error").id)
        except UsageError:
            ended.append(None)

    threads = [Thread(target=job) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (won,) = (run for run in ended if run is not None)
    assert (verify_folder(tmp_path).runs, len(ended)) == ([won], 6)
    assert names(tmp_path) == {"_SUCCESS", won}


STEPS = (
    "listing",
    "is_there",
    "visible_below",
    "_remove",
    "remove_file",
    "remove_folder",
    "read_bytes",
    "move",
)
"""The functions of `runs` that look at the folder or change it, but for those of the file system."""


@pytest.mark.parametrize("steps", range(0, 50, 5))
@pytest.mark.parametrize("modes", [*product(("overwrite", "append"), repeat=2)], ids=str)
def test_a_commit_within_another(
    steps: int, modes: tuple[Mode, Mode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole commit after each step of another one: both end well, as if one had come after the other."""
    monkeypatch.setattr(runs, "_locked", nullcontext)
    write(tmp_path, 5)
    run = begin(tmp_path, modes[0])
    log = prepared(run, [2, 2])
    left, within = steps, list[int]()

    def count() -> None:
        nonlocal left
        left -= 1
        if left == -1:
            write(tmp_path, 3, 3, mode=modes[1])
            within.append(6)

    with monkeypatch.context() as patched:
        for name in STEPS:
            patched.setattr(runs, name, counted(getattr(runs, name), count))
        run.commit(*log)
    run.close()
    if not within:
        write(tmp_path, 3, 3, mode=modes[1])
    found = verify_folder(tmp_path)
    assert (found.notes, found.problems) == ([], [])
    allowed = {
        ("overwrite", "overwrite"): {4, 6},
        ("overwrite", "append"): {4, 4 + 6},
        ("append", "overwrite"): {6, 4 + 6},
        ("append", "append"): {5 + 4 + 6},
    }
    assert found.messages in allowed[modes]
    logs = {Path(file.uri).parent.name for file in logs_at(str(tmp_path))}
    assert logs == set(found.runs) == {path.name for path in tmp_path.glob("2*")}


def counted(function: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        count()
        return function(*given)

    return call


# --- killed ---------------------------------------------------------------------------------------

KILLED = (
    "import os, sys; from pathlib import Path; from construct_messages.spark.logs import runs; "
    "from construct_messages.spark.logs.files import Place; "
    "from tests.spark.logs.test_runs import write; left = int(sys.argv[2])\n"
    "class Files:\n"
    "    def __init__(self, files): self.files = files\n"
    "    def __getattr__(self, name):\n"
    "        global left; left -= 1\n"
    "        if left < 0: os.kill(os.getpid(), 9)\n"
    "        return getattr(self.files, name)\n"
    "place_of = runs.place_of\n"
    "import tests.spark.logs.test_runs as module\n"
    "def counted(path): place = place_of(path); return place._replace(files=Files(place.files))\n"
    "module.place_of = counted\n"
    "write(Path(sys.argv[1]), 2, 2, mode='overwrite')"
)


@pytest.mark.parametrize("steps", range(0, 60, 6))
def test_a_run_that_is_killed_at_any_step(steps: int, tmp_path: Path) -> None:
    """The former run or the new one is whole, and the next run removes the rest."""
    first = write(tmp_path, 5)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(steps)], check=False)
    found = verify_folder(tmp_path)
    assert found.problems == []
    assert found.messages in ({5} if first.id in found.runs else {4})
    assert {Path(file.uri).parent.name for file in logs_at(str(tmp_path))} == set(found.runs)
    if done.returncode == 0:
        assert found.messages == 4
    after = write(tmp_path, 1, mode="overwrite")
    assert names(tmp_path) == {"_SUCCESS", after.id}


# --- what is left -----------------------------------------------------------------------------------------------------

BEGIN = (
    "import sys; from construct_messages.spark.logs.files import place_of; "
    "from construct_messages.spark.logs.runs import Run; "
    "print(Run.begin(place_of(sys.argv[1])).hidden.path, flush=True); sys.stdin.read()"
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
        Path(left, "00000-1").write_text("half a log")
        run = "20260101T000000000000Z-12ab"
        elsewhere = Run(place_of(str(tmp_path)), run, Owner(7, "1", "", "host.example"))
        Path(elsewhere.hidden.path).mkdir()
        host = Owner.this().host
        assert verify_folder(tmp_path).notes == [
            f".{run}_7_1__host.example: a run that still runs, or was stopped elsewhere (process 7 on host.example)",
            f"{Path(left).name}: a run that was stopped (process {killed.pid} on {host}); the next one removes it",
            f"{Path(kept).name}: a run that still runs, or was stopped elsewhere (process {lives.pid} on {host})",
        ]
        write(tmp_path, 1, mode="overwrite")
        hidden = {tmp_path / name for name in names(tmp_path) if name.startswith(".")}
        assert hidden == {Path(kept), Path(elsewhere.hidden.path)}
        lives.communicate()


def test_a_run_in_a_new_folder(tmp_path: Path) -> None:
    run = begin(tmp_path / "new")
    run.close()
    assert names(tmp_path) == set()
    run, other = begin(tmp_path / "new"), begin(tmp_path / "new")
    run.close()
    assert names(tmp_path / "new") == {Path(other.hidden.path).name}
    other.close()
    assert names(tmp_path / "new") == set(), "it was there when the run began"

"""Folders by Spark's text writer, two jobs at once among them: what ends well is whole (issue 26, 35 and 37)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import pytest

from construct_messages.errors import ConstructMessagesError, IncompleteResult, UsageError
from construct_messages.rdf.formats import N_QUADS, RDFM, TRIG
from construct_messages.spark.logs.runs import Owner
from construct_messages.spark.logs.verification import verify_folder

room = pytest.importorskip("construct_messages.spark.logs.writer")
writer = pytest.importorskip("construct_messages.spark.logs.writer")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

Patch = pytest.MonkeyPatch


def frame(spark: SparkSession, size: int, partitions: int = 3) -> DataFrame:
    return spark.range(0, size, 1, partitions).selectExpr(
        "concat('<urn:s', id, '> <urn:p> <urn:o> .') AS message"
    )


def write(
    spark: SparkSession, path: Path, size: int, mode: str = "error", compression: str | None = None
) -> int:
    messages = frame(spark, size)
    return int(
        writer.write_folder(
            messages, path, writer.LogFormat(N_QUADS, RDFM), mode=mode, compression=compression
        ).message_count
    )


@pytest.fixture(params=["here", "elsewhere"])
def place(request: pytest.FixtureRequest, monkeypatch: Patch) -> str:
    """Where files are: on this machine's file system, or as far as is known, anywhere."""
    if request.param == "elsewhere":
        monkeypatch.setattr(room, "_place_here", lambda *_: None)
    return str(request.param)


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.usefixtures("place")
def test_modes(spark: SparkSession, tmp_path: Path, compression: str | None) -> None:
    target = tmp_path / "logs [1]"
    sizes = {"error": 5, "append": 7, "overwrite": 3}
    expected = {"error": (1, 5), "append": (2, 12), "overwrite": (1, 3)}
    for mode, size in sizes.items():
        assert write(spark, target, size, mode, compression) == size
        found = verify_folder(target)
        assert (len(found.runs), found.messages) == expected[mode]
        assert (found.problems, found.notes) == ([], [])
        success = json.loads((target / "_SUCCESS").read_text())
        assert (success["run"], success["messages"]) == (found.runs[-1], size)
    with pytest.raises(UsageError, match="exists already"):
        write(spark, target, 1)


@pytest.mark.parametrize("foreign", ["dump.nt", "empty.nt", "sub/dump.nt", "_notes", ".hidden"])
def test_files_of_others_are_not_overwritten(
    spark: SparkSession, tmp_path: Path, place: str, foreign: str
) -> None:
    target = tmp_path / "logs [1]"
    write(spark, target, 5)
    (target / foreign).parent.mkdir(exist_ok=True)
    (target / foreign).write_text("" if foreign == "empty.nt" else "# notes\n")
    before = contents(tmp_path)
    if place == "here" and foreign[0] in "_.":  # it is left where it is
        write(spark, target, 3, "overwrite")
        assert (target / foreign).read_text() == "# notes\n"
        return
    with pytest.raises(UsageError, match="has files that no earlier run has recorded") as caught:
        write(spark, target, 3, "overwrite")
    assert (foreign if foreign[0] not in "_." else "hidden files") in str(caught.value)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_names_of_later_runs_come_later(spark: SparkSession, tmp_path: Path) -> None:
    for size in (4, 2):
        write(spark, tmp_path / "logs", size, "append")
    logs = sorted(path for path in (tmp_path / "logs").glob("part-*"))
    assert [sum(line == "# @message" for line in log.read_text().splitlines()) for log in logs] == [
        1,
        1,
        2,
        0,
        1,
        1,
    ]


@pytest.mark.parametrize("format", [N_QUADS, TRIG], ids=["nq", "trig"])
def test_two_jobs_at_once(spark: SparkSession, tmp_path: Path, format: object) -> None:
    """Both end well, and the folder is the one's that ended last."""
    target, ended = tmp_path / "logs", dict[int, object]()

    def job(size: int) -> None:
        ended[size] = writer.write_folder(
            frame(spark, size, 8), target, writer.LogFormat(format, RDFM), mode="overwrite"
        ).message_count

    for _ in range(3):
        run_both(lambda: job(40), lambda: job(60))
        found = verify_folder(target)
        assert (found.problems, found.notes) == ([], [])
        assert ended == {40: 40, 60: 60}
        assert found.messages in ended
        assert len(found.runs) == 1


def run_both(*jobs: Callable[[], object]) -> None:
    threads = [Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_two_jobs_at_once_elsewhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Spark's committer mixes them, loses files, or fails; then no job ends well, and nothing looks whole."""
    monkeypatch.setattr(room, "_place_here", lambda *_: None)
    target, ended = tmp_path / "logs", dict[int, Exception | None]()

    def job(size: int) -> None:
        try:
            write(spark, target, size, "overwrite")
            ended[size] = None
        except ConstructMessagesError as error:
            ended[size] = error

    for _ in range(3):
        run_both(lambda: job(40), lambda: job(60))
        assert len(ended) == 2, "what failed is an error of this package"
        if (target / "_SUCCESS").exists():
            assert verify_folder(target).messages in ended
            assert verify_folder(target).problems == []
        else:
            assert any(ended.values())


@pytest.mark.parametrize("change", ["lost", "added", "shorter"])
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_what_another_job_changed_elsewhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: Patch, mode: str, change: str
) -> None:
    monkeypatch.setattr(room, "_place_here", lambda *_: None)
    target, plain = tmp_path / "logs", room.write_parts
    write(spark, target, 9)

    def write_parts(values: DataFrame, path: str, **how: str) -> None:
        before = set(target.glob("part-*"))
        plain(values, path, **how)
        part = max(set(target.glob("part-*")) - before)
        if change == "lost":
            part.unlink()
        elif change == "added":
            part.with_name("part-00000-8d-c000.txt").write_text("# @message\n")
        else:
            part.write_text("# @message\n")

    monkeypatch.setattr(room, "write_parts", write_parts)
    if (mode, change) == ("append", "added"):
        assert write(spark, target, 6, mode) == 6, "another job may add logs of its own"
        return
    with pytest.raises(IncompleteResult, match="another job wrote to") as caught:
        write(spark, target, 6, mode)
    assert "a separate folder" in (caught.value.hint or "")
    assert (target / "_SUCCESS").exists() == (mode == "append")


def test_what_a_killed_run_left_beside_a_file(spark: SparkSession, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    owner = msgspec.structs.replace(Owner.this(), process=process.pid)
    process.communicate()
    left = tmp_path / ".20260101T000000000000Z-12ab"
    (left / "logs").mkdir(parents=True)
    (left / "owner.json").write_bytes(msgspec.json.encode(owner))
    for format in (N_QUADS, TRIG):
        writer.write_file(frame(spark, 3), tmp_path / "log", writer.LogFormat(format, RDFM))
        assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_job_that_fails_leaves_what_was_there(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    target = tmp_path / "logs"
    if mode == "overwrite":
        write(spark, target, 3)
    before = contents(tmp_path)
    broken = spark.range(3).selectExpr("if(id = 1, raise_error('UsageError: x'), '') AS message")
    with pytest.raises(UsageError, match="x"):
        writer.write_folder(broken, target, writer.LogFormat(N_QUADS, RDFM), mode=mode)
    assert contents(tmp_path) == before
    assert target.exists() == (mode == "overwrite")

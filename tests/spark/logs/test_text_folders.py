"""Folders by Spark's text writer, two jobs at once among them: what ends well is whole (issue 26, 35 and 37)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.rdf.formats import N_QUADS, RDFM, TRIG
from construct_messages.spark.logs.files import place_of
from construct_messages.spark.logs.runs import Owner, Run
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


@pytest.mark.parametrize("compression", [None, "gzip"])
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
    spark: SparkSession, tmp_path: Path, foreign: str
) -> None:
    target = tmp_path / "logs [1]"
    write(spark, target, 5)
    (target / foreign).parent.mkdir(exist_ok=True)
    (target / foreign).write_text("" if foreign == "empty.nt" else "# notes\n")
    before = contents(tmp_path)
    if foreign[0] in "_.":  # it is left where it is
        write(spark, target, 3, "overwrite")
        assert (target / foreign).read_text() == "# notes\n"
        return
    with pytest.raises(UsageError, match="has files that no earlier run has recorded") as caught:
        write(spark, target, 3, "overwrite")
    assert foreign in str(caught.value)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_names_of_later_runs_come_later(spark: SparkSession, tmp_path: Path) -> None:
    for size in (4, 2):
        write(spark, tmp_path / "logs", size, "append")
    logs = sorted(path for path in (tmp_path / "logs").glob("*/part-*"))
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


@pytest.mark.parametrize("change", [None, "lost", "shorter"])
def test_where_only_spark_reaches(
    spark: SparkSession, tmp_path: Path, monkeypatch: Patch, change: str | None
) -> None:
    """As over Spark Connect: a new folder is written, and is whole or refused."""
    monkeypatch.setattr(room, "_place", lambda *_: None)
    target, plain = tmp_path / "logs [1]", room.write_parts

    def write_parts(values: DataFrame, path: str, **how: str) -> None:
        plain(values, path, **how)
        part = max(target.glob("*/part-*"))
        if change == "lost":
            part.unlink()
        elif change == "shorter":
            part.write_text("# @message\n")
            part.with_name(f".{part.name}.crc").unlink()

    monkeypatch.setattr(room, "write_parts", write_parts)
    if change is not None:
        with pytest.raises(IncompleteResult, match="not all logs came to"):
            write(spark, target, 6)
        assert verify_folder(target).problems
        return
    assert write(spark, target, 6) == 6
    found = verify_folder(target)
    assert (len(found.runs), found.messages, found.problems) == (1, 6, [])
    for mode, said in (("error", "exists already"), ("append", "does not reach")):
        with pytest.raises(UsageError, match=said):
            write(spark, target, 6, mode)
    monkeypatch.undo()
    assert write(spark, target, 3, "append") == 3
    assert verify_folder(target).messages == 9
    assert write(spark, target, 2, "overwrite") == 2
    assert verify_folder(target)[1:] == (verify_folder(target).runs, 3, 2, 2, [], [])


def test_what_a_killed_run_left_beside_a_file(spark: SparkSession, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    owner = Owner.this()._replace(process=process.pid)
    process.communicate()
    left = Run(place_of(str(tmp_path)), "20260101T000000000000Z-12ab", owner)
    Path(left.logs.path).mkdir(parents=True)
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

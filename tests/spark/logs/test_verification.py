"""Verifying folders: each log that is missing or damaged is named, in any format and compression, at any byte."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.sinks import LogJob
from construct_messages.spark.logs.verification import Verification, verify_folder

TEXTS = ['<urn:s> <urn:p> "one" .', "", '<urn:s> <urn:p> "two" .\n<urn:s> <urn:q> <urn:o> .']


def write(path: Path, *, overwrite: bool = False, **options: str) -> list[Path]:
    """Writes two logs of three messages each."""
    job = LogJob.begin(WriteOptions.of({"path": str(path), **options}), overwrite=overwrite)
    batch = pa.record_batch({"message": pa.array(TEXTS, pa.string())})
    parts = [job.write_part([batch], number, 0) for number in range(2)]
    job.commit(parts)
    return sorted(each for each in path.glob("2*/[!_]*"))


def problems(folder: Path) -> list[str]:
    return list(verify_folder(folder).problems)


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "gzip", "bzip2", "xz", "zstd"])
@pytest.mark.parametrize("format", ["nq", "trig", "jelly"])
def test_each_flipped_bit_and_each_cut(format: str, compression: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    log, _ = write(folder, format=format, compression=compression)
    assert verify_folder(folder)[2:] == (2, 6, 6, [], [])
    whole, name = log.read_bytes(), str(log.relative_to(folder))
    for position in range(0, len(whole), max(1, len(whole) // 40)):
        log.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        assert [each.split(":")[0] for each in problems(folder)] == [name], position
    for size in range(0, len(whole), max(1, len(whole) // 20)):
        log.write_bytes(whole[:size])
        assert problems(folder)[0].startswith(
            f"{name} has {size:,} bytes, and {len(whole):,} were written"
        )
    log.unlink()
    assert f"{name} is missing (run " in problems(folder)[0]
    assert verify_folder(folder).messages == 3
    log.write_bytes(whole)
    assert problems(folder) == []


def test_what_is_there_beside_the_logs_of_runs(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "more.nq").write_text("# @message\n")
    (tmp_path / "_temporary").mkdir()
    found = verify_folder(tmp_path)
    assert found.problems == ["more.nq is of no run"]
    assert found.notes == ["_temporary: a job that Spark itself commits still runs, or was stopped"]


def test_the_last_run_and_the_records(tmp_path: Path) -> None:
    write(tmp_path)
    (record,) = tmp_path.glob("*/_run.json")
    success = tmp_path / "_SUCCESS"
    told = success.read_bytes()
    success.unlink()
    assert problems(tmp_path) == [], "the record says that it is whole"
    success.write_bytes(told)
    kept = record.read_bytes()
    record.write_bytes(kept[:-20])
    with pytest.raises(IncompleteResult, match="is not the record of a run"):
        verify_folder(tmp_path)
    record.unlink()
    assert problems(tmp_path) == [f"the record of run {record.parent.name} is missing"]


@pytest.mark.parametrize(
    "success", [b"", b'{"name": "org.apache.hadoop", "jobId": "1"}'], ids=["Hadoop", "S3A"]
)
def test_a_folder_of_another_program(success: bytes, tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_bytes(success)
    (tmp_path / "part-00000-8d-c000.txt").write_text(
        "# @message\n<urn:s> <urn:p> <urn:o> .\n# @message\n"
    )
    (tmp_path / "b.trig").write_text("# @message\n<urn:s> <urn:p> 1 .\n")
    found = verify_folder(tmp_path)
    assert found[1:6] == ([], 2, 3, 2, [])
    assert found.notes == [
        "no run has left a record: it is not known how many messages were written"
    ]
    (tmp_path / "b.trig").write_text("# @message\n<urn:s> <urn:p> .\n")
    assert problems(tmp_path)[0].startswith("b.trig: ")


def test_no_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(UsageError, match="is not a folder"):
            verify_folder(path)


def test_reading_at_once(tmp_path: Path) -> None:
    write(tmp_path)
    several: Verification = verify_folder(tmp_path, processes=2)
    assert several == verify_folder(tmp_path, processes=1)

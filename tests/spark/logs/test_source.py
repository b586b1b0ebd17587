"""Logs as a data source of Spark: read in parts of any size, written by tasks that may fail, and given numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.logs.reading import read_log
from construct_messages.rdf.formats import N_QUADS, RDFM
from construct_messages.rdf.message import Message
from tests.support.logs.kinds import KINDS, Kind, isomorphic, write
from tests.support.logs.seeds import GRAPHS, PLAIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

A, B, C = (f"<urn:{name}> <urn:p> <urn:o> ." for name in "abc")


@pytest.fixture(scope="module")
def rdfm(spark: SparkSession) -> SparkSession:
    """The session, which knows logs."""
    from construct_messages.spark.logs import register

    register(spark)
    return spark


def rows(frame: DataFrame) -> list[tuple[str, int, int, str]]:
    """What a log is on Spark, as it comes."""
    assert frame.columns == ["file", "block", "ordinal", "message"]
    from pyspark.sql import Row

    assert not set(frame.columns) & set(dir(Row)), (
        "issue 13, 29: a row's methods hide columns of their names"
    )
    return [tuple(row) for row in frame.collect()]


def messages(texts: Sequence[str]) -> list[Message]:
    from construct_messages.logs.lines.decoder import to_messages

    return to_messages(texts)


def visible(folder: Path) -> list[Path]:
    """The logs of a folder and of those of runs in it; there is nothing hidden in it."""
    paths = sorted(path for path in folder.rglob("*") if not path.name.startswith("_"))
    assert not [path for path in paths if path.name.startswith((".", "_"))]
    return [path for path in paths if path.is_file()]


# --- reading ---------------------------------------------------------------------------------------------------------

SMALL = {
    "rdfm": f"# @message\r\n#@message\r{A} #@message",
    "1.2-messages": f'VERSION "1.2-messages"\nMESSAGE\r\n{A}\r MESSAGE # é\n{B}',
}


@pytest.mark.parametrize("size", [1, 7, 50, 1000], ids=str)
@pytest.mark.parametrize("label", SMALL)
def test_reading_in_parts_of_any_size(
    label: str, size: int, rdfm: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log.nq"
    log.write_bytes(SMALL[label].encode())
    read = rows(rdfm.read.format("rdfm").option("maxPartitionBytes", size).load(str(log)))
    assert messages([text for *_, text in read]) == list(read_log(log))
    assert {file for file, *_ in read} == {f"file://{log}"}
    assert [key for *key, _ in read] == sorted(key for *key, _ in read)
    assert {block % size for _, block, _, _ in read} == {0}


def test_every_kind_in_a_folder(rdfm: SparkSession, tmp_path: Path) -> None:
    expected = []
    for kind in sorted(KINDS, key=str):
        sent = [*PLAIN, *(GRAPHS if kind.format.graphs else [])]
        (tmp_path / f"{kind}.{kind.format.extension}").write_bytes(write(sent, kind))
        expected += sent
    (tmp_path / "_SUCCESS").touch()
    read = rows(rdfm.read.format("rdfm").option("maxPartitionBytes", "1k").load(str(tmp_path)))
    assert isomorphic(messages([text for *_, text in read]), expected)


def test_paths(rdfm: SparkSession, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.nt").write_text(f"<urn:{name}> <urn:p> <urn:o> .")
    (tmp_path / "c.log").write_text(C)
    read = rdfm.read.format("rdfm").load(
        [f"{tmp_path}/*.nt", f"{tmp_path}/c.log", f"{tmp_path}/a.nt"]
    )
    assert [text for *_, text in rows(read)] == [A, B, C], "in order, and each once"


def test_logs_without_a_byte(tmp_path: Path) -> None:
    from construct_messages.spark.logs.options import ReadOptions
    from construct_messages.spark.logs.source import LogReader

    (tmp_path / "log.nq").touch()
    reader = LogReader(ReadOptions((str(tmp_path),)))
    assert [list(reader.read(partition)) for partition in reader.partitions()] == [[]]


def test_a_sequence(rdfm: SparkSession, tmp_path: Path) -> None:
    from construct_messages.spark.logs.source import with_sequence

    for name in "ab":
        log = "".join(f'# @message\n<urn:{name}> <urn:p> "{number}" .\n' for number in range(20))
        (tmp_path / f"{name}.nt").write_text(log)
    read = rdfm.read.format("rdfm").option("maxPartitionBytes", "500").load(str(tmp_path))
    numbered = sorted((row.sequence, row.message) for row in with_sequence(read).collect())
    assert numbered == [
        (20 * place + n, f'<urn:{name}> <urn:p> "{n}" .')
        for place, name in enumerate("ab")
        for n in range(20)
    ]


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False], ids=["single", "folder"])
def test_there_and_back(single: bool, rdfm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.nq").write_bytes(write([*PLAIN, *GRAPHS, *PLAIN], Kind(N_QUADS, RDFM)))
    read = rdfm.read.format("rdfm").option("maxPartitionBytes", "400").load(str(tmp_path / "in.nq"))
    assert len(rows(read)) == 11
    out = tmp_path / ("out.trig.gz" if single else "out")
    options = {
        "format": "trig",
        "single": str(single).lower(),
        "compression": "gzip",
        "syntax": "1.2-messages",
    }
    for mode in ("append", "overwrite"):
        read.write.format("rdfm").mode(mode).options(**options).save(str(out))
    logs = [out] if single else visible(out)
    assert isomorphic(
        [message for log in logs for message in read_log(log)], [*PLAIN, *GRAPHS, *PLAIN]
    )
    assert visible(tmp_path) == sorted({tmp_path / "in.nq", *logs})


def test_a_failing_task_leaves_no_file(rdfm: SparkSession, tmp_path: Path) -> None:
    from construct_messages.spark.session import translated

    texts = [A] * 50 + [A[:-1] + "<urn:g> ."] + [B] * 50
    frame = rdfm.createDataFrame([(text,) for text in texts], "message string").repartition(2)
    with (
        pytest.raises(
            UnsupportedByFormat, match=r"in partition \d+: message \d+: N-Triples has no named"
        ),
        translated(),
    ):
        frame.write.format("rdfm").mode("append").option("format", "nt").save(str(tmp_path / "out"))
    assert visible(tmp_path) == []


def test_a_frame_without_messages(rdfm: SparkSession, tmp_path: Path) -> None:
    frame = rdfm.createDataFrame([], "message string")
    frame.write.format("rdfm").mode("append").option("syntax", "1.2-messages").save(str(tmp_path))
    assert [log.read_text() for log in visible(tmp_path)] == ['VERSION "1.2-messages"\n']


# --- errors ----------------------------------------------------------------------------------------------------------


def test_errors_come_out_as_ours(rdfm: SparkSession, tmp_path: Path) -> None:
    from construct_messages.spark.session import translated

    log = tmp_path / "log.nq"
    log.write_text(f"# @message\n{A}\n# @message\nnonsense")
    reader, frame = rdfm.read.format("rdfm"), rdfm.createDataFrame([(1,)], "number int")
    with pytest.raises(LogError) as caught, translated():
        reader.load(str(tmp_path)).collect()
    assert (caught.value.number, caught.value.position) == (2, (4, 1))
    assert caught.value.message.startswith(f"in file://{log}: ")
    for action, text in (
        (lambda: reader.load(f"{tmp_path}/nothing").collect(), "there are no files at"),
        (
            lambda: rdfm.read.format("rdfm").option("sep", ",").load("x").collect(),
            "unknown option sep",
        ),
        (
            lambda: rdfm.read.format("rdfm").schema("x int").load("x").collect(),
            "logs have a fixed schema",
        ),
        (
            lambda: frame.write.format("rdfm").mode("append").save(f"{tmp_path}/out"),
            "no column `message`",
        ),
    ):
        with pytest.raises(UsageError, match=text), translated():
            action()

"""Writing logs from many tasks, without Spark: whole logs or none, whatever tasks do."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from construct_messages.errors import (
    ConstructMessagesError,
    LogError,
    UnsupportedByFormat,
    UsageError,
)
from construct_messages.logs.jelly.options import LogicalType
from construct_messages.logs.lines.decoder import to_text
from construct_messages.logs.reading import read_log
from construct_messages.rdf.formats import JELLY
from construct_messages.rdf.message import Message
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.runs import LogFile
from construct_messages.spark.logs.sinks import LogJob, Written
from tests.support.logs.kinds import KINDS, Kind, isomorphic
from tests.support.logs.seeds import DIRECTIONS, GRAPHS, PLAIN, TRIPLE_TERMS

A, B, C = (f"<urn:{name}> <urn:p> <urn:o> ." for name in "abc")
GRAPH = "<urn:a> <urn:p> <urn:o> <urn:g> ."


def begin(path: Path, *, overwrite: bool = False, **options: str) -> LogJob:
    return LogJob.begin(WriteOptions.of({"path": str(path), **options}), overwrite=overwrite)


def batches(
    texts: Sequence[str | None], size: int = 2, **keys: Sequence[Any]
) -> Iterator[pa.RecordBatch]:
    """What Spark gives a task: the messages, a few at a time, behind an empty batch."""
    batch = pa.record_batch({**keys, "message": pa.array(texts, pa.string())})
    yield batch.slice(0, 0)
    for start in range(0, len(batch), size):
        yield batch.slice(start, size)


def write(job: LogJob, *tasks: Sequence[str]) -> None:
    """A job whose tasks end in another order than they began."""
    parts = [
        job.write_part(batches(texts), number, 10 + number) for number, texts in enumerate(tasks)
    ]
    job.commit([*reversed(parts)])


def names(folder: Path) -> list[str]:
    """All there is, hidden files among it, but for what says that it is whole."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("_"))


def visible(folder: Path) -> list[str]:
    return [name for name in names(folder) if not name.startswith(".")]


def logs_in(folder: Path) -> list[Path]:
    """The logs of all runs, in order."""
    return [path for run in visible(folder) for path in sorted((folder / run).glob("[!_]*"))]


def hidden_folder(job: LogJob) -> Path:
    """Where the tasks of a job write."""
    return Path(job.run.hidden.path)


def read_all(path: Path) -> list[list[Message]]:
    """The messages of each log, in order of the names."""
    logs = logs_in(path) if path.is_dir() else [path]
    return [list(read_log(log)) for log in logs]


def texts_of(messages: Sequence[Message]) -> list[str]:
    return [to_text(message) for message in messages]


def carried_by(kind: Kind) -> list[Message]:
    return [
        *PLAIN,
        *(GRAPHS if kind.format.graphs else []),
        *(TRIPLE_TERMS if kind.syntax.triple_terms else []),
        *(DIRECTIONS if kind.syntax.directions else []),
    ]


# --- whole logs ------------------------------------------------------------------------------------------------------


def options_of(kind: Kind) -> dict[str, str]:
    options = {"syntax": kind.syntax.label} if kind.syntax.label else {}
    if kind.format == JELLY:
        options["jelly"] = '{"rdf_star": true}'
    return {"format": kind.format.extension, **options}


@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if kind.syntax.version in ("", "1.2", kind.syntax.label)],
    ids=str,
)
def test_every_kind(kind: Kind, tmp_path: Path) -> None:
    sent = carried_by(kind)
    tasks = [texts_of(sent), [], texts_of(sent[1:]), texts_of(sent[:1])]
    prefixes = {"prefixes": '{"ex": "http://example.org/"}'}
    for more in ({}, prefixes):
        write(begin(tmp_path / "logs", overwrite=True, **options_of(kind), **more), *tasks)
        logs = read_all(tmp_path / "logs")
        assert len(logs) == 3, "a task without messages has no log"
        for got, expected in zip(logs, (sent, sent[1:], sent[:1]), strict=True):
            assert isomorphic(got, expected)

        single = tmp_path / "log"
        write(begin(single, overwrite=True, single="true", **options_of(kind), **more), *tasks)
        assert isomorphic(read_all(single)[0], [*sent, *sent[1:], *sent[:1]])
    assert names(tmp_path) == ["log", "logs"]


@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz", "zstd", "none"])
def test_compressions(compression: str, tmp_path: Path) -> None:
    write(begin(tmp_path / "logs", compression=compression), [A], [B, C])
    write(begin(tmp_path / "log", compression=compression, single="true"), [A], [B, C])
    extension = {
        "gzip": ".nq.gz",
        "bz2": ".nq.bz2",
        "xz": ".nq.xz",
        "zstd": ".nq.zst",
        "none": ".nq",
    }[compression]
    assert all(path.name.endswith(extension) for path in logs_in(tmp_path / "logs"))
    assert [texts_of(log) for log in read_all(tmp_path / "logs")] == [[A], [B, C]]
    assert [texts_of(log) for log in read_all(tmp_path / "log")] == [[A, B, C]]


def test_the_bytes_of_a_single_log(tmp_path: Path) -> None:
    job = begin(
        tmp_path / "log.ttl", single="true", syntax="1.2-messages", prefixes='{"u": "urn:"}'
    )
    write(job, [A], [], ["", B])
    assert (tmp_path / "log.ttl").read_text() == (
        'VERSION "1.2-messages"\nPREFIX u: <urn:>\n\nu:a u:p u:o .\nMESSAGE\nMESSAGE\nu:b u:p u:o .\nMESSAGE\n'
    )


def test_graphs_of_jelly(tmp_path: Path) -> None:
    write(begin(tmp_path / "logs", format="jelly", graphs="false"), [A])
    (log,) = logs_in(tmp_path / "logs")
    reader = read_log(log)
    assert texts_of(list(reader)) == [A]
    assert reader.format is JELLY
    with pytest.raises(UnsupportedByFormat):
        begin(tmp_path / "others", format="jelly", graphs="false").write_part(
            batches([GRAPH]), 0, 0
        )


def test_options_of_jelly(tmp_path: Path) -> None:
    """Issue 13, 10: the same in every task, so that the parts of one log can be joined."""
    quoted = "<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> ."
    options = {"format": "jelly", "jelly": '{"rdf_star": true, "logical-type": "flat-quads"}'}
    write(begin(tmp_path / "log", single="true", **options), [A], [quoted], [B])
    reader = read_log(tmp_path / "log", "jelly")
    assert texts_of(list(reader)) == [A, quoted, B]
    assert reader.options is not None
    assert (reader.options.rdf_star, reader.options.logical_type) == (True, LogicalType.FLAT_QUADS)
    with pytest.raises(
        UnsupportedByFormat, match=r"partition 0: message 1: .* allow no triple terms"
    ):
        begin(tmp_path / "others", format="jelly").write_part(batches([quoted]), 0, 0)
    with pytest.raises(UsageError, match="options of Jelly have no meaning for TriG"):
        begin(tmp_path / "others", format="trig", jelly="{}")


@pytest.mark.parametrize("tasks", [[], [[]], [[], []]], ids=["no task", "one", "two"])
@pytest.mark.parametrize("syntax", ["rdfm", "1.1-messages"])
@pytest.mark.parametrize("single", ["true", "false"], ids=["single", "folder"])
def test_no_messages(single: str, syntax: str, tasks: list[list[str]], tmp_path: Path) -> None:
    write(begin(tmp_path / "logs", single=single, syntax=syntax), *tasks)
    assert read_all(tmp_path / "logs") == [[]]
    (log,) = [tmp_path / "logs"] if single == "true" else logs_in(tmp_path / "logs")
    assert log.read_text() == ("" if syntax == "rdfm" else 'VERSION "1.1-messages"\n')


def test_a_folder_says_that_it_is_whole(tmp_path: Path) -> None:
    """Issue 13, 29: when a job has ended, and not before; a file needs no such sign."""
    job = LogJob.begin(WriteOptions.of({"path": str(tmp_path / "logs")}), overwrite=False)
    assert not (tmp_path / "logs" / "_SUCCESS").exists()
    write(job, [A])
    success = json.loads((tmp_path / "logs" / "_SUCCESS").read_bytes())
    assert success == {"run": job.run.id, "messages": 1, "quads": 1, "files": 1}
    other = LogJob.begin(WriteOptions.of({"path": str(tmp_path / "other")}), overwrite=False)
    other.abort()
    write(
        LogJob.begin(
            WriteOptions.of({"path": str(tmp_path / "log"), "single": "true"}), overwrite=False
        ),
        [A],
    )
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "log"}


def test_later_jobs_come_later(tmp_path: Path) -> None:
    for texts in ([A], [B], [C]):
        write(begin(tmp_path), texts, texts)
    assert [texts_of(log) for log in read_all(tmp_path)] == [[A], [A], [B], [B], [C], [C]]


def test_overwriting(tmp_path: Path) -> None:
    write(begin(tmp_path / "logs"), [A], [B])
    (tmp_path / "logs" / ".kept").touch()
    job = begin(tmp_path / "logs", overwrite=True)
    assert len(logs_in(tmp_path / "logs")) == 2, "nothing goes before the end"
    write(job, [C])
    assert names(tmp_path / "logs")[0] == ".kept"
    (tmp_path / "logs" / ".kept").unlink()
    assert [texts_of(log) for log in read_all(tmp_path / "logs")] == [[C]]


def test_overwriting_a_single_log(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    write(begin(log, single="true"), [A])
    with pytest.raises(UsageError, match=r"log\.nq exists") as caught:
        begin(log, single="true")
    assert caught.value.hint == "overwrite it"
    write(begin(log, single="true", overwrite=True), [B])
    assert [texts_of(each) for each in read_all(log)] == [[B]]


def test_what_stands_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a folder"):
        begin(tmp_path, single="true")
    with pytest.raises(UsageError, match="is a file"):
        begin(tmp_path / "file")
    with pytest.raises(UsageError, match="cannot write to"):
        begin(tmp_path / "file" / "logs")


def test_tasks_in_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("driver", "executor"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    job = begin(Path("logs"))
    monkeypatch.chdir(tmp_path / "executor")
    write(job, [A])
    assert [texts_of(log) for log in read_all(tmp_path / "driver" / "logs")] == [[A]]


# --- or none ---------------------------------------------------------------------------------------------------------

PLACES: dict[str, tuple[dict[str, Sequence[Any]], str]] = {
    "no keys": ({}, "partition 7: "),
    "a log": (
        {"file": ["x.nq"] * 4, "block": [0] * 4, "ordinal": [4, 5, 6, 7]},
        "partition 7, file x.nq, block 0, ordinal 6: ",
    ),
    "a sequence": ({"sequence": [1, 2, 30, 4]}, "partition 7, sequence 30: "),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        (GRAPH, UnsupportedByFormat, "message 3: N-Triples has no named graphs"),
        ("nonsense", LogError, "subject"),
        (f"{A}\n# @message", LogError, "a delimiter within a message"),
        (None, LogError, "NULL"),
    ],
    ids=["not carried", "malformed", "two", "null"],
)
def test_errors_say_where(
    text: str, error: type[Exception], word: str, case: str, tmp_path: Path
) -> None:
    keys, place = PLACES[case]
    job = begin(tmp_path / "logs", format="nt")
    with pytest.raises(error) as caught:
        job.write_part(batches([A, B, text, C], **keys), 7, 0)
    assert f"in {place}" in str(caught.value)
    assert word in str(caught.value)
    assert "message 3: " in str(caught.value), "they are counted over all batches"
    assert visible(tmp_path / "logs") == []
    assert names(hidden_folder(job)) == ["logs", "running"]
    assert names(hidden_folder(job) / "logs") == []


@pytest.mark.parametrize("single", ["true", "false"], ids=["single", "folder"])
def test_a_failed_job_leaves_what_was_there(single: str, tmp_path: Path) -> None:
    target = tmp_path / "logs"
    write(begin(target, single=single), [A])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    job = begin(target, single=single, overwrite=True, format="nt")
    assert job.write_part(batches([B]), 0, 0)
    with pytest.raises(UnsupportedByFormat):
        job.write_part(batches([B, GRAPH]), 1, 1)
    job.abort()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_failed_job_leaves_no_new_folder(tmp_path: Path) -> None:
    job = begin(tmp_path / "deep" / "logs", format="nt")
    assert job.write_part(batches([A]), 0, 0)
    job.abort()
    assert not (tmp_path / "deep" / "logs").exists()
    # nor does it mind where no task came to write
    begin(tmp_path / "nothing").abort()
    assert names(tmp_path) == ["deep"]


def test_an_aborted_job_leaves_others_alone(tmp_path: Path) -> None:
    one, other = begin(tmp_path / "logs"), begin(tmp_path / "logs")
    part = one.write_part(batches([A]), 0, 0)
    other.write_part(batches([B]), 0, 0)
    other.abort()
    one.commit([part])
    assert [texts_of(log) for log in read_all(tmp_path / "logs")] == [[A]]


@pytest.mark.parametrize("single", ["true", "false"], ids=["single", "folder"])
@pytest.mark.parametrize("failed", [True, False], ids=["failed", "complete"])
def test_tasks_that_outlive_their_job_leave_nothing(
    failed: bool, single: str, tmp_path: Path
) -> None:
    job = begin(tmp_path / "logs", single=single)
    part = job.write_part(batches([A]), 0, 0)

    def end() -> None:
        if failed:
            job.abort()
        else:
            job.commit([part])

    def ended_meanwhile() -> Iterator[pa.RecordBatch]:
        yield from batches([B, B, B])
        end()
        yield from batches([B, B])

    for late in (ended_meanwhile(), batches([C])):
        with pytest.raises(UsageError, match="the job has ended"):
            job.write_part(late, 0, 1)
    assert names(tmp_path) == ([] if failed else ["logs"])
    if not failed:
        assert [texts_of(log) for log in read_all(tmp_path / "logs")] == [[A]]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    def full(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _batches
        raise OSError(errno.ENOSPC, "No space left on device")

    job = begin(tmp_path / "logs")
    with pytest.raises(UsageError, match="No space left"):
        job.write_part(full(batches([A])), 0, 0)
    assert names(hidden_folder(job)) == ["logs", "running"]
    assert names(hidden_folder(job) / "logs") == []


@pytest.mark.parametrize("single", ["true", "false"], ids=["single", "folder"])
def test_only_the_attempts_that_count_are_kept(single: str, tmp_path: Path) -> None:
    job = begin(tmp_path / "logs", single=single)
    # a task that was slow, one in its place, and one whose process was lost
    job.write_part(batches([A]), 0, 0)
    part = job.write_part(batches([A]), 0, 1)
    hidden_folder(job).joinpath("logs", "part-00001-2.nq").write_bytes(b"ha")
    job.commit([part])
    assert [texts_of(log) for log in read_all(tmp_path / "logs")] == [[A]]
    assert names(tmp_path) == ["logs"]


@pytest.mark.parametrize("single", ["true", "false"], ids=["single", "folder"])
def test_a_place_that_is_not_shared(single: str, tmp_path: Path) -> None:
    job = begin(tmp_path / "logs", single=single)
    part = job.write_part(batches([A]), 0, 0)
    with pytest.raises(ConstructMessagesError, match=r"cannot write to|not all logs") as caught:
        job.commit([part, Written(LogFile("part-00001-0.nq", 9))])
    assert "executors" in f"{caught.value.message} {caught.value.hint}"
    job.abort()
    assert names(tmp_path) == []

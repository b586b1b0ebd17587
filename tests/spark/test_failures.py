"""Failures of Spark in a line and with a hint, whatever stacks they come with (issue 26, 36)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import IncompleteResult, SourceError
from construct_messages.spark.failures import error_of, in_short
from construct_messages.spark.session import failures, translated

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

# as Spark 4.3, py4j 0.10.9.9 and gRPC have said them, with shorter stacks
RACE = """An error occurred while calling o132.text.
: ExitCodeException exitCode=1: chmod: cannot access '/tmp/x y/logs/_temporary/0': No such file or directory

\tat org.apache.hadoop.util.Shell.runCommand(Shell.java:1071)
\tat org.apache.spark.sql.execution.datasources.FileFormatWriter$.write(FileFormatWriter.scala:168)
"""
RUN = """[TASK_WRITE_FAILED] Task failed while writing rows to file:/data/logs/.20261124T063405355868Z-863a/logs.
Caused by: java.io.IOException: Mkdirs failed to create file:/data/logs/.20261124T063405355868Z-863a/logs/_temporary/0\
 (exists=false, cwd=file:/work)
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:515)
"""
LOST = "File hdfs://host/logs/_temporary/0/task_1 does not exist."
MEMORY = """Job aborted due to stage failure: Task 2 failed 1 times: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)

Driver stacktrace:
"""
GONE = "Spark's Java process has ended"
SERVER = "the Spark Connect server has ended"
TEXTS: list[tuple[str, str, str]] = [
    (RACE, "another job may write", "/logs: what was being written there has been removed"),
    (RUN, "another job may write", "/data/logs: what was being written"),
    (LOST, "another job may write", "hdfs://host/logs: what was being written"),
    (MEMORY, "--conf spark.driver.memory=4g", "OutOfMemoryError: Java heap space"),
    ("java.io.IOException: No space left on device\n\tat a.B.c(B.java:1)", "spark.local.dir", "No space left"),
    ("Error while sending or receiving", "memory", GONE),
    ("Answer from Java side is empty", "memory", GONE),
    ("An error occurred while calling o102.text", "memory", GONE),
    ("<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n", "see its log", SERVER),
    ("[INVALID_HANDLE.SESSION_CLOSED] The handle 1 is invalid.", "see its log", "has ended the session"),
]


@pytest.mark.parametrize(("text", "hint", "message"), TEXTS, ids=range(len(TEXTS)))
def test_what_is_said(text: str, hint: str, message: str) -> None:
    error = error_of(RuntimeError(text))
    assert isinstance(error, SourceError)
    assert isinstance(error, IncompleteResult) == ("another job" in hint)
    assert message in error.message
    assert hint in str(error.hint)
    assert "\tat " not in error.message
    assert ".java:" not in error.message


def test_no_answer() -> None:
    for failure in (ConnectionRefusedError(111, "Connection refused"), ConnectionResetError(), BrokenPipeError()):
        assert error_of(failure).message == GONE


def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield next(batches)
    raise ZeroDivisionError("on purpose")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("SQL", "ArithmeticException|DIVIDE_BY_ZERO|Division by zero"),
        ("a worker", "ZeroDivisionError: on purpose"),
        ("a file", "exists already|FileAlreadyExists|not a directory|Not a directory|ParentNotDirectory"),
    ],
)
def test_failures_of_jobs(spark: SparkSession, tmp_path: Path, what: str, words: str) -> None:
    (tmp_path / "file").touch()
    frames = {
        "SQL": lambda: spark.range(3).selectExpr("1 DIV (id - id)").collect(),
        "a worker": lambda: spark.range(3).mapInArrow(fail, "id long").collect(),
        "a file": lambda: spark.range(3).write.parquet(str(tmp_path / "file" / "folder")),
    }
    with pytest.raises(failures()) as caught, translated():
        frames[what]()
    said = in_short(str(caught.value))
    assert "\n" not in said
    assert len(said) <= 301
    assert any(word in said for word in words.split("|")), said
    assert ".scala:" not in said

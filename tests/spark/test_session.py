"""Sessions: what is missing is said with its remedy, and what Spark raises becomes an error of this package."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from typing import TYPE_CHECKING, Any

import pytest

from construct_messages.errors import (
    CannotWrite,
    ConstructMessagesError,
    IncompleteResult,
    LogError,
    Position,
    QuadsError,
    SourceError,
    SparkUnavailable,
    UsageError,
    ValueOutOfRange,
)
from construct_messages.spark import session
from construct_messages.spark.session import (
    error_of,
    failures,
    in_short,
    local_session,
    remote_session,
    require,
    translated,
)
from tests.support.spark.sessions import activate, new_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def java(folder: Path, script: str) -> Path:
    """A JAVA_HOME whose `java` is a shell script."""
    command = folder / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("script", "part"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is Java 11"),
        ("echo 'java version \"1.8.0_402\"' >&2", "is Java 8"),
        ("echo 'no such module' >&2; exit 1", "does not run: no such module"),
        ("echo something", "does not run: something"),
    ],
)
def test_java_that_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, part: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, script)))
    with pytest.raises(SparkUnavailable) as caught:
        require()
    assert part in caught.value.message
    assert "openjdk-17-jre-headless" in str(caught.value.hint)
    require(java=False)


def test_java_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "JAVA_HOME", str(java(tmp_path, "echo 'openjdk version \"25\" 2025-09-16' >&2"))
    )
    require()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="JAVA_HOME"):
        require()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="none on PATH"):
        local_session()


def test_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(
        SparkUnavailable, match="grpc not installed, and needed for Spark Connect"
    ) as caught:
        remote_session("sc://127.0.0.1:15002")
    assert caught.value.hint == "pip install 'construct-messages[connect]'"


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_CONNECT_SECONDS", 1)
    with socket.socket() as port:  # bound, but nobody listens
        port.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{port.getsockname()[1]}"
        with pytest.raises(
            SparkUnavailable, match=f"no Spark Connect server answers at {url} for 1 s"
        ):
            remote_session(f"sc://{url}")
    with pytest.raises(
        UsageError, match=r"http://127\.0\.0\.1 is not the address of a Spark Connect server"
    ):
        remote_session("http://127.0.0.1")


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SparkUnavailable, match="pyspark and pandas not installed") as caught:
        local_session()
    assert caught.value.hint == "pip install 'construct-messages[spark]'"


@pytest.mark.parametrize(
    ("found", "refused"), [("4.0.5", True), ("4.1.0", False), ("4.10.2.dev1", False)]
)
def test_versions_of_pyspark(monkeypatch: pytest.MonkeyPatch, found: str, refused: bool) -> None:
    monkeypatch.setattr(session, "version_of", lambda _: found)
    if not refused:
        session.require(java=False)
        return
    with pytest.raises(
        SparkUnavailable, match=r"pyspark 4\.1 or later is needed, and 4\.0\.5"
    ) as caught:
        session.require(java=False)
    assert "pip install" in (caught.value.hint or "")


def test_a_session_that_exists_is_left_alone(spark: SparkSession) -> None:
    assert local_session("local[1]", {"spark.sql.shuffle.partitions": "7"}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_session_does_not_grow_with_its_queries(spark: SparkSession) -> None:
    """Issue 13, 26: what Spark's parser keeps of the SQL of earlier queries is forgotten at a threshold."""
    from construct_messages.spark.construct import construct_messages

    assert spark.conf.get("spark.sql.parser.manageParserCaches") == "true"
    most = 1500  # less than that of this package's sessions, so that few queries reach it
    session = new_session(spark, {"spark.sql.parser.parserDfaCacheFlushThreshold": str(most)})
    quads = session.createDataFrame([], "subject string, predicate string, object string")
    tests = [
        "?o {} 1",
        "STR(?o) {} 'a'",
        "?o + ?p {} ?s",
        "REGEX(?o, 'a{}')",
        "CONCAT(?o, '{}') = ?p",
        "?o {} NOW()",
    ]
    kept: list[int] = []
    flushes = 0
    for test, operator in product(tests, ("=", "<", "!=", ">=")):
        where = f"?s <urn:p> ?o OPTIONAL {{ ?s <urn:q> ?p FILTER({test.format(operator)}) }}"
        assert construct_messages(
            f"CONSTRUCT {{ ?s <urn:p> ?o }} WHERE {{ {where} }}", quads
        ).frame.columns
        kept.append(_parser(spark).getDFACacheNumStates())
        flushes = sum(later < earlier for earlier, later in pairwise(kept))
        if flushes == 2:
            break
    assert max(kept) <= most
    assert flushes == 2
    activate(spark)


def test_a_session_remembers_a_large_expression(spark: SparkSession) -> None:
    """Issue 26, 38: what was forgotten after each query with arithmetic took a second to learn again."""
    from construct_messages.spark.construct import construct_messages

    quads = spark.createDataFrame([], "subject string, predicate string, object string")
    where = "?s <urn:p> ?o FILTER(?o * 2 + 1 > 100 && ?o / 3 < 50)"
    kept = []
    for _ in range(2):
        assert construct_messages(
            f"CONSTRUCT {{ ?s <urn:p> ?o }} WHERE {{ {where} }}", quads
        ).frame.columns
        kept.append(_parser(spark).getDFACacheNumStates())
    assert kept[0] == kept[1] > 1000


def _parser(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.catalyst.parser.AbstractParser  # type: ignore[union-attr]  # Java's


def test_workers_are_this_python(spark: SparkSession) -> None:
    def name(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"name": [sys.executable]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(name, "name string").collect()
    assert os.path.realpath(row.name) == os.path.realpath(sys.executable)


@pytest.mark.parametrize(
    ("sql", "error", "message", "hint"),
    [
        ("'QuadsError: a.nt: it''s [bad]'", QuadsError, "a.nt: it's [bad]", None),
        ("'ValueOutOfRange: 1e400\n  hint: use less'", ValueOutOfRange, "1e400", "use less"),
        ("'QuadsError: two\nlines'", QuadsError, "two\nlines", None),
        ("'UsageError: x'", UsageError, "x", None),
    ],
)
def test_errors_raised_in_sql(
    spark: SparkSession,
    sql: str,
    error: type[ConstructMessagesError],
    message: str,
    hint: str | None,
) -> None:
    frame = spark.range(3).selectExpr(f"if(id = 1, raise_error({sql}), id) AS id")
    for action in (frame.collect, frame.groupBy("id").count().collect):
        with pytest.raises(ConstructMessagesError) as caught, translated():
            action()
        assert (type(caught.value), caught.value.message, caught.value.hint) == (
            error,
            message,
            hint,
        )
        assert caught.value.__cause__


@pytest.mark.parametrize(
    "error",
    [
        QuadsError("a.ttl: no\nTurtle", hint="mend it"),
        LogError("no statement", number=3, position=Position(2, 1), hint="mend it"),
        LogError("no statement", number=3),
    ],
)
def test_errors_raised_in_workers(
    spark: SparkSession, tmp_path: Path, error: ConstructMessagesError
) -> None:
    text, options = (
        error.message,
        {"hint": error.hint, "position": error.position}
        | ({"number": error.number} if isinstance(error, LogError) else {}),
    )
    kind = type(error)

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        raise kind(text, **options)

    frame = spark.range(0, 1, 1, 1).mapInArrow(fail, "id long")
    with pytest.raises(ConstructMessagesError) as caught, translated():
        frame.write.parquet(str(tmp_path / "out"))
    assert type(caught.value) is kind
    assert str(caught.value) == str(error)


def test_failures_that_a_user_can_mend(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"), translated():
        spark.read.text(str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="exists already"), translated():
        spark.range(1).write.parquet(str(tmp_path))
    with pytest.raises(UsageError, match="no file system for nosuch:"), translated():
        spark.read.text("nosuch://host/path")
    (tmp_path / "a.gz").write_bytes(b"not packed")
    with pytest.raises(QuadsError, match=r"a\.gz cannot be read"), translated():
        spark.read.text(str(tmp_path / "a.gz")).collect()


def test_a_folder_that_cannot_be_cleared() -> None:
    """As Spark 4.3 says it where another job removes files of the folder at the same moment."""
    said = ": org.apache.spark.SparkException: Unable to clear output directory file:/a b/logs prior to writing to it."
    with (
        pytest.raises(CannotWrite, match=r"^/a b/logs cannot be overwritten") as caught,
        translated(),
    ):
        raise failures()[0](said)
    assert "a separate folder" in (caught.value.hint or "")


def test_other_failures_pass_unchanged(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="nosuch"), translated():
        spark.table("nosuch")
    with pytest.raises(KeyError), translated():
        raise KeyError("x")


# --- failures, in a line and with a hint (issue 26, 36) --------------------------------------------------------------

# as Spark 4.3, py4j 0.10.9.9 and gRPC have said them, with shorter stacks
RACE = """An error occurred while calling o132.text.
: ExitCodeException exitCode=1: chmod: cannot access '/tmp/x y/logs/_temporary/0': No such file or directory

\tat org.apache.hadoop.util.Shell.runCommand(Shell.java:1071)
\tat org.apache.spark.sql.execution.datasources.FileFormatWriter$.write(FileFormatWriter.scala:168)
"""
RUN = """[TASK_WRITE_FAILED] Task failed while writing rows to file:/data/logs/.20261124T063405355868Z-863a_7_1__h/logs.
Caused by: java.io.IOException: Mkdirs failed to create file:/data/logs/.20261124T063405355868Z-863a_7_1__h/logs\
/_temporary/0\
 (exists=false, cwd=file:/work)
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:515)
"""
MADE = RACE.replace("/_temporary/0", "")  # the folder itself was removed as it was made
TASK = "java.io.IOException: Mkdirs failed to create file:/a b/logs/_temporary/0/_temporary/attempt_2026_m_000001_7"
LOST = "File hdfs://host/logs/_temporary/0/task_1 does not exist."
MEMORY = """Job aborted due to stage failure: Task 2 failed 1 times: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)

Driver stacktrace:
"""
GONE = "Spark's Java process has ended"
SERVER = "the Spark Connect server has ended"
TEXTS: list[tuple[str, str, str]] = [
    (
        RACE,
        "another job may write",
        "/logs: the output that was being written there has been removed",
    ),
    (
        MADE,
        "another job may write",
        "/tmp/x y/logs: the output that was being written there has been removed",
    ),
    (RUN, "another job may write", "/data/logs: the output that was being written"),
    (TASK, "another job may write", "/a b/logs: the output that was being written"),
    (LOST, "another job may write", "hdfs://host/logs: the output that was being written"),
    (MEMORY, "--conf spark.driver.memory=4g", "OutOfMemoryError: Java heap space"),
    (
        "java.io.IOException: No space left on device\n\tat a.B.c(B.java:1)",
        "spark.local.dir",
        "No space left",
    ),
    ("Error while sending or receiving", "memory", GONE),
    ("Answer from Java side is empty", "memory", GONE),
    ("An error occurred while calling o102.text", "memory", GONE),
    (
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n",
        "see its log",
        SERVER,
    ),
    (
        "[INVALID_HANDLE.SESSION_CLOSED] The handle 1 is invalid.",
        "see its log",
        "has ended the session",
    ),
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
    for failure in (
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(),
        BrokenPipeError(),
    ):
        assert error_of(failure).message == GONE


@pytest.mark.parametrize(
    ("error", "printed"), [(EOFError, False), (ConnectionResetError, False), (ValueError, True)]
)
def test_what_the_server_for_accumulators_prints(
    capsys: pytest.CaptureFixture[str], error: type[Exception], printed: bool
) -> None:
    """Nothing when Java is gone, which the program itself says; other failures as before."""

    class Failing(BaseRequestHandler):
        def handle(self) -> None:
            raise error

    with TCPServer(("localhost", 0), Failing) as server:
        session._expect_end(server)
        with socket.create_connection(("localhost", server.server_address[1])):
            server.handle_request()
    assert (error.__name__ in capsys.readouterr().err) is printed


def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield next(batches)
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("SQL", "ArithmeticException|DIVIDE_BY_ZERO|Division by zero"),
        ("a worker", "ZeroDivisionError: on purpose"),
        (
            "a file",
            "exists already|FileAlreadyExists|not a directory|Not a directory|ParentNotDirectory",
        ),
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

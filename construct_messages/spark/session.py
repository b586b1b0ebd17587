"""Spark itself: checks that it can run, creates sessions for the command line, and translates its exceptions.

This is the only module that starts Spark or reads the environment. It never changes an existing session. It does not
use RDF or queries, and imports pyspark only when needed, so that a missing pyspark can be reported.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from construct_messages.errors import (
    CannotWrite,
    ColumnError,
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    Position,
    QuadsError,
    SourceError,
    SparkUnavailable,
    UnsupportedByFormat,
    UsageError,
    ValueOutOfRange,
    shown,
)
from construct_messages.rdf.arguments import checked

if TYPE_CHECKING:
    from socketserver import BaseServer

    from pyspark.sql import SparkSession


# --- failures of Spark as errors of this package --------------------------------------------------
# The exception of a failed job contains the stacks of Java and of Python workers. The useful parts are the first line
# and the last cause.

_DEBUG: Final = "--debug shows where"
_MEMORY: Final = "it may have run out of memory: give it more by --conf spark.driver.memory=4g"

# py4j's messages if there is no answer, and if the process ends during a call
_NO_ANSWER: Final = re.compile(
    r"Error while (?:sending or )?receiving|Answer from Java side is empty|An error occurred while calling \S+\Z"
    r"|An error occurred while trying to connect to the Java server"
)
# gRPC's states if no server answers, or if another server without this session answers
_NO_SERVER: Final = re.compile(
    r"StatusCode\.UNAVAILABLE|failed to connect to all addresses|Socket closed"
)
_NO_SESSION: Final = re.compile(r"INVALID_HANDLE\.(?:SESSION|OPERATION)_\w+")

# the files of Spark's committer, and of a run of this package (`logs.runs`)
_RUNS: Final = r"/(?:_temporary\b|\.\d{8}T\d{12}Z-[0-9a-f]{4}_)"
_REMOVED: Final = (
    # Hadoop sets permissions after it has made a folder, also for the folder above its own files
    re.compile(
        rf"chmod: cannot access '(?:file:)?(?P<folder>[^\n]+?)(?:{_RUNS}[^\n]*)?': No such file"
    ),
    re.compile(rf"Mkdirs failed to create (?:file:)?(?P<folder>[^\n]+?){_RUNS}"),
    re.compile(
        rf"(?:file:)?(?P<folder>[^\s'\"]+?){_RUNS}[^\n]*?(?:does not exist|No such file or directory)"
    ),
)
# of the disk that is written to: Spark's own files for shuffles have a hint below
_FULL: Final = re.compile(
    rf"Task failed while writing rows to (?:file:)?(?P<folder>[^\n]+?)(?:{_RUNS}[^\n]*)?\. SQLSTATE"
    r".*(?P<reason>No space left on device|Disk quota exceeded|File too large)",
    re.DOTALL,
)
_HINTS: Final = (
    (
        re.compile(r"OutOfMemoryError|Java heap space|GC overhead"),
        "give it more memory: --conf spark.driver.memory=4g",
    ),
    (
        re.compile(r"No space left on device"),
        "free some space, or name another disk: --conf spark.local.dir=DIR",
    ),
    (
        re.compile(r"ExecutorLostFailure|executor \S+ exited|Executor heartbeat timed out"),
        "an executor has ended; it may have run out of memory: give it more by --conf spark.executor.memory=4g",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|Python worker failed to connect"),
        "see the log of the executor",
    ),
)
_LOGGED_BEFORE: Final = re.compile(r"An error occurred while calling \S+\.?\s*:?\s*")
_CLASS: Final = re.compile(r"(?:[a-z][\w$]*\.)+(?=[A-Z])")
_STACK: Final = re.compile(
    r"\s*(?:at [\w.$/<>]+\(|\.\.\. \d+ more|File \"|Driver stacktrace:|JVM stacktrace:|Suppressed:)"
)
_CAUSED_BY: Final = "Caused by: "


def error_of(failure: Exception) -> ConstructMessagesError:
    """Returns the error of this package for a failure of Spark, with one line of text.

    >>> print(error_of(ConnectionRefusedError(111, "Connection refused")))
    Spark's Java process has ended
      hint: it may have run out of memory: give it more by --conf spark.driver.memory=4g
    """
    text = str(failure).strip()
    if isinstance(failure, ConnectionError) or _NO_ANSWER.match(text):
        return SourceError("Spark's Java process has ended", hint=_MEMORY)
    if _NO_SERVER.search(text):
        return SourceError(
            "the Spark Connect server has ended, or cannot be reached any more",
            hint="see its log; it may have run out of memory: start it with --conf spark.driver.memory=4g",
        )
    if _NO_SESSION.search(text):
        return SourceError(
            "the Spark Connect server has ended the session",
            hint="see its log; it may have restarted",
        )
    if removed := files_removed(text):
        return removed
    hint = next((hint for pattern, hint in _HINTS if pattern.search(text)), _DEBUG)
    return SourceError(f"Spark failed: {in_short(text)}", hint=hint)


def files_removed(text: str) -> IncompleteResult | None:
    """Returns the error for a job whose files were removed while it ran, if the text of a failure means that.

    >>> print(files_removed("chmod: cannot access '/logs/_temporary/0': No such file or directory"))
    /logs: the output that was being written there has been removed
      hint: another job may write to the same folder: run one after the other, or use a separate folder for each
    """
    found = next(filter(None, (pattern.search(text) for pattern in _REMOVED)), None)
    if found is None:
        return None
    return IncompleteResult(
        f"{found['folder']}: the output that was being written there has been removed",
        hint="another job may write to the same folder: run one after the other, or use a separate folder for each",
    )


def disk_full(text: str) -> CannotWrite | None:
    """Returns the error for a job whose output has no room, if the text of a failure means that."""
    if (found := _FULL.search(text)) is None:
        return None
    return CannotWrite(
        f"cannot write to {found['folder']}: {found['reason']}",
        hint="free some space there, or choose another place",
    )


def in_short(text: str) -> str:
    r"""Returns the first line of a failure and its last cause, without stacks.

    >>> text = (
    ...     "An error occurred while calling o12.text.\n: org.apache.spark.SparkException: Job aborted.\n"
    ...     "\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: disk\n\tat a.B.c(B.java:1)\n"
    ...     "Caused by: java.lang.Error: broken\n\t... 3 more"
    ... )
    >>> in_short(text)
    'SparkException: Job aborted. (Error: broken)'
    """
    text = _LOGGED_BEFORE.sub("", text, count=1)
    first = " ".join(_until_stack(text))
    causes = [
        line.removeprefix(_CAUSED_BY) for line in text.splitlines() if line.startswith(_CAUSED_BY)
    ]
    last = causes[-1] if causes else _last_of_traceback(text)
    message = _CLASS.sub("", first)
    cause = _CLASS.sub("", last)
    return shown(message if not cause or cause in message else f"{message} ({cause})")


def _until_stack(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if _STACK.match(line) or line.startswith((_CAUSED_BY, "Traceback ")):
            return
        if line.strip():
            yield line.strip()


def _last_of_traceback(text: str) -> str:
    """Returns the exception with which the traceback of a Python worker ends; empty if there is none."""
    _, found, traceback = text.partition("Traceback (most recent call last):\n")
    lines = traceback.splitlines() if found else []
    return next((line for line in lines if line and not line[0].isspace()), "")


# --- errors of this package that Spark has wrapped ------------------------------------------------
# SQL raises errors by `raise_error('ClassName: message')`, and Python workers raise them themselves. Both arrive as
# text in an exception of Spark.

_RAISED: Final = {
    error.__name__: error
    for error in (
        CannotWrite,
        UnsupportedByFormat,
        IncompleteResult,
        LimitExceeded,
        QuadsError,
        SourceError,
        UsageError,
        ValueOutOfRange,
    )
}
# of raise_error, which ends with its SQLSTATE, or in the last lines of a worker's traceback
_OWN: Final = re.compile(
    rf"(?:\[USER_RAISED_EXCEPTION\] |^construct_messages\.errors\.)({'|'.join(_RAISED)}|ColumnError|LogError): "
    r"(.*?)(?:\n  hint: ([^\n]*?))?\s*(?: SQLSTATE: \w{5}|\n\s*at [\w.$]+\(|\n\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_IN_LOG: Final = re.compile(r"(?:line (\d+), column (\d+): )?message (\d+): (.*)", re.DOTALL)
_MENDABLE: Final[tuple[tuple[re.Pattern[str], Callable[[str], ConstructMessagesError]], ...]] = (
    (
        re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\. SQLSTATE"),
        lambda path: UsageError(f"{path} does not exist"),
    ),
    (
        re.compile(r"URISyntaxException: Relative path in absolute URI: ([^\n]*)"),
        lambda name: UsageError(
            f"{name}: Hadoop's patterns match no name with a colon",
            hint="rename it, or write a pattern that leaves it out",
        ),
    ),
    (
        re.compile(r"\[PATH_ALREADY_EXISTS\] Path (.*?) already exists\."),
        lambda path: UsageError(
            f"{path} exists already", hint="choose another path, or ask for it to be overwritten"
        ),
    ),
    (
        re.compile(r"Unable to clear output directory (?:file:)?(.*?) prior to writing to it"),
        lambda path: CannotWrite(
            f"{path} cannot be overwritten: not all of it could be removed",
            hint="check its rights, and that no other job writes there: give each a separate folder",
        ),
    ),
    (
        re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (.*?)\. "),
        lambda file: QuadsError(
            f"{file} cannot be read",
            hint="check that it is complete, and compressed according to its name",
        ),
    ),
    (
        re.compile(r"ModuleNotFoundError: No module named '([^']+)'"),
        lambda module: SparkUnavailable(
            f"Spark's Python workers have no module {module}",
            hint="ship this package to them by --py-files, as a .zip, and install its requirements where they run",
        ),
    ),
    (
        re.compile(
            r"No FileSystem for scheme \"([^\"]+)\"|Class org\.apache\.hadoop\.fs\.(\w+)\.\w+ not found"
        ),
        lambda scheme: UsageError(
            f"Spark has no file system for {scheme}:",
            hint="start it with the connector as a package (for s3a: "
            "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION, with the version of Spark's Hadoop)",
        ),
    ),
)


def error_in(text: str) -> ConstructMessagesError | None:
    r"""Returns the error of this package in the text of an exception of Spark; None if there is none.

    >>> error_in("[USER_RAISED_EXCEPTION] QuadsError: a.nt: no triple\n  hint: mend it SQLSTATE: P0001")
    QuadsError('a.nt: no triple')
    >>> error_in("[DIVIDE_BY_ZERO] Division by zero.") is None
    True
    """
    if own := _OWN.search(text):
        name, message, hint = own.groups()
        if name == "LogError":
            log = _IN_LOG.fullmatch(message)
            if log is None:
                return None
            line, column, number, message = log.groups()
            position = Position(int(line), int(column)) if line else None
            return LogError(message, number=int(number), position=position, hint=hint)
        if name == "ColumnError":
            return ColumnError(message, variable=message[1:].partition(" ")[0], hint=hint)
        return _RAISED[name](message, hint=hint)
    for pattern, error in _MENDABLE:
        if found := pattern.search(text):
            return error(next(filter(None, found.groups())))
    return disk_full(text) or files_removed(text)


# --- session --------------------------------------------------------------------------------------

_OLDEST_JAVA: Final = 17
_OLDEST_SPARK: Final = (4, 1)
_INSTALL: Final = "pip install 'construct-messages[spark]'"
_INSTALL_CONNECT: Final = "pip install 'construct-messages[connect]'"
_INSTALL_JAVA: Final = (
    f"install Java {_OLDEST_JAVA} or later (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME, "
    "or use a Spark Connect server (--remote), which needs no Java here"
)

# A merge join holds all rows that match one row: by Spark's default on the heap, in any number; with this setting,
# more than this many rows are moved to disk when memory is short.
_BOUNDED: Final = {
    "spark.sql.sortMergeJoinExec.buffer.in.memory.threshold": "4096",
    # Spark's parser of SQL caches its analysis of each expression without limit; with this setting, it clears the cache
    # at some 90 MB. One query with arithmetic takes half of that: with less it would be analysed again each time, for a
    # second or more.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",
}
# Java's default collector runs at the same time as the tasks, on cores that they could use: on two cores, a run takes a
# tenth longer. So does the compiler that optimizes code, and a third of the optimized code runs only a few more times:
# with these limits, three times Java's own, less code is optimized.
_OPTIMIZE_LATER: Final = (
    "-XX:Tier4InvocationThreshold=15000 "
    "-XX:Tier4MinInvocationThreshold=1800 -XX:Tier4CompileThreshold=45000"
)
# Java collects the whole heap when its classes take 21 MB, and at each later threshold; Spark's take some 150 MB.
_CLASSES: Final = "-XX:MetaspaceSize=256m"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LONG_LIVED: Final = {_JAVA_OPTIONS: f"-XX:+UseParallelGC {_CLASSES} {_OPTIMIZE_LATER}"}
# A run over little data ends before optimized code has saved the time that optimizing takes.
_LITTLE_BYTES: Final = 64 << 20
_SHORT_LIVED: Final = {_JAVA_OPTIONS: f"-XX:+UseSerialGC {_CLASSES} -XX:TieredStopAtLevel=1"}
# A task that shuffles sorts and writes for each partition, and Spark's 200 are too many for data on one machine.
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_MOST_PARTITIONS: Final = 200
_PARTITION_BYTES: Final = 32 << 20
_LEAST_PARTITION_BYTES: Final = 4 << 20  # where there are cores for more partitions
_CONNECT_SECONDS: Final = 10


def require(*, java: bool = True) -> None:
    """Raises `SparkUnavailable` if Spark cannot run here: with `java` a driver, otherwise a client of Spark Connect."""
    _require_modules(("pyspark", "pyarrow", "pandas"), "Spark", _INSTALL)
    _require_spark()
    if java:
        _require_java()


def _require_modules(names: Sequence[str], use: str, install: str) -> None:
    if missing := [name for name in names if find_spec(name) is None]:
        raise SparkUnavailable(
            f"{' and '.join(missing)} not installed, and needed for {use}", hint=install
        )


def _require_spark() -> None:
    """Checks the version of pyspark, if it was installed as a package."""
    for name in ("pyspark", "pyspark-client"):
        with suppress(PackageNotFoundError):
            found = version_of(name)
            if tuple(map(int, found.split(".")[:2])) < _OLDEST_SPARK:
                raise SparkUnavailable(
                    f"pyspark {'.'.join(map(str, _OLDEST_SPARK))} or later is needed, and {found} is installed",
                    hint=f"{_INSTALL}, in the version of the cluster",
                )
            return


def _require_java() -> None:
    """Checks the Java that Spark's launcher finds."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else "java"
    found = shutil.which(command)
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise SparkUnavailable(f"Spark needs Java, and there is none {where}", hint=_INSTALL_JAVA)
    _check_version(found)


@cache
def _check_version(java: str) -> None:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = _feature_release(done.stderr + done.stdout)
    if done.returncode or version is None:
        raise SparkUnavailable(
            f"{java} does not run: {(done.stderr or done.stdout).strip()}", hint=_INSTALL_JAVA
        )
    if version < _OLDEST_JAVA:
        raise SparkUnavailable(
            f"Spark needs Java {_OLDEST_JAVA} or later, and {java} is Java {version}",
            hint=_INSTALL_JAVA,
        )


def _feature_release(text: str) -> int | None:
    """Returns the feature release in the output of `java -version`; before Java 9 it was the second number."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
_PACKED: Final = {".gz", ".bz2", ".xz", ".zst", ".parquet"}
_UNPACKED: Final = 10
"""The approximate ratio of the sizes of RDF files before and after compression."""


_MOST_FILES: Final = 10_000


def input_size(paths: Iterable[str]) -> int | None:
    """Estimates the size of files, folders and patterns, unpacked, in bytes; None if it is not known.

    It is not known of files that are not on this machine or that only Spark can find, and of more than 10,000 files.
    """
    found: list[str] = []
    for path in paths:
        local = path.removeprefix("file:")
        if _URL.match(local):
            return None
        matched = [local] if os.path.exists(local) else glob.glob(local)
        if not matched:
            return None
        found += matched
    try:
        files = list(islice(_files(found), _MOST_FILES + 1))
        return sum(map(_size, files)) if len(files) <= _MOST_FILES else None
    except OSError:
        return None


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (file for file in path.rglob("*") if file.is_file())
        else:
            yield path


def _size(file: Path) -> int:
    packed = file.suffix.lower() in _PACKED
    return file.stat().st_size * (_UNPACKED if packed else 1)


@checked
def local_session(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    *,
    input_bytes: int | None = None,
) -> SparkSession:
    """Creates a session, or returns the existing one of this process.

    Args:
        master: Spark's master URL.
        settings: settings of the new session, by Spark's names; they override the defaults of this package.
        input_bytes: the approximate size of the input, if it is known (`input_size`). Spark shuffles into
            few partitions, and for less than 64 MiB, Java compiles quickly instead of well.

    Raises:
        SparkUnavailable: see `require`.

    >>> local_session().sparkContext is spark.sparkContext  # that of the existing session
    True
    """
    require()
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # otherwise workers would be the first python3 on PATH, without this package's libraries
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("construct-messages")
    for name, value in new_settings(settings or {}, input_bytes=input_bytes).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _expect_end(getattr(spark.sparkContext, "_accumulatorServer", None))
    return spark


def _expect_end(server: BaseServer | None) -> None:
    """Prevents pyspark's server for accumulators, which has no public name, from printing when Java has ended.

    Java holds a connection to it from the first task in Python on. If Java is killed, the server would print a
    traceback in addition to the error that the program raises. Other failures are printed as before.
    """
    if server is None:
        return
    default = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            default(request, address)

    server.handle_error = handle_error  # type: ignore[assignment, method-assign]  # of this server alone


def new_settings(given: Mapping[str, str], *, input_bytes: int | None = None) -> dict[str, str]:
    """Returns the settings of a new session, some of which depend on the size of its input."""
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    sized = _LONG_LIVED
    if input_bytes is not None:
        java = _SHORT_LIVED if input_bytes < _LITTLE_BYTES else _LONG_LIVED
        sized = {**java, _PARTITIONS: str(_partitions(input_bytes, os.cpu_count() or 1))}
    return {**quiet, **_BOUNDED, **sized, **given}


def _partitions(input_bytes: int, cores: int) -> int:
    """Returns the number of partitions to shuffle into."""
    parallel = min(cores, input_bytes // _LEAST_PARTITION_BYTES)
    return min(_MOST_PARTITIONS, max(2 + input_bytes // _PARTITION_BYTES, parallel))


def remote_session(url: str) -> SparkSession:
    """Creates a session of a Spark Connect server at `sc://HOST:PORT`, with any parameters of Spark's client."""
    require(java=False)
    _require_modules(("grpc", "grpc_status"), "Spark Connect", _INSTALL_CONNECT)
    import grpc  # type: ignore[import-untyped]  # grpc has no types
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        server = DefaultChannelBuilder(url)
    except PySparkException as error:
        raise UsageError(
            f"{url} is not the address of a Spark Connect server: {error.getMessage()}",
            hint="write sc://HOST:PORT",
        ) from error
    # the client itself would retry for ten minutes, and could not be interrupted
    with server.toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(_CONNECT_SECONDS)
        except grpc.FutureTimeoutError as error:
            raise SparkUnavailable(
                f"no Spark Connect server answers at {server.endpoint} for {_CONNECT_SECONDS} s",
                hint="check the address, and that the server (start-connect-server.sh) runs",
            ) from error
    return SparkSession.builder.remote(url).getOrCreate()


@contextmanager
def translated() -> Iterator[None]:
    """Raises the errors of this package that Spark wraps in its own exceptions, for actions on a DataFrame.

    SQL raises such errors by `raise_error('ClassName: message')`, and Python workers raise them directly; both arrive
    inside an exception of Spark. Common failures of Spark that a user can fix are translated, too. All other exceptions
    are unchanged. If a line of a dump is malformed, its file is read again up to it, to number it.

    Raises:
        ConstructMessagesError: the error that `raise_error` names; UsageError for a path; QuadsError for a file that
            cannot be read.

    >>> with translated():
    ...     _ = spark.sql("SELECT raise_error('ValueOutOfRange: 1e99 is too large')").collect()
    Traceback (most recent call last):
    ...
    construct_messages.errors.ValueOutOfRange: 1e99 is too large
    """
    try:
        yield
    except failures() as exception:
        if (error := error_in(str(exception))) is None:
            raise
        raise _numbered(error) from exception


_MALFORMED: Final = re.compile(r"(?P<file>\S+): malformed line: (?P<text>.*)", re.DOTALL)


def _numbered(error: ConstructMessagesError) -> ConstructMessagesError:
    """Returns the error of a malformed line with the number of the line, for which the file is read again."""
    found = _MALFORMED.fullmatch(error.message)
    if found is None or not isinstance(error, QuadsError) or (spark := active_session()) is None:
        return error
    from construct_messages.spark.line_numbers import line_number

    try:
        number = line_number(spark, found["file"], found["text"])
    except failures():  # the file has gone, or the session has
        return error
    if number is None:
        return error
    return QuadsError(f"{found['file']}: malformed line {number}: {found['text']}", hint=error.hint)


def is_remote(spark: SparkSession) -> bool:
    """Returns whether a session is one of Spark Connect, which has its own class, and no Java here."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def active_session() -> SparkSession | None:
    """Returns the active session of this program, of Spark or of Spark Connect, or None. Imports nothing."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    connect = sys.modules.get("pyspark.sql.connect.session")
    return None if connect is None else connect.SparkSession.getActiveSession()


def failures() -> tuple[type[Exception], ...]:
    """Returns the exceptions of Spark's client for failures of Spark, and for a lost Java process or server.

    Returns no classes if pyspark is not installed.
    """
    if find_spec("pyspark") is None:
        return ()
    from pyspark.errors import PySparkException

    if find_spec("py4j") is None:  # not part of the client of Spark Connect
        return PySparkException, ConnectionError
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types

    return PySparkException, ConnectionError, Py4JError

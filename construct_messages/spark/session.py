"""Spark itself: checks that it can run, creates sessions for the command line, and translates its exceptions.

This is the only module that starts Spark or reads the environment. It never changes an existing session. It does not
use RDF or queries, and imports pyspark only when needed, so that a missing pyspark can be reported.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from construct_messages.rdf.arguments import checked
from construct_messages.rdf.errors import (
    CannotWrite,
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    Position,
    QuadsError,
    SparkUnavailable,
    UnsupportedByFormat,
    UsageError,
    ValueOutOfRange,
)
from construct_messages.spark import jar
from construct_messages.spark.failures import disk_full, files_removed

if TYPE_CHECKING:
    from socketserver import BaseServer

    from pyspark.sql import SparkSession


# --- wrapped errors -------------------------------------------------------------------------------
# Errors of this package in the exceptions of Spark that wrap them, and failures of Spark that a user can fix.
#
# SQL raises errors by `raise_error('ClassName: message')`, and Python workers raise them themselves. Both arrive as
# text in an exception of Spark. All other failures are handled by `failures`.

_RAISED: Final = {
    error.__name__: error
    for error in (
        CannotWrite,
        UnsupportedByFormat,
        IncompleteResult,
        LimitExceeded,
        QuadsError,
        UsageError,
        ValueOutOfRange,
    )
}
# of raise_error, which ends with its SQLSTATE, or in the last lines of a worker's traceback
_OWN: Final = re.compile(
    rf"(?:\[USER_RAISED_EXCEPTION\] |^construct_messages\.rdf\.errors\.)({'|'.join(_RAISED)}|LogError): "
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
            hint="check its rights, and that no other job writes there: give each a folder of its own",
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
        return _RAISED[name](message, hint=hint)
    for pattern, error in _MENDABLE:
        if found := pattern.search(text):
            return error(next(filter(None, found.groups())))
    return disk_full(text) or files_removed(text)


# --- session --------------------------------------------------------------------------------------

_OLDEST_JAVA: Final = 17
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
    """Checks that Spark can run here.

    Args:
        java: whether a driver runs on this machine; a client of Spark Connect needs no Java.

    Raises:
        SparkUnavailable: pyspark or Java is missing or too old; the hint contains the install command.
    """
    _require_modules(("pyspark", "pyarrow", "pandas"), "Spark", _INSTALL)
    if java:
        _require_java()


def _require_modules(names: Sequence[str], use: str, install: str) -> None:
    if missing := [name for name in names if find_spec(name) is None]:
        raise SparkUnavailable(
            f"{' and '.join(missing)} not installed, and needed for {use}", hint=install
        )


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
    """Returns the feature release in the output of `java -version`; before Java 9 it was the second number.

    >>> _feature_release('openjdk version "17.0.15" 2025-04-15'), _feature_release('java version "1.8.0_402"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


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
    """Prevents pyspark's server for accumulators from printing when Java has ended.

    Java holds a connection to it from the first task in Python on. If Java is killed, the server would print a
    traceback in addition to the error that the program raises. Other failures are printed as before.

    Args:
        server: the server of pyspark, which has no public name; None: there is none.
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
    chosen = {**quiet, **_BOUNDED, **sized, **given}
    return {**chosen, **jar.settings(chosen)}


def _partitions(input_bytes: int, cores: int) -> int:
    """Returns the number of partitions to shuffle into.

    >>> _partitions(0, cores=2), _partitions(1 << 30, cores=2), _partitions(1 << 30, cores=64), _partitions(1 << 40, 64)
    (2, 34, 64, 200)
    """
    parallel = min(cores, input_bytes // _LEAST_PARTITION_BYTES)
    return min(_MOST_PARTITIONS, max(2 + input_bytes // _PARTITION_BYTES, parallel))


def remote_session(url: str) -> SparkSession:
    """Creates a session of a Spark Connect server.

    Args:
        url: `sc://HOST:PORT`, optionally with `/;` and parameters, as Spark's client accepts it.

    Raises:
        SparkUnavailable: the libraries of the client are not installed, or no server answers.
        UsageError: not a URL of a server.
    """
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
            f"{url} is no address of a Spark Connect server: {error.getMessage()}",
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
    construct_messages.rdf.errors.ValueOutOfRange: 1e99 is too large
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

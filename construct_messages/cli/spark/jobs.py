"""The Spark session of a command: opens it, reports its work, and stops the work on a signal.

The session is this program's own (local, or on the cluster of `--master`), that of `spark-submit`, or one of Spark
Connect. The commands of `spark` do the work in it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING, Final

from construct_messages.cli.arguments import add_reports, option, pairs
from construct_messages.cli.standard import STOP_SIGNALS
from construct_messages.rdf.errors import UsageError
from construct_messages.spark.session import (
    active_session,
    error_of,
    failures,
    input_size,
    local_session,
    remote_session,
    require,
    translated,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable by which spark-submit passes the session to a program."""

_SHIPPED: Final = (".zip", ".py", ".egg", ".jar")
"""The extensions of files that Spark's workers can import from; Spark silently ignores other files."""

_PAUSE_SECONDS: Final = 0.2


class Job:
    """A session, and the report of its work.

    Args:
        spark: the session.
        started: when the program began to create it, by `time.monotonic`.
    """

    def __init__(self, spark: SparkSession, started: float) -> None:
        self.spark = spark
        self._seconds = {"session": time.monotonic() - started}
        self._figures: dict[str, int] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Records the time of a stage."""
        started = time.monotonic()
        yield
        self._seconds[name] = time.monotonic() - started

    def report(self, name: str, figure: int | None) -> None:
        """Records a figure."""
        self._figures[name] = figure or 0

    @property
    def summary(self) -> str:
        """A line that summarises the job."""
        figures = ", ".join(f"{figure:,} {name}" for name, figure in self._figures.items())
        seconds = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self._seconds.items())
        return f"{figures} ({seconds})"


def add_session(command: argparse.ArgumentParser) -> None:
    """Adds the options that select the session."""
    group = command.add_argument_group("session")
    option(
        group,
        "--master URL",
        "the Spark master; default: that of spark-submit, or local[*]",
    )
    option(group, "--remote sc://HOST:PORT", "use a Spark Connect server")
    option(group, "--conf NAME=VALUE", "a setting of a new session", repeatable=True)
    option(
        group,
        "--py-files FILE",
        "files for Spark's workers: this package, as a .zip",
        repeatable=True,
    )
    add_reports(group, "show neither progress nor summary")


@contextmanager
def open_job(options: argparse.Namespace, inputs: Sequence[str]) -> Iterator[Job]:
    """Opens the session of the options until the block ends, and then prints the summary.

    Args:
        options: those of `add_session`.
        inputs: the files, folders and patterns that are going to be read.

    Raises:
        ConstructMessagesError: errors of Spark are `SourceError`s.
    """
    started = time.monotonic()
    with _Stop() as stop:
        with _failures():
            spark, is_own = _session(options, inputs)
        job = Job(spark, started)
        try:
            stop.cancels(spark)
            with _failures(), translated():
                if options.py_files:
                    spark.addArtifacts(*options.py_files, pyfile=True)
                yield job
        finally:
            if is_own:
                with suppress(
                    *failures()
                ):  # Java may have ended, because of an error that is raised already or a signal
                    spark.stop()
    if not options.quiet and not getattr(options, "explain", False):
        print(job.summary, file=sys.stderr)


class _Stop:
    """Ends a program that waits for Spark at a signal: its jobs are cancelled, so waiting for them fails.

    An exception raised while waiting for Java's answer would leave the answer in the connection: the next call would
    read it, and the program could no longer stop Spark. (pyspark's handler of SIGINT has this problem.) Raised while
    Java starts, it would leave Java running. So another thread cancels the jobs, and the previous handler is called
    when the work has ended. It is called at once if the program does not wait for Java, and at a second signal.
    """

    def __init__(self) -> None:
        self._handlers = {
            number: handler
            for number in STOP_SIGNALS
            if callable(handler := signal.getsignal(number))
        }
        self._spark: SparkSession | None = None
        self._given: tuple[int, FrameType | None] | None = None
        self._ended = Event()

    def __enter__(self) -> _Stop:
        for number in self._handlers:
            signal.signal(number, self._handle)
        return self

    def cancels(self, spark: SparkSession) -> None:
        """Cancels the jobs of this session from now on; ends the program if a signal came while it was created."""
        self._spark = spark
        self.__enter__()  # pyspark has replaced the handler of SIGINT
        self._pass_on()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._pass_on()

    def _pass_on(self) -> None:
        if self._given is not None:
            number, frame = self._given
            self._handlers[number](number, frame)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self._given is not None
        self._given = number, frame
        if again or not _is_in_spark(frame):
            self._pass_on()
        elif self._spark is not None:
            Thread(target=self._cancel, args=(self._spark,), daemon=True).start()

    def _cancel(self, spark: SparkSession) -> None:
        """Cancels running jobs, and jobs that begin later."""
        with suppress(*failures()):  # Java may be gone, too
            while not self._ended.is_set():
                spark.interruptAll()
                self._ended.wait(_PAUSE_SECONDS)


def _is_in_spark(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("py4j", "pyspark"):
            return True
        frame = frame.f_back
    return False


# --- the session ------------------------------------------------------------------------------------------------------


def _session(options: argparse.Namespace, inputs: Sequence[str]) -> tuple[SparkSession, bool]:
    """A session, and whether it is this program's own."""
    settings = pairs("--conf", options.conf, "NAME=VALUE")
    submitted = _SUBMITTED in os.environ
    if (submitted or options.remote) and (options.master or settings):
        raise UsageError(
            "--master and --conf are for a session of this program's own",
            hint="pass them to spark-submit, or to the server of --remote",
        )
    if submitted and options.py_files:
        raise UsageError(
            "--py-files is spark-submit's own here",
            hint="pass it to spark-submit, before the program",
        )
    for file in options.py_files:
        _check_shipped(file)
    if options.remote:
        return remote_session(options.remote), True
    require()
    from pyspark.sql import SparkSession

    if submitted:
        return SparkSession.builder.getOrCreate(), False
    if (active := active_session()) is not None:
        return active, False
    shown = sys.stderr.isatty() and not options.quiet
    own = {"spark.ui.showConsoleProgress": str(shown).lower()} | (
        {} if options.debug else {"spark.log.level": "FATAL"}
    )
    with _java_heard(start=options.debug, later=options.debug or not options.quiet):
        master = options.master or "local[*]"
        return local_session(master, own | settings, input_bytes=input_size(inputs)), True


def _check_shipped(file: str) -> None:
    path = Path(file)
    if path.suffix not in _SHIPPED:
        raise UsageError(
            f"--py-files {file}: Spark's workers import from {', '.join(_SHIPPED)} only",
            hint="copy a wheel to a name that ends in .zip",
        )
    if not path.is_file():
        raise UsageError(f"--py-files {file}: there is no such file here")


@contextmanager
def _java_heard(*, start: bool, later: bool) -> Iterator[None]:
    """A block that starts Java: filters Java's standard error during the start and later.

    A start always prints the same lines, some of them before Spark reads any setting. They are held back, and shown
    only if the block fails.

    Args:
        start: whether output during the start is shown at once.
        later: whether Java's output after the start is shown.
    """
    if start:
        yield
        return
    ours, theirs = os.pipe()
    shown = os.dup(2)
    pieces: list[bytes] = []
    started = Event()

    def listen() -> None:
        with open(ours, "rb", buffering=0) as pipe:
            while piece := pipe.read(1 << 16):
                if not started.is_set():
                    pieces.append(piece)
                elif later:
                    os.write(shown, piece)

    sys.stderr.flush()
    os.dup2(theirs, 2)
    os.close(theirs)
    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
        started.set()
    except Exception:
        os.dup2(shown, 2)  # so that the pipe ends when Java does
        listener.join(_PAUSE_SECONDS)
        os.write(shown, b"".join(pieces))
        raise
    finally:
        os.dup2(shown, 2)


@contextmanager
def _failures() -> Iterator[None]:
    """Raises Spark's errors as errors of this package."""
    try:
        yield
    except failures() as error:
        raise error_of(error) from error

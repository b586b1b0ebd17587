"""The commands `spark load`, `run`, `convert` and `verify`, for dumps that are too large for one process.

The session is this program's own (local, or on the cluster of `--master`), that of `spark-submit`, or one of Spark
Connect. `construct_messages/spark/` implements the commands.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from construct_messages.cli.arguments import (
    LABELS,
    LOG_FORMATS,
    NO_PREFIXES,
    Commands,
    add_format,
    add_options,
    add_reports,
    add_table,
    format_options,
    option,
    pairs,
)
from construct_messages.cli.examine import counted
from construct_messages.cli.queries import add_dataset, add_query, arguments, query_text
from construct_messages.cli.terminal import STOP_SIGNALS, report, warn
from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.logs import check_options
from construct_messages.rdf.formats import FORMATS
from construct_messages.rdf.formats.lookup import default_format, find_log
from construct_messages.rdf.options import Grouping, MessageOptions
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
    from pyspark.sql import DataFrame, SparkSession

    from construct_messages.spark.quads.table import QuadTable

_STATUSES: Final = (
    "Exit status: 0 complete, 1 not written, 2 wrong usage or query, or no Spark, 3 malformed data, or Spark failed, "
    "4 beyond a limit."
)
_ABOUT_THE_QUERY: Final = {"group_by", "bindings", "dataset", "prefixes", "base"}
_DAMAGED: Final = 3
_GONE: Final = {
    "serve": "it has gone: for many queries on one machine, use construct-messages load, and run --source TABLE; to "
    "keep a session of Spark, start Spark's own start-connect-server.sh, and name it by --remote",
    "--no-class-archive": "it has gone: leave it out, as no archive of Java classes is made",
}


def add(commands: Commands) -> None:
    """Adds the commands."""
    spark = commands.add_parser(
        "spark",
        help="load, query and convert large data on Spark",
        description="Write message logs of RDF dumps, or of other logs, on Apache Spark.",
        gone=_GONE,
    )
    steps = spark.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_load(steps)
    _add_run(steps)
    _add_convert(steps)
    _add_verify(steps)


def _add_load(steps: Commands) -> None:
    load = steps.add_parser(
        "load",
        help="write a table of RDF dumps",
        description="Read RDF dumps, check them, and write their quads as a Parquet table for many queries.",
        examples=[
            "construct-messages spark load dump/*.nt.bz2 --output dump.quads",
            "construct-messages spark load dump/changed.nt.bz2 --output dump.quads --mode append",
        ],
        epilog=_STATUSES,
        gone=_GONE,
    )
    load.set_defaults(command=_load)
    load.add_argument(
        "paths", metavar="PATH", nargs="+", help="files, folders or patterns that Spark reads"
    )
    option(load, "-o, --output TABLE", "the folder of the table", required=True)
    help = "if it exists: fail, replace it, or add the files to it or replace those that it has"
    option(load, "--mode {error,overwrite,append} [error]", help)
    _add_reading(load)
    _add_session(load)


def _add_run(steps: Commands) -> None:
    run = steps.add_parser(
        "run",
        help="run a CONSTRUCT query and write a log",
        description="Run a CONSTRUCT query over a table or dumps and write a log with one RDF Message per solution.",
        examples=[
            "construct-messages spark run query.rq --quads dump.quads --output messages.nq.gz",
            "construct-messages spark run query.rq --quads dump.quads --explain",
        ],
        epilog=_STATUSES,
        gone=_GONE,
    )
    run.set_defaults(command=_run)
    query = run.add_argument_group("query and quads")
    add_query(query)
    help = "a table of spark load, or RDF dumps: files, folders or patterns that Spark reads"
    option(query, "--quads PATH", help, nargs="+", required=True)
    add_dataset(query, default_graph="a graph of the default graph")
    add_table(
        query,
        """
        --explain   print the plan of the query and exit
        --join {auto,star,joins} [auto]   how patterns are joined
        --order {estimated,as-written} [estimated]   the order in which patterns are joined
        --max-path-rounds N   the longest path that * and + follow
        --allow-full-closure   allow * and + to start at every node
        """,
    )
    messages = run.add_argument_group("messages")
    add_options(messages, Grouping, "by", "order")
    add_options(messages, MessageOptions, but=["distinct_limit"])
    option(_add_writing(run), "--no-prefixes", NO_PREFIXES)
    _add_reading(run)
    _add_session(run)


def _add_convert(steps: Commands) -> None:
    convert = steps.add_parser(
        "convert",
        help="write logs in another format or syntax",
        description="Read logs of RDF Messages, in parts where they can be split, and write their messages as logs.",
        examples=["construct-messages spark convert logs/*.nq.bz2 --output logs.jelly"],
        epilog=_STATUSES,
        gone=_GONE,
    )
    convert.set_defaults(command=_convert)
    convert.add_argument("logs", metavar="LOG", nargs="+", help="files, folders or patterns")
    group = convert.add_argument_group("input logs")
    option(group, f"--input-format {LOG_FORMATS}", "the format; default: that of the extensions")
    help = "the syntax that delimits messages; default: that of each log"
    option(group, "--input-syntax", help, choices=LABELS)
    option(group, "--lenient", "pass malformed IRIs and language tags unchanged")
    _add_writing(convert)
    _add_session(convert)


def _add_reading(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("reading dumps")
    add_table(
        group,
        """
        --input-format nt|nq|ttl|…   the format; default: that of the extensions
        --on-error {fail,quarantine} [fail]   what to do with malformed lines
        --lenient   pass malformed IRIs and language tags unchanged, and count them
        --quarantine DIR   the table for malformed lines, with file, number, text and reason
        """,
    )


def _add_writing(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = command.add_argument_group("log")
    help = (
        "a folder of logs, one per task; or, with an extension such as .nq.gz, one ordered log "
        "(end a folder with an extension with /)"
    )
    option(group, "-o, --output DIR|FILE", help)
    add_format(group, "that of the extension of FILE, else nq", formats=FORMATS)
    option(group, "--compression gzip|bzip2|zstd", "the compression of the logs in a folder")
    option(group, "--mode {error,overwrite,append} [error]", "what to do if DIR exists")
    return group


def _add_verify(steps: Commands) -> None:
    verify = steps.add_parser(
        "verify",
        help="check that folders of logs are complete",
        description="Read all logs in the folders that spark run and convert have written, and compare them with "
        "_SUCCESS and the records of their runs. This does not start Spark.",
        examples=["construct-messages spark verify messages"],
        epilog="Exit status: 0 all folders are whole, 2 wrong usage, 3 a log is missing or damaged.",
    )
    verify.set_defaults(command=_verify)
    verify.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        help="folders, on any filesystem that pyarrow reaches",
    )
    option(verify, "--lenient", "pass malformed IRIs and language tags")
    option(verify, "--json", "print a JSON object for each folder, for programs")
    add_reports(verify, quiet=None)


def _add_session(command: argparse.ArgumentParser) -> None:
    """Adds the options that select the session."""
    group = command.add_argument_group("session")
    add_table(
        group,
        """
        --master URL   the Spark master; default: that of spark-submit, or local[*]
        --remote sc://HOST:PORT   use a Spark Connect server
        --conf NAME=VALUE*   a setting of a new session
        --py-files FILE*   files for Spark's workers: this package, as a .zip
        """,
    )
    add_reports(group, "show neither progress nor summary")


# --- the commands -----------------------------------------------------------------------------------------------------


def _load(options: argparse.Namespace) -> int:
    with _open_job(options, options.paths) as job:
        from construct_messages.spark.quads.loading import append_quads, read_quads, write_quads

        with job.stage("load"):
            if options.mode == "append":
                how = _reading(options)
                statistics = append_quads(job.spark, options.paths, options.output, **how)
            else:
                quads = _dumps(job.spark, options.paths, options)
                replaces = options.mode == "overwrite"
                statistics = write_quads(quads, options.output, overwrite=replaces)
        job.report("quads", statistics.rows)
        _report_quarantine(job, options)
        _report_malformed(job, options, lambda: read_quads(job.spark, options.output))
    return 0


def _run(options: argparse.Namespace) -> int:
    query = query_text(options, "--quads")
    if options.explain and options.output is not None:
        raise UsageError("--explain writes no log", hint="leave out --output, or --explain")
    log = None if options.explain else _log(options)
    own = format_options(options)
    given = arguments(options)
    _check_query(query, given)
    with _open_job(options, options.quads) as job:
        from construct_messages.query.optimizer.optimize import Hints
        from construct_messages.spark.construct import construct_messages

        limits = (
            {} if options.max_path_rounds is None else {"max_path_rounds": options.max_path_rounds}
        )
        with job.stage("plan"):
            table = _table(job.spark, options)
            found = construct_messages(
                query,
                table,
                allow_full_closure=options.allow_full_closure,
                hints=Hints(options.join, options.order),
                **limits,
                **given,
            )
        if log is None:
            print(found.explain(), flush=True)
            return 0
        prefixes: dict[str, str] | None = {} if options.no_prefixes else None
        with job.stage("log"):
            written = (
                found.write_file(*log, prefixes=prefixes, options=own)
                if _is_file(options)
                else found.write(*log, prefixes=prefixes, options=own, **_folder(options))
            )
        job.report("messages", written.message_count)
        job.report("quads", written.quads)
        _report_quarantine(job, options)
        _report_malformed(job, options, lambda: table)
    return 0


def _check_query(query: str, given: Mapping[str, Any]) -> None:
    """Rejects queries that are invalid or that this package cannot evaluate, before waiting for a session."""
    require(java=False)
    from construct_messages.spark.planning import plan_query

    plan_query(query, **{name: value for name, value in given.items() if name in _ABOUT_THE_QUERY})


def _convert(options: argparse.Namespace) -> int:
    target, format, syntax = _log(options)
    found, delimiting = find_log(format, syntax, FORMATS)
    own = format_options(options)
    with _open_job(options, options.logs) as job:
        from construct_messages.spark.logs import register
        from construct_messages.spark.logs.writer import LogFormat, write_file, write_folder

        log = LogFormat(found, delimiting, options=own, lenient=options.lenient)
        register(job.spark)
        reader = job.spark.read.format("rdfm").option("lenient", options.lenient)
        for name, value in (("format", options.input_format), ("syntax", options.input_syntax)):
            if value is not None:
                reader = reader.option(name, value)
        frame = reader.load(options.logs)
        with job.stage("log"):
            if _is_file(options):
                written = write_file(frame, target, log)
            else:
                written = write_folder(frame, target, log, **_folder(options))
        job.report("messages", written.message_count)
        job.report("quads", written.quads)
    return 0


def _is_file(options: argparse.Namespace) -> bool:
    """Whether the output is one log: its name has an extension, and does not end in a slash."""
    return not options.output.endswith("/") and PurePath(options.output).suffix != ""


def _log(options: argparse.Namespace) -> tuple[str, str, str | None]:
    """Returns path and format of the log; invalid options are rejected before Spark starts."""
    if options.output is None:
        raise UsageError(
            "there is no output",
            hint="pass --output DIR, or a FILE with an extension such as .nq.gz",
        )
    if _is_file(options) and (options.compression or options.mode != "error"):
        raise UsageError(
            f"--compression and --mode are for folders, and {options.output} is one log",
            hint="add an extension such as .nq.gz to the name to compress the log; an existing file is replaced",
        )
    format = options.format
    if format is None:
        try:
            format = default_format(options.output if _is_file(options) else None)
        except UsageError as error:
            raise UsageError(
                error.message, hint=f"{error.hint}; a folder with such a name ends in /"
            ) from None
    check_options(find_log(format, options.syntax, FORMATS)[0], format_options(options))
    return options.output, format, options.syntax


def _folder(options: argparse.Namespace) -> dict[str, Any]:
    return {"mode": options.mode, "compression": options.compression}


def _table(spark: SparkSession, options: argparse.Namespace) -> QuadTable:
    """The loaded table, or a table that reads the dumps."""
    from construct_messages.spark.quads.loading import is_table, read_quads
    from construct_messages.spark.quads.table import QuadTable

    if (
        len(options.quads) == 1
        and options.input_format is None
        and is_table(spark, options.quads[0])
    ):
        return read_quads(spark, options.quads[0])
    return QuadTable.of(_dumps(spark, options.quads, options))


def _dumps(spark: SparkSession, paths: list[str], options: argparse.Namespace) -> DataFrame:
    from construct_messages.spark.quads.loading import load_quads

    return load_quads(spark, paths, **_reading(options))


def _reading(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "format": options.input_format,
        "on_error": options.on_error,
        "quarantine": options.quarantine,
        "lenient": options.lenient,
    }


def _report_quarantine(job: _Job, options: argparse.Namespace) -> None:
    if options.quarantine is not None:
        from construct_messages.spark.quads.loading import escaped_path

        job.report(
            "lines in quarantine", job.spark.read.parquet(escaped_path(options.quarantine)).count()
        )


def _report_malformed(
    job: _Job, options: argparse.Namespace, table: Callable[[], QuadTable]
) -> None:
    if options.lenient:
        from construct_messages.spark.quads.loading import count_malformed

        job.report("malformed IRIs and language tags", count_malformed(table()))


def _verify(options: argparse.Namespace) -> int:
    require(java=False)
    from construct_messages.spark.logs.verification import verify_folder

    status = 0
    for name in options.folders:
        found = verify_folder(name, lenient=options.lenient)
        if options.json:
            print(json.dumps(found._asdict(), ensure_ascii=False), flush=True)
        elif not found.problems:
            figures = (
                counted(found.messages, "message"),
                counted(found.quads, "quad"),
                counted(found.logs, "log"),
                *(f"run {run}" for run in found.runs),
            )
            print(f"{name}: ok, {', '.join(figures)}", flush=True)
        if not options.json:
            for note in found.notes:
                warn(f"{name}: {note}")
        for problem in found.problems:
            report(IncompleteResult(f"{name}: {problem}"), debug=options.debug)
            status = _DAMAGED
    return status


# --- the session -----------------------------------------------------------------------------------

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable by which spark-submit passes the session to a program."""

_SHIPPED: Final = (".zip", ".py", ".egg", ".jar")
"""The extensions of files that Spark's workers can import from; Spark silently ignores other files."""

_PAUSE_SECONDS: Final = 0.2


class _Job:
    """A session, and the report of its work; `started` is when the program began to create it, by `time.monotonic`."""

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


@contextmanager
def _open_job(options: argparse.Namespace, inputs: Sequence[str]) -> Iterator[_Job]:
    """Opens the session of the options until the block ends, and then prints the summary; errors are this package's."""
    started = time.monotonic()
    with _Stop() as stop:
        with _failures():
            spark, is_own = _session(options, inputs)
        job = _Job(spark, started)
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
    only if the block fails, or at once with `start`. `later` shows Java's output after the start.
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

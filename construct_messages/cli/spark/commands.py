"""The commands `spark load`, `run` and `convert`, for dumps that are too large for one process.

The session is this program's own (local, or on the cluster of `--master`), that of `spark-submit`, or one of Spark
Connect. `construct_messages/spark/` implements the commands.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from construct_messages.cli.arguments import (
    LABELS,
    LOG_FORMATS,
    NO_PREFIXES,
    Commands,
    add_format,
    add_options,
    format_options,
    option,
)
from construct_messages.cli.queries import (
    add_dataset,
    add_query,
    arguments,
    query_text,
)
from construct_messages.cli.spark.jobs import Job, add_session, open_job
from construct_messages.logs import check_options
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats import FORMATS
from construct_messages.rdf.formats.lookup import default_format, find_log
from construct_messages.rdf.options import Grouping, MessageOptions
from construct_messages.spark.session import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from construct_messages.spark.quads.table import QuadTable

_STATUSES: Final = (
    "Exit status: 0 complete, 1 not written, 2 wrong usage or query, or no Spark, 3 malformed data, or Spark failed, "
    "4 beyond a limit."
)
_ABOUT_THE_QUERY: Final = {
    "group_by",
    "bindings",
    "dataset",
    "prefixes",
    "base",
}


def add(steps: Commands) -> None:
    """Adds the commands."""
    _add_load(steps)
    _add_run(steps)
    _add_convert(steps)


def _add_load(steps: Commands) -> None:
    load = steps.add_parser(
        "load",
        help="write a table of RDF dumps",
        description="Read RDF dumps, check them, and write their quads as a Parquet table for many queries.",
        examples=["construct-messages spark load dump/*.nt.bz2 --output dump.quads"],
        epilog=_STATUSES,
    )
    load.set_defaults(command=_load)
    load.add_argument(
        "paths", metavar="PATH", nargs="+", help="files, folders or patterns that Spark reads"
    )
    option(load, "--output TABLE", "the folder of the table", required=True)
    option(
        load, "--mode", "what to do if it exists", choices=["error", "overwrite"], default="error"
    )
    _add_reading(load)
    add_session(load)


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
    )
    run.set_defaults(command=_run)
    query = run.add_argument_group("query and quads")
    add_query(query)
    option(
        query,
        "--quads PATH",
        "a table of spark load, or RDF dumps: files, folders or patterns that Spark reads",
        nargs="+",
        required=True,
    )
    add_dataset(query, default_graph="a graph of the default graph")
    option(query, "--explain", "print the plan of the query and exit")
    option(
        query,
        "--join",
        "how patterns are joined",
        choices=["auto", "star", "joins"],
        default="auto",
    )
    option(
        query,
        "--order",
        "the order in which patterns are joined",
        choices=["estimated", "as-written"],
        default="estimated",
    )
    option(
        query,
        "--out-of-range",
        "for numbers and dates that Spark cannot represent: end the job, or treat as an error in the expression",
        choices=["fail", "unbound"],
        default="fail",
    )
    option(query, "--max-path-rounds N", "the longest path that * and + follow", type=int)
    option(query, "--allow-full-closure", "allow * and + to start at every node")
    messages = run.add_argument_group("messages")
    add_options(messages, Grouping, "by", "order")
    add_options(messages, MessageOptions, but=["distinct_limit"])
    option(_add_writing(run), "--no-prefixes", NO_PREFIXES)
    _add_reading(run)
    add_session(run)


def _add_convert(steps: Commands) -> None:
    convert = steps.add_parser(
        "convert",
        help="write logs in another format or syntax",
        description="Read logs of RDF Messages, in parts where they can be split, and write their messages as logs.",
        examples=["construct-messages spark convert logs/*.nq.bz2 --output logs.jelly"],
        epilog=_STATUSES,
    )
    convert.set_defaults(command=_convert)
    convert.add_argument("logs", metavar="LOG", nargs="+", help="files, folders or patterns")
    group = convert.add_argument_group("input logs")
    option(group, f"--input-format {LOG_FORMATS}", "the format; default: that of the extensions")
    option(
        group,
        "--input-syntax",
        "the syntax that delimits messages; default: that of each log",
        choices=LABELS,
    )
    option(group, "--lenient", "pass malformed IRIs and language tags unchanged")
    _add_writing(convert)
    add_session(convert)


def _add_reading(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("reading dumps")
    option(group, "--input-format nt|nq|ttl|…", "the format; default: that of the extensions")
    option(
        group,
        "--on-error",
        "what to do with malformed lines",
        choices=["fail", "quarantine"],
        default="fail",
    )
    option(group, "--lenient", "pass malformed IRIs and language tags unchanged, and count them")
    option(
        group,
        "--quarantine DIR",
        "the table for malformed lines, with file, number, text and reason",
    )


def _add_writing(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = command.add_argument_group("log")
    option(
        group,
        "--output DIR|FILE",
        "a folder of logs, one per task; or, with an extension such as .nq.gz, one ordered log "
        "(end a folder with an extension with /)",
    )
    add_format(group, "that of the extension of FILE, else nq", formats=FORMATS)
    option(group, "--compression gzip|bzip2|zstd", "the compression of the logs in a folder")
    option(
        group,
        "--mode",
        "what to do if DIR exists",
        choices=["error", "overwrite", "append"],
        default="error",
    )
    return group


# --- the commands -----------------------------------------------------------------------------------------------------


def _load(options: argparse.Namespace) -> int:
    with open_job(options, options.paths) as job:
        from construct_messages.spark.quads.loading import read_quads, write_quads

        with job.stage("load"):
            quads = _dumps(job.spark, options.paths, options)
            statistics = write_quads(quads, options.output, overwrite=options.mode == "overwrite")
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
    with open_job(options, options.quads) as job:
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
                out_of_range=options.out_of_range,
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
    with open_job(options, options.logs) as job:
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
    """Returns path and format of the log; invalid options are rejected before Spark starts.

    Raises:
        UsageError: no output, an unknown extension, format or syntax, or an option for folders although the output is a
            file.
    """
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

    return load_quads(
        spark,
        paths,
        format=options.input_format,
        on_error=options.on_error,
        quarantine=options.quarantine,
        lenient=options.lenient,
    )


def _report_quarantine(job: Job, options: argparse.Namespace) -> None:
    if options.quarantine is not None:
        from construct_messages.spark.quads.loading import escaped_path

        job.report(
            "lines in quarantine", job.spark.read.parquet(escaped_path(options.quarantine)).count()
        )


def _report_malformed(
    job: Job, options: argparse.Namespace, table: Callable[[], QuadTable]
) -> None:
    if options.lenient:
        from construct_messages.spark.quads.loading import count_malformed

        job.report("malformed IRIs and language tags", count_malformed(table()))

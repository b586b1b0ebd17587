"""Writing messages as logs: a folder with a file for each partition, or one ordered file.

N-Quads and N-Triples logs are written by Spark's text writer, without Python workers: the delimiter is in the value,
and the bytes are those of `logs/lines/encoder.py`. Any other log is written by the encoders of `logs/`, through the
data source `rdfm`. A file gets its name when it is complete. RDF Messages, section 3. No queries here.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyarrow import fs
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

from construct_messages.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.logs import FormatOptions, check_options
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, Format, Syntax, content_type
from construct_messages.spark.frames.messages import MESSAGE
from construct_messages.spark.logs import register
from construct_messages.spark.logs.files import Place, place_of, s3_settings
from construct_messages.spark.logs.runs import (
    RECORDS,
    SUCCESS,
    LogFile,
    Owner,
    Run,
    RunRecord,
    check_overwriting,
    check_runs,
    record_of,
    run_id,
    unwritable,
)
from construct_messages.spark.quads.loading import literal_path, refuse_foreign_files
from construct_messages.spark.session import is_remote, translated
from construct_messages.spark.sql.values import literal

# --- text folders ---------------------------------------------------------------------------------
# Folders of N-Quads and N-Triples logs, by Spark's text writer: no Python workers, and whole logs or an error.
#
# On this machine's file system, a run writes into its hidden folder (`runs`), and the logs get their names at the
# end. Elsewhere, and over Spark Connect, where the files cannot be reached from here, Spark's own committer names
# them (a rename is a copy on S3). The result is compared with the written files, because Spark's committers do not
# notice that two jobs write into one folder, and mix or lose files.

NO_COMPRESSION: Final = "none"
_PART: Final = re.compile(r"part-(?P<partition>\d+)-(?P<job>[0-9a-f-]+)-c000(?P<suffix>\..*)")
_HINT: Final = "run one after the other, or give each a separate folder"


class _Part(NamedTuple):
    partition: int
    name: str
    bytes: int


def write_parts(
    values: DataFrame, path: str, *, mode: str = "error", compression: str = NO_COMPRESSION
) -> None:
    # with a limit, the second file of a partition would lack the announcement of the syntax
    values.write.mode(mode).option("maxRecordsPerFile", 0).text(
        path, compression=compression, lineSep="\n"
    )


def _place_here(spark: SparkSession, path: str) -> Place | None:
    """Returns the folder on this machine's file system that Spark understands by a path; None if it is elsewhere."""
    if is_remote(spark):
        return None
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # Java's
    location = _files(spark, hadoop).makeQualified(hadoop).toUri()  # by the settings of the session
    return place_of(f"file:{location.getPath()}") if location.getScheme() == "file" else None


def _files(spark: SparkSession, hadoop: Any) -> Any:
    return hadoop.getFileSystem(spark._jsc.hadoopConfiguration())


# --- on this machine ----------------------------------------------------------------------------------------


def _write_run(
    values: DataFrame,
    observation: Observation,
    folder: Place,
    media_type: str,
    mode: str,
    compression: str,
) -> None:
    there = folder.files.get_file_info(folder.path).type
    if there == fs.FileType.File:
        raise UsageError(f"{folder.path} is a file", hint="name a folder, or write a single log")
    if mode == "error" and there != fs.FileType.NotFound:
        raise UsageError(
            f"{folder.path} exists already",
            hint="choose another path, or ask for it to be overwritten",
        )
    try:
        if mode == "append":
            check_runs(folder)
        elif mode == "overwrite":
            check_overwriting(folder)
        run = Run.begin(folder, Owner.this())
    except OSError as error:
        raise unwritable(folder.path, error) from error
    try:
        write_parts(values, f"file:{run.hidden}/logs", compression=compression)
        figures = observation.get
        try:
            _commit(run, media_type, figures, mode, compression)
        except OSError as error:
            raise unwritable(folder.path, error) from error
    finally:
        run.end(new=there == fs.FileType.NotFound)


def _commit(
    run: Run, media_type: str, figures: Mapping[str, Any], mode: str, compression: str
) -> None:
    found = sorted(parts_in(run.folder.at(f"{run.hidden}/logs")))
    if not _are_whole(found, figures, compression):
        raise IncompleteResult(
            f"not all logs came to {run.folder.path}: the executors write to another filesystem",
            hint="name a folder on a filesystem that they share",
        )
    record = _record(
        run.id, media_type, figures, [LogFile(_name(run.id, part), part.bytes) for part in found]
    )
    written = [f"{run.hidden}/logs/{part.name}" for part in found]
    run.commit(written, record, overwrite=mode == "overwrite", alone=mode == "error")


def parts_in(folder: Place) -> list[_Part]:
    """Returns the files that `write_parts` has written into a folder, in no order."""
    infos = folder.files.get_file_info(fs.FileSelector(folder.path, allow_not_found=True))
    return [part for _, part in _parts_of_jobs((info.base_name, info.size) for info in infos)]


def _parts_of_jobs(found: Iterable[tuple[str, int]]) -> Iterable[tuple[str, _Part]]:
    """Yields the files of Spark's writer among others, by names and sizes, each with its job."""
    for name, size in found:
        if match := _PART.fullmatch(name):
            yield match["job"], _Part(int(match["partition"]), name, size)


def _are_whole(parts: Iterable[_Part], figures: Mapping[str, Any], compression: str) -> bool:
    """Returns whether each partition with values has a file, and the files have the size of the values."""
    sizes = {part.partition: part.bytes for part in parts}
    packed = compression != NO_COMPRESSION
    return sizes.keys() >= set(figures["partitions"]) and (
        packed or sum(sizes.values()) == (figures["bytes"] or 0)
    )


def _name(run: str, part: _Part) -> str:
    """Returns the name of a log in the folder: that of Spark's writer, with the run, so that later runs sort after it.

    >>> _name("20260101T000000000000Z-12ab", _Part(3, "part-00003-9d8f-c000.txt.gz", 9))
    'part-20260101T000000000000Z-12ab-00003.txt.gz'
    """
    return f"part-{run}-{part.partition:05d}{part.name[part.name.index('.') :]}"


def _record(
    run: str, media_type: str, figures: Mapping[str, Any], files: list[LogFile]
) -> RunRecord:
    return RunRecord(run, media_type, figures["messages"], figures["quads"] or 0, files)


# --- where Spark alone reaches the files ------------------------------------------------------------------------------


def _write_and_compare(
    values: DataFrame,
    observation: Observation,
    path: str,
    media_type: str,
    mode: str,
    compression: str,
) -> None:
    spark = values.sparkSession
    before = set(_listed(spark, path)) if mode == "append" else set[tuple[str, int]]()
    if mode == "overwrite":  # Spark removes the folder, with all that is in it
        recorded = {log.name for record in _records_there(spark, path) for log in record.files}
        refuse_foreign_files(spark, path, recorded)
    write_parts(values, path, mode=mode, compression=compression)
    jobs = defaultdict[str, list[_Part]](list)
    for job, part in _parts_of_jobs(sorted(set(_listed(spark, path)) - before)):
        jobs[job].append(part)
    whole = [parts for parts in jobs.values() if _are_whole(parts, observation.get, compression)]
    if not whole or (mode != "append" and len(jobs) != 1):
        if mode != "append":  # the incomplete folder must not look complete
            nothing = spark.createDataFrame([], "value string").write.mode("overwrite")
            nothing.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").text(path)
        raise IncompleteResult(f"another job wrote to {path} at the same time", hint=_HINT)
    files = [LogFile(part.name, part.bytes) for part in whole[0]]
    record = _record(run_id(), media_type, observation.get, files)
    if is_remote(spark):  # Spark's own writers alone reach the place: they write a folder
        text = spark.createDataFrame([(record.encoded().decode().strip(),)], "value string")
        text.coalesce(1).write.text(f"{path}/{record.name}")
    else:
        _write_there(spark, f"{path}/{record.name}", record.encoded())
        _write_there(spark, f"{path}/{SUCCESS}", record.success())


def _listed(spark: SparkSession, path: str) -> list[tuple[str, int]]:
    """Returns the names and sizes of Spark's files in a folder; none if there is not a folder."""
    from pyspark.errors import AnalysisException

    reader = (
        spark.read.format("binaryFile")
        .option("pathGlobFilter", "part-*")
        .option("ignoreMissingFiles", True)
    )
    try:
        # the contents are not read
        rows = reader.load(literal_path(path)).select("path", "length").collect()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []
    return [(row["path"].rpartition("/")[2], row["length"]) for row in rows]


def _records_there(spark: SparkSession, path: str) -> list[RunRecord]:
    """Returns the records in a folder that Java reaches; none if there is not a folder."""
    pattern = spark._jvm.org.apache.hadoop.fs.Path(f"{literal_path(path)}/{RECORDS}")  # type: ignore[union-attr]  # Java's
    files = _files(spark, pattern)
    found = list[RunRecord]()
    for status in files.globStatus(pattern) or ():
        file = files.open(status.getPath())
        try:
            found.append(record_of(status.getPath().toString(), bytes(file.readAllBytes())))
        finally:
            file.close()
    return found


def _write_there(spark: SparkSession, path: str, contents: bytes) -> None:
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # Java's
    file = _files(spark, hadoop).create(hadoop, True)
    try:
        file.write(bytearray(contents))
    finally:
        file.close()


# --- writer ---------------------------------------------------------------------------------------

MODES: Final = ("error", "overwrite", "append")
"""The values of `mode`: how an existing folder is treated."""

_BREAK: Final = literal("\n")
_QUADS: Final = f"if({MESSAGE} = '', 0, 1 + octet_length({MESSAGE}) - octet_length(replace({MESSAGE}, {_BREAK})))"
_FIGURES: Final = ("count(1) AS messages", f"sum({_QUADS}) AS quads")
_FIGURES_OF_TEXT: Final = (
    *_FIGURES,
    "sum(octet_length(value) + 1) AS bytes",
    "collect_set(partition) AS partitions",
)
# the compressions of Spark's text writer that need no library of the system, by Spark's names
_CODECS: Final = {None: NO_COMPRESSION, "gzip": "gzip", "bzip2": "bzip2"}
_CHUNK_BYTES: Final = 1 << 20
_URL: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.\-]+:")


class Written(NamedTuple):
    """The numbers of messages and quads of a log."""

    message_count: int
    quads: int


class LogFormat(NamedTuple):
    """The format and the syntax of logs, and the options of their encoder; see `construct.Messages.write`."""

    format: Format
    syntax: Syntax
    graphs: bool = True  # whether messages may have named graphs
    prefixes: Mapping[str, str] | None = None
    options: FormatOptions | None = None
    lenient: bool = False  # whether malformed IRIs and language tags are written unchanged

    @property
    def is_native(self) -> bool:
        """Whether each message can be written as its own N-Quads lines."""
        carries = self.format == N_QUADS or (self.format == N_TRIPLES and not self.graphs)
        return carries and self.syntax.triple_terms and self.syntax.directions


def write_folder(
    messages: DataFrame,
    path: str | os.PathLike[str],
    log: LogFormat,
    *,
    mode: str = "error",
    compression: str | None = None,
) -> Written:
    """Writes one log per partition into a folder, which contains `_SUCCESS` when all of them are complete."""
    if mode not in MODES:
        raise UsageError(f"mode {mode!r} is unknown", hint=f"choose one of {', '.join(MODES)}")
    check_options(log.format, log.options)
    # over Spark Connect, Spark's own overwriting would remove files that no run has recorded
    removes = mode == "overwrite" and is_remote(messages.sparkSession)
    if removes or not (log.is_native and compression in _CODECS):
        how = {"compression": compression} if compression else {}
        return _write_rdfm(messages, os.fspath(path), log, mode, how)
    values, observation = _observed(messages, _value(log.syntax, announced=True))
    with translated():
        place, codec = _place_here(messages.sparkSession, os.fspath(path)), _CODECS[compression]
        media_type = content_type(log.format, log.syntax)
        if place is not None:
            _write_run(values, observation, place, media_type, mode, codec)
        else:
            _write_and_compare(values, observation, os.fspath(path), media_type, mode, codec)
        return _written(observation)


def write_file(messages: DataFrame, path: str | os.PathLike[str], log: LogFormat) -> Written:
    """Writes one log with all messages in their order: partitions, written in the same folder, are concatenated."""
    if _URL.match(name := os.fspath(path)):
        raise UsageError(
            f"{name} is not a file of this machine",
            hint="name a folder: it may be on any filesystem",
        )
    target = Path(name.removeprefix("file:"))
    check_options(log.format, log.options)
    if not log.is_native:
        return _write_rdfm(messages, name, log, "overwrite", {"single": "true"})
    with _parts(messages, log.syntax, target) as (parts, written), atomic_file(target) as file:
        file.write(log.syntax.announcement.encode())
        for chunk in _chunks(parts):
            file.write(chunk)
    return written


def _write_rdfm(
    messages: DataFrame, path: str, log: LogFormat, mode: str, how: Mapping[str, str]
) -> Written:
    """Writes by the encoder of the format, in Python workers; `how` has further options of the data source."""
    place = place_of(path, s3_settings(messages.sparkSession))
    if mode == "error" and place.files.get_file_info(place.path).type != fs.FileType.NotFound:
        raise UsageError(
            f"{path} exists already", hint="choose another path, or ask for it to be overwritten"
        )
    register(messages.sparkSession)
    observation = Observation()
    options: dict[str, str | bool] = {
        **how,
        "format": content_type(log.format, log.syntax),
        "graphs": log.graphs,
        "lenient": log.lenient,
        "prefixes": json.dumps(dict(log.prefixes or {})),
    }
    if log.options is not None:
        options[log.format.extension] = json.dumps(log.options.as_dict())
    if mode == "error":  # a data source in Python has no such mode, which is checked above
        options["alone"] = "true"
    observed = messages.observe(observation, *map(expr, _FIGURES))
    writer = observed.write.format("rdfm").options(**options)
    with translated():
        writer.mode("append" if mode == "error" else mode).save(path)
        return _written(observation)


def _value(syntax: Syntax, *, announced: bool) -> str:
    """Returns SQL of a message with its delimiter, without the last line break."""
    delimiter = literal(syntax.delimiter.removesuffix("\n"))
    if syntax.delimiter_first:
        value = f"if({MESSAGE} = '', {delimiter}, concat({delimiter}, {_BREAK}, {MESSAGE}))"
    else:
        value = f"if({MESSAGE} = '', {delimiter}, concat({MESSAGE}, {_BREAK}, {delimiter}))"
    if announced and syntax.announcement:
        # the lower 33 bits count within a partition
        is_first = "monotonically_increasing_id() & 8589934591 = 0"
        return f"concat(if({is_first}, {literal(syntax.announcement)}, ''), {value})"
    return value


def _observed(messages: DataFrame, value: str) -> tuple[DataFrame, Observation]:
    """Returns the values of a text file, and the observation of their numbers."""
    observation = Observation()
    values = messages.selectExpr(MESSAGE, f"{value} AS value", "spark_partition_id() AS partition")
    values = values.observe(observation, *map(expr, _FIGURES_OF_TEXT))
    return values.select("value"), observation


def _written(observation: Observation) -> Written:
    return Written(observation.get["messages"], observation.get["quads"] or 0)


@contextmanager
def _parts(
    messages: DataFrame, syntax: Syntax, target: Path
) -> Iterator[tuple[Sequence[Path], Written]]:
    """Writes the messages of each partition to a file; yields the files in order, and removes them after the block."""
    values, observation = _observed(messages, _value(syntax, announced=False))
    try:
        if not (above := target.absolute().parent).is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        run = Run.begin(place_of(str(above)), Owner.this())
    except OSError as error:
        raise CannotWrite(
            f"cannot write {target}: {error.strerror or error}", hint="choose another place"
        ) from error
    try:
        folder = f"{run.hidden}/logs"
        with translated():
            write_parts(values, f"file:{folder}")
            written, size = _written(observation), observation.get["bytes"] or 0
        parts = sorted(parts_in(place_of(folder)))
        found = sum(part.bytes for part in parts)
        if found != size:
            raise IncompleteResult(
                f"of {size} bytes only {found} came to {target.parent}: the executors write to another filesystem",
                hint="name a folder on a filesystem that they share, or a folder for a file a partition",
            )
        yield [Path(folder, part.name) for part in parts], written
    finally:
        run.end()


def _chunks(parts: Sequence[Path]) -> Iterator[bytes]:
    for part in parts:
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        part.unlink()  # so that the disk never holds the whole log twice

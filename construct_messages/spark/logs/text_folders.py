"""Folders of N-Quads and N-Triples logs, by Spark's text writer: no Python workers, and whole logs or an error.

On this machine's file system, a run writes into its hidden folder (`runs`), and the logs get their names at the end.
Elsewhere, and over Spark Connect, where the files cannot be reached from here, Spark's own committer names them (a
rename is a copy on S3). The result is compared with the written files, because Spark's committers do not notice that
two jobs write into one folder, and mix or lose files. `writer` defines the values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pyarrow import fs
from pyspark.sql import DataFrame, Observation, SparkSession

from construct_messages.rdf.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.spark.logs.files import Place, place_of
from construct_messages.spark.logs.owners import Owner
from construct_messages.spark.logs.records import (
    RECORDS,
    SUCCESS,
    LogFile,
    RunRecord,
    record_of,
    run_id,
)
from construct_messages.spark.logs.runs import Run, check_overwriting, check_runs
from construct_messages.spark.quads.loading import literal_path, refuse_foreign_files
from construct_messages.spark.session import is_remote

PARTITION: Final = "spark_partition_id() AS partition"
FIGURES: Final = ("sum(octet_length(value) + 1) AS bytes", "collect_set(partition) AS partitions")
"""The observed figures of the columns `value` and `PARTITION`, in addition to `messages` and `quads`."""

NO_COMPRESSION: Final = "none"
_PART: Final = re.compile(r"part-(?P<partition>\d+)-(?P<job>[0-9a-f-]+)-c000(?P<suffix>\..*)")
_HINT: Final = "run one after the other, or give each a folder of its own"


class _Part(NamedTuple):
    """A file of Spark's text writer.

    Args:
        partition: the number of the task.
        name: its name.
        bytes: its size.
    """

    partition: int
    name: str
    bytes: int


def write_texts(
    values: DataFrame,
    observation: Observation,
    path: str,
    media_type: str,
    *,
    mode: str,
    compression: str,
) -> None:
    """Writes values as lines of logs into a folder, one log for each partition.

    Args:
        values: a column of strings, observed by `observation`.
        observation: observes `messages`, `quads` and `FIGURES`.
        path: the folder.
        media_type: of the logs.
        mode: `"error"`, `"overwrite"` or `"append"`.
        compression: a codec of Spark; `NO_COMPRESSION`.

    Raises:
        UsageError: the folder exists, or is a file.
        CannotWrite: it cannot be written.
        IncompleteResult: another job wrote to the folder at the same time, or the executors write elsewhere.
    """
    if (place := _place_here(values.sparkSession, path)) is not None:
        _write_run(values, observation, place, media_type, mode, compression)
    else:
        _write_and_compare(values, observation, path, media_type, mode, compression)


def write_parts(
    values: DataFrame, path: str, *, mode: str = "error", compression: str = NO_COMPRESSION
) -> None:
    """Writes values as lines, one file for each partition, by Spark's writer alone."""
    # with a limit, the second file of a partition would lack the announcement of the syntax
    values.write.mode(mode).option("maxRecordsPerFile", 0).text(
        path, compression=compression, lineSep="\n"
    )


def _place_here(spark: SparkSession, path: str) -> Place | None:
    """Returns the folder on this machine's file system that Spark understands by a path; None if it is elsewhere."""
    if is_remote(spark):
        return None
    location = _location(spark, path)
    return place_of(f"file:{location.getPath()}") if location.getScheme() == "file" else None


def _location(spark: SparkSession, path: str) -> Any:
    """Returns the URI of a path, completed by the session's settings."""
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # Java's
    return _files(spark, hadoop).makeQualified(hadoop).toUri()


def _files(spark: SparkSession, hadoop: Any) -> Any:
    return hadoop.getFileSystem(spark._jsc.hadoopConfiguration())


# --- with a folder of its own ----------------------------------------------------------------------------------------


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
        raise _cannot_write(folder, error) from error
    try:
        write_parts(values, f"file:{run.hidden}/logs", compression=compression)
        figures = observation.get
        try:
            _commit(run, media_type, figures, mode, compression)
        except OSError as error:
            raise _cannot_write(folder, error) from error
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
    return [part for _, part in _parts((info.base_name, info.size) for info in infos)]


def _parts(found: Iterable[tuple[str, int]]) -> Iterable[tuple[str, _Part]]:
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


def _cannot_write(folder: Place, error: OSError) -> CannotWrite:
    return CannotWrite(f"cannot write to {folder.path}: {error}", hint="choose another place")


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
    for job, part in _parts(sorted(set(_listed(spark, path)) - before)):
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
    """Returns the names and sizes of Spark's files in a folder; none if there is no folder."""
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
    """Returns the records in a folder that Java reaches; none if there is no folder."""
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

"""Writing messages as logs: a folder with a file for each partition, or one ordered file.

N-Quads and N-Triples logs are written by Spark's text writer, without Python workers: the delimiter is in the value,
and the bytes are those of `logs/lines/encoder.py`. Any other log is written by the encoders of `logs/`, through the
data source `rdfm`. A file gets its name when it is complete. RDF Messages, section 3. No queries here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

from construct_messages.errors import CannotWrite, UsageError
from construct_messages.logs import FormatOptions, check_options
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, Format, Syntax, content_type
from construct_messages.spark.dialect import literal
from construct_messages.spark.logs import register
from construct_messages.spark.logs.files import Place, files_below, is_there, place_of, s3_settings
from construct_messages.spark.logs.runs import (
    MODES,
    RECORD,
    LogFile,
    Run,
    RunRecord,
    exists,
    incomplete,
    writing,
)
from construct_messages.spark.messages import MESSAGE
from construct_messages.spark.quads.loading import files_at, literal_path
from construct_messages.spark.session import is_remote, translated
from construct_messages.sparql.relational.tables import run_id

# --- text folders ---------------------------------------------------------------------------------
# Folders of N-Quads and N-Triples logs, by Spark's text writer: no Python workers, and whole logs or an error. Spark
# writes into the folder of a run (`runs`), which is committed from here. Over Spark Connect, and where pyarrow does not
# reach the place, Spark writes the record as well; then the folder must be new.

NO_COMPRESSION: Final = "none"
_PART: Final = re.compile(r"part-\d+-.*")
_NEW: Final = "choose another path: here Spark can write a new folder only"


def write_parts(values: DataFrame, path: str, *, compression: str = NO_COMPRESSION) -> None:
    # with a limit, the second file of a partition would lack the announcement of the syntax
    values.write.option("maxRecordsPerFile", 0).text(path, compression=compression, lineSep="\n")


def _place(spark: SparkSession, path: str) -> Place | None:
    """Returns the folder that Spark understands by a path, by the settings of the session; None if it is not reached
    from here.
    """
    if is_remote(spark):
        return None
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # Java's
    url = hadoop.getFileSystem(spark._jsc.hadoopConfiguration()).makeQualified(hadoop).toString()
    try:
        return place_of(url, s3_settings(spark))
    except UsageError:
        return None


def parts_in(folder: Place) -> list[LogFile]:
    """Returns the files that `write_parts` has written into a folder."""
    with writing(folder.uri):
        found = files_below(folder)
    return [LogFile(name, found[name].size) for name in found if _PART.fullmatch(name)]


class _TextParts(NamedTuple):
    """The lines of text files, and the observation of their figures."""

    values: DataFrame
    observation: Observation

    @classmethod
    def of(cls, messages: DataFrame, value: str) -> _TextParts:
        observation = Observation()
        partition = "spark_partition_id() AS partition"
        values = messages.selectExpr(MESSAGE, f"{value} AS value", partition)
        values = values.observe(observation, *map(expr, _FIGURES_OF_TEXT))
        return cls(values.select("value"), observation)

    def write(
        self, folder: str, within: str, parts: Callable[[], list[LogFile]], compression: str
    ) -> list[LogFile]:
        """Writes files into a folder within the folder of the logs; returns them, as `parts` lists them, in order.

        Each partition with values has a file, and the files have the size of the values, or this raises.
        """
        write_parts(self.values, within, compression=compression)
        found, figures = sorted(parts(), key=lambda file: file.partition), self.observation.get
        size = sum(file.bytes for file in found)
        if {*figures["partitions"]} - {file.partition for file in found} or (
            compression == NO_COMPRESSION and size != (figures["bytes"] or 0)
        ):
            raise incomplete(folder)
        return found

    def write_run(self, run: Run, compression: str = NO_COMPRESSION) -> list[LogFile]:
        return self.write(run.folder.uri, run.logs.uri, lambda: parts_in(run.logs), compression)

    def write_alone(self, path: str, media_type: str, compression: str) -> None:
        """Writes a new folder of a run by Spark's readers and writers alone."""
        spark, run = self.values.sparkSession, run_id()
        if files_at(spark, literal_path(path)) is not None:
            raise exists(path, _NEW)

        def parts() -> list[LogFile]:
            reader = spark.read.format("binaryFile").option("pathGlobFilter", "part-*")
            # the contents are not read
            rows = reader.load(literal_path(f"{path}/{run}")).select("path", "length").collect()
            return [LogFile(row["path"].rpartition("/")[2], row["length"]) for row in rows]

        found = self.write(path, f"{path}/{run}", parts, compression)
        logs = [LogFile(f"{run}/{file.name}", file.bytes) for file in found]
        record = RunRecord(run, media_type, *_written(self.observation), logs, 1, "error")
        text = spark.createDataFrame([(record.encoded().decode().strip(),)], "value string")
        text.coalesce(1).write.text(f"{path}/{run}/{RECORD}")


# --- writer ---------------------------------------------------------------------------------------

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
    """Writes one log per partition into a folder of the folder, which has a record when all of them are complete."""
    if (how := next((each for each in MODES if each == mode), None)) is None:
        raise UsageError(f"mode {mode!r} is unknown", hint=f"choose one of {', '.join(MODES)}")
    check_options(log.format, log.options)
    spark, name = messages.sparkSession, os.fspath(path)
    # over Spark Connect, only the data source can add to a folder
    adds = how != "error" and is_remote(spark)
    if adds or not (log.is_native and compression in _CODECS):
        packing = {"compression": compression} if compression else {}
        return _write_rdfm(messages, name, log, how, packing)
    text = _TextParts.of(messages, _value(log.syntax, announced=True))
    codec, media_type = _CODECS[compression], content_type(log.format, log.syntax)
    with translated():
        if (place := _place(spark, name)) is not None:
            _refuse_existing(name, place, how)
            with closing(Run.begin(place, how)) as run:
                found = text.write_run(run, codec)
                run.commit(media_type, _written(text.observation), found)
        elif how != "error":
            raise UsageError(f"pyarrow does not reach {name}", hint=_NEW)
        else:
            text.write_alone(name, media_type, codec)
        return _written(text.observation)


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
    if not (above := target.absolute().parent).is_dir():
        raise CannotWrite(f"cannot write {target}: no folder {above}", hint="choose another place")
    text = _TextParts.of(messages, _value(log.syntax, announced=False))
    with closing(Run.begin(place_of(str(above)))) as run:
        with translated():
            found = text.write_run(run)
        with atomic_file(target) as file:
            file.write(log.syntax.announcement.encode())
            run.drain(found, file)
    return _written(text.observation)


def _refuse_existing(path: str, place: Place, mode: str) -> None:
    if mode == "error" and is_there(place):
        raise exists(path)


def _write_rdfm(
    messages: DataFrame, path: str, log: LogFormat, mode: str, how: Mapping[str, str]
) -> Written:
    """Writes by the encoder of the format, in Python workers; `how` has further options of the data source."""
    _refuse_existing(path, place_of(path, s3_settings(messages.sparkSession)), mode)
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


def _written(observation: Observation) -> Written:
    return Written(observation.get["messages"], observation.get["quads"] or 0)

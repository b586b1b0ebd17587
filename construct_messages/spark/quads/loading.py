"""Loads RDF files as quads, and writes and reads tables of quads with their statistics.

`load_quads` reads dumps through Spark's readers, from any filesystem of Spark, and Python workers parse them
(`documents`): lines in blocks, and every other format one file at a time. `write_quads` removes duplicates, because an
RDF dataset is a set (RDF 1.2 Concepts, section 4), and writes statistics; `append_quads` does so for each file.
`read_quads` reads both. `sparql/relational/tables` describes the tables. No queries here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as F

from construct_messages.errors import IncompleteResult, QuadsError, UsageError
from construct_messages.query.optimizer.optimize import PredicateStatistics, Statistics
from construct_messages.rdf.files.output import refuse_foreign, refuse_input
from construct_messages.rdf.formats.lookup import DocumentFile, document_file
from construct_messages.rdf.formats.media_types import N_QUADS, N_TRIPLES
from construct_messages.rdf.terms import Term
from construct_messages.spark.dialect import literal
from construct_messages.spark.line_numbers import numbered
from construct_messages.spark.quads import documents
from construct_messages.spark.quads.checking import malformed_terms
from construct_messages.spark.quads.table import QuadTable, loaded
from construct_messages.spark.session import is_remote, translated
from construct_messages.sparql.relational.tables import (
    RECORD,
    VERSION,
    LoadEntry,
    SourceQuads,
    TableRecord,
    incomplete,
    run_id,
    source_of,
)

ON_ERROR: Final = ("fail", "quarantine")
"""The values of `on_error`, for malformed files and lines."""

_FILE: Final = "input_file_name()"
_BYTES: Final = "CAST(value AS BINARY) AS text"
_WILD: Final = re.compile(r"[{}\[\]*?\\]")
_NO_COLONS: Final = "Hadoop reads no local file with a colon in its name"
_RENAME: Final = "rename it, or read it with construct-messages run"
# hidden files of other programs: those of Spark and of this package begin with _SUCCESS, _construct_messages, _run-,
# _temporary, _started, _committed, .part- and ._
_FOREIGN_HIDDEN: Final = "{_[^Scrst]*,_S[^U]*,_c[^o]*,_r[^u]*,_s[^t]*,_t[^e]*,.[^p_]*,.p[^a]*}"
_LOAD: Final = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{4}/")  # the folder of a load in a table
_ATTEMPTS: Final = 20
_DEVIATION: Final = 0.02  # of estimates of distinct terms, which need 3 KB for each predicate


def load_quads(
    spark: SparkSession,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    on_error: str = "fail",
    quarantine: str | None = None,
    lenient: bool = False,
) -> DataFrame:
    """Loads RDF files as a DataFrame with the columns `subject`, `predicate`, `object` and `graph` (NULL: the default
    graph).

    Cells are canonical N-Triples terms. N-Triples and N-Quads are read in parallel, also within a file that is
    uncompressed or compressed by bzip2. For all other formats, and for lines in `.xz`, a worker holds a whole file, at
    most 2 GB. Blank nodes of different files stay apart. The frame may contain duplicates, and each evaluation reads
    the files again; use `write_quads` to avoid both.

    Args:
        spark: any session, including Spark Connect.
        paths: files, folders (recursively) and patterns, as Spark's readers accept them: `file:`, `s3a:`, `hdfs:`,
            `abfs:`. Names that begin with `_` or `.` are ignored, as everywhere in Spark.
        format: an extension or media type, if names do not end in `.nt`, `.nq`, `.ttl`, `.trig`, `.rdf` or `.jsonld`,
            optionally followed by `.gz`, `.bz2`, `.xz` or `.zst`.
        on_error: `"fail"`: malformed data end the job with an error that contains file and text; `"quarantine"`:
            malformed lines, and malformed files of other formats, are left out and written to a table immediately.
        quarantine: the path of that table: Parquet with the columns `file`, `line` (its number, from 1), `text` and
            `reason`; line and text are NULL for a whole file. It must not exist.
        lenient: pass malformed IRIs and language tags, and literals of rdf:langString without a tag, unchanged;
            `count_malformed` counts them. Lines with other terms that are not RDF are malformed.

    Raises:
        UsageError: a path that does not exist or has no files, an unknown format or option.
        QuadsError: a malformed line or file; raised by `session.translated()` around an action.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "dump.nt").write_text("<urn:a> <urn:p> <urn:b> .\\n")
    ...     load_quads(spark, f"{folder}/dump.nt").collect()
    [Row(subject='<urn:a>', predicate='<urn:p>', object='<urn:b>', graph=None)]
    """
    _check_on_error(on_error, quarantine)
    dump = _Dump(spark, paths, format, lenient)
    return loaded(dump.quads(dump.quarantined(quarantine)))


def _check_on_error(on_error: str, quarantine: str | None) -> None:
    if on_error not in ON_ERROR:
        raise UsageError(
            f"on_error={on_error!r} is unknown", hint=f"choose one of {', '.join(ON_ERROR)}"
        )
    if (on_error == "quarantine") != (quarantine is not None):
        raise UsageError(
            "on_error='quarantine' and quarantine= belong together",
            hint="name the table for malformed lines: quarantine='quarantine.parquet'",
        )


def escaped_path(path: str) -> str:
    """Returns a path for Spark's readers: with its wildcards escaped if a file or folder here has this name.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix="[1].nt") as file:
    ...     escaped_path(file.name).endswith("[1].nt"), escaped_path(file.name + "?") == file.name + "?"
    (False, True)
    """
    return literal_path(path) if os.path.exists(path.removeprefix("file:")) else path


def literal_path(path: str) -> str:
    """Returns a path for Spark's readers with its wildcards escaped.

    >>> print(literal_path("logs [1]"))
    logs \\[1\\]
    """
    return _WILD.sub(r"\\\g<0>", path)


def refuse_files_read(path: str | os.PathLike[str], frame: DataFrame) -> None:
    """Refuses a path that a frame reads, or that has a file in it that the frame reads."""
    with translated():
        files = frame.inputFiles()  # as URIs
    refuse_input(
        path,
        (
            unquote(file.removeprefix("file://")) if file.startswith("file:") else file
            for file in files
        ),
    )


def refuse_foreign_files(spark: SparkSession, path: str, recorded: Iterable[str]) -> None:
    """Checks that Spark, which removes a folder to overwrite it, removes no files but those of a record."""
    folder = literal_path(path)
    files = files_at(spark, folder) or []
    tops = (_LOAD.split(file)[0].rpartition("/")[0] for file in files)
    top = min(tops, key=len, default="")
    names = (unquote(file.removeprefix(f"{top}/")) for file in files)
    found = [name for name in names if not _LOAD.match(name)]  # others have no such names
    if files_at(spark, f"{folder}/{_FOREIGN_HIDDEN}") is not None:
        found.append("hidden files (_… or .…)")
    refuse_foreign(path, found, {*recorded})


def files_at(spark: SparkSession, pattern: str) -> list[str] | None:
    """Returns the URIs of the files that Spark does not take for hidden; None if nothing has such a name."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
    try:
        return list(reader.option("ignoreMissingFiles", True).load(pattern).inputFiles())
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None


class _Dump:
    """The files of a dump, grouped by their readers."""

    def __init__(
        self,
        spark: SparkSession,
        listed: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        format: str | None,
        lenient: bool,
    ) -> None:
        several = [listed] if isinstance(listed, str | os.PathLike) else listed
        paths = [os.fspath(path) for path in several]
        self._spark, self._paths = spark, [escaped_path(path) for path in paths]
        self._format, self._lenient = format, lenient
        if not paths:
            raise UsageError("there are no paths")
        with translated():
            self._all = self._reader().text(self._paths)
            files = self._all.inputFiles()
        if not files:
            raise UsageError(f"no files in {', '.join(paths)}")
        if colons := [
            file for file in files if file.startswith("file:") and ":" in file.rsplit("/", 1)[-1]
        ]:
            raise UsageError(f"{colons[0]}: {_NO_COLONS}", hint=_RENAME)
        self.files = sorted({*files})  # as URLs
        kinds = {document_file(unquote(file), format) for file in files}
        # with an explicit format, names do not distinguish the groups: then one group contains all files
        apart = format is None or all(map(self._is_text, kinds))
        text = {kind for kind in kinds if apart and self._is_text(kind)}
        self._whole = kinds - text
        self._lines = [
            (graphs, group)
            for graphs, known in ((False, N_TRIPLES), (True, N_QUADS))
            if (group := {kind for kind in text if kind.format == known})
        ]
        self._one_group = len(self._lines) + bool(self._whole) == 1

    def _is_text(self, kind: DocumentFile) -> bool:
        """Returns whether Spark's text reader can read a file."""
        zstandard = tuple(map(int, self._spark.version.split(".")[:2])) >= (4, 3)
        return kind.format.line_based and kind.packing in (
            "",
            ".gz",
            ".bz2",
            *([".zst"] if zstandard else []),
        )

    def _reader(self, kinds: Iterable[DocumentFile] = ()) -> DataFrameReader:
        # the settings of a session may make Spark skip files silently
        reader = (
            self._spark.read.option("recursiveFileLookup", True)
            .option("ignoreCorruptFiles", False)
            .option("ignoreMissingFiles", False)
        )
        suffixes = sorted({kind.suffix for kind in kinds})
        return reader.option("pathGlobFilter", f"*{{{','.join(suffixes)}}}") if suffixes else reader

    def _text(self, kinds: set[DocumentFile]) -> DataFrame:
        return self._all if self._one_group else self._reader(kinds).text(self._paths)

    def _contents(self) -> DataFrame:
        reader = self._reader(() if self._one_group else self._whole)
        return (
            reader.format("binaryFile")
            .load(self._paths)
            .select(F.expr(_FILE).alias("file"), "content")
        )

    def quarantined(self, table: str | None) -> DataFrame | None:
        """Writes the malformed files and lines to a table, and returns it."""
        if table is None:
            return None
        with translated():
            self.failures().write.parquet(table)
        return self._spark.read.schema(documents.FAILURES).parquet(escaped_path(table))

    def quads(self, failed: DataFrame | None = None, *, named: bool = False) -> DataFrame:
        """Returns the quads without the `failed` files and lines; without these, a malformed one ends the job. If
        `named`, `file` is the URL of their file.
        """
        frames = [
            self._read_lines(graphs, kinds, failed is None, named) for graphs, kinds in self._lines
        ]
        if self._whole:
            contents = self._contents()
            if failed is not None:
                contents = contents.join(failed.select("file"), "file", "left_anti")
            parsed = documents.quads(self._format, self._lenient, named=named)
            frames.append(contents.mapInArrow(parsed, _schema(named)))
        return reduce(DataFrame.unionByName, frames)

    def _read_lines(
        self, graphs: bool, kinds: set[DocumentFile], strict: bool, named: bool
    ) -> DataFrame:
        lines = self._text(kinds).selectExpr(f"{_FILE} AS file", _BYTES)
        parsed = documents.lines(graphs, strict, self._lenient, named=named)
        quads = lines.mapInArrow(parsed, _schema(named))
        # if no line can name a graph, Spark should know this without reading the lines
        return quads if graphs else quads.withColumn("graph", F.lit(None).cast("string"))

    def failures(self) -> DataFrame:
        """Returns the malformed files and lines: file, number of the line, text and reason."""
        frames = []
        for graphs, kinds in self._lines:
            lines = numbered(self._text(kinds)).selectExpr("file", "line", _BYTES)
            reasons = documents.reasons(graphs, self._lenient)
            frames.append(lines.mapInArrow(reasons, documents.FAILURES))
        if self._whole:
            frames.append(
                self._contents().mapInArrow(
                    documents.failures(self._format, self._lenient), documents.FAILURES
                )
            )
        return reduce(DataFrame.unionByName, frames)


def _schema(named: bool) -> str:
    return documents.NAMED if named else documents.QUADS


def count_malformed(quads: DataFrame | QuadTable) -> int:
    """Counts terms that are not RDF in quads that were read leniently. This reads all of them."""
    frame = (quads if isinstance(quads, QuadTable) else QuadTable.of(quads)).frame
    with translated():
        return malformed_terms(frame)


def write_quads(
    quads: DataFrame | QuadTable, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Statistics:
    """Writes quads as a set, in Parquet sorted by predicate, with statistics of each predicate.

    The statistics are written last. `read_quads` refuses a table without them as incomplete.

    Args:
        quads: a DataFrame like that of `load_quads`.
        path: a folder, on any filesystem of Spark.
        overwrite: replace an existing table; otherwise it is an error. A folder with other files than those of the
            table is not overwritten.

    Returns:
        The statistics. Distinct subjects and objects are estimated, to about 2 %.

    Raises:
        UsageError: the path exists, has other files, or is the one that is read.
        QuadsError: a malformed line or file, or columns that are not quads.
        IncompleteResult: another job wrote to the path at the same time.

    >>> from tempfile import TemporaryDirectory
    >>> quads = spark.createDataFrame([("<urn:a>", "<urn:p>", "<urn:b>")] * 2, ["subject", "predicate", "object"])
    >>> with TemporaryDirectory() as folder:
    ...     write_quads(quads, f"{folder}/quads").rows
    1
    """
    path = os.fspath(path)
    frame = (quads if isinstance(quads, QuadTable) else QuadTable.of(quads)).frame
    spark = frame.sparkSession
    refuse_files_read(path, frame)
    if overwrite:
        refuse_foreign_files(spark, path, _recorded(spark, path))
    clustered = (
        frame.repartition("subject")
        .dropDuplicates()
        .sortWithinPartitions("predicate", "subject", "object")
    )
    observation = Observation()
    with translated():
        observed = clustered.observe(observation, F.count(F.lit(1)).alias("rows"))
        observed.write.mode("overwrite" if overwrite else "error").parquet(path)
        written = spark.read.schema(documents.QUADS).parquet(escaped_path(path))
        predicates = _predicates(written).get(None, {})
        rows, names = sum(one.rows for one in predicates.values()), _names(written)
        entry = LoadEntry(version=VERSION, files=names, rows=rows, predicates=predicates)
        _add_entry(spark, path, entry)
        # Spark's committer does not notice that another job writes there; the reader compares the names, too
        now = _names(spark.read.schema(documents.QUADS).parquet(escaped_path(path)))
    if rows != observation.get["rows"] or now != names:
        raise IncompleteResult(
            f"another job wrote to {path} at the same time: the table is not whole",
            hint="write it again, alone",
        )
    return TableRecord([entry]).statistics


def append_quads(
    spark: SparkSession,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    table: str | os.PathLike[str],
    *,
    format: str | None = None,
    on_error: str = "fail",
    quarantine: str | None = None,
    lenient: bool = False,
) -> Statistics:
    """Adds RDF files to a table, each as Parquet files of its own, and replaces those that it has already.

    The quads of other files are neither read nor written again, so that quads that several files have are in the table
    several times: queries remove the duplicates of the predicates that several files have. The table has the files when
    this returns, and not before. Of jobs that add files at once, some may fail. It is made if it does not exist.
    DuckDB's `relational.quads.load` adds files to the same tables.

    Args:
        spark: as for `load_quads`, like `paths`, `format`, `on_error`, `quarantine` and `lenient`.
        table: a folder, on any filesystem of Spark.

    Returns:
        The statistics of the whole table. Those of its files are added.

    Raises:
        UsageError: as for `load_quads`, or the folder has files and is not a table.
        QuadsError: a malformed line or file; the table is as it was.
        IncompleteResult: the executors write to another filesystem, or another job wrote at the same time.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("a", "b", "a"):
    ...         _ = Path(folder, f"{name}.nt").write_text(f"<urn:{name}> <urn:p> <urn:o> .\\n")
    ...         figures = append_quads(spark, f"{folder}/{name}.nt", f"{folder}/quads")
    ...     figures.rows, read_quads(spark, f"{folder}/quads").frame.count()
    (2, 2)
    """
    _check_on_error(on_error, quarantine)
    path, run = os.fspath(table), run_id()
    dump = _Dump(spark, paths, format, lenient)
    frame = dump.quads(dump.quarantined(quarantine), named=True)
    refuse_files_read(path, frame)
    with translated():
        known = _entries(spark, path).record if _is_there(spark, path) else TableRecord([])
        written = _write_sources(frame, dump.files, f"{path}/{run}")
        _add_entry(spark, path, known.entry(written, run))
        found = _entries(spark, path)  # with those that others have added meanwhile
        if missing := written.keys() - found.record.parts.keys():
            raise IncompleteResult(
                f"the record of {path} lacks {min(missing)}: another job wrote there at the same time",
                hint="load it again",
            )
        _remove_replaced(spark, found)
    return found.record.statistics


def _write_sources(frame: DataFrame, files: Sequence[str], folder: str) -> dict[str, SourceQuads]:
    """Writes the quads of each file into a folder of its own, and returns their figures."""
    spark = frame.sparkSession
    listed = ", ".join(f"({literal(file)})" for file in files)
    hashed = spark.sql(f"SELECT xxhash64(file), file FROM VALUES {listed} AS files(file)")
    numbers: dict[int, str] = dict(hashed.collect())  # by the optimizer, without a job
    # A task writes a file for each source that it has: as many places a source as there are tasks for it
    places = -(-int(spark.conf.get("spark.sql.shuffle.partitions") or 1) // len(files))
    placed = frame.select(
        *(column for column in frame.columns if column != "file"),
        F.xxhash64("file").alias("source"),
        F.pmod(F.xxhash64("subject"), F.lit(places)).alias("place"),
    )
    clustered = (
        placed.repartition("source", "place")
        .dropDuplicates()
        .sortWithinPartitions("source", "predicate", "subject", "object")
        .drop("place")
    )
    observation = Observation()
    observed = clustered.observe(observation, F.count(F.lit(1)).alias("rows"))
    observed.write.partitionBy("source").parquet(folder)
    schema = f"{documents.QUADS}, source bigint"
    written = spark.read.schema(schema).parquet(escaped_path(folder))
    predicates = _predicates(written, "source")
    rows = {source: sum(one.rows for one in found.values()) for source, found in predicates.items()}
    if sum(rows.values()) != observation.get["rows"]:
        raise IncompleteResult(
            f"not all quads came to {folder}: the executors write to another filesystem",
            hint="name a folder on a filesystem that they share",
        )
    names = defaultdict[int, list[str]](list)
    run = folder.rpartition("/")[2]
    for url in written.inputFiles():
        name = unquote(url).rpartition(f"/{run}/source=")[2]
        names[int(name.partition("/")[0])].append(f"{run}/source={name}")
    return {
        source_of(file): SourceQuads(
            sorted(names[source]), rows.get(source, 0), predicates.get(source, {})
        )
        for source, file in numbers.items()
    }


class _Entries(NamedTuple):
    record: TableRecord
    root: str  # the URL of the table
    files: Mapping[str, LoadEntry]  # those of the entries, by their URLs


def _is_there(spark: SparkSession, path: str) -> bool:
    """Returns whether a folder has entries; if not, it must not have files."""
    if files_at(spark, f"{escaped_path(path)}/{RECORD}"):
        return True
    refuse_foreign_files(spark, path, ())
    return False


def _entries(spark: SparkSession, path: str) -> _Entries:
    # Each file is a line. Other loads remove outdated entries, after they have added their own: list those again
    for _ in range(_ATTEMPTS):
        text = spark.read.option("ignoreMissingFiles", True).text(f"{escaped_path(path)}/{RECORD}")
        rows = text.select(F.expr(_FILE), "value").collect()
        if len(rows) == len(text.inputFiles()):
            break
    else:
        raise incomplete(path, f"not all entries of {RECORD} can be read, or one is empty")
    record = TableRecord.read((value for _, value in rows), path)
    files = {file: TableRecord.read([value], path).entries[0] for file, value in rows}
    return _Entries(record, min(files).partition(f"/{RECORD}/")[0], files)


def _add_entry(spark: SparkSession, path: str, entry: LoadEntry) -> None:
    """Adds an entry, whole or not at all: over Spark Connect by a job, which loads at the same time may disturb."""
    if is_remote(spark):
        text = spark.createDataFrame([(entry.encoded().decode().strip(),)], "value string")
        text.coalesce(1).write.mode("append").text(f"{path}/{RECORD}")
        return
    name = f"part-{entry.run or run_id()}.txt"
    hidden, files = _java_path(spark, f"{path}/{RECORD}/.{name}")
    stream = files.create(hidden, True)
    stream.write(entry.encoded())
    stream.close()
    if not files.rename(hidden, _java_path(spark, f"{path}/{RECORD}/{name}")[0]):
        raise IncompleteResult(f"cannot write the record of {path}", hint="load it again")


def _java_path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Returns a path of Hadoop, and its file system, which Spark Connect has not."""
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # Java's
    return hadoop, hadoop.getFileSystem(spark._jsc.hadoopConfiguration())


def _remove_replaced(spark: SparkSession, found: _Entries) -> None:
    """Removes the Parquet files and entries that a table no longer has. Over Spark Connect they stay, for a later load
    by another session, as Spark's readers and writers remove no files.
    """
    if is_remote(spark):
        return
    record, root = found.record, unquote(found.root)
    kept = {name.partition("/")[0] for name in record.files}
    gone = {f"{root}/{name}" for name in record.replaced if not _LOAD.match(name)}
    for name in filter(_LOAD.match, record.replaced):
        run, source, _ = name.split("/", 2)
        gone.add(f"{root}/{run}/{source}" if run in kept else f"{root}/{run}")
    gone |= {unquote(file) for file, entry in found.files.items() if entry in record.outdated}
    for url in sorted(gone):
        hadoop, files = _java_path(spark, url)
        files.delete(hadoop, True)


def _recorded(spark: SparkSession, path: str) -> list[str]:
    """Returns the files of a table, by its entries; none if there is no table."""
    try:
        with translated():
            record = _entries(spark, path).record
    except (UsageError, QuadsError):
        return []
    return [*record.files, *record.replaced]


def is_table(spark: SparkSession, path: str | os.PathLike[str]) -> bool:
    """Returns whether a path, which must exist, contains Parquet, as a table of quads does, and not a dump."""
    with translated():
        parquet = (
            spark.read.format("binaryFile")
            .option("pathGlobFilter", "*.parquet")
            .option("recursiveFileLookup", True)
            .load(escaped_path(os.fspath(path)))
        )
        return bool(parquet.inputFiles())


def _predicates(quads: DataFrame, *by: str) -> dict[int | None, dict[Term, PredicateStatistics]]:
    """Returns the figures of each predicate, for each value of a column, or for None."""
    distinct = (F.approx_count_distinct(position, _DEVIATION) for position in ("subject", "object"))
    counted = quads.groupBy(*by, "predicate").agg(F.count(F.lit(1)), *distinct).collect()
    found = defaultdict[int | None, dict[Term, PredicateStatistics]](dict)
    for *key, predicate, rows, subjects, objects in sorted(counted):
        figures = PredicateStatistics(rows, subjects, objects)
        found[key[0] if key else None][Term(predicate)] = figures
    return found


def _names(table: DataFrame, root: str | None = None) -> list[str]:
    """Returns the names of files, or their paths in the folder with the URL `root`."""
    files = table.inputFiles()
    return sorted(
        unquote(file.removeprefix(f"{root}/")) if root else file.rsplit("/", 1)[-1]
        for file in files
    )


def read_quads(spark: SparkSession, path: str | os.PathLike[str]) -> QuadTable:
    """Reads a table of `write_quads`, of `append_quads` or of DuckDB, with its statistics.

    Raises:
        QuadsError: there is no complete table, or its files have changed since it was written.

    >>> from tempfile import TemporaryDirectory
    >>> quads = spark.createDataFrame([("<urn:a>", "<urn:p>", "<urn:b>")], ["subject", "predicate", "object"])
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_quads(quads, f"{folder}/quads")
    ...     read_quads(spark, f"{folder}/quads").statistics.distinct
    True
    """
    path = os.fspath(path)
    reader = spark.read.schema(documents.QUADS).option("recursiveFileLookup", True)
    try:
        with translated():
            record, root, _ = _entries(spark, path)
            table = reader.parquet(escaped_path(path))
            names = _names(table, root)
    except UsageError as error:
        raise incomplete(path, error.message) from error
    others = set(names) - set(record.files)
    if set(record.files) - set(names) or any(not _LOAD.match(name) for name in others):
        raise QuadsError(
            f"{path} has other files than its statistics are of",
            hint="write it again with write_quads(), or use it with QuadTable.of(spark.read.parquet(…))",
        )
    if others:  # of loads that have not ended, or of files that were replaced
        files = [literal_path(f"{unquote(root)}/{name}") for name in record.files]
        table = reader.parquet(*files) if files else table.limit(0)
    return QuadTable(table, record.statistics, record.repeated)

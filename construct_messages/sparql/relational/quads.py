"""Tables of quads in Parquet: written from RDF files one by one, and read with their record.

`tables` describes them; Spark writes and reads the same. Here each source file has one Parquet file, sorted by
predicate, subject and object, without duplicates. No queries here.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self

import duckdb
import msgspec
import pyarrow as pa
from pyarrow import compute

from construct_messages.errors import (
    CannotWrite,
    QuadsError,
    SourceError,
    TermError,
    UsageError,
)
from construct_messages.query.optimizer.optimize import PredicateStatistics, Statistics
from construct_messages.rdf.files.output import atomic_file, sync_folder
from construct_messages.rdf.files.unpacking import (
    UnpackedFile,
    reading_errors,
    unmarked,
)
from construct_messages.rdf.formats.lookup import document_file
from construct_messages.rdf.formats.media_types import (
    N_QUADS,
    N_TRIPLES,
    DocumentFormat,
)
from construct_messages.rdf.labels import of_file
from construct_messages.rdf.terms import Lenience, Lenient, Term
from construct_messages.sparql.relational.documents import (
    SCHEMA,
    LineError,
    Lines,
    batches_of,
    document_rows,
    reason_of,
    strings,
)
from construct_messages.sparql.relational.duckdb import connected
from construct_messages.sparql.relational.tables import (
    RECORD,
    LoadEntry,
    SourceQuads,
    TableRecord,
    incomplete,
    source_of,
)

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem

_LOGGER: Final = logging.getLogger(__name__)

_GROUP_ROWS: Final = 122_880
_BLOCK: Final = 1 << 22
_LOAD: Final = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{4}")
_HINT: Final = "fix the file, or write it anew by construct-messages convert --skip-invalid"


@dataclass(frozen=True)
class QuadsTable:
    """A table of quads: its files, in order, and its statistics.

    `repeated` are the predicates of which several files may hold the same quad; None: all. `remote` are the files of a
    table in an object store.
    """

    files: tuple[Path, ...]
    statistics: Statistics
    repeated: frozenset[Term] | None = frozenset()
    remote: Dataset | None = None


def version_of(path: str | os.PathLike[str]) -> list[tuple[str, int, int]]:
    """Returns the names, inodes and times of a table's record, which differ after each load."""
    parts = sorted((Path(path) / RECORD).glob("part-*"))
    return [(part.name, (found := part.stat()).st_ino, found.st_mtime_ns) for part in parts]


def read_quads(path: str | os.PathLike[str]) -> QuadsTable:
    """Reads the record of a table of quads.

    Raises:
        QuadsError: there is no complete table.
    """
    folder, before = Path(path), dict[Path, bytes]()
    while True:
        entries = _entries(folder)
        record = TableRecord.read(entries.values(), str(path))
        files = tuple(folder / name for name in record.files)
        if not (missing := [file for file in files if not file.exists()]):
            return QuadsTable(files, record.statistics, record.repeated)
        if entries == before:  # otherwise a load has just replaced the file
            hint = "write the table again"
            raise QuadsError(f"{folder}: {missing[0].name} is missing", hint=hint)
        before = entries


def in_parquet(files: Sequence[Path]) -> str:
    """Returns the quads of Parquet files for FROM; folders such as `graph=2024` above them add no columns.

    >>> in_parquet([Path("it's.parquet")])
    "read_parquet(['it''s.parquet'], hive_partitioning = FALSE)"
    """
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{names}], hive_partitioning = FALSE)"


def _entries(folder: Path, attempts: int = 10) -> dict[Path, bytes]:
    """Returns the entries of a table, each a file with a line."""
    try:
        return {part: part.read_bytes() for part in sorted((folder / RECORD).glob("part-*"))}
    except OSError as error:
        if attempts and isinstance(error, FileNotFoundError):
            return _entries(folder, attempts - 1)  # another load has just removed an outdated one
        raise incomplete(str(folder), str(error)) from error


def read_remote_quads(url: str) -> QuadsTable:
    """Reads a table of quads in an object store: a folder with its record, or any Parquet files with its columns.

    Credentials are those that pyarrow finds, as in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. AWS_ENDPOINT_URL names
    another server of S3 than Amazon's.

    Args:
        url: of a folder, a file, or several of one folder, as in `s3://bucket/dump.quads/*.parquet`.

    Raises:
        QuadsError: there is no such table.
        SourceError: the store refuses, or cannot be reached.
    """
    # imported here because they take long, and import pandas where that is installed
    from pyarrow.dataset import dataset
    from pyarrow.fs import FileSystem

    folder, _, pattern = url.rpartition("/")
    if not any(char in pattern for char in "*?["):
        folder, pattern = url.rstrip("/"), ""
    try:
        store, place = FileSystem.from_uri(folder)
        statistics, repeated, paths = _remote_files(store, place, pattern)
        remote = dataset(paths, format="parquet", filesystem=store) if paths else None
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{url} cannot be read: {error}", hint="check the URL, and the credentials"
        ) from error
    if remote is None:
        raise QuadsError(f"{url}: there are no Parquet files", hint="check the URL")
    if missing := [name for name in SCHEMA.names if name not in remote.schema.names]:
        raise QuadsError(f"{url} is no table of quads: it has no column {missing[0]}")
    return QuadsTable((), statistics, repeated, remote)


def _remote_files(
    store: FileSystem, place: str, pattern: str
) -> tuple[Statistics, frozenset[Term] | None, list[str]]:
    """Returns the statistics, repeated predicates and paths of a table, which are unknown without its record."""
    from pyarrow.fs import FileSelector

    if store.get_file_info(place).is_file:
        return Statistics(), None, [place]
    names = sorted(info.path for info in store.get_file_info(FileSelector(place)))
    if pattern or f"{place}/{RECORD}" not in names:
        paths = [name for name in names if fnmatch(Path(name).name, pattern or "*.parquet")]
        return Statistics(), None, paths
    entries = []
    parts = sorted(info.path for info in store.get_file_info(FileSelector(f"{place}/{RECORD}")))
    for part in parts:
        if Path(part).name.startswith("part-"):
            with store.open_input_stream(part) as stream:
                entries.append(bytes(stream.read()))
    record = TableRecord.read(entries, place)
    return record.statistics, record.repeated, [f"{place}/{name}" for name in record.files]


# --- writing --------------------------------------------------------------------------------------


def load(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    spill: str | os.PathLike[str] | None = None,
    lenient: Lenient = False,
    report: Callable[[str, int, Lenience], None] | None = None,
) -> Statistics:
    """Loads RDF files into a table of quads, each into a Parquet file of its own.

    A file that the table has already, by its URL, is replaced, and the others stay as they are. Until all files are
    loaded, the table stays as it was; a new one is not complete.

    Args:
        paths: N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD, also compressed.
        output: a folder, which is made if it does not exist. A folder with other files is refused.
        memory_limit: of DuckDB while it sorts, as in `"1500MB"`; None: its default, 80 % of the memory.
        threads: of DuckDB; None: one for each core.
        spill: the folder for data beyond the memory; None: a temporary folder in the table.
        lenient: accept terms that are not RDF, such as malformed IRIs; `"skip"`: leave out the statements with them.
        report: is called with the name of each file that is loaded, the number of its quads, and the terms that were
            accepted or left out.

    Returns:
        The statistics of the whole table. Distinct subjects and objects are estimated.

    Raises:
        UsageError: an unknown format, a folder with other files, or one into which another process loads.
        QuadsError: a malformed file, with its line, or one that changes while it is read.
        CannotWrite: the folder cannot be written.
    """
    files = {file.url: file for file in map(RdfFile.at, paths)}.values()
    if not files:
        raise UsageError("there are no files to load", hint="name at least one")
    folder = Path(output)
    with _writing(folder), _locked(folder):
        known, sources = _prepared(folder), dict[str, SourceQuads]()
        if spill is not None:
            Path(spill).mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=spill or folder, prefix=".spill-") as temporary:
            connection = connected(
                temp_directory=temporary, memory_limit=memory_limit, threads=threads
            )
            for file in files:
                lenience = Lenience.of(lenient, base=file.url)
                written = _write(connection, folder, file, lenience)
                sources[source_of(file.url)] = written
                if report is not None:
                    report(str(file.path), written.rows, lenience)
            connection.close()
        return _record(folder, known.entry(sources))


def _prepared(folder: Path) -> TableRecord:
    """Returns the record of the table in a folder; removes the rest of an interrupted load."""
    names, entries = {path.name for path in folder.iterdir()}, _entries(folder)
    if not entries:
        # a load by Spark has a folder
        foreign = sorted(n for n in names - {RECORD} if not (_is_ours(n) or _LOAD.fullmatch(n)))
        if foreign:
            raise UsageError(
                f"{folder} is no table of quads, and holds {foreign[0]}",
                hint="name a new or an empty folder",
            )
    record = TableRecord.read(entries.values(), str(folder)) if entries else TableRecord([])
    for name in filter(_is_ours, names.difference(record.files)):
        _remove(folder / name)
    for begun in (folder / RECORD).glob(".part-*.part"):
        begun.unlink()
    return record


def _is_ours(name: str) -> bool:
    return bool(re.fullmatch(r"f[0-9a-f]{16,}_-[0-9a-f]{8}\.parquet|\.spill-.*|\..*\.part", name))


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)  # a load by Spark removes replaced files, too


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Makes the folder, and keeps other loads out of it during the block."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another process loads into {folder}", hint="wait until it has ended"
            ) from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {folder}: {error}", hint="choose another place") from error
    except duckdb.IOException as error:
        raise CannotWrite(f"cannot write {folder}: {error}", hint="choose another place") from error
    except duckdb.OutOfMemoryException as error:
        raise CannotWrite(
            f"the memory does not suffice to sort a file: {shortage(error)}",
            hint="raise the memory limit, or name a spill folder with more room",
        ) from error


def shortage(error: duckdb.OutOfMemoryException) -> str:
    """Returns the reason of an error, without DuckDB's advice to change its settings by SQL.

    >>> shortage(duckdb.OutOfMemoryException("no block.\\nPossible solutions:\\n* Fewer threads"))
    'no block.'
    """
    return re.split(r"\s+(?:This limit was set|Possible solutions)", str(error))[0]


def _write(
    connection: duckdb.DuckDBPyConnection, folder: Path, file: RdfFile, lenience: Lenience
) -> SourceQuads:
    """Writes the quads of a file, and returns their figures."""
    name = f"{of_file(file.url)}-{os.urandom(4).hex()}.parquet"
    hidden = folder / f".{name}.part"
    target = str(hidden).replace("'", "''")
    before = _state(file.path)
    try:
        with _registered(connection, file.batches(lenience)):
            connection.execute(
                f"COPY (SELECT DISTINCT * FROM quads_read ORDER BY predicate, subject, object, graph) TO '{target}' "
                f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_GROUP_ROWS})"
            )
        if _state(file.path) != before:
            raise QuadsError(
                f"{file.path} changed while it was read", hint="load it again when it is complete"
            )
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    figures = _figures(connection, in_parquet([hidden]))
    with hidden.open("rb") as written:
        os.fsync(written.fileno())
    hidden.rename(folder / name)
    return SourceQuads([name], sum(figure.rows for figure in figures.values()), figures)


def _state(path: Path) -> tuple[int, int, int] | None:
    """Returns the inode, size and time of a file, which differ after a change; None: there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _figures(connection: duckdb.DuckDBPyConnection, source: str) -> dict[Term, PredicateStatistics]:
    """Returns the figures of the predicates of quads, by their name for FROM."""
    found = connection.execute(
        "SELECT predicate, count(*), approx_count_distinct(subject), approx_count_distinct(object) "
        f"FROM {source} GROUP BY predicate ORDER BY predicate"
    )
    return {Term(term): PredicateStatistics(*counts) for term, *counts in found.fetchall()}


@contextmanager
def _registered(
    connection: duckdb.DuckDBPyConnection, batches: Iterator[pa.RecordBatch]
) -> Iterator[None]:
    """Makes batches of quads the table `quads_read` during the block, and raises their errors."""
    failure: list[BaseException] = []

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:  # passed through DuckDB, which would make a text of it
            failure.append(error)
            raise

    connection.register("quads_read", pa.RecordBatchReader.from_batches(SCHEMA, guarded()))
    try:
        yield
    except duckdb.Error:
        if failure:
            raise failure[0] from None
        raise
    finally:
        connection.unregister("quads_read")


def read_files(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[RdfFile],
    predicates: Collection[Term] | None,
    lenient: Lenient = False,
) -> Statistics:
    """Reads the quads of RDF files, or those of some predicates, into a temporary table `quads` without duplicates.

    Raises:
        QuadsError: a malformed file, with its line.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            lenience = Lenience.of(lenient, base=file.url)
            yield from file.batches(lenience, predicates)
            if lenience.passed:
                _LOGGER.warning("%s: %s", file.path, lenience)

    with _registered(connection, batches()):
        connection.execute("CREATE TEMP TABLE quads AS SELECT DISTINCT * FROM quads_read")
    figures = _figures(connection, "quads")
    return Statistics(sum(each.rows for each in figures.values()), True, figures)


def _record(folder: Path, entry: LoadEntry) -> Statistics:
    """Adds an entry to the record of a table, and removes the files and entries that it no longer has."""
    (folder / RECORD).mkdir(exist_ok=True)
    sync_folder(folder)  # the files have their names on disk before the entry has
    with atomic_file(folder / RECORD / f"part-{entry.run}.txt") as target:
        target.write(entry.encoded())
    entries = _entries(folder)
    record = TableRecord.read(entries.values(), str(folder))
    for name in record.replaced:
        (folder / name).unlink(missing_ok=True)
    for part, line in entries.items():
        if msgspec.json.decode(line, type=LoadEntry) in record.outdated:
            part.unlink(missing_ok=True)
    return record.statistics


# --- reading RDF ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RdfFile:
    """A file of quads: `packing` is the extension of its compression, if any."""

    path: Path
    packing: str
    format: DocumentFormat

    @classmethod
    def at(cls, path: str | os.PathLike[str], format: str | None = None) -> Self:
        """Returns the file at a path, of a format by extension, name or media type; None: that of its extension."""
        path = Path(path)
        # not `named`: a shell's pattern for a dump names READMEs and lists of checksums, too
        found = document_file(str(path), format)
        if not path.is_file():
            raise UsageError(f"{path} is not a file", hint="name RDF files")
        return cls(path, found.packing.lower(), found.format)

    @property
    def url(self) -> str:
        return self.path.absolute().as_uri()

    def batches(
        self, lenience: Lenience, predicates: Collection[Term] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yields the quads, or those of some predicates; each line or document is checked."""
        with reading_errors(self.path, QuadsError, _HINT), self.path.open("rb") as raw:
            file: Any = unmarked(UnpackedFile(raw, self.packing) if self.packing else raw)
            lines = self.format in (N_TRIPLES, N_QUADS)
            read = self._lines(file, lenience) if lines else self._document(file, lenience)
            if predicates is None:
                yield from read
                return
            wanted = strings(predicates)
            for batch in read:
                yield batch.filter(compute.is_in(batch.column(1), value_set=wanted))

    def _lines(self, file: Any, lenience: Lenience) -> Iterator[pa.RecordBatch]:
        """Yields the quads of an open file of N-Triples or N-Quads."""
        lines, scope = Lines(self.format == N_QUADS, lenience, self._report), of_file(self.url)
        number, rest = 1, b""
        while block := file.read(_BLOCK):
            block = rest + block
            end = block.rfind(b"\n") + 1
            block, rest = block[:end], block[end:]
            if block:
                yield from lines.read(block, scope, number)
                number += block.count(b"\n")
        if rest:
            yield from lines.read(rest + b"\n", scope, number)

    def _report(self, number: int, line: str, error: LineError | None) -> None:
        excerpt = line if len(line) <= 100 else f"{line[:100]}…"
        if error is None:  # the lenience has counted it
            _LOGGER.warning("%s: line %s is left out: %s", self.path, number, excerpt)
            return
        where = f"{self.path}: line {number}"
        if isinstance(error, UnicodeDecodeError):
            raise QuadsError(f"{where} is {reason_of(error)}", hint=_HINT) from error
        raise QuadsError(f"{where}: {reason_of(error)}: {excerpt}", hint=_HINT) from error

    def _document(self, file: Any, lenience: Lenience) -> Iterator[pa.RecordBatch]:
        """Yields the quads of an open document of another format."""

        def left_out(error: TermError) -> None:
            _LOGGER.warning("%s: a statement is left out: %s", self.path, error.message)

        given = None if lenience.is_strict else lenience
        yield from batches_of(
            document_rows(file, self.format, self.url, of_file(self.url), given, left_out)
        )

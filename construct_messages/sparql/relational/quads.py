"""Tables of quads in Parquet: written from RDF files one by one, and read with their record.

A table is a folder of Parquet files with the string columns `subject`, `predicate`, `object` and `graph` (NULL: the
default graph), of canonical N-Triples terms, and of a record of them, `_construct_messages.json`, which is written
last: a folder without it is not whole. Spark's `write_quads` and `read_quads` write and read the same. Here each source
file has one Parquet file, sorted by predicate, subject and object, without duplicates. No queries here.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyoxigraph as ox

from construct_messages.errors import (
    CannotWrite,
    QuadsError,
    TermError,
    UsageError,
)
from construct_messages.logs.lines.decoder import LineParser, read_lines
from construct_messages.logs.rdfxml import NTriplesFile
from construct_messages.query.optimizer.optimize import PredicateStatistics, Statistics
from construct_messages.rdf import formats
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.files.unpacking import (
    COMPRESSIONS,
    UnpackedFile,
    unmarked,
    unpack_errors,
)
from construct_messages.rdf.formats.media_types import (
    EXTENSIONS,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    DocumentFormat,
    format_of_document,
)
from construct_messages.rdf.labels import of_file
from construct_messages.rdf.terms import Term, from_pyoxigraph, map_blanks
from construct_messages.sparql.relational.duckdb import connected

RECORD: Final = "_construct_messages.json"  # a folder, as Spark reads no single file of such a name
_PART: Final = "part-00000.txt"
VERSION: Final = 2  # of the record, as Spark writes it
_GROUP_ROWS: Final = 122_880
_BLOCK: Final = 1 << 22
_ROWS: Final = 50_000
_SCHEMA: Final = pa.schema(
    [(name, pa.string()) for name in ("subject", "predicate", "object", "graph")]
)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_DIRECTIVE: Final = re.compile(
    r"""[ \t]*(?:VERSION[ \t]*(?:"[^"\\]*"|'[^'\\]*')[ \t]*)?(?:#.*)?[\r\n]*"""
)
_HINT: Final = "fix the file, or write it anew by construct-messages convert --skip-invalid"


@dataclass(frozen=True)
class QuadsTable:
    """A table of quads: its files, in order, and its statistics.

    `repeated` are the predicates that may be in several files, which may hold the same quad.
    """

    files: tuple[Path, ...]
    statistics: Statistics
    repeated: frozenset[Term] = frozenset()


def read_record(folder: Path) -> dict[str, Any]:
    """Returns the record of a table.

    Raises:
        QuadsError: there is none, or it is of another version.
    """
    try:
        parts = sorted((folder / RECORD).glob("part-*"))
        record: dict[str, Any] = json.loads("".join(part.read_text("utf-8") for part in parts))
    except (OSError, ValueError) as error:
        raise QuadsError(
            f"{folder} is not a complete table of quads: {error}",
            hint="write it by construct-messages load FILES --output FOLDER",
        ) from error
    if record.get("version") != VERSION:
        raise QuadsError(
            f"{folder} was written by another version of this package", hint="write it again"
        )
    return record


def read_quads(path: str | os.PathLike[str]) -> QuadsTable:
    """Reads the record of a table of quads.

    Raises:
        QuadsError: there is no complete table.
    """
    folder = Path(path)
    record = read_record(folder)
    files = tuple(folder / name for name in record["files"])
    if missing := [file for file in files if not file.exists()]:
        raise QuadsError(f"{folder}: {missing[0].name} is missing", hint="write the table again")
    predicates = {
        Term(term): PredicateStatistics(**figures) for term, figures in record["predicates"].items()
    }
    statistics = Statistics(record["rows"], record["distinct"], predicates)
    sources = record.get("sources", {}).values()
    several = [term for source in sources for term in source["predicates"]]
    repeated = frozenset(Term(term) for term in set(several) if several.count(term) > 1)
    if not record["distinct"] and not sources:
        repeated = frozenset(predicates)
    return QuadsTable(files, statistics, repeated)


# --- writing --------------------------------------------------------------------------------------


def load(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    spill: str | os.PathLike[str] | None = None,
    report: Callable[[str, int], None] | None = None,
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
        report: is called with the name of each file that is loaded, and with the number of its quads.

    Returns:
        The statistics of the whole table. Distinct subjects and objects are estimated.

    Raises:
        UsageError: an unknown format, a folder with other files, or one into which another process loads.
        QuadsError: a malformed file, with its line.
        CannotWrite: the folder cannot be written.
    """
    kinds = [(Path(path), *_kind(Path(path))) for path in paths]
    if not kinds:
        raise UsageError("there are no files to load", hint="name at least one")
    folder = Path(output)
    with _writing(folder), _locked(folder):
        return _load(folder, kinds, memory_limit, threads, spill, report)


def _load(
    folder: Path,
    kinds: Sequence[tuple[Path, str, DocumentFormat]],
    memory_limit: str | None,
    threads: int | None,
    spill: str | os.PathLike[str] | None,
    report: Callable[[str, int], None] | None,
) -> Statistics:
    known = _prepared(folder)
    sources: dict[str, dict[str, Any]] = dict(known.get("sources", {}))
    with TemporaryDirectory(dir=spill or folder, prefix=".spill-") as temporary:
        connection = connected(temp_directory=temporary, memory_limit=memory_limit, threads=threads)
        for path, packing, format in kinds:
            url = path.absolute().as_uri()
            batches = _batches(path, packing, format)
            sources[url] = _write(connection, folder, url, batches)
            if report is not None:
                report(str(path), sources[url]["rows"])
        connection.close()
    return _record(folder, sources)


def _kind(path: Path) -> tuple[str, DocumentFormat]:
    packing = path.suffix.lower() if path.suffix.lower() in COMPRESSIONS else ""
    extension = Path(path.name[: len(path.name) - len(packing)]).suffix
    format = format_of_document(extension[1:].lower(), named=False)
    if format is None:
        raise UsageError(
            f"{path}: the extension {extension or '(none)'!r} is not an RDF format",
            hint=f"end the file's name in one of {EXTENSIONS}",
        )
    if not path.is_file():
        raise UsageError(f"{path} is not a file", hint="name files to load")
    return packing, format


def _prepared(folder: Path) -> dict[str, Any]:
    """Returns the record of the table in a folder; removes the rest of an interrupted load."""
    names = {path.name for path in folder.iterdir()}
    if not list(folder.glob(f"{RECORD}/part-*")):
        foreign = sorted(name for name in names - {RECORD} if not _is_ours(name))
        if foreign:
            raise UsageError(
                f"{folder} is no table of quads, and holds {foreign[0]}",
                hint="name a new or an empty folder",
            )
        record: dict[str, Any] = {"files": []}
    else:
        record = read_record(folder)
        if "sources" not in record:
            raise UsageError(
                f"{folder} was written by Spark as a whole",
                hint="load into another folder, or write it again by Spark",
            )
    for name in names:
        if _is_ours(name) and name not in record["files"] and name != RECORD:
            _remove(folder / name)
    return record


def _is_ours(name: str) -> bool:
    return bool(re.fullmatch(r"f[0-9a-f]{16,}_-[0-9a-f]{8}\.parquet|\.spill-.*|\..*\.part", name))


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink()


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
            f"the memory does not suffice to sort a file: {error}",
            hint="raise the memory limit, or name a spill folder with more room",
        ) from error


def _write(
    connection: duckdb.DuckDBPyConnection, folder: Path, url: str, batches: Iterator[pa.RecordBatch]
) -> dict[str, Any]:
    """Writes the quads of a file, and returns their figures."""
    failure: list[Exception] = []

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:  # passed through DuckDB, which would make a text of it
            failure.append(error)
            raise

    name = f"{of_file(url)}-{os.urandom(4).hex()}.parquet"
    hidden = folder / f".{name}.part"
    connection.register("quads_read", pa.RecordBatchReader.from_batches(_SCHEMA, guarded()))
    target = str(hidden).replace("'", "''")
    try:
        connection.execute(
            f"COPY (SELECT DISTINCT * FROM quads_read ORDER BY predicate, subject, object, graph) TO '{target}' "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_GROUP_ROWS})"
        )
    except duckdb.Error:
        hidden.unlink(missing_ok=True)
        if failure:
            raise failure[0] from None
        raise
    finally:
        connection.unregister("quads_read")
    figures = connection.execute(
        "SELECT predicate, count(*), approx_count_distinct(subject), approx_count_distinct(object) "
        f"FROM read_parquet('{target}') GROUP BY predicate ORDER BY predicate"
    ).fetchall()
    with hidden.open("rb") as file:
        os.fsync(file.fileno())
    hidden.rename(folder / name)
    predicates = {
        predicate: {"rows": rows, "subjects": subjects, "objects": objects}
        for predicate, rows, subjects, objects in figures
    }
    rows = sum(figure["rows"] for figure in predicates.values())
    return {"file": name, "rows": rows, "predicates": predicates}


def _record(folder: Path, sources: dict[str, dict[str, Any]]) -> Statistics:
    """Writes the record of a table, and removes the files that it no longer has."""
    predicates: dict[str, dict[str, int]] = {}
    for source in sources.values():
        for predicate, figures in source["predicates"].items():
            known = predicates.setdefault(predicate, dict.fromkeys(figures, 0))
            for name, figure in figures.items():
                known[name] += figure
    files = sorted(source["file"] for source in sources.values())
    rows = sum(source["rows"] for source in sources.values())
    record = {
        "version": VERSION,
        "files": files,
        "rows": rows,
        "distinct": len(sources) == 1,
        "predicates": predicates,
        "sources": sources,
    }
    (folder / RECORD).mkdir(exist_ok=True)
    with atomic_file(folder / RECORD / _PART) as target:
        target.write(json.dumps(record, ensure_ascii=False).encode())
    for path in folder.iterdir():
        if _is_ours(path.name) and path.name not in files:
            _remove(path)
    return read_quads(folder).statistics


# --- reading RDF ----------------------------------------------------------------------------------


def _batches(path: Path, packing: str, format: DocumentFormat) -> Iterator[pa.RecordBatch]:
    """Yields the quads of a file; each line or document is checked."""
    scope = of_file(path.absolute().as_uri())
    try:
        with path.open("rb") as raw:
            file: Any = unmarked(UnpackedFile(raw, packing) if packing else raw)
            if format in (N_TRIPLES, N_QUADS):
                yield from _of_lines(path, file, scope, graphs=format == N_QUADS)
            else:
                yield from _of_document(path, file, scope, format)
    except UnicodeDecodeError as error:
        raise QuadsError(f"{path}: {error}", hint=_HINT) from error
    except MemoryError as error:  # of the parser's buffer, not of the machine
        raise QuadsError(
            f"{path}: a term is too long for the parser: {error}", hint=_HINT
        ) from error
    except unpack_errors(SyntaxError, ValueError) as error:
        raise QuadsError(f"{path}: {error}", hint=_HINT) from error


def _of_lines(path: Path, file: Any, scope: str, *, graphs: bool) -> Iterator[pa.RecordBatch]:
    parser = LineParser(formats.N_QUADS if graphs else formats.N_TRIPLES)
    number, rest = 1, b""
    while True:
        block = file.read(_BLOCK)
        if not block:
            break
        block = rest + block
        end = block.rfind(b"\n") + 1
        block, rest = block[:end], block[end:]
        if block:
            yield from _of_block(path, block, number, scope, parser, graphs=graphs)
            number += block.count(b"\n")
    if rest:
        yield from _of_block(path, rest + b"\n", number, scope, parser, graphs=graphs)


def _of_block(
    path: Path, block: bytes, first: int, scope: str, parser: LineParser, *, graphs: bool
) -> Iterator[pa.RecordBatch]:
    """Yields the quads of complete lines; `first` is the number of the first of them."""
    try:
        found = read_lines(block, graphs=graphs)
    except UnicodeDecodeError as error:
        line = first + block.count(b"\n", 0, error.start)
        raise QuadsError(f"{path}: line {line} is not UTF-8: {error.reason}", hint=_HINT) from error
    terms = found.terms
    for place in found.blanks:
        terms[place] = Term(f"_:{scope}{str(terms[place])[2:]}")
    number = first
    for others in found.others:
        if others:
            for line in _LINE.findall(others):
                terms += _of_line(path, line, number, scope, parser)
                number += line.endswith("\n")
        number += 1
    if terms:
        columns = [pa.array(terms[place::4], pa.string()) for place in range(4)]
        yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _of_line(
    path: Path, line: str, number: int, scope: str, parser: LineParser
) -> list[Term | None]:
    """Returns the terms of a line that is not canonical."""
    if _DIRECTIVE.fullmatch(line):
        return []
    try:
        quads = list(parser.parse(line))
    except (SyntaxError, TermError) as error:
        message = error.msg if isinstance(error, SyntaxError) else error.message
        message = re.sub(
            r" at line 1(?= between columns)| line 1(?= column)| \(line 1\)\Z", "", message
        )
        shown = line.rstrip("\r\n")
        shown = shown if len(shown) <= 100 else f"{shown[:100]}…"
        raise QuadsError(f"{path}: line {number}: {message}: {shown}", hint=_HINT) from error
    return [
        None if term is None else map_blanks(term, lambda node: Term(f"_:{scope}{node[2:]}"))
        for quad in quads
        for term in quad
    ]


def _of_document(
    path: Path, file: Any, scope: str, format: DocumentFormat
) -> Iterator[pa.RecordBatch]:
    base, labels = path.absolute().as_uri(), dict[Term, Term]()
    parsed_as = format.parsed_as
    document: Any = file
    if format == RDF_XML:
        document, parsed_as = NTriplesFile(file, base), ox.RdfFormat.N_TRIPLES

    def read(term: Any) -> Term:
        return map_blanks(
            from_pyoxigraph(term),
            lambda node: labels.setdefault(node, Term(f"_:{scope}b{len(labels)}")),
        )

    rows: list[tuple[Term, Term, Term, Term | None]] = []
    try:
        for quad in ox.parse(document, parsed_as, base_iri=base):
            graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else read(quad.graph_name)
            rows.append((read(quad.subject), read(quad.predicate), read(quad.object), graph))
            if len(rows) == _ROWS:
                yield _of_rows(rows)
                rows = []
    except SyntaxError as error:
        located = document.located(error) if isinstance(document, NTriplesFile) else error
        raise QuadsError(f"{path}: {located}", hint=_HINT) from error
    if rows:
        yield _of_rows(rows)


def _of_rows(rows: Sequence[tuple[Term | None, ...]]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

"""Parsing of whole RDF files in Python workers, by pyoxigraph, to Arrow batches of terms; `logs/rdfxml/` first converts
RDF/XML.

For formats whose statements are not lines, and packed files that Spark's text reader cannot unpack. A worker parses a
file at a time and opens nothing: Spark reads the bytes. Blank nodes are numbered in the order of their first occurrence
in a file, so that a task that runs again makes the same labels.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyoxigraph as ox

from construct_messages.errors import QuadsError, TermError, UsageError
from construct_messages.logs.rdfxml import NTriplesFile
from construct_messages.rdf.files.unpacking import (
    COMPRESSIONS,
    UnpackedFile,
    reading_errors,
    unmarked,
)
from construct_messages.rdf.formats.media_types import (
    EXTENSIONS,
    RDF_XML,
    DocumentFormat,
    find_document_format,
    format_of_document,
)
from construct_messages.rdf.labels import of_file
from construct_messages.rdf.terms import Lenience, Term, from_pyoxigraph, map_blanks
from construct_messages.spark.line_numbers import TEXT_SHOWN

QUADS: Final = "subject string, predicate string, object string, graph string"
"""The schema of quads."""

NAMED: Final = f"{QUADS}, file string"
"""The schema of quads with the URL of their file."""

FAILURES: Final = "file string, line bigint, text string, reason string"
"""The schema of malformed files and lines."""

MEND: Final = "mend it, or load with on_error='quarantine', which records the error of each line"
"""The hint of errors about malformed lines."""

_HINT: Final = "fix the file, check its extension, or load with on_error='quarantine'"
_MOST_ROWS: Final = 10_000
_MOST_CHARACTERS: Final = 1 << 24

_VERSION: Final = re.compile(
    rb"""[ \t]*VERSION[ \t]*(?:"[^"\\]*"|'[^'\\]*')[ \t]*(?:#.*)?""", re.DOTALL
)

# the parser is given a line alone, whose number in the file is another
_LINE_1: Final = re.compile(r" at line 1(?= between columns)| line 1(?= column)| \(line 1\)\Z")

Batches = Iterator[pa.RecordBatch]
Row = tuple[Term, Term, Term, Term | None]


class Kind(NamedTuple):
    format: DocumentFormat
    packing: str  # `.gz` and so on, as written; empty where the file is not packed
    suffix: str  # the extensions of the name, as written


def kind_of(file: str, format: str | None = None) -> Kind:
    """Returns format and packing of a file, by its URL, or by an extension or media type that overrides that.

    >>> kind = kind_of("hdfs:///dumps/a.ttl.bz2")
    >>> kind.format.name, kind.packing, kind.suffix
    ('Turtle', '.bz2', '.ttl.bz2')
    """
    path = PurePosixPath(unquote(file))
    packing = path.suffix if path.suffix.lower() in COMPRESSIONS else ""
    extension = PurePosixPath(path.name.removesuffix(packing)).suffix
    if format is not None:
        extension = ""
        known = find_document_format(format)
    else:
        # in a folder of dumps, .txt and .json files are READMEs and lists of checksums
        known = format_of_document(extension[1:].lower(), named=False)
    if known is None:
        raise UsageError(
            f"{file}: the extension {extension or '(none)'!r} is not an RDF format"
            if format is None
            else f"{format!r} is not an RDF format",
            hint=f"end the file's name in one of {EXTENSIONS}, or name one of them by format=",
        )
    return Kind(known, packing, extension + packing)


def quads(
    format: str | None, lenient: bool = False, *, named: bool = False
) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`: from files (`file`, a URL, and `content`, bytes) to quads, if `named` with
    their `file`.
    """

    def parsed(batches: Batches) -> Batches:
        for file, content in _rows(batches):
            found = _quads(file, content, format, lenient)
            yield from _tables((*row, file) for row in found) if named else _tables(found)

    return parsed


def failures(format: str | None, lenient: bool = False) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`: from files to a row for each malformed one, without line and text."""

    def failed(batches: Batches) -> Batches:
        for file, content in _rows(batches):
            try:
                for _ in _quads(file, content, format, lenient):
                    pass
            except QuadsError as error:
                yield _failures([(file, None, None, error.message)])

    return failed


def lines(
    graphs: bool, strict: bool, lenient: bool = False, *, named: bool = False
) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`: from lines (`file` and `text`, bytes) to quads, if `named` with their
    `file`; a malformed line raises if `strict`.
    """

    def statements(batches: Batches) -> Iterator[tuple[str | None, ...]]:
        for file, text in _rows(batches):
            try:
                for row in _line(file, text, graphs, lenient):
                    yield (*row, file) if named else row
            except (SyntaxError, TermError) as error:
                if strict:
                    shown = text.decode("utf-8", "replace")[:TEXT_SHOWN]
                    raise QuadsError(f"{file}: malformed line: {shown}", hint=MEND) from error

    return lambda batches: _tables(statements(batches))


def reasons(
    graphs: bool, lenient: bool = False, *, malformed: bool = True
) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`: from `file`, `line` (a number) and `text` (bytes) to why they are malformed.

    If not all of the lines are `malformed`, well-formed ones are dropped.
    """

    def reason(file: str, line: bytes) -> str | None:
        try:
            list(_line(file, line, graphs, lenient))
        except (SyntaxError, TermError) as error:
            return _LINE_1.sub("", str(error))
        return f"not a line of {'N-Quads' if graphs else 'N-Triples'}" if malformed else None

    def explained(batches: Batches) -> Batches:
        for batch in batches:
            rows = [
                (file, line, text.decode("utf-8", "replace"), why)
                for file, line, text in _rows(iter([batch]))
                if (why := reason(file, text)) is not None
            ]
            if rows:
                yield _failures(rows)

    return explained


def _rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _line(file: str, text: bytes, graphs: bool, lenient: bool) -> Iterator[Row]:
    """Yields the statement of a line, if there is one; labels of blank nodes get the scope of their file."""
    if _VERSION.fullmatch(text):
        return
    scope = of_file(file)
    lenience = Lenience(mends=False) if lenient else None

    def read(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        term_read = from_pyoxigraph(term, lenience=lenience)
        return map_blanks(term_read, lambda blank: Term(f"_:{scope}{blank[2:]}"))

    format = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    for quad in ox.parse(text, format, lenient=lenient):
        graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else read(quad.graph_name)
        yield read(quad.subject), read(quad.predicate), read(quad.object), graph


def _failures(rows: Sequence[tuple[str, int | None, str | None, str]]) -> pa.RecordBatch:
    types = {"file": pa.string(), "line": pa.int64(), "text": pa.string(), "reason": pa.string()}
    columns = zip(zip(*rows, strict=True), types.values(), strict=True)
    return pa.RecordBatch.from_arrays([pa.array(*column) for column in columns], list(types))


def _quads(file: str, content: bytes, format: str | None, lenient: bool) -> Iterator[Row]:
    kind = kind_of(file, format)
    unpacked: Any = io.BytesIO(content)
    if kind.packing:
        unpacked = UnpackedFile(unpacked, kind.packing.lower())
    scope = of_file(file)
    labels: dict[Term, Term] = {}
    lenience = Lenience(mends=False) if lenient else None

    def relabelled(blank: Term) -> Term:
        return labels.setdefault(blank, Term(f"_:{scope}b{len(labels)}"))

    def read(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        return map_blanks(from_pyoxigraph(term, lenience=lenience), relabelled)

    document: Any = unmarked(unpacked)
    format_read = kind.format.parsed_as
    if kind.format == RDF_XML:
        document, format_read = (
            NTriplesFile(document, file, lenient=lenient),
            ox.RdfFormat.N_TRIPLES,
        )
    with reading_errors(file, QuadsError, _HINT):
        try:
            for quad in ox.parse(document, format_read, base_iri=file, lenient=lenient):
                named = not isinstance(quad.graph_name, ox.DefaultGraph)
                graph = read(quad.graph_name) if named else None
                yield read(quad.subject), read(quad.predicate), read(quad.object), graph
        except SyntaxError as error:
            if isinstance(document, NTriplesFile):
                raise document.located(error) from error
            raise


def _tables(rows: Iterator[tuple[str | None, ...]]) -> Batches:
    names = ["subject", "predicate", "object", "graph", "file"]
    held: list[tuple[str | None, ...]] = []
    characters = 0

    def batch() -> pa.RecordBatch:
        columns = [pa.array(column, pa.string()) for column in zip(*held, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names[: len(columns)])

    for row in rows:
        held.append(row)
        characters += sum(map(len, filter(None, row)))
        if len(held) >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
            yield batch()
            held, characters = [], 0
    if held:
        yield batch()

"""Reads RDF documents as quads, for DuckDB and for Spark's workers: lines of N-Triples and N-Quads as batches of Arrow,
by the compiled module, and all other formats by pyoxigraph. Opens no files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyoxigraph as ox
from pyarrow import compute

from construct_messages.errors import TermError
from construct_messages.logs.lines.decoder import LineParser, read_lines
from construct_messages.logs.rdfxml import NTriplesFile
from construct_messages.rdf import compiled, formats
from construct_messages.rdf.formats.media_types import RDF_XML, DocumentFormat
from construct_messages.rdf.terms import Lenience, Term, from_pyoxigraph, map_blanks

SCHEMA: Final = pa.schema(
    [(name, pa.string()) for name in ("subject", "predicate", "object", "graph")]
)
"""The schema of quads."""

Row: TypeAlias = tuple[Term, Term, Term, Term | None]
LineError: TypeAlias = SyntaxError | TermError | UnicodeDecodeError

# of a batch of the quads of a document
_MOST_ROWS: Final = 10_000
_MOST_CHARACTERS: Final = 1 << 24

_MOST_BYTES: Final = 1 << 30
_NO_STATEMENT: Final = "NULL"

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_DIRECTIVE: Final = re.compile(
    r"""[ \t]*(?:VERSION[ \t]*(?:"[^"\\]*"|'[^'\\]*')[ \t]*)?(?:#.*)?[\r\n]*"""
)
# the parser is given a line alone, whose number in the file is another
_LINE_1: Final = re.compile(r" at line 1(?= between columns)| line 1(?= column)| \(line 1\)\Z")


def strings(values: Iterable[str | None]) -> pa.Array:
    """Makes a column of strings. `pyarrow.array` would import pandas, where that is installed: half a second."""
    builder = pa.lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()


def reason_of(error: LineError) -> str:
    """Returns why a line is malformed, without its number.

    >>> reason_of(UnicodeDecodeError("utf-8", b"\\xff", 0, 1, "invalid start byte"))
    'not UTF-8: invalid start byte'
    """
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason}"
    return _LINE_1.sub("", error.msg if isinstance(error, SyntaxError) else error.message)


class Lines:
    """Reads lines of N-Triples or N-Quads: canonical ones as columns, most others as terms, and the rest one by one.

    Args:
        graphs: whether a statement may name a graph (N-Quads).
        lenience: of all lines; None: terms that are not RDF are errors.
        report: gets each line without the statement that it should have, its number, and the error, which it may raise;
            None: lenience leaves it out.
    """

    def __init__(
        self,
        graphs: bool,
        lenience: Lenience | None,
        report: Callable[[int, str, LineError | None], None],
    ) -> None:
        self._graphs, self._report = graphs, report
        self._parser = LineParser(formats.N_QUADS if graphs else formats.N_TRIPLES, lenience)

    def read(self, block: bytes, scope: str, first: int = 1) -> Iterator[pa.RecordBatch]:
        """Yields the quads of complete lines, each with its LF, not in their order.

        Args:
            block: the lines, less than 2 GB.
            scope: begins the labels of blank nodes.
            first: the number of the first line.
        """
        if (wire := compiled.wire) is None:
            others, numbers = block, [*range(block.count(b"\n"))]
        else:
            count, parts, others, numbers = wire.columns(block, self._graphs, scope.encode())
            if count:
                yield _table(count, parts)
        if others:
            terms = self._others(others, [first + number for number in numbers], scope)
            if terms:
                columns = [strings(terms[place::4]) for place in range(4)]
                yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _others(self, lines: bytes, numbers: Sequence[int], scope: str) -> list[Term | None]:
        """Returns the terms of lines with these numbers."""

        def scoped(term: Term | None) -> Term | None:
            return term and map_blanks(term, lambda node: Term(f"_:{scope}{node[2:]}"))

        terms: list[Term | None] = []
        try:
            read = read_lines(lines, graphs=self._graphs, triple_terms=True)
        except UnicodeDecodeError:
            for number, line in zip(numbers, lines.split(b"\n"), strict=False):  # and an empty one
                terms += map(scoped, self._of_bytes(line, number))
            return terms
        terms, place = read.terms, 0
        for blank in read.blanks:
            terms[blank] = scoped(terms[blank])
        for rest in read.others:
            for line in _LINE.findall(rest):
                terms += map(scoped, self._of_line(line, numbers[place]))
                place += line.endswith("\n")
            place += 1  # the statement after them
        return terms

    def _of_bytes(self, line: bytes, number: int) -> Iterator[Term | None]:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            shown = line.decode(errors="replace")
            if not _DIRECTIVE.fullmatch(shown):  # as pyoxigraph skips comments
                self._report(number, shown, error)
            return
        for part in _LINE.findall(text):
            yield from self._of_line(part, number)

    def _of_line(self, line: str, number: int) -> list[Term | None]:
        if _DIRECTIVE.fullmatch(line):
            return []
        error: LineError | None = None
        try:
            if quads := self._parser.parse(line):
                return [term for quad in quads for term in quad]
        except (SyntaxError, TermError) as raised:
            error = raised
        self._report(number, line.rstrip("\r\n"), error)
        return []


def _table(count: int, parts: Sequence[bytes]) -> pa.RecordBatch:
    """Makes quads of what the compiled module returns."""
    *buffers, valid = map(pa.py_buffer, parts)
    columns = [
        pa.StringArray.from_buffers(
            count, *buffers[place : place + 2], valid if place == 6 else None
        )
        for place in range(0, len(buffers), 2)
    ]
    if len(columns) < 4:
        columns.append(pa.nulls(count, pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def suspects(quads: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the quads of a batch with a cell that may be no canonical term, or none for its position: each quad is
    written as a line, from which the compiled module is to read the same cells. It reads no triple terms, for example.
    """
    if (wire := compiled.wire) is None or quads.nbytes > _MOST_BYTES:
        return quads
    columns = [quads.column(name).cast(pa.string()) for name in SCHEMA.names]
    *triple, graph = columns
    ending = compute.coalesce(compute.binary_join_element_wise(graph, ".", " "), ".")
    joined = compute.binary_join_element_wise(*triple, ending, " ")
    # one line for each quad
    joined = compute.if_else(compute.match_substring(joined, "\n"), _NO_STATEMENT, joined)
    block = "".join(f"{line}\n" for line in joined.fill_null(_NO_STATEMENT).to_pylist())
    count, parts, _, others = wire.columns(block.encode(), True, b"")
    odd = compute.is_in(
        pa.array(range(len(quads)), pa.int64()), value_set=pa.array(others, pa.int64())
    )
    read = pa.RecordBatch.from_arrays(columns, schema=SCHEMA).filter(compute.invert(odd))
    # a cell may end in the next one: `"a` and `b"`, for example
    return quads.filter(odd) if not count or read.equals(_table(count, parts)) else quads


def document_rows(
    document: Any,
    format: DocumentFormat,
    url: str,
    scope: str,
    lenience: Lenience | None,
    left_out: Callable[[TermError], None] | None = None,
) -> Iterator[Row]:
    """Yields the quads of an open document; blank nodes are numbered in the order of their first occurrence, so that a
    second reading gives the same labels.

    Args:
        document: its file.
        format: its format.
        url: its address, for relative IRIs.
        scope: begins the labels of blank nodes.
        lenience: None: terms that are not RDF are errors.
        left_out: gets the errors of statements that lenience leaves out.
    """
    labels = dict[Term, Term]()
    lenient, parsed_as = lenience is not None, format.parsed_as
    if format == RDF_XML:
        document, parsed_as = NTriplesFile(document, url, lenient=lenient), ox.RdfFormat.N_TRIPLES

    def read(term: Any) -> Term:
        return map_blanks(
            from_pyoxigraph(term, lenience=lenience),
            lambda node: labels.setdefault(node, Term(f"_:{scope}b{len(labels)}")),
        )

    try:
        for quad in ox.parse(document, parsed_as, base_iri=url, lenient=lenient):
            graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else quad.graph_name
            try:
                row = (read(quad.subject), read(quad.predicate), read(quad.object))
                named = graph and read(graph)
            except TermError as error:
                if lenience is None or left_out is None or not lenience.skips(error):
                    raise
                left_out(error)
            else:
                yield *row, named
    except SyntaxError as error:
        if isinstance(document, NTriplesFile):
            raise document.located(error) from error
        raise


def batches_of(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yields quads in batches of bounded size."""
    held: list[Row] = []
    characters = 0

    def batch() -> pa.RecordBatch:
        columns = list(map(strings, zip(*held, strict=True)))
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    for row in rows:
        held.append(row)
        characters += sum(map(len, filter(None, row)))
        if len(held) >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
            yield batch()
            held, characters = [], 0
    if held:
        yield batch()

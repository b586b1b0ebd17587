"""Reading of RDF in Python workers, to batches of Arrow: lines, and whole files of formats whose statements are not
lines, or that Spark's text reader cannot unpack.

A worker opens nothing: Spark reads the bytes. `sparql/relational/documents` parses them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import compute

from construct_messages.errors import QuadsError
from construct_messages.rdf.files.unpacking import (
    UnpackedFile,
    reading_errors,
    unmarked,
)
from construct_messages.rdf.formats.lookup import document_file
from construct_messages.rdf.labels import of_file
from construct_messages.rdf.terms import Lenience
from construct_messages.spark.line_numbers import TEXT_SHOWN
from construct_messages.sparql.relational.documents import (
    LineError,
    Lines,
    Row,
    batches_of,
    document_rows,
    reason_of,
)

QUADS: Final = "subject string, predicate string, object string, graph string"
"""The schema of quads."""

NAMED: Final = f"{QUADS}, file string"
"""The schema of quads with the URL of their file."""

FAILURES: Final = "file string, line bigint, text string, reason string"
"""The schema of malformed files and lines."""

MEND: Final = "mend it, or load with on_error='quarantine', which records the error of each line"
"""The hint of errors about malformed lines."""

_HINT: Final = "fix the file, check its extension, or load with on_error='quarantine'"
_MOST_BYTES: Final = 1 << 28

Batches = Iterator[pa.RecordBatch]


def quads(
    format: str | None, lenient: bool = False, *, named: bool = False
) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`: from files (`file`, a URL, and `content`, bytes) to quads, if `named` with
    their `file`.
    """

    def parsed(batches: Batches) -> Batches:
        for file, content in _rows(batches):
            for quads in batches_of(_quads(file, content, format, lenient)):
                yield _named(quads, file) if named else quads

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

    def parsed(batches: Batches) -> Batches:
        file = ""

        def report(_: int, line: str, error: LineError | None) -> None:
            if strict and error is not None:
                shown = line[:TEXT_SHOWN]
                raise QuadsError(f"{file}: malformed line: {shown}", hint=MEND) from error

        reader = Lines(graphs, _lenience(lenient), report)
        for batch in batches:
            for file, first, block in _blocks(batch):
                for quads in reader.read(block, of_file(file), first):
                    yield _named(quads, file) if named else quads

    return parsed


def reasons(graphs: bool, lenient: bool = False) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`: from `file`, `text` (bytes) and `line` (a number) to the malformed lines,
    with why they are.
    """

    def explained(batches: Batches) -> Batches:
        found: list[tuple[int, str, str]] = []

        def report(number: int, line: str, error: LineError | None) -> None:
            if error is not None:
                found.append((number, line, reason_of(error)))

        reader = Lines(graphs, _lenience(lenient), report)
        for batch in batches:
            for file, first, block in _blocks(batch):
                for _ in reader.read(block, of_file(file), first):
                    pass
                if found:
                    numbers = batch.column("line")
                    yield _failures(
                        [(file, numbers[row].as_py(), line, why) for row, line, why in found]
                    )
                    found.clear()

    return explained


def _lenience(lenient: bool) -> Lenience | None:
    return Lenience(mends=False) if lenient else None


def _named(quads: pa.RecordBatch, file: str) -> pa.RecordBatch:
    return quads.append_column("file", pa.repeat(pa.scalar(file, pa.string()), len(quads)))


def _blocks(batch: pa.RecordBatch) -> Iterator[tuple[str, int, bytes]]:
    """Yields the lines of each file in a batch of `file` and `text`, with the index of the first of them."""
    files = compute.run_end_encode(batch.column("file"))
    first = 0
    for file, end in zip(files.values.to_pylist(), files.run_ends.to_pylist(), strict=True):
        while first < end:
            text = batch.column("text").slice(first, end - first)
            while text.nbytes > _MOST_BYTES and len(text) > 1:
                text = text.slice(0, len(text) // 2)
            ended = compute.binary_join_element_wise(text, b"", b"\n")
            size = compute.sum(compute.binary_length(ended)).as_py()
            yield file, first, bytes(memoryview(ended.buffers()[2])[:size])
            first += len(text)


def _rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _failures(rows: Sequence[tuple[str, int | None, str | None, str]]) -> pa.RecordBatch:
    types = {"file": pa.string(), "line": pa.int64(), "text": pa.string(), "reason": pa.string()}
    columns = zip(zip(*rows, strict=True), types.values(), strict=True)
    return pa.RecordBatch.from_arrays([pa.array(*column) for column in columns], list(types))


def _quads(file: str, content: bytes, format: str | None, lenient: bool) -> Iterator[Row]:
    kind = document_file(unquote(file), format)
    unpacked: Any = io.BytesIO(content)
    if kind.packing:
        unpacked = UnpackedFile(unpacked, kind.packing.lower())
    document: Any = unmarked(unpacked)
    with reading_errors(file, QuadsError, _HINT):
        yield from document_rows(document, kind.format, file, of_file(file), _lenience(lenient))

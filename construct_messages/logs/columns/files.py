"""Writes record batches as the bytes of a file: Parquet, the file format of Arrow's IPC, and CSV.

Parquet: https://parquet.apache.org/docs/file-format/. Arrow: https://arrow.apache.org/docs/format/Columnar.html.
CSV: RFC 4180, with a header line, and lines that end in CRLF. No messages and no solutions here.
"""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any, Protocol

from construct_messages.logs.columns.arrow import arrow
from construct_messages.rdf.formats import CSV, PARQUET, Format


class BatchWriter(Protocol):
    """Writes one file; bytes that it has not returned yet follow later."""

    def write(self, batch: Any) -> bytes:
        """Returns the bytes that a record batch adds; the first one determines the schema."""
        ...

    def finish(self) -> bytes:
        """Returns the bytes that end the file."""
        ...


def writer_for(format: Format) -> BatchWriter:
    """Returns a writer of a format."""
    return _Csv() if format is CSV else _Binary(format)


class _Sink:
    """A file whose bytes are taken while they are written."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def flush(self) -> None:
        """Does nothing: no bytes are held back."""

    def close(self) -> None:
        """Does nothing: bytes that were not taken yet stay."""

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


class _Binary:
    """Writes Parquet, each record batch as a row group, or Arrow."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._sink = _Sink()
        self._writer: Any = None

    def write(self, batch: Any) -> bytes:
        if self._writer is None:
            file = arrow().PythonFile(self._sink, mode="w")
            self._writer = (
                arrow("parquet").ParquetWriter(file, batch.schema, compression="zstd")
                if self._format is PARQUET
                else arrow("ipc").new_file(file, batch.schema)
            )
        self._writer.write_batch(batch)
        return self._sink.take()

    def finish(self) -> bytes:
        assert self._writer is not None  # at least a batch without rows is written
        self._writer.close()
        return self._sink.take()


class _Csv:
    """Writes CSV; null is an empty field, as in the SPARQL 1.1 Query Results CSV format."""

    def __init__(self) -> None:
        self._is_begun = False

    def write(self, batch: Any) -> bytes:
        text = StringIO(newline="")
        writer = csv.writer(text)
        if not self._is_begun:
            writer.writerow(batch.schema.names)
            self._is_begun = True
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        return text.getvalue().encode()

    def finish(self) -> bytes:
        return b""

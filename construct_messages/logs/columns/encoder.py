"""Writes messages, or the solutions of a query, to a file of Parquet, Arrow or CSV."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any, Protocol

from construct_messages.errors import UsageError
from construct_messages.logs import EncoderOptions
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.quads import MessageRows
from construct_messages.logs.columns.solutions import SolutionRows, no_solutions, other_solutions
from construct_messages.logs.columns.types import arrow
from construct_messages.logs.text_encoder import EncodedMessages
from construct_messages.rdf.formats import CSV, PARQUET, Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template

# --- files ----------------------------------------------------------------------------------------
# Writes record batches as the bytes of a file: Parquet, the file format of Arrow's IPC, and CSV.
#
# Parquet: https://parquet.apache.org/docs/file-format/. Arrow: https://arrow.apache.org/docs/format/Columnar.html.
# CSV: RFC 4180, with a header line, and lines that end in CRLF. No messages and no solutions here.


class BatchWriter(Protocol):
    """Writes one file; bytes that it has not returned yet follow later."""

    def write(self, batch: Any) -> bytes:
        """Returns the bytes that a record batch adds; the first one determines the schema."""
        ...

    def finish(self) -> bytes:
        """Returns the bytes that end the file."""
        ...


def writer_for(format: Format) -> BatchWriter:
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


# --- encoder --------------------------------------------------------------------------------------


class ColumnsEncoder:
    """Writes a file of columns, one row group at a time; see `Encoder`.

    >>> from construct_messages.logs.columns.options import ColumnOptions
    >>> encoder = ColumnsEncoder(CSV, CSV.own, EncoderOptions(own=ColumnOptions(raw=True)))
    >>> encoder.encode(Message()), encoder.finish()
    (b'', b'message,subject,predicate,object,graph\\r\\n1,,,,\\r\\n')
    """

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        own = options.own if isinstance(options.own, ColumnOptions) else ColumnOptions()
        layout = own.layout or ("solutions" if options.template is not None else "quads")
        if format is CSV:
            _check_csv(layout, own)
        self._format, self._syntax, self._options = format, syntax, options
        self._writer = writer_for(format)
        self._solutions: SolutionRows | None = None
        self._messages: MessageRows | None = None
        if layout == "solutions":
            if options.template is None:
                raise no_solutions()
            if options.group_by is not None:
                raise other_solutions()
            self._solutions = SolutionRows(
                options.template.variables, own, options.origin, typed=format is not CSV
            )
        else:
            self._messages = MessageRows(
                ColumnOptions(layout, own.raw, batch_rows=own.batch_rows), options.origin
            )

    def start(self) -> bytes:
        """Returns nothing: a file begins with its first batch."""
        return b""

    def encode(self, message: Message) -> bytes:
        """Returns the bytes of the row groups that a message completes."""
        if self._messages is None:
            raise other_solutions()
        return self._write(self._messages.add(message))

    def encode_document(self, message: Message) -> bytes:
        encoder = ColumnsEncoder(self._format, self._syntax, self._options)
        return encoder.encode(message) + encoder.finish()

    def finish(self) -> bytes:
        """Returns the last row group, and the end of the file."""
        rows = self._solutions or self._messages
        assert rows is not None
        return self._write(rows.finish()) + self._writer.finish()

    def for_template(self, template: Template) -> _ByTemplate:
        return _ByTemplate(self, template)

    def encode_solutions(self, template: Template, solutions: Solutions, first: int) -> bytes:
        """Returns the bytes of the row groups that solutions complete."""
        if self._solutions is not None:
            return self._write(self._solutions.add(solutions))
        assert self._messages is not None
        return self._write(self._messages.add_solutions(template, solutions, first))

    def _write(self, batches: list[Any]) -> bytes:
        return b"".join(map(self._writer.write, batches))


class _ByTemplate:
    def __init__(self, encoder: ColumnsEncoder, template: Template) -> None:
        self._encoder, self._template = encoder, template

    def encode(self, solutions: Solutions, first: int) -> EncodedMessages:
        """Encodes a batch as one piece, because messages do not have separate bytes."""
        return EncodedMessages([self._encoder.encode_solutions(self._template, solutions, first)])


def _check_csv(layout: str, options: ColumnOptions) -> None:
    if layout == "nested":
        raise UsageError(
            "CSV has no lists, which the layout nested needs", hint="choose quads, or write Parquet"
        )
    if options.types:
        raise UsageError(
            "CSV has no types, and types of columns are given",
            hint="leave them out, or write Parquet",
        )

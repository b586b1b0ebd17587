"""Writes messages, or the solutions of a query, to a file of Parquet, Arrow or CSV."""

from __future__ import annotations

from typing import Any

from construct_messages.logs import EncoderOptions
from construct_messages.logs.columns.files import writer_for
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.quads import MessageRows
from construct_messages.logs.columns.solutions import SolutionRows, no_solutions, other_solutions
from construct_messages.logs.encoded import EncodedMessages
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats import CSV, Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template


class ColumnsEncoder:
    """Writes a file of columns, one row group at a time; see `Encoder`.

    Args:
        format: Parquet, Arrow or CSV.
        syntax: the format's own.
        options: see `EncoderOptions`.

    Raises:
        UsageError: a layout that is not possible here, or options of another format.

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
        """Returns the bytes of the row groups that a message completes.

        Raises:
            UsageError: the rows are solutions.
        """
        if self._messages is None:
            raise other_solutions()
        return self._write(self._messages.add(message))

    def encode_document(self, message: Message) -> bytes:
        """Returns a file of one message; see `Encoder.encode_document`.

        Raises:
            UsageError: the rows are solutions.
        """
        encoder = ColumnsEncoder(self._format, self._syntax, self._options)
        return encoder.encode(message) + encoder.finish()

    def finish(self) -> bytes:
        """Returns the last row group, and the end of the file.

        Raises:
            ColumnError: a value that does not fit into its column.
        """
        rows = self._solutions or self._messages
        assert rows is not None
        return self._write(rows.finish()) + self._writer.finish()

    def for_template(self, template: Template) -> _ByTemplate:
        """Returns the encoder of batches of solutions; see `Encoder.for_template`."""
        return _ByTemplate(self, template)

    def encode_solutions(self, template: Template, solutions: Solutions, first: int) -> bytes:
        """Returns the bytes of the row groups that solutions complete.

        Raises:
            ColumnError: a value that does not fit into its column.
        """
        if self._solutions is not None:
            return self._write(self._solutions.add(solutions))
        assert self._messages is not None
        return self._write(self._messages.add_solutions(template, solutions, first))

    def _write(self, batches: list[Any]) -> bytes:
        return b"".join(map(self._writer.write, batches))


class _ByTemplate:
    """Encodes batches of a template's solutions; see `TemplateEncoder`.

    Args:
        encoder: the encoder of the file.
        template: the template of the solutions.
    """

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

"""Reads messages from files of Parquet and Arrow, in the layouts `quads` and `nested`, with terms as values or
N-Triples.

The columns decide the layout, so files that other programs have written or changed are read as well. Such files are
read from their end, so their bytes are kept in a temporary file until it is complete.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from construct_messages.errors import LimitExceeded, LogError, TermError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.columns.options import BATCH_ROWS, ColumnOptions
from construct_messages.logs.columns.quads import NUMBER, QUADS, SPLIT, WHOLE
from construct_messages.logs.columns.types import arrow
from construct_messages.rdf.files.output import spooled_file
from construct_messages.rdf.formats import PARQUET, Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    RDF,
    XSD,
    Term,
    blank,
    iri,
    literal,
    parse_term,
    triple,
)

_MOST_KNOWN: Final = 1 << 16
_LAYOUT_HINT: Final = (
    f"name the columns {', '.join((NUMBER, *SPLIT))}; "
    f"or {', '.join((NUMBER, *WHOLE))}, with terms as N-Triples"
)

_Row: TypeAlias = tuple[str | None, ...]


class ColumnsDecoder:
    def __init__(self, format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self._format, self.syntax = format, syntax
        self._decoding = options
        self._labels = options.labels or Labels()
        self._file = spooled_file()
        # the layout of the file; None: it was not read yet
        self.options: ColumnOptions | None = None
        self._number = self._last = 0
        self._known: dict[_Row | str, Term] = {}

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Always None: columns have no prefixes."""
        return MappingProxyType({})

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns nothing: a file is read when it is complete."""
        self._file.write(data)
        return iter(())

    def close(self) -> Generator[Message]:
        """Yields the messages of the file."""
        with self._file:
            self._file.seek(0)
            for number, rows in self._grouped():
                yield self._message(number, rows)

    # --- rows -------------------------------------------------------------------------------------------------------

    def _grouped(self) -> Iterator[tuple[int, list[_Row]]]:
        """Yields the number and the quads of each message."""
        held: tuple[int, list[_Row]] | None = None
        for batch in self._batches():
            numbers = batch.column(0).to_pylist()
            if self.options is not None and self.options.layout == "nested":
                for number, quads in zip(numbers, batch.column(1).to_pylist(), strict=True):
                    self._begin(number)
                    if quads is not None and None in quads:
                        raise self._error("a quad is null", "leave it out")
                    rows = [tuple(quad.values()) for quad in quads or ()]
                    self._bound(rows)
                    yield number, rows
                continue
            columns = [column.to_pylist() for column in batch.columns[1:]]
            rows_ = zip(numbers, zip(*columns, strict=True), strict=True)
            for number, group in groupby(rows_, itemgetter(0)):
                rows = [row for _, row in group]
                if held is not None and held[0] == number:
                    held[1].extend(rows)
                    self._bound(held[1])
                    continue
                if held is not None:
                    yield held
                self._begin(number)
                self._bound(rows)
                held = number, rows
        if held is not None:
            yield held

    def _begin(self, number: int | None) -> None:
        """Counts a message, whose number must be larger than the previous one."""
        self._number += 1
        if number is None or number < 1:
            raise self._error(
                f"{NUMBER} is {'null' if number is None else number}", "number the messages from 1"
            )
        if number <= self._last:
            raise self._error(
                f"{NUMBER} {number} comes after {self._last}", f"sort the rows by {NUMBER}"
            )
        self._last = number

    def _batches(self) -> Iterator[Any]:
        """Yields the record batches, with the columns in order."""
        pa = arrow()
        try:
            if self._format is PARQUET:
                file = arrow("parquet").ParquetFile(self._file)
                names = self._names(file.schema_arrow)
                batches = file.iter_batches(BATCH_ROWS, columns=names)
            else:
                batches = self._of_arrow(arrow("ipc"))
            for batch in batches:
                yield batch.select(self._names(batch.schema))
        except (pa.ArrowException, OSError) as error:
            raise self._error(
                f"no {self._format.name} file: {error}", "get the file again"
            ) from error

    def _of_arrow(self, ipc: Any) -> Iterator[Any]:
        is_file = self._file.read(6) == b"ARROW1"
        self._file.seek(0)
        if not is_file:
            yield from ipc.open_stream(self._file)
            return
        reader = ipc.open_file(self._file)
        self._names(reader.schema)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)

    def _names(self, schema: Any) -> list[str]:
        """Returns the columns to read, which decide the layout."""
        pa = arrow()
        names = set(schema.names)
        layout, parts = "quads", names
        if {NUMBER, QUADS} <= names:
            layout, type = "nested", schema.field(QUADS).type
            is_list = pa.types.is_list(type) or pa.types.is_large_list(type)
            fields = (
                tuple(
                    type.value_type.field(place).name for place in range(type.value_type.num_fields)
                )
                if is_list and pa.types.is_struct(type.value_type)
                else ()
            )
            parts = set(fields) if fields in (SPLIT, WHOLE) else set()
        raw = not parts >= set(SPLIT)
        if NUMBER not in names or not parts >= set(WHOLE):
            raise self._error(
                f"no messages: the columns are {', '.join(schema.names) or 'none'}", _LAYOUT_HINT
            )
        if not pa.types.is_integer(schema.field(NUMBER).type):
            raise self._error(
                f"{NUMBER} is {schema.field(NUMBER).type}, not an integer",
                "number the messages from 1, as int64",
            )
        self.options = ColumnOptions.of({"layout": layout, "raw": raw})
        if layout == "nested":
            return [NUMBER, QUADS]
        return [NUMBER, *(WHOLE if raw else SPLIT)]

    # --- terms ------------------------------------------------------------------------------------------------------

    def _message(self, number: int, rows: Sequence[_Row]) -> Message:
        assert self.options is not None
        read = self._whole if self.options.raw else self._split
        shared = self._decoding.shared_labels is not False
        rename = self._labels.in_log if shared else self._labels.in_message(number).__getitem__
        quads = []
        for row in rows:
            if not any(row):
                continue  # the row of a message without quads
            try:
                quad = read(row)
            except TermError as error:
                raise self._error(error.message, error.hint) from error
            quads.append(quad)
        message = Message(quads)
        return message.map_blanks(rename)

    def _whole(self, row: _Row) -> Quad:
        return self._quad(*(self._term(part, parse_term) for part in row))

    def _split(self, row: _Row) -> Quad:
        subject, predicate, value, datatype, language, graph = row
        return self._quad(
            self._term(subject, self._resource),
            self._term(predicate, self._resource),
            self._object(value, datatype, language),
            self._term(graph, self._resource),
        )

    def _quad(
        self, subject: Term | None, predicate: Term | None, object: Term | None, graph: Term | None
    ) -> Quad:
        for name, term in (("subject", subject), ("predicate", predicate), ("object", object)):
            if term is None:
                raise TermError(f"the {name} of a quad is null")
        assert subject is not None
        assert predicate is not None
        assert object is not None
        triple(subject, predicate, object)  # checks the term
        if graph is not None and graph.startswith(('"', "<<(")):
            raise TermError(f"{graph} cannot be the name of a graph")
        return Quad(subject, predicate, object, graph)

    def _term(self, value: Any, read: Any) -> Term | None:
        if value is None:
            return None
        known = self._known.get(value)
        if known is None:
            if not isinstance(value, str):
                raise TermError(f"{value!r} is no text", hint=_LAYOUT_HINT)
            known = read(value, lenience=self._decoding.lenience)
            if len(self._known) < _MOST_KNOWN:
                self._known[value] = known
        return known

    def _resource(self, value: str, lenience: Any) -> Term:
        if value.startswith("_:"):
            return blank(value[2:])
        return iri(value, lenience=lenience)

    def _object(self, value: str | None, datatype: str | None, language: str | None) -> Term | None:
        if value is None or (datatype is None and language is None and not value.startswith("<<(")):
            return self._term(value, self._resource)
        if datatype is None and language is None:
            return parse_term(value, lenience=self._decoding.lenience)
        if language is None and datatype == f"{XSD}string":
            return literal(value)
        tag, _, direction = (language or "").partition("--")
        if language is not None and datatype not in (
            None,
            f"{RDF}langString",
            f"{RDF}dirLangString",
        ):
            raise TermError(f"{value!r} has the language {language}, and the datatype <{datatype}>")
        return literal(
            value,
            datatype=None if language else datatype,
            language=tag or None,
            direction=direction or None,
            lenience=self._decoding.lenience,
        )

    def _bound(self, rows: Sequence[_Row]) -> None:
        most = self._decoding.message_bytes
        if sum(len(part) for row in rows for part in row if isinstance(part, str)) > most:
            raise LimitExceeded(
                f"message {self._number} has more than {most} characters",
                hint="allow larger messages",
            )

    def _error(self, message: str, hint: str | None) -> LogError:
        return LogError(message, number=max(self._number, 1), hint=hint)

"""Converts messages to record batches: a row for each quad with the number of its message, or a row for each message.

Solutions of a template are converted by column if each of them has a quad for every pattern; else by message, to the
same rows (tests/logs/columns/test_quads.py). A message is never in two batches, and a message without quads is a row of
nulls, or an empty list. No files here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

from construct_messages.logs.columns.arrow import arrow, joined
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.solutions import MOST_BYTES, metadata
from construct_messages.logs.columns.woven import WovenColumns, columns_of, rows_repeated
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template

NUMBER: Final = "message"
QUADS: Final = "quads"
SPLIT: Final = ("subject", "predicate", "object", "datatype", "language", "graph")
"""The parts of a quad whose terms are values; `datatype` is null for objects that are not literals."""
WHOLE: Final = ("subject", "predicate", "object", "graph")
"""The parts of a quad whose terms are N-Triples."""
_SAMPLE: Final = 8
"""One in this number of the terms of solutions is measured: the limit need not be exact."""


def schema(layout: str, raw: bool, origin: Mapping[str, str]) -> Any:
    """Returns the schema of a layout; see `metadata`.

    >>> schema("quads", True, {}).names
    ['message', 'subject', 'predicate', 'object', 'graph']
    """
    pa = arrow()
    parts = [pa.field(name, pa.string()) for name in (WHOLE if raw else SPLIT)]
    number = pa.field(NUMBER, pa.int64(), nullable=False)
    if layout == "nested":
        quad = pa.struct(parts)
        fields = [number, pa.field(QUADS, pa.list_(pa.field("item", quad, nullable=False)))]
    else:
        fields = [number, *parts]
    return pa.schema(fields, metadata=metadata(layout, raw, origin))


class MessageRows:
    """Messages as rows.

    Args:
        options: see `ColumnOptions`; its layout is `"nested"`, or the rows are quads.
        origin: see `metadata`.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import Term
    >>> rows = MessageRows(ColumnOptions("nested", raw=True), {})
    >>> rows.add(Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'))]))
    []
    >>> [batch.to_pylist() for batch in rows.finish()]
    [[{'message': 1, 'quads': [{'subject': '<urn:s>', 'predicate': '<urn:p>', 'object': '"o"', 'graph': None}]}]]
    """

    def __init__(self, options: ColumnOptions, origin: Mapping[str, str]) -> None:
        self._nested, self._raw = options.layout == "nested", options.raw
        self._schema = schema("nested" if self._nested else "quads", self._raw, origin)
        self._most_rows = options.batch_rows
        self._pieces: list[_Piece] = []
        # messages that are in no piece yet: their terms as one sequence, and the number of quads of each
        self._terms: list[str | None] = []
        self._sizes: list[int] = []
        self._rows = self._bytes = self._count = 0
        self._is_empty = True
        # solutions of a template that are in no piece yet, and the number of those before them
        self._woven: WovenColumns | None = None
        self._waiting: list[Solutions] = []
        self._first = 0

    def add(self, message: Message) -> list[Any]:
        """Returns the record batches that a further message completes."""
        self._weave()
        before = len(self._terms)
        self._rows += self._hold(message) or 1
        self._bytes += sum([len(term) for term in self._terms[before:] if term])
        return self._full()

    def _hold(self, message: Message) -> int:
        """Adds the terms of a message, and returns the number of its quads."""
        before = len(self._terms)
        for statement in message.statements:
            self._terms += statement
        self._sizes.append((len(self._terms) - before) // 4)
        return self._sizes[-1]

    def add_solutions(self, template: Template, solutions: Solutions, first: int) -> list[Any]:
        """Returns the record batches that the messages of further solutions complete.

        Args:
            template: instantiates each solution to a message.
            solutions: their columns are the template's variables.
            first: the number of solutions before them.
        """
        if not template.is_regular:
            return self._add_each(template, solutions, first)
        if self._woven is None or self._woven.template is not template:
            self._weave()
            self._woven = WovenColumns(template, self._raw)
        if not self._waiting:
            self._settle()
            self._first = first
        if len(solutions):
            self._waiting.append(solutions)
            self._rows += len(solutions) * len(template.compiled.rows)
            sampled = [sum(map(len, column[::_SAMPLE])) for column in solutions.utf8]
            self._bytes += _SAMPLE * sum(sampled)
        return self._full()

    def _add_each(self, template: Template, solutions: Solutions, first: int) -> list[Any]:
        batches = []
        for quads in template.instantiate_all(solutions.text, first) if len(solutions) else ():
            batches += self.add(Message(quads))
        return batches

    def finish(self) -> list[Any]:
        """Returns the last record batch, which is empty without messages."""
        return [self._batch()] if self._rows or self._is_empty else []

    def _full(self) -> list[Any]:
        if self._rows < self._most_rows and self._bytes < MOST_BYTES:
            return []
        return [self._batch()]

    def _weave(self) -> None:
        """Makes pieces of the remaining solutions."""
        waiting, self._waiting = self._waiting, []
        first = self._first
        if not waiting:
            return
        assert self._woven is not None
        parts = [waiting]
        if (columns := self._woven.columns(waiting, first)) is None:
            parts = [[solutions] for solutions in waiting]  # some of them may have all quads
        for part in parts:
            count = sum(map(len, part))
            if columns is None:
                columns = self._woven.columns(part, first) if len(parts) > 1 else None
            if columns is not None:
                self._settle()
                self._pieces.append(_Piece([len(columns[0]) // count] * count, columns))
            else:
                for quads in self._woven.template.instantiate_all(part[0].text, first):
                    self._hold(Message(quads))
            columns, first = None, first + count

    def _settle(self) -> None:
        """Makes a piece of the remaining messages."""
        if self._sizes:
            columns = columns_of([self._terms[place::4] for place in range(4)], self._raw)
            self._pieces.append(_Piece(self._sizes, columns))
            self._terms, self._sizes = [], []

    def _batch(self) -> Any:
        self._weave()
        self._settle()
        pieces, self._pieces = self._pieces, []
        self._rows = self._bytes = 0
        self._is_empty = False
        pa = arrow()
        names = WHOLE if self._raw else SPLIT
        columns = [
            joined([piece.columns[place] for piece in pieces]) for place in range(len(names))
        ]
        sizes = list(chain.from_iterable(piece.sizes for piece in pieces))
        first, self._count = self._count + 1, self._count + len(sizes)
        numbers = range(first, first + len(sizes))
        if self._nested:
            item = self._schema.field(QUADS).type.value_type
            quads = pa.StructArray.from_arrays(columns, fields=list(item))
            ends = arrow("compute").cumulative_sum(pa.array(sizes, pa.int32()))
            offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
            lists = pa.ListArray.from_arrays(offsets, quads, type=self._schema.field(QUADS).type)
            arrays = [_repeated(numbers, [1] * len(sizes)), lists]
        else:
            if 0 in sizes:
                places = pa.array(list(chain.from_iterable(_places(sizes))), pa.int64())
                columns = [column.take(places) for column in columns]
            arrays = [_repeated(numbers, sizes), *columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Piece:
    """The parts of the quads of some messages.

    Args:
        sizes: the number of quads of each message.
        columns: the parts.
    """

    def __init__(self, sizes: Sequence[int], columns: list[Any]) -> None:
        self.sizes, self.columns = sizes, columns


def _places(sizes: Sequence[int]) -> Iterable[Sequence[int | None]]:
    """The places of the quads of each message; None for a message without."""
    place = 0
    for size in sizes:
        yield range(place, place + size) if size else (None,)
        place += size


def _repeated(numbers: range, sizes: Sequence[int]) -> Any:
    """Repeats each number for each row of its message."""
    pa = arrow()
    if sizes and min(sizes) == max(sizes) and sizes[0]:
        return arrow("compute").add(rows_repeated(len(sizes), sizes[0]), numbers.start)
    rows = (repeat(number, size or 1) for number, size in zip(numbers, sizes, strict=True))
    return pa.array(list(chain.from_iterable(rows)), pa.int64())

"""Converts messages to record batches: a row for each quad with the number of its message, or a row for each message.

Solutions of a template are converted by column if each of them has a quad for every pattern; else by message, to the
same rows (tests/logs/columns/test_quads.py). A message is never in two batches, and a message without quads is a row of
nulls, or an empty list. No files here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any, Final

from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.solutions import MOST_BYTES, metadata
from construct_messages.logs.columns.types import arrow, characters, joined, term_array
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template

# --- woven ----------------------------------------------------------------------------------------
# The parts of quads as columns: of any quads, and of the solutions of a template, without its messages.
#
# The quads of a solution follow each other: each column of a part is woven from those of the template's variables,
# blank nodes and constants. The places of the parts in the columns are the same in every batch of a size, and are
# cached.

_OBJECT: Final = 2


def columns_of(terms: Sequence[Sequence[str | None]], raw: bool) -> list[Any]:
    """Returns the columns of quads, of their subjects, predicates, objects and graphs. `terms`: one sequence for each
    part; None: the default graph. `raw`: whether terms are N-Triples; else objects have columns of datatypes and of
    languages, too.
    """
    pa = arrow()
    if raw:
        return [pa.array(column, pa.string()) for column in terms]
    return [
        column
        for position, part in enumerate(terms)
        for column in _parts(pa.array(part, pa.string()), raw, position)
    ]


def _parts(terms: Any, raw: bool, position: int) -> list[Any]:
    """The columns of an array of terms at one position of quads."""
    pa = arrow()
    if raw:
        return [terms]
    column = characters(terms)
    if position != _OBJECT:
        return [column.array]
    kind = column.kind
    if kind is not None and not column.array.null_count:
        return [
            column.array,
            *(
                pa.nulls(len(terms), pa.string()) if part is None else pa.repeat(part, len(terms))
                for part in (kind.datatype, kind.language)
            ),
        ]
    return [
        column.array,
        pa.array([each and each.datatype for each in column.kinds], pa.string()),
        pa.array([each and each.language for each in column.kinds], pa.string()),
    ]


class WovenColumns:
    """The columns of quads of batches of solutions."""

    def __init__(self, template: Template, raw: bool) -> None:
        self.template, self._raw = template, raw
        self._variable = len(template.variables)
        self._constants = [
            term_array([constant.encode()]) for constant in template.compiled.constants
        ]
        self._positions = list(zip(*(row[:4] for row in template.compiled.rows), strict=True))
        self._count = 0
        # of a batch of `count` solutions: the solution of each quad, from 0; by position, places in the columns, and
        # columns of constants only
        self._rows: Any = None
        self._places: dict[int, Any] = {}
        self._fixed: dict[int, list[Any]] = {}

    def columns(self, batches: Sequence[Solutions], first: int) -> list[Any] | None:
        """Returns the columns of consecutive batches; None: some solution lacks a quad. `batches`: their columns are
        the template's variables, and the template is regular.
        """
        variables = self._variables(batches)
        if variables is None:
            return None
        count = sum(map(len, batches))
        if count != self._count:
            self._count, self._rows = count, rows_repeated(count, len(self.template.compiled.rows))
            self._places, self._fixed = {}, {}
        numbers = range(first, first + count)
        slots: list[Any] = [*variables, *self._constants]
        for index in range(self.template.compiled.blanks):
            labels = self.template.labels
            slots.append(
                term_array([labels.of_template(number, index).encode() for number in numbers])
            )
        return [
            column
            for position, indexes in enumerate(self._positions)
            for column in self._woven(slots, position, indexes)
        ]

    def _variables(self, batches: Sequence[Solutions]) -> list[Any] | None:
        """The terms of variables; None: one is unbound, or where RDF does not allow it."""
        compute = arrow("compute")
        rows = self.template.compiled.rows
        used = {slot for row in rows for slot in row[:4] if slot is not None}
        arrays = [
            term_array(list(chain.from_iterable(solutions.utf8[place] for solutions in batches)))
            if place in used
            else None
            for place in range(self._variable)
        ]
        if any(array is not None and array.null_count for array in arrays):
            return None
        checks = {check for row in rows for check in row.checks}
        if any(
            compute.any(compute.starts_with(arrays[index], beginning)).as_py()
            for index, beginnings in checks
            for beginning in beginnings
        ):
            return None
        return arrays

    def _woven(
        self, slots: Sequence[Any], position: int, indexes: Sequence[int | None]
    ) -> list[Any]:
        """The columns at one position. `slots`: the terms that patterns name by index: one for each solution, or one
        for all. `indexes`: of the patterns; None: the default graph.
        """
        if position in self._fixed:
            return self._fixed[position]
        pa = arrow()
        used = list(dict.fromkeys(index for index in indexes if index is not None))
        if not used:
            found = [pa.nulls(self._count * len(indexes), pa.string())]
        else:
            parts = [_parts(slots[index], self._raw, position) for index in used]
            places = self._places.get(position)
            if places is None:
                places = self._places[position] = self._placed(slots, used, indexes)
            found = [joined(column).take(places) for column in zip(*parts, strict=True)]
        if all(self._is_constant(index) for index in used):
            self._fixed[position] = found
        return found

    def _is_constant(self, index: int) -> bool:
        return 0 <= index - self._variable < len(self._constants)

    def _placed(
        self, slots: Sequence[Any], used: Sequence[int], indexes: Sequence[int | None]
    ) -> Any:
        """The place of each part in the columns that are used, one after the other."""
        pa, compute = arrow(), arrow("compute")
        ends = accumulate([len(slots[index]) for index in used], initial=0)
        starts = dict(zip(used, ends, strict=False))  # the last one starts nothing
        begins = [0 if index is None else starts[index] for index in indexes]
        steps = [0 if index is None or self._is_constant(index) else 1 for index in indexes]
        taken = compute.multiply(self._rows, _tiled(steps, self._count))
        taken = compute.add(taken, _tiled(begins, self._count))
        if None in indexes:
            named_graphs = pa.array([index is not None for index in indexes] * self._count)
            taken = compute.if_else(named_graphs, taken, None)
        return taken


def rows_repeated(count: int, width: int) -> Any:
    """Returns the numbers of rows from 0, each `width` times.

    >>> rows_repeated(2, 3).to_pylist()
    [0, 0, 0, 1, 1, 1]
    """
    pa, compute = arrow(), arrow("compute")
    places = compute.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count * width), start=-1)
    return compute.divide(places, width)


def _tiled(values: Sequence[int], count: int) -> Any:
    """All values, one after the other, `count` times."""
    pa = arrow()
    tiled = array("q", values) * count
    return pa.Array.from_buffers(pa.int64(), len(tiled), [None, pa.py_buffer(tiled)])


# --- quads ----------------------------------------------------------------------------------------

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
        """Returns the record batches that the messages of further solutions complete."""
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
    """The parts of the quads of some messages."""

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

"""Reads the rows of Jelly frames, and returns the message of each frame.

Jelly 1.1, serialization: RdfStreamFrame and RdfStreamRow of rdf.proto. `reader.py` reads terms; `decoder.py` adds the
position of a frame in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from construct_messages.logs.jelly.options import JellyOptions, PhysicalType
from construct_messages.logs.jelly.reader import POSITIONS, UNSET, Fields, TermReader
from construct_messages.logs.jelly.tables import JOINED
from construct_messages.logs.jelly.wire import (
    LENGTH_DELIMITED,
    Malformed,
    fields,
    read_field,
    read_varint,
    text,
)
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import Wire
from construct_messages.rdf.errors import LimitExceeded
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, of_terms
from construct_messages.rdf.terms import UNREADABLE, Lenience, Term
from construct_messages.rdf.terms.quads import rows_in

_KINDS: Final = {
    1: "options",
    2: "a triple",
    3: "a quad",
    4: "the start of a graph",
    5: "the end of a graph",
    6: "a namespace",
    9: "a name",
    10: "a prefix",
    11: "a datatype",
}


def _tag(number: int) -> int:
    return number << 3 | LENGTH_DELIMITED


_ROW: Final = _tag(1)
_SLICE: Final = 1 << 20  # bytes of rows between checks of the size of their statements
_QUAD: Final = 1 << 6
"""The number of characters that a statement counts for: one that repeats all terms takes four bytes in a frame."""


class Rows:
    """Reads the frames of one stream, in order.

    Args:
        generalized: whether terms may be in positions that RDF does not allow.
        shared_labels: whether blank node labels mean nodes of the whole stream; None: in a flat stream, where frames
            have no meaning.
        labels: creates the labels of the log.
        lenience: see `decoder_for`.
        most_made: the maximal number of characters of the IRIs that a frame creates from table entries.

    Attributes:
        options: the options of the stream; None: not read yet.
        prefixes: the namespace declarations so far.
        place: the start of the last row in its frame.
    """

    def __init__(
        self,
        *,
        generalized: bool,
        shared_labels: bool | None,
        most_made: int,
        labels: Labels,
        lenience: Lenience | None,
    ) -> None:
        self._generalized, self._shared_labels = generalized, shared_labels
        self._most_made, self._labels, self._lenience = most_made, labels, lenience
        self.options: JellyOptions | None = None
        self.prefixes: dict[str, str] = {}
        self.place = 0
        self._frames = 0
        self._terms: list[Term | None] = []  # the terms of the frame, four per statement
        # the terms of the last statement, and the open graph
        self._last: list[Term | None] = [UNSET] * 4
        self._complete = False  # whether all of these are set
        self._handlers: dict[int, Callable[[bytes], None]] = {_tag(1): self._options}

    def message(self, frame: bytes) -> Message | None:
        """Returns the message of the next frame; None: the frame has the options twice, so the log has no messages.

        Raises:
            Malformed: the frame does not belong to such a stream; `place` is its position.
            LimitExceeded: its statements are too large.
        """
        self._frames += 1
        if self.options is not None:
            self._reader.new_scope(self._frames, self._last)
            # most frames cannot, as two bytes show
            may = frame[2:3] == b"\x0a" or frame[1:2] > b"\x7f"
            if may and _begins_with_options(frame):
                self._reader.demand_ids()
        self._terms = []
        self.place = 0
        while self.place < len(frame):
            stop = min(len(frame), self.place + _SLICE)
            if self.options is not None:
                self.place = self._usual_rows(frame, self.place, stop)
            if self.place < stop:
                self.place = self._field(frame, self.place)
            if len(self._terms) // 4 * _QUAD > self._most_made:
                raise LimitExceeded(
                    f"more than {self._most_made // _QUAD} statements in one frame",
                    hint="allow larger messages",
                )
        if not self._terms and _is_options_twice(frame):
            return None
        if self._terms and self._reader.unreadable:
            self._leave_out()
        return of_terms(self._terms)

    def _leave_out(self) -> None:
        """Leaves out the statements with a term that no log can hold."""
        assert self._lenience is not None
        sound: list[Term | None] = []
        for row in rows_in(self._terms):
            unreadable = next((term for term in row if term and UNREADABLE in term), None)
            if unreadable is None:
                sound += row
            else:
                kind = unreadable.partition(UNREADABLE)[2]
                self._lenience.skips(self._reader.unreadable[kind])
        self._terms = sound

    def _usual_rows(self, frame: bytes, start: int, stop: int) -> int:
        """Reads rows in the usual form up to a place, and returns the start of the next row, or of the first row that
        is malformed or has another form.
        """
        if (wire := compiled.wire) is None:
            return self._rows(frame, start, stop)
        while start < stop:
            start = self._compiled_rows(wire, frame, start, stop)
            if start < stop:
                following = self._rows(frame, start, start + 1)
                if following == start:
                    break
                start = following
        return start

    def _compiled_rows(self, wire: Wire, frame: bytes, start: int, stop: int) -> int:
        """Returns the start of the first row that the compiled module does not support."""
        reader = self._reader
        names, prefixes = reader.names, reader.prefixes
        (
            start,
            reader.begin,
            reader.prefix,
            reader.name,
            reader.made,
            names.last,
            prefixes.last,
        ) = wire.jelly_rows(
            frame,
            start,
            stop,
            self._statement if self._complete else -1,
            self._last,
            self._terms,
            (names.strings, names.size),
            (prefixes.strings, prefixes.size),
            reader.iris,
            reader.suffixes,
            reader.blank,
            reader.most_made,
            reader.begin,
            reader.prefix,
            reader.name,
            reader.made,
            names.last,
            prefixes.last,
        )
        return start

    def _rows(self, frame: bytes, start: int, stop: int) -> int:
        """Reads rows as `_usual_rows`.

        `_field` reads the row at which it stops, in any form that Protocol Buffers allows. Every call and slice here
        affects the speed: IRIs are read like in `TermReader.iri`, without a call.
        """
        handlers, last, reader = self._handlers, self._last, self._reader
        statement, readers = self._statement, self._readers
        ids, iris, prefixes = reader.ids, reader.iris, reader.prefixes.strings
        extend, end = self._terms.extend, len(frame)
        prefix, begin, name = state = reader.prefix, reader.begin, reader.name
        try:
            while start < stop:
                size, place = frame[start + 1], start + 2
                if size > 0x7F:
                    size, place = read_varint(frame, start + 1)
                following = place + size
                kind, size = frame[place], frame[place + 1]
                place += 2
                if size > 0x7F:
                    size, place = read_varint(frame, place - 1)
                if frame[start] != _ROW or place + size != following or following > end:
                    break
                if kind != statement:
                    reader.prefix, reader.begin, reader.name = prefix, begin, name
                    handlers[kind](frame[place:following])
                    prefix, begin, name = state = reader.prefix, reader.begin, reader.name
                    start = following
                    continue
                due = 0
                while place < following:
                    position, read = readers[frame[place]]
                    size, place = frame[place + 1], place + 2
                    if size > 0x7F:
                        size, place = read_varint(frame, place - 1)
                    if position < due:
                        break
                    due = position + 1
                    data = frame[place : place + size]
                    place += size
                    if read is not None:
                        last[position] = read(data)
                        continue
                    new_prefix, new_name = ids.get(data) or reader.read_ids(data)
                    name = new_name or name + 1
                    if new_prefix:
                        prefix, begin = new_prefix, prefixes[new_prefix]
                    last[position] = iris[name].get(begin) or reader.new_iri(begin, name)
                if place != following or not self._complete:
                    break
                extend(last)
                state = prefix, begin, name
                start = following
        except (IndexError, KeyError, Malformed):
            pass  # `_field` finds the error again, in the order of field numbers
        reader.go_back(*state)
        return start

    def _field(self, frame: bytes, start: int) -> int:
        """Reads any field of a frame, and returns its end; fields other than rows do not belong to the message."""
        number, value, end = read_field(frame, start)
        if number == 1:
            if isinstance(value, int):
                raise Malformed("a row is a number, where bytes are due")
            self._row(value)
        return end

    def _row(self, row: bytes) -> None:
        kind, data = 0, b""
        for number, value in fields(row):
            if number in _KINDS:
                if isinstance(value, int):
                    raise Malformed(f"{_KINDS[number]} is a number, where bytes are due")
                # the last one of several kinds counts; parts of the same kind are one message
                kind, data = number, data + value if number == kind else value
        handler = self._handlers.get(_tag(kind))
        if handler is not None:
            handler(data)
        elif not kind:
            raise Malformed("a row of no kind that is known")
        elif self.options is None:
            raise Malformed(f"{_KINDS[kind]}, where the options of the stream are due")
        else:
            assert self.options.physical_type is not None  # it was read
            raise Malformed(f"{_KINDS[kind]} in a stream of {self.options.physical_type.name}")

    # --- kinds of rows ---

    def _options(self, data: bytes) -> None:
        options = JellyOptions.decode(data)
        if self.options is not None:
            if options != self.options:
                raise Malformed(
                    "options that differ from those that opened the stream", hint=JOINED
                )
            return
        self.options = options
        self._reader = reader = TermReader(
            options,
            generalized=self._generalized,
            shared=options.is_flat if self._shared_labels is None else self._shared_labels,
            most_made=self._most_made,
            labels=self._labels,
            lenience=self._lenience,
        )
        reader.new_scope(self._frames, self._last)
        self._fields: Fields = reader.of_triple
        self._handlers |= {
            _tag(6): self._namespace,
            _tag(9): reader.enter_name,
            _tag(10): reader.enter_prefix,
            _tag(11): reader.enter_datatype,
        }
        match options.physical_type:
            case PhysicalType.TRIPLES:
                self._last[3] = None
                self._statement = _tag(2)
            case PhysicalType.QUADS:
                self._fields = reader.of_quad
                self._statement = _tag(3)
            case PhysicalType.GRAPHS:
                self._statement = _tag(2)
                self._handlers |= {_tag(4): self._start_graph, _tag(5): self._end_graph}
        self._handlers[self._statement] = self._any_statement
        # by the tag instead of the number, if the tag is one byte; None: an IRI. Quoted triples themselves have IRIs
        self._readers = {
            _tag(number): (position, None if read == reader.iri else read)
            for number, (position, read) in self._fields.items()
            if number < 16 and read != reader.quoted
        }

    def _any_statement(self, data: bytes) -> None:
        self._reader.fill(self._last, data, self._fields)
        if UNSET in self._last:
            missing = POSITIONS[self._last.index(UNSET)]
            raise Malformed(f"a statement without its {missing}, and none before it that has one")
        self._complete = True
        self._terms.extend(self._last)

    def _start_graph(self, data: bytes) -> None:
        self._last[3] = UNSET
        self._reader.fill(self._last, data, self._reader.of_graph_start)
        if self._last[3] == UNSET:
            raise Malformed("the start of a graph without its name")

    def _end_graph(self, _: bytes) -> None:
        self._last[3] = UNSET
        self._complete = False

    def _namespace(self, data: bytes) -> None:
        name, value = "", None
        for number, part in fields(data):
            if number == 1:
                name = text(part, "the name of a namespace")
            elif number == 2 and isinstance(part, bytes):
                value = self._reader.iri(part)
        if value is None:
            raise Malformed(f"namespace {name!r} without an IRI")
        if UNREADABLE not in value:
            self.prefixes[name] = value[1:-1]


def _begins_with_options(frame: bytes) -> bool:
    """Returns whether a frame's first row contains options, in the usual form: at the start of a stream, or of a
    concatenated one.
    """
    try:
        _, start = read_varint(frame, 1)
    except Malformed:
        return False
    return frame[0] == _ROW and frame[start : start + 1] == b"\x0a"


def _is_options_twice(frame: bytes) -> bool:
    """Returns whether a frame only consists of two equal rows of options, like that of `JellyEncoder.finish`."""
    half, odd = divmod(len(frame), 2)
    if odd or not frame or frame[:half] != frame[half:] or not _begins_with_options(frame):
        return False
    size, start = read_varint(frame, 1)
    return start + size == half

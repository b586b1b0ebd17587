"""Reads the rows of Jelly frames: a frame's bytes in, its message out, with the lookup tables between them.

What producers write is read straight from the bytes: fields in the order of their numbers, lengths of one byte. Any
other form that Protocol Buffers allows (fields unknown, repeated or in another order) is first brought into that one.
An IRI is made and checked once for each pair of table entries, a datatype or language once for its bytes.

Jelly 1.1, serialization (rdf.proto). Where in a log a frame stands is the decoder's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from construct_messages.errors import TermError
from construct_messages.logs.jelly.options import Physical, StreamOptions
from construct_messages.logs.jelly.wire import (
    DEEPEST,
    LENGTH_DELIMITED,
    Malformed,
    delimited,
    fields,
    integer,
    read_field,
    read_varint,
    text,
    varint,
)
from construct_messages.logs.parsed import Labels
from construct_messages.message import Message, Quad
from construct_messages.terms import Term, blank, escape, has_blank, iri, literal, map_blanks, to_pyoxigraph, triple

_Reader: TypeAlias = Callable[[bytes], Term | None]
_Readers: TypeAlias = Mapping[int, tuple[int, _Reader]]  # position and reader of a term, by the number of its field
_Handler: TypeAlias = Callable[[bytes], None]

_UNSET: Final = Term("")
_MOST: Final = 1 << 16  # parsed bytes to remember
_MOST_PREFIXES: Final = 1 << 8  # of one name
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
_ROW: Final = 0x0A  # tag of a row in a frame
_POSITIONS: Final = ("subject", "predicate", "object", "graph")
_new: Final = tuple.__new__  # of Quad(…) it is the part that takes the time


def _tag(number: int) -> int:
    return number << 3 | LENGTH_DELIMITED


def _unread(_: bytes) -> None:
    return None


_NO_READER: Final = (-1, _unread)


class Table:
    """The entries of one lookup table, as a consumer keeps it: strings by their ids, from 1.

    >>> table = Table("names", 8)
    >>> table.enter(b"\\x12\\x01a"), table.enter(b"\\x12\\x01b"), table.get(2)
    (1, 2, 'b')
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._strings: dict[int, str] = {}
        self._last = 0

    def enter(self, entry: bytes) -> int:
        """Takes an RdfNameEntry, RdfPrefixEntry or RdfDatatypeEntry, and gives its id.

        Raises:
            Malformed: an id that the table's size excludes.
        """
        number, string = 0, ""
        for field, value in fields(entry):
            if field == 1:
                number = integer(value, "the id of an entry")
            elif field == 2:
                string = text(value, f"an entry of {self._name}")
        number = number or self._last + 1
        if number > self._size:
            raise Malformed(f"entry {number} in a table of {self._size} {self._name}")
        self._strings[number] = string
        self._last = number
        return number

    def get(self, number: int) -> str:
        """The string with an id.

        Raises:
            Malformed: there is none.
        """
        try:
            return self._strings[number]
        except KeyError:
            raise Malformed(f"{number} is not in the table of {self._name}") from None


class Rows:
    """Reads the frames of one stream, in order.

    Args:
        generalized: whether terms may stand where RDF has no place for them.
        scoped: whether blank node labels mean the nodes of one frame; if so, they are made unique in the log.

    Attributes:
        options: of the stream, once they came.
        prefixes: the namespace declarations so far.
        place: where in the frame the row begins that is being read.
    """

    def __init__(self, *, generalized: bool = False, scoped: bool = True) -> None:
        self._scoped = scoped
        self.options: StreamOptions | None = None
        self.prefixes: dict[str, str] = {}
        self.place = 0
        self._frames = 0
        self._labels = Labels(0)
        self._depth = 0
        self._quads: list[Quad] = []
        self._last: list[Term | None] = [_UNSET] * 4
        self._complete = False  # whether there was a statement, so that terms can be repeated
        self._graph: Term | None = _UNSET  # that triples are in; _UNSET: in none
        self._ids: dict[bytes, tuple[int, int]] = {}
        self._suffixes: dict[bytes, str] = {b"": '"'}
        self._handlers: dict[int, _Handler] = {_tag(1): self._options}
        self._set_readers(generalized)

    def _set_readers(self, generalized: bool) -> None:
        def only_generalized(what: str) -> _Reader:
            def refuse(_: bytes) -> Term:
                raise Malformed(f"{what}, for which RDF has no place", hint="read it with generalized=True")

            return refuse

        iri: _Reader = self._iri
        blank: _Reader = self._blank
        literal: _Reader = self._literal
        triple: _Reader = self._quoted
        if not generalized:
            literal = triple = only_generalized("a literal or quoted triple as subject or predicate")
            blank = only_generalized("a blank node as predicate")
        subject = (iri, self._blank, literal, triple)
        predicate = (iri, blank, literal, triple)
        object = (iri, self._blank, self._literal, self._quoted)
        name = literal if generalized else only_generalized("a literal as the name of a graph")
        terms = [*((0, read) for read in subject), *((1, read) for read in predicate), *((2, read) for read in object)]
        graph = [(3, iri), (3, self._blank), (3, self._default), (3, name)]
        self._of_triple = dict(enumerate(terms, 1))
        self._of_quad = dict(enumerate(terms + graph, 1))
        self._of_graph_start = dict(enumerate(graph, 1))

    def message(self, frame: bytes) -> Message:
        """The message of the next frame.

        Raises:
            Malformed: the frame is none of such a stream; `place` tells where.
        """
        self._frames += 1
        self._new_labels()
        self._quads = []
        handlers = self._handlers
        place, end = 0, len(frame)
        while place < end:
            self.place = place
            # most rows are shorter than 128 bytes, so that tag and length are two bytes
            if frame[place] != _ROW or place + 2 > end or (size := frame[place + 1]) > 0x7F:
                place = self._field(frame, place)
                continue
            place += 2
            row = frame[place : place + size]
            place += size
            handler = handlers.get(row[0]) if size > 1 and place <= end else None
            if handler is not None and row[1] == size - 2:
                handler(row[2:])
            elif place <= end:
                self._row(row)
            else:
                raise Malformed(f"a row of {size} bytes, where {len(row)} are left")
        return Message(self._quads)

    def _field(self, frame: bytes, start: int) -> int:
        """Reads any field of a frame, and gives its end; what is no row says nothing about the message."""
        number, value, end = read_field(frame, start)
        if number == 1:
            if isinstance(value, int):
                raise Malformed("a row is a number, where bytes are due")
            self._row(value)
        return end

    def _row(self, row: bytes) -> None:
        """Reads a row in any form."""
        kind, data = 0, b""
        for number, value in fields(row):
            if number in _KINDS:
                if isinstance(value, int):
                    raise Malformed(f"{_KINDS[number]} is a number, where bytes are due")
                # of several kinds the last one counts; the parts of one are one message
                kind, data = number, data + value if number == kind else value
        handler = self._handlers.get(_tag(kind))
        if handler is not None:
            handler(data)
        elif not kind:
            raise Malformed("a row of no kind that is known")
        elif self.options is None:
            raise Malformed(f"{_KINDS[kind]}, where the options of the stream are due")
        else:
            raise Malformed(f"{_KINDS[kind]} in a stream of {self.options.physical.name}")

    # --- rows that are no statements ---

    def _options(self, data: bytes) -> None:
        options = StreamOptions.read(data)
        if self.options is not None:
            if options != self.options:
                raise Malformed("options that differ from those that opened the stream")
            return
        self.options = options
        self._names = Table("names", options.names)
        self._prefixes = Table("prefixes", options.prefixes)
        self._datatypes = Table("datatypes", options.datatypes)
        # an IRI by the id of its name and by its prefix, as a string: that an id gets another prefix changes nothing
        self._iris: list[dict[str, Term]] = [{} for _ in range(options.names + 1)]
        self._prefix, self._start = 0, ""
        self._name = 0
        self._handlers |= {
            _tag(6): self._namespace,
            _tag(9): self._enter_name,
            _tag(10): self._enter_prefix,
            _tag(11): self._enter_datatype,
        }
        match options.physical:
            case Physical.TRIPLES:
                self._graph = None
                self._handlers[_tag(2)] = self._triple
            case Physical.QUADS:
                self._handlers[_tag(3)] = self._quad
            case Physical.GRAPHS:
                self._handlers |= {
                    _tag(2): self._triple,
                    _tag(4): self._start_graph,
                    _tag(5): self._end_graph,
                }

    def _namespace(self, data: bytes) -> None:
        name, value = "", None
        for number, part in fields(data):
            if number == 1:
                name = text(part, "the name of a namespace")
            elif number == 2 and isinstance(part, bytes):
                value = self._iri(part)
        if value is None:
            raise Malformed(f"namespace {name!r} without an IRI")
        self.prefixes[name] = value[1:-1]

    def _enter_name(self, data: bytes) -> None:
        self._iris[self._names.enter(data)] = {}

    def _enter_prefix(self, data: bytes) -> None:
        number = self._prefixes.enter(data)
        if number == self._prefix:
            self._start = self._prefixes.get(number)

    def _enter_datatype(self, data: bytes) -> None:
        self._datatypes.enter(data)
        self._suffixes = {b"": '"'}

    def _start_graph(self, data: bytes) -> None:
        found: list[Term | None] = [_UNSET] * 4
        self._fill(found, data, self._of_graph_start)
        if found[3] == _UNSET:
            raise Malformed("the start of a graph without its name")
        self._graph = found[3]

    def _end_graph(self, _: bytes) -> None:
        if self._graph == _UNSET:
            raise Malformed("the end of a graph, where none has started")
        self._graph = _UNSET

    # --- statements ---

    def _triple(self, data: bytes) -> None:
        last = self._last
        self._fill(last, data, self._of_triple)
        if not self._complete:
            self._check_complete(last[:3])
        graph = self._graph
        if graph == _UNSET:
            raise Malformed("a triple before the start of a graph")
        self._quads.append(_new(Quad, (last[0], last[1], last[2], graph)))

    def _quad(self, data: bytes) -> None:
        last = self._last
        self._fill(last, data, self._of_quad)
        if not self._complete:
            self._check_complete(last)
        self._quads.append(_new(Quad, last))

    def _quoted(self, data: bytes) -> Term:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Malformed(f"more than {DEEPEST} quoted triples in each other")
        terms: list[Term | None] = [_UNSET] * 3
        self._fill(terms, data, self._of_triple)
        if _UNSET in terms:
            raise Malformed(f"a quoted triple without its {_POSITIONS[terms.index(_UNSET)]}, which cannot be repeated")
        self._depth -= 1
        return triple(*terms)  # type: ignore[arg-type] # only a graph is None

    def _check_complete(self, terms: list[Term | None]) -> None:
        if _UNSET in terms:
            raise Malformed(f"the first statement without its {_POSITIONS[terms.index(_UNSET)]}")
        self._complete = True

    def _fill(self, terms: list[Term | None], data: bytes, readers: _Readers) -> None:
        """Puts the terms that a statement has into their positions, and leaves the others as they are."""
        found = []
        place, end, next_position = 0, len(data), 0
        while place + 1 < end:
            tag, size = data[place], data[place + 1]
            place += 2
            if size > 0x7F:
                size, place = read_varint(data, place - 1)
            position, read = readers.get(tag >> 3, _NO_READER) if tag & 0x87 == LENGTH_DELIMITED else _NO_READER
            if position < next_position:
                break
            next_position = position + 1
            found.append((position, read, data[place : place + size]))
            place += size
        if place == end:
            for position, read, value in found:
                terms[position] = read(value)
        else:
            self._fill_from_any(terms, data, readers)

    def _fill_from_any(self, terms: list[Term | None], data: bytes, readers: _Readers) -> None:
        found: dict[int, tuple[int, bytes]] = {}
        for number, value in fields(data):
            if number not in readers:
                continue
            position = readers[number][0]
            if isinstance(value, int):
                raise Malformed(f"the {_POSITIONS[position]} is a number, where bytes are due")
            before = found.get(position)
            if before and before[0] == number and number % 4 != 2:  # all but labels of blank nodes are messages
                value = before[1] + value
            found[position] = (number, value)
        for position, (number, value) in sorted(found.items()):
            terms[position] = readers[number][1](value)

    # --- terms ---

    def _iri(self, data: bytes) -> Term:
        prefix, name = self._ids.get(data) or self._read_ids(data)
        if prefix:
            self._prefix, self._start = prefix, self._prefixes.get(prefix)
        self._name = name = name or self._name + 1
        try:
            return self._iris[name][self._start]
        except (IndexError, KeyError):
            return self._new_iri(name)

    def _read_ids(self, data: bytes) -> tuple[int, int]:
        prefix = name = 0
        for number, value in fields(data):
            if number == 1:
                prefix = integer(value, "the prefix of an IRI")
            elif number == 2:
                name = integer(value, "the name of an IRI")
        if len(self._ids) >= _MOST:
            self._ids.clear()
        self._ids[data] = prefix, name
        return prefix, name

    def _new_iri(self, name: int) -> Term:
        value = self._start + self._names.get(name)
        known = self._iris[name]
        if len(known) >= _MOST_PREFIXES:
            known.clear()
        known[self._start] = term = _legal(lambda: iri(value))
        return term

    def _blank(self, data: bytes) -> Term:
        label = text(data, "the label of a blank node")
        return self._labels[Term(label)] if self._scoped else _legal(lambda: blank(label))

    def _literal(self, data: bytes) -> Term:
        if data[:1] == b"\x0a" and len(data) > 1:
            size, place = data[1], 2
            if size > 0x7F:
                size, place = read_varint(data, 1)
            end = place + size
            suffix = self._suffixes.get(data[end:])
            if suffix is not None and end <= len(data):
                return Term(f'"{escape(text(data[place:end], "a literal"))}{suffix}')
        return self._any_literal(data)

    def _any_literal(self, data: bytes) -> Term:
        lexical, language, datatype = "", None, None
        value: int | bytes = b""
        for number, part in fields(data):
            if number == 1:
                lexical = text(part, "a literal")
            elif number == 2:
                value, language, datatype = part, text(part, "a language tag"), None
            elif number == 3:
                value, language, datatype = part, None, self._datatypes.get(integer(part, "a datatype"))
        term = _legal(lambda: literal(lexical, language=language, datatype=datatype))
        if len(self._suffixes) >= _MOST:
            self._suffixes = {b"": '"'}
        # what producers write for it behind the lexical form
        written = b"\x12" + delimited(value) if isinstance(value, bytes) else b"\x18" + varint(value)
        self._suffixes[written] = term[term.rindex('"') :]
        return term

    def _default(self, _: bytes) -> None:
        return None

    def _new_labels(self) -> None:
        """Forgets the labels of the last frame; a node in a term that the new frame repeats is one of its own."""
        before, self._labels = self._labels, Labels(self._frames)
        if not before:
            return
        written = {node: label for label, node in before.items()}

        def renew(term: Term | None) -> Term | None:
            return map_blanks(term, lambda node: self._labels[written[node]]) if term and has_blank(term) else term

        self._last = list(map(renew, self._last))
        self._graph = renew(self._graph)


def _legal(make: Callable[[], Term]) -> Term:
    try:
        term = make()
        to_pyoxigraph(term)  # knows all of what IRIs and language tags may be, and reads them in the other formats
    except TermError as error:
        raise Malformed(error.message) from None
    except ValueError as error:
        raise Malformed(f"a term that is none: {error}") from None
    return term

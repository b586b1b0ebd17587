"""Reads Jelly logs: finds the frames in chunks of bytes of any size, and adds positions to errors.

Jelly 1.1, "Delimited variant of Jelly" and its difference from a single frame; RDF Messages section 3: a frame is a
message with separate blank nodes, except in a flat stream. `decoder.py` reads the content of frames.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from construct_messages.errors import LimitExceeded, LogError, TermError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.options import JellyOptions, PhysicalType
from construct_messages.logs.jelly.wire import (
    DEEPEST,
    JOINED,
    LENGTH_DELIMITED,
    Entries,
    Malformed,
    delimited,
    fields,
    integer,
    read_field,
    read_varint,
    text,
    varint,
)
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import Wire
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels, MessageLabels
from construct_messages.rdf.message import Message, of_terms
from construct_messages.rdf.terms import (
    UNREADABLE,
    USUAL_IRI,
    Lenience,
    Term,
    blank,
    iri,
    is_blank,
    is_triple,
    literal,
    triple,
    triple_parts,
)
from construct_messages.rdf.terms.libraries import rows_in
from construct_messages.rdf.terms.wellformed import OUT_OF_PLACE

# --- rows -----------------------------------------------------------------------------------------
# Reads the rows of Jelly frames, and returns the message of each frame.
#
# Jelly 1.1, serialization: RdfStreamFrame and RdfStreamRow of rdf.proto. `decoder.py` adds the position of a frame in
# the log.

# Reads terms from the fields of Jelly statements, with the lookup tables that they refer to.
#
# An IRI is created and checked once per pair of table entries.
#
# Jelly 1.1, serialization: RdfIri, RdfLiteral, RdfTriple, RdfQuad, RdfGraphStart of rdf.proto.

ReadTerm: TypeAlias = Callable[[bytes], Term | None]
Fields: TypeAlias = Mapping[int, tuple[int, ReadTerm]]
"""The position of a statement's term and the function that reads it, by field number."""

UNSET: Final = Term("")
POSITIONS: Final = ("subject", "predicate", "object", "graph")
_USUAL_IRI: Final = re.compile(USUAL_IRI)
_NO_SUFFIXES: Final = {b"": '"'}
_MOST: Final = 1 << 16  # parsed bytes to remember
_LONGEST: Final = 256  # label worth remembering, so that these bytes are bounded, too
_MOST_PREFIXES: Final = 1 << 6  # of one name


class TermReader:
    """Reads the terms of one stream, strictly in order."""

    def __init__(
        self,
        options: JellyOptions,
        *,
        # whether terms may be in positions that RDF does not allow
        generalized: bool,
        # whether blank node labels mean nodes of the whole stream, and not of their frame alone
        shared: bool,
        # the maximal number of characters of the IRIs that a frame creates from table entries
        most_made: int,
        labels: Labels,
        lenience: Lenience | None = None,
    ) -> None:
        self.names = Entries("names", options.max_name_table_size)
        self.prefixes = Entries("prefixes", options.max_prefix_table_size)
        self.datatypes = Entries("datatypes", options.max_datatype_table_size)
        # prefix, begin, name: the state for the next IRI: id and string of the last prefix, and id of the last name
        self.prefix, self.begin, self.name = 0, "", 0
        self._shared = shared
        self._nodes: dict[bytes, Term] = {}  # the nodes of the whole stream, by their labels
        self._frame = 0
        self._of_log, self._lenience = labels, lenience
        # the labels of this frame, if it has a blank node
        self._labels: MessageLabels | None = None
        self._depth = 0  # of quoted triples
        # with lenience, the first term of each kind that no log can hold; `UNREADABLE` and its kind, to the end of
        # the text, take the place of such a term
        self.unreadable: dict[str, TermError] = {}
        # a few entries can create many long IRIs, independently of the size of the frame
        # made, most_made: the number of characters of the IRIs that the frame has created, and its limit
        self.made, self.most_made = 0, most_made
        # the known IRIs, by the id of the name and by the prefix itself, so that they stay valid when the id of the
        # prefix is reused
        self.iris: dict[int, dict[str, Term]] = {}
        # for the compiled module: the text after a literal's lexical form in a term, by the bytes after it in an
        # RdfLiteral
        self.suffixes: dict[bytes, str] = dict(_NO_SUFFIXES)
        read, node, value, quoted = self.iri, self.blank, self.literal, self.quoted
        no_node, no_value, no_quoted, no_name = (
            (node, value, quoted, value)
            if generalized
            else map(self._only_generalized, _OUT_OF_PLACE, (node, value, quoted, value))
        )
        terms = [(0, read), (0, node), (0, no_value), (0, no_quoted)]
        terms += [(1, read), (1, no_node), (1, no_value), (1, no_quoted)]
        terms += [(2, read), (2, node), (2, value), (2, quoted)]
        graph = [(3, read), (3, node), (3, _default), (3, no_name)]
        self.of_triple: Fields = dict(enumerate(terms, 1))
        self.of_quad: Fields = dict(enumerate([*terms, *graph], 1))
        self.of_graph_start: Fields = dict(enumerate(graph, 1))

    # --- the tables ---

    def enter_name(self, data: bytes) -> None:
        """Processes an RdfNameEntry."""
        self.iris[self.names.enter(data)] = {}

    def enter_prefix(self, data: bytes) -> None:
        """Processes an RdfPrefixEntry."""
        number = self.prefixes.enter(data)
        if number == self.prefix:
            self.begin = self.prefixes.get(number)

    def enter_datatype(self, data: bytes) -> None:
        """Processes an RdfDatatypeEntry."""
        self.datatypes.enter(data)
        self.suffixes = dict(_NO_SUFFIXES)

    def demand_ids(self) -> None:
        """Requires an id in the next entry of each table."""
        for table in (self.names, self.prefixes, self.datatypes):
            table.demand_id()

    # --- statements ---

    def fill(self, terms: list[Term | None], data: bytes, known: Fields) -> None:
        """Writes the terms of a statement to their positions, and leaves the others unchanged.

        Accepts any form that Protocol Buffers allows: the last one of repeated terms counts; messages of the same field
        are merged.
        """
        found: dict[int, tuple[int, bytes]] = {}
        for number, value in fields(data):
            if number not in known:
                continue
            position = known[number][0]
            if isinstance(value, int):
                raise Malformed(f"the {POSITIONS[position]} is a number, where bytes are due")
            before = found.get(position)
            if (
                before and before[0] == number and number % 4 != 2
            ):  # all but labels of blank nodes are messages
                value = before[1] + value
            found[position] = (number, value)
        for position, (number, value) in sorted(found.items()):
            terms[position] = known[number][1](value)

    def quoted(self, data: bytes) -> Term:
        """Reads the triple term of an RdfTriple."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise Malformed(f"more than {DEEPEST} quoted triples in each other")
        terms: list[Term | None] = [UNSET] * 3
        self.fill(terms, data, self.of_triple)
        if UNSET in terms:
            raise Malformed(
                f"a quoted triple without its {POSITIONS[terms.index(UNSET)]}, which cannot be repeated"
            )
        self._depth -= 1
        if unreadable := next((term for term in terms if term and UNREADABLE in term), None):
            return unreadable
        return triple(*terms, generalized=True)  # type: ignore[arg-type] # only a graph is None

    def new_scope(self, number: int, terms: list[Term | None]) -> None:
        """Begins a frame, and clears the labels of the last one. `terms`: the last terms, which the frame may repeat;
        their blank nodes become nodes of this frame.
        """
        self.made = 0
        self._frame = number
        if self._labels is not None:
            written = {node: label for label, node in self._labels.items()}
            labels = self._labels = self._of_log.in_message(number)

            def renew(term: Term) -> Term:
                if is_triple(term):  # in a generalized statement also the predicate
                    return triple(*map(renew, triple_parts(term)), generalized=True)
                return labels[written[term]] if is_blank(term) else term

            terms[:] = [renew(term) if term else term for term in terms]

    # --- terms ---

    def iri(self, data: bytes) -> Term:
        """Reads the term of an RdfIri."""
        prefix = name = 0  # the last prefix, and the next name
        for number, value in fields(data):
            if number == 1:
                prefix = integer(value, "the prefix of an IRI")
            elif number == 2:
                name = integer(value, "the name of an IRI")
        self.name = name = name or self.name + 1
        if prefix:
            self.prefix, self.begin = prefix, self.prefixes.get(prefix)
        known = self.iris.get(name)
        return (known and known.get(self.begin)) or self.new_iri(self.begin, name)

    def new_iri(self, begin: str, name: int) -> Term:
        """Creates the term of the current prefix and the name with an id, for a new pair."""
        value = begin + self.names.get(name)
        self.made += len(value)
        if self.made > self.most_made:
            raise LimitExceeded(
                f"more than {self.most_made} characters of IRIs that differ",
                hint="write less at once",
            )
        known = self.iris[name]
        if len(known) >= _MOST_PREFIXES:
            known.clear()
        if _USUAL_IRI.fullmatch(value):
            term = Term(f"<{value}>")
        else:
            term = self._legal(lambda: iri(value, lenience=self._lenience))
        known[begin] = term
        return term

    def blank(self, data: bytes) -> Term:
        if self._shared:
            return self._nodes.get(data) or self._shared_node(data)
        label = text(data, "the label of a blank node")
        if self._labels is None:
            self._labels = self._of_log.in_message(self._frame)
        return self._labels[Term(label)]

    def _shared_node(self, data: bytes) -> Term:
        label = text(data, "the label of a blank node")
        try:
            node = self._of_log.in_log(blank(label))
        except TermError:
            # any text is a label in Jelly; the surrogate distinguishes it from others
            node = blank(label or "\ud800", self._of_log.of_data)
        if len(data) <= _LONGEST:
            if len(self._nodes) >= _MOST:
                self._nodes.clear()
            self._nodes[data] = node
        return node

    def literal(self, data: bytes) -> Term:
        """Reads the term of an RdfLiteral."""
        lexical, language, datatype = "", None, None
        value: int | bytes = b""
        for number, part in fields(data):
            if number == 1:
                lexical = text(part, "a literal")
            elif number == 2:
                value, language, datatype = part, text(part, "a language tag"), None
            elif number == 3:
                value, language, datatype = (
                    part,
                    None,
                    self.datatypes.get(integer(part, "a datatype")),
                )
        part = b""  # a long literal is in memory often enough
        term = self._legal(
            lambda: literal(lexical, language=language, datatype=datatype, lenience=self._lenience)
        )
        if value:
            if len(self.suffixes) >= _MOST:
                self.suffixes = dict(_NO_SUFFIXES)
            # the bytes that producers write for it after the lexical form
            written = (
                b"\x12" + delimited(value) if isinstance(value, bytes) else b"\x18" + varint(value)
            )
            self.suffixes[written] = term[term.rindex('"') :] if term[0] == '"' else f'"{term}'
        return term

    def _legal(self, make: Callable[[], Term]) -> Term:
        """Makes a term, or its place-holder in a statement that is skipped."""
        try:
            return make()
        except TermError as error:
            if self._lenience is None or self._lenience.is_strict:
                raise Malformed(error.message) from None
            self.unreadable.setdefault(error.kind, error)
            return Term(f"{UNREADABLE}{error.kind}")

    def _only_generalized(self, what: str, read: ReadTerm) -> ReadTerm:
        def refuse(data: bytes) -> Term:
            if self._lenience is None or self._lenience.is_strict:
                raise Malformed(
                    f"{what}, where RDF has no place for it",
                    hint="read the log with generalized=True, on the command line --generalized",
                )
            read(data)  # the next IRI may depend on those in it
            self.unreadable.setdefault(OUT_OF_PLACE, TermError(what, kind=OUT_OF_PLACE))
            return Term(f"{UNREADABLE}{OUT_OF_PLACE}")

        return refuse


_OUT_OF_PLACE: Final = (
    "a blank node as predicate",
    "a literal as subject or predicate",
    "a quoted triple as subject or predicate",
    "a literal as the name of a graph",
)


def _default(_: bytes) -> None:
    """Reads the default graph."""


# --- rows -----------------------------------------------------------------------------------------

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


_ROW_TAG: Final = _tag(1)
_SLICE: Final = 1 << 20  # bytes of rows between checks of the size of their statements
_QUAD: Final = 1 << 6
"""The number of characters that a statement counts for: one that repeats all terms takes four bytes in a frame."""


class Rows:
    """Reads the frames of one stream, in order."""

    def __init__(
        self,
        *,
        # whether terms may be in positions that RDF does not allow
        generalized: bool,
        # whether blank node labels mean nodes of the whole stream; None: in a flat stream, where frames have no
        # meaning
        shared_labels: bool | None,
        # the maximal number of characters of the IRIs that a frame creates from table entries
        most_made: int,
        labels: Labels,
        lenience: Lenience | None,
    ) -> None:
        self._generalized, self._shared_labels = generalized, shared_labels
        self._most_made, self._labels, self._lenience = most_made, labels, lenience
        # the options of the stream; None: not read yet
        self.options: JellyOptions | None = None
        # the namespace declarations so far
        self.prefixes: dict[str, str] = {}
        # the start of the last row in its frame
        self.place = 0
        self._frames = 0
        self._terms: list[Term | None] = []  # the terms of the frame, four per statement
        # the terms of the last statement, and the open graph
        self._last: list[Term | None] = [UNSET] * 4
        self._has_graphs = False  # whether graphs start and end
        self._handlers: dict[int, Callable[[bytes], None]] = {1: self._options}  # by field of a row

    def message(self, frame: bytes) -> Message | None:
        """Returns the message of the next frame; None: the frame has the options twice, so the log has no messages."""
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
            if compiled.wire is not None and self.options is not None:
                self.place = self._compiled_rows(compiled.wire, frame, self.place, stop)
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
        """Skips the statements with a term that no log can hold."""
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
            _tag(self._statement),
            self._has_graphs,
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
        handler = self._handlers.get(kind)
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
            6: self._namespace,
            9: reader.enter_name,
            10: reader.enter_prefix,
            11: reader.enter_datatype,
        }
        match options.physical_type:
            case PhysicalType.TRIPLES:
                self._last[3] = None
                self._statement = 2
            case PhysicalType.QUADS:
                self._fields = reader.of_quad
                self._statement = 3
            case PhysicalType.GRAPHS:
                self._statement, self._has_graphs = 2, True
                self._handlers |= {4: self._start_graph, 5: self._end_graph}
        self._handlers[self._statement] = self._any_statement

    def _any_statement(self, data: bytes) -> None:
        self._reader.fill(self._last, data, self._fields)
        if UNSET in self._last:
            missing = POSITIONS[self._last.index(UNSET)]
            raise Malformed(f"a statement without its {missing}, and none before it that has one")
        self._terms.extend(self._last)

    def _start_graph(self, data: bytes) -> None:
        self._last[3] = UNSET
        self._reader.fill(self._last, data, self._reader.of_graph_start)
        if self._last[3] == UNSET:
            raise Malformed("the start of a graph without its name")

    def _end_graph(self, _: bytes) -> None:
        self._last[3] = UNSET

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
    return frame[0] == _ROW_TAG and frame[start : start + 1] == b"\x0a"


def _is_options_twice(frame: bytes) -> bool:
    """Returns whether a frame only consists of two equal rows of options, like that of `JellyEncoder.finish`."""
    half, odd = divmod(len(frame), 2)
    if odd or not frame or frame[:half] != frame[half:] or not _begins_with_options(frame):
        return False
    size, start = read_varint(frame, 1)
    return start + size == half


# --- sniffer --------------------------------------------------------------------------------------
# Detects Jelly logs: a frame whose first row is stream options.
#
# Jelly 1.1, "Delimited variant of Jelly" and "Stream options" (rdf.proto). Nothing is decoded beyond the options'
# length.


def begins_stream(head: bytes) -> bool | None:
    """Returns whether `head` begins with a frame, delimited or not, whose first row is stream options; None: more bytes
    are needed.

    >>> begins_stream(bytes.fromhex("0a060a04100170010000")), begins_stream(b"<urn:s>"), begins_stream(b"\\n")
    (True, False, None)
    """
    empty = len(head) - len(head.lstrip(b"\0"))  # delimited frames without a row
    length = _varint(head, empty)
    delimited = (
        _is_options(head, length[1]) if length else None if len(head) < empty + 10 else False
    )
    answers = (_is_options(head, 0), delimited)
    return True if True in answers else None if None in answers else False


def _is_options(head: bytes, place: int) -> bool | None:
    if head[place : place + 1] not in (b"\n", b""):  # field 1 of a frame: a row
        return False
    row = _varint(head, place + 1)
    if row is None:
        return None if len(head) < place + 10 else False
    length, place = row
    if head[place : place + 1] not in (b"\n", b""):  # field 1 of a row: options
        return False
    options = _varint(head, place + 1)
    if options is None:
        return None if len(head) < place + 10 else False
    size, start = options
    if start + size != place + length:
        return False
    if (
        b"\x10" in head[start : start + size]
    ):  # field 2 of options: the physical type, which is required
        return True
    return None if len(head) < start + size else False


def _varint(head: bytes, place: int) -> tuple[int, int] | None:
    """Returns the number at a place, and the place after it; None: it is truncated."""
    value = 0
    for index, byte in enumerate(head[place : place + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, place + index + 1
    return None


# --- decoder --------------------------------------------------------------------------------------

_ROW = 0x0A
"""The first byte of an undelimited frame: the tag of a row. As a length, it is ten bytes."""
_LONGEST_LENGTH = 10
_LEAST_MADE = 1 << 26
"""The maximal number of characters of a frame's distinct IRIs, even if the limit of its bytes is lower."""


class JellyDecoder:
    """Reads a Jelly log, delimited or of one frame.

    >>> from construct_messages.rdf.formats import JELLY
    >>> from construct_messages.logs import encoder_for
    >>> log = encoder_for(JELLY, JELLY.own).encode(Message())
    >>> decoder = JellyDecoder(JELLY, JELLY.own, DecoderOptions())
    >>> [*decoder.feed(log), *decoder.close()], decoder.options.logical_type.name
    ([<Message, empty>], 'DATASETS')
    """

    def __init__(self, _format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self.syntax, self._limit = syntax, options.message_bytes
        self._rows = Rows(
            generalized=options.generalized,
            shared_labels=options.shared_labels,
            most_made=max(options.message_bytes, _LEAST_MADE),
            labels=options.labels or Labels(),
            lenience=options.lenience,
        )
        self._buffer = bytearray()
        self._offset = 0  # the position of the buffer in the log
        self._messages = 0
        self._delimited: bool | None = None

    @property
    def prefixes(self) -> Mapping[str, str]:
        return self._rows.prefixes

    @property
    def options(self) -> JellyOptions | None:
        options = self._rows.options
        return options and replace(
            options,
            delimited=bool(self._delimited),
            namespace_declarations=bool(self._rows.prefixes),
        )

    def feed(self, data: bytes) -> Iterator[Message]:
        buffer = self._buffer
        buffer += data
        if self._delimited is None:
            self._delimited = _is_delimited(buffer)
        if not self._delimited:
            if len(buffer) > self._limit:
                raise self._too_large("a frame that is not delimited")
            return
        while buffer:
            size, start = buffer[0], 1
            if size > 0x7F:
                if len(buffer) < _LONGEST_LENGTH and min(buffer) > 0x7F:
                    return  # within the length
                size, start = self._length()
            if size > self._limit:
                raise self._too_large(f"a frame of {size} bytes")
            if len(buffer) < start + size:
                return
            frame = bytes(buffer[start : start + size])
            del buffer[: start + size]
            self._offset += start
            message = self._message(frame)
            self._offset += size
            if message is not None:
                yield message

    def close(self) -> Iterator[Message]:
        """Returns the message that the end of an undelimited log completes."""
        buffer = self._buffer
        if not buffer:
            return
        if self._delimited is False:
            frame = bytes(buffer)
            buffer.clear()
            message = self._message(frame)
            self._offset += len(frame)
            if message is not None:
                yield message
            return
        raise self._error("the log ends within a frame", self._offset, hint="the file is not whole")

    def _length(self) -> tuple[int, int]:
        try:
            return read_varint(self._buffer, 0)
        except Malformed as error:
            raise self._error(f"the length of a frame is {error.message}", self._offset) from None

    def _too_large(self, what: str) -> LimitExceeded:
        return LimitExceeded(
            f"message {self._messages + 1}: {what} at byte {self._offset}, where {self._limit} bytes are allowed",
            hint="raise the limit for messages",
        )

    def _message(self, frame: bytes) -> Message | None:
        try:
            message = self._rows.message(frame)
        except Malformed as error:
            raise self._error(error.message, self._offset + self._rows.place, error.hint) from None
        except LimitExceeded as error:
            raise LimitExceeded(
                f"message {self._messages + 1}: {error.message}", hint=error.hint
            ) from None
        if message is not None:
            self._messages += 1
        return message

    def _error(self, what: str, offset: int, hint: str | None = None) -> LogError:
        return LogError(f"byte {offset}: {what}", number=self._messages + 1, hint=hint)


def _is_delimited(head: bytes | bytearray) -> bool | None:
    """Returns whether a log with this beginning is delimited; None: more bytes are needed.

    A single frame begins with a row whose first field contains options: 0A, the length of the row, 0A. A length of ten
    is also 0A, followed by the row.

    >>> [_is_delimited(bytes.fromhex(head)) for head in ("22", "0a22", "0a0a08", "0a0a0a", "0a")]
    [True, False, True, False, None]
    """
    if not head:
        return None
    if head[0] != _ROW:
        return True
    if len(head) < 2:
        return None
    if head[1] != _ROW:
        return False
    return None if len(head) < 3 else head[2] != _ROW

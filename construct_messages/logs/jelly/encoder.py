"""The Jelly encoder: each message is a frame, after its length.

`encoder.py` writes the content of frames.

Jelly 1.1, serialization; RDF Messages section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions
from construct_messages.logs.jelly.options import JellyOptions, PhysicalType
from construct_messages.logs.jelly.wire import DEEPEST, Table, delimited, varint
from construct_messages.logs.text_encoder import PlainTemplateEncoder
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term, iri, is_triple, triple_parts, unescape

# --- tags -----------------------------------------------------------------------------------------
# Encodes rows of Jelly frames and their fields: tags, lengths, and IRIs as table ids.
#
# `encoder.py` has the lookup tables, and statements that repeat terms.
#
# Jelly 1.1, serialization (rdf.proto).


class PositionTags(NamedTuple):
    """The tags of the fields for one position of a statement, by the kind of the term."""

    iri: bytes
    blank: bytes
    literal: bytes
    triple: bytes


SUBJECT: Final = PositionTags(b"\x0a", b"\x12", b"\x1a", b"\x22")
PREDICATE: Final = PositionTags(b"\x2a", b"\x32", b"\x3a", b"\x42")
OBJECT: Final = PositionTags(b"\x4a", b"\x52", b"\x5a", b"\x62")
TRIPLE_POSITIONS: Final = (SUBJECT, PREDICATE, OBJECT)
# a triple cannot name a graph in RDF and in rdf.proto
GRAPH: Final = PositionTags(b"\x6a", b"\x72", b"\x82\x01", b"")
STARTED_GRAPH: Final = PositionTags(b"\x0a", b"\x12", b"\x22", b"")
DEFAULT_GRAPH: Final = b"\x7a\x00"
STARTED_DEFAULT_GRAPH: Final = b"\x1a\x00"

TRIPLE, QUAD, GRAPH_START, GRAPH_END, NAMESPACE = b"\x12", b"\x1a", b"\x22", b"\x2a", b"\x32"


def row(kind: bytes, body: bytes) -> bytes:
    """Encodes a row of a frame.

    >>> row(GRAPH_END, b"").hex()
    '0a022a00'
    """
    return b"\x0a" + delimited(kind + delimited(body))


def options_row(options: JellyOptions) -> bytes:
    """Encodes the row that opens a stream."""
    return b"\x0a" + delimited(b"\x0a" + delimited(options.encode()))


# --- frames ---------------------------------------------------------------------------------------
# Writes the frames of a Jelly stream: statements as rows, and terms by lookup tables.
#
# Terms are canonical N-Triples strings. An IRI becomes two table ids, most of which the previous IRI makes
# unnecessary; the language or datatype of a literal is looked up by the text after the closing quote. A stream begins
# with explicit ids and complete statements, so that logs with the same options can be concatenated.
#
# Jelly 1.1, serialization (rdf.proto); RDF Messages section 3.

Statement: TypeAlias = tuple[Term, Term, Term, Term | None]

_KINDS: Final[dict[PhysicalType | None, bytes]] = {
    PhysicalType.TRIPLES: TRIPLE,
    PhysicalType.QUADS: QUAD,
    PhysicalType.GRAPHS: GRAPH_START,
}
_NO_TERM: Final = Term("")
_NOWHERE: Final = -2  # an invalid id that also follows no other id
_MOST: Final = 1 << 12  # languages and datatypes to remember


class FrameWriter:
    """Writes one stream: a frame a message, without its length. `options`: the options of the stream, without open
    ones. `message_count`: the number of messages before the stream, for errors. `names`, `prefixes`, `datatypes`: the
    lookup tables. `suffixes`: the bytes of a language or datatype in an RdfLiteral, by the text after the closing
    quote. `prefix`, `name`: the ids of the last IRI. `last`: the last statement.
    """

    def __init__(
        self, options: JellyOptions, namespaces: Mapping[str, Term], message_count: int = 0
    ) -> None:
        self.options, self._namespaces = options, namespaces
        # the tag of rows of statements; of graphs, if these hold triples
        self.kind = _KINDS[options.physical_type]
        # whether the stream's options are written
        self.is_open = False
        # the number of messages so far, including rejected ones
        self.message_count = message_count
        self._restart()

    def _restart(self) -> None:
        """Clears tables and terms, so that the next message has explicit ids and complete statements."""
        options = self.options
        self.names = Table("names", 0x4A, options.max_name_table_size)
        self.prefixes = Table("prefixes", 0x52, options.max_prefix_table_size)
        self.datatypes = Table("datatypes", 0x5A, options.max_datatype_table_size)
        if not options.max_prefix_table_size:
            self.prefixes.ids[""] = 0  # the empty prefix of all IRIs, which needs no row
        # for the compiled module: the ids of recent IRIs that are in the tables, and these IRIs by name
        self._iris: dict[Term, tuple[int, int]] = {}
        self._named: dict[str, list[Term]] = {}
        self.suffixes: dict[str, bytes] = {"": b""}
        # without prefixes, the id of the last one is invalid
        self.prefix, self.name = _NOWHERE if options.max_prefix_table_size else 0, _NOWHERE
        self.last: Statement = (_NO_TERM, _NO_TERM, _NO_TERM, _NO_TERM)

    def write(self, message: Message) -> bytes:
        self.message_count += 1
        rows = [] if self.is_open else self._opening()
        try:
            self.statements(message.statements, rows)
            if self.kind is GRAPH_START:
                self._end_graph(rows)
        except UnsupportedByFormat as error:
            raise self.refused(error) from None
        self.is_open = True
        return b"".join(rows)

    def refused(self, error: UnsupportedByFormat) -> UnsupportedByFormat:
        """Adds the number of the message to an error, and makes the next message independent of this one."""
        self._restart()
        return UnsupportedByFormat(
            f"message {self.message_count}: {error.message}", hint=error.hint
        )

    def _opening(self) -> list[bytes]:
        rows = [options_row(self.options)]
        for prefix, value in self._namespaces.items():
            declared = b"\x12" + self._iri(value, (), rows)
            rows.append(
                row(NAMESPACE, (b"\x0a" + delimited(prefix.encode()) if prefix else b"") + declared)
            )
        return rows

    def statements(self, quads: Iterable[Statement], rows: list[bytes]) -> None:
        """Appends the rows of statements, triples or quads."""
        if (wire := compiled.wire) is None:
            self._statements(quads, rows)
            return
        remaining, names, prefixes = iter(quads), self.names, self.prefixes
        while True:
            written, unknown, self.last, self.prefix, self.name, new_names, new_prefixes = (
                wire.jelly_statements(
                    remaining,
                    self.kind[0],
                    bool(self.options.rdf_star),
                    self.last,
                    self.prefix,
                    self.name,
                    self._iris,
                    self._named,
                    self.suffixes,
                    _ids,
                    (names.ids, names.strings, names.size, names.last),
                    (prefixes.ids, prefixes.strings, prefixes.size, prefixes.last),
                )
            )
            names.follow(new_names)
            prefixes.follow(new_prefixes)
            rows.append(written)
            if unknown is None:
                return
            self._statements((unknown,), rows)

    def _statements(self, quads: Iterable[Statement], rows: list[bytes]) -> None:
        """Appends the rows of any statements, in Python."""
        for quad in quads:
            if self.kind is GRAPH_START and quad[3] != self.last[3]:
                self._start_graph(quad, rows)
            body = self._triple(quad, rows)
            if quad[3] != self.last[3]:
                body += self.graph(quad[3], quad, rows)
            self.last = quad
            rows.append(row(QUAD if self.kind is QUAD else TRIPLE, body))

    def _start_graph(self, quad: Statement, rows: list[bytes]) -> None:
        self._end_graph(rows)
        name = quad[3]
        started = (
            STARTED_DEFAULT_GRAPH if name is None else self.term(STARTED_GRAPH, name, quad, rows)
        )
        rows.append(row(GRAPH_START, started))
        self.last = (*self.last[:3], name)

    def _end_graph(self, rows: list[bytes]) -> None:
        """Ends the graph of the last statement, if it is open."""
        if self.last[3] != _NO_TERM:
            rows.append(row(GRAPH_END, b""))
            self.last = (*self.last[:3], _NO_TERM)

    def _triple(self, quad: Statement, rows: list[bytes]) -> bytes:
        """Encodes the terms of a statement that differ from those of the last one."""
        return b"".join(
            self.term(position, term, quad, rows)
            for position, term, last in zip(TRIPLE_POSITIONS, quad[:3], self.last[:3], strict=True)
            if term != last
        )

    def term(
        self, position: PositionTags, term: Term, quad: Statement | tuple[()], rows: list[bytes]
    ) -> bytes:
        """Encodes a term as a field, and appends the table entries that it needs to `rows`. `quad`: the whole
        statement, whose entries must not replace each other.
        """
        start = term[0]
        if start == '"':
            if position is not OBJECT and not self.options.generalized_statements:
                raise _no_place("a literal", quad)
            return position.literal + self.literal(term, quad, rows)
        if start == "_":
            if position is PREDICATE and not self.options.generalized_statements:
                raise _no_place("a blank node as predicate", quad)
            return position.blank + delimited(term[2:].encode())
        if term.startswith("<<("):
            return self._quoted(position, term, quad, rows)
        return position.iri + self._iri(term, quad, rows)

    def graph(self, name: Term | None, quad: Statement | tuple[()], rows: list[bytes]) -> bytes:
        """Encodes the graph of a quad as a field; it differs from that of the last quad."""
        if self.kind is TRIPLE:
            if name is None:
                return b""
            raise UnsupportedByFormat(
                f"a stream of triples has no named graphs: {_shown(quad)}",
                hint="write a stream of quads",
            )
        return DEFAULT_GRAPH if name is None else self.term(GRAPH, name, quad, rows)

    def _iri(self, term: Term, quad: Statement | tuple[()], rows: list[bytes]) -> bytes:
        """Encodes an RdfIri, without the ids that the previous IRI makes unnecessary."""
        prefix, name = self._entered(term, quad, rows)
        ids = b"" if prefix == self.prefix else b"\x08" + varint(prefix)
        if name != self.name + 1:
            ids += b"\x10" + varint(name)
        self.prefix, self.name = prefix, name
        return delimited(ids)

    def _quoted(
        self, position: PositionTags, term: Term, quad: Statement | tuple[()], rows: list[bytes]
    ) -> bytes:
        if not self.options.rdf_star:
            raise UnsupportedByFormat(
                f"the stream's options allow no triple terms: {_shown(quad)}",
                hint="allow them (Jelly's option rdf_star), or write N-Quads or TriG",
            )
        if not position.triple or (
            position is PREDICATE and not self.options.generalized_statements
        ):
            raise _no_place("a triple term", quad)
        if _is_too_deep(term):
            raise UnsupportedByFormat(
                f"triple terms of more than {DEEPEST} in each other, where no reader goes deeper"
            )
        body = b"".join(
            self.term(inner, part, quad, rows)
            for inner, part in zip(TRIPLE_POSITIONS, triple_parts(term), strict=True)
        )
        return position.triple + delimited(body)

    def _entered(
        self, term: Term, quad: Statement | tuple[()], rows: list[bytes]
    ) -> tuple[int, int]:
        """Returns the ids of the prefix and the name of an IRI, which it enters into the tables if necessary."""
        start, rest = self._split(term)
        prefix = self.prefixes.ids.get(start)
        if prefix is None:
            prefix, old, entry = self.prefixes.enter(
                start, lambda old: self._needs_prefix(quad, old)
            )
            rows.append(entry)
            if old is not None:
                self._iris.clear()
                self._named.clear()
        name = self.names.ids.get(rest)
        if name is None:
            name, old, entry = self.names.enter(rest, lambda old: self._needs_name(quad, old))
            rows.append(entry)
            if old is not None:
                for stale in self._named.pop(old, ()):
                    del self._iris[stale]
        return prefix, name

    def _split(self, term: Term) -> tuple[str, str]:
        """Splits an IRI into the namespace, which most IRIs of a vocabulary share, and the rest."""
        at = term.rfind("#")
        if at < 0:
            at = term.rfind("/")
        if at < 0 or not self.options.max_prefix_table_size:
            return "", term[1:-1]
        return term[1 : at + 1], term[at + 1 : -1]

    def _needs_prefix(self, quad: Statement | tuple[()], prefix: str) -> bool:
        return _holds(quad, f"<{prefix}") and any(
            self._split(leaf)[0] == prefix for leaf in _iris(quad)
        )

    def _needs_name(self, quad: Statement | tuple[()], name: str) -> bool:
        return _holds(quad, f"{name}>") and any(
            self._split(leaf)[1] == name for leaf in _iris(quad)
        )

    def literal(self, term: Term, quad: Statement | tuple[()], rows: list[bytes]) -> bytes:
        """Encodes a literal after its length, without the tag."""
        end = term.rindex('"')
        kind = self.suffixes.get(term[end + 1 :])
        if kind is None:
            kind = self._kind(term[end + 1 :], quad, rows)
        lexical = term[1:end]
        data = (unescape(lexical) if "\\" in lexical else lexical).encode()
        return delimited(b"\x0a" + delimited(data) + kind)

    def _kind(self, suffix: str, quad: Statement | tuple[()], rows: list[bytes]) -> bytes:
        """Encodes the text after the closing quote as the fields of language or datatype in an RdfLiteral."""
        if suffix.startswith("@"):
            if "--" in suffix:
                raise UnsupportedByFormat(
                    f"Jelly has no base directions: {_shown(quad)}", hint="write N-Quads or TriG"
                )
            kind = b"\x12" + delimited(suffix[1:].encode())
            if len(self.suffixes) >= _MOST:
                self.suffixes = {"": b""}
        else:
            if not self.options.max_datatype_table_size:
                raise UnsupportedByFormat(
                    f"the stream's options allow no datatypes: {_shown(quad)}",
                    hint="allow some (Jelly's option max_datatype_table_size)",
                )
            datatype = suffix[3:-1]
            number = self.datatypes.ids.get(datatype)
            if number is None:
                number, old, entry = self.datatypes.enter(
                    datatype,
                    lambda old: (
                        _holds(quad, f"^^<{old}>")
                        and any(leaf.endswith(f'"^^<{old}>') for leaf in _leaves(quad))
                    ),
                )
                rows.append(entry)
                if old is not None:
                    self.suffixes.pop(f"^^<{old}>", None)
            kind = b"\x18" + varint(number)
        self.suffixes[suffix] = kind
        return kind


def _ids(prefix: int, name: int) -> tuple[int, int]:
    return prefix, name


def _leaves(quad: Statement | tuple[()]) -> Iterator[Term]:
    """Yields the terms of a statement other than triple terms, including those within triple terms."""
    pending = [(term, 0) for term in quad if term is not None]
    while pending:
        term, depth = pending.pop()
        if not is_triple(term):
            yield term
        elif depth < DEEPEST:  # deeper ones are rejected anyway
            pending += ((part, depth + 1) for part in triple_parts(term))


def _iris(quad: Statement | tuple[()]) -> Iterator[Term]:
    return (leaf for leaf in _leaves(quad) if leaf.startswith("<"))


def _holds(quad: Statement | tuple[()], text: str) -> bool:
    """Returns whether a term contains a text anywhere: a cheap test before the exact one."""
    return any(term is not None and text in term for term in quad)


def _is_too_deep(term: Term) -> bool:
    if term.count("<<(") <= DEEPEST:  # some of these may be in a literal
        return False
    pending = [(term, 1)]
    while pending:
        part, depth = pending.pop()
        if is_triple(part):
            if depth > DEEPEST:
                return True
            pending += ((inner, depth + 1) for inner in triple_parts(part))
    return False


def _no_place(what: str, quad: Statement | tuple[()]) -> UnsupportedByFormat:
    hint = "allow it (Jelly's option generalized_statements)"
    return UnsupportedByFormat(f"RDF has no place for {what}: {_shown(quad)}", hint=hint)


def _shown(quad: Statement | tuple[()]) -> str:
    return " ".join((*(term for term in quad if term is not None), "."))


# --- encoder --------------------------------------------------------------------------------------


class JellyEncoder:
    """Writes messages as Jelly. `options`: open `JellyOptions` among them are chosen by the others; the prefixes are
    for namespace declarations, if the options include them.

    The first frame contains the options, and each frame is a message. A log without messages is a frame with the
    options twice, which is never the frame of a message.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.formats import JELLY
    >>> from construct_messages.rdf.terms import Term
    >>> encoder = JellyEncoder(JELLY, JELLY.own, EncoderOptions(graphs=False))
    >>> s, p = iri("urn:s"), iri("urn:p")
    >>> first = encoder.encode(Message([Quad(s, p, s)]))
    >>> encoder.encode(Message([Quad(s, p, Term('"o"'))])).hex()
    '090a0712055a030a016f'
    >>> encoder.encode(Message()), encoder.finish()
    (b'\\x00', b'')
    """

    def __init__(self, _format: Format, _syntax: Syntax, options: EncoderOptions) -> None:
        own = options.own if isinstance(options.own, JellyOptions) else JellyOptions()
        # options: the options of the stream, without open ones
        self.options = own = own.for_writing(
            graphs=options.graphs, triple_terms=options.triple_terms
        )
        declared = options.prefixes or {} if own.namespace_declarations else {}
        self._namespaces = {prefix: iri(value) for prefix, value in declared.items()}
        self._frames = FrameWriter(own, self._namespaces)

    def start(self) -> bytes:
        """Returns no bytes: the options are in the first frame."""
        return b""

    def encode(self, message: Message) -> bytes:
        """Encodes one message as a frame, after its length if the stream is delimited."""
        if self.options.delimited:
            return delimited(self._frames.write(message))
        if self._frames.is_open:
            self._frames.message_count += 1
            raise UnsupportedByFormat(
                f"message {self._frames.message_count}: a stream that is not delimited is a single frame",
                hint="write a delimited stream, as is the default",
            )
        return self._frames.write(message)

    def encode_document(self, message: Message) -> bytes:
        """Encodes one message as a frame with its own options and tables, without its length; see
        `Encoder.encode_document`.

        The frame has all namespace declarations of the stream.
        """
        alone = FrameWriter(self.options, self._namespaces, self._frames.message_count)
        self._frames.message_count += 1
        return alone.write(message)

    def finish(self) -> bytes:
        """Returns no bytes, or the only frame of a log without messages: pyjelly considers an empty file damaged."""
        if self._frames.is_open:
            return b""
        frame = options_row(self.options) * 2
        return delimited(frame) if self.options.delimited else frame

    def for_template(self, template: Template) -> PlainTemplateEncoder:
        return PlainTemplateEncoder(self.encode, template)

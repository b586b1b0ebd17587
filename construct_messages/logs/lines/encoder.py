"""Writes N-Triples and N-Quads logs: the plain encoder, and one specialised for a template.

The plain encoder writes a message's quads, whose terms are canonical, one per line. `TemplateLines` writes a whole
batch of solutions by column instead: every slot of the template is a constant or a column of UTF-8 terms, and the log
interleaves and joins them. It reads SPARQL's rules from `template.FORBIDDEN` and produces the same bytes as
instantiating each solution; the plain encoder writes the remaining messages.

RDF 1.2 N-Triples/N-Quads; RDF Messages section 3 for the delimiters. `decoder.py` reads these logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

from construct_messages.logs import EncodedBatch, EncoderOptions
from construct_messages.logs.checking import CapabilityCheck
from construct_messages.logs.text_encoder import PlainTemplateEncoder
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import (
    FORBIDDEN,
    Blank,
    Constant,
    Nested,
    Slot,
    Template,
    Variable,
    coinciding,
)


class LinesEncoder:
    """Writes messages as N-Triples or N-Quads. `syntax`: the delimiters of messages, and the RDF version of the log.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> from construct_messages.rdf.formats.lookup import find_syntax
    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri
    >>> encoder = LinesEncoder(N_TRIPLES, find_syntax("1.2-messages"), EncoderOptions())
    >>> message = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))])
    >>> print((encoder.start() + encoder.encode(message) + encoder.finish()).decode(), end="")
    VERSION "1.2-messages"
    <urn:s> <urn:p> <urn:o> .
    MESSAGE
    """

    def __init__(self, format: Format, syntax: Syntax, _options: EncoderOptions) -> None:
        self._capabilities = CapabilityCheck(format, syntax)
        self.format, self.syntax = format, syntax
        self.before = syntax.delimiter.encode() if syntax.delimiter_first else b""
        self.after = b"" if syntax.delimiter_first else syntax.delimiter.encode()

    def start(self) -> bytes:
        return self.syntax.announcement.encode()

    def encode(self, message: Message) -> bytes:
        return self.before + self.encode_document(message) + self.after

    def encode_document(self, message: Message) -> bytes:
        self._capabilities.check(message)
        return message.lines

    def finish(self) -> bytes:
        return b""

    def for_template(self, template: Template) -> TemplateLines:
        return TemplateLines(self, template)


_STARTS: Final = {
    name: tuple(start.encode() for start in starts) for name, starts in FORBIDDEN.items()
}

_MOST_PATTERNS: Final = 100

# One slot over a batch: a term for all solutions, or a term for each, b"" if it is unbound.
_Column = bytes | list[bytes]


class TemplateLines:
    """Encodes batches of solutions by column. Byte for byte the same as `encode(Message(instantiate(…)))`.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> from construct_messages.rdf.formats.lookup import find_syntax
    >>> from construct_messages.rdf.terms import Term
    >>> from construct_messages.rdf.template import Pattern
    >>> template = Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Constant(Term('"o"'))),))
    >>> lines = LinesEncoder(N_TRIPLES, find_syntax("rdfm"), EncoderOptions()).for_template(template)
    >>> print(bytes(lines.encode(Solutions([[b"<urn:a>", b'"a literal"']]), 0)).decode(), end="")
    # @message
    <urn:a> <urn:p> "o" .
    # @message
    """

    def __init__(self, encoder: LinesEncoder, template: Template) -> None:
        self._encoder, self._plain = encoder, PlainTemplateEncoder(encoder.encode, template)
        self._patterns, self._labels = template.live, template.labels
        # each pattern is compared with each: for very many, encoding each message separately is faster
        self._by_column = len(
            self._patterns
        ) <= _MOST_PATTERNS and encoder._capabilities.support_template(template)
        # the earlier patterns that can produce the same quad; a line is only compared with these
        self._twins: list[list[int]] = [[] for _ in self._patterns]
        for earlier, later in coinciding(self._patterns) if self._by_column else ():
            self._twins[later].append(earlier)
        self._compared = {i for twins in self._twins for i in twins} | {
            j for j, t in enumerate(self._twins) if t
        }

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes a batch, one message per solution; see `TemplateEncoder.encode`. `first`: the number of the first
        solution in the stream, for fresh blank nodes.
        """
        if not self._by_column or not self._encoder._capabilities.support_columns(solutions):
            return self._plain.encode(solutions, first)
        batch = _Batch(solutions.utf8, len(solutions), first, self._labels)
        pieces: list[_Column] = [self._encoder.before]
        lines: dict[int, list[bytes]] = {}
        for index, pattern in enumerate(self._patterns):
            columns = [
                batch.column(slot, name)
                for slot, name in zip(pattern, FORBIDDEN, strict=True)
                if slot is not None
            ]
            gaps = any(map(batch.has_gaps, columns))
            if index not in self._compared and not gaps:
                for column in columns:
                    pieces += (column, b" ")
                pieces.append(b".\n")
                continue
            line = _lines(columns, len(solutions), gaps)
            for twin in self._twins[index]:
                line = [b"" if a == b else b for a, b in zip(lines[twin], line, strict=True)]
            lines[index] = line
            pieces.append(line)
        pieces.append(self._encoder.after)
        self._encoder._capabilities.count(len(solutions))
        return _EncodedColumns(pieces, len(solutions))


def _lines(parts: Sequence[_Column], size: int, gaps: bool) -> list[bytes]:
    """Returns a column of statement lines, without a line if a part is missing."""
    return _format(b"%b " * len(parts) + b".\n", parts, size, gaps)


def _format(form: bytes, parts: Sequence[_Column], size: int, gaps: bool) -> list[bytes]:
    """Returns `form` with the parts of each solution in its places; b"" if a part is missing."""
    # the constants first, once for all
    form %= tuple(part.replace(b"%", b"%%") if isinstance(part, bytes) else b"%b" for part in parts)
    columns = [part for part in parts if not isinstance(part, bytes)]
    if not columns:
        return [form % ()] * size
    if gaps:
        return [b"" if b"" in terms else form % terms for terms in zip(*columns, strict=True)]
    return [form % terms for terms in zip(*columns, strict=True)]


class _EncodedColumns:
    """Encodes a batch as columns of parts of its messages; see `EncodedBatch`."""

    def __init__(self, pieces: Sequence[_Column], size: int) -> None:
        self._columns: list[_Column] = []
        for piece in pieces:  # neighbouring constants joined
            if isinstance(piece, bytes) and self._columns and isinstance(self._columns[-1], bytes):
                self._columns[-1] += piece
            else:
                self._columns.append(piece)
        self._size = size

    def __bytes__(self) -> bytes:
        width = len(self._columns)
        # the constants are inserted first, and then only the differing parts between them
        out = [
            column if isinstance(column, bytes) else b"" for column in self._columns
        ] * self._size
        for index, column in enumerate(self._columns):
            if not isinstance(column, bytes):
                out[index::width] = column
        return b"".join(out)

    def __iter__(self) -> Iterator[bytes]:
        columns = (
            repeat(each, self._size) if isinstance(each, bytes) else each for each in self._columns
        )
        return map(b"".join, zip(*columns, strict=True))


class _Batch:
    """The columns of one batch, each examined once and restricted to legal terms for each of its positions."""

    def __init__(
        self, columns: Sequence[list[bytes]], size: int, first: int, labels: Labels
    ) -> None:
        self._columns, self._size, self._first, self._labels = columns, size, first, labels
        self._fresh: dict[int, list[bytes]] = {}
        self._legal: dict[tuple[Slot, str], _Column] = {}
        self._gaps: set[int] = (
            set()
        )  # ids of the columns with a missing term; valid as long as _legal

    def has_gaps(self, column: _Column) -> bool:
        return id(column) in self._gaps

    def column(self, slot: Slot, position: str) -> _Column:
        key = (slot, position)
        if key not in self._legal:
            self._legal[key] = self._make(slot, position)
        return self._legal[key]

    def _make(self, slot: Slot, position: str) -> _Column:
        match slot:
            case Constant(term):
                return term.encode()
            case Blank(index):
                return self._blanks(index)
            case Variable(index):
                return self._variable(index, position)
            case Nested():
                parts = [
                    self.column(part, name) for part, name in zip(slot, FORBIDDEN, strict=False)
                ]
                gaps = any(map(self.has_gaps, parts))
                triples = _format(b"<<( %b %b %b )>>", parts, self._size, gaps)
                if gaps:
                    self._gaps.add(id(triples))
                return triples

    def _blanks(self, index: int) -> list[bytes]:
        if index not in self._fresh:
            form = self._labels.of_template("%d", index).encode()
            self._fresh[index] = [
                form % number for number in range(self._first, self._first + self._size)
            ]
        return self._fresh[index]

    def _variable(self, index: int, position: str) -> _Column:
        column = self._columns[index]
        forbidden = _STARTS[position]
        if forbidden and _may_start(column, forbidden):
            column = [b"" if term.startswith(forbidden) else term for term in column]
        if not all(column):
            self._gaps.add(id(column))
        return column


def _may_start(column: list[bytes], starts: tuple[bytes, ...]) -> bool:
    """Returns whether a term may have this beginning: in sorted order, it would be between the smallest and the
    largest term.
    """
    first, last = min(column), max(column)
    return any(start <= last and first[: len(start)] <= start for start in starts)

r"""Reads N-Triples and N-Quads logs, from chunks of bytes that may be split anywhere.

This module finds lines, interprets version declarations and delimiters, and assembles messages; `decoder.py` reads
the statements, and `encoder.py` writes logs. A line end is LF, CR or CRLF. Each byte is examined once, independently of
the size of the message. A message only refers to its own terms, not to other parts of the text.

RDF Messages, section 3 (`VERSION "…-messages"` and `MESSAGE`, each on a separate line), and the first draft, section
3.1 (comments that match `/^\s*@message/`, including those after a statement on its line).
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, compress, count
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.checking import missing_feature
from construct_messages.logs.from_pyoxigraph import (
    DEEPEST,
    Masked,
    Rename,
    log_error,
    to_message,
    too_long,
)
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import LABELLED, N_QUADS, RDFM, Format, Syntax
from construct_messages.rdf.labels import Labels, MessageLabels, are_unique, may_have_labels
from construct_messages.rdf.message import Message, make_quads, of_lines, of_terms
from construct_messages.rdf.terms import Lenience, Term, escape, map_blanks, nesting, unescape
from construct_messages.rdf.terms.grammar import (
    CANONICAL_BLANK,
    CANONICAL_IRI,
    CANONICAL_LITERAL,
    ECHAR,
    UCHAR,
)
from construct_messages.rdf.terms.wellformed import OUT_OF_PLACE

# --- texts ----------------------------------------------------------------------------------------
# Messages as text: statements as canonical N-Quads lines, joined by LF without a final one. No I/O.
#
# The empty message is the empty text. Columns of DataFrames and rows of streams contain messages in this form; labels
# of blank nodes are unchanged.
#
# RDF 1.2 N-Quads; RDF Messages, section 3.

_UNBOUNDED: Final = 1 << 62  # no limit: the text is already in memory
_LABELS: Final = Labels("x", keep=True)  # labels are unchanged


def to_text(message: Message) -> str:
    """Returns a message as text.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import Term
    >>> to_text(Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), Term("<urn:g>"))]))
    '<urn:s> <urn:p> "o" <urn:g> .'
    """
    return message.lines[:-1].decode()


def lines_read_back(message: Message) -> bytes | None:
    r"""The lines of a message that are read as the terms that it has, so that it is checked; None: it may not be RDF.

    This takes less time than `Checker`, which looks at each term, unless the terms were met before.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import Term
    >>> message = Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'))])
    >>> lines_read_back(message), message.checked
    (b'<urn:s> <urn:p> "o" .\n', True)
    """
    if message.checked:
        return message.lines
    wire = compiled.wire
    lines = _lines_read_back(message) if wire is None else wire.lines_of(message.statements)
    message.checked = lines is not None
    return lines


def _lines_read_back(message: Message) -> bytes | None:
    try:
        lines = message.lines
    except UnicodeEncodeError:  # surrogates
        return None
    read = read_lines(lines, graphs=True)
    is_same = read.terms == list(chain.from_iterable(message.statements))
    return lines if is_same and not any(read.others) else None


def to_messages(
    texts: Sequence[str], first: int = 1, lenience: Lenience | None = None
) -> list[Message]:
    r"""Returns the messages of texts, with terms in canonical form.

    >>> to_messages(["", '<urn:s> <urn:p> "o" .\n<urn:s> <urn:p> "o" <urn:g> .'])
    [<Message, empty>, <Message of 2 quads: <urn:s> <urn:p> "o" . <urn:s> <urn:p> "o" <urn:g> .>]
    """
    try:
        messages = _decode(texts, lenience)
    except LogError:
        messages = []  # the same as below for one text
    if len(messages) == len(texts):
        return messages
    return [_only_message(text, number, lenience) for number, text in enumerate(texts, first)]


def _only_message(text: str, number: int, lenience: Lenience | None) -> Message:
    try:
        messages = _decode([text], lenience)
    except LogError as error:
        # the delimiter is on its own line
        position = error.position and error.position._replace(line=error.position.line - 1)
        raise LogError(error.message, number=number, position=position, hint=error.hint) from error
    if len(messages) > 1:
        raise LogError(
            "a delimiter within a message",
            number=number,
            hint="give each message a text of its own",
        )
    return messages[0]


def _decode(texts: Sequence[str], lenience: Lenience | None) -> list[Message]:
    """Returns the messages of texts, each of which begins after a delimiter."""
    decoder = LinesDecoder(
        N_QUADS, RDFM, DecoderOptions(message_bytes=_UNBOUNDED, labels=_LABELS, lenience=lenience)
    )
    log = "".join([f"{RDFM.delimiter}{text}\n" for text in texts])
    return [*decoder.feed(log.encode()), *decoder.close()]


# --- statements -----------------------------------------------------------------------------------
# Reads lines of N-Triples and N-Quads as quads: usual ones by the compiled module or a regular expression, all others
# by pyoxigraph.
#
# Nearly every line of a log of this package is a statement in canonical form, whose terms already have the form of
# `rdf/terms/`. The expression accepts a subset of these. The compiled module also accepts statements as others write
# them: with escapes, language tags in upper case, `xsd:string`, other white space, comments and triple terms. Both
# accept a subset of the statements that pyoxigraph accepts, as the same terms. pyoxigraph parses all other statements,
# and alone raises errors.
#
# RDF 1.2 N-Triples and N-Quads, section 2 (the languages) and N-Triples section 4 (the canonical form).


@cache
def _statement(graphs: bool) -> re.Pattern[str]:
    """Returns the expression for a line, with groups for its subject, predicate, object and graph."""
    node = f"{CANONICAL_IRI}|{CANONICAL_BLANK}"
    graph = rf"(?: ({node}))?" if graphs else "((?!))?"
    return re.compile(rf"(?m:^)({node}) ({CANONICAL_IRI}) ({node}|{CANONICAL_LITERAL}){graph} \.\n")


def count_canonical(documents: Sequence[bytes], graphs: bool) -> int | None:
    """Returns the number of lines of all documents together, if each consists of one or more distinct canonical
    statements, each with a final LF; None: one does not.
    """
    if compiled.wire is not None:
        return compiled.wire.count_canonical([*documents], graphs)
    for document in documents:
        lines = document.splitlines(keepends=True)
        if not document.endswith(b"\n") or len(set(lines)) < len(lines):
            return None
    try:
        others = read_lines(b"".join(documents), graphs=graphs).others
    except UnicodeDecodeError:
        return None
    return None if any(others) else len(others) - 1


class StatementLines(NamedTuple):
    # subject, predicate, object and graph of each usual statement in turn
    terms: list[Term | None]
    # the places among these of blank nodes, and of triple terms with one, ascending; their labels are unchanged
    blanks: list[int]
    # the other lines before each of these statements, with their ends, and those after the last; mostly empty
    others: list[str]


def read_lines(lines: bytes, *, graphs: bool, triple_terms: bool = False) -> StatementLines:
    r"""Returns the usual statements of complete lines, each with a final LF; raises `UnicodeDecodeError`.
    `triple_terms`: whether statements with triple terms may be among them.

    >>> found = read_lines(b'<urn:s> <urn:p> "o"@en .\n_:b <urn:p> <urn:a b> .\n', graphs=False)
    >>> found.terms[2], found.others
    ('"o"@en', ['', '_:b <urn:p> <urn:a b> .\n'])
    """
    if compiled.wire is not None and (
        found := compiled.wire.statements(lines, graphs, triple_terms)
    ):
        return StatementLines(*cast("tuple[list[Term | None], list[int], list[str]]", found))
    text, end = lines.decode(), 0
    terms: list[Term | None] = []
    others = []
    for statement in _statement(graphs).finditer(text):
        others.append(text[end : statement.start()])
        terms += cast("list[Term | None]", statement.groups())
        end = statement.end()
    others.append(text[end:])
    blanks = [place for place, term in enumerate(terms) if term is not None and term[0] == "_"]
    return StatementLines(terms, blanks, others)


class LineParser:
    """Parses lines of one format that are not canonical; without lenience, terms that are not RDF are errors."""

    def __init__(self, format: Format, lenience: Lenience | None = None) -> None:
        self._graphs, self._lenience = format.graphs, lenience
        self._lenient = lenience is not None and not lenience.is_strict
        self._parser = ox.RdfFormat.N_QUADS if format.graphs else ox.RdfFormat.N_TRIPLES

    def parse(self, line: str) -> Message:
        """Returns the statement of a line in any form, with its blank node labels; none if lenience skips it."""
        # of this many characters, most are in a string
        if line.count("<<(") > DEEPEST and nesting(line) > DEEPEST:
            raise SyntaxError(f"more than {DEEPEST} triple terms in each other", (None, 1, 1, None))
        try:
            return self._statement(line) if len(line) <= _LONG else self._parse_long(line)
        except TermError as error:  # about an escape in a very long string
            if self._lenience is None or not self._lenience.skips(error):
                raise
            return Message()

    def _statement(self, line: str) -> Message:
        try:
            return self._parsed(line)
        except SyntaxError as error:
            masked = Masked.of(line, self._lenience)
            if masked is None:
                return self._without(line, error)
        try:
            return self._parsed(masked.text, masked)
        except SyntaxError as error:
            return self._without(masked.text, error)

    def _parsed(self, text: str, masked: Masked | None = None) -> Message:
        quads = ox.parse(text, format=self._parser, lenient=self._lenient)
        return to_message(quads, None, self._lenience, masked)

    def _without(self, line: str, error: SyntaxError) -> Message:
        """Leaves out a line if it is a statement but for the positions of its terms; otherwise raises the error."""
        wrong = TermError(f"{line.strip()}: {error.msg.rpartition(': ')[2]}", kind=OUT_OF_PLACE)
        if self._lenient and _is_statement(line, graphs=self._graphs):
            assert self._lenience is not None
            if self._lenience.skips(wrong):
                return Message()
        raise error

    def _parse_long(self, line: str) -> Message:
        # The parser reads at most 16 MiB: in a longer line, numbers replace the strings.
        strings: list[str] = []

        def number(match: re.Match[str]) -> str:
            strings.append(match[1])
            return f'"{len(strings) - 1}"'

        short = _ANY_STRING.sub(number, line)
        if len(short) > _LONG:
            raise LimitExceeded(
                f"{len(short)} characters of one line outside of its strings are more than {_LONG}",
                hint="shorten its IRIs, and look for an unknown escape",
            )

        def string(match: re.Match[str]) -> str:
            return f'"{escape(unescape(strings[int(match[1])]))}"'

        try:
            statement = self._statement(short)
        except SyntaxError as error:
            raise SyntaxError(error.msg, (None, 1, 1, None)) from error
        return Message(
            make_quads(
                [None if term is None else _NUMBER.sub(string, term) for term in quad]
                for quad in statement
            )
        )


# --- other lines ----------------------------------------------------------------------------------------------------

_LONG: Final = 1 << 21
"""The maximal number of characters of a line that pyoxigraph gets unchanged."""

_CHARS: Final = r'[^"\\\n\r]*+'
_ANY_STRING: Final = re.compile(rf'"({_CHARS}(?:(?:\\[{ECHAR}]|{UCHAR}){_CHARS})*+)"')
_NUMBER: Final = re.compile('"([0-9]+)"')

_TERM: Final = (
    r'(?:<(?!<)[^<>\s]*+>|_:[^\s<>"]++|"(?:[^"\\]|\\.)*+"(?:@[A-Za-z0-9\-]++|\^\^<[^<>\s]*+>)?+)'
)
_TRIPLE_TERM: Final = re.compile(rf"<<\(\s*+{_TERM}\s*+{_TERM}\s*+{_TERM}\s*+\)>>")


def _is_statement(line: str, *, graphs: bool) -> bool:
    """Returns whether a line has as many terms as a statement, and a dot.

    >>> [_is_statement(line, graphs=False) for line in ('"a" _:b <<( _:c "d" <urn:e> )>> .', "<urn:a> <urn:b> .")]
    [True, False]
    """
    while "<<(" in line and (simpler := _TRIPLE_TERM.sub("_:t ", line)) != line:
        line = simpler
    graph = rf"(?:\s*+{_TERM})?+" if graphs else ""
    return re.fullmatch(rf"(?:\s*+{_TERM}){{3}}{graph}\s*+\.\s*+(?:#.*)?", line) is not None


# --- documents ------------------------------------------------------------------------------------
# Reads documents of N-Triples and N-Quads, each with one message; those in canonical form are not parsed into terms.
#
# The lines of such a document are those of its message, so checking them is sufficient. `decoder.py` reads all other
# documents, and alone raises errors. A document is only used unchanged if the decoder would read the same statements,
# in the same order and with the same labels.
#
# RDF Messages, section 3 (documents); RDF 1.2 N-Triples, section 4 (the canonical form).


def read_document(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    r"""Returns the messages of a document; see `Format.document_reader`.

    >>> from construct_messages.rdf.formats import N_QUADS
    >>> list(read_document(N_QUADS, b'<urn:s> <urn:p> "o" <urn:g> .\n', DecoderOptions()))
    [<Message of 1 quad: <urn:s> <urn:p> "o" <urn:g> .>]
    """
    with_end = document if document.endswith(b"\n") else document + b"\n"
    lines = document_lines(format, (with_end,), options) if document else None
    if lines is None:
        return decoded(format, document, options)
    return iter((of_lines(lines[0]),))  # not a generator, which would take longer than the rest


def decoded(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """Returns the messages of a document in any form."""
    decoder = LinesDecoder(format, None, options)
    yield from decoder.feed(document)
    yield from decoder.close()


def document_lines(
    format: Format, documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    r"""Returns the lines of documents if all can be used unchanged; see `Format.document_lines`.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> document_lines(N_TRIPLES, [b'<urn:s> <urn:p> "o" .\n'], DecoderOptions())
    [b'<urn:s> <urn:p> "o" .\n']
    """
    if max(map(len, documents), default=0) >= options.message_bytes:
        return None
    if count_canonical(documents, format.graphs) is None or not _keep_labels(documents, options):
        return None
    return documents


def _keep_labels(documents: Sequence[bytes], options: DecoderOptions) -> bool:
    """Returns whether a decoder keeps the labels of all blank nodes in documents of UTF-8."""
    texts = [each.decode() for each in documents if may_have_labels(each)]
    return not texts or (options.shared_labels is not False and all(map(are_unique, texts)))


# --- decoder --------------------------------------------------------------------------------------

_BLOCK: Final = 1 << 16
"""The number of bytes of lines that are parsed together: large enough to be fast, and small compared to the limit of
a message.
"""

_DIRECTIVE: Final = re.compile(
    r'[ \t]*+(?:(?P<message>MESSAGE)[ \t]*+|(?P<version>VERSION)[ \t]*+"(?P<label>[^"\\]*+)"[ \t]*+)?'
    r"(?:#(?P<comment>.*))?"
)
"""Lines other than statements, including blank ones."""

_COMMENT: Final = re.compile(r'(?:[^<"#]|<[^>]*+>|"(?:[^"\\]|\\.)*+")*+#(?P<comment>.*)')
"""A statement with a comment after it."""

_MEANINGLESS: Final = re.compile(r"(?:[ \t]*+(?:#[^@\n]*+)?\n)++")
"""Blank lines, and comments other than delimiters: a few bytes of a compressed log can contain millions of them."""

_OTHERS: Final = re.compile(rf"{_MEANINGLESS.pattern}|.*\n")
"""A line, or several meaningless ones together."""

_DELIMITS: Final = re.compile(r"\s*@message")
_LIKE_A_DIRECTIVE: Final = re.compile(r"(?:message|version)\b", re.IGNORECASE)
_OBJECT: Final = re.compile(r'"|<<\(')

_ALONE: Final = (
    "write MESSAGE and VERSION in upper case, each on a line of its own, a label in double quotes"
)
_ONE_LINE: Final = "write a statement on one line, with a dot at its end"
_ANNOUNCE: Final = (
    'begin the log with VERSION "1.2-messages", or add version=1.2-messages to its media type'
)


class LinesDecoder:
    r"""Reads an N-Triples or N-Quads log; see `Decoder`.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> decoder = LinesDecoder(N_TRIPLES, None, DecoderOptions(labels=Labels("x")))
    >>> list(decoder.feed(b'VERSION "1.2-messages"\n_:b <urn:p> <urn:o> .\nMESS'))
    []
    >>> list(decoder.feed(b"AGE\n")), decoder.syntax.label, list(decoder.close())
    ([<Message of 1 quad: _:x_m1b0 <urn:p> <urn:o> .>], '1.2-messages', [])
    """

    options: Final = None

    def __init__(
        self,
        format: Format,
        # the syntax of the media type; None: the log declares it
        syntax: Syntax | None,
        options: DecoderOptions,
        *,
        # whether the log begins before the first byte, so that the first delimiter ends a message, possibly an empty
        # one
        continued: bool = False,
    ) -> None:
        self._format, self._message_bytes, self._continued = (
            format,
            options.message_bytes,
            continued,
        )
        self._labels = options.labels or Labels()
        self._shared_labels, self._comments = options.shared_labels is not False, options.comments
        self._parser = LineParser(format, options.lenience)
        self._keeps_lines = options.keep_lines
        self._use(syntax)
        # unread bytes: of an incomplete line, line end or byte order mark
        self._rest, self._undecided, self._begun = bytearray(), b"", False
        self._lines = 0  # the number of lines that have been read
        # the line of the last delimiter, from 1; 0: there was none
        self.delimiter = 0
        # the open message: its number, the bytes of its lines, its quads
        self._number, self._size = 1, 0
        self._own: MessageLabels | None = None  # set if it has blank nodes
        self._terms: list[Term | None] | None = None  # None: it has no quads yet
        self._ready: list[Message] = []  # complete messages that were not returned yet

    def _use(self, syntax: Syntax | None) -> None:
        self._syntax = syntax
        # whether MESSAGE delimits messages, and blank nodes always belong to their message
        self._scoped = syntax is not None and syntax.label != RDFM.label
        self._usual_delimiter = "" if syntax is None else syntax.delimiter

    @property
    def syntax(self) -> Syntax | None:
        return self._syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Always empty: these formats have no prefixes."""
        return MappingProxyType({})

    # --- bytes to lines ---------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> Iterator[Message]:
        data, self._undecided = self._undecided + data, b""
        if not self._begun:
            if len(data) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(data):
                self._undecided = data
                return
            data, self._begun = data.removeprefix(codecs.BOM_UTF8), True
        if data.endswith(b"\r"):
            data, self._undecided = data[:-1], b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        start, last = 0, data.rfind(b"\n") + 1
        while start < last:
            end = data.find(b"\n", min(start + _BLOCK, last - 1)) + 1
            block = data[start:end]
            if self._rest:
                block = bytes(self._rest) + block
                self._rest.clear()
            try:
                self._read(block)
            except (LogError, LimitExceeded):
                yield from self._take()
                raise
            yield from self._take()
            start = end
        self._rest += data[last:]
        if self._size + len(self._rest) > self._message_bytes:
            raise self._too_large()

    def close(self) -> Iterator[Message]:
        self._begun = True
        if self._rest or self._undecided:
            yield from self.feed(b"\n")
        if self._terms is not None or (self.delimiter and not self._scoped):
            self._delimit(self._lines)
            yield from self._take()

    def _take(self) -> list[Message]:
        ready, self._ready = self._ready, []
        return ready

    def _read(self, block: bytes) -> None:
        """Reads complete lines, each with a final LF."""
        if self._size + len(block) > self._message_bytes:
            # with a delimiter among them, each message may still be small enough
            lines = block.splitlines(keepends=True)
            if len(lines) == 1:
                raise self._too_large()
            for line in lines:
                self._read(line)
            return
        whole = (block, (), 0, b"")
        head, complete, statements, tail = self._complete(block) if self._keeps_lines else whole
        self._read_statements(head)
        if complete:
            self._ready += map(of_lines, complete)
            self._number += len(complete)
            self._lines += statements + len(complete)
            self.delimiter = self._lines
        if tail:
            self._read_statements(tail)

    def _complete(self, block: bytes) -> tuple[bytes, Sequence[bytes], int, bytes]:
        """Returns the lines up to the first delimiter, those of each complete message after it, their number, and the
        other lines.

        If a complete message cannot keep its lines, all lines are in the first part.
        """
        delimiter = b"\n" + self._usual_delimiter.encode()
        head, *between = block.split(delimiter) if len(delimiter) > 1 else (block,)
        complete = [lines + b"\n" for lines in between[:-1]]
        if complete and not may_have_labels(block):
            statements = count_canonical(complete, self._format.graphs)
            if statements is not None:
                return head + delimiter, complete, statements, between[-1]
        return block, (), 0, b""

    def _read_statements(self, block: bytes) -> None:
        """Reads complete lines, whose total size is within the bound."""
        # a version in it, which may have none, is only known once the lines before are
        triple_terms = (
            b"VERSION" not in block if self._syntax is None else self._syntax.triple_terms
        )
        try:
            read = read_lines(block, graphs=self._format.graphs, triple_terms=triple_terms)
        except UnicodeDecodeError as error:
            start = block.rfind(b"\n", 0, error.start) + 1
            if start:
                self._read_statements(block[:start])
            column = len(block[start : error.start].decode()) + 1
            raise self._error(
                f"the byte 0x{block[error.start]:02X} is not UTF-8",
                self._lines + 1,
                column,
                "logs are written in UTF-8",
            ) from error
        before = self._lines
        self._read_lines(read)
        if self.delimiter > before:
            after = self._lines - self.delimiter
            _, *lines = block.rsplit(b"\n", after + 1)
            self._size = sum(map(len, lines)) + after
        else:
            self._size += len(block)

    # --- lines to messages ------------------------------------------------------------------------------------------

    def _read_lines(self, read: StatementLines) -> None:
        terms, blanks, others = read
        usual, ready = self._usual_delimiter, self._ready
        blanks.append(len(terms))
        renamed = 0  # the number of renamed blank nodes
        line, start = self._lines, 0  # the numbers of lines and of statements that were read
        for index in compress(count(), others):
            other = others[index]
            if other == "\n" or (other != usual and _MEANINGLESS.fullmatch(other)):
                line += other.count("\n")
                continue
            if blanks[renamed] < 4 * index:
                after = bisect_left(blanks, 4 * index, renamed)
                self._rename(terms, blanks[renamed:after])
                renamed = after
            quads = terms[4 * start : 4 * index]
            line, start = line + index - start, index
            if other == usual and quads and self._terms is None:
                # the most frequent case; the same as below with fewer calls
                ready.append(of_terms(quads))
                self._own = None
                self._number += 1
                self.delimiter = line = line + 1
            else:
                self._take_in(quads)
                line = self._read_others(other, line)
        self._rename(terms, blanks[renamed:-1])
        self._take_in(terms[4 * start :])
        self._lines = line + len(others) - 1 - start

    def _rename(self, terms: list[Term | None], blanks: list[int]) -> None:
        """Assigns labels to the blank nodes at these places, or in triple terms there, in the open message."""
        if blanks:
            rename = self._scope()
            for place in blanks:
                term: Term = terms[place]  # type: ignore[assignment] # none of these is None
                terms[place] = rename(term) if term[0] == "_" else map_blanks(term, rename)

    def _read_others(self, text: str, line: int) -> int:
        """Processes lines other than canonical statements, after a number of lines; returns the number of processed
        lines.
        """
        for other in _OTHERS.findall(text):
            ends = other.count("\n")
            line += ends
            if other == self._usual_delimiter:
                self._delimit(line)
            elif ends == 1:  # several meaningless lines
                self._read_other(other[:-1], line)
        return line

    def _read_other(self, text: str, line: int) -> None:
        """Processes a line that is not a canonical statement."""
        match = _DIRECTIVE.fullmatch(text)
        if match is None:
            self._state(text, line)
            match = _COMMENT.match(text) if "@message" in text else None
        elif match["message"]:
            self._expect_delimiter(line, match.start("message") + 1)
            self._delimit(line)
        elif match["version"]:
            self._announce(match["label"], line, match.start("version") + 1)
        if self._syntax is None and not self._comments:
            return
        if match is not None and match["comment"] is not None and _DELIMITS.match(match["comment"]):
            if self._syntax is None:
                self._use(RDFM)
            if not self._scoped:
                self._delimit(line)

    def _state(self, text: str, line: int) -> None:
        """Adds the statement of a line to the message."""
        try:
            statement = self._parser.parse(text)
        except SyntaxError as error:
            raise log_error(
                error, self._number, line, hint=_hint(text, error.offset or 1)
            ) from error
        except TermError as error:
            raise self._error(error.message, line, hint=error.hint) from error
        except LimitExceeded as error:
            message = f"message {self._number}: {error.message}"
            raise LimitExceeded(message, position=Position(line, 1), hint=error.hint) from error
        if not statement:  # skipped, perhaps with others: it is a message nevertheless
            self._terms = self._terms or []
        for quad in statement:
            if self._syntax is not None and (feature := missing_feature(self._syntax, quad.object)):
                place = _OBJECT.search(text)
                assert place is not None
                raise self._error(
                    f"{self._syntax.version} has no {feature}", line, place.start() + 1
                )
            rename = self._scope()
            self._take_in([term and map_blanks(term, rename) for term in quad])

    def _announce(self, label: str, line: int, column: int) -> None:
        if not label.endswith("-messages"):
            return  # a version of RDF, which is valid for every statement here
        syntax = next((syntax for syntax in LABELLED if syntax.label == label), None)
        if syntax is None:
            known = ", ".join(syntax.label for syntax in LABELLED)
            raise self._error(
                f'VERSION "{label}" is not known', line, column, f"choose one of {known}"
            )
        if self._syntax is None:
            if self._terms:
                raise self._error(
                    f'VERSION "{label}" after a statement', line, column, "begin the log with it"
                )
            self._use(syntax)
        elif self._syntax.label != label:
            raise self._error(
                f'VERSION "{label}" in a log of {self._syntax.label}',
                line,
                column,
                "give logs of their own to each",
            )

    def _expect_delimiter(self, line: int, column: int) -> None:
        if self._syntax is None:
            raise self._error("MESSAGE without an announcement", line, column, _ANNOUNCE)
        if not self._scoped:
            raise self._error("MESSAGE is no delimiter of rdfm", line, column, "write # @message")

    def _delimit(self, line: int) -> None:
        # the first comment opens the first message, unless that has already begun
        terms = self._terms
        if self._scoped or self.delimiter or terms is not None or self._continued:
            self._ready.append(Message() if terms is None else of_terms(terms))
            self._terms = self._own = None
            self._number += 1
        self.delimiter = line

    def _take_in(self, terms: list[Term | None]) -> None:
        if self._terms is None:
            self._terms = terms or None
        else:
            self._terms += terms

    def _scope(self) -> Rename:
        """Assigns labels to the blank nodes of the open message."""
        if self._shared_labels and not self._scoped:
            return self._labels.in_log
        if self._own is None:
            self._own = self._labels.in_message(self._number)
        return self._own.__getitem__

    def _error(self, message: str, line: int, column: int = 1, hint: str | None = None) -> LogError:
        return LogError(message, number=self._number, position=Position(line, column), hint=hint)

    def _too_large(self) -> LimitExceeded:
        return too_long(self._number, self._message_bytes, Position(self._lines + 1, 1))


def _hint(text: str, column: int) -> str | None:
    """Returns the hint for text that pyoxigraph rejects."""
    if _LIKE_A_DIRECTIVE.match(text, column - 1):
        return _ALONE
    return _ONE_LINE if column > len(text) else None

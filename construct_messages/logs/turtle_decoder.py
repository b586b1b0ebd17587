"""Turtle and TriG logs, read: what a delimiter means here, and the statements between two of them.

RDF Messages, section 3. `turtle_scanner.py` finds the marks, pyoxigraph reads the statements of many messages at once:
behind each message stands a statement that no log holds. So prefixes and the base persist, and a delimiter within a
statement or an open graph block shows as a syntax error.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, cast
from uuid import uuid4

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, UsageError
from construct_messages.formats import RDFM, SYNTAXES, Format, Syntax
from construct_messages.logs.carry import lacks
from construct_messages.logs.parsed import DEEPEST, Labels, log_error
from construct_messages.logs.turtle_scanner import Kind, Mark, TurtleScanner, place_behind
from construct_messages.message import Message, Quad
from construct_messages.terms import PN_CHARS, Term, map_blanks

_BATCH: Final = 1 << 20
"""How many bytes of statements are parsed at once, if no message is longer."""


_SHOWN: Final = {
    Kind.MESSAGE: "MESSAGE",
    Kind.COMMENT: "# @message",
    Kind.VERSION: "VERSION",
    Kind.DOTLESS: "@message",
}

# what holds no bracket, and the brackets of triple terms
_BRACKETS: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"""|"(?:[^"\\]++|\\.)*+"'''
    r"""|'''(?:[^'\\]++|\\.|'{1,2}+(?!'))*+'''|'(?:[^'\\]++|\\.)*+'"""
    r"""|\\.|#[^\r\n]*+|<<\(|\)>>|<<|<[^<>\s]*+>""",
    re.DOTALL,
)


_BEFORE_COLON: Final = re.compile(rf"(?<![{PN_CHARS}.])[{PN_CHARS}.]++(?=:)")
_NUMBER: Final = re.compile(r"^[0-9.\-]*+(?:[eE]-?[0-9]++)?+")


class _Piece(NamedTuple):
    """What stands between two delimiters.

    Args:
        text: as it is.
        start: where in the log it begins.
        opened: whether it is a message without a statement, too.
        behind: what stands behind it.
    """

    text: str
    start: Position
    opened: bool
    behind: str


class TurtleDecoder:
    """Reads a Turtle or TriG log; see `Decoder`.

    Args:
        format: Turtle or TriG.
        syntax: what the media type announces; None: nothing.
        base: the IRI that relative IRIs resolve against, until the log says otherwise.
        message_bytes: how long a message may be, with its delimiter.

    Raises:
        UsageError: a base that is no absolute IRI.

    >>> from construct_messages.formats import find_format
    >>> decoder = TurtleDecoder(find_format("ttl")[0], message_bytes=1 << 20)
    >>> log = b'VERSION "1.2-messages" PREFIX : <urn:x:> _:a :p 1 . MESSAGE _:a :p 2 .'
    >>> for message in (*decoder.feed(log), *decoder.close()):
    ...     print(message)
    <Message of 1 quad: _:m1b0 <urn:x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .>
    <Message of 1 quad: _:m2b0 <urn:x:p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .>
    """

    def __init__(
        self, format: Format, syntax: Syntax | None = None, *, base: str | None = None, message_bytes: int
    ) -> None:
        self._format = format
        self._ox_format = ox.RdfFormat.TRIG if format.graphs else ox.RdfFormat.TURTLE
        end = f"<urn:uuid:{uuid4()}>"
        # stands nowhere but between statements; and what it is read as
        self._end = f"GRAPH {end} {{ {end} {end} {end} }}" if format.graphs else f"{end} {end} {end} ."
        self._end_read = " ".join([end] * (4 if format.graphs else 3))
        self._message_bytes = message_bytes
        self._prefixes: dict[str, str] = {}  # but those that the parser has met in the statements read last
        self._number = 0  # of the message read last
        self._pieces: list[_Piece] = []  # each of them a message, which is yet to be read
        self._waiting = 0  # length of their texts
        self._scanner = TurtleScanner()
        self._beginning: bytes | None = b""  # until it is known whether it is a BOM
        # what delimits the messages; under rdfm, once the first delimiter is met, which may stand before all of them
        self._delimiter: Kind | None = None
        self._syntax = syntax
        if syntax is not None and not syntax.delimiter_first:
            self._scoped()
        try:
            self._parser = ox.parse(b"", format=self._ox_format, base_iri=base)
        except ValueError as error:
            raise UsageError(f"the base <{base}> is no absolute IRI: {error}") from error

    @property
    def syntax(self) -> Syntax | None:
        """How the log delimits its messages, as far as it is known yet."""
        return self._syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes declared so far."""
        return {**self._prefixes, **self._parser.prefixes}

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete now; see `Decoder.feed`."""
        if self._beginning is not None:
            data = self._beginning + data
            if BOM_UTF8.startswith(data):
                self._beginning = data
                return
            data, self._beginning = data.removeprefix(BOM_UTF8), None
        yield from self._read(self._scanner.feed(data))

    def close(self) -> Iterator[Message]:
        """The message that only the end completes; see `Decoder.close`."""
        if self._beginning and self._beginning != BOM_UTF8:
            yield from self._read(self._scanner.feed(self._beginning))
        yield from self._read(self._scanner.close())
        self._take(len(self._scanner.text), "the log ends", opened=self._delimiter is Kind.COMMENT)
        yield from self._messages()

    # --- delimiters ---

    def _read(self, marks: Iterable[Mark]) -> Iterator[Message]:
        try:
            for mark in marks:
                self._bound(mark.end)
                if mark.kind is self._delimiter:
                    self._take(mark.start, _SHOWN[mark.kind], opened=True)
                    self._text(mark.start, mark.end)
                    self._scanner.cut(mark.end)
                    if self._waiting >= _BATCH:
                        yield from self._messages()
                elif mark.kind is Kind.COMMENT:  # the first: it only opens a message, unless one stands before it
                    yield from self._messages()
                    self._syntax, self._delimiter = self._syntax or RDFM, Kind.COMMENT
                    self._take(mark.start, _SHOWN[mark.kind], opened=False)
                    yield from self._messages()
                    self._text(mark.start, mark.end)
                    self._scanner.cut(mark.end)
                else:
                    yield from self._messages()
                    self._heed(mark)
                    yield from self._messages()
            self._bound(len(self._scanner.text))
        except (LogError, LimitExceeded):
            yield from self._messages()
            raise
        yield from self._messages()

    def _heed(self, mark: Mark) -> None:
        """Does what a mark says that is not one more delimiter; no message is waiting to be read."""
        match mark.kind:
            case Kind.VERSION:
                if mark.label.endswith("-messages"):
                    self._announce(mark)
            case Kind.MESSAGE if self._syntax is None:
                hint = 'begin the log with VERSION "1.2-messages", or say version=1.2-messages in its media type'
                raise self._error(mark, "MESSAGE in a log that announces no messages", hint)
            case Kind.MESSAGE:
                hint = "delimit messages by comments, as in # @message"
                raise self._error(mark, "MESSAGE in a log of messages=rdfm", hint)
            case Kind.DOTLESS:
                raise self._error(mark, "@message without a dot", "write @message . or MESSAGE")

    def _announce(self, mark: Mark) -> None:
        announced = next((syntax for syntax in SYNTAXES if syntax.version == mark.label), None)
        shown = f'VERSION "{mark.label}"'
        if announced is None:
            known = ", ".join(syntax.label for syntax in SYNTAXES if syntax is not RDFM)
            raise self._error(mark, f"{shown} is unknown", f"choose one of {known}")
        if self._syntax is not None and announced != self._syntax:
            hint = "announce one version, as the media type does if it announces any"
            raise self._error(mark, f"{shown} in a log of {self._syntax.label}", hint)
        if self._syntax is None:
            if self._statements_before(mark):
                raise self._error(mark, f"{shown} behind statements", "announce it at the beginning of the log")
            self._scanner.cut(mark.start)
            self._syntax = announced
            self._scoped()

    def _scoped(self) -> None:
        self._delimiter, self._scanner.comments = Kind.MESSAGE, False

    def _error(self, mark: Mark, message: str, hint: str) -> LogError:
        """What is wrong with a mark, unless something before it in the same message is wrong already."""
        place = self._scanner.place_of(mark.start)
        self._statements_before(mark)
        return LogError(message, number=self._number + 1, position=place, hint=hint)

    def _statements_before(self, mark: Mark) -> bool:
        """Whether there are any in the message that the mark stands in."""
        self._take(mark.start, _SHOWN[mark.kind], opened=False)
        return any(quads for _, quads in self._parse())

    # --- statements ---

    def _take(self, end: int, behind: str, *, opened: bool) -> None:
        """Has the text that ends there wait to be read."""
        text = self._text(0, end)
        if text.count("<<(") > DEEPEST:
            self._check_depth(text)
        self._pieces.append(_Piece(text, self._scanner.place, opened, behind))
        self._waiting += end

    def _text(self, start: int, end: int) -> str:
        try:
            return self._scanner.text[start:end].decode()
        except UnicodeDecodeError as error:
            place = self._scanner.place_of(start + error.start)
            raise LogError("not UTF-8", number=self._next, position=place, hint="logs are UTF-8") from error

    def _check_depth(self, text: str) -> None:
        depth = 0
        for match in _BRACKETS.finditer(text):
            if match.group() == "<<(":
                depth += 1
                if depth > DEEPEST:
                    raise LogError(
                        f"more than {DEEPEST} triple terms in each other",
                        number=self._next,
                        position=place_behind(self._scanner.place, text[: match.start()]),
                    )
            elif match.group() == ")>>":
                depth -= 1

    @property
    def _next(self) -> int:
        """The number of the message whose text comes next."""
        return self._number + len(self._pieces) + 1

    def _bound(self, size: int) -> None:
        if size > self._message_bytes:
            raise LimitExceeded(
                f"message {self._next} is longer than {self._message_bytes} bytes", hint="allow larger messages"
            )

    def _messages(self) -> Iterator[Message]:
        """The messages that are waiting."""
        for piece, quads in self._parse():
            if quads or piece.opened:
                message = self._message(quads, piece)
                self._number += 1
                yield message

    def _parse(self) -> Iterator[tuple[_Piece, list[str]]]:
        """The pieces that are waiting, with their quads as N-Quads has them but for the dot."""
        if not self._pieces:
            return
        pieces, self._pieces, self._waiting = self._pieces, [], 0
        text = "".join(f"{piece.text}\n{self._end}\n" for piece in pieces)
        self._prefixes |= self._parser.prefixes
        used = sorted(_names(text) & self._prefixes.keys())
        head = "".join(f"PREFIX {prefix}: <{self._prefixes[prefix]}>\n" for prefix in used)
        text = head + text
        self._parser = ox.parse(text, format=self._ox_format, base_iri=self._parser.base_iri)
        read = 0
        quads: list[str] = []
        try:
            for quad in self._parser:
                line = str(quad)
                if line == self._end_read:
                    yield pieces[read], quads
                    read, quads = read + 1, []
                else:
                    quads.append(line)
        except SyntaxError as error:
            if len(pieces) > 1:
                # what the parser says may depend on what follows, which other chunks would not have put there
                self._pieces = [pieces[read]]
                yield from self._parse()
            start = len(head) + sum(len(piece.text) + len(self._end) + 2 for piece in pieces[:read])
            raise self._syntax_error(error, pieces[read], text, start) from error
        except MemoryError as error:
            raise LimitExceeded(
                f"message {self._number + 1}: a term is longer than the parser takes: {error}"
            ) from error

    def _syntax_error(self, error: SyntaxError, piece: _Piece, text: str, start: int) -> LogError:
        """The error of a piece that begins at character `start` of the text that was parsed."""
        first = Position.at(text, start).line
        behind = Position.at(text, start + len(piece.text) + 1).line
        assert error.lineno is not None
        assert error.end_lineno is not None
        if error.lineno >= behind:
            return LogError(
                f"{piece.behind} within a statement or an open graph block",
                number=self._number + 1,
                position=place_behind(piece.start, piece.text),
                hint="end the statement with a dot, the graph block with a brace",
            )
        if error.end_lineno >= behind:
            error.msg = "a string or an IRI that does not end"
        error.lineno -= first - 1
        return log_error(error, self._number + 1, *piece.start)

    def _message(self, lines: Iterable[str], piece: _Piece) -> Message:
        syntax = self._syntax or RDFM
        labels = None if syntax.delimiter_first else Labels(self._number + 1)
        quads = []
        for line in lines:
            subject, predicate, rest = cast("list[Term]", line.split(" ", 2))
            object, graph = _object_and_graph(rest) if self._format.graphs else (rest, None)
            if labels is not None and "_:" in line:
                subject, object = map_blanks(subject, labels.__getitem__), map_blanks(object, labels.__getitem__)
                graph = graph and map_blanks(graph, labels.__getitem__)
            quad = Quad(subject, predicate, object, graph)
            if not (syntax.triple_terms and syntax.directions) and (lack := lacks(syntax, quad.object)):
                raise LogError(
                    f"{syntax.version} has no {lack}: {quad}",
                    number=self._number + 1,
                    position=piece.start,
                    hint='announce VERSION "1.2-messages"',
                )
            quads.append(quad)
        return Message(quads)


def _names(text: str) -> set[str]:
    """All that may be a prefix in some statements, and more: a text that uses few must not pay for thousands.

    >>> sorted(_names("ex:a <urn:p> (1.b:c) ."))
    ['', '1.b', 'b', 'ex', 'urn']
    """
    names = set(_BEFORE_COLON.findall(text))
    # a dot or a number may stand right before
    return names.union([""], (_NUMBER.sub("", name, count=1) for name in names))


def _object_and_graph(text: Term) -> tuple[Term, Term | None]:
    # no graph name holds what ends a literal's value or a triple term
    closed = text.rindex('"') if text[0] == '"' else text.rindex(")>>") if text.startswith("<<(") else 0
    end = text.find(" ", closed)
    return (text, None) if end < 0 else (Term(text[:end]), Term(text[end + 1 :]))

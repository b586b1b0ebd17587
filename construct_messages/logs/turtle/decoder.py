"""The decoder of Turtle and TriG logs: interprets delimiters by their position, and assembles the messages between
them.

RDF Messages, section 3. The compiled module reads statements and delimiters from the beginning of the text, which then
is no longer kept, so that a message of any size is read as it comes. At what it does not know, `scanner.py` finds the
next delimiter, and pyoxigraph parses the statements before it: of one message at a time, because the messages before an
error are returned before it is raised.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple, cast
from uuid import uuid4

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.checking import missing_feature
from construct_messages.logs.from_pyoxigraph import (
    DEEPEST,
    Masked,
    Rename,
    log_error,
    most_characters,
    too_long,
    too_much,
)
from construct_messages.logs.turtle.scanner import (
    MOST_BASE,
    Mark,
    MarkKind,
    TurtleScanner,
    check_declarations,
    place_after,
)
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import LABELLED, RDFM, Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad, of_terms
from construct_messages.rdf.terms import Lenience, Term, from_pyoxigraph, map_blanks
from construct_messages.rdf.terms.grammar import unescape
from construct_messages.rdf.terms.wellformed import is_iri, is_language

# --- statements -----------------------------------------------------------------------------------
# Reads the statements of a Turtle or TriG log by pyoxigraph, one message at a time.
#
# One parser reads the whole log, so prefixes and the base persist. The parser gets a message followed by a statement
# that logs do not contain: if it returns that statement, the message is complete; otherwise there is a syntax error.

# text without brackets, and the brackets of triple terms
_BRACKETS: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"""|"(?:[^"\\]++|\\.)*+"'''
    r"""|'''(?:[^'\\]++|\\.|'{1,2}+(?!'))*+'''|'(?:[^'\\]++|\\.)*+'"""
    r"""|\\.|#[^\r\n]*+|<<\(|\)>>|<<|<[^<>\s]*+>""",
    re.DOTALL,
)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_NO_END: Final = "a string or an IRI that does not end"


class PartBefore(NamedTuple):
    """The part of a message before the one that is read."""

    # its size in the log, and in characters as N-Quads
    size: int = 0
    characters: int = 0
    # lines that make known what was declared, and open the graph that is open; the base
    declarations: str = ""
    base: str | None = None


class TurtleStatements:
    """Reads the statements of one log. `base`: the IRI that relative IRIs resolve against, until the log declares
    another. `message_bytes`: the maximal size of a message as N-Quads. `lenience`: accepts and counts terms that are
    not RDF; None: they are errors.

    >>> from construct_messages.rdf.formats import TURTLE
    >>> statements = TurtleStatements(TURTLE, None, 1 << 20)
    >>> statements.read(b"PREFIX : <urn:> :a :b :c, 1 .", Position(1, 1), 1, "MESSAGE")
    ['<urn:a> <urn:b> <urn:c>', '<urn:a> <urn:b> "1"^^<http://www.w3.org/2001/XMLSchema#integer>']
    >>> statements.read(b" :a :a :a", Position(1, 30), 2, "MESSAGE")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    construct_messages.errors.LogError: line 1, column 39: message 2: MESSAGE within a statement or an open gra...
      hint: end the statement with a dot, the graph block with a brace
    """

    def __init__(
        self, format: Format, base: str | None, message_bytes: int, lenience: Lenience | None = None
    ) -> None:
        self._message_bytes = message_bytes
        self._mark = f"urn:uuid:{uuid4()}"
        end = f"<{self._mark}>"
        # is only allowed between statements
        statement = (
            f"GRAPH {end} {{ {end} {end} {end} }}" if format.graphs else f"{end} {end} {end} ."
        )
        self._end, self._end_read = (
            f"\n{statement}\n".encode(),
            " ".join([end] * (4 if format.graphs else 3)),
        )
        self._pipe = _Pipe()
        self._lenience = lenience
        # whether a statement was skipped
        self.left_out = False
        self._lines = 0  # the number of lines that the parser has received
        turtle = ox.RdfFormat.TRIG if format.graphs else ox.RdfFormat.TURTLE
        # the parser only calls `read` of a file
        pipe: IO[bytes] = self._pipe  # type: ignore[assignment]
        self._lenient = lenience is not None and not lenience.is_strict
        self._parser = ox.parse(pipe, format=turtle, base_iri=base, lenient=self._lenient)

    @property
    def prefixes(self) -> Mapping[str, str]:
        return self._parser.prefixes

    @property
    def base(self) -> str | None:
        return self._parser.base_iri

    def read(
        self,
        text: bytes,
        place: Position,
        number: int,
        following: str,
        part: PartBefore | None = None,
    ) -> list[str]:
        """Returns the quads of a message, as N-Quads without the dot. After an error, no more can be read. `part`: the
        part of the message that was read before, by other means.
        """
        part = part or PartBefore(base=self.base)
        check_utf8(text, place, number)
        if text.count(b"<<(") > DEEPEST:
            _check_depth(text.decode(), place, number)
        check_declarations(text, part.base, number)
        masked = None if self._lenience is None else Masked.of(text.decode(), self._lenience)
        before = part.declarations.encode()
        lines = self._lines + _line_ends(before)
        given = before + (text if masked is None else masked.text.encode()) + self._end
        self._lines += _line_ends(given)
        self._pipe.put(given)
        quads: list[str] = []
        most = most_characters(part.size + len(text), self._message_bytes)
        left = most - part.characters
        try:
            for quad in self._parser:
                line: str | None = str(quad)
                if line == self._end_read:
                    return quads
                if self._lenient or masked is not None:
                    line = self._accepted(quad, masked)
                if line is None:
                    self.left_out = True
                    continue
                quads.append(line)
                left -= len(line)
                if left < 0:
                    raise too_much(number, most)
        except SyntaxError as error:
            if self._mark in error.msg:
                error.msg = _NO_END
            if (found := _in_text(error, lines, text, place, number)) is not None:
                raise found from error
        except TermError as error:  # of an IRI that does not end
            if self._mark not in error.message:
                raise LogError(
                    error.message, number=number, position=place, hint=error.hint
                ) from error
            # a lenient parser reads on, into the end of the message that it was given
            start = max(text.find(b"<", text.rfind(b">") + 1), 0)
            raise LogError(
                _NO_END, number=number, position=place_after(place, text[:start])
            ) from error
        except MemoryError as error:
            raise LimitExceeded(
                f"message {number}: a term is too long for the parser: {error}"
            ) from error
        raise LogError(
            f"{following} within a statement or an open graph block",
            number=number,
            position=place_after(place, text),
            hint="end the statement with a dot, the graph block with a brace",
        )

    def _accepted(self, quad: ox.Quad, masked: Masked | None) -> str | None:
        """Returns a quad whose terms may not be RDF; None: it is skipped."""
        lenience = self._lenience if self._lenient else None
        graph = [] if isinstance(quad.graph_name, ox.DefaultGraph) else [quad.graph_name]
        terms = (quad.subject, quad.predicate, quad.object, *graph)
        try:
            if masked is None:
                return " ".join(from_pyoxigraph(term, lenience=lenience) for term in terms)
            masked.check(quad)
            return " ".join(
                masked.unmasked(from_pyoxigraph(term, lenience=lenience)) for term in terms
            )
        except TermError as error:
            if (
                lenience is None
                or self._mark in error.message
                or not lenience.skips(error, ended=False)
            ):
                raise
            return None


def _in_text(
    error: SyntaxError, lines: int, text: bytes, place: Position, number: int
) -> LogError | None:
    """Converts a parser's error to one of the log; None: it is in the text after the message. `lines` precede the
    message.
    """
    assert error.lineno is not None
    assert error.offset is not None
    assert error.end_lineno is not None
    end = lines + _line_ends(text + b"\n")
    if error.lineno > end:
        return None
    if error.end_lineno > end:
        error.msg = _NO_END
    # the column may exceed the line: the parser does not count the lines within a token
    decoded = text.decode()
    starts = [0, *(match.end() for match in _LINE_END.finditer(decoded))]
    offset = starts[error.lineno - lines - 1] + error.offset - 1
    if offset >= len(decoded):
        error.msg = _NO_END
    error.lineno, error.offset = place_after(place, decoded[:offset].encode())
    return log_error(error, number)


class _Pipe:
    """A binary file that ends with the current message, and then continues with the next one."""

    def __init__(self) -> None:
        self._data, self._at = b"", 0

    def put(self, data: bytes) -> None:
        # the parser may return the last quad before the end of its statement
        self._data, self._at = self._data[self._at :] + data, 0

    def read(self, size: int) -> bytes:
        data = self._data[self._at : self._at + size]
        self._at += len(data)
        return data


def check_utf8(text: bytes, place: Position, number: int) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        position = place_after(place, text[: error.start])
        raise LogError(
            "not UTF-8", number=number, position=position, hint="logs are UTF-8"
        ) from error


def _check_depth(text: str, place: Position, number: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += (match.group() == "<<(") - (match.group() == ")>>")
        if depth > DEEPEST:
            raise LogError(
                f"more than {DEEPEST} triple terms in each other",
                number=number,
                position=place_after(place, text[: match.start()].encode()),
            )


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


# --- decoder --------------------------------------------------------------------------------------

_MANY: Final = 1 << 10
_BLOCK: Final = 1 << 16
_SMALLEST_BLOCK: Final = 1 << 10
"""The number of bytes that the compiled module gets: the maximum, and after a message that it left to the parser."""
_LONGEST: Final = 1 << 24
"""The number of bytes that it gets of a longer statement: pyoxigraph reads no longer terms, either."""
_DECLARED: Final = 1 << 3
"""The number of bytes per prefix after which prefixes are looked up again."""

_BEGINNING: Final = Position(1, 1)
_SPACE: Final = b" \t\r\n"
_DECLARES: Final = re.compile(rb"prefix|base", re.IGNORECASE)
_NO_ESCAPE: Final = re.compile(r"\\(?![uU])")
# pyoxigraph's labels for nodes without a label
_RANDOM: Final = re.compile(r"_:[a-f][0-9a-f]{23,31}(?![\w.·-])")

_SHOWN: Final = {
    MarkKind.MESSAGE: "MESSAGE",
    MarkKind.COMMENT: "# @message",
    MarkKind.VERSION: "VERSION",
    MarkKind.DOTLESS: "@message",
}


class TurtleDecoder:
    """Reads a Turtle or TriG log; see `Decoder`. `syntax`: the syntax of the media type; None: the log declares it.

    >>> from construct_messages.rdf.formats import TURTLE
    >>> decoder = TurtleDecoder(TURTLE, None, DecoderOptions(labels=Labels("x")))
    >>> log = b'VERSION "1.2-messages" PREFIX : <urn:x:> _:a :p 1 . MESSAGE _:a :p 2 .'
    >>> for message in (*decoder.feed(log), *decoder.close()):
    ...     print(message)
    <Message of 1 quad: _:x_m1b0 <urn:x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .>
    <Message of 1 quad: _:x_m2b0 <urn:x:p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .>
    """

    options: Final = None

    def __init__(self, format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self._graphs, self._message_bytes = format.graphs, options.message_bytes
        self._labels = options.labels or Labels()
        self._shared_labels = options.shared_labels is not False
        self._scanner = TurtleScanner()
        self._statements = TurtleStatements(
            format, options.base, options.message_bytes, options.lenience
        )
        # the prefixes and the base for the compiled module, and the prefixes that only that has met
        self._prefixes: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self._base = options.base
        # whether its prefixes are outdated, and how much was parsed since
        self._outdated, self._parsed = False, 0
        # how much of the text it gets, and has left of what it got
        self._block, self._tried = _BLOCK, 0
        # the number of the open message, and its quads so far
        self._number = 1
        self._open = _OpenMessage()
        self._beginning: bytes | None = b""  # the first bytes, which may be a byte order mark
        # the delimiters of messages; under rdfm, from the first one on, which may precede all messages
        self._delimiter: MarkKind | None = None
        self._syntax = syntax
        if syntax is not None and not syntax.delimiter_first:
            self._scoped()
        elif syntax is None:
            self._scanner.comments = options.comments

    @property
    def syntax(self) -> Syntax | None:
        return self._syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        return {**self._statements.prefixes, **self._declared}

    def feed(self, data: bytes) -> Iterator[Message]:
        if self._beginning is not None:
            data = self._beginning + data
            if BOM_UTF8.startswith(data):
                self._beginning = data
                return
            data, self._beginning = data.removeprefix(BOM_UTF8), None
        self._scanner.text += data
        yield from self._read_known()
        yield from self._read(self._scanner.feed(b""))

    def close(self) -> Iterator[Message]:
        if self._beginning and self._beginning != BOM_UTF8:
            yield from self._read(self._scanner.feed(self._beginning))
        yield from self._read(self._scanner.close())
        message = self._message(len(self._scanner.text), "the log ends")
        is_one = len(message) > 0 or self._statements.left_out
        if is_one or self._delimiter is MarkKind.COMMENT:
            yield message

    def _read(self, marks: Iterable[Mark]) -> Iterator[Message]:
        for found in marks:
            self._bound(found.end)
            mark = self._before(found)
            match mark.kind:
                case MarkKind.MESSAGE | MarkKind.COMMENT if mark.kind is self._delimiter:
                    yield self._message(mark.start, _SHOWN[mark.kind])
                    self._pass(mark)
                    yield from self._read_known()
                case MarkKind.COMMENT:  # the first: the text before it need not be a message
                    self._syntax, self._delimiter = self._syntax or RDFM, MarkKind.COMMENT
                    message = self._message(mark.start, _SHOWN[mark.kind])
                    if len(message) or self._statements.left_out:
                        yield message
                    else:
                        self._number -= 1
                    self._pass(mark)
                    yield from self._read_known()
                case MarkKind.VERSION:
                    if mark.label.endswith("-messages"):
                        self._announce(mark)
                    elif self._is_between(mark):
                        self._scanner.cut(mark.end)
                        self._open.size, self._tried = self._open.size + mark.end, 0
                    yield from self._read_known()
                case MarkKind.MESSAGE if self._syntax is None:
                    hint = 'begin the log with VERSION "1.2-messages", or add version=1.2-messages to its media type'
                    raise self._error(mark, "MESSAGE in a log that announces no messages", hint)
                case MarkKind.MESSAGE:
                    hint = "delimit messages by comments, as in # @message"
                    raise self._error(mark, "MESSAGE in a log of messages=rdfm", hint)
                case MarkKind.DOTLESS:
                    raise self._error(mark, "@message without a dot", "write @message . or MESSAGE")
        self._bound(len(self._scanner.text))

    # --- announcements and errors -----------------------------------------------------------------------------------

    def _announce(self, mark: Mark) -> None:
        announced = next((syntax for syntax in LABELLED if syntax.label == mark.label), None)
        shown = f'VERSION "{mark.label}"'
        if announced is None:
            known = ", ".join(syntax.label for syntax in LABELLED)
            raise self._error(mark, f"{shown} is unknown", f"choose one of {known}")
        if self._syntax is None:
            # on success, the text before the announcement is finished
            if self._open.terms or self._quads(mark.start, _SHOWN[mark.kind]):
                place, hint = (
                    self._scanner.place_of(mark.start),
                    "announce it at the beginning of the log",
                )
                raise LogError(
                    f"{shown} after statements", number=self._number, position=place, hint=hint
                )
            place = self._scanner.place_of(mark.start)
            self._scanner.cut(mark.end if self._is_between(mark) else mark.start)
            self._tried, self._open = 0, _OpenMessage(place)
            self._syntax = announced
            self._scoped()
        elif announced != self._syntax:
            hint = "announce one version, as the media type does if it announces any"
            raise self._error(mark, f"{shown} in a log of {self._syntax.label}", hint)

    def _is_between(self, mark: Mark) -> bool:
        """Returns whether a version follows a statement that was read; the dot of @version is for the parser."""
        text = bytes(self._scanner.text[: mark.start])
        is_dotted = self._scanner.text.startswith(b"@", mark.start)
        return not (text.strip(_SPACE) or self._open.graph or is_dotted)

    def _scoped(self) -> None:
        self._delimiter, self._scanner.comments = MarkKind.MESSAGE, False

    def _error(self, mark: Mark, message: str, hint: str) -> LogError:
        """Returns the error at a mark, unless there is an earlier error in the same message."""
        self._quads(mark.start, _SHOWN[mark.kind])
        return LogError(
            message, number=self._number, position=self._scanner.place_of(mark.start), hint=hint
        )

    def _bound(self, size: int) -> None:
        if self._open.size + size > self._message_bytes:
            raise too_long(self._number, self._message_bytes)

    # --- usual statements -----------------------------------------------------------------------------

    def _read_known(self) -> Iterator[Message]:
        """Returns the messages from here on, up to the first that the compiled module does not know or that is not
        complete, whose beginning it reads.
        """
        text = self._scanner.text
        # of text that was left, as much again must have come
        while len(text) > 2 * self._tried:
            size = min(len(text), max(self._block, 2 * self._tried))
            messages, start, read = self._known(bytes(text[:size]), is_whole=False)
            # where less was read, the same number of bytes is likely to be read the next time
            few = max(_SMALLEST_BLOCK, 4 * read)
            self._block = _BLOCK if 2 * read >= size else min(_BLOCK, few)
            if read == 0:
                break
            if messages:
                self._scanner.skip(start)
                self._open.place = self._scanner.place
            self._scanner.skip(read - start)
            yield from messages

    def _before(self, mark: Mark) -> Mark:
        """Reads the statements before a mark, where the compiled module has not seen all of them; returns the mark in
        the text that is left.
        """
        if mark.start < self._tried:
            return mark
        *_, read = self._known(bytes(self._scanner.text[: mark.start]) + b"\n", is_whole=True)
        read = min(read, mark.start)
        self._tried = mark.start - read
        self._scanner.cut(read)
        return mark._replace(start=mark.start - read, end=mark.end - read)

    def _known(self, text: bytes, *, is_whole: bool) -> tuple[list[Message], int, int]:
        """Reads statements, and messages unless the text is one, from a text as far as the compiled module knows them.
        Returns the messages, where the open message begins then, and the size of what was read.
        """
        opened, size = self._open, len(text)
        self._tried = size
        if (
            compiled.wire is None
            or size > _LONGEST
            or opened.size + size > self._message_bytes
            or not self._is_up_to_date()
        ):
            return [], 0, 0
        syntax = self._syntax or RDFM
        found = compiled.wire.turtle_messages(
            text,
            is_whole,
            self._graphs,
            not is_whole and self._delimiter is not None,
            self._scanner.comments,
            not (syntax.triple_terms and syntax.directions),
            self._prefixes,
            self._declared,
            self._labels.in_message,
            self._labels.in_log if self._shares_labels() else None,
            _mended,
            self._base,
            opened.graph,
            opened.names,
            self._number,
            opened.characters,
            most_characters(opened.size, self._message_bytes),
            most_characters(0, self._message_bytes),
        )
        read, terms, end, start, self._base, graph, names, characters = found
        self._tried = size - end
        if read:
            read[0] = opened.terms + read[0] if opened.terms else read[0]
            opened = self._open = _OpenMessage()
            self._number += len(read)
        opened.terms += terms
        opened.size += end - start
        opened.graph, opened.names, opened.characters = graph, names, characters
        return [*map(of_terms, read)], start, end

    def _is_up_to_date(self) -> bool:
        """Copies the prefixes from the parser, if they may have changed; returns whether they are known."""
        if not self._outdated:
            return True
        # copying them takes time, which a log with a declaration in each message must not multiply
        if self._parsed < _DECLARED * len(self._prefixes):
            return False
        self._prefixes, self._parsed = dict(self._statements.prefixes), 0
        self._outdated = self._base is not None and len(self._base) > MOST_BASE
        return not self._outdated

    # --- messages ---------------------------------------------------------------------------------------------------

    def _pass(self, mark: Mark) -> None:
        """Removes a delimiter and the text before it."""
        if mark.kind is MarkKind.COMMENT:
            comment = bytes(self._scanner.text[mark.start : mark.end])
            check_utf8(comment, self._scanner.place_of(mark.start), self._number)
        self._scanner.cut(mark.end)
        self._tried, self._open = 0, _OpenMessage(self._scanner.place)

    def _quads(self, end: int, following: str) -> list[str]:
        """Returns the quads that end there, as N-Quads without the dot."""
        text, opened = bytes(self._scanner.text[:end]), self._open
        if not text.strip(_SPACE) and not opened.graph:
            return []
        declarations = [f"PREFIX {name}: <{iri}>\n" for name, iri in self._declared.items()]
        if self._base != self._statements.base:
            declarations.append(f"BASE <{self._base}>\n")
        if opened.graph:
            declarations.append(f"GRAPH {opened.graph} {{\n" if opened.graph != "{" else "{\n")
        part = PartBefore(opened.size, opened.characters, "".join(declarations), self._base)
        self._declared.clear()
        self._parsed += end
        quads = self._statements.read(text, self._scanner.place, self._number, following, part)
        if _DECLARES.search(text) is not None:
            self._outdated, self._base = True, self._statements.base
        return quads

    def _message(self, end: int, following: str) -> Message:
        """Returns the message that ends there, and opens the next one."""
        self._statements.left_out = False
        end = self._before(Mark(MarkKind.MESSAGE, end, end)).end
        terms = self._open.terms
        self._add_parsed(terms, end, following)
        self._number += 1
        return of_terms(terms)

    def _add_parsed(self, terms: list[Term | None], end: int, following: str) -> None:
        """Adds the terms of the statements that end there."""
        syntax = self._syntax or RDFM
        rename = self._in_log(end) if self._shares_labels() else self._names().__getitem__
        restricted = not (syntax.triple_terms and syntax.directions)
        lines = self._quads(end, following)
        known: dict[Term, Term] | None = (
            {} if len(lines) > _MANY else None
        )  # one string for a shared term
        for line in lines:
            subject, predicate, object = cast("list[Term]", line.split(" ", 2))
            graph = None
            if self._graphs:
                object, graph = _object_and_graph(object)
            if "_:" in line:
                subject, object = map_blanks(subject, rename), map_blanks(object, rename)
                graph = graph and map_blanks(graph, rename)
            if known is not None:
                subject = known.setdefault(subject, subject)
                predicate, object = (
                    known.setdefault(predicate, predicate),
                    known.setdefault(object, object),
                )
                graph = graph and known.setdefault(graph, graph)
            if restricted and (feature := missing_feature(syntax, object)):
                raise LogError(
                    f"{syntax.version} has no {feature}: {Quad(subject, predicate, object, graph)}",
                    number=self._number,
                    position=self._open.place,
                    hint='announce VERSION "1.2-messages"',
                )
            terms += (subject, predicate, object, graph)

    def _shares_labels(self) -> bool:
        """Returns whether a label is one node in the whole log."""
        return self._shared_labels and (self._syntax or RDFM).delimiter_first

    def _names(self) -> dict[Term, Term]:
        """Returns the labels of the nodes of the open message."""
        if self._open.names is None:
            self._open.names = self._labels.in_message(self._number)
        return self._open.names

    def _in_log(self, end: int) -> Rename:
        """Assigns labels to the nodes whose label is valid in the whole log, and to nodes of this message without
        one.
        """
        written = None

        def rename(node: Term) -> Term:
            nonlocal written
            if _RANDOM.fullmatch(node):
                if written is None:
                    written = set(_RANDOM.findall(self._scanner.text[:end].decode()))
                if node not in written:
                    return self._names()[node]
            return self._labels.in_log(node)

        return rename


@dataclass(slots=True)
class _OpenMessage:
    """What was read of the message that is open."""

    # where it begins
    place: Position = _BEGINNING
    # subject, predicate, object and graph of each quad in turn
    terms: list[Term | None] = field(default_factory=list)
    # the size in the log, and in characters as N-Quads
    size: int = 0
    characters: int = 0
    # the graph that is open; empty: none is; a brace: the default graph
    graph: str = ""
    # the labels of its blank nodes by those in the text, if there are any
    names: dict[Term, Term] | None = None


def _mended(part: str) -> str | None:
    """Returns the canonical form of an IRI in brackets, or of a language in lower case after its `@`; None: it is
    malformed.

    >>> _mended("<http://example.org/\\u00e9>"), _mended("@x-a"), _mended("<http://example.org/100%>")
    ('<http://example.org/é>', '@x-a', None)
    """
    if part[0] == "@":
        return part if is_language(part[1:]) else None
    if _NO_ESCAPE.search(part):
        return None
    try:
        iri = unescape(part[1:-1])
    except TermError:
        return None
    return f"<{iri}>" if is_iri(iri) else None


def _object_and_graph(text: Term) -> tuple[Term, Term | None]:
    # graph names do not contain the ends of literal values and triple terms
    closed = (
        text.rindex('"') if text[0] == '"' else text.rindex(")>>") if text.startswith("<<(") else 0
    )
    end = text.find(" ", closed)
    return (text, None) if end < 0 else (Term(text[:end]), Term(text[end + 1 :]))

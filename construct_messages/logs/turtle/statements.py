"""Reads the statements of a Turtle or TriG log by pyoxigraph, one message at a time.

One parser reads the whole log, so prefixes and the base persist. The parser gets a message followed by a statement that
logs do not contain: if it returns that statement, the message is complete; otherwise there is a syntax error.
`decoder.py` interprets delimiters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO, Final
from uuid import uuid4

import pyoxigraph as ox

from construct_messages.logs.from_pyoxigraph import (
    DEEPEST,
    Masked,
    log_error,
    most_characters,
    too_much,
)
from construct_messages.logs.turtle.declarations import check_declarations
from construct_messages.logs.turtle.scanner import place_behind
from construct_messages.rdf.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.rdf.formats import Format
from construct_messages.rdf.terms import Lenience, from_pyoxigraph

# text without brackets, and the brackets of triple terms
_BRACKETS: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"""|"(?:[^"\\]++|\\.)*+"'''
    r"""|'''(?:[^'\\]++|\\.|'{1,2}+(?!'))*+'''|'(?:[^'\\]++|\\.)*+'"""
    r"""|\\.|#[^\r\n]*+|<<\(|\)>>|<<|<[^<>\s]*+>""",
    re.DOTALL,
)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_NO_END: Final = "a string or an IRI that does not end"


class TurtleStatements:
    """Reads the statements of one log.

    Args:
        format: Turtle or TriG.
        base: the IRI that relative IRIs resolve against, until the log declares another.
        message_bytes: the maximal size of a message as N-Quads.
        lenience: accepts and counts terms that are not RDF; None: they are errors.

    Attributes:
        left_out: whether a statement of the last message was left out.

    >>> from construct_messages.rdf.formats import TURTLE
    >>> statements = TurtleStatements(TURTLE, None, 1 << 20)
    >>> statements.read(b"PREFIX : <urn:> :a :b :c, 1 .", Position(1, 1), 1, "MESSAGE")
    ['<urn:a> <urn:b> <urn:c>', '<urn:a> <urn:b> "1"^^<http://www.w3.org/2001/XMLSchema#integer>']
    >>> statements.read(b" :a :a :a", Position(1, 30), 2, "MESSAGE")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    construct_messages.rdf.errors.LogError: line 1, column 39: message 2: MESSAGE within a statement or an open gra...
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
        self.left_out = False
        self._lines = 0  # the number of lines that the parser has received
        turtle = ox.RdfFormat.TRIG if format.graphs else ox.RdfFormat.TURTLE
        # the parser only calls `read` of a file
        pipe: IO[bytes] = self._pipe  # type: ignore[assignment]
        self._lenient = lenience is not None and not lenience.is_strict
        self._parser = ox.parse(pipe, format=turtle, base_iri=base, lenient=self._lenient)

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes declared so far."""
        return self._parser.prefixes

    @property
    def base(self) -> str | None:
        """The current base of relative IRIs."""
        return self._parser.base_iri

    def read(self, text: bytes, place: Position, number: int, behind: str) -> list[str]:
        """Returns the quads of a message, as N-Quads without the dot. After an error, no more can be read.

        Args:
            text: the message's statements.
            place: their position in the log.
            number: the number of the message, from 1.
            behind: the text after them.

        Raises:
            LogError: a syntax error, or invalid UTF-8.
            LimitExceeded: a term that is too long or too deeply nested, too many terms, or declarations that are too
                large.
        """
        check_utf8(text, place, number)
        if text.count(b"<<(") > DEEPEST:
            _check_depth(text.decode(), place, number)
        check_declarations(text, self.base, number)
        masked = None if self._lenience is None else Masked.of(text.decode(), self._lenience)
        self.left_out = False
        lines = self._lines
        given = (text if masked is None else masked.text.encode()) + self._end
        self._lines += _line_ends(given)
        self._pipe.put(given)
        quads: list[str] = []
        left = most = most_characters(len(text), self._message_bytes)
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
                _NO_END, number=number, position=place_behind(place, text[:start])
            ) from error
        except MemoryError as error:
            raise LimitExceeded(
                f"message {number}: a term is too long for the parser: {error}"
            ) from error
        raise LogError(
            f"{behind} within a statement or an open graph block",
            number=number,
            position=place_behind(place, text),
            hint="end the statement with a dot, the graph block with a brace",
        )

    def _accepted(self, quad: ox.Quad, masked: Masked | None) -> str | None:
        """Returns a quad whose terms may not be RDF; None: it is left out."""
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
    error.lineno, error.offset = place_behind(place, decoded[:offset].encode())
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
    """Checks that text is UTF-8.

    Raises:
        LogError: it is not; the error has the number of the message, and the position, counted from `place`.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        position = place_behind(place, text[: error.start])
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
                position=place_behind(place, text[: match.start()].encode()),
            )


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")

r"""Reads N-Triples and N-Quads logs, from chunks of bytes that may be split anywhere.

This module finds lines, interprets version declarations and delimiters, and assembles messages; `statements.py` reads
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
from itertools import compress, count
from types import MappingProxyType
from typing import Final

from construct_messages.logs import DecoderOptions
from construct_messages.logs.capabilities import missing_feature
from construct_messages.logs.from_pyoxigraph import Rename, log_error
from construct_messages.logs.line_buffer import too_long
from construct_messages.logs.lines.statements import (
    LineParser,
    StatementLines,
    count_canonical,
    read_lines,
)
from construct_messages.rdf.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.rdf.formats import LABELLED, RDFM, Format, Syntax
from construct_messages.rdf.labels import Labels, MessageLabels, may_have_labels
from construct_messages.rdf.message import Message, of_lines, of_terms
from construct_messages.rdf.terms import Term, map_blanks

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

_OTHERS: Final = re.compile(r"(?:[ \t]*+(?:#[^@\n]*+)?\n)++|.*\n")
"""A line, or several meaningless ones together (blank ones, and comments other than delimiters): a few bytes of a
compressed log can contain millions of them.
"""

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
        """The syntax of the log, as detected so far; see `Decoder.syntax`."""
        return self._syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Always empty: these formats have no prefixes."""
        return MappingProxyType({})

    # --- bytes to lines ---------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages that are complete now."""
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
        """Returns the messages that the end of the log completes."""
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
        try:
            read = read_lines(block, graphs=self._format.graphs)
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
            behind = self._lines - self.delimiter
            _, *lines = block.rsplit(b"\n", behind + 1)
            self._size = sum(map(len, lines)) + behind
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
            if blanks[renamed] < 4 * index:
                behind = bisect_left(blanks, 4 * index, renamed)
                self._rename(terms, blanks[renamed:behind])
                renamed = behind
            quads, other = terms[4 * start : 4 * index], others[index]
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
        """Assigns labels to the blank nodes at these places in the open message."""
        if blanks:
            rename = self._scope()
            for place in blanks:
                terms[place] = rename(terms[place])  # type: ignore[arg-type] # blank nodes are Terms

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
        if not statement:  # left out, and so are others perhaps: it is a message nevertheless
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

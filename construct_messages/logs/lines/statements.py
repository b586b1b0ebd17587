r"""Reads lines of N-Triples and N-Quads as quads: canonical ones by a regular expression, all others by pyoxigraph.

Nearly every line of a log is a statement in canonical form, whose terms already have the form of `rdf/terms/`. Such
lines are split a block at a time; a second expression checks predicates that were not seen recently. Both accept a
subset of the statements that pyoxigraph accepts. The compiled module, if available, reads the same lines. pyoxigraph
parses all other statements, and alone raises errors. `decoder.py`
processes delimiters, messages and bytes.

RDF 1.2 N-Triples and N-Quads, section 2 (the languages) and N-Triples section 4 (the canonical form).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple, cast

import pyoxigraph as ox

from construct_messages.logs.from_pyoxigraph import DEEPEST, Masked, to_message
from construct_messages.rdf import compiled
from construct_messages.rdf.errors import LimitExceeded, TermError
from construct_messages.rdf.formats import Format
from construct_messages.rdf.message import Message, make_quads
from construct_messages.rdf.terms import Lenience, Term, escape, nesting, unescape
from construct_messages.rdf.terms.grammar import (
    CANONICAL_BLANK,
    CANONICAL_IRI,
    CANONICAL_LITERAL,
    ECHAR,
    UCHAR,
)
from construct_messages.rdf.terms.wellformed import OUT_OF_PLACE

# --- canonical lines ------------------------------------------------------------------------------------------------

# For speed this runs to the next `>`; _CANONICAL decides whether the text is an IRI.
_PREDICATE: Final = "<[^>]*+>"


@cache
def _statement(graphs: bool) -> re.Pattern[str]:
    """Returns the expression for a line with its subject, predicate, object and graph; an empty group for a blank node
    follows each except the second.

    Predicates are repeated often, so they are checked once.
    """
    subject = f"({CANONICAL_IRI}|{CANONICAL_BLANK}())"
    object = f"({CANONICAL_IRI}|{CANONICAL_LITERAL}|{CANONICAL_BLANK}())"
    graph = (
        rf"(?: \.| ({CANONICAL_IRI}|{CANONICAL_BLANK}()) \.)" if graphs else r" \.((?!))?((?!))?"
    )
    return re.compile(rf"(?m:^){subject} ({_PREDICATE}) {object}{graph}\n")


@cache
def _statements(graphs: bool) -> re.Pattern[str]:
    """Returns the expression for one or more lines in the form of `_statement` and `_CANONICAL`."""
    node = f"(?:{CANONICAL_IRI}|{CANONICAL_BLANK})"
    object = f"(?:{CANONICAL_IRI}|{CANONICAL_LITERAL}|{CANONICAL_BLANK})"
    graph = f"(?: {node})?" if graphs else ""
    return re.compile(rf"(?:{node} (?:{CANONICAL_IRI}) {object}{graph} \.\n)++")


def canonical_lines(text: str, *, graphs: bool) -> bool:
    r"""Returns whether a text consists of one or more canonical statements without triple terms, each with a final LF.

    This takes less than half the time of `Statements.read`. True means that `read` returns all of the text as
    statements.

    >>> canonical_lines('<urn:s> <urn:p> "o"@en .\n', graphs=True), canonical_lines("_:b <urn:p> 1 .\n", graphs=True)
    (True, False)
    """
    return _statements(graphs).fullmatch(text) is not None


def count_canonical(documents: Sequence[bytes], graphs: bool) -> int | None:
    """Returns the number of lines of all documents together, if each consists of one or more distinct canonical
    statements, each with a final LF; None: one does not.
    """
    if compiled.wire is not None:
        return compiled.wire.count_canonical([*documents], graphs)
    if not documents:
        return 0
    if not all(document.endswith(b"\n") for document in documents):
        return None
    try:
        text = b"".join(documents).decode()
    except UnicodeDecodeError:
        return None
    if not canonical_lines(text, graphs=graphs):
        return None
    lines = text.split("\n")
    if _are_different(lines) or all(_are_different(each.split(b"\n")) for each in documents):
        return len(lines) - 1
    return None


def _are_different(lines: list[str] | list[bytes]) -> bool:
    return len(set(lines)) == len(lines)


_CANONICAL: Final = re.compile(rf"(?:(?:{CANONICAL_IRI})\n)*+")
"""Predicates, one per line."""

_REMEMBERED: Final = 1 << 20
"""The number of characters after which the known predicates are cleared, which limits their memory."""


class StatementLines(NamedTuple):
    """The statements of some complete lines.

    Args:
        terms: subject, predicate, object and graph of each canonical statement in turn.
        blanks: the places of the blank nodes among these, ascending; their labels are unchanged.
        others: the other lines before each of these statements, with their ends, and those after the last; mostly
            empty.
    """

    terms: list[Term | None]
    blanks: list[int]
    others: list[str]


class Statements:
    """Reads lines of one format.

    Args:
        format: N-Triples or N-Quads.
        lenience: accepts and counts terms that are not RDF; None: they are errors.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> lines = Statements(N_TRIPLES).read(b'<urn:s> <urn:p> "o"@en .\\n_:b <urn:p>  <urn:o> .\\n')
    >>> lines.terms[2], lines.others
    ('"o"@en', ['', '_:b <urn:p>  <urn:o> .\\n'])
    """

    def __init__(self, format: Format, lenience: Lenience | None = None) -> None:
        self._graphs, self._lenience = format.graphs, lenience
        self._lenient = lenience is not None and not lenience.is_strict
        self._parser = ox.RdfFormat.N_QUADS if format.graphs else ox.RdfFormat.N_TRIPLES
        self._forget()

    def _forget(self) -> None:
        self._known: set[Term] = set()
        self._read = 0

    def read(self, lines: bytes) -> StatementLines:
        """Returns the canonical statements of some lines.

        Args:
            lines: complete lines, each with a final LF.

        Raises:
            UnicodeDecodeError: they are not UTF-8.
        """
        if compiled.wire is not None and (found := compiled.wire.statements(lines, self._graphs)):
            return StatementLines(*cast("tuple[list[Term | None], list[int], list[str]]", found))
        return self._read_text(lines.decode())

    def _read_text(self, text: str) -> StatementLines:
        self._read += len(text)
        if self._read > _REMEMBERED:
            self._forget()
        # split returns all groups in a row, without a tuple for each line, and between them the other lines
        found: list[Any] = _statement(self._graphs).split(text)
        others: list[str] = found[0::8]
        predicates: list[Term] = found[3::8]
        if not self._known.issuperset(predicates):
            new = set(predicates) - self._known
            if not _CANONICAL.fullmatch("\n".join([*new, ""])):
                return self._one_by_one(text)
            self._known |= new
        marks = (0, found[2::8]), (2, found[5::8]), (3, found[7::8])
        # removing them from the list leaves the other items unchanged
        del found[7::8], found[5::7], found[2::6], found[0::5]
        blanks: list[int] = []
        for place, column in marks:
            if column.count(None) < len(column):
                blanks.extend(
                    [4 * index + place for index, mark in enumerate(column) if mark is not None]
                )
        blanks.sort()
        return StatementLines(found, blanks, others)

    def _one_by_one(self, text: str) -> StatementLines:
        # splitlines() would also split at other line ends
        lines = text.split("\n")[:-1]
        if len(lines) == 1:
            return StatementLines([], [], [text])
        together = StatementLines([], [], [])
        left: list[str] = []  # since the last statement
        for line in lines:
            read = self._read_text(f"{line}\n")
            if read.terms:
                together.others.append("".join(left))
                left.clear()
                together.blanks.extend([len(together.terms) + place for place in read.blanks])
                together.terms.extend(read.terms)
            else:
                left.append(f"{line}\n")
        together.others.append("".join(left))
        return together

    def parse(self, line: str) -> Message:
        """Returns the statement of a line in any form, with its blank node labels; none if lenience leaves it out.

        Args:
            line: the line, without its end.

        Raises:
            SyntaxError: pyoxigraph's error; its position is the line's beginning if the line is very long or too deeply
                nested.
            TermError: an invalid escape in a very long string.
            LimitExceeded: more than two million characters outside of strings.
        """
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

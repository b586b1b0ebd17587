r"""Reads lines of N-Triples and N-Quads as quads: canonical ones by the compiled module or a regular expression, all
others by pyoxigraph.

Nearly every line of a log is a statement in canonical form, whose terms already have the form of `rdf/terms/`. The
compiled module and the expression accept the same subset of the statements that pyoxigraph accepts. pyoxigraph parses
all other statements, and alone raises errors. `decoder.py` processes delimiters, messages and bytes.

RDF 1.2 N-Triples and N-Quads, section 2 (the languages) and N-Triples section 4 (the canonical form).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple, cast

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
    """The statements of some complete lines."""

    # subject, predicate, object and graph of each canonical statement in turn
    terms: list[Term | None]
    # the places of the blank nodes among these, ascending; their labels are unchanged
    blanks: list[int]
    # the other lines before each of these statements, with their ends, and those after the last; mostly empty
    others: list[str]


def read_lines(lines: bytes, *, graphs: bool) -> StatementLines:
    r"""Returns the canonical statements of complete lines, each with a final LF; raises `UnicodeDecodeError`.

    >>> found = read_lines(b'<urn:s> <urn:p> "o"@en .\n_:b <urn:p>  <urn:o> .\n', graphs=False)
    >>> found.terms[2], found.others
    ('"o"@en', ['', '_:b <urn:p>  <urn:o> .\n'])
    """
    if compiled.wire is not None and (found := compiled.wire.statements(lines, graphs)):
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
        """Returns the statement of a line in any form, with its blank node labels; none if lenience leaves it out."""
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

r"""Lines of N-Triples and N-Quads as quads: canonical ones by a regular expression, any other by pyoxigraph.

Nearly every line of a log is a statement in canonical form, whose terms are already what `terms.py` calls a term. Such
lines are taken apart a block at a time; predicates and graphs that were not met lately are checked by a second
expression. Both know less than pyoxigraph does and nothing that it refuses. Whatever is not recognised so is left for
pyoxigraph, which alone says what an error is (docs/decisions/013-…, 037-messages-by-column.md). Delimiters, messages
and bytes are `decoder.py`'s.

RDF 1.2 N-Triples and N-Quads, section 2 (the languages) and N-Triples section 4 (the canonical form).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import compress, count
from typing import Any, Final, NamedTuple

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded
from construct_messages.formats import Format
from construct_messages.logs.from_pyoxigraph import DEEPEST, Rename, to_message
from construct_messages.message import Message, make_quads
from construct_messages.terms import Lenience, Term, escape, nesting, unescape
from construct_messages.terms.grammar import CANONICAL_BLANK, CANONICAL_IRI, CANONICAL_LITERAL, ECHAR, UCHAR

# --- canonical lines ------------------------------------------------------------------------------------------------

# To be quick this runs to the next `>`; what it takes is an IRI only once _CANONICAL says so.
_IRI: Final = "<[^>]*+>"

# lines that say nothing: blank ones, and comments that are no delimiter
_NOTHING: Final = r"(?:[ \t]*+(?:#[^@\n]*+)?\n)++"


@cache
def _line(graphs: bool) -> re.Pattern[str]:
    """Subject, predicate, object, graph, each but the second with a group for a blank node; or else the line, whole.

    Predicates and graphs are met again and again: they are checked once. Lines that say nothing are one match together:
    a few bytes of a packed log are millions of them.
    """
    subject = f"(?:({CANONICAL_IRI})|({CANONICAL_BLANK}))"
    object = f"(?:({CANONICAL_IRI}|{CANONICAL_LITERAL})|({CANONICAL_BLANK}))"
    graph = f"(?:({_IRI}) |({CANONICAL_BLANK}) |)" if graphs else "((?!))?((?!))?"
    return re.compile(rf"{subject} ({_IRI}) {object} {graph}\.\n|(MESSAGE\n|{_NOTHING}|.*\n)")


_CANONICAL: Final = re.compile(rf"(?:(?:{CANONICAL_IRI})\n)*+")
"""Predicates and graphs, a line each."""

_REMEMBERED: Final = 1 << 20
"""How many characters are read before the terms that were met are forgotten, which bounds what they take."""

BLANK: Final = "_:"
"""What is said of a line that is a canonical statement, and holds a blank node that was not renamed."""


class Lines(NamedTuple):
    """The statements of some complete lines.

    Args:
        terms: subject, predicate, object and graph of each line in turn, of no meaning where the line is among the
            others; lines that say nothing are one together.
        others: for each line None; or the line with its end where it is no canonical statement, and `BLANK` where it
            holds a blank node whose label was kept.
    """

    terms: list[Term | None]
    others: list[str | None]


class Statements:
    """Reads lines of one format.

    Args:
        format: N-Triples or N-Quads.
        lenience: what passes and counts malformed IRIs and language tags; None: they are errors.

    >>> from construct_messages.formats import N_TRIPLES
    >>> lines = Statements(N_TRIPLES).read('<urn:s> <urn:p> "o"@en .\\n_:b <urn:p>  <urn:o> .\\n')
    >>> lines.terms[2], lines.others
    ('"o"@en', [None, '_:b <urn:p>  <urn:o> .\\n'])
    """

    def __init__(self, format: Format, lenience: Lenience | None = None) -> None:
        self._split, self._lenience = _line(format.graphs).split, lenience
        self._parser = ox.RdfFormat.N_QUADS if format.graphs else ox.RdfFormat.N_TRIPLES
        self._forget()

    def _forget(self) -> None:
        self._known: set[Term | None] = {None}  # as a group that took no part is
        self._read = 0

    def read(self, text: str, rename: Rename | None = None) -> Lines:
        """The canonical statements of some lines.

        Args:
            text: whole lines, each with LF at its end.
            rename: gives each blank node its label, always the same for the same; None: labels are kept, and the lines
                that hold some are among the others.
        """
        self._read += len(text)
        if self._read > _REMEMBERED:
            self._forget()
        # between the matches there is nothing: split gives the columns without a tuple for each line
        found: list[Any] = self._split(text)
        subjects, predicates, objects, graphs = found[1::9], found[3::9], found[4::9], found[6::9]
        others: list[str | None] = found[8::9]
        for column in (predicates, graphs):
            if not self._known.issuperset(column):
                new = set(column) - self._known
                if not _CANONICAL.fullmatch("\n".join([*new, ""])):
                    return self._one_by_one(text, rename)
                self._known |= new
        for column, nodes in ((subjects, found[2::9]), (objects, found[5::9]), (graphs, found[7::9])):
            if any(nodes):
                labels = {node: node if rename is None else rename(node) for node in nodes if node}
                for index in compress(count(), nodes):
                    column[index] = labels[nodes[index]]
                    if rename is None:
                        others[index] = BLANK
        terms: list[Term | None] = [None] * (4 * len(others))
        terms[0::4], terms[1::4], terms[2::4], terms[3::4] = subjects, predicates, objects, graphs
        return Lines(terms, others)

    def _one_by_one(self, text: str, rename: Rename | None) -> Lines:
        # splitlines() would know more line ends
        lines = text.split("\n")[:-1]
        if len(lines) == 1:
            return Lines([None] * 4, [text])
        together = Lines([], [])
        for line in lines:
            read = self.read(f"{line}\n", rename)
            together.terms.extend(read.terms)
            together.others.extend(read.others)
        return together

    def parse(self, line: str) -> Message:
        """The statement of a line, whatever its form, with its blank node labels kept.

        Args:
            line: without its end.

        Raises:
            SyntaxError: of pyoxigraph; at the line's beginning where the line is very long, or too deep.
            TermError: an escape in a very long string that stands for no character, or what no lenience passes.
            LimitExceeded: more than two million characters outside of strings.
        """
        # most of so many are in a string
        if line.count("<<(") > DEEPEST and nesting(line) > DEEPEST:
            raise SyntaxError(f"more than {DEEPEST} triple terms in each other", (None, 1, 1, None))
        if len(line) <= _LONG:
            return to_message(self._quads(line), lenience=self._lenience)
        return self._parse_long(line)

    def _quads(self, line: str) -> Iterable[ox.Quad]:
        return ox.parse(line, format=self._parser, lenient=self._lenience is not None)

    def _parse_long(self, line: str) -> Message:
        # The parser holds 16 MiB and no more: of a longer line it gets numbers in place of the strings.
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
            statement = to_message(self._quads(short), lenience=self._lenience)
        except SyntaxError as error:
            raise SyntaxError(error.msg, (None, 1, 1, None)) from error
        return Message(
            make_quads([None if term is None else _NUMBER.sub(string, term) for term in quad] for quad in statement)
        )


# --- other lines ----------------------------------------------------------------------------------------------------

_LONG: Final = 1 << 21
"""How many characters of a line are left to pyoxigraph as they are."""

_CHARS: Final = r'[^"\\\n\r]*+'
_ANY_STRING: Final = re.compile(rf'"({_CHARS}(?:(?:\\[{ECHAR}]|{UCHAR}){_CHARS})*+)"')
_NUMBER: Final = re.compile('"([0-9]+)"')

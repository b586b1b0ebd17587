r"""Lines of N-Triples and N-Quads as quads: canonical ones by a regular expression, any other by pyoxigraph.

Nearly every line of a log is a statement in canonical form, whose terms are already what `terms.py` calls a term. Such
lines are taken apart a block at a time, by column; each term that was not met lately is checked by a second, strict
expression, which knows less than pyoxigraph does and nothing that it refuses. Whatever is not recognised so is left for
pyoxigraph, which alone says what an error is (docs/decisions/013-lines-by-regular-expression.md). Delimiters, messages
and bytes are `lines_decoder.py`'s.

RDF 1.2 N-Triples and N-Quads, section 2 (the languages) and N-Triples section 4 (the canonical form).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import compress, count
from typing import Final, NamedTuple, cast

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded
from construct_messages.formats import N_QUADS, N_TRIPLES, Format
from construct_messages.logs.from_pyoxigraph import DEEPEST, Rename, to_message
from construct_messages.message import Message, Quad
from construct_messages.terms import RDF, USUAL_IRI, USUAL_LANGUAGE, XSD, Lenience, Term, escape, nesting, unescape

# --- canonical lines ------------------------------------------------------------------------------------------------

# To be quick these run to the next `>` or blank; what they take is a term only once _CANONICAL says so.
_IRI: Final = "<[^>]*+>"
_NODE: Final = f"{_IRI}|_:[^ ]*+"
_TEXT: Final = r'[^"\\\x00-\x1f\x7f\ufffe\uffff]*+'
_STRING: Final = rf'"{_TEXT}(?:\\[tbnrf"\\]{_TEXT})*+"'


# lines that say nothing: blank ones, and comments that are no delimiter
_NOTHING: Final = r"(?:[ \t]*+(?:#[^@\n]*+)?\n)++"


def _line(graph: str) -> re.Pattern[str]:
    """Subject, predicate, object (a node, or a string with what follows it), graph; or else the line, with its end.

    Lines that say nothing are one match together: a few bytes of a packed log are millions of them.
    """
    return re.compile(rf"({_NODE}) ({_IRI}) (?:({_NODE})|({_STRING}((?:@|\^\^)[^ ]*+)?)){graph} \.\n|({_NOTHING}|.*\n)")


_LINES: Final = {N_TRIPLES: _line("((?!))?"), N_QUADS: _line(f"(?: ({_NODE}))?")}

_NOT_A_DATATYPE: Final = "|".join((f"{XSD}string", f"{RDF}langString", f"{RDF}dirLangString"))
_CANONICAL: Final = re.compile(
    rf"<{USUAL_IRI}>"
    r"|_:[A-Za-z0-9_](?:[A-Za-z0-9_\-.]*[A-Za-z0-9_\-])?"
    rf"|@{USUAL_LANGUAGE}"
    rf"|\^\^(?!<(?:{_NOT_A_DATATYPE})>)<{USUAL_IRI}>"
)

_REMEMBERED: Final = 1 << 20
"""How many characters are read before the terms that were met are forgotten, which bounds what they take."""

make_quad = cast("Callable[[Iterable[str | None]], Quad]", partial(tuple.__new__, Quad))
"""A quad of its four parts in a row; what `Quad._make` is, without its check of their number."""


BLANK: Final = "_:"
"""What is said of a line that is a canonical statement, and holds a blank node that was not renamed."""

_NO_QUAD: Final = Quad(*[Term("")] * 3)


class Lines(NamedTuple):
    """What some whole lines hold.

    Args:
        quads: one for each line, of no meaning where the line is among the others; lines that say nothing are one
            together.
        others: the lines that are no canonical statements, each with its index among the quads and its end, and those
            that hold a blank node whose label was kept, each with its index and `BLANK`.
    """

    quads: list[Quad]
    others: list[tuple[int, str]]


class Statements:
    """Reads lines of one format.

    Args:
        format: N-Triples or N-Quads.
        lenience: what passes and counts malformed IRIs and language tags; None: they are errors.

    >>> lines = Statements(N_TRIPLES).read('<urn:s> <urn:p> "o"@en .\\n_:b <urn:p>  <urn:o> .\\n')
    >>> print(lines.quads[0], lines.others)
    <urn:s> <urn:p> "o"@en . [(1, '_:b <urn:p>  <urn:o> .\\n')]
    """

    def __init__(self, format: Format, lenience: Lenience | None = None) -> None:
        self._line, self._lenience = _LINES[format], lenience
        self._parser = ox.RdfFormat.N_QUADS if format.graphs else ox.RdfFormat.N_TRIPLES
        self._forget()

    def _forget(self) -> None:
        self._known: set[str | None] = {None}  # as a group that took no part is
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
        found = self._line.split(text)
        subjects, predicates, nodes, strings, suffixes, graphs, others = (found[group::8] for group in range(1, 8))
        for column in (subjects, predicates, nodes, suffixes, graphs):
            if not self._known.issuperset(column):
                blanks = self._learn(column)
                if blanks is None:
                    return self._one_by_one(text, rename)
                if not blanks:
                    continue
                if rename is None:
                    for index in compress(count(), map(blanks.__contains__, column)):
                        others[index] = BLANK
                elif renamed := self._rename(blanks, rename):
                    column[:] = map(renamed.get, column, column)
        objects = [node or string for node, string in zip(nodes, strings, strict=True)]
        quads = list(map(make_quad, zip(subjects, predicates, objects, graphs, strict=True)))
        return Lines(quads, list(compress(enumerate(others), others)))

    def _learn(self, column: list[str]) -> set[str] | None:
        """Gives the blank nodes of a column, whose other terms are known then; None where one is not canonical."""
        blanks = set[str]()
        for term in set(column) - self._known:
            if not _CANONICAL.fullmatch(term):
                return None
            (blanks if term.startswith("_:") else self._known).add(term)
        return blanks

    def _rename(self, blanks: set[str], rename: Rename) -> dict[str, str]:
        """The new labels of blank nodes; those that keep theirs are known then."""
        labels = map(rename, cast("set[Term]", blanks))
        renamed: dict[str, str] = {blank: label for blank, label in zip(blanks, labels, strict=True) if blank != label}
        self._known |= blanks - renamed.keys()
        return renamed

    def _one_by_one(self, text: str, rename: Rename | None) -> Lines:
        # splitlines() would know more line ends
        lines = text.split("\n")[:-1]
        if len(lines) == 1:
            return Lines([_NO_QUAD], [(0, text)])
        together = Lines([], [])
        for index, line in enumerate(lines):
            quads, others = self.read(f"{line}\n", rename)
            together.quads.extend(quads)
            together.others.extend((index, other) for _, other in others)
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
            make_quad(None if term is None else _NUMBER.sub(string, term) for term in quad) for quad in statement
        )


# --- other lines ----------------------------------------------------------------------------------------------------

_LONG: Final = 1 << 21
"""How many characters of a line are left to pyoxigraph as they are."""

_ANY_STRING: Final = re.compile(r'"([^"\\\n\r]*+(?:\\(?:[tbnrf"\'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})[^"\\\n\r]*+)*+)"')
_NUMBER: Final = re.compile('"([0-9]+)"')

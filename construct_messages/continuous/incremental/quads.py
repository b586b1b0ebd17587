"""Parses quads of messages to texts of terms, as a store returns them, and matches them with triple patterns.

N-Quads (RDF 1.2). Uncommon forms in a line are parsed by pyoxigraph, term by term. No windows here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from construct_messages.continuous.dataset import PLAIN_FORMS, StoredTerms
from construct_messages.continuous.incremental.expressions import Row, necessary
from construct_messages.continuous.incremental.operators import picking
from construct_messages.query.algebra.nodes import Expression, Triple, Var
from construct_messages.rdf.terms import (
    XSD,
    Term,
    from_pyoxigraph,
    is_literal,
    is_triple,
    to_pyoxigraph,
)

TextQuad: TypeAlias = "tuple[str, str, str, str]"
"""Subject, predicate, object and graph; the empty string is the default graph."""

_IRI: Final = r"<[^>\\]*+>"
_NODE: Final = rf"(?:{_IRI}|_:[A-Za-z0-9_]++)"
_LITERAL: Final = r'"[^"\\\r\n]*+"'
_TYPED: Final = "|".join(
    rf'"(?:{form})"\^\^<{re.escape(XSD)}{name}>' for name, form in PLAIN_FORMS.items()
)
_OBJECT: Final = rf"({_NODE}|{_LITERAL}(?![\^@])|{_TYPED})(?: ({_NODE}))? \."
_QUADS: Final = re.compile(rf"^({_NODE}) ({_IRI}) {_OBJECT}[\r\n]*$", re.MULTILINE)
_NONE: Final = ox.DefaultGraph()


class QuadReader:
    """Reads the quads of messages with certain predicates.

    Args:
        predicates: with brackets; None: all predicates.

    Attributes:
        predicates: the same.

    >>> reader = QuadReader(frozenset(["<urn:p>"]))
    >>> list(reader.read(b'<urn:s> <urn:p> "o" .\\n<urn:s> <urn:q> "o" <urn:g> .'))
    [('<urn:s>', '<urn:p>', '"o"', '')]
    """

    def __init__(self, predicates: frozenset[str] | None) -> None:
        self.predicates = predicates
        self._lines = [
            (
                name,
                f" {name} ".encode(),
                re.compile(rf"({_NODE}) {re.escape(name)} {_OBJECT}\r*").fullmatch,
            )
            for name in sorted(predicates or ())
        ]
        self._stored = StoredTerms()

    def read(self, nquads: bytes) -> list[TextQuad]:
        """Returns the quads of a message.

        Args:
            nquads: the message as canonical N-Quads.
        """
        found: list[TextQuad]
        if self.predicates is None:
            text = nquads.decode()
            found = _QUADS.findall(text)
            is_complete = len(found) == text.count("\n") + (text[-1:] not in ("", "\n"))
            return found if is_complete else list(self._read_all(nquads))
        found = []
        find = nquads.find
        for name, between, line in self._lines:
            place = find(between)
            while place >= 0:
                end = find(b"\n", place)
                if end < 0:
                    end = len(nquads)
                quad = line(nquads[nquads.rfind(b"\n", 0, place) + 1 : end].decode())
                if quad is None:  # an uncommon form, or the text is in a literal or triple term
                    return list(self._read_all(nquads))
                subject, object, graph = quad.groups("")
                found.append((subject, name, object, graph))
                place = find(between, end)
        return found

    def _read_all(self, nquads: bytes) -> Iterator[TextQuad]:
        for quad in ox.parse(nquads, format=ox.RdfFormat.N_QUADS, lenient=True):
            predicate = str(quad.predicate)
            if self.predicates is None or predicate in self.predicates:
                graph = "" if quad.graph_name == _NONE else str(quad.graph_name)
                yield (
                    str(quad.subject),
                    predicate,
                    from_pyoxigraph(self._stored.term(quad.object)),
                    graph,
                )

    def stored(self, term: Term) -> Term:
        """A term of a query as a store returns it."""
        if is_literal(term) or is_triple(term):
            return from_pyoxigraph(self._stored.term(to_pyoxigraph(term)))
        return term


class Match(NamedTuple):
    """A match of a pattern: the pattern's number, and the values of its variables."""

    pattern: int
    row: Row


class _CompiledPattern:
    """A triple pattern: the required terms of a quad, and the positions of variables."""

    def __init__(
        self, number: int, pattern: Triple, conditions: Iterable[Expression], reader: QuadReader
    ) -> None:
        self.number = number
        self.constants: list[tuple[int, str]] = []
        self.equal: list[tuple[int, int]] = []
        self.named = isinstance(pattern.graph, Var)
        columns: dict[str, int] = {}
        for place, position in enumerate(pattern.positions):
            if not isinstance(position, Var):
                text = "" if position is None else reader.stored(position)
                if place != 1:
                    self.constants.append((place, text))
            elif position.name in columns:
                self.equal.append((columns[position.name], place))
            else:
                columns[position.name] = place
        self.variables = tuple(columns)
        self.row = picking(list(columns.values()))
        self._test = necessary(conditions, self.variables)

    def matches(self, quad: TextQuad) -> bool:
        """Whether a quad with its predicate matches."""
        for place, text in self.constants:
            if quad[place] != text:
                return False
        if self.named and not quad[3]:
            return False
        for place, other in self.equal:
            if quad[place] != quad[other]:
                return False
        return self._test is None or self._test(self.row(quad))


class PatternMatcher:
    """Finds the patterns that a quad matches.

    Args:
        patterns: triple patterns.
        conditions: of each pattern, which only read its variables: a quad that fails one does not match.

    Attributes:
        reader: reads the quads that may match.
        variables: the variables of each pattern.

    >>> matcher = PatternMatcher([Triple(Var("s"), Term("<urn:p>"), Var("o"))])
    >>> matcher.matches(("<urn:s>", "<urn:p>", '"o"', ""))
    [Match(pattern=0, row=('<urn:s>', '"o"'))]
    """

    def __init__(
        self, patterns: Sequence[Triple], conditions: Sequence[Iterable[Expression]] | None = None
    ) -> None:
        named = {p.predicate for p in patterns if not isinstance(p.predicate, Var)}
        every = any(isinstance(pattern.predicate, Var) for pattern in patterns)
        self.reader = QuadReader(None if every else frozenset(map(str, named)))
        compiled = [
            _CompiledPattern(number, pattern, conditions[number] if conditions else (), self.reader)
            for number, pattern in enumerate(patterns)
        ]
        self.variables = [one.variables for one in compiled]
        self._of = {
            predicate: [
                one
                for one, pattern in zip(compiled, patterns, strict=True)
                if isinstance(pattern.predicate, Var) or pattern.predicate == predicate
            ]
            for predicate in map(str, named)
        }
        self._others = [
            one
            for one, pattern in zip(compiled, patterns, strict=True)
            if isinstance(pattern.predicate, Var)
        ]

    def matched(self, quads: Iterable[TextQuad]) -> list[TextQuad]:
        """Returns the quads that match a pattern."""
        patterns, others, found = self._of, self._others, list[TextQuad]()
        for quad in quads:
            for one in patterns.get(quad[1], others):
                if one.matches(quad):
                    found.append(quad)
                    break
        return found

    def matches(self, quad: TextQuad) -> list[Match]:
        """Returns the matches of a quad."""
        return [
            Match(one.number, one.row(quad))
            for one in self._of.get(quad[1], self._others)
            if one.matches(quad)
        ]

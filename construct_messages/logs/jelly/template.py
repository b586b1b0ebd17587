"""Writes batches of a template's solutions as Jelly frames, without making messages.

Most rows of a frame repeat their subject and add a constant predicate, often a constant object too. Such rows are
prepared: their bytes depend on nothing but which table ids the IRI before them makes unnecessary. They hold as long
as the tables keep what they refer to; the tables tell how long that is, and frames beyond it go the plain way, by
`Template.instantiate` and `JellyEncoder.encode`, as do solutions that drop a triple or give one twice. So frames are
byte for byte what the plain encoder writes (tests/test_logs_jelly_template.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

from construct_messages.logs.jelly.encoder import NEITHER, OBJECT, PREDICATE, Iri, JellyEncoder, Statement, row
from construct_messages.logs.jelly.options import Physical
from construct_messages.logs.jelly.tables import Table
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import (
    FORBIDDEN,
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
    blank_label,
    may_coincide,
)
from construct_messages.terms import Term, is_literal, is_triple

_MOST_PATTERNS: Final = 100


class TemplateFrames:
    """Encodes batches of solutions. Byte for byte what `encode(Message(instantiate(…)))` gives.

    Args:
        encoder: whose log it is.
        template: what instantiates the solutions.
    """

    def __init__(self, encoder: JellyEncoder, template: Template) -> None:
        self._encoder, self._template = encoder, template
        patterns = template.live
        # each pattern is compared with each: of very many, message by message is quicker
        self._plain = (
            len(patterns) > _MOST_PATTERNS
            or encoder.options.physical is Physical.GRAPHS
            or any(isinstance(slot, Nested) for pattern in patterns for slot in pattern)
        )
        if self._plain:
            return
        self._layout = _Layout(patterns, len(template.variables))
        self._prepared = _Prepared(encoder, patterns)
        self._twins = any(may_coincide(one, other) for one, other in combinations(patterns, 2))
        self._checks = {
            (slot.index, FORBIDDEN[position])
            for pattern in patterns
            for slot, position in zip(pattern, FORBIDDEN, strict=True)
            if isinstance(slot, Variable)
        }

    def encode(self, solutions: Solutions, first: int) -> bytes:
        """The frames of a batch, one a solution; see `TemplateEncoder.encode`."""
        return b"".join(self._frame(solution, number) for number, solution in enumerate(solutions, first))

    def _frame(self, solution: tuple[Term, ...], number: int) -> bytes:
        if not self._plain and self._prepared.holds() and self._is_whole(solution):
            statements = self._layout.statements(solution, number)
            if not self._twins or len(set(statements)) == len(statements):
                return self._encoder.frame(lambda rows: self._prepared.write(statements, rows))
        return self._encoder.encode(Message(self._template.instantiate(solution, number)))

    def _is_whole(self, solution: tuple[Term, ...]) -> bool:
        """Whether every triple of the template is one of the message."""
        for index, forbidden in self._checks:
            term = solution[index]
            if not term or (forbidden and term.startswith(forbidden)):
                return False
        return True


class _Layout:
    """Statements as indexes into the list of a solution's terms, the constants and the blank nodes."""

    def __init__(self, patterns: Sequence[Pattern], variables: int) -> None:
        slots = [slot for pattern in patterns for slot in pattern]
        self._constants = list(dict.fromkeys(slot.term for slot in slots if isinstance(slot, Constant)))
        self._blanks = range(1 + max((slot.index for slot in slots if isinstance(slot, Blank)), default=-1))
        self._variables = variables
        self._indexes = [
            (self._index(s), self._index(p), self._index(o), None if g is None else self._index(g))
            for s, p, o, g in patterns
        ]

    def _index(self, slot: Slot) -> int:
        match slot:
            case Variable(index):
                return index
            case Constant(term):
                return self._variables + self._constants.index(term)
            case Blank(index):
                return self._variables + len(self._constants) + index
        raise TypeError(slot)

    def statements(self, solution: tuple[Term, ...], number: int) -> list[Statement]:
        """All that the template gives for a solution."""
        terms = [*solution, *self._constants, *(Term(f"_:{blank_label(number, index)}") for index in self._blanks)]
        return [(terms[s], terms[p], terms[o], None if g is None else terms[g]) for s, p, o, g in self._indexes]


class _Row(NamedTuple):
    """A row that repeats its subject and has a constant predicate.

    `variants` are the bytes up to the object, or all of them if that is constant: where the predicate's prefix is
    another than the last one and its name does not follow, where only the prefix is the same, where only the name
    follows, and where both is so. `end` is what the row leaves as last prefix and name.
    """

    prefix: int
    name: int
    variants: tuple[bytes, bytes, bytes, bytes]
    end: tuple[int, int]
    is_whole: bool


class _Prepared:
    """The rows of a template that can be prepared, as long as the encoder's tables hold what they refer to."""

    def __init__(self, encoder: JellyEncoder, patterns: Sequence[Pattern]) -> None:
        self._encoder, self._patterns = encoder, patterns
        pairs = zip(patterns, [None, *patterns], strict=False)
        self._can = [before is not None and _adds_predicate(before, pattern) for pattern, before in pairs]
        prepared = [slot for pattern, can in zip(patterns, self._can, strict=True) if can for slot in pattern[1:3]]
        self._constants = {slot.term for slot in prepared if isinstance(slot, Constant)}
        # An entry is made at most once for each other term of a message, and then may have to pass the four that its
        # statement needs itself.
        others = {slot for pattern in patterns for slot in pattern if slot is not None} - set(prepared)
        variables = {slot for slot in prepared if not isinstance(slot, Constant)}
        self._reserve = 5 * len(others | variables)
        self._rows: list[_Row | None] = []
        self._limits: list[tuple[Table, int]] = []  # how many entries the tables may have had

    def holds(self) -> bool:
        """Whether the next message can be written, by what is prepared or by what can be now."""
        limits, encoder = self._limits, self._encoder
        # an encoder that refused a message has begun with new tables
        if limits and limits[0][0] is encoder.names and all(table.entered <= limit for table, limit in limits):
            return True
        self._limits = []
        iris = [encoder.iris.get(term) for term in self._constants if not is_literal(term)]
        suffixes = {term[term.rindex('"') + 1 :] for term in self._constants if is_literal(term)}
        if None in iris or not suffixes <= encoder.suffixes.keys():
            return False
        found = [each for each in iris if each is not None]
        datatypes = [encoder.datatypes.ids[suffix[3:-1]] for suffix in suffixes if suffix.startswith("^^")]
        needed = [(encoder.names, [each.name for each in found])]
        if encoder.options.prefixes:
            needed.append((encoder.prefixes, [each.prefix for each in found]))
        if datatypes:
            needed.append((encoder.datatypes, datatypes))
        limits = [(table, table.entered + table.spares(ids) - self._reserve) for table, ids in needed]
        if any(table.entered > limit for table, limit in limits):
            return False
        self._limits = limits
        self._rows = [
            self._prepare(pattern) if can else None for pattern, can in zip(self._patterns, self._can, strict=True)
        ]
        return True

    def _prepare(self, pattern: Pattern) -> _Row:
        encoder = self._encoder
        predicate = encoder.iris[_constant(pattern.predicate)]
        end = predicate[:2]
        object = b""
        is_whole = isinstance(pattern.object, Constant)
        if is_whole:
            term = _constant(pattern.object)
            if is_literal(term):
                object = OBJECT.literal + encoder.literal(term, (), [])
            else:
                found = encoder.iris[term]
                object = OBJECT.iri + _forms(found)[(found.prefix == end[0]) + 2 * (found.name == end[1] + 1)]
                end = found[:2]
        bodies = [PREDICATE.iri + form + object for form in _forms(predicate)]
        full, same_prefix, next_name, neither = (row(encoder.kind, body) for body in bodies) if is_whole else bodies
        return _Row(*predicate[:2], (full, same_prefix, next_name, neither), end, is_whole)

    def write(self, statements: Sequence[Statement], rows: list[bytes]) -> None:
        """Adds the rows of a message's statements, one for each pattern."""
        encoder = self._encoder
        last = encoder.last
        for statement, prepared in zip(statements, self._rows, strict=True):
            object = statement[2]
            if prepared is None or object == last[2]:
                encoder.last = last
                encoder.statements((statement,), rows)
                last = statement
                continue
            prefix, name, variants, end, is_whole = prepared
            body = variants[(prefix == encoder.prefix) + 2 * (name == encoder.name + 1)]
            encoder.prefix, encoder.name = end
            last = statement
            if is_whole:
                rows.append(body)
                continue
            if object[0] == '"':
                body += OBJECT.literal + encoder.literal(object, statement, rows)
            else:
                body += encoder.term(OBJECT, object, statement, rows)
            rows.append(row(encoder.kind, body))
        encoder.last = last


def _adds_predicate(before: Pattern, pattern: Pattern) -> bool:
    """Whether a row repeats the subject and the graph of the one before, and has a constant predicate of its own."""
    return (
        pattern.subject == before.subject
        and pattern.graph == before.graph
        and isinstance(pattern.predicate, Constant)
        and isinstance(before.predicate, Constant)
        and pattern.predicate != before.predicate
        # whether the encoder refuses a triple term is for it to say
        and not (isinstance(pattern.object, Constant) and is_triple(pattern.object.term))
    )


def _constant(slot: Slot) -> Term:
    assert isinstance(slot, Constant)  # which `_adds_predicate` has seen to
    return slot.term


def _forms(found: Iri) -> tuple[bytes, bytes, bytes, bytes]:
    """What an IRI is where its prefix is not (0) or is (1) that of the IRI before, and its name follows (2 more)."""
    return found.full, found.same_prefix, found.next_name, NEITHER

"""Writes batches of a template's solutions as Jelly frames, without making messages.

Most rows of a frame repeat their subject and add a constant predicate, often a constant object too. Such rows are
prepared: their bytes depend on nothing but which table ids the IRI before them makes unnecessary. They hold as long
as the tables keep what they refer to; the tables tell how long that is, and frames beyond it go the plain way, by
`Template.instantiate` and `JellyEncoder.encode`, as do solutions that drop a triple or give one twice. So frames are
byte for byte what the plain encoder writes (tests/test_logs_jelly_template.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, count
from typing import Final, NamedTuple, TypeAlias

from construct_messages.errors import CannotCarry
from construct_messages.logs.jelly.encoder import HEADS, OBJECT, PREDICATE, SUBJECT, JellyEncoder, Statement, row
from construct_messages.logs.jelly.options import Physical
from construct_messages.logs.jelly.tables import Table
from construct_messages.logs.jelly.wire import delimited, varint
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
        self._prepared = _Prepared(encoder, patterns, self._layout)
        self._twins = any(may_coincide(one, other) for one, other in combinations(patterns, 2))
        self._checks = {
            (slot.index, FORBIDDEN[position])
            for pattern in patterns
            for slot, position in zip(pattern, FORBIDDEN, strict=True)
            if isinstance(slot, Variable)
        }

    def encode(self, solutions: Solutions, first: int) -> bytes:
        """The frames of a batch, one a solution; see `TemplateEncoder.encode`."""
        if self._plain:
            return b"".join(map(self._encode_plainly, solutions, count(first)))
        encoder, prepared, layout = self._encoder, self._prepared, self._layout
        batch = _Batch(solutions)
        are_whole = all(batch.has_all(index, forbidden) for index, forbidden in self._checks)
        literals: list[list[bytes] | None] = []
        entered = -1
        out = []
        for number, solution in enumerate(solutions):
            if not (encoder.is_open and prepared.holds() and (are_whole or self._is_whole(solution))):
                out.append(self._encode_plainly(solution, first + number))
                continue
            terms = layout.terms(solution, first + number)
            if self._twins and layout.has_twins(terms):
                out.append(self._encode_plainly(solution, first + number))
                continue
            if entered < 0:  # by now the encoder knows what one message needs
                entered = encoder.datatypes.entered
                literals = [batch.literals(index, encoder.suffixes) for index in range(len(solution))]
            elif entered != encoder.datatypes.entered:  # which may have cost a datatype its id
                literals = [None] * len(literals)
            out.append(prepared.frame(terms, literals, number))
        return b"".join(out)

    def _encode_plainly(self, solution: tuple[Term, ...], number: int) -> bytes:
        return self._encoder.encode(Message(self._template.instantiate(solution, number)))

    def _is_whole(self, solution: tuple[Term, ...]) -> bool:
        """Whether every triple of the template is one of the message."""
        return not any(
            not solution[index] or (forbidden and solution[index].startswith(forbidden))
            for index, forbidden in self._checks
        )


class _Batch:
    """The columns of one batch, each looked at as a whole."""

    def __init__(self, solutions: Solutions) -> None:
        self._columns = solutions.utf8
        # no term holds a line break: so one search tells whether any begins or ends in some way
        self._joined = [b"\n%b\n" % b"\n".join(column) for column in self._columns]

    def has_all(self, index: int, forbidden: Sequence[str]) -> bool:
        """Whether a variable is bound in all solutions, to terms that do not begin as is forbidden."""
        joined = self._joined[index]
        return b"\n\n" not in joined and not any(b"\n" + start.encode() in joined for start in forbidden)

    def literals(self, index: int, suffixes: Mapping[str, bytes]) -> list[bytes] | None:
        """The objects that a column's terms are, if all are literals of one known kind without escapes; else None."""
        column, joined = self._columns[index], self._joined[index]
        suffix = column[0][column[0].rfind(b'"') :]
        kind = suffixes.get(suffix[1:].decode()) if suffix.startswith(b'"') else None
        if (
            kind is None
            or b"\\" in joined
            or joined.count(b'\n"') < len(column)
            or joined.count(suffix + b"\n") < len(column)
        ):
            return None
        heads, cut = _literal_heads(len(kind)), len(suffix)
        return [
            heads[len(term) - 1 - cut] + term[1:-cut] + kind
            if len(term) - 1 - cut < len(heads)
            else OBJECT.literal + delimited(b"\x0a" + delimited(term[1:-cut]) + kind)
            for term in column
        ]


@cache
def _literal_heads(kind: int) -> tuple[bytes, ...]:
    """What stands before a lexical form, by its length, where the bytes of the literal's kind are so many."""
    return tuple(OBJECT.literal + varint(size + 2 + kind) + bytes((0x0A, size)) for size in range(128))


class _Layout:
    """Statements as indexes into the list of a solution's terms, the constants and the blank nodes."""

    def __init__(self, patterns: Sequence[Pattern], variables: int) -> None:
        slots = [slot for pattern in patterns for slot in pattern]
        self._constants = list(dict.fromkeys(slot.term for slot in slots if isinstance(slot, Constant)))
        self._blanks = range(1 + max((slot.index for slot in slots if isinstance(slot, Blank)), default=-1))
        self._variables = variables
        self.indexes = [
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

    def terms(self, solution: tuple[Term, ...], number: int) -> list[Term]:
        """The list for one solution."""
        terms = [*solution, *self._constants]
        if self._blanks:
            terms += [Term(f"_:{blank_label(number, index)}") for index in self._blanks]
        return terms

    def has_twins(self, terms: Sequence[Term]) -> bool:
        """Whether two statements are the same."""
        return len({_statement(terms, indexes) for indexes in self.indexes}) < len(self.indexes)


_Indexes: TypeAlias = tuple[int, int, int, int | None]


def _statement(terms: Sequence[Term], indexes: _Indexes) -> Statement:
    s, p, o, g = indexes
    return terms[s], terms[p], terms[o], None if g is None else terms[g]


class _Row(NamedTuple):
    """A row with a constant predicate.

    `variants` are its bytes from the predicate up to the object, or to the end if that is constant, for each of the
    predicate's forms (see `Iri`). `end` is what they leave as last prefix and name. Where `adds` is true, the row is
    sure to repeat subject and graph and no predicate, so that these are all its bytes; with their head, if complete.
    """

    prefix: int
    name: int
    variants: tuple[bytes, bytes, bytes, bytes]
    end: tuple[int, int]
    is_complete: bool
    adds: bool


class _Prepared:
    """The rows of a template that can be prepared, as long as the encoder's tables hold what they refer to."""

    def __init__(self, encoder: JellyEncoder, patterns: Sequence[Pattern], layout: _Layout) -> None:
        self._encoder, self._patterns, self._indexes = encoder, patterns, layout.indexes
        prepared = [slot for pattern in patterns if _can_be_prepared(pattern) for slot in pattern[1:3]]
        self._constants = {slot.term for slot in prepared if isinstance(slot, Constant)}
        # An entry is made at most once for each other term of a message, and then may have to pass the four that its
        # statement needs itself.
        others = {slot for pattern in patterns for slot in pattern if slot is not None} - set(prepared)
        variables = {slot for slot in prepared if not isinstance(slot, Constant)}
        self._reserve = 5 * len(others | variables)
        self._rows: list[tuple[_Indexes, _Row | None]] = []
        self._limits: list[tuple[Table, int]] = []  # how many entries the tables may have had

    def holds(self) -> bool:
        """Whether the next message can be written, by what is prepared or by what can be now."""
        limits, encoder = self._limits, self._encoder
        # an encoder that refused a message has begun with new tables
        if limits and limits[0][0] is encoder.names:
            for table, limit in limits:
                if table.entered > limit:
                    break
            else:
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
        rows = [
            self._prepare(pattern, before is not None and _adds_predicate(before, pattern))
            if _can_be_prepared(pattern)
            else None
            for pattern, before in zip(self._patterns, [None, *self._patterns], strict=False)
        ]
        self._rows = list(zip(self._indexes, rows, strict=True))
        return True

    def _prepare(self, pattern: Pattern, adds: bool) -> _Row:
        encoder = self._encoder
        predicate = encoder.iris[_constant(pattern.predicate)]
        end = predicate[:2]
        object = b""
        is_complete = isinstance(pattern.object, Constant)
        if is_complete:
            term = _constant(pattern.object)
            if is_literal(term):
                object = OBJECT.literal + encoder.literal(term, (), [])
            else:
                found = encoder.iris[term]
                object = OBJECT.iri + found.forms[(found.prefix == end[0]) + 2 * (found.name == end[1] + 1)]
                end = found[:2]
        bodies = [PREDICATE.iri + form + object for form in predicate.forms]
        if is_complete and adds:
            bodies = [row(encoder.kind, body) for body in bodies]
        full, same_prefix, next_name, neither = bodies
        return _Row(*predicate[:2], (full, same_prefix, next_name, neither), end, is_complete, adds)

    def frame(self, terms: Sequence[Term], literals: Sequence[list[bytes] | None], number: int) -> bytes:
        """The frame of a message that has a statement for each pattern.

        Args:
            terms: as the layout gives them.
            literals: of the variables whose columns are encoded, their columns.
            number: of the solution in these.

        Raises:
            CannotCarry: as `JellyEncoder.encode`.
        """
        encoder = self._encoder
        encoder.messages += 1
        known, heads, kind = encoder.iris, HEADS[encoder.kind], encoder.kind
        variables = len(literals)
        rows: list[bytes] = []
        last, last_object = None, encoder.last[2]  # `last` are the indexes of the last statement
        prefix, name = encoder.prefix, encoder.name
        try:
            for indexes, prepared in self._rows:
                place = indexes[2]
                object = terms[place]
                start: bytes | None = b""
                if prepared is None or object == last_object or not prepared.adds:
                    encoder.prefix, encoder.name = prefix, name
                    if last is not None:
                        encoder.last = _statement(terms, last)
                    statement = _statement(terms, indexes)
                    start = None
                    if prepared is not None and object != last_object:
                        start = self._start(statement, rows)
                    if start is None:
                        encoder.statements((statement,), rows)
                    prefix, name = encoder.prefix, encoder.name
                last, last_object = indexes, object
                if start is None or prepared is None:
                    continue
                own_prefix, own_name, variants, end, is_complete, adds = prepared
                body = variants[(own_prefix == prefix) + 2 * (own_name == name + 1)]
                prefix, name = end
                if is_complete:
                    if adds:
                        rows.append(body)
                        continue
                elif place < variables and (column := literals[place]) is not None:
                    body += column[number]
                elif (found := known.get(object)) is not None:
                    form = (found.prefix == prefix) + 2 * (found.name == name + 1)
                    prefix, name = found.prefix, found.name
                    body += OBJECT.iri + found.forms[form]
                else:
                    encoder.prefix, encoder.name = prefix, name
                    body += encoder.term(OBJECT, object, _statement(terms, indexes), rows)
                    prefix, name = encoder.prefix, encoder.name
                body = start + body
                size = len(body)
                rows.append(heads[size] + body if size < 126 else row(kind, body))
        except CannotCarry as error:
            raise encoder.refused(error) from None
        encoder.prefix, encoder.name = prefix, name
        if last is not None:
            encoder.last = _statement(terms, last)
        return delimited(b"".join(rows))

    def _start(self, statement: Statement, rows: list[bytes]) -> bytes | None:
        """What stands before the predicate of a prepared row that is no mere addition; None: other bytes differ too."""
        encoder = self._encoder
        subject, predicate, _, graph = statement
        last_subject, last_predicate, _, last_graph = encoder.last
        if predicate == last_predicate or graph != last_graph:
            return None
        if subject == last_subject:
            return b""
        found = encoder.iris.get(subject)
        return encoder.field(SUBJECT.iri, found) if found else encoder.term(SUBJECT, subject, statement, rows)


def _can_be_prepared(pattern: Pattern) -> bool:
    """Whether the predicate is constant, and the object no constant that the encoder might refuse."""
    return isinstance(pattern.predicate, Constant) and not (
        isinstance(pattern.object, Constant) and is_triple(pattern.object.term)
    )


def _adds_predicate(before: Pattern, pattern: Pattern) -> bool:
    """Whether a row repeats the subject and the graph of the one before, and does not repeat its predicate."""
    return (
        pattern.subject == before.subject
        and pattern.graph == before.graph
        and isinstance(before.predicate, Constant)
        and pattern.predicate != before.predicate
    )


def _constant(slot: Slot) -> Term:
    assert isinstance(slot, Constant)  # which `_can_be_prepared` has seen to
    return slot.term
